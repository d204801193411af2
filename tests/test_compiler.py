"""Compiling the tiny project: joins by key, splits, disjointness, lists, claims, and every refusal of data."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cxrspec.compiler import Compiled
from cxrspec.digest import seed_hash_order
from cxrspec.errors import CxrspecError, DefinitionError, Issue
from cxrspec.freeze import claim_table, freeze
from cxrspec.selection import stratified_choice
from cxrspec.sources import Store
from tiny import TEST_PATIENTS, CompileTiny, Define, csv_text, image_names

Rewrite = Callable[[Callable[[list[list[str]]], list[list[str]]]], None]


def digests(compiled: Compiled) -> dict[str, str]:
    """Return the digest of every table."""
    found = {"roster": compiled.roster.digest}
    for name, subset in compiled.subsets.items():
        found[name] = subset.table.digest
        found[f"{name}.covariates"] = subset.covariates.digest if subset.covariates else ""
    return found


def refusal(run: Callable[[], object]) -> list[Issue]:
    """Return the issues of what is refused."""
    with pytest.raises(CxrspecError) as caught:
        run()
    return caught.value.issues


def rewrite(path: Path, change: Callable[[list[list[str]]], list[list[str]]]) -> None:
    """Change the rows of a CSV file, header included."""
    rows = list(csv.reader(io.StringIO(path.read_text())))
    header, *rest = change(rows)
    path.write_text(csv_text(header, rest))


def shuffled(rows: list[list[str]]) -> list[list[str]]:
    """Shuffle the rows below the header, and all columns alike."""
    order = random.Random(7)
    header, *rest = rows
    columns = order.sample(range(len(header)), len(header))
    return [[row[i] for i in columns] for row in (header, *order.sample(rest, len(rest)))]


def with_cell(item: str, column: str, value: str) -> Callable[[list[list[str]]], list[list[str]]]:
    """Return a change of one cell, given by the item's file name."""

    def change(rows: list[list[str]]) -> list[list[str]]:
        at = rows[0].index(column)
        return [[value if row[0] == item and i == at else cell for i, cell in enumerate(row)] for row in rows]

    return change


# what changes nothing


@pytest.mark.parametrize("name", ["labels.csv", "readers.csv", "numbers.csv"])
def test_h1_rows_and_columns_of_a_source_may_stand_in_any_order(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path, name: str
) -> None:
    """H1: shuffling a source changes no digest of any table."""
    tiny_document["items"]["covariates"]["read"] = {"source": "tiny/readers", "column": "Set Id"}
    tiny_document["items"]["covariates"]["number"] = {"source": "tiny/numbers", "column": "Edema"}
    before = digests(compile_tiny(tiny_document))
    rewrite(project / "data" / name, shuffled)
    assert before == digests(compile_tiny(tiny_document))


def test_h1_lines_of_a_list_may_stand_in_any_order(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """H1: a list is a set of ids; repeating one changes nothing either."""
    before = digests(compile_tiny(tiny_document))
    names = image_names(TEST_PATIENTS)
    (project / "data" / "test_list.txt").write_text("\n".join([*reversed(names), names[0]]))
    assert before == digests(compile_tiny(tiny_document))


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("\n", "\r"), ("No Finding,12,", "no_finding,12,")])
def test_t7_line_ends_are_no_part_of_a_digest(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path, old: str, new: str
) -> None:
    """T7, N2: CRLF, old Mac ends, and another spelling of a label change nothing."""
    before = digests(compile_tiny(tiny_document))
    path = project / "data" / "labels.csv"
    path.write_bytes(path.read_text().replace(old, new).rstrip("\n").encode())
    assert before == digests(compile_tiny(tiny_document))


def test_t8_cells_are_joined_and_hashed_composed(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """T8: ids, groups, labels and conditions are equal whichever way an accent is written."""
    tiny_document["findings"]["edema"] = "\u00c9dema"
    tiny_document["splits"]["test"]["where"] = {"column": "View Position", "one_of": ["\u00c4P", "PA"]}
    path, found = project / "data" / "labels.csv", []
    plain = path.read_text().replace("Edema", "\u00c9dema").replace(",AP,", ",\u00c4P,").replace(",1,31", ",\u00e9,31")
    for text in (plain, plain.replace("\u00c9", "E\u0301").replace("\u00c4", "A\u0308").replace("\u00e9", "e\u0301")):
        path.write_text(text, encoding="utf-8")
        found.append(digests(compile_tiny(tiny_document)))
    assert found[0] == found[1]


def test_n9_other_columns_and_trailing_commas_are_left_aside(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """N9: columns that nothing names, split headers and a comma at the end of each line change nothing."""
    before = digests(compile_tiny(tiny_document))
    rewrite(
        project / "data" / "labels.csv",
        lambda rows: [
            [*row, *extra]
            for row, extra in zip(rows, [["OriginalImage[Width", "Height]", ""]] + [["1", "2", ""]] * 36, strict=True)
        ],
    )
    assert before == digests(compile_tiny(tiny_document))


def test_n7_covariates_never_change_a_subset_id(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """N7: mending an age changes the digest of the covariates alone."""
    before = digests(compile_tiny(tiny_document))
    rewrite(project / "data" / "labels.csv", with_cell("00000001_000.png", "Patient Age", "41"))
    after = digests(compile_tiny(tiny_document))
    assert {"test.covariates"} == {name for name in before if before[name] != after[name]}


def test_n8_ages_are_kept_as_they_are_written(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """N8: `040Y` and `413` are text here; who uses them as numbers decides what they mean."""
    rewrite(project / "data" / "labels.csv", with_cell("00000001_000.png", "Patient Age", " 040Y"))
    covariates = compile_tiny(tiny_document).subsets["test"].covariates
    assert covariates is not None
    assert "040Y" == covariates.column("age")[0]


def test_n6_another_label_edition_is_told_by_its_counts(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """N6: a file of one label more is not the one that the definition counts."""
    tiny_document["expect"]["test"]["positives"] = {"edema": 4, "mass": 4}
    rewrite(project / "data" / "labels.csv", with_cell("00000001_000.png", "Finding Labels", "Mass"))
    unmet = [claim.path for claim in compile_tiny(tiny_document).claims if claim.is_fatal]
    assert ["test.positives.mass"] == unmet


# tables


def test_a_subset_table_holds_ids_groups_and_findings_in_order(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """Canonical ids, sorted; findings in code-point order of our names, whatever their order in the file."""
    tiny_document["findings"] = dict(reversed(tiny_document["findings"].items()))
    table = compile_tiny(tiny_document).subsets["test"].table
    assert ("item_id", "group_id", "edema", "mass", "pleural_effusion") == table.header
    assert ["tiny-00000001_000", "1", "0", "0", "0"] == [column[0] for column in table.columns]
    assert [f"tiny-{name.removesuffix('.png')}" for name in image_names(TEST_PATIENTS)] == table.item_ids


def test_the_roster_names_every_item_with_its_split(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """All items of the source, also those that no subset takes."""
    compiled = compile_tiny(tiny_document)
    assert 12 * ["test"] + 24 * ["train"] == compiled.roster.column("split")
    assert {"test": 12, "train": 24} == compiled.roster_counts["splits"]


def test_roster_tallies_are_counted_where_they_are_claimed(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """The labels of all items are read only for a definition that claims their counts."""
    assert "positives" not in compile_tiny(tiny_document).roster_counts
    tiny_document["expect"]["roster"]["positives"] = {"edema": 12}
    assert 12 == compile_tiny(tiny_document).roster_counts["positives"]["edema"]


def test_a_covariate_of_few_values_is_counted(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """View and sex are counted by value, a column of many values is not."""
    tiny_document["items"]["covariates"]["name"] = "Image Index"
    counts = compile_tiny(tiny_document).roster_counts["covariates"]
    assert {"AP": 24, "PA": 12} == counts["view"]
    assert "name" not in counts


# joins


def test_columns_are_joined_by_key(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """Another source's rows find their items by id, whatever their number and order; an item without a row is empty."""
    tiny_document["items"]["covariates"] = {"read": {"source": "tiny/readers", "column": "Edema"}}
    rewrite(
        project / "data" / "readers.csv", lambda rows: [rows[0], *reversed(rows[2:]), ["99_9.png", "x", "NO", "NO"]]
    )
    covariates = compile_tiny(tiny_document).subsets["test"].covariates
    assert covariates is not None
    assert ["", "NO", "YES"] == covariates.column("read")[:3]


def test_ids_of_joined_files_are_read_by_the_same_rule(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """Folders and extensions of another file's ids matter as little as those of the items."""
    tiny_document["labels"] = {"encoding": "yes_no", "source": "tiny/readers"}
    del tiny_document["findings"]["mass"]
    before = digests(compile_tiny(tiny_document))
    path = project / "data" / "readers.csv"
    path.write_text(path.read_text().replace("\n0", "\nimages\\0").replace(".png", ".PNG"))
    assert before == digests(compile_tiny(tiny_document))


def test_a_join_that_meets_no_item_is_refused(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """A wrong key column would leave every cell empty."""
    tiny_document["items"]["joins"]["tiny/readers"] = "Set Id"
    tiny_document["splits"]["test"] = {
        "where": {"column": {"source": "tiny/readers", "column": "Edema"}, "one_of": "NO"}
    }
    found = refusal(lambda: compile_tiny(tiny_document))
    assert ["item-duplicate"] == [issue.code for issue in found]
    tiny_document["items"]["joins"]["tiny/readers"] = "Edema"
    tiny_document["splits"]["test"]["where"]["column"]["column"] = "Edema"
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert ("item-missing", "tiny/readers") == (issue.code, issue.where)
    assert "no row names an item; its column 'Edema' holds 'tiny-NO', 'tiny-YES'" in issue.message


def test_an_item_without_a_reading_is_not_negative(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """A subset that reaches beyond the readers' file is refused, with the items that it lacks."""
    tiny_document["labels"] = {"encoding": "yes_no", "source": "tiny/readers"}
    del tiny_document["findings"]["mass"]
    rewrite(project / "data" / "readers.csv", lambda rows: rows[:1] + rows[3:])
    issues = refusal(lambda: compile_tiny(tiny_document))
    assert {"tiny/readers (no row) column 'Edema'", "tiny/readers (no row) column 'Effusion'"} == {
        i.where for i in issues
    }
    assert "'' in 2 cells, of tiny-00000001_000, tiny-00000001_001: allowed is YES or NO" == issues[0].message


def test_rows_of_one_item_that_agree_are_one(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """A repeated row, and one that differs only in a column that is not read, changes nothing."""
    before = digests(compile_tiny(tiny_document))
    rewrite(project / "data" / "labels.csv", lambda rows: [*rows, rows[1], [*rows[2][:-1], "99"]])
    assert before == digests(compile_tiny(tiny_document))


def test_rows_of_one_item_that_differ_are_refused(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """Which of two labels an item has is never guessed; the lines of all such items are named."""
    rewrite(
        project / "data" / "labels.csv",
        lambda rows: [*rows, [rows[1][0], "Mass", *rows[1][2:]], [rows[4][0], "Mass", *rows[4][2:]]],
    )
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert ("item-duplicate", "tiny/labels:2") == (issue.code, issue.where)
    assert "rows of one item differ in a column that is read, for 2 items" in issue.message
    assert "'tiny-00000001_000' (lines 2, 38), 'tiny-00000002_000' (lines 5, 39)" in issue.message


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("Image Index", "no id in the column 'Image Index' of 1 of 36 rows: lines 3"),
        ("Patient ID", "no group id for 1 of 36 items: tiny-00000001_001"),
    ],
)
def test_a_row_without_id_or_group_is_refused(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path, column: str, words: str
) -> None:
    """An item that cannot be named, or whose patient is unknown, cannot be kept apart from anything."""
    rewrite(project / "data" / "labels.csv", with_cell("00000001_001.png", column, " "))
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert words in issue.message


def test_ids_that_the_rule_would_read_anew_are_refused(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """A rule that shortens its own results (`_000`, `_00`, `_0`) could not read the ids of a submission."""
    tiny_document["items"]["item_id"]["strip_suffix"] = "0"
    assert {"subset test", "subset train"} == {issue.where for issue in refusal(lambda: compile_tiny(tiny_document))}


def test_groups_may_be_read_from_the_item_id(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """A pattern's one group is the patient."""
    tiny_document["items"]["group_id"] = {"pattern": "-0*([0-9]+)_"}
    assert ["1", "1", "1", "2"] == compile_tiny(tiny_document).subsets["test"].table.column("group_id")[:4]


def test_an_id_that_the_pattern_does_not_fit_has_no_group(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """A pattern that misses items is refused with five of them and their number."""
    tiny_document["items"]["group_id"] = {"pattern": "-0*([1-9])_"}
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert "no group id for 9 of 36 items: tiny-00000010_000" in issue.message
    assert issue.message.endswith("and 4 more")


# splits, pools and lists


def test_an_item_in_two_splits_is_refused(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """A publisher's division divides."""
    (project / "data" / "train_list.txt").write_text("\n".join(image_names(range(4, 13))))
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert ("split-overlap", "splits.train") == (issue.code, issue.where)
    assert (
        "3 of 27 items are in split 'test' too: tiny-00000004_000, tiny-00000004_001, tiny-00000004_002"
        == issue.message
    )


def test_n10_disjointness_removes_whole_patients_and_counts(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """N10: images of a patient of the test subset leave the pool, also those that the test itself does not take."""
    tiny_document["subsets"]["test"]["select"] = {"where": {"column": "View Position", "one_of": "PA"}}
    tiny_document["subsets"]["train"] |= {"pool": {}, "select": "all"}
    tiny_document["expect"] = {}
    train = compile_tiny(tiny_document).subsets["train"]
    assert (24, 8, 12) == (train.counts["items"], train.counts["groups"], train.counts["removed_as_disjoint"])


def test_disjointness_by_item_keeps_the_patients(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """Only the items themselves are removed; a definition with a probe would have to keep the patients apart."""
    del tiny_document["protocols"]["probe"], tiny_document["metrics"][1]
    tiny_document["subsets"]["test"]["select"] = {"where": {"column": "View Position", "one_of": "PA"}}
    tiny_document["subsets"]["train"] |= {"pool": {}, "select": "all", "disjoint_by": "item_id"}
    tiny_document["expect"] = {}
    train = compile_tiny(tiny_document).subsets["train"]
    assert (32, 12, 4) == (train.counts["items"], train.counts["groups"], train.counts["removed_as_disjoint"])


def test_a_subset_is_chosen_after_the_one_it_is_disjoint_from(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """Names decide nothing: a chain is followed to its end."""
    tiny_document["subsets"]["a_first"] = {
        "pool": {},
        "disjoint_from": "train",
        "disjoint_by": "item_id",
        "select": "all",
    }
    assert 24 == compile_tiny(tiny_document).subsets["a_first"].counts["items"]


@pytest.mark.parametrize("in_list", ["tiny/test_list", {"source": "tiny/readers", "column": "Image"}])
def test_a_list_is_a_file_or_a_column(compile_tiny: CompileTiny, tiny_document: Any, in_list: Any) -> None:
    """One id a line, or a column of a table."""
    tiny_document["subsets"]["test"] = {"pool": {"split": "test"}, "select": {"in_list": in_list}}
    assert 12 == compile_tiny(tiny_document).subsets["test"].counts["items"]


def test_n16_a_list_that_names_unknown_items_is_refused(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """N16: a subset never shrinks silently to what the labels happen to cover; all lists are looked at."""
    rewrite(project / "data" / "labels.csv", lambda rows: [row for row in rows if row[0] not in image_names([1, 5])])
    found = refusal(lambda: compile_tiny(tiny_document))
    assert [("item-missing", "tiny/test_list"), ("item-missing", "tiny/train_list")] == [
        (issue.code, issue.where) for issue in found
    ]
    assert "3 of 12 listed ids are no items: 'tiny-00000001_000', " in found[0].message


def test_a_list_of_a_larger_release_may_be_allowed(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """A definition that says so takes what is there, and the roster counts what was left aside."""
    rewrite(project / "data" / "labels.csv", lambda rows: [row for row in rows if row[0] not in image_names([1])])
    tiny_document["splits"]["test"]["in_list"] = {"source": "tiny/test_list", "unknown_ids": "ignored"}
    compiled = compile_tiny(tiny_document)
    assert (9, {"tiny/test_list": 3}) == (
        compiled.subsets["test"].counts["items"],
        compiled.roster_counts["ignored_list_ids"],
    )


def test_conditions_meet(compile_tiny: CompileTiny, tiny_document: Any, project: Path) -> None:
    """All conditions of a pool hold together; the texts of one condition are alternatives; blanks do not matter."""
    rewrite(project / "data" / "labels.csv", with_cell("00000002_001.png", "View Position", " PA "))
    where = [
        {"column": "View Position", "one_of": ["PA", "LL"]},
        {"column": "Patient Gender", "one_of": "F "},
    ]
    tiny_document["subsets"]["test"]["pool"]["where"] = where
    assert ["tiny-00000002_001", "tiny-00000004_001"] == compile_tiny(tiny_document).subsets["test"].table.item_ids


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pool": {"where": {"column": "View Position", "one_of": "LL"}}}, "no item meets the conditions of its pool"),
        ({"select": {"where": {"column": "View Position", "one_of": "LL"}}}, "the selection leaves no item"),
        (
            {"pool": {"split": "test"}, "disjoint_from": "other", "disjoint_by": "group_id"},
            "each of the 12 items of its pool shares its group_id with one of 'other'",
        ),
    ],
)
def test_an_empty_subset_is_refused(
    compile_tiny: CompileTiny, tiny_document: Any, change: dict[str, Any], words: str
) -> None:
    """Which step left nothing is said."""
    tiny_document["subsets"]["other"] = {"pool": {"split": "test"}, "select": "all"}
    tiny_document["subsets"]["test"] |= change
    (issue,) = [one for one in refusal(lambda: compile_tiny(tiny_document)) if one.where == "subset test"]
    assert ("subset-empty", words) == (issue.code, issue.message)


def test_an_impossible_selection_is_refused(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """The finding that is too rare is called by its name."""
    tiny_document["subsets"]["train"]["select"] = {"stratified": {"size": 12, "minimum_positives": 9}}
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert "selection-impossible" == issue.code
    assert "9 positives are asked for; in the pool there are fewer: edema 8, pleural_effusion 6" in issue.message


def test_a_stratified_subset_is_that_of_ranks_and_labels(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """The items can be chosen again from the pool's table, the seed and the documented algorithm."""
    tiny_document["subsets"]["pool"] = {"pool": {"split": "train"}, "select": "all"}
    compiled = compile_tiny(tiny_document)
    pool = compiled.subsets["pool"].table
    order = seed_hash_order(7, pool.item_ids)
    labels = compiled.definition.task.strata(pool.columns[2:])[order]
    chosen = [pool.item_ids[i] for i, taken in zip(order, stratified_choice(labels, 12, 3), strict=True) if taken]
    assert sorted(chosen) == compiled.subsets["train"].table.item_ids


def test_c4_open_labels_are_refused_where_they_are_scored(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """C4: uncertain and blank labels stop a scored subset, per finding, and stay in one that nothing scores."""
    tiny_document["labels"] = {"encoding": "four_value", "source": "tiny/numbers"}
    del tiny_document["findings"]["pleural_effusion"]
    tiny_document["subsets"]["train"]["select"] = "all"
    tiny_document["expect"] = {}
    issues = refusal(lambda: compile_tiny(tiny_document))
    assert ["subset train, finding edema", "subset train, finding mass"] == [issue.where for issue in issues]
    del tiny_document["protocols"]["probe"], tiny_document["metrics"][1]
    assert {"edema": 8, "mass": 8} == compile_tiny(tiny_document).subsets["train"].counts["uncertain"]


def test_n12_no_finding_beside_a_finding_stops_the_compilation(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """N12: with file, line, column and item."""
    rewrite(project / "data" / "labels.csv", with_cell("00000002_000.png", "Finding Labels", "No Finding|Mass"))
    (issue,) = refusal(lambda: compile_tiny(tiny_document))
    assert "tiny/labels:5 column 'Finding Labels'" == issue.where
    assert "'No Finding|Mass' in 1 cell, of tiny-00000002_000: 'No Finding' stands beside another name" == issue.message


def test_the_faults_of_all_subsets_are_reported_together(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """A bad cell of the test subset hides no impossible selection of another."""
    rewrite(project / "data" / "labels.csv", with_cell("00000002_000.png", "Finding Labels", "Massive"))
    tiny_document["subsets"]["train"]["select"] = {"stratified": {"size": 99}}
    issues = refusal(lambda: compile_tiny(tiny_document))
    assert {"value-unknown", "selection-impossible"} == {issue.code for issue in issues}


def test_a_missing_column_names_what_there_is(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """All columns of a file that are not there, in one report."""
    tiny_document["items"]["covariates"] |= {"age": "Age", "view": "View"}
    assert 2 == len(refusal(lambda: compile_tiny(tiny_document)))


# claims


def test_claims_are_compared_all_at_once(define: Define, store: Store, tiny_document: Any) -> None:
    """The refusal is a table of every claim beside what was found, those that hold included."""
    tiny_document["expect"]["test"] = {"items": 13, "groups": 4, "positives": {"edema": 3}, "none": {"any_of": [1, 2]}}
    registry, reference = define(tiny_document)
    with pytest.raises(DefinitionError) as caught:
        freeze(reference, registry, store)
    message = str(caught.value)
    assert "3 of 7 expected counts differ" in message
    assert "  test.items                 13     12  differs" in message
    assert "  test.groups                 4      4\n" in message
    assert [] == registry.frozen()


def test_a_claim_within_a_difference_is_never_fatal(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """It depends on what the publisher did not say, so it is shown and stops nothing."""
    tiny_document["expect"]["train"] = {
        "positives": {"edema": {"value": 99, "within": 1}},
        "items": {"any_of": [1, 12]},
    }
    claims = {claim.path: claim for claim in compile_tiny(tiny_document).claims}
    assert (False, False) == (claims["train.positives.edema"].holds, claims["train.positives.edema"].is_fatal)
    assert (True, "claimed 1 or 12, found 12") == (
        claims["train.items"].holds,
        claims["train.items"].expected.verdict(12),
    )


@pytest.mark.parametrize(
    "claims",
    [{"covariates": {"name": {"x": 1}}}, {"none": {"edema": 1}}, {"positives": {"edema": {"any_of": [1]}}}],
)
def test_a_claim_that_is_not_met_or_not_counted_is_fatal(
    compile_tiny: CompileTiny, tiny_document: Any, claims: dict[str, Any]
) -> None:
    """A count that nothing counts holds for nobody."""
    tiny_document["items"]["covariates"]["name"] = "Image Index"
    tiny_document["expect"]["roster"] = claims
    assert [True] == [claim.is_fatal for claim in compile_tiny(tiny_document).claims if "roster" in claim.path]


def test_a_covariate_that_is_called_like_a_count_hides_none(compile_tiny: CompileTiny, tiny_document: Any) -> None:
    """Covariates and tallies of one name are claimed apart."""
    tiny_document["items"]["covariates"] |= {"positives": "View Position", "items": "Patient Gender"}
    tiny_document["expect"] = {
        "test": {"items": 12, "positives": {"edema": 4}, "covariates": {"positives": {"AP": 8}, "items": {"F": 6}}}
    }
    claims = compile_tiny(tiny_document).claims
    assert {
        "test.items": 12,
        "test.positives.edema": 4,
        "test.covariates.positives.AP": 8,
        "test.covariates.items.F": 6,
    } == {claim.path: claim.found for claim in claims}
    assert "differs" not in claim_table(claims)


def test_a_subset_that_alone_would_read_ids_differently_is_refused(
    compile_tiny: CompileTiny, tiny_document: Any, project: Path
) -> None:
    """T1: A step that is off for the roster must not come on for a subset, which is all that a submission sees."""
    with (project / "data" / "labels.csv").open("a") as labels:
        labels.write("a/x.png,Mass,98,30,F,AP,0\nb/x.png,Mass,99,30,F,AP,0\n")
    del tiny_document["expect"]
    issues = refusal(lambda: compile_tiny(tiny_document))
    assert ("item-duplicate", "subset test") == (issues[0].code, issues[0].where)


def test_a_probe_fitted_on_patients_that_it_is_scored_on_is_refused(
    compile_tiny: CompileTiny, tiny_document: Any
) -> None:
    """N10: Train and test of a probe share no patient, whether or not the definition asks for disjointness."""
    del tiny_document["expect"]
    tiny_document["subsets"]["train"] = {"pool": {}, "select": "all"}
    [issue] = refusal(lambda: compile_tiny(tiny_document))
    assert ("subset-leak", "subset train") == (issue.code, issue.where)
    assert "4 groups are in test too, on which the probe is scored" == issue.message
