"""The interval for a mean without bounds, `abers.batch.unbounded_ivar`: against fractions."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from tests.engine.mean_oracle import answer, clipped, exact, interval, isotonic

from abers import (
    ForgettingError,
    LabelError,
    NotHeldError,
    ParameterError,
    ScoreError,
    StateError,
    TimeError,
)
from abers.batch import UnboundedIVAR, UnboundedMean, UnboundedMeans
from abers.serialization import seal

Pairs = list[tuple[float, float]]

OPTIONS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "window": {"window": 7},
    "max_age": {"max_age": 5.0},
}
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
EIGHTHS = st.integers(-40, 40).map(lambda eighths: eighths / 8.0)
LABELS = st.one_of(EIGHTHS, st.sampled_from([-1000.0, 1e6, 0.0]))
PAIRS = st.lists(st.tuples(st.integers(0, 5).map(float), LABELS), min_size=2, max_size=12)
QUERIES = st.integers(-1, 11).map(lambda half: half / 2.0)


def taught(options: dict[str, Any], n: int = 30) -> UnboundedIVAR:
    """Make a calibrator that has learned `stream(n)`."""
    calibrator = UnboundedIVAR(**options)
    scores, ys, times = stream(n)
    calibrator.learn_many(scores, ys, times=times if "max_age" in options else None)
    return calibrator


def stream(n: int) -> tuple[Any, Any, Any]:
    """Make scores and labels with ties and outliers, and times."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 8, n) / 8.0
    ys = scores * 8.0 + rng.standard_cauchy(n).round(1)
    return scores, ys, np.cumsum(rng.choice([0.0, 0.5, -0.3, 1.0], n))


# Answers


@given(PAIRS, QUERIES, st.sampled_from([1, 1, 2, 3]))
def test_the_ends_are_those_of_the_definition(pairs: Pairs, query: float, m: int) -> None:
    """Both ends are the extreme answers, rounded once; below 2m labels there are none."""
    calibrator = UnboundedIVAR(m)
    for score, y in pairs:
        calibrator.learn_one(score, y)
    found = calibrator.predict_one(query)
    if len(pairs) < 2 * m:
        assert (found.low, found.high) == (-np.inf, np.inf)
        assert np.isnan(found.merged)
        return
    low, high = interval(exact(pairs), query, m)
    assert (found.low, found.high) == (float(low), float(high))


@given(PAIRS, QUERIES, st.sampled_from([1, 2]), st.lists(LABELS, max_size=6))
def test_every_possible_label_has_its_answer_in_the_interval(
    pairs: Pairs, query: float, m: int, more: list[float]
) -> None:
    """No label of the query, one of those that came or another, gets an answer outside."""
    calibrator = UnboundedIVAR(m)
    calibrator.learn_many(*map(list, zip(*pairs, strict=True)))
    low, high, *_ = calibrator.predict_one(query)
    for label in [*more, *(y for _, y in pairs)] if len(pairs) >= 2 * m else []:
        assert low <= float(answer(exact(pairs), query, Fraction(label), m)) <= high


@given(PAIRS, QUERIES)
def test_merged_weighs_each_end_with_its_way_to_the_label_of_the_query(
    pairs: Pairs, query: float
) -> None:
    """The merged mean is that of the paper, and lies between the ends."""
    calibrator = UnboundedIVAR()
    calibrator.learn_many(*map(list, zip(*pairs, strict=True)))
    found = calibrator.predict_one(query)
    low, high = interval(exact(pairs), query, 1)
    labels = sorted(Fraction(y) for _, y in pairs)
    below, above = low - labels[0], labels[-1] - high
    assert [Fraction(found.lowest), Fraction(found.highest)] == [labels[0], labels[-1]]
    merged = (below * low + above * high) / (below + above) if below + above else (low + high) / 2
    assert found.merged == pytest.approx(float(merged), rel=1e-12, abs=1e-9)
    assert found.low <= found.merged <= found.high
    assert found.width == found.high - found.low


def test_labels_are_rounded_to_the_resolution_and_nothing_else_is() -> None:
    """A label between two multiples counts as the nearer one, ties as the even one."""
    calibrator = UnboundedIVAR(resolution=0.5)
    calibrator.learn_many([0.0, 0.0, 0.0], [1.2, 1.25, 1.3])  # 1.0, 1.0 and 1.5
    assert calibrator.predict_one(0.0) == (1.0, 1.25, 1.0, 1.5)


def test_far_labels_do_not_disturb_near_ones() -> None:
    """Labels a million apart from zero are fitted as their differences are."""
    near, far = UnboundedIVAR(), UnboundedIVAR()
    scores, ys, _ = stream(300)
    near.learn_many(scores, np.round(ys * 8.0) / 8.0)
    far.learn_many(scores, np.round(ys * 8.0) / 8.0 + 2.0**20)
    low, high, *_ = near.predict_many(scores)
    far_low, far_high, *_ = far.predict_many(scores)
    assert far_low - 2.0**20 == pytest.approx(low, abs=1e-8)
    assert far_high - 2.0**20 == pytest.approx(high, abs=1e-8)


@EVERY_RULE
def test_arrays_are_the_same_as_one_by_one(options: dict[str, Any]) -> None:
    """`learn_many` and `predict_many` do what a loop does, to the last byte."""
    many, one = taught(options, 150), UnboundedIVAR(**options)
    for score, y, time in zip(*(column.tolist() for column in stream(150)), strict=True):
        one.learn_one(score, y, time=time if "max_age" in options else None)
    assert many.to_bytes() == one.to_bytes()
    queries = np.linspace(-0.1, 1.1, 80)
    found = many.predict_many(queries)
    singles = [one.predict_one(query) for query in queries.tolist()]
    assert np.array_equal(np.array(found).T, np.array(singles))
    assert found.merged.tolist() == [single.merged for single in singles]
    assert isinstance(found, UnboundedMeans)
    assert isinstance(singles[0], UnboundedMean)


# Guarantee


@given(
    st.lists(st.tuples(st.integers(0, 4).map(float), LABELS), min_size=3, max_size=9),
    st.sampled_from([1, 2]),
)
def test_each_left_out_row_finds_its_calibrated_mean_in_the_interval(pairs: Pairs, m: int) -> None:
    """The fit of all rows is in the interval of each, and is the mean of its clipped labels."""
    if len(pairs) <= 2 * m:
        return
    whole = clipped(exact(pairs), m)
    fits = [isotonic(whole, score) for score, _ in whole]
    for i, fit in enumerate(fits):
        calibrator = UnboundedIVAR(m)
        calibrator.learn_many(*map(list, zip(*(pairs[:i] + pairs[i + 1 :]), strict=True)))
        low, high, *_ = calibrator.predict_one(pairs[i][0])
        assert low <= float(fit) <= high
    for level in set(fits):
        gaps = [y - level for (_, y), fit in zip(whole, fits, strict=True) if fit == level]
        assert sum(gaps) == 0
    changed = sum(y != own for (_, own), (_, y) in zip(exact(pairs), whole, strict=True))
    assert changed <= 2 * m


# Forgetting and removing


def test_a_window_keeps_the_last_observations() -> None:
    """A window answers as a calibrator that never saw what it forgot."""
    scores, ys, _ = stream(60)
    fresh = UnboundedIVAR()
    fresh.learn_many(scores[-7:], ys[-7:])
    windowed = taught({"window": 7}, 60)
    queries = np.linspace(-0.1, 1.1, 13)
    assert np.array_equal(windowed.predict_many(queries), fresh.predict_many(queries))
    assert len(windowed) == 7


def test_a_query_of_a_later_time_does_not_see_what_is_too_old_by_then() -> None:
    """It is hidden from that query, and there for an earlier one."""
    calibrator = UnboundedIVAR(max_age=2.0)
    calibrator.learn_many([1.0] * 4, [0.0, 8.0, 2.0, 4.0], times=[0.0, 0.5, 1.0, 2.0])
    before = calibrator.predict_one(1.0)
    assert calibrator.predict_one(1.0, time=3.0) == (2.0, 4.0, 2.0, 4.0)
    assert calibrator.predict_one(1.0, time=2.0) == before
    assert calibrator.predict_one(1.0, time=9.0).high == np.inf
    calibrator.learn_one(1.0, 5.0, time=-1.0)
    assert (len(calibrator), calibrator.late) == (4, 1)


@given(PAIRS, st.data())
def test_removal_undoes_learning(pairs: Pairs, data: st.DataObject) -> None:
    """What is learned and removed in any order leaves the bytes as they were."""
    calibrator, fresh = UnboundedIVAR(), UnboundedIVAR()
    gone = data.draw(st.lists(st.sampled_from(pairs), max_size=6))
    calibrator.learn_many(*map(list, zip(*pairs, *gone, strict=True)))
    for score, y in data.draw(st.permutations(gone)):
        calibrator.remove_one(score, y)
    fresh.learn_many(*map(list, zip(*pairs, strict=True)))
    assert calibrator == fresh
    assert calibrator.predict_one(2.0) == fresh.predict_one(2.0)


def test_only_what_is_there_can_be_removed() -> None:
    """An unknown score or label is an error that changes nothing."""
    calibrator = taught({})
    before = calibrator.to_bytes()
    for score, y in ((0.25, 77.0), (0.3, 0.0), (0.25, 1e300)):
        with pytest.raises(NotHeldError):
            calibrator.remove_one(score, y)
    assert calibrator.to_bytes() == before
    with pytest.raises(ForgettingError, match="window=3"):
        UnboundedIVAR(window=3).remove_one(0.5, 0.25)


# Refusals


@pytest.mark.parametrize("m", [0, -1, 1.5, "1", None, 1 << 40])
def test_m_is_a_positive_whole_number(m: Any) -> None:  # noqa: ANN401
    """Anything else, and a number of labels that nobody has, is refused."""
    with pytest.raises(ParameterError, match="m="):
        UnboundedIVAR(m)


@pytest.mark.parametrize("resolution", [0.0, -1.0, np.nan, np.inf, "fine", None])
def test_a_resolution_is_positive_and_finite(resolution: Any) -> None:  # noqa: ANN401
    """Anything else is refused."""
    with pytest.raises(ParameterError, match="resolution"):
        UnboundedIVAR(resolution=resolution)


@pytest.mark.parametrize(
    ("row", "error", "says"),
    [
        ((0.5, np.nan), LabelError, "label nan"),
        ((0.5, 1e300), LabelError, "coarser resolution"),
        ((np.inf, 0.5), ScoreError, "score inf"),
    ],
)
@EVERY_RULE
def test_a_bad_row_is_named_and_nothing_is_learned(
    options: dict[str, Any], row: tuple[float, float], error: type[Exception], says: str
) -> None:
    """Neither one by one nor in a batch does a bad row change anything."""
    calibrator = taught(options)
    before = calibrator.to_bytes()
    time, times = (30.0, [29.0, 30.0]) if "max_age" in options else (None, None)
    with pytest.raises(error, match=says):
        calibrator.learn_one(*row, time=time)
    with pytest.raises(error, match=f"row 1: .*{says}"):
        calibrator.learn_many([0.1, row[0]], [0.2, row[1]], times=times)
    assert calibrator.to_bytes() == before


def test_labels_are_refused_before_their_sums_pass_64_bits() -> None:
    """The number of labels times the largest is at most 2**60 units, exactly."""
    calibrator = UnboundedIVAR(resolution=1.0)
    largest = 2.0**60 / 4
    calibrator.learn_many([1.0, 2.0, 3.0], [largest, -largest, largest])
    calibrator.learn_one(4.0, -largest)
    before = calibrator.to_bytes()
    with pytest.raises(LabelError, match="coarser"):
        calibrator.learn_one(5.0, 0.0)
    assert calibrator.to_bytes() == before
    assert calibrator.predict_one(2.5).low == float(
        interval(exact([(1, largest), (2, -largest), (3, largest), (4, -largest)]), 2.5, 1)[0]
    )


def test_weights_and_needless_times_are_refused() -> None:
    """All observations weigh the same, and times belong to what forgets by time."""
    with pytest.raises(ParameterError, match="no weights"):
        UnboundedIVAR().learn_one(0.5, 0.5, weight=2.0)
    with pytest.raises(TimeError, match="missing"):
        UnboundedIVAR(max_age=1.0).learn_one(0.5, 0.5)
    with pytest.raises(TimeError, match="leave it out"):
        UnboundedIVAR().learn_one(0.5, 0.5, time=1.0)


# Saving


@EVERY_RULE
def test_a_saved_calibrator_goes_on_as_before(options: dict[str, Any]) -> None:
    """Saved, pickled and copied ones have the options, and stay equal through more labels."""
    calibrator = taught({"m": 2, "resolution": 0.1, **options})
    copies = [pickle.loads(pickle.dumps(calibrator)), copy.deepcopy(calibrator)]  # noqa: S301 - own bytes
    copies.append(UnboundedIVAR.from_bytes(calibrator.to_bytes()))
    for each in [calibrator, *copies]:
        each.learn_one(0.3, 1.5, time=30.0 if "max_age" in options else None)
        assert repr(each) == repr(calibrator)
        assert each.to_bytes() == calibrator.to_bytes()
        assert each.predict_one(0.4) == calibrator.predict_one(0.4)


def test_damaged_bytes_are_refused() -> None:
    """Every changed byte and every cut is noticed."""
    blob = taught({"window": 3}).to_bytes()
    for at in range(len(blob)):
        with pytest.raises(StateError):
            UnboundedIVAR.from_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
        with pytest.raises(StateError):
            UnboundedIVAR.from_bytes(blob[:at])


def test_bytes_that_no_calibrator_wrote_are_refused() -> None:
    """A good seal over other options, orders or labels is no calibrator."""
    calibrator = UnboundedIVAR(resolution=1.0)
    calibrator.learn_many([1.0, 2.0], [3.0, 4.0])
    payload = calibrator.state_bytes()
    numbers = [
        at for at in range(len(payload)) if payload[at : at + 8] == np.float64(3.0).tobytes()
    ]
    for at, value in [
        (0, np.uint64(0)),  # m
        (8, np.float64(-1.0)),  # resolution
        (16, np.uint64(1)),  # window
        (24, np.float64(np.nan)),  # max_age
        (32, np.uint64(3)),  # late
        (numbers[0], np.float64(3.5)),  # no whole number of units
        (numbers[0], np.float64(5.0)),  # out of order
        (numbers[0], np.float64(2.0**62)),
    ]:
        forged = payload[:at] + value.tobytes() + payload[at + 8 :]
        with pytest.raises(StateError):
            UnboundedIVAR.from_bytes(seal(b"abersIU\x01", forged))


def test_it_names_its_options() -> None:
    """A repr shows the options and the size."""
    calibrator = taught({"m": 2, "resolution": 0.5, "window": 7})
    shown = "<UnboundedIVAR(m=2, resolution=0.5, window=7) of 7 observations>"
    assert repr(calibrator) == shown
    assert (calibrator.m, calibrator.resolution, calibrator.window) == (2, 0.5, 7)
