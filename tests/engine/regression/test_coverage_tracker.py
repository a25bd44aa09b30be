"""The tracker of coverage: its bound for what is served, against any adversary, and its state."""

from __future__ import annotations

import math
import pickle
import random

import pytest

from abers import LabelError, ParameterError, StateError
from abers.regression import CoverageTracker, PredictionInterval
from abers.serialization import seal

SUPPORT = (0.0, 10.0)
KIND = b"abersCT\x01"


def outside(served: PredictionInterval) -> float:
    """Return a label that is missed, if there is one."""
    return next((y for y in (0.0, 10.0, 5.0) if not served.covers(y)), 5.0)


def inside(served: PredictionInterval) -> float:
    """Return a label that is covered, if there is one."""
    return 5.0 if served.is_empty else (served.low + served.high) / 2.0


def worse(tracker: CoverageTracker, served: PredictionInterval) -> float:
    """Return the label that takes the coverage further from its level."""
    low = tracker.labels and tracker.coverage < tracker.level
    return outside(served) if low else inside(served)


def interval(rng: random.Random) -> tuple[float, float]:
    """Return an interval, at times of no width, of the whole support, or beyond it."""
    low, high = sorted(rng.uniform(-2.0, 12.0) for _ in range(2))
    kinds = [(low, low), (-math.inf, math.inf), *[(low, high)] * 4]
    return rng.choice(kinds)


@pytest.mark.parametrize("seed", range(200))
def test_the_bound_holds_for_what_is_served(seed: int) -> None:
    """Adversaries of several kinds, delays, orders and lost labels: (slack + C) / T, both ways."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    level, slack = rng.choice([0.1, 0.5, 0.8, 0.95]), rng.choice([0.0, 1.0, 7.5])
    tracker = CoverageTracker(level, SUPPORT, slack=slack)
    waiting: dict[int, PredictionInterval] = {}
    covered = labels = most = 0
    delay = rng.choice([0, 1, 5, 40])
    for number in range(500):
        waiting[number] = tracker.predict_one(*interval(rng), number=number)
        most = max(most, len(waiting))
        while len(waiting) > delay:
            of = rng.choice([*waiting])
            served = waiting.pop(of)
            if rng.random() < 0.05:
                tracker.expire_one(of)
                continue
            sides = outside(served), inside(served), worse(tracker, served)
            choices = *sides, rng.uniform(*SUPPORT)
            y = choices[seed % 4 if rng.random() < 0.9 else rng.randrange(4)]
            tracker.learn_one(y, number=of)
            covered, labels = covered + (served.low <= y <= served.high), labels + 1
            assert abs(covered / labels - level) <= (slack + most) / labels + 1e-12
    assert (tracker.labels, tracker.waited) == (labels, most)
    assert tracker.coverage == covered / labels
    assert tracker.bound == (slack + most) / labels


def test_labels_that_are_always_covered_end_in_the_empty_interval() -> None:
    """The adversary that breaks sorted ends: the label is always inside, and coverage stays .5."""
    tracker = CoverageTracker(0.5, SUPPORT, slack=3.0)
    empty = 0
    for number in range(2_000):
        served = tracker.predict_one(4.0, 6.0, number=number)
        empty += served.is_empty
        tracker.learn_one(inside(served), number=number)
    assert abs(tracker.coverage - 0.5) <= tracker.bound == 4.0 / 2_000
    assert empty > 900


def test_sorted_ends_have_no_bound() -> None:
    """A margin for each quartile, sorted when they cross: the same adversary covers always."""
    quartiles, sums, covered = [4.0, 6.0], [0.0, 0.0], 0
    for _ in range(2_000):
        ends = [
            (SUPPORT[1] if total > 0 else SUPPORT[0]) if abs(total) > 3.0 else at
            for at, total in zip(quartiles, sums, strict=True)
        ]
        low, high = sorted(ends)
        y = (low + high) / 2.0
        covered += low <= y <= high
        for k, (tau, served) in enumerate(((0.25, low), (0.75, high))):
            sums[k] += tau - (y <= served)
            quartiles[k] += 0.05 * (tau - (y <= served))
    assert covered == 2_000


def test_a_miss_widens_and_a_hit_narrows() -> None:
    """The margin moves by (.05 / sqrt(C)) m (level - covered), at both ends."""
    tracker = CoverageTracker(0.75, SUPPORT)
    tracker.predict_one(4.0, 6.0, number=0)
    tracker.learn_one(9.0, number=0)  # 4 from the middle
    assert tracker.margin == 0.05 * 4.0 * 0.75
    assert tracker.predict_one(4.0, 6.0, number=1) == (4.0 - 0.15, 6.0 + 0.15)
    tracker.predict_one(4.0, 6.0, number=2)
    before = tracker.margin
    tracker.learn_one(5.0, number=2)  # two awaited labels: C = 2
    assert tracker.margin == pytest.approx(before - 0.05 / math.sqrt(2.0) * 2.0 * 0.25)
    assert (tracker.labels, tracker.coverage, tracker.waited) == (2, 0.5, 2)


def test_labels_from_drifting_noise_are_covered() -> None:
    """Intervals that are far too narrow: the tracked ones cover 80 %, without the whole support."""
    rng = random.Random(0)  # noqa: S311 - no secret
    tracker = CoverageTracker(0.8, (-50.0, 50.0))
    whole = 0
    for number in range(5_000):
        served = tracker.predict_one(-0.1, 0.1, number=number)
        whole += served == (-50.0, 50.0)
        tracker.learn_one(rng.gauss(0.0, 1.0 + number / 5_000), number=number)
    assert abs(tracker.coverage - 0.8) < 0.015
    assert whole == 0


def test_numbers_tell_labels_apart() -> None:
    """A repeated number gets its first interval; unknown and expired ones have no effect."""
    tracker = CoverageTracker(0.8, SUPPORT)
    first = tracker.predict_one(4.0, 6.0, number=1)
    assert tracker.predict_one(1.0, 2.0, number=1) == first
    tracker.learn_one(9.0, number=2)
    tracker.expire_one(1)
    tracker.learn_one(9.0, number=1)
    assert tracker.labels == 0
    assert math.isnan(tracker.coverage)
    assert math.isinf(tracker.bound)
    assert repr(tracker) == "<CoverageTracker(0.8, (0.0, 10.0)): 0 of 0 labels covered>"


def test_what_is_refused_changes_nothing() -> None:
    """Bad options, intervals, labels and numbers are errors that say what to do."""
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="level"):
            CoverageTracker(level, SUPPORT)
    for support in [
        *((1.0, 1.0), (0.0, math.inf), (-1.7e308, 1.7e308), (-8e307, 8e307)),
        *((0.0, 2e290), (-2e290, 0.0), (0.0, 3e-310), (0.0, 5e-324)),
    ]:
        with pytest.raises(ParameterError, match="support"):
            CoverageTracker(0.8, support)
    with pytest.raises(ParameterError, match=r"slack=-1\.0 must be a finite number of 0 or more"):
        CoverageTracker(0.8, SUPPORT, slack=-1.0)
    tracker = CoverageTracker(0.8, SUPPORT)
    tracker.predict_one(4.0, 6.0, number=1)
    before = tracker.to_bytes()
    with pytest.raises(ParameterError, match="give the lower end first"):
        tracker.predict_one(6.0, 4.0, number=2)
    with pytest.raises(ParameterError, match="not a number"):
        tracker.predict_one(math.nan, 4.0, number=2)
    for label in (math.nan, 11.0, "5"):
        with pytest.raises(LabelError):
            tracker.learn_one(label, number=1)  # type: ignore[arg-type]
    for number in (-1, 0.5):
        with pytest.raises(ParameterError, match="number"):
            tracker.predict_one(4.0, 6.0, number=number)  # type: ignore[arg-type]
    assert tracker.to_bytes() == before


@pytest.mark.parametrize("support", [(-1e290, 1e290), (0.0, 1e290), (0.0, 1e-290)])
@pytest.mark.parametrize("level", [5e-324, 0.5, math.nextafter(1.0, 0.0)])
def test_the_widest_and_the_narrowest_supports(support: tuple[float, float], level: float) -> None:
    """Intervals, margin and state stay numbers, whatever is covered."""
    tracker = CoverageTracker(level, support, slack=1e308)
    for number in range(200):
        ends = (support[0], support[0]) if number % 3 else support
        served = tracker.predict_one(*ends, number=number)
        assert not math.isnan(served.low)
        assert not math.isnan(served.high)
        tracker.learn_one(support[1], number=number)
        assert math.isfinite(tracker.margin)
    assert CoverageTracker.from_bytes(tracker.to_bytes()) == tracker


def test_a_restart_changes_nothing() -> None:
    """Saved with labels outstanding and restored at each step, it goes on bit for bit."""
    rng = random.Random(3)  # noqa: S311 - no secret
    tracker, waiting = CoverageTracker(0.7, SUPPORT, slack=2.0), list[int]()
    restored = CoverageTracker.from_bytes(tracker.to_bytes())
    for number in range(300):
        ends = interval(rng)
        served = tracker.predict_one(*ends, number=number)
        assert restored.predict_one(*ends, number=number) == served
        waiting.append(number)
        while len(waiting) > 5:
            of, y = waiting.pop(rng.randrange(len(waiting))), rng.uniform(*SUPPORT)
            tracker.learn_one(y, number=of)
            restored.learn_one(y, number=of)
        restored = pickle.loads(pickle.dumps(restored))  # noqa: S301
        assert restored == tracker


def test_a_state_that_no_tracker_wrote() -> None:
    """Sound checksums over changed bytes are refused, or harmless."""
    tracker = CoverageTracker(0.7, SUPPORT, slack=2.0)
    for number in range(4):
        tracker.predict_one(4.0, 6.0, number=number)
    tracker.learn_one(5.0, number=2)
    payload, refused = tracker.state_bytes(), 0
    assert CoverageTracker.from_bytes(seal(KIND, payload)) == tracker
    for at in range(len(payload)):
        bad = payload[:at] + bytes([payload[at] ^ 0x95]) + payload[at + 1 :]
        try:
            one = CoverageTracker.from_bytes(seal(KIND, bad))
        except StateError:
            refused += 1
            continue
        one.predict_one(3.0, 4.0, number=1)
        one.learn_one(one.support[0], number=1)
    assert refused > len(payload) / 3
