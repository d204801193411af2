"""Uncertain training labels: each policy against scikit-learn's own fits, and what a definition may declare."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from cxrspec.choices import POLICIES
from cxrspec.definition import Definition, parse_definition
from cxrspec.freeze import freeze, validate_definition
from cxrspec.metrics import ProbeFit, ProbeSettings, fit_probe, stratified_folds
from cxrspec.metrics.uncertain import policy_labels
from cxrspec.registry import Registry
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit
from test_definition import codes, columns, edited
from tiny import TRAIN_PATIENTS, Define, csv_text, image_names

GRID = (0.01, 0.1, 1.0)
WIDTHS = [pytest.param(6, id="d<n"), pytest.param(150, id="d>n")]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def data(d: int) -> Arrays:
    """120 training rows of three classes, 40 test rows, and folds dealt per class."""
    rng = np.random.default_rng(d)
    x = (rng.normal(size=(160, d)) + rng.normal(size=d)) * np.geomspace(0.2, 5, d)
    latent = x[:120, :2] @ [2.0, 1.0] + rng.logistic(size=120)
    low, high = np.quantile(latent, [0.5, 0.75])
    y = np.where(latent > high, 1, np.where(latent > low, -1, 0)).astype(np.int8)
    return x[:120], y, x[120:], stratified_folds(y, rng.permutation(120), 3)


def fitted(policy: Any, arrays: Arrays, **settings: Any) -> ProbeFit:
    """Fit under a policy; folds are dealt on what the policy makes of the labels."""
    x, y, test, folds = arrays
    y = policy_labels(y, policy)
    found, reason = fit_probe(x, y, test, ProbeSettings(C=GRID, folds=3, tol=1e-9, uncertain=policy, **settings), folds)
    assert found is not None, reason
    return found


class Outside:
    """Scikit-learn's standardised regression at one C, in the original feature space."""

    def __init__(self, x: np.ndarray, y: np.ndarray, C: float, weights: Any = None, rows: Any = None) -> None:
        self.scaler = StandardScaler().fit(x if rows is None else rows)
        model = LogisticRegression(C=C, solver="newton-cg", tol=1e-11, max_iter=1000)
        self.model = model.fit(self.scaler.transform(x), y, weights)

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """Of positive against negative: of the softmax restricted to the two where there are three classes."""
        probabilities = self.model.predict_log_proba(self.scaler.transform(x))
        classes = self.model.classes_.tolist()
        return probabilities[:, classes.index(1)] - probabilities[:, classes.index(0)]


def outside(policy: str, x: np.ndarray, y: np.ndarray, C: float) -> Outside:
    """Fit a policy by the words of the paper."""
    decided = y != -1
    if policy == "U-MultiClass":
        return Outside(x, y, C)
    if policy in ("U-Zeros", "U-Ones"):
        return Outside(x, np.where(decided, y, policy == "U-Ones"), C)
    ignoring = Outside(x[decided], y[decided], C)
    if policy == "U-Ignore" or decided.all():
        return ignoring
    soft = expit(ignoring.log_odds(x[~decided]))
    rows = np.concatenate([x[decided], x[~decided], x[~decided]])
    labels = np.concatenate([y[decided], np.ones(len(soft)), np.zeros(len(soft))])
    return Outside(rows, labels, C, np.concatenate([np.ones(decided.sum()), soft, 1 - soft]), x)


# -- the policies


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_is_scikit_learns_own_fit(policy: str, d: int) -> None:
    """C4: at the chosen C the log-odds are those of scikit-learn, run by the policy's words, within 1e-6."""
    x, y, test, _ = arrays = data(d)
    found = fitted(policy, arrays)
    expected = outside(policy, x, y, found.C)
    assert expected.log_odds(test) == pytest.approx(found.scores, abs=1e-6)
    assert found.converged


@pytest.mark.parametrize("policy", POLICIES)
def test_coefficients_are_of_standardised_features(policy: str) -> None:
    """With the intercept they give the log-odds, also those of three classes."""
    x, y, test, _ = arrays = data(6)
    found = fitted(policy, arrays)
    scaler = outside(policy, x, y, found.C).scaler
    assert scaler.transform(test) @ found.coefficients + found.intercept == pytest.approx(found.scores, abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_c_is_chosen_under_the_policy(policy: str) -> None:
    """Each fold is fitted by the policy; held-out rows count where it gives a label of 1 or 0, by the score's odds."""
    x, y, _, folds = arrays = data(6)
    found = fitted(policy, arrays)
    labels = policy_labels(y, policy)
    for C in GRID:
        losses = []
        for k in range(3):
            counted = (folds == k) & (labels != -1)
            log_odds = outside(policy, x[folds != k], y[folds != k], C).log_odds(x[counted])
            losses.append(log_loss(labels[counted], expit(log_odds)))
        assert np.mean(losses) == pytest.approx(found.cv_log_loss[C], abs=1e-6)
    assert min(found.cv_log_loss, key=found.cv_log_loss.__getitem__) == found.C


def test_the_policies_differ() -> None:
    """No two of them are the same fit by accident."""
    arrays = data(6)
    scores = [fitted(policy, arrays).scores for policy in POLICIES]
    assert all(np.abs(a - b).max() > 0.01 for i, a in enumerate(scores) for b in scores[:i])


@pytest.mark.parametrize("policy", POLICIES)
def test_without_an_uncertain_row_every_policy_is_the_plain_probe(policy: str) -> None:
    """A finding whose training labels are all decided is fitted as binary, to the last bit."""
    x, y, test, _ = data(6)
    arrays = (x, np.maximum(y, 0), test, stratified_folds(np.maximum(y, 0), np.arange(120), 3))
    plain, found = fitted(None, arrays), fitted(policy, arrays)
    assert np.array_equal(plain.scores, found.scores)
    assert plain.cv_log_loss == found.cv_log_loss


def test_uncertain_rows_are_balanced_as_scikit_learn_does() -> None:
    """`class_weight: balanced` is scikit-learn's own, of three classes where there are three."""
    x, y, test, _ = arrays = data(6)
    found = fitted("U-MultiClass", arrays, class_weight="balanced")
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=found.C, solver="newton-cg", tol=1e-11, max_iter=1000, class_weight="balanced")
    decision = model.fit(scaler.transform(x), y).decision_function(scaler.transform(test))
    assert decision[:, 2] - decision[:, 1] == pytest.approx(found.scores, abs=1e-6)


def test_folds_are_dealt_per_class() -> None:
    """The positives 5, 0 get folds 0, 1; the negatives 4, 1 go on with 0, 1, and the uncertain 3, 2 with 0, 1."""
    labels, order = np.array([1, 0, -1, -1, 0, 1]), np.array([5, 4, 3, 2, 1, 0])
    assert [1, 1, 1, 0, 0, 0] == stratified_folds(labels, order, 2).tolist()


def test_c4_uncertain_labels_need_a_policy() -> None:
    """C4: without one, -1 is no label."""
    x, y, test, folds = data(6)
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        fit_probe(x, y, test, ProbeSettings(C=GRID, folds=3), folds)
    with pytest.raises(ValueError, match="uncertain must be one of"):
        (replace(ProbeSettings(C=GRID), uncertain="U-Ones "),)  # type: ignore[arg-type]


def test_a_fold_without_a_decided_class_is_undefined() -> None:
    """An uncertain row is neither of the two classes that a fold needs."""
    x, _, test, _ = data(6)
    labels, folds = np.array([1, 0, -1, 0]), np.array([0, 0, 1, 1])
    found = fit_probe(x[:4], labels, test, ProbeSettings(C=GRID, folds=2, uncertain="U-Ignore"), folds)
    assert (None, "fold 2 of 2 has no positive (1 among 4 training items)") == found


# -- what a definition declares

FINDINGS = ("edema", "mass", "pleural_effusion")


def declared(policy: Any) -> dict[str, Any]:
    """Return a definition whose training labels are uncertain, blank or decided, with a policy."""
    document = columns()
    document["protocols"]["probe"]["uncertain"] = policy
    return document


def parsed(policy: Any) -> Definition:
    """Parse a definition with a policy."""
    definition, issues = parse_definition(declared(policy))
    assert [] == issues
    assert definition is not None
    return definition


def test_c5_one_policy_stands_for_every_finding() -> None:
    """C5: a policy written in short is the same definition as the mapping, and a note says so."""
    short, long = parsed("U-Ones"), parsed(dict.fromkeys(FINDINGS, "U-Ones"))
    assert short.digest == long.digest
    assert ["U-Ones holds for every finding: edema, mass, pleural_effusion"] == [n.message for n in short.task.notes()]
    assert [] == parsed({"edema": "U-Ones", "mass": "U-Zeros", "pleural_effusion": "U-Ones"}).task.notes()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"edema": "U-Ones", "mass": "U-Ones"}, {"pleural_effusion": "field-missing"}),
        ({**dict.fromkeys(FINDINGS, "U-Ones"), "oedema": "U-Ones"}, {"oedema": "reference-unknown"}),
        ({**dict.fromkeys(FINDINGS, "U-Ones"), "mass": "u-ones"}, {"mass": "field-value"}),
        ("u-ones", {"": "field-type"}),
        (["U-Ones"], {"": "field-type"}),
    ],
)
def test_c5_a_policy_that_leaves_a_finding_open_is_refused(policy: Any, expected: dict[str, str]) -> None:
    """C5: a mapping names every finding, by its name, with a policy spelled as the paper spells it."""
    found = codes(declared(policy))
    assert {f"protocols/probe/uncertain/{name}".rstrip("/"): code for name, code in expected.items()} == found


def test_the_papers_own_choice_is_one_mapping() -> None:
    """CheXpert's final model: one policy per task."""
    document = columns()
    document["findings"] = {
        "atelectasis": "Atelectasis",
        "cardiomegaly": "Cardiomegaly",
        "consolidation": "Consolidation",
        "edema": "Edema",
        "pleural_effusion": "Pleural Effusion",
    }
    document["protocols"]["zero_shot"], document["expect"] = {}, {}
    document["protocols"]["probe"]["uncertain"] = {
        "atelectasis": "U-Ones",
        "cardiomegaly": "U-MultiClass",
        "consolidation": "U-SelfTrained",
        "edema": "U-Ones",
        "pleural_effusion": "U-MultiClass",
    }
    assert {} == codes(document)


def test_an_unknown_policy_suggests_the_right_one() -> None:
    """The message lists what is allowed."""
    (issue,) = parse_definition(declared("U-One"))[1]
    assert ("'U-One' is neither a policy nor a mapping of finding to policy", "Did you mean 'U-Ones'?") == (
        issue.message,
        issue.hint,
    )


@pytest.mark.parametrize("policy", [None, "U-Ignore"])
def test_c4_only_what_is_fitted_on_may_be_uncertain(policy: str | None) -> None:
    """C4: with a policy -1 and blank may be fitted on, never scored; without one they may be neither."""
    document = declared(policy) if policy else columns()
    task = parse_definition(document)[0].task  # type: ignore[union-attr]
    open_labels = [["1", "-1"], ["0", ""], ["0", "1"]]
    assert (0 if policy else 2) == len(task.check_subset("train", open_labels))
    assert 2 == len(task.check_subset("test", open_labels))
    scored = edited(copy.deepcopy(document), "metrics/0/subset", "train")
    assert 2 == len(parse_definition(scored)[0].task.check_subset("train", open_labels))  # type: ignore[union-attr]


def chest(define: Define, project: Path, policy: Any) -> tuple[Registry, Any]:
    """Write the tiny definition with training labels of four values and decided test labels, and a policy."""
    rows = []
    for at, name in enumerate(image_names(range(1, 13))):
        decided = int(name[:8]) not in TRAIN_PATIENTS
        values = [(at * step) % 7 for step in (3, 5, 2)]
        rows.append([name, *("1.0" if v < 3 else "0.0" if v < 5 or decided else ("-1.0", "")[v - 5] for v in values)])
    (project / "data" / "numbers.csv").write_text(csv_text(["Image", "Edema", "Mass", "Effusion"], rows))
    document = declared(policy)
    document["items"]["group_id"] = {"column": "Patient ID"}
    document["protocols"]["zero_shot"], document["expect"] = {}, {}
    document["sources"] = {"tiny": document["sources"]["tiny"]}
    document["subsets"]["train"]["select"] = "all"
    return define(document)


def test_from_definition_to_report(define: Define, project: Path, store: Store) -> None:
    """The report's coefficients are scikit-learn's under each finding's policy, blank as negative, and it says so."""
    policies = {"edema": "U-MultiClass", "mass": "U-SelfTrained", "pleural_effusion": "U-Ones"}
    registry, reference = chest(define, project, policies)
    freeze(reference, registry, store)
    lock = registry.read_lock(reference)
    tables = {name: registry.read_table(reference, name, lock.tables[name]) for name in ("test", "train")}
    ids = [*tables["test"].item_ids, *tables["train"].item_ids]
    features = np.random.default_rng(0).normal(size=(len(ids), 4))
    lines = [f"{item},{','.join(map(repr, row.tolist()))}" for item, row in zip(ids, features, strict=True)]
    text = "\n".join(["item_id,a,b,c,d", *lines]) + "\n"
    submit(Request(reference, "ours", "probe", text.encode(), "e.csv"), registry)
    report = score(reference, "ours", registry).report
    assert report is not None
    x = features[len(tables["test"]) :]
    for finding, policy in policies.items():
        cells = tables["train"].column(finding)
        entry = report["fitted"][finding]
        y = np.array([{"1": 1, "-1": -1}.get(cell, 0) for cell in cells])
        expected = outside(policy, x, y, entry["C"])
        scaled = expected.scaler.transform(x)
        odds = scaled @ entry["coefficients"] + entry["intercept"]
        assert expected.log_odds(x) == pytest.approx(odds, abs=1e-6)
        assert (policy, cells.count("-1"), cells.count("")) == tuple(
            entry[key] for key in ("uncertain", "n_uncertain", "n_blank")
        )
        assert entry["n_uncertain"] > 0 and entry["n_blank"] > 0
    note = next(one for one in report["notes"] if "uncertain labels of train" in one)
    assert f"edema {tables['train'].column('edema').count('-1')} by U-MultiClass" in note
    assert "unchanged" == score(reference, "ours", registry).state


def test_validate_says_that_a_policy_holds_for_all(define: Define, project: Path) -> None:
    """C5: the note stands beside the digest."""
    registry, reference = chest(define, project, "U-Ones")
    issues, notes, digest = validate_definition(registry.spec_path(reference), registry)
    assert ([], True) == (issues, digest is not None)
    assert ["protocols.probe.uncertain: U-Ones holds for every finding: edema, mass, pleural_effusion"] == list(
        map(str, notes)
    )
