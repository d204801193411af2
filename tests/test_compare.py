"""Two systems on the same items: differences, tests, and what is refused or said in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from competition import SPECS, TEST, VALID, Competition, competition, predictions, predictions_csv, valid_file
from cxrspec.compare import Comparison, compare
from cxrspec.errors import SubmissionError
from cxrspec.metrics import bootstrap_p_value, delong_test
from cxrspec.reference import Reference
from project import REF as TINY
from project import Project, embeddings_csv, frozen_project, scores_csv


def of(definition: Reference, system: str) -> Reference:
    """Return the reference of a system."""
    return Reference(definition.benchmark, definition.version, system=system)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    """The competition with two systems; not to be changed."""
    made = competition(tmp_path_factory.mktemp("compare"))
    made.freeze()
    made.submit("a")
    made.submit("b", predictions_csv(predictions(1.7, seed=5)))
    return made


@pytest.fixture(scope="module")
def found(two: Competition) -> dict[str, Any]:
    """The comparison of the two."""
    return run(two).as_json()


def run(two: Competition, first: str = "a", second: str = "b", *, one_sided: bool = False) -> Comparison:
    """Compare two systems."""
    return compare(of(TEST, first), of(TEST, second), two.registry, one_sided=one_sided)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The tiny project with `ours` under zero_shot."""
    return frozen_project(tmp_path / "project")


def refused(first: Reference, second: Reference, where: Competition | Project) -> str:
    """Return the text of what is refused."""
    with pytest.raises(SubmissionError) as caught:
        compare(first, second, where.registry)
    return str(caught.value)


def test_values_are_those_of_the_reports(two: Competition, found: dict[str, Any]) -> None:
    """Both values are what `score` gives, and their difference is the delta."""
    (metric,) = found["metrics"]
    for side in ("a", "b"):
        score = two.score(side)["scores"][0]
        key = {"a": "first", "b": "second"}[side]
        assert score["value"] == metric["mean"][key]
        assert [e["value"] for e in score["findings"].values()] == [e[key] for e in metric["findings"].values()]
    assert metric["mean"]["first"] - metric["mean"]["second"] == metric["mean"]["delta"]


def test_findings_are_tested_by_delong_and_adjusted_together(found: dict[str, Any]) -> None:
    """Each p is DeLong's; the adjusted ones are SciPy's over the five findings."""
    entries = list(found["metrics"][0]["findings"].values())
    assert {"DeLong"} == {entry["test"] for entry in entries}
    expected = false_discovery_control([entry["p"] for entry in entries])
    assert expected == pytest.approx([entry["p_adjusted"] for entry in entries])


def test_p_of_a_finding_follows_from_predictions_and_labels(two: Competition, found: dict[str, Any]) -> None:
    """The same test on the arrays that the files were made of."""
    from competition import OBSERVATIONS, labels

    truth = labels()[:, OBSERVATIONS.index("Edema")]
    expected = delong_test(truth, predictions()[:, 3], predictions(1.7, seed=5)[:, 3])
    entry = found["metrics"][0]["findings"]["edema"]
    assert (expected.z, expected.p, pytest.approx(expected.delta)) == (entry["z"], entry["p"], entry["delta"])


def test_the_mean_is_tested_on_the_resamples_of_the_intervals(found: dict[str, Any]) -> None:
    """Its p is of the paired bootstrap and is not adjusted: there is one mean."""
    mean = found["metrics"][0]["mean"]
    assert ("paired bootstrap", 1000, "item") == (mean["test"], mean["interval"]["resamples"], mean["interval"]["unit"])
    assert mean["interval"]["low"] < mean["delta"] < mean["interval"]["high"]
    assert "p_adjusted" not in mean


def test_swapping_the_systems_mirrors_the_table(two: Competition, found: dict[str, Any]) -> None:
    """B against A has the same p and the negative interval: the resamples are the same."""
    back = run(two, "b", "a").as_json()["metrics"][0]["mean"]
    there = found["metrics"][0]["mean"]
    assert [-there["delta"], there["p"]] == [back["delta"], back["p"]]
    assert [-there["interval"]["high"], -there["interval"]["low"]] == pytest.approx(
        [back["interval"]["low"], back["interval"]["high"]]
    )


def test_one_sided_halves_p_where_the_first_is_larger(two: Competition, found: dict[str, Any]) -> None:
    """The alternative is that the first system is larger, and the words say so."""
    one_sided = run(two, one_sided=True).as_json()
    pairs = [(one["metrics"][0]["findings"]["edema"]["p"]) for one in (found, one_sided)]
    assert pairs[0] / 2 == pytest.approx(pairs[1])
    assert "first is larger" == one_sided["alternative"]
    assert any("one-sided: the first is larger" in text for text in one_sided["shows"])


def test_words_say_what_is_not_shown(found: dict[str, Any]) -> None:
    """Equality, another training and other items are not in the table."""
    text = " ".join(found["does_not_show"])
    assert all(words in text for words in ("equal", "trained again", "other items, subsets or definition versions"))


def test_c10_valid_is_never_compared_with_test(two: Competition, tmp_path: Path) -> None:
    """C10: a score on the validation set beside one on the test set is refused, with both subset ids."""
    made = competition(tmp_path)
    made.write("specs/chexpert-competition/valid-v1.yaml", (SPECS / "chexpert-competition/valid-v1.yaml").read_bytes())
    made.write("data/CheXpert-v1.0-small/valid.csv", valid_file().encode())
    made.freeze()
    made.freeze(VALID)
    text = refused(of(VALID, "a"), of(TEST, "b"), made)
    assert "compared on the same frozen items only" in text
    assert made.registry.read_lock(VALID).subset_ids["valid"] in text
    assert "says nothing of another" in text


def test_another_version_of_equal_subsets_says_how(project: Project) -> None:
    """A system can be brought to the other version with one command."""
    other = project.define("v2", ("unit: item", "unit: group"))
    project.freeze(other)
    project.submit("theirs", reference=other)
    text = refused(of(TINY, "ours"), of(other, "theirs"), project)
    assert "'cxrspec submit tiny@v1 --from tiny@v2/theirs'" in text


def test_two_protocols_are_refused(project: Project) -> None:
    """A probe against scores would compare protocols, not systems."""
    project.submit("probed", embeddings_csv(), protocol="probe")
    assert "'ours' is of protocol zero_shot, 'probed' of probe" in refused(
        of(TINY, "ours"), of(TINY, "probed"), project
    )


def test_a_system_is_not_compared_with_itself(project: Project) -> None:
    """There is nothing to compare."""
    assert "named twice" in refused(of(TINY, "ours"), of(TINY, "ours"), project)


def test_groups_with_several_items_are_said(project: Project) -> None:
    """DeLong takes items as independent; average precision is tested by the bootstrap alone."""
    project.submit("theirs", scores_csv(columns=("Effusion", "Edema")))
    shown = compare(of(TINY, "ours"), of(TINY, "theirs"), project.registry).as_json()
    assert any("20 items of 10 groups" in text for text in shown["does_not_show"])
    tests = {metric["kind"]: metric["findings"]["edema"]["test"] for metric in shown["metrics"]}
    assert {"roc_auc": "DeLong", "average_precision": "paired bootstrap"} == tests


def test_probes_are_compared_after_one_fit_each(project: Project) -> None:
    """The scores of the fitted heads are compared, as `score` computes them."""
    project.submit("one", embeddings_csv(), protocol="probe")
    project.submit("two", embeddings_csv().replace("0.", "1."), protocol="probe")
    shown = compare(of(TINY, "one"), of(TINY, "two"), project.registry).as_json()
    assert project.score("two").report["scores"][0]["value"] == shown["metrics"][0]["mean"]["second"]


def test_no_test_is_claimed_where_none_is_made(tmp_path: Path) -> None:
    """A metric with DeLong's interval alone has no resamples: its mean is not tested, and that is said."""
    made = competition(tmp_path, {}, **{"      - {method: bootstrap, unit: item, resamples: 1000, level: 0.95}\n": ""})
    made.freeze()
    made.submit("a")
    made.submit("b", predictions_csv(predictions(1.7, seed=5)))
    found = run(made).as_json()
    (metric, *_) = (one for one in found["metrics"] if one["kind"] == "roc_auc")
    assert (None, None, None) == (metric["unit"], metric["mean"]["test"], metric["mean"]["p"])
    assert not any("None" in text for text in found["shows"])
    assert any(f"no test was made for the mean of {metric['metric']}" in text for text in found["shows"])


def test_the_command_prints_table_and_words(project: Project) -> None:
    """Text by default, JSON on demand, exit code 2 without systems."""
    project.submit("theirs", scores_csv(columns=("Effusion", "Edema")))
    done = project.run("compare", "tiny@v1/ours", "tiny@v1/theirs")
    assert (0, True, True) == (done.code, "what this does not show:" in done.out, "adjusted p" in done.out)
    assert "theirs" == project.run("compare", "tiny@v1/ours", "tiny@v1/theirs", "--json").json["second"]
    assert 2 == project.run("compare", "tiny@v1", "tiny@v1/theirs").code


@pytest.mark.parametrize(
    ("differences", "one_sided", "expected"),
    [
        ([0.1] * 99, False, 2 / 100),
        ([0.1] * 99, True, 1 / 100),
        ([-0.1] * 99, True, 1.0),
        ([0.1] * 90 + [-0.1] * 9, False, 2 * 10 / 100),
        ([0.0] * 99, False, 1.0),
        ([0.1] * 99 + [np.nan] * 5, False, 2 / 100),
    ],
)
def test_bootstrap_p_by_hand(differences: list[float], one_sided: bool, expected: float) -> None:
    """Shares of resamples on a side of 0, one more against the difference; undefined ones left out."""
    assert expected == pytest.approx(bootstrap_p_value(np.array(differences), one_sided=one_sided))


def test_bootstrap_p_without_resamples_is_refused() -> None:
    """There is no p of nothing."""
    with pytest.raises(ValueError, match="no resample is defined"):
        bootstrap_p_value(np.array([np.nan]))
