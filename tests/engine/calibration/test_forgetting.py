"""How `abers.VennAbers` forgets: the last n, the last T, and by halves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import GAPS, LABELS, OPTIONS, SCORES, WEIGHTS, aging, check, stream
from tests.engine.oracle import Oracle

from abers import VennAbers

EVENTS = st.lists(st.tuples(SCORES, LABELS, WEIGHTS, GAPS), max_size=40)
AGING = {name: options for name, options in OPTIONS.items() if aging(options)}


# Window


@given(st.integers(1, 12), EVENTS)
def test_window_equals_a_fresh_calibrator_of_the_last(
    window: int, events: list[tuple[float, int, float, float]]
) -> None:
    """A window answers, and is saved, like a calibrator that saw only the last n."""
    sliding, fresh, plain = VennAbers(window=window), VennAbers(window=window), VennAbers()
    for score, label, weight, _ in events:
        sliding.learn_one(score, label, weight=weight)
    for score, label, weight, _ in events[-window:]:
        fresh.learn_one(score, label, weight=weight)
        plain.learn_one(score, label, weight=weight)
    assert sliding.state_bytes() == fresh.state_bytes()
    assert len(sliding) == min(window, len(events))
    for score in (0.0, 0.3, 1.0, 1e300):
        assert sliding.predict_one(score) == plain.predict_one(score)


def test_window_of_ties_drops_the_oldest_label() -> None:
    """Of equal scores the one that came first leaves first."""
    calibrator = VennAbers(window=2)
    calibrator.learn_many([0.5, 0.5, 0.5], [1, 0, 0])
    assert calibrator.predict_one(0.5) == (0.0, 1 / 3)


@pytest.mark.large(300_000, reference=1_500)
def test_window_at_size(size: int) -> None:
    """After sliding over many observations a window is the calibrator of its last n, exactly."""
    rng = np.random.default_rng(2)
    scores = rng.random(size)
    labels = rng.random(size) < scores
    window = size // 3
    sliding, fresh = VennAbers(window=window), VennAbers()
    sliding.learn_many(scores, labels)
    fresh.learn_many(scores[-window:], labels[-window:])
    check(sliding)
    for ours, theirs in zip(sliding.hull(), fresh.hull(), strict=True):
        assert (ours == theirs).all()


# Age


def test_what_is_older_than_max_age_is_gone() -> None:
    """An observation exactly max_age old is kept, an older one is not."""
    calibrator = VennAbers(max_age=10.0)
    calibrator.learn_one(0.5, 1, time=0.0)
    calibrator.learn_one(0.5, 1, time=10.0)
    assert len(calibrator) == 2
    calibrator.learn_one(0.5, 1, time=10.5)
    assert len(calibrator) == 2
    assert calibrator.predict_one(0.5) == (2 / 3, 1.0)


def test_a_prediction_at_a_time_sees_what_would_be_left() -> None:
    """A later query answers as if the old were gone, and changes nothing."""
    calibrator = VennAbers(max_age=10.0)
    calibrator.learn_many([0.5, 0.5], [1, 1], times=[0.0, 5.0])
    before = calibrator.state_bytes()
    assert calibrator.predict_one(0.5) == (2 / 3, 1.0)
    assert calibrator.predict_one(0.5, time=10.0) == (2 / 3, 1.0)
    assert calibrator.predict_one(0.5, time=10.5) == (1 / 2, 1.0)
    assert calibrator.predict_one(0.5, time=15.5) == (0.0, 1.0)
    assert calibrator.predict_one(0.5, time=-100.0) == (2 / 3, 1.0)
    assert calibrator.state_bytes() == before
    assert len(calibrator) == 2


@pytest.mark.parametrize("options", AGING.values(), ids=AGING)
def test_labels_too_late_are_counted_and_not_learned(options: dict[str, Any]) -> None:
    """An observation older than the horizon raises `late` by one and nothing else."""
    calibrator = VennAbers(**options)
    calibrator.learn_one(0.5, 1, time=100.0)
    before = calibrator.predict_one(0.5)
    calibrator.learn_one(0.5, 0, time=1.0)
    calibrator.learn_many([0.5, 0.6], [0, 0], times=[-5.0, 2.0])
    assert calibrator.late == 3
    assert len(calibrator) == 1
    assert calibrator.predict_one(0.5) == before


@pytest.mark.parametrize("options", AGING.values(), ids=AGING)
@given(st.data())
def test_age_does_not_depend_on_the_order_of_arrival(
    options: dict[str, Any], data: st.DataObject
) -> None:
    """Observations that are all young enough give the same bytes in any order."""
    events = data.draw(
        st.lists(st.tuples(SCORES, LABELS, WEIGHTS, st.floats(0.0, 5.0)), min_size=1, max_size=20)
    )
    shuffled = data.draw(st.permutations(events))
    one, other = VennAbers(**options), VennAbers(**options)
    for calibrator, order in ((one, events), (other, shuffled)):
        for score, label, weight, time in order:
            calibrator.learn_one(score, label, weight=weight, time=time)
    assert one.state_bytes() == other.state_bytes()
    check(one)


# Half-life


def test_a_weight_halves_with_every_half_life() -> None:
    """Two observations one half-life apart weigh 1/2 and 1 against a query of the same time."""
    calibrator = VennAbers(half_life=10.0)
    calibrator.learn_one(0.5, 1, time=0.0)
    calibrator.learn_one(0.5, 0, time=10.0)
    assert calibrator.predict_one(0.5) == (0.5 / 2.5, 1.5 / 2.5)
    assert calibrator.predict_one(0.5, time=20.0) == (0.25 / 1.75, 1.25 / 1.75)


@given(
    st.lists(st.tuples(SCORES, LABELS, st.floats(0.1, 10.0), st.floats(0.0, 12.0)), max_size=20),
    st.floats(0.0, 3.0),
    st.floats(0.01, 1000.0),
)
def test_half_life_is_exponential_decay(
    events: list[tuple[float, int, float, float]], later: float, half_life: float
) -> None:
    """Predictions are those of an unlimited calibrator with weights 2^(-age / half-life)."""
    decaying, plain = VennAbers(half_life=half_life), VennAbers()
    now = max((time for *_, time in events), default=0.0) + later
    for score, label, weight, time in events:
        decaying.learn_one(score, label, weight=weight, time=time * half_life)
        plain.learn_one(score, label, weight=weight * 2.0 ** (time - now))
    for score in (0.0, 0.2, 0.3, 1.0):
        ours = decaying.predict_one(score, time=now * half_life)
        assert ours == pytest.approx(plain.predict_one(score), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("start", [0.0, -1e6, 1.7e9, 3.9999])
def test_only_ages_matter(start: float) -> None:
    """Shifting all times leaves predictions as they were, up to the rounding of weights."""
    zero, shifted = VennAbers(half_life=3.0), VennAbers(half_life=3.0)
    for i in range(60):
        score, label = (i * 7 % 10) / 10, (i * 11 % 5) % 2
        zero.learn_one(score, label, time=float(i))
        shifted.learn_one(score, label, time=start + i)
        for asked in (0.05, 0.5, 0.9):
            ours, theirs = zero.predict_one(asked), shifted.predict_one(asked)
            assert ours == pytest.approx(theirs, abs=1e-6)


def test_after_thirty_half_lives_an_observation_is_dropped() -> None:
    """Memory stays bounded: what is older than 30 half-lives is no longer kept."""
    calibrator = VennAbers(half_life=2.0)
    calibrator.learn_one(0.5, 1, time=0.0)
    calibrator.learn_one(0.6, 1, time=60.0)
    assert len(calibrator) == 2
    calibrator.learn_one(0.7, 1, time=60.5)
    assert len(calibrator) == 2
    assert calibrator.predict_one(0.5, time=1e6) == (0.0, 1.0)


@pytest.mark.large(100_000, reference=1_000)
def test_half_life_over_many_changes_of_scale(size: int) -> None:
    """A long stream over thousands of half-lives keeps only the last 30, at any scale."""
    rng = np.random.default_rng(4)
    scores, labels = rng.random(size), rng.integers(0, 2, size)
    calibrator = VennAbers(half_life=5.0)
    calibrator.learn_many(scores, labels, times=np.arange(size, dtype=float))
    assert len(calibrator) == 151
    check(calibrator)
    expected = Oracle(half_life=5.0)
    for i in range(size - 151, size):
        expected.learn(float(scores[i]), int(labels[i]), time=float(i))
    for asked in (0.1, 0.5, 0.77):
        assert calibrator.predict_one(asked) == expected.predict(asked)


# All of them


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@given(EVENTS, SCORES)
def test_every_rule_equals_the_definition(
    options: dict[str, Any], events: list[tuple[float, int, float, float]], asked: float
) -> None:
    """After any stream, predictions now and later are those of the definition."""
    calibrator, expected, now = VennAbers(**options), Oracle(**options), 0.0
    for score, label, weight, gap in events:
        now += gap
        when = {"time": now} if aging(options) else {}
        calibrator.learn_one(score, label, weight=weight, **when)
        expected.learn(score, label, weight, **when)
    assert len(calibrator) == len(expected)
    assert calibrator.late == expected.late
    assert calibrator.predict_one(asked, weight=0.7) == expected.predict(asked, 0.7)
    if aging(options):
        for later in (now - 3.0, now + 1.5, now + 4.9, now + 30.0):
            assert calibrator.predict_one(asked, time=later) == expected.predict(asked, time=later)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_hull_and_isotonic_see_what_is_held(options: dict[str, Any]) -> None:
    """The fit is that of what is remembered, with its weights as they are now."""
    calibrator, expected = VennAbers(**options), Oracle(**options)
    scores, labels, weights, times = stream(options, 60)
    calibrator.learn_many(scores, labels, weights=weights, times=times)
    for i, (score, label, weight) in enumerate(zip(scores, labels, weights, strict=True)):
        expected.learn(score, int(label), weight, -math.inf if times is None else times[i])
    hull = calibrator.hull()
    for score, value in expected.fit():
        assert calibrator.isotonic(score) == float(value)
        assert float(value) in hull.value


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_can_be_read_back(options: dict[str, Any]) -> None:
    """The rule of forgetting is shown by properties, None where it was not given."""
    calibrator = VennAbers(**options)
    for name in ("window", "max_age", "half_life"):
        assert getattr(calibrator, name) == options.get(name)
