"""Label encodings: how the cells of a source become 1, 0, -1 or blank, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from cxrspec.errors import DefinitionError, Issue
from cxrspec.fields import Column
from cxrspec.spelling import plain_name
from cxrspec.tasks.findings import FindingsTask
from cxrspec.tasks.findings.labels import Labels
from tiny import TINY

LABELS: TypeAdapter[Any] = TypeAdapter(Labels)
NIH = {"encoding": "separated_list", "column": "Finding Labels", "separator": "|", "negative": "No Finding"}
FINDINGS = {"infiltration": ("Infiltration", "Infiltrate"), "pleural_thickening": ("Pleural_Thickening", "PT", "P.T.")}
METRIC = {"kind": "roc_auc", "protocol": "zero_shot", "average": "macro", "interval": []}


@dataclass
class Cells:
    """The columns of a source, without a source."""

    columns: Mapping[str, Sequence[str]]

    @property
    def item_ids(self) -> list[str]:
        """Number the items."""
        return [f"i{row}" for row in range(len(next(iter(self.columns.values()))))]

    def cells(self, column: Column) -> Sequence[str]:
        """Return a column by its name."""
        return self.columns[column.column]

    def place(self, column: Column, row: int) -> str:
        """Name a line."""
        return f"labels:{row + 2} column '{column.column}'"


def listed(*cells: str, findings: Mapping[str, Sequence[str]] = FINDINGS, **fields: Any) -> list[list[str]]:
    """Decode a column of separated names."""
    return LABELS.validate_python({**NIH, **fields}).decode(Cells({"Finding Labels": cells}), findings)


def numbers(encoding: str, *cells: str) -> list[str]:
    """Decode a column of one finding."""
    (column,) = LABELS.validate_python({"encoding": encoding}).decode(Cells({"Edema": cells}), {"edema": ("Edema",)})
    return column


def refusal(run: Any) -> list[Issue]:
    """Return the issues of what is refused."""
    with pytest.raises(DefinitionError) as caught:
        run()
    return caught.value.issues


def task(subsets: Sequence[str] = ("test",)) -> FindingsTask:
    """Return a task that scores the named subsets."""
    interval = {"method": "bootstrap", "unit": "item", "resamples": 100, "level": 0.95}
    metrics = [{**METRIC, "name": f"m_{name}", "subset": name, "interval": interval} for name in subsets]
    fields = {"findings": {"edema": "Edema", "mass": "Mass"}, "labels": {"encoding": "four_value"}}
    return FindingsTask.model_validate({**fields, "protocols": {"zero_shot": {}}, "metrics": metrics})


def test_a_separated_list_holds_all_its_names() -> None:
    """N13: every name of a cell counts, not the first alone; what is not named is negative."""
    found = listed("Infiltration|Pleural_Thickening", "Pleural_Thickening", "No Finding")
    assert [["1", "0", "0"], ["1", "1", "0"]] == found


def test_n1_an_alias_is_the_finding() -> None:
    """N1: `Infiltrate` of the box list is `Infiltration` of the labels."""
    assert ["1", "1", "0"] == listed("Infiltrate", "Infiltration", "No Finding")[0]


@pytest.mark.parametrize(
    "name",
    ["Pleural_Thickening", "pleural thickening", "Pleural-Thickening", "PLEURALTHICKENING", "PT", "P.T.", " pt "],
)
def test_n2_case_blanks_and_hyphens_never_matter(name: str) -> None:
    """N2: one finding in all its spellings."""
    assert ["1"] == listed(name)[1]


def test_n2_the_word_for_none_is_read_in_any_spelling() -> None:
    """N2: `no_finding` is no unknown name."""
    assert [["0"], ["0"]] == listed("no_finding")


@pytest.mark.parametrize("cell", ["No Finding|Infiltration", "Infiltration|No Finding", "no finding|PT"])
def test_n12_no_finding_beside_a_finding_is_refused(cell: str) -> None:
    """N12: it is derived, so it contradicts any finding beside it."""
    (issue,) = refusal(lambda: listed("PT", cell))
    assert ("value-unknown", "labels:3 column 'Finding Labels'") == (issue.code, issue.where)
    assert f"'{cell}' in 1 cell, of i1: 'No Finding' stands beside another name" == issue.message


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", "an empty cell says neither a finding nor that there is none"),
        ("  ", "an empty cell says neither a finding nor that there is none"),
        ("PT|", "'' is neither a finding's label or alias nor in the vocabulary"),
        ("Masss|PT|Nodul", "'Masss', 'Nodul' is neither a finding's label or alias nor in the vocabulary"),
    ],
)
def test_a_cell_that_says_nothing_known_is_refused(cell: str, words: str) -> None:
    """No label is lost to its spelling, and no silence is taken for a negative."""
    (issue,) = refusal(lambda: listed(cell, vocabulary=["Mass", "Nodule"]))
    assert words in issue.message


def test_a_name_of_the_vocabulary_is_no_finding_of_ours() -> None:
    """Other labels of the data set may stand in the list."""
    assert [["0", "1"], ["0", "0"]] == listed("Mass", "Mass|Infiltration", vocabulary=["Mass"])


def test_without_a_vocabulary_only_the_findings_may_stand() -> None:
    """A name that nothing declares is refused whether or not there is a vocabulary."""
    assert 1 == len(refusal(lambda: listed("Mass")))


def test_faulty_cells_are_counted_by_what_they_hold() -> None:
    """All kinds in one report, each with its number of cells and the first items; no flood."""
    issues = refusal(lambda: listed("a", "b", "a", *(f"x{i}" for i in range(20))))
    assert 11 == len(issues)
    assert "'a' in 2 cells, of i0, i2: " in issues[0].message
    assert "12 more kinds of cells in the column 'Finding Labels' are not allowed" == issues[-1].message


def test_no_item_gives_empty_columns() -> None:
    """There is one column per finding, however many items there are."""
    assert [[], []] == listed()


def test_yes_and_no_in_any_case() -> None:
    """Readers write YES and NO."""
    assert ["1", "0", "1", "0"] == numbers("yes_no", "YES", "NO", " yes", "No")


@pytest.mark.parametrize("cell", ["", "Y", "1", "UNSURE"])
def test_neither_yes_nor_no_is_refused(cell: str) -> None:
    """An item without a reading is not one that was read as absent."""
    (issue,) = refusal(lambda: numbers("yes_no", "YES", cell))
    assert f"'{cell}' in 1 cell, of i1: allowed is YES or NO" == issue.message


def test_c4_the_four_values_stay_apart() -> None:
    """C4: -1 is uncertain, blank is not mentioned, neither is 0."""
    assert ["1", "", "-1", "0"] == numbers("four_value", "1.0", "", "-1.0", "0.0")
    assert ["1", "", "-1", "0"] == numbers("four_value", "1", " ", "-1", "0")


@pytest.mark.parametrize("cell", ["2", "0.5", "nan", "yes", "-0.5", "inf"])
def test_c4_any_other_number_is_refused(cell: str) -> None:
    """C4: no number is rounded or taken by its sign."""
    (issue,) = refusal(lambda: numbers("four_value", "1", cell))
    assert f"'{cell}' in 1 cell, of i1: allowed is 1, 0, -1 or blank" == issue.message


def test_c4_open_labels_of_a_scored_subset_are_refused() -> None:
    """C4: a reference standard with -1 or blank is refused, counted per finding."""
    issues = task().check_subset("test", [["1", "-1", ""], ["1", "0", "0"]])
    assert ["subset test, finding edema"] == [issue.where for issue in issues]
    assert "1 labels are uncertain (-1) and 1 blank" in issues[0].message


def test_c4_open_labels_of_other_subsets_are_kept() -> None:
    """C4: a training subset that nothing scores or fits keeps what is uncertain, and it is counted."""
    columns = [["1", "-1", ""], ["1", "0", "0"]]
    assert [] == task().check_subset("train", columns)
    assert {"edema": 1, "mass": 0} == task().tally(columns)["uncertain"] == task().tally(columns)["blank"]


def test_c4_a_subset_that_a_probe_is_fitted_on_is_decided() -> None:
    """C4: fitting on an uncertain label would need a policy, which the definition does not have."""
    fields = task().model_dump()
    fields["protocols"]["probe"] = TINY["protocols"]["probe"]
    assert 1 == len(FindingsTask.model_validate(fields).check_subset("train", [["-1"], ["0"]]))


def test_tallies_count_every_label_and_the_items_with_none() -> None:
    """The counts that `expect` may claim, under their names."""
    found = task().tally([["1", "0", "-1", "0"], ["0", "0", "", "1"]])
    assert set(FindingsTask.TALLIES) == set(found)
    assert ({"edema": 1, "mass": 1}, {"edema": 2, "mass": 2}, 2) == (
        found["positives"],
        found["negatives"],
        found["none"],
    )


def test_strata_are_the_positives() -> None:
    """A stratified selection balances what is positive; its columns are called as the findings are."""
    assert [[True, False], [False, False]] == task().strata([["1", "-1"], ["0", ""]]).tolist()
    assert ("edema", "mass") == task().strata_names


def test_t8_names_are_compared_composed() -> None:
    """T8: an accent is one, however it is written."""
    assert plain_name("e\u0301dema") == plain_name("\u00c9dema")
