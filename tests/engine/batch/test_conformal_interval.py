"""Intervals around predictions, `abers.batch.conformal_interval`: by definition, in fractions."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.conformal import exact, isotonic_quantile, within

from abers import (
    ForgettingError,
    InputError,
    LabelError,
    NotHeldError,
    ParameterError,
    ScoreError,
    StateError,
    WeightError,
)
from abers.batch import ConformalInterval
from abers.regression import IVAPR
from abers.serialization import pack, seal

HALVES = st.integers(-4, 8).map(lambda k: k / 2.0)
LEVELS = st.sampled_from((0.1, 0.25, 0.5, 0.8, 0.9))
ROWS = st.lists(st.tuples(HALVES, st.integers(0, 3).map(float), HALVES), max_size=7)
FLOATS = st.floats(-1e6, 1e6)
FAR = 1e9


def decimal(level: float) -> Fraction:
    """Return a level as it is written."""
    return Fraction(str(level))


def taught(rows: list[tuple[float, float, float]], level: float, **options: Any) -> Any:  # noqa: ANN401
    """Make a calibrator that learned rows of prediction, difficulty and label."""
    calibrator = ConformalInterval(level, **options)
    for prediction, difficulty, label in rows:
        calibrator.learn_one((prediction, difficulty), label)
    return calibrator


def errors(rows: list[tuple[float, float, float]]) -> Any:  # noqa: ANN401
    """Return difficulties and absolute errors as fractions."""
    return exact([(difficulty, abs(y - prediction)) for prediction, difficulty, y in rows])


def near(low: float, high: float, pairs: Any) -> set[float]:  # noqa: ANN401
    """Return labels with an error that was seen, those around them, and two far away."""
    seen = {0.0, *(float(error) for _, error in pairs)}
    ends = {end for error in seen for end in (low - error, high + error)}
    return {end + step for end in ends for step in (-0.25, 0.0, 0.25)} | {-FAR, FAR}


# Answers


@given(ROWS, LEVELS, HALVES, st.integers(-1, 7).map(lambda k: k / 2.0))
def test_an_interval_has_the_labels_that_conform(
    rows: list[tuple[float, float, float]], level: float, prediction: float, difficulty: float
) -> None:
    """A label is inside if and only if its error is at most the quantile fitted with it."""
    interval = taught(rows, level).predict_one((prediction, difficulty))
    pairs, at = errors(rows), Fraction(difficulty)
    for label in near(prediction, prediction, pairs):
        error = abs(Fraction(label) - Fraction(prediction))
        assert interval.covers(label) == within(pairs, at, error, decimal(level))


@given(ROWS, LEVELS, HALVES, st.integers(0, 4).map(lambda k: k / 2.0))
def test_two_quantiles_move_by_one_margin(
    rows: list[tuple[float, float, float]], level: float, low: float, width: float
) -> None:
    """With quantiles the error is negative between them, and the interval may be empty."""
    calibrator = ConformalInterval(level, score="cqr")
    for lower, wide, label in rows:
        calibrator.learn_one((lower, lower + wide), label)
    pairs = exact([(wide, max(lower - y, y - lower - wide)) for lower, wide, y in rows])
    interval = calibrator.predict_one((low, low + width))
    for label in near(low, low + width, pairs):
        error = max(Fraction(low) - Fraction(label), Fraction(label) - Fraction(low + width))
        assert interval.covers(label) == within(pairs, Fraction(width), error, decimal(level))


@given(
    st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=5),
    FLOATS,
    st.sampled_from((-1.0, 1.0)),
)
def test_a_label_with_an_error_as_rounded_is_inside(
    rows: list[tuple[float, float]], prediction: float, side: float
) -> None:
    """A label at the end is covered, however the sum of prediction and margin is rounded."""
    calibrator = ConformalInterval(0.5)
    calibrator.learn_many([(p, 0.0) for p, _ in rows], [y for _, y in rows])
    margins = sorted(abs(y - p) for p, y in rows)
    inside = [m for k, m in enumerate(margins) if 2 * (k + 1) >= len(rows) + 1]
    interval = calibrator.predict_one((prediction, 0.0))
    if not inside:
        assert interval == (-np.inf, np.inf)
        return
    label = prediction + side * inside[0]
    for beside in (label, np.nextafter(label, np.inf), np.nextafter(label, -np.inf)):
        if abs(beside - prediction) <= inside[0]:
            assert interval.covers(float(beside))
    assert interval.high - interval.low <= 2.0 * inside[0] + 4.0 * np.spacing(abs(label)) + 1e-9


def test_ends_are_not_moved_where_numbers_are_exact() -> None:
    """Prediction and margin that add up exactly give their sum."""
    calibrator = taught([(4.0, 1.0, 4.5), (7.0, 1.0, 6.0), (5.0, 2.0, 8.0)], 0.5)
    assert calibrator.predict_one((6.0, 1.0)) == (5.0, 7.0)
    assert calibrator.predict_one((-3.0, 1.0)) == (-4.0, -2.0)


def test_the_margin_is_a_quantile_of_the_band_of_ivapr() -> None:
    """The same errors in IVAPR have the margin as the largest quantile of the level."""
    rng = np.random.default_rng(3)
    difficulties, labels = rng.random(300), rng.normal(size=300)
    calibrator, ivapr = ConformalInterval(0.8), IVAPR()
    calibrator.learn_many(np.stack([np.zeros(300), difficulties], axis=1), labels)
    ivapr.learn_many(difficulties, np.abs(labels))
    asked = np.linspace(-0.1, 1.1, 30)
    found = calibrator.predict_many(np.stack([np.zeros(30), asked], axis=1))
    assert np.array_equal(found.high, ivapr.quantiles_many(asked, [0.8]).high[:, 0])
    assert np.array_equal(found.low, -found.high)


def test_without_a_difficulty_it_is_the_prediction() -> None:
    """A number is a prediction that is its own difficulty; two quantiles have their distance."""
    bare, whole = ConformalInterval(0.5), ConformalInterval(0.5)
    bare.learn_many([1.0, 2.0], [1.5, 4.0])
    whole.learn_many([(1.0, 1.0), (2.0, 2.0)], [1.5, 4.0])
    assert bare == whole
    assert bare.predict_one(1.5) == whole.predict_one((1.5, 1.5))
    bare, whole = (ConformalInterval(0.5, score="cqr") for _ in range(2))
    bare.learn_one((1.0, 3.5), 1.5)
    whole.learn_one((1.0, 3.5, 2.5), 1.5)
    assert bare == whole


# Guarantee


@given(
    st.lists(st.tuples(HALVES, st.integers(0, 3).map(float), HALVES), min_size=1, max_size=8),
    LEVELS,
)
def test_left_out_labels_are_covered_in_each_level_set(
    rows: list[tuple[float, float, float]], level: float
) -> None:
    """Of the rows of each fitted quantile at least the share `level` is covered without itself."""
    pairs = errors(rows)
    covered: dict[Fraction, list[bool]] = {}
    for i, (prediction, difficulty, label) in enumerate(rows):
        others = taught(rows[:i] + rows[i + 1 :], level)
        fitted = isotonic_quantile(pairs, Fraction(difficulty), decimal(level))
        inside = others.predict_one((prediction, difficulty)).covers(label)
        covered.setdefault(fitted, []).append(inside)
    for value, each in covered.items():
        assert sum(each) >= decimal(level) * len(each), value


# Forgetting, removing, refusing


def test_removal_takes_away_an_error_at_a_difficulty() -> None:
    """What was learned can be removed; what was not is refused, one by one and in a batch."""
    calibrator = taught([(1.0, 2.0, 4.0)], 0.5)
    before = calibrator.to_bytes()
    calibrator.learn_one((5.0, 1.0), 7.0)
    calibrator.remove_one((5.0, 1.0), 7.0)
    assert calibrator.to_bytes() == before
    with pytest.raises(NotHeldError, match="with label 9"):
        calibrator.remove_one((5.0, 1.0), 9.0)
    with pytest.raises(NotHeldError, match=r"row 1: .*\[5.0, 5.0, 1.0\] with label 9"):
        calibrator.run([1, 2], [(5.0, 1.0), (5.0, 1.0)], [7.0, 9.0])
    assert calibrator.to_bytes() == before
    with pytest.raises(ForgettingError):
        ConformalInterval(0.5, window=3).remove_one((5.0, 1.0), 7.0)


def test_a_late_label_is_paired_with_its_prediction() -> None:
    """Labels that come in another order give the same state."""
    rows = [(1.0, 2.0, 4.0), (2.0, 1.0, 2.5), (7.0, 3.0, 2.0)]
    assert taught(rows, 0.5) == taught(rows[::-1], 0.5)
    late = ConformalInterval(0.5, max_age=10.0)
    late.learn_one((1.0, 2.0), 4.0, time=100.0)
    late.learn_one((1.0, 2.0), 4.0, time=80.0)
    assert (len(late), late.late) == (1, 1)


@pytest.mark.parametrize(
    ("score", "kind", "error", "says"),
    [
        ((1.0, 2.0, 3.0), "absolute", ScoreError, r"\(prediction, difficulty\)"),
        (1.0, "cqr", ScoreError, r"\(low, high, difficulty\)"),
        ((2.0, 1.0), "cqr", ScoreError, "low 2.0 is above high 1.0; sort"),
        ((-1e308, 1e308), "cqr", ScoreError, "not a finite number"),
        ((1.0, np.nan), "absolute", ScoreError, "score nan"),
        ((1.0, None), "absolute", ScoreError, "score None"),
        ((1.0, "x"), "absolute", ScoreError, "row 0: score 'x'"),
        ((-1e308, 1.0), "absolute", LabelError, "further from its prediction"),
    ],
)
def test_a_bad_score_changes_nothing(
    score: Any,  # noqa: ANN401
    kind: Any,  # noqa: ANN401
    error: type[InputError],
    says: str,
) -> None:
    """The message says what a score is, and nothing is learned alone or in a batch."""
    calibrator = ConformalInterval(0.5, score=kind)
    before = calibrator.to_bytes()
    with pytest.raises(error, match=says):
        calibrator.learn_one(score, 1e308)
    with pytest.raises(error, match=says):
        calibrator.learn_many([score], [1e308])
    assert calibrator.to_bytes() == before


def test_options_are_checked() -> None:
    """A level is inside (0, 1), an error has a known name, and weights are refused."""
    with pytest.raises(ParameterError, match="level"):
        ConformalInterval(1.0)
    with pytest.raises(ParameterError, match="use absolute, cqr"):
        ConformalInterval(0.5, score="squared")  # type: ignore[arg-type]
    with pytest.raises((ParameterError, WeightError), match="takes no weights"):
        ConformalInterval(0.5).learn_one(1.0, 2.0, weight=2.0)


# Saving


def test_a_saved_calibrator_goes_on_as_before() -> None:
    """Level, error, window and observations are restored, and named."""
    calibrator = ConformalInterval(0.8, "cqr", window=2)
    calibrator.learn_many([(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)], [1.0, 2.0, 5.0])
    for one in (
        pickle.loads(pickle.dumps(calibrator)),  # noqa: S301 - own bytes
        copy.deepcopy(calibrator),
        ConformalInterval.from_bytes(calibrator.to_bytes()),
    ):
        assert repr(one) == "<ConformalInterval(0.8, score='cqr', window=2) of 2 observations>"
        assert (one.level, one.score, one.window) == (0.8, "cqr", 2)
        one.learn_one((2.0, 2.0), 3.0)
        assert one.predict_one((1.0, 2.0)) is not None
        assert one != calibrator


def test_bytes_that_no_calibrator_wrote_are_refused() -> None:
    """A support, a grid, weights, a level of 1 or an unknown error are no state of it."""
    level, kind = np.array([0.5]).tobytes(), b"\0"
    heavy = IVAPR()
    heavy.learn_one(1.0, 2.0, weight=0.5)
    parts = {
        "support": [kind, pack([level, IVAPR(support=(0.0, 1.0)).state_bytes()])],
        "grid": [kind, pack([level, IVAPR(grid=[0.0]).state_bytes()])],
        "weights": [kind, pack([level, heavy.state_bytes()])],
        "level": [kind, pack([np.array([1.0]).tobytes(), IVAPR().state_bytes()])],
        "score": [b"\2", pack([level, IVAPR().state_bytes()])],
    }
    for what, pieces in parts.items():
        with pytest.raises(StateError, match=what):
            ConformalInterval.from_bytes(seal(b"abersCI\x01", pack(pieces)))
    sound = seal(b"abersCI\x01", pack([kind, pack([level, IVAPR().state_bytes()])]))
    assert ConformalInterval.from_bytes(sound) == ConformalInterval(0.5)
