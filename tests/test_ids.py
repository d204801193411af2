"""Canonical ids: the same form whatever the spelling, and never two reference ids made one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.errors import DefinitionError
from cxrspec.ids import Canonicalizer, IdRule, nearest_ids

NIH = IdRule("file_name", prefix="nih-")
STUDY = IdRule("study_path")
REFERENCE = ["nih-00000001_000", "nih-00000001_001", "nih-00000013_008"]


@pytest.mark.parametrize(
    "raw",
    [
        "00000001_000",
        "00000001_000.png",
        "00000001_000.PNG",
        "00000001_000.jpg",
        "images_001/images/00000001_000.png",
        r"images_001\images\00000001_000.PNG",
        "  00000001_000.png ",
        "nih-00000001_000",
        "images/nih-00000001_000.dcm",
        "1_0",
        "1_000.png",
    ],
)
def test_every_spelling_of_a_file_name_is_one_id(raw: str) -> None:
    """T1: Folders, backslashes, blanks, one image extension, the prefix and lost zeros never matter."""
    assert Canonicalizer.from_reference(NIH, REFERENCE).canonical(raw) == "nih-00000001_000"


def test_only_one_image_extension_is_dropped() -> None:
    """T1: One known extension is dropped; any other dot belongs to the name."""
    canonical = Canonicalizer.from_raw(IdRule("file_name"), ["x"]).canonical
    assert [canonical(raw) for raw in ("a.png.png", "a.nii", "1.2.840.dcm", ".png")] == [
        "a.png",
        "a.nii",
        "1.2.840",
        ".png",
    ]


def test_lost_zeros_are_padded_and_counted() -> None:
    """T2: Ids that lost their zeros are padded and counted; a bare number stays what it is."""
    canonicalizer = Canonicalizer.from_reference(NIH, REFERENCE)
    assert canonicalizer.canonical_all(["1_0", "00000001_001", "13_8", "1"]) == (
        ["nih-00000001_000", "nih-00000001_001", "nih-00000013_008", "nih-1"],
        2,
    )


def test_padding_that_would_merge_reference_ids_is_off() -> None:
    """T2: A reference with both the short and the padded id keeps them apart, when compiled and when scored."""
    raw = ["1_0", "00000001_000"]
    compiled = Canonicalizer.from_raw(IdRule("file_name"), raw)
    scored = Canonicalizer.from_reference(IdRule("file_name"), raw)
    assert (raw, 0) == compiled.canonical_all(raw) == scored.canonical_all(raw)


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        (["a.png", "a.jpg"], IdRule("file_name")),
        (["x/1", "y/1"], IdRule("file_name")),
        (["a-x", "a"], IdRule("text", strip_suffix="-x")),
        (["train/p/s/v", "small/train/p/s/v"], IdRule("image_path")),
        (["a", "nih-a"], IdRule("text", prefix="nih-")),
        (["x/a", "x/nih-a"], NIH),
    ],
)
def test_a_merging_step_is_switched_off(raw: list[str], rule: IdRule) -> None:
    """T1: A step that would merge two reference ids is off, and the frozen ids switch it off again."""
    ids, _ = Canonicalizer.from_raw(rule, raw).canonical_all(raw)
    assert len(set(ids)) == 2
    assert Canonicalizer.from_reference(rule, ids).canonical_all(ids)[0] == ids


@pytest.mark.parametrize(
    "raw",
    [
        r"CheXpert-v1.0-small\valid\patient64541\study1\view1_frontal.jpg",
        "CheXpert-v1.0/valid/patient64541/study1/view1_frontal.jpg",
        "/mnt/train/CheXpert-v1.0/valid/patient64541/study1/view2_lateral.png",
        "valid/patient64541/study1",
        "valid/patient64541/study1/",
    ],
)
def test_a_study_is_the_tail_of_its_path(raw: str) -> None:
    """C6: The study id is the tail from train/, valid/ or test/, wherever the data set is mounted."""
    assert Canonicalizer.from_raw(STUDY, [raw]).canonical(raw) == "valid/patient64541/study1"


def test_a_prefixed_study_path_is_a_fixed_point() -> None:
    """C6: A prefix before the tail is recognised when the frozen ids come back."""
    rule = IdRule("study_path", prefix="chexpert-")
    raw = "CheXpert-v1.0/valid/patient1/study1/view1.jpg"
    [frozen], _ = Canonicalizer.from_raw(rule, [raw]).canonical_all([raw])
    assert frozen == "chexpert-valid/patient1/study1"
    assert [Canonicalizer.from_reference(rule, [frozen]).canonical(text) for text in (raw, frozen)] == [frozen, frozen]


def test_an_image_path_keeps_its_view() -> None:
    """C6: An image id keeps the view and drops the extension."""
    raw = "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg"
    rule = IdRule("image_path")
    assert Canonicalizer.from_raw(rule, [raw]).canonical(raw) == "train/patient00001/study1/view1_frontal"


def test_a_path_without_a_split_folder_is_refused() -> None:
    """C6: Without train/, valid/ or test/ there is no study id; the message shows examples and the count."""
    with pytest.raises(DefinitionError) as refused:
        Canonicalizer.from_raw(STUDY, ["valid/p/s/v.jpg", "patient9/study1/view1.jpg"])
    assert str(refused.value) == (
        "item_id: 1 of 2 ids have no train/, valid/ or test/ folder: 'patient9/study1/view1.jpg'. "
        "The form study_path keeps the path from there on; for other ids use text or file_name"
    )


def test_the_views_of_a_study_are_told_apart() -> None:
    """C1: A path knows its view; the path of a study has none."""
    raw = ["x/valid/p/s/view1_frontal.jpg", "valid/p/s/view2_lateral.png", "valid/p/s"]
    canonicalizer = Canonicalizer.from_raw(STUDY, raw)
    assert canonicalizer.canonical_all(raw)[0] == ["valid/p/s"] * 3
    assert canonicalizer.views(raw) == ["view1_frontal", "view2_lateral", ""]


def test_composed_and_decomposed_letters_are_one_id() -> None:
    """T8: NFC and NFD spellings of one name are the same id."""
    canonicalizer = Canonicalizer.from_reference(IdRule("text"), ["caf\u00e9"])
    assert canonicalizer.canonical("cafe\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("99999999_000", "00000009_000"), ("O0000001_000", "00000001_000"), ("0000001_000", "00000001_000")],
)
def test_the_nearest_id_shares_the_most_characters(word: str, nearest: str) -> None:
    """T11: A typing error, an odd letter and a lost zero each lead back to the id that was meant."""
    assert nearest_ids([word], ["00000001_000", "00000009_000", "00012345_001"]) == [nearest]


def test_there_is_no_nearest_among_none() -> None:
    """T11: Nothing is near where there are no ids."""
    assert nearest_ids(["a"], []) == [""]


pieces = st.sampled_from([*"01_ab./\\- \u0301e", "train/", ".png", "nih-", "1_0"])
raw_ids = st.lists(
    st.lists(pieces, max_size=6).map("".join),
    unique_by=lambda text: unicodedata.normalize("NFC", text).strip().replace("\\", "/"),
)
rules = st.builds(
    IdRule,
    st.sampled_from(["text", "file_name"]),
    st.sampled_from([None, ".png", "_0"]),
    st.sampled_from(["", "nih-"]),
)


@given(rules, raw_ids)
def test_no_two_reference_ids_are_ever_merged(rule: IdRule, raw: list[str]) -> None:
    """T1: Whatever the ids are, distinct ones stay distinct, and order does not matter."""
    ids, _ = Canonicalizer.from_raw(rule, raw).canonical_all(raw)
    assert len(set(ids)) == len(raw)
    assert Canonicalizer.from_raw(rule, raw[::-1]).canonical_all(raw)[0] == ids


@given(rules, raw_ids)
def test_frozen_ids_are_fixed_points(rule: IdRule, raw: list[str]) -> None:
    """T1: An id that comes back as `items` printed it is the same id."""
    ids, _ = Canonicalizer.from_raw(rule, raw).canonical_all(raw)
    assert Canonicalizer.from_reference(rule, ids).canonical_all(ids)[0] == ids
