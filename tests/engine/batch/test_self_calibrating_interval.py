"""Self-calibrating intervals, `abers.batch.self_calibrating_interval`: by definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from tests.oracles.conformal import exact, isotonic_mean, self_calibrated

from abers import LabelError, ParameterError, StateError
from abers.backends import core
from abers.batch import SelfCalibratingInterval
from abers.reference import isotonic_blocks
from abers.regression import IVAPR
from abers.serialization import pack, seal

HALVES = st.integers(-4, 8).map(lambda k: k / 2.0)
SCORES = st.integers(0, 4).map(float)
QUERIES = st.integers(-1, 9).map(lambda k: k / 2.0)
LEVELS = st.sampled_from((0.2, 0.5, 0.6, 0.8, 0.9))
ROWS = st.lists(st.tuples(SCORES, HALVES), max_size=8)
STEP = Fraction(1, 10**9)
FAR = 1e6


def decimal(level: float) -> Fraction:
    """Return a level as it is written."""
    return Fraction(str(level))


def taught(rows: list[tuple[float, float]], level: float, **options: Any) -> Any:  # noqa: ANN401
    """Make a calibrator that learned rows of score and label."""
    calibrator = SelfCalibratingInterval(level, **options)
    for score, label in rows:
        calibrator.learn_one(score, label)
    return calibrator


# Answers


@given(ROWS, LEVELS, QUERIES)
def test_an_interval_is_the_hull_of_the_labels_that_conform(
    rows: list[tuple[float, float]], level: float, query: float
) -> None:
    """No label that conforms is outside, and there is one at each end or as near as you like."""
    low, high, _ = taught(rows, level).predict_one(query)
    pairs = exact(rows)

    def conforms(label: Fraction) -> bool:
        return self_calibrated(pairs, Fraction(query), label, decimal(level))

    for end, inwards in ((low, 1), (high, -1)):
        if np.isfinite(end):
            at = Fraction(end)
            assert conforms(at) or conforms(at + inwards * STEP)
            outside = [at - inwards * far for far in (1000 * STEP, Fraction(1, 4), Fraction(3))]
            assert not any(map(conforms, outside))
        else:
            assert conforms(Fraction(-inwards * FAR))
    for label in {label for _, label in rows}:
        assert low <= label <= high or not conforms(Fraction(label))


@given(ROWS.filter(bool), QUERIES)
def test_the_mean_is_its_own_fit_and_inside(rows: list[tuple[float, float]], query: float) -> None:
    """A query with the mean as its label has that mean."""
    found = taught(rows, 0.8).predict_one(query)
    fitted = isotonic_mean([*exact(rows), (Fraction(query), Fraction(found.mean))], Fraction(query))
    assert float(fitted) == pytest.approx(found.mean, abs=1e-12)
    assert found.covers(found.mean)


def test_equal_labels_leave_one_label() -> None:
    """Where all labels are equal, and their blocks one set, no other label conforms."""
    rows = [(0.0, 1.0), (2.0, 1.0), (3.0, 1.0)]
    assert taught(rows, 0.5).predict_one(2.0) == (1.0, 1.0, 1.0)
    assert taught(rows, 0.8).predict_one(2.0) == (-np.inf, np.inf, 1.0)


def test_without_labels_every_label_conforms() -> None:
    """An empty calibrator answers with the whole line and no mean."""
    low, high, mean = SelfCalibratingInterval(0.9).predict_one(1.0)
    assert (low, high) == (-np.inf, np.inf)
    assert np.isnan(mean)


@pytest.mark.parametrize("seed", range(3))
def test_many_labels_are_searched_as_well_as_few(seed: int) -> None:
    """Among 200 labels membership is that of another implementation of the isotonic mean."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 60, 200) / 4.0
    labels = np.round(scores + rng.normal(size=200) * 3.0)
    calibrator = SelfCalibratingInterval(0.8)
    calibrator.learn_many(scores, labels)
    query = 7.3
    found = calibrator.predict_one(query)
    assert np.isfinite([found.low, found.high]).all()
    for label in np.linspace(found.low - 4.0, found.high + 4.0, 97).tolist():
        x, y = np.append(scores, query), np.append(labels, label)
        fit = IsotonicRegression().fit(x, y).predict(x)
        alike = np.abs(fit - fit[-1]) < 1e-9
        residuals = np.sort(np.abs(y - fit[-1])[alike])
        limit = residuals[int(np.ceil(0.8 * alike.sum() - 1e-9)) - 1]
        assert found.covers(label) or abs(label - fit[-1]) > limit - 1e-9


@given(st.lists(st.tuples(SCORES, st.floats(-1e9, 1e9)), max_size=30))
def test_blocks_are_those_of_the_definition(rows: list[tuple[float, float]]) -> None:
    """The core has the blocks of the reference to the bit, and their means ascend."""
    scores, labels = np.array(sorted(rows), float).reshape(-1, 2).T.copy()
    found = []
    for blocks in (core.isotonic_blocks, isotonic_blocks):
        starts, sums = np.zeros(len(rows), np.int64), np.zeros(len(rows))
        count = blocks(scores, labels, starts, sums)
        found.append((count, starts[:count].tolist(), sums[:count].tolist()))
    assert found[0] == found[1]
    count, starts, sums = found[0]
    means = np.array(sums) / np.diff([*starts, len(rows)])
    assert (np.diff(means) >= 0.0).all()
    assert starts[:1] == [0][:count]


# Guarantee


@given(st.lists(st.tuples(SCORES, HALVES), min_size=1, max_size=9), LEVELS)
def test_left_out_labels_are_covered_given_the_mean(
    rows: list[tuple[float, float]], level: float
) -> None:
    """Of the rows of each mean of the full fit at least the share `level` is covered."""
    pairs = exact(rows)
    covered: dict[Fraction, list[bool]] = {}
    for i, (score, label) in enumerate(rows):
        others = taught(rows[:i] + rows[i + 1 :], level)
        inside = others.predict_one(score).covers(label)
        covered.setdefault(isotonic_mean(pairs, Fraction(score)), []).append(inside)
    for value, each in covered.items():
        assert sum(each) >= decimal(level) * len(each), value


# Forgetting, refusing, saving


def test_what_is_forgotten_leaves_no_trace() -> None:
    """A window and an age answer as a calibrator that never saw what they forgot."""
    rng = np.random.default_rng(4)
    rows = list(zip(rng.integers(0, 6, 40).tolist(), rng.normal(size=40).tolist(), strict=True))
    window, aging = SelfCalibratingInterval(0.5, window=12), SelfCalibratingInterval(0.5, None, 6.0)
    for time, (score, label) in enumerate(rows):
        window.predict_one(2.0)
        window.learn_one(score, label)
        aging.predict_one(2.0)
        aging.learn_one(score, label, time=time * 0.5)
    assert window.predict_one(2.0) == taught(rows[-12:], 0.5).predict_one(2.0)
    assert aging.predict_one(2.0) == taught(rows[-13:], 0.5).predict_one(2.0)
    assert aging.predict_one(2.0, time=20.5) == taught(rows[-11:], 0.5).predict_one(2.0)


def test_options_are_checked() -> None:
    """A level is inside (0, 1), and weights are refused."""
    with pytest.raises(ParameterError, match="level"):
        SelfCalibratingInterval(0.0)
    with pytest.raises(ParameterError, match="takes no weights"):
        SelfCalibratingInterval(0.5).learn_one(1.0, 2.0, weight=2.0)


def test_labels_whose_sums_are_infinite_are_refused() -> None:
    """A label beyond the range is refused when it comes, and in what was saved."""
    with pytest.raises(LabelError, match="scale labels down"):
        SelfCalibratingInterval(0.5).learn_one(1.0, 1e300)
    far = IVAPR()
    far.learn_one(1.0, 1e300)
    with pytest.raises(StateError, match="labels"):
        SelfCalibratingInterval.from_bytes(
            seal(b"abersSC\x01", pack([np.array([0.5]).tobytes(), far.state_bytes()]))
        )
    near = SelfCalibratingInterval(0.5)
    near.learn_many([1.0, 1.0, 2.0, 3.0], [-1e280, 1e280, 1e280, -1e280])
    assert near.predict_one(1.0).covers(0.0)


def test_a_saved_half_life_is_refused() -> None:
    """A set whose weights decay is no state of it."""
    pieces = [np.array([0.5]).tobytes(), IVAPR(half_life=2.0).state_bytes()]
    with pytest.raises(StateError, match="half-life"):
        SelfCalibratingInterval.from_bytes(seal(b"abersSC\x01", pack(pieces)))
