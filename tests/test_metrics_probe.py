"""The probe against scikit-learn in the original feature space, and hand-dealt folds."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from cxrspec.metrics import ProbeSettings, fit_probe, stratified_folds, undefined_probe_reason

GRID = (1e-3, 0.03, 1.0)
SETTINGS = ProbeSettings(C=GRID, folds=3, tol=1e-9)
WIDTHS = [pytest.param(6, id="d<n"), pytest.param(150, id="d>n")]


def data(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """90 training rows of unequal scales with 30 % positives, 40 test rows, and folds."""
    rng = np.random.default_rng(d)
    x = (rng.normal(size=(130, d)) + rng.normal(size=d)) * np.geomspace(0.1, 10, d)
    latent = x[:90, :3] @ [3.0, 1.0, 1.0] + rng.logistic(size=90)
    y = (latent > np.quantile(latent, 0.7)).astype(np.int8)
    return x[:90], y, x[90:], stratified_folds(y, rng.permutation(90), 3)


def reference(C: float, **settings: object) -> Pipeline:
    """Scikit-learn's own standardised logistic regression, run to its optimum."""
    model = LogisticRegression(C=C, solver="newton-cg", tol=1e-11, max_iter=500, **settings)
    return make_pipeline(StandardScaler(), model)


@pytest.fixture
def seen_by_sklearn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], int]]:
    """Shape of the features and number of BLAS threads of every fit that scikit-learn is asked for."""
    seen, fit = [], LogisticRegression.fit

    def spy(model, x, y):
        threads = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        seen.append((x.shape, threads))
        return fit(model, x, y)

    monkeypatch.setattr(LogisticRegression, "fit", spy)
    return seen


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_scores_are_those_of_a_scikit_learn_refit(d, class_weight):
    """Rotated or not, the log-odds are those of a refit at the chosen C within 1e-6."""
    train_x, train_y, test_x, folds = data(d)
    fit, _ = fit_probe(train_x, train_y, test_x, replace(SETTINGS, class_weight=class_weight), folds)
    expected = reference(fit.C, class_weight=class_weight).fit(train_x, train_y)
    assert expected.decision_function(test_x) == pytest.approx(fit.scores, abs=1e-6)


@pytest.mark.parametrize("d", WIDTHS)
def test_coefficients_are_in_the_standardised_feature_space(d):
    """The rotation is undone: one coefficient per feature, equal to scikit-learn's."""
    train_x, train_y, test_x, folds = data(d)
    fit, _ = fit_probe(train_x, train_y, test_x, SETTINGS, folds)
    expected = reference(fit.C).fit(train_x, train_y)[-1]
    assert expected.coef_[0] == pytest.approx(fit.coefficients, abs=1e-6)
    assert expected.intercept_[0] == pytest.approx(fit.intercept, abs=1e-6)


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg"])
def test_losses_are_held_out_with_each_fold_standardised_by_itself(d, solver):
    """Each C has the mean over folds of scikit-learn's log loss, scaling refitted on the fold's training rows."""
    train_x, train_y, test_x, folds = data(d)
    fit, _ = fit_probe(train_x, train_y, test_x, replace(SETTINGS, solver=solver), folds)
    for C in GRID:
        losses = []
        for k in range(3):
            model = reference(C).fit(train_x[folds != k], train_y[folds != k])
            losses.append(log_loss(train_y[folds == k], model.predict_proba(train_x[folds == k])))
        assert np.mean(losses) == pytest.approx(fit.cv_log_loss[C], abs=1e-5)


def test_the_chosen_c_has_the_smallest_loss():
    """The order of the grid does not matter, and the chosen value is its best."""
    train_x, train_y, test_x, folds = data(6)
    fit, _ = fit_probe(train_x, train_y, test_x, SETTINGS, folds)
    turned, _ = fit_probe(train_x, train_y, test_x, replace(SETTINGS, C=GRID[::-1]), folds)
    assert min(fit.cv_log_loss, key=fit.cv_log_loss.get) == fit.C == turned.C
    assert fit.cv_log_loss == turned.cv_log_loss


def test_equal_losses_choose_the_smallest_c():
    """Features without information make every C equal, so the strongest penalty is taken."""
    _, train_y, _, folds = data(6)
    fit, _ = fit_probe(np.ones((90, 2)), train_y, np.ones((4, 2)), replace(SETTINGS, C=GRID[::-1]), folds)
    assert 1 == len(set(fit.cv_log_loss.values()))
    assert 1e-3 == fit.C


def test_a_constant_column_says_nothing():
    """The computed deviation of a column of 0.1 is 1e-17, not 0: divided by it, another test value would be 1e16."""
    train_x, train_y, test_x, folds = data(6)
    train_x[:, 2], test_x[:, 2] = 0.1, 0.2
    fit, _ = fit_probe(train_x, train_y, test_x, SETTINGS, folds)
    assert 0 == pytest.approx(fit.coefficients[2], abs=1e-12)
    expected = reference(fit.C).fit(train_x, train_y)
    assert expected.decision_function(test_x) == pytest.approx(fit.scores, abs=1e-6)


def test_features_can_be_left_as_they_are():
    """Without standardisation the fit is that of the raw features."""
    train_x, train_y, test_x, folds = data(6)
    fit, _ = fit_probe(train_x, train_y, test_x, replace(SETTINGS, standardize=False), folds)
    expected = reference(fit.C)[-1].fit(train_x, train_y)
    assert expected.decision_function(test_x) == pytest.approx(fit.scores, abs=1e-6)


def test_all_fits_converge_on_easy_data():
    """The flags say that nothing stopped early."""
    fit, reason = fit_probe(*data(6)[:3], SETTINGS, data(6)[3])
    assert (True, 0, "") == (fit.converged, fit.n_cv_not_converged, reason)


def test_stopping_at_max_iter_is_reported_not_warned():
    """Trap S13: a fit cut short carries its flag; scikit-learn's warning does not reach the user."""
    train_x, train_y, test_x, folds = data(6)
    fit, _ = fit_probe(train_x, train_y, test_x, replace(SETTINGS, max_iter=1), folds)
    assert not fit.converged
    assert 9 == fit.n_cv_not_converged


def test_threads_do_not_change_a_bit(seen_by_sklearn):
    """BLAS is held to one thread, whatever the caller allows."""
    train_x, train_y, test_x, folds = data(150)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            fits.append(fit_probe(train_x, train_y, test_x, SETTINGS, folds)[0])
    assert {1} == {threads for _, threads in seen_by_sklearn}
    assert np.array_equal(fits[0].scores, fits[1].scores)
    assert fits[0].cv_log_loss == fits[1].cv_log_loss


def test_no_problem_is_wider_than_its_rows(seen_by_sklearn):
    """With 150 features of 90 rows the folds are solved in 60 dimensions and the refit in 90."""
    fit_probe(*data(150)[:3], SETTINGS, data(150)[3])
    assert {(60, 60), (90, 90)} == {shape for shape, _ in seen_by_sklearn}


@pytest.mark.parametrize(
    ("expected", "labels"),
    [
        ("fold 2 of 2 has no positive (1 among 4 training items)", [1, 0, 0, 0]),
        ("fold 1 of 2 has no negative (1 among 4 training items)", [1, 0, 1, 1]),
    ],
)
def test_a_fold_without_a_class_is_undefined_with_its_reason(expected, labels):
    """No C can be chosen where a fold lacks a class: no fit, and a reason for the report."""
    labels, folds = np.array(labels), np.array([0, 1, 0, 1])
    assert (None, expected) == fit_probe(np.eye(4), labels, np.eye(4), replace(SETTINGS, folds=2), folds)


def test_folds_with_both_classes_have_no_reason():
    """The reason is empty where the probe is defined."""
    assert "" == undefined_probe_reason(np.array([1, 0, 0, 1]), np.array([0, 0, 1, 1]), 2)


def test_folds_are_dealt_positives_first_in_rank_order():
    """Ranks 5, 3, 0 are positive and get folds 0, 1, 0; then ranks 4, 2, 1 go on with 1, 0, 1."""
    labels, rank_order = np.array([1, 0, 0, 1, 0, 1]), np.array([4, 5, 2, 3, 1, 0])
    assert [0, 1, 0, 1, 1, 0] == stratified_folds(labels, rank_order, 2).tolist()


def test_folds_follow_the_items_not_their_rows():
    """Items in another row order, with the same ranks, are in the same folds."""
    rng = np.random.default_rng(0)
    labels, rank_order, rows = rng.integers(0, 2, 41), rng.permutation(41), rng.permutation(41)
    moved = stratified_folds(labels[rows], np.argsort(rows)[rank_order], 5)
    assert np.array_equal(stratified_folds(labels, rank_order, 5)[rows], moved)


def test_folds_share_items_and_positives_evenly():
    """Sizes and positives of any two folds differ by one at most."""
    labels = np.arange(47) % 5 == 0
    folds = stratified_folds(labels, np.arange(47)[::-1], 4)
    assert np.ptp(np.bincount(folds)) <= 1
    assert np.ptp(np.bincount(folds[labels])) <= 1


def test_ranks_must_name_every_item_once():
    """A repeated rank would leave an item without a fold."""
    with pytest.raises(ValueError, match="permutation of 3 items"):
        stratified_folds(np.array([0, 1, 0]), np.array([0, 1, 1]), 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"C": ()},
        {"C": (1.0, 0.0)},
        {"C": (1.0, 1.0)},
        {"C": (float("inf"),)},
        {"folds": 1},
        {"max_iter": 0},
        {"tol": 0.0},
        {"select_by": "accuracy"},
        {"solver": "saga"},
        {"class_weight": "heavy"},
    ],
)
def test_settings_out_of_range_are_refused(fields):
    """What the probe cannot do exactly as written is not approximated."""
    with pytest.raises(ValueError, match=r"must be|cannot"):
        replace(SETTINGS, **fields)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.full((4, 2), np.nan), "features must be finite"),
        (1, np.array([0, 1, 2, 0]), "labels must be 0 or 1"),
        (1, np.array([0, 1]), "need 4 labels"),
        (2, np.zeros((3, 5)), "2 test features"),
        (4, np.array([0, 1, 2, 3]), r"folds must be in \[0, 3\)"),
    ],
)
def test_faulty_arrays_are_refused(position, value, message):
    """Shapes and values are checked before anything is fitted."""
    arguments = [np.zeros((4, 2)), np.array([0, 1, 0, 1]), np.zeros((3, 2)), SETTINGS, np.array([0, 1, 2, 0])]
    arguments[position] = value
    with pytest.raises(ValueError, match=message):
        fit_probe(*arguments)
