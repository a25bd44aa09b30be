"""Venn multicalibration, `abers.batch.multicalibration`: against least squares in fractions."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from abers import LabelError, NotHeldError, ParameterError, ScoreError, StateError
from abers.batch import VennMulticalibration
from abers.serialization import seal

Row = tuple[float, int, int]  # prediction, and two segments
Observation = tuple[Row, float]

LO, HI = -1.0, 3.0
ROWS = st.tuples(
    st.integers(-8, 24).map(lambda eighths: eighths / 8.0), st.integers(0, 1), st.integers(0, 1)
)
LABELS = st.integers(-8, 24).map(lambda eighths: eighths / 8.0)
OBSERVATIONS = st.lists(st.tuples(ROWS, LABELS), max_size=10)


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solve linear equations, each with its right side last, some of them superfluous."""
    size = len(rows[0]) - 1
    found, used = [Fraction()] * size, 0
    pivots = []
    for column in range(size):
        at = next((i for i in range(used, len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        rows[used], rows[at] = rows[at], rows[used]
        rows[used] = [value / rows[used][column] for value in rows[used]]
        for i, row in enumerate(rows):
            if i != used and row[column]:
                factor = row[column]
                rows[i] = [a - factor * b for a, b in zip(row, rows[used], strict=True)]
        pivots.append(column)
        used += 1
    for i, column in enumerate(pivots):
        found[column] = rows[i][-1]
    return found


def corrected(observations: list[Observation]) -> list[Fraction]:
    """Fit the correction to all observations; return what it makes of each prediction."""
    phi = [[Fraction(1), Fraction(a), Fraction(b)] for (_, a, b), _ in observations]
    rest = [Fraction(y) - Fraction(row[0]) for row, y in observations]
    equations = [
        [sum((p[i] * p[j] for p in phi), Fraction()) for j in range(3)]
        + [sum((p[i] * r for p, r in zip(phi, rest, strict=True)), Fraction())]
        for i in range(3)
    ]
    weights = solved(equations)
    return [
        Fraction(row[0]) + sum((w * p for w, p in zip(weights, part, strict=True)), Fraction())
        for (row, _), part in zip(observations, phi, strict=True)
    ]


def taught(observations: list[Observation], window: int | None = None) -> VennMulticalibration:
    """Make a calibrator that has learned observations one by one."""
    calibrator = VennMulticalibration(LO, HI, 2, window)
    for row, y in observations:
        calibrator.learn_one(row, y)
    return calibrator


def some(n: int, seed: int = 0) -> list[Observation]:
    """Make observations."""
    rng = np.random.default_rng(seed)
    members = rng.integers(0, 2, (n, 2))
    f = rng.integers(-8, 25, n) / 8.0
    ys = rng.integers(-8, 25, n) / 8.0
    return [
        ((one, a, b), y)
        for one, (a, b), y in zip(f.tolist(), members.tolist(), ys.tolist(), strict=True)
    ]


# Answers


@given(OBSERVATIONS, ROWS)
def test_both_ends_are_the_fits_with_both_extreme_labels(
    observations: list[Observation], query: Row
) -> None:
    """They equal least squares in fractions, whatever the labels determine."""
    low, high = taught(observations).predict_one(query)
    for end, label in ((low, LO), (high, HI)):
        exact = corrected([*observations, (query, label)])[-1]
        assert end == pytest.approx(float(exact), rel=1e-9, abs=1e-8)
    assert low <= high


@given(st.lists(st.tuples(ROWS, LABELS), min_size=1, max_size=9))
def test_left_out_rows_sum_to_nothing_in_every_segment(observations: list[Observation]) -> None:
    """The interval of each row has the fit of all, and these are right in each segment at once."""
    fits = corrected(observations)
    for i, ((row, y), fit) in enumerate(zip(observations, fits, strict=True)):
        low, high = taught(observations[:i] + observations[i + 1 :]).predict_one(row)
        share = (y - LO) / (HI - LO)
        assert low + share * (high - low) == pytest.approx(float(fit), rel=1e-9, abs=1e-8)
    gaps = [Fraction(y) - fit for (_, y), fit in zip(observations, fits, strict=True)]
    assert sum(gaps) == 0
    for segment in (1, 2):
        assert sum(g for g, (row, _) in zip(gaps, observations, strict=True) if row[segment]) == 0


def test_the_first_of_a_segment_can_be_anything() -> None:
    """Until a label determines its correction the interval reaches from bound to bound."""
    calibrator = taught([((0.5, 0, 0), 1.0)] * 9)
    assert calibrator.predict_one((0.5, 1, 0)) == (LO, HI)
    assert VennMulticalibration(LO, HI, 2).predict_one((0.5, 0, 0)) == (LO, HI)
    low, high = calibrator.predict_one((0.5, 0, 0))
    assert (low, high) == pytest.approx((0.8, 1.2))


def test_segments_that_make_up_all_are_no_obstacle() -> None:
    """With two segments of which one has each observation, both are corrected by their own mean."""
    observations = [((0.0, 1, 0), 1.0), ((0.0, 0, 1), 2.0)] * 4
    low, high = taught(observations).predict_one((0.0, 1, 0))
    assert (low, high) == pytest.approx(((4 + LO) / 5, (4 + HI) / 5))


def test_many_segments_and_many_labels_stay_exact() -> None:
    """With 30 overlapping segments and 3,000 labels the ends are those of a plain solution."""
    rng = np.random.default_rng(1)
    members = (rng.random((3_000, 30)) < rng.uniform(0.01, 0.9, 30)).astype(float)
    f, y = rng.random(3_000), rng.integers(0, 2, 3_000).astype(float)
    calibrator = VennMulticalibration(0.0, 1.0, 30)
    calibrator.learn_many(np.column_stack([f, members])[:-1], y[:-1])
    low, high = calibrator.predict_one([f[-1], *members[-1]])
    phi = np.column_stack([np.ones(3_000), members])
    for end, label in ((low, 0.0), (high, 1.0)):
        rest = np.append(y[:-1], label) - f
        weights = np.linalg.lstsq(phi, rest)[0]
        assert end == pytest.approx(f[-1] + phi[-1] @ weights, abs=1e-8)


def test_arrays_are_the_same_as_one_by_one() -> None:
    """`learn_many`, `predict_many` and `run` do what a loop does, to the last bit."""
    observations = some(40)
    one, many = taught(observations), VennMulticalibration(LO, HI, 2)
    rows, ys = map(list, zip(*observations, strict=True))
    many.learn_many(rows, ys)
    assert many == one
    singles = np.array([one.predict_one(row) for row in rows])
    assert np.array_equal(np.array(many.predict_many(rows)).T, singles)
    mixed = VennMulticalibration(LO, HI, 2).run([1] * 40 + [0] * 40, rows * 2, ys * 2)
    assert np.array_equal(np.array(mixed).T[40:], singles)


# Refusals


def test_a_score_is_a_prediction_and_indicators() -> None:
    """Another length or another value is refused, with its row, and changes nothing."""
    calibrator = taught(some(5))
    before = calibrator.to_bytes()
    with pytest.raises(ParameterError, match="3 numbers"):
        calibrator.predict_one((0.5, 1))
    with pytest.raises(ParameterError, match="3 numbers"):
        calibrator.predict_one(())
    with pytest.raises(ParameterError, match="3 numbers"):
        calibrator.predict_one(0.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="3 numbers"):
        calibrator.learn_one(0.5, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match=r"segment 1 is 0\.5"):
        calibrator.learn_one((0.5, 0, 0.5), 1.0)
    with pytest.raises(ScoreError, match="row 1: segment 0 is 2"):
        calibrator.learn_many([(0.5, 0, 1), (0.5, 2, 1)], [1.0, 1.0])
    with pytest.raises(LabelError, match="row 1: label 4"):
        calibrator.learn_many([(0.5, 0, 1)] * 2, [1.0, 4.0])
    with pytest.raises(LabelError, match="near the bounds"):
        calibrator.learn_one((1e300, 0, 1), 1.0)
    assert calibrator.to_bytes() == before


@pytest.mark.parametrize("segments", [0, -1, 1.5, "2", 10**6])
def test_there_are_some_segments(segments: Any) -> None:  # noqa: ANN401
    """Their number is a positive whole one."""
    with pytest.raises(ParameterError, match="segments"):
        VennMulticalibration(0.0, 1.0, segments)


def test_a_tiny_range_is_as_any_other() -> None:
    """The ends scale with the bounds, down to numbers that have few digits."""
    tiny = 2.0**-1050
    rows, labels = [(0.0, 1), (0.0, 1), (0.0, 0)], [0.0, tiny, 0.0]
    calibrator, plain = (VennMulticalibration(0.0, unit, 1) for unit in (tiny, 1.0))
    calibrator.learn_many(rows, labels)
    plain.learn_many(rows, np.array(labels) / tiny)
    for query in ((0.0, 0), (0.0, 1)):
        low, high = calibrator.predict_one(query)
        assert (low / tiny, high / tiny) == pytest.approx(plain.predict_one(query), abs=1e-6)


def test_a_residual_beyond_all_numbers_is_refused_without_a_warning() -> None:
    """A batch says what is wrong, as a single label does."""
    calibrator = VennMulticalibration(-8e307, 8e307, 1)
    with pytest.raises(LabelError, match="near the bounds"):
        calibrator.learn_many([(-1.7e308, 1)], [8e307])


def test_bounds_are_in_order() -> None:
    """Others are refused."""
    with pytest.raises(ParameterError, match="y_min < y_max"):
        VennMulticalibration(1.0, 0.0, 2)


# Saving


@pytest.mark.parametrize("window", [None, 4])
def test_a_saved_calibrator_goes_on_as_before(window: int | None) -> None:
    """Saved, pickled and copied ones have the options, and stay equal through more labels."""
    calibrator = taught(some(9), window)
    copies = [pickle.loads(pickle.dumps(calibrator)), copy.deepcopy(calibrator)]  # noqa: S301 - own bytes
    for each in [calibrator, *copies]:
        each.learn_one((0.25, 1, 0), 1.5)
        assert repr(each) == repr(calibrator)
        assert each.to_bytes() == calibrator.to_bytes()
        assert each.predict_one((0.0, 1, 1)) == calibrator.predict_one((0.0, 1, 1))
    shown = "-1.0, 3.0, 2" + (", window=4" if window else "")
    assert repr(calibrator) == f"<VennMulticalibration({shown}) of {window or 10} observations>"
    options = (calibrator.y_min, calibrator.y_max, calibrator.segments)
    assert options == (LO, HI, 2)


def test_damaged_bytes_are_refused() -> None:
    """Every changed byte and every cut is noticed."""
    blob = taught(some(3)).to_bytes()
    for at in range(len(blob)):
        with pytest.raises(StateError):
            VennMulticalibration.from_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
        with pytest.raises(StateError):
            VennMulticalibration.from_bytes(blob[:at])


def test_bytes_that_no_calibrator_wrote_are_refused() -> None:
    """A good seal over other numbers of segments, indicators or counts is no calibrator."""
    payload = taught(some(3)).state_bytes()
    header = 32
    forgeries: list[tuple[int, np.generic]] = [
        (0, np.float64(9.0)),  # y_min
        (16, np.uint64(0)),  # segments
        (16, np.uint64(3)),
        (24, np.uint64(2)),  # window
        (header + 9, np.uint8(2)),  # an indicator
        (len(payload) - 8, np.uint64(0)),  # a count
        (len(payload) - 8, np.uint64(1 << 63)),
    ]
    for at, value in forgeries:
        forged = payload[:at] + value.tobytes() + payload[at + len(value.tobytes()) :]
        with pytest.raises(StateError):
            VennMulticalibration.from_bytes(seal(b"abersMC\x01", forged))


# Long lives


class SegmentLife(RuleBasedStateMachine):
    """What a calibrator lives through, with and without a window."""

    @initialize(window=st.sampled_from([None, 1, 5]))
    def start(self, window: int | None) -> None:
        """Begin with nothing kept."""
        self.window = window
        self.calibrator = VennMulticalibration(LO, HI, 2, window)
        self.kept: list[Observation] = []

    @rule(row=ROWS, label=LABELS)
    def learn(self, row: Row, label: float) -> None:
        """Learn an observation."""
        self.calibrator.learn_one(row, label)
        self.kept = [*self.kept, (row, label)][-(self.window or 1 << 60) :]

    @precondition(lambda self: self.window is None and self.kept)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove what was learned."""
        row, label = data.draw(st.sampled_from(self.kept))
        self.calibrator.remove_one(row, label)
        self.kept.remove((row, label))

    @precondition(lambda self: self.window is None)
    @rule(row=ROWS)
    def remove_nothing(self, row: Row) -> None:
        """Refuse to remove what is not there, alone and in a batch that is undone."""
        before = self.calibrator.state_bytes()
        missing = (row[0] + 0.03125, *row[1:])
        with pytest.raises(NotHeldError):
            self.calibrator.remove_one(missing, 1.0)
        with pytest.raises(NotHeldError, match="row 1"):
            self.calibrator.run([1, 2], [row, missing], [0.5, 1.0])
        assert self.calibrator.state_bytes() == before

    @rule()
    def restore(self) -> None:
        """Go on with a restored calibrator."""
        self.calibrator = VennMulticalibration.from_bytes(self.calibrator.to_bytes())

    @rule(query=ROWS)
    def predict(self, query: Row) -> None:
        """Predict as one that learned only what is kept, to the last bit."""
        assert self.calibrator.predict_one(query) == taught(self.kept).predict_one(query)

    @invariant()
    def counted(self) -> None:
        """Compare what is counted with what is kept."""
        assert len(self.calibrator) == len(self.kept)


TestSegmentLife = SegmentLife.TestCase
"""Every answer of a long random life is that of a calibrator that learned what is kept."""
