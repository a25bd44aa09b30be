"""scikit-learn classifiers with calibrators: `abers.sklearn`.

The oracle is an estimator trained by hand and the calibrators of
`abers.calibration` on its scores.
"""

# ruff: noqa: N803, N806 - X and y as scikit-learn has them

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from river import tree
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from abers import LabelError, OneVsRest, ParameterError, ScoreError, VennAbers, WeightError
from abers.calibration import cross_ends, cross_log_merge, log_merge
from abers.sklearn import VennAbersCalibratedClassifier
from abers.sklearn._meta_estimator import class_scores

if TYPE_CHECKING:
    from collections.abc import Callable

Data = tuple[Any, Any]


def data(n: int = 300, k: int = 2, seed: int = 0) -> Data:
    """Make observations of k classes that are confused now and then."""
    made: Data = make_classification(
        n, 6, n_informative=4, n_classes=k, flip_y=0.2, random_state=seed
    )
    return made


class Raw(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose score is its first feature, and which counts its trainings."""

    def fit(self, X: Any, y: Any) -> Raw:  # noqa: ANN401, ARG002 - arrays, one of them unused
        """Learn the classes alone."""
        self.classes_ = np.unique(y)
        self.fits_ = getattr(self, "fits_", 0) + 1
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: ANN401 - arrays
        """Share the first feature among the classes."""
        p = np.asarray(X)[:, 0].astype(np.float64)
        rest = np.repeat((1.0 - p)[:, np.newaxis], len(self.classes_) - 1, axis=1)
        return np.column_stack([rest / (len(self.classes_) - 1), p])


CHECKED = [
    VennAbersCalibratedClassifier(LogisticRegression()),
    VennAbersCalibratedClassifier(LogisticRegression(), cv=3),
    VennAbersCalibratedClassifier(LinearSVC(random_state=0)),
]


def checks() -> list[Any]:
    """Make a case of each check, but of one that skips itself where SciPy has no array API."""
    return [
        pytest.param(estimator, check, id=f"{number}-{check.func.__name__}-{i}")
        for number, each in enumerate(CHECKED)
        for i, (estimator, check) in enumerate(estimator_checks_generator(each))
        if check.func.__name__ != "check_array_api_input"
    ]


@pytest.mark.parametrize(("estimator", "check"), checks())
def test_scikit_learn_has_nothing_to_say(estimator: Any, check: Callable[[Any], None]) -> None:  # noqa: ANN401
    """Every check of scikit-learn passes, by a split, by folds, and on margins."""
    check(estimator)


# What is computed


def test_two_classes_prefit_are_a_calibrator_on_the_scores() -> None:
    """With a fitted estimator, the intervals are those of `VennAbers`, bit for bit."""
    X, y = data()
    fitted = GaussianNB().fit(X[:100], y[:100])
    model = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:200], y[100:200])
    expected = VennAbers()
    expected.learn_many(fitted.predict_proba(X[100:200])[:, 1], y[100:200])
    p0, p1 = expected.predict_many(fitted.predict_proba(X[200:])[:, 1])
    intervals = model.predict_interval(X[200:])
    assert intervals.shape == (100, 2, 2)
    assert (intervals[:, 1] == np.column_stack([p0, p1])).all()
    assert (intervals[:, 0] == np.column_stack([1.0 - p1, 1.0 - p0])).all()
    assert np.abs(model.predict_proba(X[200:])[:, 1] - log_merge(p0, p1)).max() < 1e-15


def test_several_classes_prefit_are_one_against_the_rest() -> None:
    """With several classes, they are those of `OneVsRest` on the scores of all classes."""
    X, y = data(k=4)
    fitted = GaussianNB().fit(X[:100], y[:100])
    model = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:200], y[100:200])
    expected = OneVsRest(range(4))
    expected.learn_many(fitted.predict_proba(X[100:200]), y[100:200])
    p, low, high = expected.predict_many(fitted.predict_proba(X[200:]))
    assert (model.predict_interval(X[200:]) == np.stack([low, high], axis=-1)).all()
    assert np.abs(model.predict_proba(X[200:]) - p).max() < 1e-15
    assert (model.predict(X[200:]) == p.argmax(axis=1)).all()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cv", [4, StratifiedKFold(4), ShuffleSplit(3, random_state=1)])
def test_folds_are_cross_prediction(k: int, cv: Any) -> None:  # noqa: ANN401 - a splitter
    """Each split trains a clone, its rest calibrates, and the folds are merged as by CVAP."""
    X, y = data(k=k)
    model = VennAbersCalibratedClassifier(GaussianNB(), cv=cv).fit(X[:200], y[:200])
    low, high = [], []
    splitter = StratifiedKFold(cv) if isinstance(cv, int) else cv
    for train, test in splitter.split(X[:200], y[:200]):
        trained = GaussianNB().fit(X[train], y[train])
        if k == 2:
            binary = VennAbers()
            binary.learn_many(trained.predict_proba(X[test])[:, 1], y[test])
            p0, p1 = binary.predict_many(trained.predict_proba(X[200:])[:, 1])
            low.append(np.column_stack([1.0 - p1, p0]))
            high.append(np.column_stack([1.0 - p0, p1]))
        else:
            several = OneVsRest(range(k))
            several.learn_many(trained.predict_proba(X[test]), y[test])
            _, p0, p1 = several.predict_many(trained.predict_proba(X[200:]))
            low.append(p0)
            high.append(p1)
    ends = np.stack(low, axis=-1), np.stack(high, axis=-1)
    assert (model.predict_interval(X[200:]) == np.stack(cross_ends(*ends), axis=-1)).all()
    p = cross_log_merge(*ends)
    expected = p / p.sum(axis=1, keepdims=True)
    assert np.abs(model.predict_proba(X[200:]) - expected).max() < 1e-15


def test_a_split_keeps_a_part_of_each_class_out_of_training() -> None:
    """A quarter of each class calibrates, and none of it trains."""
    X = np.arange(100.0)[:, np.newaxis] / 100.0
    y = np.repeat([0, 1], [60, 40])
    trained: list[Any] = []

    class Spy(Raw):
        def fit(self, X: Any, y: Any) -> Raw:  # noqa: ANN401 - arrays
            trained.append((X[:, 0], y))
            return super().fit(X, y)

    model = VennAbersCalibratedClassifier(Spy(), calibration_size=0.25).fit(X, y)
    assert np.bincount(trained[0][1]).tolist() == [45, 30]
    out = np.setdiff1d(X[:, 0], trained[0][0])
    expected = VennAbers()
    expected.learn_many(out, (out >= 0.6).astype(int))
    assert np.array_equal(expected.predict_many(X[:, 0]), model.predict_interval(X)[:, 1].T)


def test_another_seed_gives_another_split() -> None:
    """A seed gives the same split again, and another one another."""
    X, y = data()
    found = [
        VennAbersCalibratedClassifier(GaussianNB(), random_state=seed).fit(X, y).predict_proba(X)
        for seed in (1, 1, 2)
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_margins_are_scores_too() -> None:
    """An estimator without probabilities is calibrated by its decision function."""
    X, y = data()
    fitted = LinearSVC(random_state=0).fit(X[:100], y[:100])
    model = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:200], y[100:200])
    expected = VennAbers()
    expected.learn_many(fitted.decision_function(X[100:200]), y[100:200])
    p0, p1 = expected.predict_many(fitted.decision_function(X[200:]))
    assert (model.predict_interval(X[200:])[:, 1] == np.column_stack([p0, p1])).all()


class Wavering(Raw):
    """An estimator whose last bits depend on how many rows it scores at once."""

    def predict_proba(self, X: Any) -> Any:  # noqa: ANN401 - arrays
        """Share a first feature that is a little more if there are several rows."""
        return super().predict_proba(np.asarray(X) * (1.0 + len(X) % 2 * 2.0**-50))


@pytest.mark.parametrize("k", [2, 3])
def test_a_row_has_one_prediction_alone_and_among_others(k: int) -> None:
    """Rows that were learned are predicted the same, whatever the last bits of their scores."""
    rng = np.random.default_rng(0)
    X, y = rng.random((100, 1)), rng.integers(k, size=100)
    model = VennAbersCalibratedClassifier(Wavering().fit(X, y), cv="prefit").fit(X, y)
    alone = np.concatenate([model.predict_interval(X[i : i + 1]) for i in range(100)])
    assert (alone == model.predict_interval(X)).all()


# Partial fits


def test_a_partial_fit_adds_calibration_labels_alone() -> None:
    """Labels in parts calibrate as all at once, and no estimator is trained again."""
    X, y = data(k=3)
    fitted = LinearDiscriminantAnalysis().fit(X[:100], y[:100])
    before = pickle.dumps(fitted)
    whole = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:250], y[100:250])
    parts = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:150], y[100:150])
    assert parts.partial_fit(X[150:151], y[150:151]).partial_fit(X[151:250], y[151:250]) is parts
    assert (parts.predict_interval(X[250:]) == whole.predict_interval(X[250:])).all()
    assert pickle.dumps(fitted) == before


def test_partial_fits_of_folds_take_turns() -> None:
    """With folds, row after row goes to the next fold's calibrator, also over several calls."""
    X, y = data()
    at_once, in_parts = (
        VennAbersCalibratedClassifier(Raw(), cv=3).fit(X[:90], y[:90]) for _ in "12"
    )
    at_once.partial_fit(X[90:200], y[90:200])
    for start, end in ((90, 91), (91, 130), (130, 130), (130, 200)):
        in_parts.partial_fit(X[start:end], y[start:end])
    assert (at_once.predict_interval(X) == in_parts.predict_interval(X)).all()
    low, high = [], []
    splits = StratifiedKFold(3).split(X[:90], y[:90])
    for fold, (_, test) in enumerate(splits):
        binary = VennAbers()
        rows = np.concatenate([test, np.arange(90 + fold, 200, 3)])
        binary.learn_many(X[rows, 0], y[rows])
        p0, p1 = binary.predict_many(X[:, 0])
        low.append(p0)
        high.append(p1)
    expected = np.stack(cross_ends(np.stack(low, -1), np.stack(high, -1)), axis=-1)
    assert (at_once.predict_interval(X)[:, 1] == expected).all()


def test_a_partial_fit_of_an_unknown_class_learns_nothing() -> None:
    """A label of an unknown class is refused with its row, and nothing is learned."""
    X, y = data()
    model = VennAbersCalibratedClassifier(GaussianNB()).fit(X[:200], y[:200])
    before = model.predict_interval(X)
    for label in (7, -1):
        with pytest.raises(LabelError, match=f"row 3: class {label} is not among"):
            model.partial_fit(X[:5], [0, 1, 0, label, 1])
    assert (model.predict_interval(X) == before).all()


def test_the_first_partial_fit_is_a_fit() -> None:
    """Before `fit`, a partial fit trains and calibrates as `fit` does."""
    X, y = data(k=3)
    first = VennAbersCalibratedClassifier(GaussianNB()).partial_fit(X, y, classes=[2, 1, 0])
    fitted = VennAbersCalibratedClassifier(GaussianNB()).fit(X, y)
    assert (first.predict_interval(X) == fitted.predict_interval(X)).all()


@pytest.mark.parametrize("classes", [[0], [0, 1, 2], ["no", "yes"]])
def test_other_classes_are_refused(classes: list[Any]) -> None:
    """The argument `classes` has to be all classes of the first fit; nothing is learned else."""
    X, y = data()
    model = VennAbersCalibratedClassifier(GaussianNB())
    with pytest.raises(ParameterError, match=r"classes=.* are not the classes \[0, 1\]"):
        model.partial_fit(X, y, classes=classes)
    assert not hasattr(model, "estimators_")
    before = model.fit(X[:200], y[:200]).predict_interval(X)
    with pytest.raises(ParameterError, match="fit first with labels of every class"):
        model.partial_fit(X[200:], y[200:], classes)
    assert (model.predict_interval(X) == before).all()
    assert model.partial_fit(X[200:], y[200:], np.array([0, 1])) is model


# Weights


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cv", ["prefit", "split", 3])
def test_weights_reach_estimator_and_calibrators(k: int, cv: Any) -> None:  # noqa: ANN401 - either
    """Each clone trains with the weights of its rows, and its calibrator learns with the rest."""
    X, y = data(k=k)
    weights = np.random.default_rng(0).integers(0, 4, size=300) / 2.0
    fitted = GaussianNB().fit(X[:200], y[:200], weights[:200])
    model = VennAbersCalibratedClassifier(fitted if cv == "prefit" else GaussianNB(), cv=cv)
    model.fit(X[:200], y[:200], weights[:200])
    if cv == "prefit":
        splits: list[Any] = [(None, np.arange(200))]
    elif cv == "split":
        splits = model._splits(X[:200], y[:200], y[:200], None)  # noqa: SLF001 - tested above
    else:
        splits = [*StratifiedKFold(3).split(X[:200], y[:200])]
    for (train, test), estimator, own in zip(
        splits,
        model.estimators_,
        model._calibrators,  # noqa: SLF001 - compared as a whole
        strict=True,
    ):
        trained = fitted if train is None else GaussianNB().fit(X[train], y[train], weights[train])
        assert (trained.predict_proba(X) == estimator.predict_proba(X)).all()
        rows = test[weights[test] > 0.0]
        scores = class_scores(trained, X[rows], np.arange(k))
        expected: Any = VennAbers() if k == 2 else OneVsRest(range(k))
        expected.learn_many(scores[:, 1] if k == 2 else scores, y[rows], weights=weights[rows])
        assert own == expected


@pytest.mark.parametrize("k", [2, 3])
def test_a_weight_counts_labels(k: int) -> None:
    """In calibration a weight of 2 is two observations, and of 0 is none."""
    X, y = data(k=k)
    weights = np.arange(200) % 3
    fitted = GaussianNB().fit(X[:100], y[:100])
    weighted, repeated = (
        VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[:100], y[:100]) for _ in "12"
    )
    weighted.partial_fit(X[100:], y[100:], sample_weight=weights.tolist())
    rows = np.repeat(np.arange(100, 300), weights)
    repeated.partial_fit(X[rows], y[rows])
    assert (weighted.predict_interval(X) == repeated.predict_interval(X)).all()


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (-1.0, WeightError, "row 2: weight -1"),
        (np.nan, WeightError, "row 2: weight nan"),
        (np.inf, WeightError, "row 2: weight inf"),
        ("x", ParameterError, "sample_weight="),
    ],
)
def test_bad_weights_change_nothing(weight: Any, error: Any, message: str) -> None:  # noqa: ANN401
    """A weight that is negative or not finite is refused by its row before anything is learned."""
    X, y = data()
    model = VennAbersCalibratedClassifier(GaussianNB(), cv=2)
    with pytest.raises(error, match=message):
        model.fit(X[:4], [0, 1, 0, 1], [1.0, 1.0, weight, 1.0])
    assert not hasattr(model, "estimators_")
    before = model.fit(X, y).predict_interval(X)
    with pytest.raises(error, match=message):
        model.partial_fit(X[:4], y[:4], sample_weight=[1.0, 1.0, weight, 1.0])
    with pytest.raises(ParameterError, match=r"shape \(3,\); it must be \(4,\)"):
        model.partial_fit(X[:4], y[:4], sample_weight=[1.0] * 3)
    assert (model.predict_interval(X) == before).all()


def test_weights_that_do_not_train_are_a_warning() -> None:
    """An estimator whose `fit` has no weights trains without them, and a warning names it."""
    X, y = data()
    for estimator in (LinearDiscriminantAnalysis(), make_pipeline(StandardScaler(), GaussianNB())):
        model = VennAbersCalibratedClassifier(estimator)
        with pytest.warns(UserWarning, match="takes no sample_weight") as caught:
            model.fit(X, y, np.ones(300))
        assert caught[0].filename == __file__
        plain = VennAbersCalibratedClassifier(estimator).fit(X, y)
        assert (plain.predict_interval(X) == model.predict_interval(X)).all()


# Wrong estimators


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearRegression(), r"estimator=LinearRegression\(\) is not a classifier;.*Regressor"),
        (make_pipeline(StandardScaler(), LinearRegression()), "is not a classifier; pass one"),
        (StandardScaler(), r"estimator=StandardScaler\(\) is not a classifier; pass one"),
        (GaussianNB, r"estimator=<class .*pass an instance, GaussianNB\(…\), not the class"),
        (
            tree.HoeffdingTreeClassifier(),
            r"use abers\.river\.VennAbersClassifier for a river model",
        ),
        (5, r"estimator=5 is not a scikit-learn classifier; pass one, such as LogisticRegr"),
        (None, "estimator=None is not a scikit-learn classifier"),
    ],
)
@pytest.mark.parametrize("cv", ["split", "prefit", 3])
def test_a_wrong_estimator_is_an_error_of_fit(estimator: Any, message: str, cv: Any) -> None:  # noqa: ANN401
    """Before anything is trained, `fit` names the value, the parameter and the remedy."""
    model = VennAbersCalibratedClassifier(estimator, cv=cv)
    for fit in (model.fit, model.partial_fit):
        with pytest.raises(ParameterError, match=message):
            fit(*data())


# Faults of others


def test_a_fitted_pipeline_is_never_refitted() -> None:
    """A fitted pipeline stays as it was, to the byte, or is refused with the remedy."""
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), GaussianNB()).fit(X[:100], y[:100])
    before = pickle.dumps(pipeline)
    model = VennAbersCalibratedClassifier(pipeline, cv="prefit").fit(X[100:], y[100:])
    assert model.partial_fit(X, y).estimators_[0] is pipeline
    assert pickle.dumps(pipeline) == before
    for cv in ("split", 5):
        with pytest.raises(ParameterError, match=r"fitted already.*cv='prefit'"):
            VennAbersCalibratedClassifier(pipeline, cv=cv).fit(X[100:], y[100:])
    assert pickle.dumps(pipeline) == before


@pytest.mark.parametrize("cv", ["split", 5])
def test_an_unfitted_estimator_is_trained_as_a_clone(cv: Any) -> None:  # noqa: ANN401 - either
    """The estimator that was handed in stays unfitted."""
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    model = VennAbersCalibratedClassifier(pipeline, cv=cv).fit(X, y).fit(X, y)
    assert not hasattr(pipeline[-1], "classes_")
    assert len(model.estimators_) == (1 if cv == "split" else 5)


def test_prefit_needs_a_fitted_estimator() -> None:
    """An unfitted one is refused, so also the clone of a fitted one, unless it is frozen."""
    X, y = data()
    fitted = GaussianNB().fit(X, y)
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        clone(VennAbersCalibratedClassifier(fitted, cv="prefit")).fit(X, y)
    frozen = VennAbersCalibratedClassifier(FrozenEstimator(fitted), cv="prefit")
    assert cross_val_score(frozen, X, y, cv=3).min() > 0.5
    grid = GridSearchCV(VennAbersCalibratedClassifier(GaussianNB()), {"cv": ["split", 3]}, cv=3)
    assert grid.fit(X, y).predict_proba(X).shape == (300, 2)


@pytest.mark.parametrize("cv", ["split", "prefit", 3])
@pytest.mark.parametrize(
    "wrapped", [lambda one: one, lambda one: make_pipeline("passthrough", one)]
)
def test_a_frozen_estimator_is_fitted(cv: Any, wrapped: Callable[[Any], Any]) -> None:  # noqa: ANN401
    """It trains never, so that all observations calibrate it, in a clone too, as with prefit."""
    X, y = data()
    fitted = GaussianNB().fit(X[:100], y[:100])
    same = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:], y[100:])
    model = VennAbersCalibratedClassifier(wrapped(FrozenEstimator(fitted)), cv=cv)
    for one in (model, clone(model)):
        found = one.fit(X[100:], y[100:]).predict_proba(X)
        assert (found == same.predict_proba(X)).all()


def test_a_frozen_estimator_that_is_not_fitted() -> None:
    """The error says that nothing fits it."""
    frozen = FrozenEstimator(GaussianNB())
    with pytest.raises(NotFittedError, match="fit it on other observations, then freeze it"):
        VennAbersCalibratedClassifier(frozen).fit(*data())


def test_the_remedies_of_a_fitted_estimator_work() -> None:
    """Both the clone and prefit that the error names can be fitted."""
    X, y = data()
    fitted = GaussianNB().fit(X, y)
    with pytest.raises(ParameterError, match=r"cv='prefit'.*sklearn\.base\.clone\(estimator\)"):
        VennAbersCalibratedClassifier(fitted).fit(X, y)
    VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X, y)
    VennAbersCalibratedClassifier(clone(fitted)).fit(X, y)


def test_groups_are_never_divided() -> None:
    """Folds and the split keep the rows of a group together, as the splitter by hand does."""
    X, y = data()
    groups = np.arange(300) % 10
    folds = [*GroupKFold(3).split(X, y, groups)]
    by_hand = VennAbersCalibratedClassifier(GaussianNB(), cv=folds).fit(X, y)
    model = VennAbersCalibratedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert (model.predict_proba(X) == by_hand.predict_proba(X)).all()
    split = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    by_hand = VennAbersCalibratedClassifier(GaussianNB(), cv=[*split.split(X, y, groups)])
    model = VennAbersCalibratedClassifier(GaussianNB()).fit(X, y, groups=groups)
    assert (model.predict_proba(X) == by_hand.fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (3, np.arange(300) % 10, r"cv=3 divides groups; .*cv=sklearn\.model_selection\.GroupKFold"),
        ("split", np.zeros(300), r"'split' needs two groups"),
        (GroupKFold(3), None, r"GroupKFold.* needs groups; pass them, fit\(X, y, groups=…\)"),
    ],
)
def test_groups_that_cannot_be_kept(cv: Any, groups: Any, message: str) -> None:  # noqa: ANN401
    """Groups that the folds would divide, one group, and none where some are needed are errors."""
    with pytest.raises(ParameterError, match=message):
        VennAbersCalibratedClassifier(GaussianNB(), cv=cv).fit(*data(), groups=groups)


def test_groups_of_another_length() -> None:
    """Groups without a row each are scikit-learn's own error."""
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        VennAbersCalibratedClassifier(GaussianNB()).fit(*data(), groups=np.arange(5))


def test_groups_are_routed() -> None:
    """Metadata routing of scikit-learn hands the groups of a cross-validation on to `fit`."""
    X, y = data()
    groups = np.arange(300) % 10
    model = VennAbersCalibratedClassifier(GaussianNB(), cv=GroupKFold(3))
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            model.set_fit_request(groups=True), X, y, params={"groups": groups}, cv=3
        )
    assert found["test_score"].min() > 0.5


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cv", ["split", "prefit", 3])
@pytest.mark.parametrize("names", [[1, 2, 3], ["cat", "dog", "owl"], [-1.0, 0.0, 7.0], [9, 10, 11]])
def test_labels_of_any_kind(k: int, cv: Any, names: list[Any]) -> None:  # noqa: ANN401 - any
    """Labels 1 to K, strings and other numbers give the columns that 0 to K - 1 give."""
    X, numbers = data(k=k)
    labels = np.array(names)[numbers]
    found = []
    for y in (numbers, labels):
        estimator = GaussianNB().fit(X[:100], y[:100]) if cv == "prefit" else GaussianNB()
        model = VennAbersCalibratedClassifier(estimator, cv=cv).fit(X[100:250], y[100:250])
        found.append(model.partial_fit(X[250:], y[250:]))
    assert found[1].classes_.tolist() == names[:k]
    assert (found[0].predict_interval(X) == found[1].predict_interval(X)).all()
    assert (found[1].predict(X) == np.array(names)[found[0].predict(X)]).all()


def test_labels_may_be_objects() -> None:
    """A column of strings of pandas, and a list, are labels like an array."""
    X, numbers = data()
    names = np.array(["no", "yes"])[numbers]
    expected = VennAbersCalibratedClassifier(GaussianNB()).fit(X, names).predict_interval(X)
    for y in (pd.Series(names), names.astype(object), names.tolist()):
        model = VennAbersCalibratedClassifier(GaussianNB()).fit(X, y)
        assert (model.predict_interval(X) == expected).all()
        assert set(model.predict(X)) == {"no", "yes"}


def test_a_class_missing_from_calibration_keeps_its_column() -> None:
    """A class of the estimator without any calibration label has a lower end of 0."""
    X, y = data(k=3)
    fitted = GaussianNB().fit(X, y)
    without = y != 1
    model = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[without], y[without])
    assert model.classes_.tolist() == [0, 1, 2]
    intervals = model.predict_interval(X)
    assert intervals.shape == (300, 3, 2)
    assert (intervals[:, 1, 0] == 0.0).all()
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1.0).max() < 1e-12
    model.partial_fit(X[~without], y[~without])
    assert (model.predict_interval(X)[:, 1, 0] > 0.0).any()


def test_a_class_missing_from_training_keeps_its_column() -> None:
    """A class that the fitted estimator never saw has score 0, and a warning names it."""
    X, y = data(k=3)
    seen = y[:100] != 1
    fitted = GaussianNB().fit(X[:100][seen], y[:100][seen])
    message = r"not know: \[1\]. It scores them 0; .* give them these: \[0, 2\]"
    with pytest.warns(UserWarning, match=message):
        model = VennAbersCalibratedClassifier(fitted, cv="prefit").fit(X[100:], y[100:])
    expected = VennAbers()
    expected.learn_many(np.zeros(200), y[100:] == 1)
    p0, p1 = expected.predict_one(0.0)
    assert (model.predict_interval(X)[:, 1] == [p0, p1]).all()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cv", ["prefit", 2])
def test_a_score_of_nan_gets_no_prediction(k: int, cv: Any) -> None:  # noqa: ANN401 - either
    """A score that is no finite number is refused by its row, and nothing is learned."""
    X, y = data(k=k)
    estimator = Raw().fit(X, y) if cv == "prefit" else Raw()
    model = VennAbersCalibratedClassifier(estimator, cv=cv).fit(X, y)
    before = model.predict_interval(X)
    bad = X[:9].copy()
    bad[6, 0] = np.nan
    for call in (model.predict_proba, model.predict_interval, model.predict):
        with pytest.raises(ScoreError, match="row 6: score nan of Raw"):
            call(bad)
    with pytest.raises(ScoreError, match="score nan of Raw"):
        model.partial_fit(bad, y[:9])
    with pytest.raises(ScoreError, match="score nan of Raw"):
        clone(model).set_params(estimator=estimator).fit(bad, y[:9])
    assert (model.predict_interval(X) == before).all()


# Options and inputs


@pytest.mark.parametrize(
    "options",
    [
        {"cv": "loo"},
        {"calibration_size": 0.0},
        {"calibration_size": 1.0},
        {"calibration_size": "x"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused by `fit`, as scikit-learn wants it."""
    with pytest.raises(ParameterError, match="is invalid; cv must be"):
        VennAbersCalibratedClassifier(GaussianNB(), **options).fit(*data())


def test_one_class_is_none() -> None:
    """Labels of one class alone are refused."""
    X, _ = data()
    with pytest.raises(ParameterError, match="one class"):
        VennAbersCalibratedClassifier(GaussianNB()).fit(X, np.ones(300))


def test_a_class_of_one_observation_is_trained_on() -> None:
    """A class too small to be split is trained on, and keeps its column."""
    X, y = data()
    y = y.copy()
    y[7] = 5
    model = VennAbersCalibratedClassifier(GaussianNB(), calibration_size=0.9).fit(X, y)
    assert model.estimators_[0].classes_.tolist() == [0, 1, 5]
    assert model.predict_interval(X).shape == (300, 3, 2)


def test_frames_and_sparse_matrices() -> None:
    """Frames keep their names and sparse matrices stay sparse on the way to the estimator."""
    X, y = data()
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    dense = VennAbersCalibratedClassifier(LogisticRegression(), cv=3).fit(X, y)
    for given in (frame, sparse.csr_matrix(X)):
        model = VennAbersCalibratedClassifier(LogisticRegression(), cv=3).fit(given, y)
        model.partial_fit(given, y)
        assert model.n_features_in_ == 6
        assert model.predict_interval(given).shape == (300, 2, 2)
    framed = VennAbersCalibratedClassifier(LogisticRegression(), cv=3).fit(frame, y)
    assert framed.feature_names_in_.tolist() == [*"abcdef"]
    assert np.array_equal(framed.predict_interval(frame), dense.predict_interval(X))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("cv", ["split", 3])
def test_a_pickle_predicts_and_learns_alike(k: int, cv: Any) -> None:  # noqa: ANN401 - either
    """A pickled model goes on as the one it was made of."""
    X, y = data(k=k)
    model = VennAbersCalibratedClassifier(GaussianNB(), cv=cv).fit(X[:200], y[:200])
    restored = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    for each in (model, restored):
        each.partial_fit(X[200:], y[200:])
    assert (restored.predict_interval(X) == model.predict_interval(X)).all()


def test_without_scikit_learn_the_remedy_is_named() -> None:
    """Using the wrapper without scikit-learn raises an error with the pip command."""
    program = """
import sys
sys.modules["sklearn"] = None
from abers import MissingExtraError
try:
    from abers.sklearn import VennAbersCalibratedClassifier
except MissingExtraError as error:
    print(error)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    remedy = "this wrapper needs scikit-learn; install it: pip install 'abers[sklearn]'\n"
    assert said.stdout == remedy
