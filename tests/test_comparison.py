"""Two definition versions compared: what differs, whether scores stay comparable, and the honest bump."""

import copy
import json
import random
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from competition import TEST, competition
from cxrspec.comparison import (
    COMPARABLE,
    NO_SCORE,
    NOT_COMPARABLE,
    SHARED_ONLY,
    THE_SAME,
    Comparison,
    compare,
    load_version,
)
from cxrspec.comparison.version import document_changes
from cxrspec.reference import Reference
from cxrspec.strict_yaml import dump_document, load_document
from project import DEFINITION, REF, SPEC, Project, frozen_project, labels_csv, refusal
from questions import SMALL, Questions

NEW = Reference("tiny", "v2")
METRIC = """  - name: another
    kind: roc_auc
    protocol: zero_shot
    average: macro
    interval: {method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}
"""
PROMPTS = "zero_shot: {prompts: {edema: {positive: a, negative: b}, effusion: {positive: a, negative: b}}}"
Edits = list[tuple[str, str]]
OTHER_KIND = [("mean_ap_zero_shot\n    kind: average_precision", "mean_ap_zero_shot\n    kind: roc_auc")]
STRATA = [
    (
        "    kind: roc_auc\n    protocol: zero_shot\n",
        "    kind: roc_auc\n    protocol: zero_shot\n    strata: {sex: values}\n",
    )
]
LABELS_ONLY = [
    (DEFINITION[DEFINITION.index("protocols:") : DEFINITION.index("expect:")], "protocols: {}\nmetrics: []\n")
]
FEWER = [
    ("{edema: Edema, effusion: Effusion}", "{effusion: Effusion}"),
    ("negative: No Finding", "negative: No Finding, vocabulary: [Edema, Effusion]"),
]
EXPECTED_COUNTS = DEFINITION[DEFINITION.index("expect:") : DEFINITION.index("caveats:")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose version v1 is frozen."""
    return frozen_project(tmp_path)


def second(project: Project, edits: Edits, *, rows: Callable[[str], str] | None = None) -> Project:
    """Freeze version v2: some texts of v1 replaced, and with `rows` another source."""
    edits = [*edits, (EXPECTED_COUNTS, "")]
    if rows:
        project.write("data/second.csv", rows(labels_csv()))
        edits.append(("data/labels.csv", "data/second.csv"))
    project.freeze(project.define("v2", *edits))
    return project


def compared(project: Project, before: Reference = REF, after: Reference = NEW) -> Comparison:
    """Compare v1 with v2."""
    return compare(before, after, project.registry)


def judged(found: Comparison) -> tuple[str, str]:
    """Return verdict and bump."""
    return found.verdict.verdict, found.bump.verdict


def mirrored(found: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison as it must be the other way round; the bump alone has a direction."""
    found = copy.deepcopy(found)
    del found["bump"]
    for part in (found, *found["changes"], *found["described"], *found["subsets"].values()):
        part["before"], part["after"] = part["after"], part["before"]
    for subset in found["subsets"].values():
        for counts in (subset["items"], subset["groups"]):
            if counts:
                counts["added"], counts["removed"] = counts["removed"], counts["added"]
        for sides in subset["prevalence"].values():
            sides["before"], sides["after"] = sides["after"], sides["before"]
    return found


def more_items(text: str) -> str:
    """Add one test image of a new patient."""
    return f"{text}n00.png,p99,test,Edema,40,M,PA,0\n"


def fewer_items(text: str) -> str:
    """Leave out the first test image."""
    return text.replace("t00.png,", "x99.png,").replace("x99.png,p00,test", "x99.png,p00,")


def other_label(text: str) -> str:
    """Give the first test image one finding less."""
    return text.replace("t00.png,p00,test,Edema|Effusion", "t00.png,p00,test,Effusion")


def other_group(text: str) -> str:
    """Give the first test image to another patient."""
    return text.replace("t00.png,p00", "t00.png,p98")


def other_items(text: str) -> str:
    """Rename every test image."""
    return text.replace("\nt", "\nu")


def other_training(text: str) -> str:
    """Relabel one image that probes are fitted on."""
    return text.replace("r01.png,p10,train,", "r01.png,p97,train,")


VERDICTS: list[tuple[str, Edits, Callable[[str], str] | None, str, str]] = [
    ("caveat", [("It is tiny.", "It is small.")], None, COMPARABLE, "patch"),
    ("alias", [("[Pleural Effusion]", "[Pleural Effusion, PE]")], None, COMPARABLE, "patch"),
    ("tolerance", [("tolerance: 5.0e-4", "tolerance: 1.0e-4")], None, COMPARABLE, "patch"),
    ("resamples", [("resamples: 100", "resamples: 200")], None, COMPARABLE, "patch"),
    ("same data from another file", [], lambda text: f"{text}x02.png,p90,,No Finding,1,M,PA,0\n", COMPARABLE, "patch"),
    ("metric added", [("metrics:\n", f"metrics:\n{METRIC}")], None, COMPARABLE, "minor"),
    ("strata added", STRATA, None, COMPARABLE, "minor"),
    ("items added", [], more_items, SHARED_ONLY, "minor"),
    ("items removed", [], fewer_items, SHARED_ONLY, "major"),
    ("items relabelled", [], other_label, SHARED_ONLY, "major"),
    ("items regrouped", [], other_group, SHARED_ONLY, "major"),
    ("no item shared", [], other_items, NOT_COMPARABLE, "major"),
    ("metric of another kind", OTHER_KIND, None, NOT_COMPARABLE, "major"),
    ("metric renamed", [("mean_ap_zero_shot", "ap_zero_shot")], None, COMPARABLE, "major"),
    ("finding removed", FEWER, None, NOT_COMPARABLE, "major"),
    ("prompts", [("zero_shot: {}", PROMPTS)], None, NOT_COMPARABLE, "major"),
    ("probe", [("folds: 2", "folds: 3")], None, NOT_COMPARABLE, "major"),
    ("seed", [("seed: 7", "seed: 8")], None, NOT_COMPARABLE, "major"),
    ("training items", [], other_training, NOT_COMPARABLE, "major"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "rows", "verdict", "bump"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS]
)
def test_verdict_and_bump(
    project: Project, edits: Edits, rows: Callable[[str], str] | None, verdict: str, bump: str
) -> None:
    """Each kind of change has its verdict and its bump, and the other way round says the same."""
    second(project, edits, rows=rows)
    found = compared(project)
    assert (verdict, bump) == judged(found)
    back = compared(project, NEW, REF).as_json(with_ids=True)
    assert mirrored(found.as_json(with_ids=True)) == {name: part for name, part in back.items() if name != "bump"}


@pytest.mark.parametrize(
    ("edits", "rows", "comparable"),
    [
        ([("seed: 7", "seed: 8")], None, ["mean_ap_zero_shot", "mean_auroc_zero_shot"]),
        ([("folds: 2", "folds: 3")], None, ["mean_ap_zero_shot", "mean_auroc_zero_shot"]),
        ([], other_training, ["mean_ap_zero_shot", "mean_auroc_zero_shot"]),
        ([("zero_shot: {}", PROMPTS)], None, ["mean_ap_probe", "mean_auroc_probe"]),
        (OTHER_KIND, None, ["mean_ap_probe", "mean_auroc_probe", "mean_auroc_zero_shot"]),
    ],
    ids=["seed", "probe", "training items", "prompts", "metric"],
)  # fmt: skip
def test_a_metric_is_judged_by_what_touches_it(
    project: Project, edits: Edits, rows: Callable[[str], str] | None, comparable: list[str]
) -> None:
    """What a protocol does not use makes none of its scores incomparable."""
    metrics = compared(second(project, edits, rows=rows)).metrics
    assert comparable == sorted(name for name, one in metrics.items() if one.verdict == COMPARABLE)


def test_a_metric_that_changed_its_name_is_still_compared(project: Project) -> None:
    """It goes by both names; one whose partner cannot be told is in one version only."""
    second(project, [("mean_ap_zero_shot", "ap_zero_shot")])
    assert COMPARABLE == compared(project).metrics["ap_zero_shot / mean_ap_zero_shot"].verdict
    twins = project.define(
        "v3", ("mean_ap_zero_shot", "a"), ("metrics:\n", f"metrics:\n{METRIC.replace('roc_auc', 'average_precision')}")
    )
    assert ["mean_ap_probe", "mean_auroc_probe", "mean_auroc_zero_shot"] == list(compared(project, REF, twins).metrics)


def test_one_finding_less_leaves_the_others_values_comparable(project: Project) -> None:
    """The mean is another; a finding's own zero-shot value is of the same items and labels."""
    found = compared(second(project, FEWER))
    [reason] = found.metrics["mean_auroc_zero_shot"].why
    assert (
        "the mean is over other findings: edema in one of them only; the values of effusion alone are comparable"
        == reason
    )
    assert "alone" not in " ".join(found.metrics["mean_auroc_probe"].why)


@pytest.mark.parametrize("reference", [REF, NEW], ids=["frozen", "authored"])
def test_a_version_and_itself_differ_in_nothing(project: Project, reference: Reference) -> None:
    """The comparison is empty, scores are comparable, and no bump is due."""
    project.define("v2", ("seed: 7", "seed: 8"))
    found = compared(project, reference, reference)
    assert (True, (COMPARABLE, "none")) == (found.is_empty, judged(found))


def shuffled(value: Any, order: random.Random) -> Any:
    """Return a document with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = order.sample(sorted(value), len(value))
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(one, order) for one in value] if isinstance(value, list) else value


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.randoms(use_true_random=False))
def test_the_order_of_keys_is_no_difference(project: Project, order: random.Random) -> None:
    """However the fields of a file are ordered, nothing differs."""
    fields = load_document(project.path(SPEC), shown_as=SPEC)[0]
    after = shuffled({**fields, "definition_version": "v2"}, order)
    project.write("specs/tiny/v2.yaml", dump_document(after))
    assert compared(project).is_empty


values = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    | st.dictionaries(st.sampled_from("pq"), inner, max_size=2).map(
        lambda named: [{"name": name, "kind": kind} for name, kind in named.items()]
    ),
    max_leaves=10,
)  # fmt: skip
documents = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(documents, documents)
def test_changes_are_symmetric_and_complete(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Each change stands the other way round in the other direction, and equal documents have none."""
    there = [(one.path, one.before, one.after) for one in document_changes(before, after)]
    back = [(one.path, one.after, one.before) for one in document_changes(after, before)]
    assert there == back
    assert [] == list(document_changes(before, copy.deepcopy(before)))


def test_items_are_counted_by_digest_and_listed_on_request(project: Project) -> None:
    """The digest is that of the ids, one a line, which anybody can compute."""
    second(project, [], rows=lambda text: more_items(other_label(text)))
    items = compared(project).as_json()["subsets"]["test"]["items"]
    assert {"count": 1, "sha256": sha256(b"n00\n").hexdigest()} == items["added"]
    assert {"count": 1, "sha256": sha256(b"t00\n").hexdigest()} == items["relabelled"]
    assert ["t00"] == compared(project).as_json(with_ids=True)["subsets"]["test"]["items"]["relabelled"]["ids"]


def test_prevalence_and_groups_are_counted_on_both_sides(project: Project) -> None:
    """Positives of all items, before and after; groups that came and went."""
    found = compared(second(project, [], rows=lambda text: more_items(other_label(text)))).subsets["test"]
    assert {"before": [7, 20], "after": [7, 21]} == found.prevalence["edema"]
    assert ({"added": 1, "removed": 0}, {"before": [10, 20], "after": [10, 21]}) == (
        found.groups,
        found.prevalence["effusion"],
    )


def test_a_missing_table_is_said_and_nothing_is_guessed(project: Project) -> None:
    """Without a table nobody knows which items are shared: counts stand, and the verdict is the careful one."""
    second(project, [], rows=more_items)
    project.path("registry/tiny/v2/test.tsv").unlink()
    found = compared(project)
    assert "registry/tiny/v2/test.tsv: is not on this machine" in found.subsets["test"].reason
    assert ((NOT_COMPARABLE, "major"), 21) == (judged(found), found.subsets["test"].after["items"])
    assert "cannot be told" in found.metrics["mean_auroc_zero_shot"].why[0]


def test_equal_digests_need_no_table(project: Project) -> None:
    """Two locks with the same subset digests are judged on a machine without any data."""
    second(project, [("It is tiny.", "It is small.")])
    for name in project.files():
        if name.endswith(".tsv"):
            project.path(name).unlink()
    assert (COMPARABLE, "patch") == judged(compared(project))


@pytest.mark.parametrize(
    ("edit", "known"),
    [
        (("seed: 7", "seed: 8"), True),
        (("data/labels.csv", "{path: data/labels.csv, sha256: " + "0" * 64 + "}"), False),
        (("test: {pool: {split: test}, select: all}",
          "test: {pool: {split: test}, select: {where: {column: sex, one_of: M}}}"), False),
        (("{edema: Edema, effusion: Effusion}", "{effusion: Effusion}"), True),
        (("{edema: Edema, effusion: Effusion}", "{edema: Edema, effusion: Mass}"), False),
        (("train: {pool: {split: train}", "train: {pool: {split: test}"), True),
    ],
    ids=["seed", "source", "selection", "finding removed", "finding relabelled", "another subset"],
)  # fmt: skip
def test_what_is_not_frozen_is_compared_by_what_its_items_follow_from(
    project: Project, edit: tuple[str, str], known: bool
) -> None:
    """Where neither source nor rule differs the items are the same; otherwise they are not known before freezing."""
    project.define("v2", edit, (EXPECTED_COUNTS, ""))
    found = compared(project).subsets["test"]
    assert (known, not known) == (found.is_same, "tiny@v2 is not frozen" in found.reason)


@pytest.mark.parametrize("edit", [("seed: 7", "seed: 8"), FEWER[0]], ids=["seed", "finding"])
def test_a_stratified_selection_follows_from_seed_and_findings(project: Project, edit: tuple[str, str]) -> None:
    """A subset that is drawn by labels is unknown as soon as they, or the seed, differ."""
    drawn = ("disjoint_by: group_id, select: all", "disjoint_by: group_id, select: {stratified: {size: 9}}")
    for version, edits in (("v2", [drawn]), ("v3", [drawn, edit])):
        project.define(version, *edits, (EXPECTED_COUNTS, ""))
    subsets = compared(project, NEW, Reference("tiny", "v3")).subsets
    assert (True, True) == (subsets["test"].is_same, subsets["train"].is_unknown)


def test_a_mended_caveat_of_a_frozen_version_is_seen(project: Project) -> None:
    """What a definition says of itself is compared as its file says it today."""
    project.edit(SPEC, "It is tiny.", "It is very tiny.")
    assert ["It is very tiny."] == load_version(REF, project.registry).description["caveats"]


def test_an_edited_frozen_file_is_compared_as_it_was_frozen(project: Project) -> None:
    """The lock is what scores stand on; an edit of its file changes no comparison."""
    project.edit(SPEC, "seed: 7", "seed: 9")
    assert 7 == load_version(REF, project.registry).document["seed"]


def test_ids_that_may_not_be_passed_on_need_a_flag(tmp_path: Path) -> None:
    """Counts and digests are shown; ids only to who asks for them twice."""
    project = frozen_project(tmp_path)
    second(project, [("attribution: nobody", "attribution: nobody\n    redistribute: false")])
    assert 0 == project.run("diff", "tiny@v1", "tiny@v2").code
    ran = project.run("diff", "tiny@v1", "tiny@v2", "--items")
    assert (1, True) == (ran.code, "Add --restricted to see them yourself" in ran.err)
    assert 0 == project.run("diff", "tiny@v1", "tiny@v2", "--items", "--restricted").code


def test_a_comparison_is_printed_with_verdict_and_bump(project: Project) -> None:
    """The last lines say what a maintainer needs: comparable or not, why, and which version number is honest."""
    second(project, [("seed: 7", "seed: 8")], rows=more_items)
    ran = project.run("diff", "tiny@v1", "tiny@v2", "--items")
    assert (0, "") == (ran.code, ran.err)
    for line in ("verdict: not comparable", "test added, sha256 ", "  n00", "smallest honest bump: major"):
        assert [line] == [found[: len(line)] for found in ran.out.splitlines() if found.startswith(line)]
    assert compared(project).as_json() == project.run("diff", "tiny@v1", "tiny@v2", "--json").json


def test_a_version_that_is_nowhere_is_named(project: Project) -> None:
    """Neither a lock nor a file: the message says which versions there are."""
    [(_, text)] = refusal(lambda: compared(project, REF, Reference("tiny", "v9")))
    assert "tiny@v9: is no definition here; there are tiny@v1" in text


# -- nothing is scored


def labels_only(
    project: Project, version: str, *edits: tuple[str, str], rows: Callable[[str], str] | None = None
) -> Reference:
    """Freeze a version that only freezes labels."""
    changes = [*LABELS_ONLY, (EXPECTED_COUNTS, ""), *edits]
    if rows:
        project.write(f"data/{version}.csv", rows(labels_csv()))
        changes.append(("data/labels.csv", f"data/{version}.csv"))
    reference = project.define(version, *changes)
    project.freeze(reference)
    return reference


def test_labels_alone_are_the_same_as_themselves(project: Project) -> None:
    """Without a metric the comparison of a version with itself is empty all the same."""
    only = labels_only(project, "l1")
    found = compared(project, only, only)
    assert (True, (THE_SAME, "none")) == (found.is_empty, judged(found))
    assert "verdict: the same" in project.run("diff", "tiny@l1", "tiny@l1").out


@pytest.mark.parametrize(
    ("rows", "said", "bump"),
    [(more_items, "20 items of test are in both with the same labels, 1 are not", "minor"),
     (other_label, "19 items of test are in both with the same labels, 1 are not", "major"),
     (None, "every item of test is in both with the same labels", "patch")],
)  # fmt: skip
def test_labels_alone_are_compared_by_items(
    project: Project, rows: Callable[[str], str] | None, said: str, bump: str
) -> None:
    """There is no score to compare: the verdict says so, and what the versions share."""
    old = labels_only(project, "l1")
    new = labels_only(project, "l2", ("title:", "supersedes: l1\ntitle:"), ("[Pleural Effusion]", "[PE]"), rows=rows)
    found = compared(project, old, new)
    assert (NO_SCORE, bump) == judged(found)
    assert said in found.verdict.why
    history = project.run("history", "tiny")
    assert (0, True) == (history.code, f"no score to compare with l1 ({bump} bump)" in history.out)
    assert 0 == project.run("leaderboard", "--all-versions").code


def test_labels_alone_have_no_metric_in_common_with_a_scored_version(project: Project) -> None:
    """Scores of the one stand beside nothing of the other."""
    found = compared(project, REF, labels_only(project, "l1"))
    assert (NOT_COMPARABLE, ("they have no metric in common",)) == (found.verdict.verdict, found.verdict.why)


# -- what a task calls its parts


def test_readers_leave_what_they_do_not_touch(tmp_path: Path) -> None:
    """Readers beside a curve move no ROC-AUC; they are new columns, and no findings."""
    made = competition(tmp_path)
    document = load_document(made.registry.spec_path(TEST), shown_as="")[0]
    older = Reference(TEST.benchmark, "test-2022-v0")
    kept = [one for one in document["metrics"] if one["kind"] != "readers_below_curve"]
    labels = {name: value for name, value in document["labels"].items() if name != "majority_of"}
    document = {name: value for name, value in document.items() if name not in ("readers", "expect")}
    changed = {**document, "definition_version": older.version, "metrics": kept, "labels": labels}
    made.write(f"specs/{TEST.benchmark}/{older.version}.yaml", dump_document(changed))
    for reference in (older, TEST):
        made.freeze(reference)
    found = compare(older, TEST, made.registry)
    assert {COMPARABLE} == {one.verdict for one in found.metrics.values()}
    assert "minor" == found.bump.verdict
    assert "column bc1.atelectasis" in found.bump.why[0]
    assert "finding" not in " ".join((*found.bump.why, *found.verdict.why))


def test_other_readers_are_another_count(tmp_path: Path) -> None:
    """What counts readers is not comparable once they are others; the rest is."""
    made = competition(tmp_path)
    text = made.registry.spec_path(TEST).read_text().replace("test-2022-v1", "test-2022-v2")
    assert "bc4: comparison-readers/bc4" in text
    text = text.replace("bc4: comparison-readers/bc4", "other: comparison-readers/bc4")
    made.write(f"specs/{TEST.benchmark}/test-2022-v2.yaml", text.encode())
    found = compare(TEST, Reference(TEST.benchmark, "test-2022-v2"), made.registry)
    below = {name for name, one in found.metrics.items() if one.verdict == NOT_COMPARABLE}
    assert below == {name for name in found.metrics if "below" in name}
    assert found.metrics.keys() - below


def test_questions_have_types_and_no_findings(tmp_path: Path) -> None:
    """The parts of a question set go by their own name."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    project.freeze()
    named = Questions(tmp_path, Reference("small-vqa", "v2"))
    old = project.registry.spec_path(SMALL).read_text().replace("definition_version: v1", "definition_version: v2")
    named.define(old.replace("size: Size}", "extent: Size}"))
    found = compare(SMALL, named.reference, project.registry)
    assert found.bump.why[0].startswith("gone: question type size")
    assert "finding" not in json.dumps(found.as_json()["verdict"])
