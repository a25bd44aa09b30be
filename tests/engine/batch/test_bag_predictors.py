"""The predictors that train: `abers.batch.bag_predictors` and `.scorers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.engine.cases import LABELS, SCORES
from tests.engine.oracle import Oracle
from tests.engine.validity import miscalibrated

from abers import InputError, LabelError, ParameterError, ScoreError, VennAbers
from abers.batch import SimplifiedVennAbers, TransductiveVennAbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

BOTH = pytest.mark.parametrize("predictor", [SimplifiedVennAbers, TransductiveVennAbers])


def fixed(_objects: NDArray[Any], _labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Ignore the bag: objects are scores."""
    return np.asarray


def by_means(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Score by the position between the mean objects of either label."""
    zero = objects[labels == 0].mean() if (labels == 0).any() else 0.0
    one = objects[labels == 1].mean() if (labels == 1).any() else 1.0
    return lambda asked: np.round(np.abs(asked - zero) - np.abs(asked - one), 9)


def logistic(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Train scikit-learn's logistic regression."""
    score: Callable[[Any], Any] = LogisticRegression().fit(objects, labels).decision_function
    return score


def tree(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Train scikit-learn's decision tree, which has many tied scores."""
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(objects, labels)
    return lambda asked: model.predict_proba(asked)[:, 1]


def data(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Make objects of two features, rounded, and their labels."""
    rng = np.random.default_rng(seed)
    objects = rng.normal(size=(n, 2)).round(1)
    return objects, (objects[:, 0] + rng.normal(size=n) > 0).astype(np.int64)


# Definitions


@given(st.lists(st.tuples(SCORES, LABELS), max_size=20), SCORES)
def test_with_a_fixed_scorer_both_are_ivap(bag: list[tuple[float, int]], query: float) -> None:
    """A scorer that ignores its training makes SVA and VA the inductive predictor."""
    scores, labels = [s for s, _ in bag], [y for _, y in bag]
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    expected = calibrator.predict_one(query)
    assert TransductiveVennAbers(fixed, scores, labels).predict_one(query) == expected
    assert SimplifiedVennAbers(fixed, scores, labels).predict_one(query) == expected


@pytest.mark.parametrize("scorer", [logistic, tree])
def test_full_predictor_obeys_the_definition(scorer: Any) -> None:  # noqa: ANN401
    """The pair is (g0(s0(x)), g1(s1(x))): trained, scored and fitted with the object, twice."""
    objects, labels = data(25)
    predictor = TransductiveVennAbers(scorer, objects, labels)
    queries, _ = data(6, seed=1)
    p0, p1 = predictor.predict_many(queries)
    for i, one in enumerate(queries):
        expected = []
        for y in (0, 1):
            bag, extended = np.vstack([objects, one]), np.append(labels, y)
            oracle, scores = Oracle(), np.asarray(scorer(bag, extended)(bag))
            for score, label in zip(scores.tolist(), extended.tolist(), strict=True):
                oracle.learn(score, label)
            expected.append(float(dict(oracle.fit())[scores[-1]]))
        assert [p0[i], p1[i]] == expected
        assert list(predictor.predict_one(one)) == expected
    assert len(predictor) == 25


@pytest.mark.parametrize("scorer", [logistic, tree])
def test_simplified_predictor_obeys_the_definition(scorer: Any) -> None:  # noqa: ANN401
    """The pair is the definition's, of the training scores and the score of the object."""
    objects, labels = data(25)
    predictor = SimplifiedVennAbers(scorer, objects, labels)
    queries, _ = data(6, seed=1)
    score, oracle = scorer(objects, labels), Oracle()
    for known, label in zip(np.asarray(score(objects)).tolist(), labels.tolist(), strict=True):
        oracle.learn(known, label)
    expected = [oracle.predict(float(s)) for s in score(queries)]
    p0, p1 = predictor.predict_many(queries)
    assert list(zip(p0.tolist(), p1.tolist(), strict=True)) == expected
    assert [tuple(predictor.predict_one(one)) for one in queries] == expected
    assert len(predictor) == 25


# Guarantees


def selected(predictor: Any, size: int, bag: int = 6, *, swap: bool = False) -> tuple[Any, Any]:  # noqa: ANN401
    """Select p_Y in independent draws of a bag and a test object, whose labels fall at the end."""
    rng = np.random.default_rng(11)
    objects = rng.integers(0, 6, (size, bag + 1)) / 5
    labels = (rng.random(objects.shape) < np.where(objects < 0.9, objects, 0.3)).astype(np.int64)
    p = np.empty(size)
    for i in range(size):
        pair = predictor(by_means, objects[i, :bag], labels[i, :bag]).predict_one(objects[i, bag])
        p[i] = pair[labels[i, bag] ^ swap]
    return p, labels[:, bag]


@pytest.mark.large(20_000, reference=3_000)
def test_full_predictor_is_calibrated(size: int) -> None:
    """With a scorer that learns from the bag, p_Y is calibrated in every bin."""
    assert miscalibrated(*selected(TransductiveVennAbers, size)) == []


@pytest.mark.large(4_000, reference=3_000)
def test_a_swapped_pair_is_found(size: int) -> None:
    """The check fails where p0 and p1 are swapped."""
    assert miscalibrated(*selected(TransductiveVennAbers, size, swap=True))


def lookup(objects: NDArray[Any], labels: NDArray[Any]) -> Callable[[Any], Any]:
    """Return for training objects their labels, and 2 to all others."""
    known = dict(zip(objects.tolist(), labels.tolist(), strict=True))
    return lambda asked: np.array([known.get(one, 2) for one in asked.tolist()])


@pytest.mark.large(4_000, reference=1_000)
def test_simplified_predictor_is_not_unbiased_in_the_large(size: int) -> None:
    """Proposition 2: with n = 20 the mean lower probability is .90, and P(Y = 1) is 1/2.

    It is k / (k + 1) with k ones in the bag; the full predictor, on the same, is right.
    """
    n, rng = 20, np.random.default_rng(2)
    labels = rng.integers(0, 2, (size, n + 1))
    objects = np.arange(n)
    lower = np.array(
        [SimplifiedVennAbers(lookup, objects, row[:n]).predict_one(n).p0 for row in labels]
    )
    ones = labels[:, :n].sum(axis=1)
    assert lower == pytest.approx(ones / (ones + 1))
    assert lower.mean() == pytest.approx(0.90, abs=0.005)
    assert labels[:, n].mean() == pytest.approx(0.5, abs=0.05)
    full = TransductiveVennAbers(lookup, objects, labels[0, :n]).predict_one(n)
    assert tuple(full) == (0.0, 1.0)


# Bad input


@BOTH
def test_one_class_only(predictor: Any) -> None:  # noqa: ANN401
    """A bag of one class, or none, leaves the other side open."""
    assert tuple(predictor(fixed, [0.1, 0.3], [1, 1]).predict_one(0.2)) == (0.5, 1.0)
    assert tuple(predictor(fixed, [], []).predict_one(0.2)) == (0.0, 1.0)
    assert [p.shape for p in predictor(fixed, [0.1], [1]).predict_many([])] == [(0,), (0,)]


@BOTH
@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        (lambda asked: np.full(len(asked), np.nan), ScoreError, "scorer's scores .* row 0"),
        (lambda asked: np.zeros(len(asked) + 1), ParameterError, "gave 3 scores for 2|4 scores"),
        (lambda asked: np.zeros((len(asked), 2)), ParameterError, "one-dimensional"),
    ],
)
def test_bad_scores_are_refused(
    predictor: Any,  # noqa: ANN401
    scores: Any,  # noqa: ANN401
    error: type[InputError],
    message: str,
) -> None:
    """A scorer that gives no finite score for each object is named."""
    with pytest.raises(error, match=message):
        predictor(lambda *_: scores, [0.1, 0.2], [0, 1]).predict_one(0.3)


@BOTH
@pytest.mark.parametrize(
    ("objects", "labels", "error"),
    [
        ([0.1, 0.2], [0, 2], LabelError),
        ([0.1, 0.2], [0], ParameterError),
        ([[0.1], [0.2, 0.3]], [0, 1], ParameterError),
        (0.1, [1], ParameterError),
    ],
)
def test_bad_bags_are_refused(
    predictor: Any,  # noqa: ANN401
    objects: Any,  # noqa: ANN401
    labels: Any,  # noqa: ANN401
    error: type[InputError],
) -> None:
    """Objects of different shapes, labels that do not fit: refused before training."""
    with pytest.raises(error):
        predictor(fixed, objects, labels)


def test_an_object_of_another_shape_is_refused() -> None:
    """The object to be predicted has the shape of the others."""
    with pytest.raises(ParameterError, match="shape"):
        TransductiveVennAbers(fixed, [[0.1, 0.2]], [1]).predict_one([0.1])
