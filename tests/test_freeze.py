"""Frozen means frozen: what can change a score is refused, what cannot is noted, and the bytes never move."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cxrspec.freeze import Frozen, changed_fields, claim_table, freeze, validate_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import MAX_BYTES
from project import (
    DEFINITION,
    FOLDER,
    LOCK,
    REF,
    SPEC,
    TEST_ITEMS,
    Project,
    authored_project,
    frozen_project,
    record_in_dvc,
    refusal,
)

NEW = (
    "Start the next version with 'cxrspec new tiny@v1 NEW_VERSION', which takes the changes along, "
    "then restore this file"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen and committed project."""
    return frozen_project(tmp_path / "frozen")


@pytest.fixture
def draft(tmp_path: Path) -> Project:
    """Return a project that is not frozen, without git."""
    return authored_project(tmp_path / "draft")


def validate(project: Project) -> tuple[list[tuple[str, str]], list[str]]:
    """Return codes and texts of the issues of the definition, and its notes."""
    issues, notes, _ = validate_definition(project.path(SPEC), project.registry)
    return [(issue.code, str(issue)) for issue in issues], [str(note) for note in notes]


PROMPTS = "zero_shot: {prompts: {edema: {positive: e, negative: no e}, effusion: {positive: f, negative: no f}}}"
SCORE_RELEVANT = [
    ("seed: 7", "seed: 8", "seed"),
    (
        "files: {main: data/labels.csv}",
        "files: {main: {path: data/labels.csv, sha256: " + "0" * 64 + "}}",
        "sources.labels.files.main.sha256",
    ),
    ("files: {main: data", "files: {other: data", "sources.labels.files.main, sources.labels.files.other"),
    ("item_id: {column: image,", "item_id: {column: picture,", "items.item_id.column"),
    ("form: file_name", "form: text", "items.item_id.form"),
    ("form: file_name}", "form: file_name, prefix: x-}", "items.item_id.prefix"),
    ("group_id: {column: patient}", "group_id: {column: image}", "items.group_id.column"),
    ("covariates: {age: age,", "covariates: {age: sex,", "items.covariates.age.column"),
    ("covariates: {age: age,", "covariates: {years: age,", "items.covariates.age, items.covariates.years"),
    (
        "train: {where: {column: set, one_of: train}}",
        "train: {where: {column: set, one_of: test}}",
        "splits.train.where[0].one_of[0]",
    ),
    ("{edema: Edema,", "{edema: Oedema,", "findings.edema"),
    ("[Pleural Effusion]", "[Pleural Effusion, Fluid]", "aliases.effusion"),
    ('separator: "|"', 'separator: ";"', "labels.separator"),
    ("negative: No Finding", "negative: Nothing", "labels.negative"),
    ("disjoint_by: group_id", "disjoint_by: item_id", "subsets.train.disjoint_by"),
    (
        "disjoint_from: test, disjoint_by: group_id, select: all",
        "select: all",
        "subsets.train.disjoint_by, subsets.train.disjoint_from",
    ),
    (
        "test: {pool: {split: test}, select: all}",
        "test: {pool: {split: train}, select: all}",
        "subsets.test.pool.split",
    ),
    ("zero_shot: {}", PROMPTS, "protocols.zero_shot.prompts"),
    ("C: [0.1, 1.0]", "C: [0.1, 1.5]", "protocols.probe.C[1]"),
    ("folds: 2", "folds: 3", "protocols.probe.folds"),
    ("standardize: true", "standardize: false", "protocols.probe.standardize"),
    ("solver: newton-cg", "solver: lbfgs", "protocols.probe.solver"),
    ("max_iter: 100,", "max_iter: 101,", "protocols.probe.max_iter"),
    ("tol: 1.0e-6", "tol: 1.0e-7", "protocols.probe.tol"),
    ("tolerance: 5.0e-4", "tolerance: 6.0e-4", "protocols.probe.tolerance"),
    ("name: mean_ap_probe", "name: other", "metrics[3].name"),
    ("resamples: 100", "resamples: 101", "metrics[0].interval[0].resamples"),
    ("level: 0.9,", "level: 0.95,", "metrics[0].interval[0].level"),
    ("unit: item,", "unit: group,", "metrics[0].interval[0].unit"),
    ("max_left_out: 1.0", "max_left_out: 0.5", "metrics[0].interval[0].max_left_out"),
]


@pytest.mark.parametrize(("old", "new", "fields"), SCORE_RELEVANT, ids=[f"{new[:40]}" for _, new, _ in SCORE_RELEVANT])
def test_an_edit_that_can_change_a_score_is_refused(project: Project, old: str, new: str, fields: str) -> None:
    """Validate and freeze name the fields and the command that starts the next version; nothing is written."""
    before = project.files()
    project.edit(SPEC, old, new)
    [(code, text)] = refusal(project.freeze)
    assert "frozen-changed" == code
    assert text.startswith(f"{SPEC}: tiny@v1 is frozen, and these fields were changed: {fields}")
    assert text.endswith(NEW)
    assert [(code, text)] == validate(project)[0]
    assert before == project.files()


DESCRIPTIVE = [
    ("title: A tiny benchmark", "title: Another", "title"),
    ("licence: CC0", "licence: CC-BY", "sources.labels.licence"),
    ("attribution: nobody", "attribution: somebody", "sources.labels.attribution"),
    ("attribution: nobody", "attribution: nobody\n    redistribute: false", "sources.labels.redistribute"),
    ("caveats: [It is tiny.]", "caveats: [It is small.]", "caveats[0]"),
    ("caveats: [It is tiny.]", "citations: [None.]", "caveats, citations"),
    ("test: {items: 20,", "test: {items: 20, groups: 10,", "expect.test.groups"),
    ("seed: 7", "seed: 7\nsupersedes: v0", "supersedes"),
    ("seed: 7", "seed: 7\nchange: A word.\ndescription: More words.", "change, description"),
]


@pytest.mark.parametrize(("old", "new", "fields"), DESCRIPTIVE, ids=[fields for _, _, fields in DESCRIPTIVE])
def test_an_edit_that_cannot_change_a_score_is_only_noted(project: Project, old: str, new: str, fields: str) -> None:
    """Titles, licences, caveats, claims and the like may be mended: a note, and the lock keeps its bytes."""
    before = project.files()
    project.edit(SPEC, old, new)
    note = f"{SPEC}: mended since it was frozen, without effect on any score: {fields}"
    assert ([], [note]) == validate(project)
    frozen = project.freeze()
    assert ("unchanged", [note]) == (frozen.state, [str(one) for one in frozen.notes])
    assert [note] == [str(one) for one in project.freeze(check=True).notes]
    assert before == project.files()


def test_comments_and_the_order_of_keys_are_nothing(project: Project) -> None:
    """Another layout of the same content is not even noted."""
    head, tail = DEFINITION.split("sources:\n")
    lines = [f"{line}   # a comment" for line in reversed(head.splitlines()[1:])]
    project.write(SPEC, "\n".join([*lines, "sources:", tail]))
    assert ([], []) == validate(project)


def test_a_mended_place_of_a_source_still_restores_the_same_lock(project: Project) -> None:
    """Where a file lies is no part of what it is: the tables come back from its new place, the lock unmoved."""
    before = project.files()
    project.path("data/labels.csv").rename(project.path("data/renamed.csv"))
    project.edit(SPEC, "data/labels.csv", "data/renamed.csv")
    project.path(f"{FOLDER}/test.tsv").unlink()
    assert "restored" == project.freeze().state
    assert before == project.files()


def test_freezing_again_changes_no_byte_and_no_file(project: Project) -> None:
    """The second freeze writes nothing at all."""
    before = {name: project.path(name).stat().st_mtime_ns for name in project.files(".")}
    assert "unchanged" == project.freeze().state
    assert before == {name: project.path(name).stat().st_mtime_ns for name in project.files(".")}


def test_freezing_elsewhere_gives_the_same_bytes(project: Project, draft: Project) -> None:
    """Lock and tables hold no clock, host or path, so a second project has them to the byte."""
    assert "frozen" == draft.freeze().state
    names = [name for name in project.files() if name.endswith((".tsv", "lock.json"))]
    assert {name: project.files()[name] for name in names} == {name: draft.files()[name] for name in names}


def test_check_writes_nothing(project: Project) -> None:
    """`--check` compiles again, compares and leaves every file of the project alone."""
    before = project.files(".")
    assert "checked" == project.freeze(check=True).state
    assert before == project.files(".")


def test_check_of_a_definition_that_is_not_frozen_is_refused(draft: Project) -> None:
    """There is nothing to compare with, and nothing is frozen by the way."""
    assert ["frozen-unknown"] == [code for code, _ in refusal(lambda: draft.freeze(check=True))]
    assert {} == draft.files()


def test_check_finds_a_table_that_was_altered(project: Project) -> None:
    """`--check` looks at the tables that are here, too."""
    project.write(f"{FOLDER}/test.tsv", "other")
    assert ["table-altered"] == [code for code, _ in refusal(lambda: project.freeze(check=True))]


def test_check_finds_a_claim_that_does_not_hold(project: Project) -> None:
    """A claim that was mended into an error fails `--check`, although it cannot change the lock."""
    project.edit(SPEC, "test: {items: 20,", "test: {items: 21,")
    assert ["expectation"] == [code for code, _ in refusal(lambda: project.freeze(check=True))]


def test_a_table_that_is_gone_is_restored(project: Project) -> None:
    """Freezing again brings the same bytes back."""
    before = project.files()
    project.path(f"{FOLDER}/roster.tsv").unlink()
    assert "restored" == project.freeze().state
    assert before == project.files()


def test_an_altered_table_is_not_overwritten_silently(project: Project) -> None:
    """A table with other bytes is named; only who deletes it gets the frozen one back."""
    project.write(f"{FOLDER}/test.tsv", "other")
    assert ["table-altered"] == [code for code, _ in refusal(project.freeze)]
    assert b"other" == project.path(f"{FOLDER}/test.tsv").read_bytes()


# -- a lock that is gone, or not the one that was frozen


def edited(project: Project) -> None:
    """Edit what can change a score, and delete the lock."""
    project.edit(SPEC, "seed: 7", "seed: 8")
    shutil.rmtree(project.path(FOLDER), ignore_errors=True)


def test_deleting_the_lock_does_not_unfreeze_what_git_has_in_head(project: Project) -> None:
    """The commit that froze it is asked, not the work tree."""
    edited(project)
    assert ["frozen-changed"] == [code for code, _ in refusal(project.freeze)]
    assert ["frozen-changed"] == [code for code, _ in validate(project)[0]]
    assert not project.path(LOCK).exists()


def test_deleting_the_lock_in_a_commit_does_not_unfreeze(project: Project) -> None:
    """A lock that only an earlier commit holds still counts."""
    edited(project)
    project.commit("Delete the lock")
    assert ["frozen-changed"] == [code for code, _ in refusal(project.freeze)]
    assert ["frozen-changed"] == [code for code, _ in validate(project)[0]]


def test_a_deleted_lock_comes_back_with_its_own_bytes(project: Project) -> None:
    """With the definition as it was, freezing restores the lock that git knows, mended descriptions or not."""
    before = project.files()
    project.edit(SPEC, "title: A tiny benchmark", "title: Another")
    project.path(LOCK).unlink()
    assert "restored" == project.freeze().state
    assert before[LOCK] == project.path(LOCK).read_bytes()


def test_deleting_the_lock_does_not_unfreeze_what_only_dvc_knows(draft: Project) -> None:
    """A lock that was never committed counts as frozen once dvc.lock has its hash."""
    draft.freeze()
    record_in_dvc(draft, LOCK)
    edited(draft)
    assert ["frozen-lost"] == [code for code, _ in refusal(draft.freeze)]
    assert ["frozen-lost"] == [code for code, _ in validate(draft)[0]]
    assert not draft.path(LOCK).exists()


def test_a_lock_that_only_dvc_knows_comes_back_if_it_is_the_same(draft: Project) -> None:
    """The definition as it was gives the bytes that dvc.lock recorded."""
    draft.freeze()
    before = draft.files()
    record_in_dvc(draft, LOCK)
    shutil.rmtree(draft.path(FOLDER))
    assert "frozen" == draft.freeze().state
    assert before == draft.files()


def test_a_lock_that_nothing_knows_was_never_frozen(draft: Project) -> None:
    """Before git or DVC know it, a lock may be thrown away: that is the time for second thoughts."""
    draft.freeze()
    edited(draft)
    assert "frozen" == draft.freeze().state


def test_a_lock_that_differs_from_the_one_in_git_is_refused(project: Project) -> None:
    """An edited lock, committed or not, is named with the commit that holds the right one."""
    project.edit_json(LOCK, lambda lock: lock["description"].update(title="Mine"))
    commit = project.git("log", "--format=%H", "--diff-filter=A", "--", LOCK)[:12]
    message = f"{LOCK}: is not the lock that commit {commit} froze. Restore it with 'git checkout {commit} -- {LOCK}'"
    assert [("frozen-changed", message)] == refusal(project.freeze)
    project.commit("Rewrite")
    assert [("frozen-changed", message)] == refusal(project.freeze)
    assert [("frozen-changed", message)] == validate(project)[0]


def test_an_edited_lock_that_is_not_committed_is_refused(draft: Project) -> None:
    """Without git, the lock's own digests still tell."""
    draft.freeze()
    draft.edit_json(LOCK, lambda lock: lock["definition"].update(seed=8))
    draft.edit(SPEC, "seed: 7", "seed: 8")
    assert ["file-unsafe"] == [code for code, _ in refusal(draft.freeze)]


def test_a_conflict_in_dvc_lock_stops_a_first_freeze(draft: Project) -> None:
    """D1: half a dvc.lock may hide a lock, so nothing is frozen beside it."""
    draft.write("dvc.lock", "<<<<<<< HEAD\n")
    assert ["file-unsafe"] == [code for code, _ in refusal(draft.freeze)]
    assert not draft.path(LOCK).exists()


# -- sources


def test_a_local_file_that_changed_since_is_refused(project: Project) -> None:
    """A `file` source without a pin is held to what was found at freezing, also if a table must be restored."""
    project.edit("data/labels.csv", "t00.png,p00", "t00.png,p99")
    [(code, text)] = refusal(project.freeze)
    assert ("frozen-changed", True) == (code, text.startswith("data/labels.csv (sources.labels): has sha256 "))
    project.path(f"{FOLDER}/test.tsv").unlink()
    [(code, text)] = refusal(project.freeze)
    assert "frozen-changed" == code
    assert "compiling it now gives other combined_id, roster.digest, roster.groups, sources.labels.main." in text
    assert ["frozen-changed"] == [code for code, _ in refusal(lambda: project.freeze(check=True))]


def test_a_local_file_in_another_row_order_is_another_file(project: Project) -> None:
    """The subsets would be the same, but the lock says which bytes they came from."""
    lines = project.path("data/labels.csv").read_text().splitlines()
    project.write("data/labels.csv", "\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    [(_, text)] = refusal(lambda: project.freeze(check=True))
    assert "compiling it now gives other sources.labels.main.sha256. Restore" in text


def test_a_frozen_definition_needs_its_local_file_no_more(project: Project) -> None:
    """A clone without the source has everything that scoring needs."""
    project.path("data/labels.csv").unlink()
    assert "unchanged" == project.freeze().state


def test_a_shuffled_source_gives_the_same_subsets(tmp_path: Path, project: Project) -> None:
    """H1: rows and columns of a source have no order."""
    shuffled = authored_project(tmp_path / "shuffled")
    rows = [line.split(",") for line in shuffled.path("data/labels.csv").read_text().splitlines()]
    rows = [rows[0], *reversed(rows[1:])]
    shuffled.write("data/labels.csv", "\r\n".join(",".join(reversed(row)) for row in rows))
    assert project.lock.tables == shuffled.freeze().lock.tables


# -- claims


def test_a_claim_that_does_not_hold_shows_the_whole_table_and_writes_nothing(draft: Project) -> None:
    """Every claim stands beside its count, those that hold too, and no lock or table is left."""
    draft.edit(SPEC, "test: {items: 20, positives: {edema: 7,", "test: {items: 21, positives: {edema: 8,")
    [(code, text)] = refusal(draft.freeze)
    assert "expectation" == code
    assert f"{SPEC}: 2 of 4 expected counts differ:" in text
    assert [
        ["expected", "of", "claimed", "found"],
        ["roster.items", "62", "62"],
        ["test.items", "21", "20", "differs"],
        ["test.positives.edema", "8", "7", "differs"],
        ["test.positives.effusion", "10", "10"],
    ] == [line.split() for line in text.splitlines()[1:6]]
    assert {} == draft.files()


def test_a_claim_within_a_difference_is_a_note(draft: Project) -> None:
    """Counts that depend on a publisher's tie-breaking never stop a freeze."""
    draft.edit(SPEC, "test: {items: 20,", "test: {items: {value: 25, within: 1},")
    frozen = draft.freeze()
    assert ["expect.test.items: claimed 25 (within 1), found 20"] == [str(note) for note in frozen.notes]
    assert "differs" in claim_table(frozen.claims)


# -- what a lock holds


def test_no_row_and_no_place_stands_in_the_lock(project: Project) -> None:
    """Locks hold counts and digests: no item, no patient, no absolute path."""
    text = project.path(LOCK).read_text()
    assert [] == [word for word in (*TEST_ITEMS, "p00", str(project.root)) if f'"{word}' in text]


def test_a_subset_id_is_the_sha256_of_the_file(project: Project) -> None:
    """A stranger can recompute every digest of the tables with sha256sum."""
    from hashlib import sha256

    for table, digest in project.lock.tables.items():
        assert digest == sha256(project.path(f"{FOLDER}/{table}.tsv").read_bytes()).hexdigest()


def test_a_version_may_supersede_one_that_is_not_frozen(draft: Project) -> None:
    """History is a tree of any shape: the version before need not exist."""
    draft.edit(SPEC, "seed: 7", "supersedes: never-written\nseed: 7")
    draft.freeze()
    assert "never-written" == json.loads(draft.path(LOCK).read_bytes())["supersedes"]


def test_two_versions_stand_side_by_side(project: Project) -> None:
    """Freezing another version leaves the first one as it was."""
    before = project.files(FOLDER)
    project.freeze(project.define("v2", ("seed: 7", "seed: 8")))
    assert before == project.files(FOLDER)
    assert [REF, Reference("tiny", "v2")] == project.registry.frozen()


@pytest.mark.parametrize("kind", ["missing", "huge", "directory"])
def test_a_definition_file_that_cannot_be_read_is_an_issue(draft: Project, kind: str) -> None:
    """A file that is absent, far too large or a folder gives one clear refusal."""
    draft.path(SPEC).unlink()
    if kind == "huge":
        draft.write(SPEC, "#" * (MAX_BYTES + 1))
    if kind == "directory":
        draft.path(SPEC).mkdir()
    assert ["yaml-syntax"] == [code for code, _ in refusal(draft.freeze)]


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({}, {"a": {"b": 1}}, ["a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 3}}, ["a.b", "a.c"]),
        ({"a": [{"b": 1}]}, {"a": {"b": 1}}, ["a"]),
    ],
)
def test_the_shortest_paths_that_tell_a_difference(old: object, new: object, paths: list[str]) -> None:
    """Fields are compared by value and type, and named as they are read."""
    assert paths == changed_fields(old, new)


def test_the_lock_is_looked_up_where_the_definition_says(project: Project) -> None:
    """A registry opened anew finds the same lock: nothing is kept between processes."""
    assert project.lock.data == Registry(project.root).read_lock(REF).data


def test_a_subset_that_claims_to_lie_in_another_is_checked_against_its_frozen_table(tmp_path: Path) -> None:
    """`contained_in` holds for the same items, is refused for others, and is a note where the table is not here."""
    project = frozen_project(tmp_path)

    def claim(version: str, subset: str, outer: str) -> Callable[[], object]:
        text = DEFINITION.replace("definition_version: v1", f"definition_version: {version}")
        text = text.replace(f"  {subset}: {{pool", f'  {subset}: {{contained_in: ["{outer}"], pool')
        project.write(f"specs/tiny/{version}.yaml", text)
        return lambda: freeze(Reference("tiny", version), project.registry, project.store)

    held = claim("v2", "test", "tiny@v1:test")()
    assert isinstance(held, Frozen)
    assert ["all 20 items are in tiny@v1:test"] == [note.message for note in held.notes]
    [(code, message)] = refusal(claim("v3", "train", "tiny@v1:test"))
    assert ("expectation", True) == (code, "40 of 40 items are not in tiny@v1:test" in message)
    unchecked = claim("v4", "test", "tiny@v5:test")()
    assert isinstance(unchecked, Frozen)
    assert ["not checked"] == [note.message.partition(":")[0] for note in unchecked.notes]


def claiming(project: Project, version: str, old: str = "", new: str = "") -> Callable[[], Frozen]:
    """Write another version of the tiny definition, changed in one place; return what freezes it."""
    text = DEFINITION.replace("definition_version: v1", f"definition_version: {version}")
    assert old in text
    project.write(f"specs/tiny/{version}.yaml", text.replace(old, new))
    return lambda: freeze(Reference("tiny", version), project.registry, project.store)


def test_a_subset_that_claims_to_be_another_is_compared_with_it(tmp_path: Path) -> None:
    """`same_as` holds for the same items with the same labels; other ids are shown."""
    project = frozen_project(tmp_path)
    old = "  test: {pool"
    held = claiming(project, "v2", old, '  test: {same_as: ["tiny@v1:test"], pool')()
    assert [f"the same as tiny@v1:test: {project.lock.subset_ids['test']}"] == [note.message for note in held.notes]
    [(code, message)] = refusal(claiming(project, "v3", old, '  test: {same_as: ["tiny@v1:train"], pool'))
    assert ("expectation", True) == (code, "which is tiny@v1:train" in message)


def test_freezing_the_outer_subset_proves_what_others_claimed_of_it(tmp_path: Path) -> None:
    """A claim that could not be checked when it was frozen is checked when the other definition is."""
    project = frozen_project(tmp_path)
    claiming(project, "v2", "  test: {pool", '  test: {contained_in: ["tiny@v3:test"], pool')()
    outer = claiming(project, "v3")()
    assert [("tiny@v2:test contained_in", "all 20 items are in tiny@v3:test")] == [
        (note.where, note.message) for note in outer.notes
    ]


def test_freezing_an_outer_subset_that_lacks_what_others_claimed_is_refused(tmp_path: Path) -> None:
    """A definition that would break a frozen claim cannot be frozen, nor one without the subset."""
    project = frozen_project(tmp_path)
    claiming(project, "v2", "  train: {pool", '  train: {contained_in: ["tiny@v3:test", "tiny@v3:all"], pool')()
    found = refusal(claiming(project, "v3"))
    assert ["expectation", "reference-unknown"] == [code for code, _ in found]
    project.edit("specs/tiny/v2.yaml", '["tiny@v3:test", "tiny@v3:all"]', '["tiny@v3:train"]')
    assert "frozen" == claiming(project, "v3")().state  # a claim is mended in its file, also after freezing
    project.path("registry/tiny/v3/lock.json").unlink()
    assert not (project.root / "registry/tiny/v3/lock.json").exists()


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        ('{same_as: ["tiny@v2:test"], pool', "expectation"),  # its own sibling
        ('{contained_in: ["tiny@v1:tset"], pool', "reference-unknown"),
        ('{contained_in: ["tiny@v1"], pool', "field-value"),
    ],
)
def test_a_claim_that_can_be_checked_is_checked(tmp_path: Path, claim: str, code: str) -> None:
    """A sibling subset, and a frozen definition that lacks the subset, are no reason to leave a claim unchecked."""
    project = frozen_project(tmp_path)
    assert [code] == [one for one, _ in refusal(claiming(project, "v2", "  train: {pool", f"  train: {claim}"))]


def test_a_published_item_is_compared_cell_by_cell(tmp_path: Path) -> None:
    """`expect.cells` holds cells of the table and of the covariates; what differs is in the table with all claims."""
    project = frozen_project(tmp_path)
    table = project.registry.read_subset(Reference.parse("tiny@v1:test"))
    item, finding = table.item_ids[0], table.header[2]
    claimed = f"expect:\n  test: {{cells: {{{item}: {{{finding}: {table.column(finding)[0]}, view: XX}}}}}}\n"
    text = DEFINITION.replace("definition_version: v1", "definition_version: v2").partition("expect:")[0] + claimed
    project.write("specs/tiny/v2.yaml", text)
    [(code, message)] = refusal(lambda: freeze(Reference("tiny", "v2"), project.registry, project.store))
    assert ("expectation", True) == (code, "1 of 2 expected counts differ" in message)
    assert f"test.cells.{item}.view" in message
