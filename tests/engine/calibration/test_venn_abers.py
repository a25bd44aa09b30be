"""What `abers.VennAbers` promises: the definition and every identity that follows from it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression
from tests.engine.cases import BEYOND, EXTREMES, LABELS, SCORES, WORKED, observations
from tests.engine.oracle import Oracle

from abers import IsotonicFit, NotHeldError, VennAbers, VennInterval
from abers.arrays import LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bag = list[tuple[float, int, float]]


def learned(bag: Bag) -> VennAbers:
    """Learn a bag, one observation at a time."""
    calibrator = VennAbers()
    for score, label, weight in bag:
        calibrator.learn_one(score, label, weight=weight)
    return calibrator


def oracle(bag: Bag) -> Oracle:
    """Return the oracle of a bag."""
    exact = Oracle()
    for observation in bag:
        exact.learn(*observation)
    return exact


def queries(bag: Bag) -> list[float]:
    """Scores at, between and beyond those of a bag."""
    scores = sorted({score for score, _, _ in bag})
    between = [a / 2 + b / 2 for a, b in pairwise(scores)]
    return [*scores, *between, -BEYOND, BEYOND, 0.3]


def fitted(hull: IsotonicFit, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Value of the fit at scores that are kept."""
    return hull.value[np.searchsorted(hull.upper, scores)]


# Predictions


@pytest.mark.parametrize(
    ("score", "p0", "p1"), [(0.2, 0.0, 1 / 2), (0.5, 1 / 2, 1.0), (0.9, 2 / 3, 1.0)]
)
def test_worked_example(score: float, p0: float, p1: float) -> None:
    """Scores .1 .4 .35 .8 with labels 0 1 0 1 give (0, 1/2), (1/2, 1) and (2/3, 1)."""
    calibrator = VennAbers()
    calibrator.learn_many(*WORKED)
    assert calibrator.predict_one(score) == VennInterval(p0, p1)


def test_empty_bag_knows_nothing() -> None:
    """With nothing kept the prediction is (0, 1) and there is no fit."""
    calibrator = VennAbers()
    assert calibrator.predict_one(0.5) == (0.0, 1.0)
    assert calibrator.isotonic(0.5) is None
    assert len(calibrator) == 0
    assert all(len(column) == 0 for column in calibrator.hull())


@given(observations(), st.floats(2.0**-30, 100.0))
def test_predictions_are_the_definition(bag: Bag, weight: float) -> None:
    """p0 and p1 are the doubles nearest to the definition in fractions, for any query weight."""
    calibrator, exact = learned(bag), oracle(bag)
    for score in queries(bag):
        assert calibrator.predict_one(score, weight=weight) == exact.predict(score, weight)


@given(observations())
def test_p0_is_below_the_fit_and_p1_above(bag: Bag) -> None:
    """The isotonic fit of the bag lies between p0 and p1."""
    calibrator = learned(bag)
    for score, fit in oracle(bag).fit():
        p0, p1 = calibrator.predict_one(score)
        assert p0 <= float(fit) <= p1


@given(observations())
def test_both_probabilities_grow_with_the_score(bag: Bag) -> None:
    """p0 and p1 never fall when the score grows."""
    p0, p1 = learned(bag).predict_many(sorted(queries(bag)))
    assert (np.diff(p0) >= 0).all()
    assert (np.diff(p1) >= 0).all()
    assert (p0 <= p1).all()


@given(observations(weighted=False))
def test_bounds_of_unit_weights(bag: Bag) -> None:
    """With n observations of weight 1, p1 >= 1/(n+1) and p0 <= n/(n+1), reached by equal labels."""
    n = len(bag)
    p0, p1 = learned(bag).predict_many(queries(bag))
    assert (p1 >= 1 / (n + 1)).all()
    assert (p0 <= n / (n + 1)).all()
    none = learned([(score, 0, 1.0) for score, _, _ in bag])
    every = learned([(score, 1, 1.0) for score, _, _ in bag])
    assert none.predict_one(-BEYOND) == (0.0, 1 / (n + 1))
    assert every.predict_one(BEYOND) == (n / (n + 1), 1.0)


@given(observations())
def test_beyond_every_score(bag: Bag) -> None:
    """Above every score p1 is 1, below every score p0 is 0."""
    calibrator = learned(bag)
    assert calibrator.predict_one(BEYOND).p1 == 1.0
    assert calibrator.predict_one(-BEYOND).p0 == 0.0


@given(observations(max_size=12), SCORES, st.sampled_from((1.0, 0.1, 2.0**-30, 5.0)))
def test_prediction_is_the_fit_of_the_extended_bag(bag: Bag, score: float, weight: float) -> None:
    """p_y is the isotonic fit at the query once the query has been learned with label y."""
    calibrator = learned(bag)
    interval = calibrator.predict_one(score, weight=weight)
    for label in (0, 1):
        extended = learned([*bag, (score, label, weight)])
        assert extended.isotonic(score) == interval[label]


# Ties and order


def test_ties_are_pooled() -> None:
    """Observations of one score count as one group whose labels never split."""
    calibrator = VennAbers()
    calibrator.learn_many([0.5, 0.5, 0.5, 0.7], [0, 1, 1, 1])
    assert calibrator.predict_one(0.5) == (2 / 4, 3 / 4)
    assert calibrator.hull().weight.tolist() == [3.0, 1.0]


@given(st.lists(LABELS, max_size=20))
def test_all_scores_equal(labels: list[int]) -> None:
    """With one score the pair is (k / (n+1), (k+1) / (n+1)) there."""
    calibrator = VennAbers()
    calibrator.learn_many([0.5] * len(labels), labels)
    n, k = len(labels), sum(labels)
    assert calibrator.predict_one(0.5) == (k / (n + 1), (k + 1) / (n + 1))


def test_negative_zero_is_zero() -> None:
    """The scores -0.0 and 0.0 are one score, in every call."""
    calibrator = VennAbers()
    calibrator.learn_one(-0.0, 1)
    calibrator.learn_many([0.0, -0.0], [0, 1])
    assert calibrator.predict_one(-0.0) == calibrator.predict_one(0.0) == (2 / 4, 3 / 4)
    assert not np.signbit(calibrator.hull().lower).any()
    only = VennAbers()
    only.learn_many([-0.0], [1])
    assert not np.signbit(only.hull().lower).any()
    calibrator.remove_one(0.0, 1)
    calibrator.remove_one(-0.0, 0)
    other = VennAbers()
    other.learn_one(0.0, 1)
    assert calibrator.state_bytes() == other.state_bytes()


def test_neighbouring_doubles_are_different_scores() -> None:
    """Two scores one bit apart are no tie, at either end of the doubles."""
    for score in EXTREMES:
        calibrator = VennAbers()
        above = float(np.nextafter(score, 2.0))
        calibrator.learn_many([score, above], [0, 1])
        assert len(calibrator.hull().value) == 2 - (score > above)


@given(st.data(), observations())
def test_order_of_arrival_never_matters(data: st.DataObject, bag: Bag) -> None:
    """Any order of the same observations gives the same bytes and the same predictions."""
    shuffled = learned(data.draw(st.permutations(bag)))
    calibrator = learned(bag)
    assert shuffled.state_bytes() == calibrator.state_bytes()
    assert [c.tolist() for c in shuffled.predict_many(queries(bag))] == [
        c.tolist() for c in calibrator.predict_many(queries(bag))
    ]


# Removing


@given(st.data(), observations(), observations(max_size=10))
def test_insert_then_remove_restores(data: st.DataObject, bag: Bag, more: Bag) -> None:
    """Removing what was learned, in any order, restores every answer and the bytes."""
    calibrator = learned(bag)
    before = calibrator.state_bytes()
    for score, label, weight in more:
        calibrator.learn_one(score, label, weight=weight)
    for score, label, weight in data.draw(st.permutations(more)):
        calibrator.remove_one(score, label, weight=weight)
    assert calibrator.state_bytes() == before
    assert len(calibrator) == len(bag)
    exact = oracle(bag)
    for score in queries(more):
        assert calibrator.predict_one(score) == exact.predict(score)


def test_floating_sums_leave_no_ghost() -> None:
    """Weights .1, .2 and .3 at one score leave nothing behind when they are removed again."""
    calibrator = VennAbers()
    for weight in (0.1, 0.2, 0.3):
        calibrator.learn_one(0.5, 1, weight=weight)
    for weight in (0.1, 0.2, 0.3):
        calibrator.remove_one(0.5, 1, weight=weight)
    assert calibrator.state_bytes() == VennAbers().state_bytes()


def test_removing_another_split_of_the_same_weight() -> None:
    """Weights are pooled, so 3 + 1 can be removed as 2 + 2, but not more often than learned."""
    calibrator = VennAbers()
    calibrator.learn_one(0.5, 1, weight=3.0)
    calibrator.learn_one(0.5, 1, weight=1.0)
    calibrator.remove_one(0.5, 1, weight=2.0)
    before = calibrator.state_bytes()
    with pytest.raises(NotHeldError):
        calibrator.remove_one(0.5, 1, weight=1.0)
    assert calibrator.state_bytes() == before
    calibrator.remove_one(0.5, 1, weight=2.0)
    assert calibrator.state_bytes() == VennAbers().state_bytes()


@pytest.mark.parametrize(
    ("score", "label", "weight"), [(0.2, 1, 1.0), (0.5, 0, 1.0), (0.5, 1, 1.5)]
)
def test_removing_what_is_not_held(score: float, label: int, weight: float) -> None:
    """Another score, label or weight than was learned is refused by name, and nothing changes."""
    calibrator = VennAbers()
    calibrator.learn_many([0.5, 0.7], [1, 0])
    before = calibrator.state_bytes()
    with pytest.raises(
        NotHeldError, match=f"weight {weight:g} of score {score} with label {label}"
    ):
        calibrator.remove_one(score, label, weight=weight)
    assert calibrator.state_bytes() == before
    assert len(calibrator) == 2


# Leaving one out


@given(observations())
def test_leave_one_out(bag: Bag) -> None:
    """Without observation i, p_{y_i} at its score is the fit of the whole bag there."""
    calibrator = learned(bag)
    hull = calibrator.hull()
    for score, label, weight in bag:
        calibrator.remove_one(score, label, weight=weight)
        left_out = calibrator.predict_one(score, weight=weight)[label]
        calibrator.learn_one(score, label, weight=weight)
        assert left_out == fitted(hull, np.array([score + 0.0]))[0]


def bag_of(kind: str, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores and labels of a large bag."""
    rng = np.random.default_rng(7)
    scores = rng.random(n)
    if kind == "ties":
        scores = np.round(scores, 2)
    rates = np.full(n, 0.5) if kind == "noise" else scores**2
    return scores, (rng.random(n) < rates).astype(np.int64)


@pytest.mark.large(1_000_000, reference=700)
@pytest.mark.parametrize("kind", ["smooth", "noise", "ties"])
def test_leave_one_out_at_size(size: int, kind: str) -> None:
    """The leave-one-out identity holds bit for bit in a large bag, no oracle needed."""
    scores, labels = bag_of(kind, size)
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    before = calibrator.state_bytes()
    hull = calibrator.hull()
    row = np.repeat(np.random.default_rng(8).permutation(size)[:200_000], 3)
    steps = np.tile([REMOVE, PREDICT, LEARN], len(row) // 3)
    p0, p1 = calibrator.run(steps, scores[row], labels[row])
    out = row[1::3]
    assert (np.where(labels[out] == 1, p1[1::3], p0[1::3]) == fitted(hull, scores[out])).all()
    assert calibrator.state_bytes() == before


@pytest.mark.large(100_000, reference=500)
def test_leave_one_out_at_size_with_weights(size: int) -> None:
    """The leave-one-out identity holds bit for bit with arbitrary weights, too."""
    scores, labels = bag_of("smooth", size)
    weights = np.random.default_rng(9).exponential(1.0, size) + 1e-6
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels, weights=weights)
    hull = calibrator.hull()
    row = np.repeat(np.random.default_rng(8).permutation(size)[:20_000], 3)
    steps = np.tile([REMOVE, PREDICT, LEARN], len(row) // 3)
    p0, p1 = calibrator.run(steps, scores[row], labels[row], weights=weights[row])
    out = row[1::3]
    assert (np.where(labels[out] == 1, p1[1::3], p0[1::3]) == fitted(hull, scores[out])).all()


@pytest.mark.large(300_000, reference=800)
@pytest.mark.parametrize("order", ["ascending", "descending", "inwards"])
def test_order_of_arrival_at_size(size: int, order: str) -> None:
    """A large bag in a hostile order has the fit and the bytes of the same bag in random order."""
    scores, labels = bag_of("smooth", size)
    ascending = np.argsort(scores, kind="stable")
    orders = {
        "ascending": ascending,
        "descending": ascending[::-1],
        "inwards": np.stack([ascending, ascending[::-1]], axis=1).ravel()[:size],
    }
    calibrator, hostile = VennAbers(), VennAbers()
    calibrator.learn_many(scores, labels)
    hostile.learn_many(scores[orders[order]], labels[orders[order]])
    assert hostile.state_bytes() == calibrator.state_bytes()
    some = np.random.default_rng(3).random(200)
    for ours, theirs in zip(hostile.predict_many(some), calibrator.predict_many(some), strict=True):
        assert (ours == theirs).all()


# The fit


@given(observations())
def test_hull_is_the_isotonic_regression(bag: Bag) -> None:
    """The blocks cover every score kept, once, with the fitted value of the definition."""
    hull = learned(bag).hull()
    fit = oracle(bag).fit()
    assert (hull.lower <= hull.upper).all()
    assert (hull.upper[:-1] < hull.lower[1:]).all()
    assert (np.diff(hull.value) > 0).all()
    assert hull.positives / hull.weight == pytest.approx(hull.value, rel=1e-15)
    ends = {score for score, _ in fit}
    assert ends.issuperset(hull.lower.tolist())
    assert ends.issuperset(hull.upper.tolist())
    for score, value in fit:
        (block,) = np.flatnonzero((hull.lower <= score) & (score <= hull.upper))
        assert hull.value[block] == float(value)


@given(observations())
def test_hull_keeps_all_weight(bag: Bag) -> None:
    """The weights of the blocks add up to those of the bag."""
    hull = learned(bag).hull()
    assert sum(hull.weight) == pytest.approx(sum(w for _, _, w in bag), rel=1e-8, abs=1e-8)
    assert sum(hull.positives) == pytest.approx(sum(w * y for _, y, w in bag), rel=1e-8, abs=1e-8)


@pytest.mark.large(200_000, reference=2_000)
def test_hull_against_scipy(size: int) -> None:
    """The fit is scipy's isotonic regression, with the same blocks."""
    scores, labels = bag_of("smooth", size)
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    hull = calibrator.hull()
    order = np.argsort(scores)
    theirs = isotonic_regression(labels[order])
    assert fitted(hull, scores[order]) == pytest.approx(theirs.x, abs=1e-12)
    assert hull.weight.tolist() == theirs.weights.tolist()


@given(observations(), st.lists(SCORES, max_size=5))
def test_isotonic_is_the_definition(bag: Bag, more: list[float]) -> None:
    """`isotonic` is the exact fit at a score kept, linear between blocks, constant outside."""
    calibrator, exact = learned(bag), oracle(bag)
    held = {score for score, _, _ in bag}
    for score in [*queries(bag), *more]:
        value, expected = calibrator.isotonic(score), exact.isotonic(score)
        assert (value is None) == (expected is None)
        if expected is not None:
            slack = 0.0 if score in held else 1e-12
            assert value == pytest.approx(float(expected), rel=slack, abs=slack)


def test_isotonic_against_sklearn() -> None:
    """Between and outside the scores `isotonic` is scikit-learn's clipped isotonic regression."""
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 40, 300) / 40
    labels = (rng.random(300) < scores).astype(int)
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    asked = rng.random(500) * 1.4 - 0.2
    ours = [calibrator.isotonic(score) for score in asked.tolist()]
    assert ours == pytest.approx(theirs.predict(asked), abs=1e-9)


# Weights


@given(observations(max_size=8, weighted=False), st.integers(2, 5), SCORES)
def test_a_weight_is_a_number_of_copies(bag: Bag, copies: int, score: float) -> None:
    """Learning weight k predicts like learning weight 1 k times."""
    once = learned([(s, label, float(copies)) for s, label, _ in bag])
    often = learned(bag * copies)
    assert once.predict_one(score) == often.predict_one(score)


@given(observations(), st.integers(-3, 8), SCORES)
def test_only_ratios_of_weights_matter(bag: Bag, power: int, score: float) -> None:
    """All weights, the query's too, times a power of two give the same prediction."""
    bag = [(s, label, max(round(weight), 1) / 8) for s, label, weight in bag]
    scaled = learned([(s, label, weight * 2.0**power) for s, label, weight in bag])
    assert scaled.predict_one(score, weight=2.0**power) == learned(bag).predict_one(score)


@pytest.mark.parametrize(
    ("weight", "rounded"),
    [(1.4999 * 2.0**-30, 2.0**-30), (2.5 * 2.0**-30, 2.0**-29), (0.7, round(0.7 * 2**30) / 2**30)],
)
def test_weights_are_rounded_to_fixed_point(weight: float, rounded: float) -> None:
    """A weight counts as the nearest multiple of 2^-30, half to even."""
    alone, many = VennAbers(), VennAbers()
    alone.learn_one(0.5, 1, weight=weight)
    many.learn_many([0.5], [1], weights=[weight])
    for calibrator in (alone, many):
        assert calibrator.hull().weight.tolist() == [rounded]
        calibrator.remove_one(0.5, 1, weight=rounded)
        assert len(calibrator) == 0


def test_predictions_stay_exact_at_the_largest_weights() -> None:
    """With a total close to 2^33 and a heavy query the ratio is still correctly rounded."""
    bag = [(0.1, 1, 2.0**32 - 2.0), (0.2, 0, 2.0**-30), (0.3, 1, 2.0**31), (0.4, 0, 2.0**30)]
    calibrator, exact = learned(bag), oracle(bag)
    for score in queries(bag):
        for weight in (2.0**-30, 1.0, 2.0**32 - 1.0):
            assert calibrator.predict_one(score, weight=weight) == exact.predict(score, weight)


def test_repr_tells_rule_and_size() -> None:
    """The representation names the rule of forgetting and the number of observations."""
    calibrator = VennAbers(window=5)
    calibrator.learn_one(0.5, 1)
    assert repr(calibrator) == "<VennAbers(window=5) of 1 observations>"
    assert repr(VennAbers()) == "<VennAbers() of 0 observations>"


def test_an_empty_calibrator_is_true() -> None:
    """`calibrator or default` keeps a calibrator that holds nothing yet."""
    assert VennAbers(window=5)
    assert len(VennAbers()) == 0
