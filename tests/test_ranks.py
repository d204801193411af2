"""Rank groups: systems that a paired test does not separate share one; what cannot be tested is said."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from cxrspec.metrics import resample_indices
from cxrspec.ranks import rank_systems, shared_groups
from cxrspec.report.board import rank_text, ranked, ranking_texts
from cxrspec.report.leaderboard import leaderboard
from cxrspec.report.markdown import markdown
from project import REF, SPEC, TEST_ITEMS, Project, authored_project, frozen_project, scores_csv

METRIC = "mean_auroc_zero_shot"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def labels(project: Project) -> NDArray[np.int_]:
    """Return the labels of the test subset [n_items, 2]."""
    table = project.registry.read_subset(REF.parse("tiny@v1:test"))
    return np.array([[int(cell) for cell in table.column(name)] for name in ("edema", "effusion")]).T


def scores_with(project: Project, n_wrong: int) -> NDArray[np.float64]:
    """Return scores that are right but for the first items."""
    right = labels(project).astype(float)
    right[:n_wrong] = 1 - right[:n_wrong]
    return right + np.arange(20)[:, None] / 1000


def add(project: Project, system: str, scores: NDArray[np.float64]) -> None:
    """Submit scores and score them."""
    lines = [f"{item},{','.join(map(repr, row.tolist()))}" for item, row in zip(TEST_ITEMS, scores, strict=True)]
    project.submit(system, "\n".join(["image,Edema,Effusion", *lines]) + "\n")
    project.score(system)


def groups(project: Project, *systems: str) -> dict[str, list[int]]:
    """Return the rank groups of some systems, given best first."""
    return rank_systems(project.lock, METRIC, systems, 0.9, project.registry).groups


def row(project: Project, system: str) -> dict[str, Any]:
    """Return the row of a system on the leaderboard."""
    return next(one for one in leaderboard(REF, project.registry)["systems"] if one["system"] == system)


# -- groups from separated pairs


@pytest.mark.parametrize(
    ("separated", "expected"),
    [
        ([], [["a", "b", "c"]]),
        (["ab", "ac", "bc"], [["a"], ["b"], ["c"]]),
        (["ac"], [["a", "b"], ["b", "c"]]),
        (["ab", "ac"], [["a"], ["b", "c"]]),
        (["ab"], [["a", "c"], ["b", "c"]]),
    ],
)
def test_groups(separated: list[str], expected: list[list[str]]) -> None:
    """A system between two that are apart is in the groups of both."""
    assert expected == shared_groups(["a", "b", "c"], [(pair[0], pair[1]) for pair in separated])


NAMES = "abcdef"
PAIRS = list(combinations(NAMES, 2))


@given(st.sets(st.sampled_from(PAIRS)))
def test_two_systems_share_a_group_if_and_only_if_they_are_not_separated(separated: set[tuple[str, str]]) -> None:
    """That holds for every pair, and no group could take another system."""
    found = [set(group) for group in shared_groups(list(NAMES), sorted(separated))]
    for pair in PAIRS:
        assert (pair in separated) != any(set(pair) <= group for group in found)
    assert [] == [(one, other) for one in found for other in found if one is not other and one <= other]


# -- the paired test


def by_hand(project: Project, *scores: NDArray[np.float64]) -> bool:
    """Return whether scikit-learn's ROC-AUCs on the resamples differ, by the percentiles of their difference."""
    y = labels(project)
    differences = []
    for rows in resample_indices("7:test:item", 0, 20):
        means = [
            np.mean([roc_auc_score(y[rows, f], one[rows, f]) if 0 < y[rows, f].mean() < 1 else np.nan for f in (0, 1)])
            for one in scores
        ]
        differences.append(means[0] - means[1])
    low, high = np.nanquantile(differences, [0.05, 0.95])
    return bool(low > 0 or high < 0)


@pytest.mark.parametrize("n_wrong", [1, 2, 3, 5, 8])
def test_the_test_is_the_paired_bootstrap(project: Project, n_wrong: int) -> None:
    """Separated or not is what scikit-learn says on the very resamples of the intervals."""
    first, second = scores_with(project, 0), scores_with(project, n_wrong)
    add(project, "first", first)
    add(project, "second", second)
    assert by_hand(project, first, second) == (groups(project, "first", "second") == {"first": [1], "second": [2]})


def test_both_outcomes_occur(project: Project) -> None:
    """The test above is of pairs that are apart and of pairs that are not."""
    right = scores_with(project, 0)
    assert {True, False} == {by_hand(project, right, scores_with(project, n)) for n in (1, 2, 3, 5, 8)}


def test_equal_systems_share_a_rank(project: Project) -> None:
    """A difference of nothing on every resample separates nobody."""
    add(project, "same", scores_with(project, 2))
    add(project, "twin", scores_with(project, 2))
    assert {"same": [1], "twin": [1]} == groups(project, "same", "twin")


def test_one_system_needs_no_predictions(project: Project) -> None:
    """There is nobody to be tested against, so nothing is read."""
    project.path("registry/tiny/v1/submissions/ours/predictions.csv").unlink()
    assert [1] == row(project, "ours")["rank"]


def test_a_system_whose_predictions_are_not_here_is_not_tested(project: Project) -> None:
    """It keeps its score and has no rank; the others are ranked without it."""
    add(project, "first", scores_with(project, 0))
    project.path("registry/tiny/v1/submissions/ours/predictions.csv").unlink()
    board = leaderboard(REF, project.registry)
    assert {"first": "1", "ours": "not tested"} == {one["system"]: rank_text(one) for one in ranked(board, "zero_shot")}
    assert "is not on this machine" in " ".join(ranking_texts(board, "zero_shot"))


def test_what_was_tested_once_is_remembered_by_what_it_is_of(project: Project) -> None:
    """A memo spares the second evaluation, a damaged one is made again, and none is taken for other predictions."""
    add(project, "first", scores_with(project, 0))
    before = groups(project, "first", "ours")
    memos = list(project.path(".cxrspec/resampled").iterdir())
    assert 2 == len(memos)
    for memo in memos:
        memo.write_bytes(b"damaged")
    assert before == groups(project, "first", "ours")
    project.edit("registry/tiny/v1/submissions/ours/submission.yaml", "sha256: ", "sha256: '0' #")
    assert "ours" in rank_systems(project.lock, METRIC, ["first", "ours"], 0.9, project.registry).untested


def test_the_unit_of_the_definition_is_resampled(project: Project) -> None:
    """By group, whole patients are drawn: other resamples than by item."""
    from cxrspec.score import resampled_means
    from cxrspec.submission import load_submission

    by_group = project.define("v2", ("unit: item", "unit: group"))
    project.freeze(by_group)
    project.submit("ours", scores_csv(), by_group)
    means = [
        resampled_means(
            load_submission(project.registry, one, "ours"), project.registry.read_lock(one), project.registry
        )
        for one in (REF, by_group)
    ]
    assert not np.array_equal(means[0][METRIC][0], means[1][METRIC][0], equal_nan=True)
    values = project.report()["scores"][0]["intervals"][0]
    low, high = np.nanquantile(means[0][METRIC][0], [0.05, 0.95])
    assert (values["low"], values["high"]) == pytest.approx((low, high), abs=1e-12)


# -- states of their own


def test_an_undefined_score_has_no_rank(project: Project) -> None:
    """It stands below the ranked ones, as undefined, with its reason."""
    project.submit("new")
    project.score("new")
    project.edit_json(
        "registry/tiny/v1/reports/new.json", lambda report: report["scores"][0].update(value=None, reason="why")
    )
    board = leaderboard(REF, project.registry)
    assert ["ours", "new"] == [one["system"] for one in ranked(board, "zero_shot")]
    assert ("undefined", "undefined", "why") == (
        row(project, "new")["state"], rank_text(row(project, "new")), row(project, "new")["reason"]
    )  # fmt: skip
    assert "| undefined | new | undefined (why) |" in markdown(board)


def overlapping(project: Project, trained_on: str) -> dict[str, Any]:
    """Score a system on a definition whose test subset is what v1 trains on, and return its row."""
    swapped = project.define(
        "v2",
        ("  test: {pool: {split: test}, select: all}", "  test: {pool: {split: train}, select: all}"),
        ("  train: {pool: {split: train}", "  train: {pool: {split: test}"),
        ("  test: {items: 20, positives: {edema: 7, effusion: 10}}\n", ""),
    )
    project.freeze(swapped)
    items = [f"r{number:02d}" for number in range(40)]
    project.submit("known", scores_csv(items), swapped, trained_on=trained_on)
    project.score("known", swapped)
    [found] = leaderboard(swapped, project.registry)["systems"]
    return dict(found)


def test_a_known_overlap_is_a_state_of_its_own(project: Project) -> None:
    """A system that was trained on what it is scored on has its numbers shown and no rank."""
    found = overlapping(project, "tiny@v1:train")
    assert ("overlap", None, "overlap") == (found["state"], found["rank"], rank_text(found))
    assert "its training data cover 40 of 40 items, 20 of 20 patients" == found["reason"]
    assert found["scores"]["mean_auroc_zero_shot"]["value"] is not None


@pytest.mark.parametrize("trained_on", ["tiny@v1:test", "unknown", "images of elsewhere"])
def test_what_shares_nothing_is_ranked(project: Project, trained_on: str) -> None:
    """Another subset without a patient in common, or words that nobody can check, are no known overlap."""
    assert ("scored", [1]) == (lambda one: (one["state"], one["rank"]))(overlapping(project, trained_on))


def test_the_overlap_is_said_with_the_score_and_audited(project: Project) -> None:
    """It stands in the report, is printed with it, and cannot be edited away."""
    overlapping(project, "tiny@v1:train")
    assert "overlap: 40 of 40 items, 20 of 20 patients" in project.run("show", "tiny@v2/known").out
    less = {"items": 0, "groups": 0}
    project.edit_json("registry/tiny/v2/reports/known.json", lambda one: one["overlap"]["subsets"]["test"].update(less))
    ran = project.run("audit", "tiny@v2/known")
    assert (1, True) == (ran.code, "the report says 0; counting again gives 40 of 40 items" in ran.out)


def test_systems_without_an_interval_are_not_tested(project: Project) -> None:
    """No test is made where the resamples were too few to give an interval, and the reason stands under the table."""
    project.edit_json(
        "registry/tiny/v1/reports/ours.json",
        lambda report: report["scores"][0]["intervals"][0].update(low=None, high=None, reason="too few"),
    )
    board = leaderboard(REF, project.registry)
    assert ["ours was not tested against others: too few."] == list(ranking_texts(board, "zero_shot"))


def test_versions_are_compared_beside_their_boards(project: Project) -> None:
    """`--all-versions` says which scores may be compared; ranks never cross versions."""
    project.freeze(project.define("v2", ("seed: 7", "seed: 8")))
    ran = project.run("leaderboard", "tiny", "--all-versions")
    assert (0, True) == (ran.code, "tiny@v1 and v2: not comparable" in ran.out)
    assert (
        "mean_ap_zero_shot, mean_auroc_zero_shot: scores comparable: test, protocol and metric are the same" in ran.out
    )
    [pair] = project.run("leaderboard", "--all-versions", "--json").json["versions"]
    assert ("tiny@v1", "tiny@v2", "not comparable") == (pair["before"], pair["after"], pair["verdict"]["verdict"])


def test_the_board_says_how_it_ranks(project: Project) -> None:
    """Metric, level and unit of the test stand under the table, and that nothing is corrected."""
    add(project, "first", scores_with(project, 0))
    text = markdown(leaderboard(REF, project.registry))
    assert (
        "Systems that share a rank are not separated by a paired bootstrap of mean_auroc_zero_shot "
        "(90%, by item, uncorrected)." in text
    )
    assert "| 1 | first |" in text
    assert "| 2 | ours |" in text


# -- the metric that ranks


DELONG = "interval: [{method: delong, level: 0.9}, {method: bootstrap, unit: item, resamples: 100, level: 0.9}]"
DELONG_ONLY = "interval: {method: delong, level: 0.9}"


def two_systems(root: Path, *intervals: str) -> dict[str, Any]:
    """Return the leaderboard of a right and a wrong system whose metrics have these intervals, in order."""
    project = authored_project(root)
    text = project.path(SPEC).read_text()
    old = "interval: {method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}"
    if len(intervals) > 1:  # DeLong's variance is that of a ROC-AUC
        text = text.replace("kind: average_precision", "kind: roc_auc")
    for interval in intervals:
        text = text.replace(old, interval, 1)
    project.write(SPEC, text)
    project.freeze()
    add(project, "right", scores_with(project, 0))
    add(project, "wrong", scores_with(project, 18))
    return leaderboard(REF, project.registry)


def test_delong_first_leaves_the_ranks_to_the_bootstrap(tmp_path: Path) -> None:
    """DeLong's interval is of one finding and has no unit: the first bootstrap interval says who is separated."""
    board = two_systems(tmp_path, DELONG)
    assert [[1], [2]] == [row["rank"] for row in ranked(board, "zero_shot")]
    [text] = ranking_texts(board, "zero_shot")
    assert "a paired bootstrap of mean_auroc_zero_shot (90%, by item, uncorrected)" in text


def test_a_metric_without_a_bootstrap_leaves_the_ranks_to_the_next(tmp_path: Path) -> None:
    """Order and ranks are by the first metric that can be tested."""
    board = two_systems(tmp_path, DELONG_ONLY)
    assert [[1], [2]] == [row["rank"] for row in ranked(board, "zero_shot")]
    assert "a paired bootstrap of mean_ap_zero_shot" in next(iter(ranking_texts(board, "zero_shot")))


def test_without_any_bootstrap_nobody_has_a_rank(tmp_path: Path) -> None:
    """The reason is said for each system, on the terminal and in Markdown."""
    board = two_systems(tmp_path, DELONG_ONLY, DELONG_ONLY)
    assert ["not tested", "not tested"] == [*map(rank_text, ranked(board, "zero_shot"))]
    assert "right was not tested against others: no metric of zero_shot has a bootstrap interval" in markdown(board)
    assert 0 == Project(tmp_path).run("leaderboard").code
