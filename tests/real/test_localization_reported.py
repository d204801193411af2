"""The paper's localization tables (arXiv 1705.02315): what their printed digits say, and that ours are those digits."""

import json
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from cxrspec.registry import Registry
from cxrspec.reported import Reported, load_reported

pytestmark = pytest.mark.real

BENCHMARK = "nih-cxr14-localization"
FINDINGS = (
    "Atelectasis",
    "Cardiomegaly",
    "Effusion",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pneumonia",
    "Pneumothorax",
)
CRITERIA = {"4": "iobb", "7": "iou", "19": "iobb"}
"""Per table of the paper."""
LARGEST_COUNT = 200
"""The paper speaks of 200 boxes for each finding."""
UNIT = 10_000
"""Four decimals."""

Digits = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def table4(shared: Path) -> dict[str, Any]:
    """The Acc. values of Table 4 and the counts that fit them."""
    return json.loads((shared / "expected/chestxray8_table4.json").read_text())


@pytest.fixture(scope="module")
def counts(shared: Path) -> dict[str, Any]:
    """The counts behind all three tables."""
    return json.loads((shared / "expected/chestxray8_localization_reported.json").read_text())


@pytest.fixture(scope="module")
def entries() -> list[Reported]:
    """Our reported results of the benchmark, as the product loads them."""
    return load_reported(Registry(ROOT), BENCHMARK)


def printed_digits(entries: list[Reported], table: str) -> Digits:
    """Return our digits of one table by metric and finding."""
    (entry,) = (one for one in entries if one.publication.place.startswith(f"Table {table}, "))
    digits = {(one.metric, one.finding or ""): one.value for one in entry.values}
    assert len(entry.values) == len(digits)
    return digits


def counted_shares(counts: dict[str, Any], table: str) -> dict[tuple[str, str], Fraction]:
    """Return hits / boxes and false positives / 984 of one table by metric and finding."""
    shares = {}
    for row in counts["tables"][table]:
        suffix = f"{CRITERIA[table]}_t{row['T']}"
        for name, cell in row["cells"].items():
            shares[f"acc_{suffix}", name.lower()] = Fraction(cell["hits"], counts["boxes"][name])
            shares[f"afp_{suffix}", name.lower()] = Fraction(cell["false_positives"], counts["afp_denominator"])
    return shares


def units_of(column: list[float]) -> list[int]:
    """Return printed values as whole units of the fourth decimal."""
    return [round(value * UNIT) for value in column]


def fits_truncated(units: int, n: int) -> bool:
    """Tell whether some k/n, k in 0..n, truncates to these units."""
    return any(k * UNIT // n == units for k in range(n + 1))


def fits_rounded(units: int, n: int) -> bool:
    """Tell whether some k/n, k in 0..n, rounds to these units; a tie may go either way."""
    return any(2 * abs(k * UNIT - units * n) <= n for k in range(n + 1))


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_accuracy_is_a_truncated_share_of_the_published_boxes(table4: dict[str, Any], finding: str) -> None:
    """Each Table 4 Acc. is k/n truncated to four decimals, n being the published number of boxes."""
    n = table4["bbox_list_2017"]["per_finding"][finding]
    column = units_of(table4["acc"][finding])
    assert [True] * len(table4["T"]) == [fits_truncated(units, n) for units in column]


@pytest.mark.parametrize("finding", FINDINGS)
def test_the_counts_that_fit_a_column_under_truncation(table4: dict[str, Any], finding: str) -> None:
    """Of all n up to 200 exactly those of `fits_truncated` explain a whole column."""
    column = units_of(table4["acc"][finding])
    fitting = [n for n in range(1, LARGEST_COUNT + 1) if all(fits_truncated(units, n) for units in column)]
    assert table4["fits_truncated"][finding] == fitting


@pytest.mark.parametrize("finding", FINDINGS)
def test_no_count_fits_a_column_under_rounding(table4: dict[str, Any], finding: str) -> None:
    """No n up to 200 explains a whole column if the values were rounded."""
    column = units_of(table4["acc"][finding])
    fitting = [n for n in range(1, LARGEST_COUNT + 1) if all(fits_rounded(units, n) for units in column)]
    assert table4["fits_rounded"][finding] == fitting == []


def test_the_published_box_counts_are_among_those_that_fit(table4: dict[str, Any], counts: dict[str, Any]) -> None:
    """The published number of boxes fits for every finding, and both published files agree on it."""
    published = table4["bbox_list_2017"]["per_finding"]
    assert published == counts["boxes"]
    assert set(FINDINGS) == {name for name, n in published.items() if n in table4["fits_truncated"][name]}
    assert table4["bbox_list_2017"]["boxes"] == sum(published.values()) == counts["afp_denominator"]


def test_our_accuracies_are_the_digits_of_table_4(table4: dict[str, Any], entries: list[Reported]) -> None:
    """Every Acc. of our Table 4 entry has the table's four digits."""
    expected = {
        (f"acc_iobb_t{threshold}", finding.lower()): f"{value:.4f}"
        for finding, column in table4["acc"].items()
        for threshold, value in zip(table4["T"], column, strict=True)
    }
    ours = {key: value for key, value in printed_digits(entries, "4").items() if key[0].startswith("acc_")}
    assert expected == ours


@pytest.mark.parametrize("table", CRITERIA)
def test_the_counts_give_our_digits(counts: dict[str, Any], entries: list[Reported], table: str) -> None:
    """Every count gives the digits we hold, cut or rounded at as many decimals as are printed; none is left over."""
    shares, digits = counted_shares(counts, table), printed_digits(entries, table)
    assert shares.keys() == digits.keys()
    for key, share in shares.items():
        decimals = len(digits[key].partition(".")[2])
        exact = share * 10**decimals
        assert Fraction(digits[key]) * 10**decimals in (floor(exact), floor(exact + Fraction(1, 2))), key


@pytest.mark.parametrize("table", ["4", "7"])
def test_the_eight_finding_accuracies_are_truncated(
    counts: dict[str, Any], entries: list[Reported], table: str
) -> None:
    """Tables 4 and 7 truncate every Acc.; our digits are the counts' shares cut after four decimals."""
    shares, digits = counted_shares(counts, table), printed_digits(entries, table)
    expected = {key: floor(share * UNIT) for key, share in shares.items() if key[0].startswith("acc_")}
    assert expected == {key: Fraction(digits[key]) * UNIT for key in expected}


def test_neither_rule_gives_every_digit(counts: dict[str, Any], entries: list[Reported]) -> None:
    """Table 19 rounds some Acc. (16/180) and cuts others (26/85), so its digits cannot be derived by one rule."""
    digits = printed_digits(entries, "19")
    cells = {row["T"]: row["cells"] for row in counts["tables"]["19"]}
    assert (16, 26) == (cells[0.75]["Atelectasis"]["hits"], cells[0.5]["Mass"]["hits"])
    assert ("0.0889", "0.3058") == (digits["acc_iobb_t0.75", "atelectasis"], digits["acc_iobb_t0.5", "mass"])


def test_every_entry_names_its_edition_and_claims_no_comparability(entries: list[Reported]) -> None:
    """All three entries carry the arXiv edition, the definition they are shown beside and an open comparability."""
    assert sorted(CRITERIA) == sorted(one.publication.place.split(",")[0].removeprefix("Table ") for one in entries)
    assert {(f"{BENCHMARK}@bbox-2017-v1", "unknown")} == {(one.reference, one.comparable) for one in entries}
    assert all("arXiv 1705.02315" in (one.publication.edition or "") for one in entries)
