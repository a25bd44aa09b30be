"""Sums behind the three answers, `core.AnswerSums` and `core.IntervalSums`, against all rows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import answer_sums

from abers.backends import core

TOLERANCE = 1.25


def drawn(n: int, seed: int, spread: float = 1.0) -> tuple[Any, ...]:
    """Draw raw and served probabilities, a few of them 0 or 1, labels, numbers and times."""
    rng = np.random.default_rng(seed)
    raw, served = 1.0 / (1.0 + np.exp(-rng.normal(-spread, spread, (2, n))))
    for one in (raw, served):
        at = rng.random(n) < 0.002
        one[at] = rng.integers(0, 2, at.sum())
    labels = (rng.random(n) < raw).astype(float)
    return raw, served, labels, 2 * np.arange(n), rng.integers(0, 1_000_000, n)


def both() -> tuple[Any, Any]:
    """Return empty sums of the core, and of plain Python."""
    return core.AnswerSums(TOLERANCE, 1), answer_sums.AnswerSums(TOLERANCE)


def known(sums: Any) -> Any:  # noqa: ANN401 - of the core or the oracle
    """Return all that sums have, in plain lists."""
    return _listed([sums.now(), sums.whole(), sums.skipped])


def flat(one: Any) -> list[float]:  # noqa: ANN401 - a list, a tuple or a number
    """Return all numbers in order."""
    return [x for each in one for x in flat(each)] if isinstance(one, list | tuple) else [one]


def _listed(one: Any) -> Any:  # noqa: ANN401 - a list, a tuple or a number
    return [*map(_listed, one)] if isinstance(one, list | tuple) else one


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 40, 700, 3_000]), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0.1, 1.0, 3.0]),
    warm=st.sampled_from([0, 1, 500]),
)
def test_the_core_equals_its_oracle(sizes: list[int], seed: int, spread: float, warm: int) -> None:
    """Now and the whole stream are those of plain Python to the last bit, also restored."""
    native, plain = both()
    for one in (native, plain):
        one.skip(*drawn(warm, seed, spread)[:2])
    for number, n in enumerate(sizes):
        *columns, numbers, times = drawn(n, seed + number, spread)
        for one in (native, plain):
            one.add(*columns, numbers + 10_000 * number, times)
        restored = core.AnswerSums(TOLERANCE, 1)
        restored.load(native.save())
        assert restored.save() == native.save()
        native = restored
        assert known(native) == known(plain)
        # A point is the sum of its parts or of its labels, which differ in the last bits.
        assert flat(native.trail()) == pytest.approx(flat(plain.trail()), rel=1e-12)


def fed(n: int, p: float = 0.5, warm: int = 0) -> Any:  # noqa: ANN401 - of the core
    """Return sums after n rows of one probability, each of which counts p (1 - p)."""
    sums = core.AnswerSums(TOLERANCE, 1)
    ones = np.full(max(n, warm), p)
    sums.skip(ones[:warm], ones[:warm])
    sums.add(ones[:n], ones[:n], np.arange(n) % 2.0, np.arange(n), np.arange(n))
    return sums


@pytest.mark.parametrize(
    ("rows", "first"),
    [(1, 0), (4_000, 0), (7_999, 0), (8_000, 4_000), (11_999, 4_000), (12_000, 8_000)],
)
def test_now_begins_behind_the_last_mark_but_one(rows: int, first: int) -> None:
    """With a quarter of a unit a row there is a mark each 4,000 rows; before two, all count."""
    counts, units, *_ = fed(rows).now()
    assert counts == (first, rows - 1, first, rows - 1, rows - first)
    assert units == (rows - first) / 4


def test_the_groups_of_a_window_are_fixed_by_the_rows_before_it() -> None:
    """The cut has two decimals, and each group of tenths had 25 units; later rows move neither."""
    sums = core.AnswerSums(TOLERANCE, 1)
    p = np.tile([0.05, 0.25, 0.35, 0.9], 200)  # 9.5, 37.5, 45.5 and 18 units
    sums.skip(p, p)
    later = np.full(100, 0.95)
    sums.add(later, later, np.ones(100), np.arange(100), np.arange(100))
    cut, merged, halves, tenths = sums.now()[2][0][1]
    assert merged == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert [one[0] for one in halves] == [0, 100]
    assert [one[0] for one in tenths] == [0, 100]
    weights = p * (1 - p)
    mean = (weights * np.log(p / (1 - p))).sum() / weights.sum()
    assert cut == pytest.approx(round(1 / (1 + np.exp(-mean)), 2))
    whole_cut, merged, *_ = sums.whole()[2][0][1]
    assert (whole_cut, merged) == (cut, [*range(10)])


def test_without_earlier_rows_there_is_one_group() -> None:
    """The first row of a stream without a warm-up is in the upper half, and in the only group."""
    cut, merged, halves, tenths = fed(10, 0.25).now()[2][0][0]
    assert (cut, {*merged}, halves[0][0], halves[1][0], len(tenths)) == (0.0, {0}, 0, 10, 1)


def test_sums_of_a_group() -> None:
    """A group has labels, labels that are 1, forecasts, squares, and both ends at the tolerance."""
    half = fed(10, 0.5).now()[2][0][1][2][1]
    assert half[:4] == (10.0, 5.0, 5.0, 2.5)
    assert half[4:] == pytest.approx((10 / 2.25, 12.5 / 2.25))


def test_losses() -> None:
    """Losses are as they are, and infinite ones are counted; what is saved has a bounded range."""
    sums = core.AnswerSums(TOLERANCE, 1)
    raw, served = np.array([0.5, 1e-9, 0.0, 0.9]), np.array([0.5, 0.5, 0.5, 1e-9])
    sums.add(raw, served, np.ones(4), np.arange(4), np.arange(4))
    losses, infinite, low, high = sums.now()[3]
    lost = -np.log(raw[[0, 1, 3]]), -np.log(served)
    assert losses == pytest.approx([one.sum() for one in lost])
    assert infinite == [1, 0]
    # The least is ln(.5) if the label is 0; at most 6 above it counts of ln(.5 / 1e-9), and of an
    # infinite loss. The last could save ln(.1) less than nothing, or lose ln(.9 / 1e-9).
    least = np.log(0.5)
    capped, lost_most = least + 6.0, np.log(1e-9 / 0.9)
    assert low == pytest.approx((2 * capped + lost_most, 2 * capped**2 + 36.0, 0))
    assert high[2] == 1
    assert high[0] == pytest.approx(np.log(0.5e9) + np.log(10.0) - 6.0)


def test_a_trail_has_at_most_64_points() -> None:
    """Every two neighbours become one when there are too many, and the sums stay."""
    for n in (40, 41, 2_560, 2_561, 20_000):
        points = fed(n, warm=10).trail()
        labels = [one[0][4] for one in points]
        assert len(points) <= 64
        assert sum(labels) == n
        assert len({*labels[:-1]}) <= 1
        assert [one[0][0] for one in points[1:]] == [one[0][1] + 1 for one in points[:-1]]


HEAD = struct.Struct("<dqqd")
SAVED = fed(5_000, warm=100).save()
BROKEN = [(0, 1.5), (1, -1), (1, 1 << 60), (2, -1), (2, 1 << 40), (3, -1.0), (3, 1_000.0)]


@pytest.mark.parametrize(("place", "value"), BROKEN)
def test_heads_that_cannot_be(place: int, value: float) -> None:
    """A tolerance of others, and counts out of their ranges, are refused."""
    head = [*HEAD.unpack_from(SAVED)]
    head[place] = value
    with pytest.raises(ValueError, match=r"tolerance|rows|marks|units"):
        core.AnswerSums(TOLERANCE, 1).load(HEAD.pack(*head) + SAVED[HEAD.size :])


@settings(max_examples=300, deadline=None)
@given(at=st.integers(HEAD.size, len(SAVED) - 1), byte=st.integers(0, 255))
def test_damage(at: int, byte: int) -> None:
    """A damaged state is refused or goes on without a fault; another length is refused."""
    saved = bytearray(SAVED)
    for wrong in (saved[:at], saved + b"\0"):
        with pytest.raises(ValueError, match=r"cut short|too long"):
            core.AnswerSums(TOLERANCE, 1).load(bytes(wrong))
    saved[at] = byte
    sums = core.AnswerSums(TOLERANCE, 1)
    try:
        sums.load(bytes(saved))
    except ValueError:
        assert not sums.whole()[0][4]
    sums.add(*drawn(3_000, at))
    assert sums.now()[0][4] > 0


def measured(n: int, seed: int) -> tuple[Any, ...]:
    """Draw rows of two levels: sums of these numbers are exact."""
    rng = np.random.default_rng(seed)
    inside = rng.integers(0, 2, (n, 2))
    below = rng.integers(0, 2, (n, 2)) * (1 - inside)
    widths = rng.choice([1.0, 2.5, np.inf], (n, 2))
    errors = rng.integers(-8, 9, (n, 2)) / 4.0
    errors[:, 1] = np.abs(errors[:, 1]) + rng.choice([0.0, np.inf, np.nan], n, p=[0.8, 0.1, 0.1])
    return np.hstack((inside, below, widths, errors)), np.arange(n), rng.integers(0, 999, n)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 40, 700, 3_000]), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    mark=st.sampled_from([1, 50, 1_000]),
)
def test_sums_of_intervals_equal_their_oracle(sizes: list[int], seed: int, mark: int) -> None:
    """Now, whole stream and trail of numbers are those of plain Python, also restored."""
    native, plain = core.IntervalSums(2, mark), answer_sums.IntervalSums(2, mark)
    for number, n in enumerate(sizes):
        rows, numbers, times = measured(n, seed + number)
        for one in (native, plain):
            one.add(rows, numbers + 10_000 * number, times)
        restored = core.IntervalSums(2, mark)
        restored.load(native.save())
        assert restored.save() == native.save()
        native = restored
        for name in ("now", "whole", "trail"):
            assert _listed(getattr(native, name)()) == _listed(getattr(plain, name)())


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, 2_000), byte=st.integers(0, 255))
def test_damaged_sums_of_intervals(at: int, byte: int) -> None:
    """A damaged state is refused or goes on without a fault; another length is refused."""
    sums = core.IntervalSums(2, 50)
    sums.add(*measured(500, 1))
    saved = bytearray(sums.save())
    at %= len(saved)
    for wrong in (saved[:at], saved + b"\0"):
        with pytest.raises(ValueError, match=r"cut short|too long"):
            core.IntervalSums(2, 50).load(bytes(wrong))
    saved[at] = byte
    other = core.IntervalSums(2, 50)
    try:
        other.load(bytes(saved))
    except ValueError:
        assert not other.whole()[0][4]
    other.add(*measured(100, 2))
    assert other.whole()[0][4] >= 100
