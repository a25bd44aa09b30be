"""The clocks of models, `abers._core`: one wrong time does no harm, honest gaps pass.

The bound that these tests state: a record with a wrong time, whatever it is and wherever it comes,
makes what waits and what calibrators remember older by at most `Settings.jump`, a tenth of the
shortest span of time. Fewer than three wrong ids among a hundred events of a model do no more than
each of them would alone, unless the model falls silent for longer than the jump among these: the
first right id then makes them three. They do nothing at all to other models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.stream.replies import NOW, kinds, lab, obs

from abers.stream import Label, Observation, Outcome, Prediction, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Event, Output

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
YEAR = 365 * DAY
WAIT = DAY
FORGETTING: Sequence[dict[str, int]] = ({}, {"max_age": WAIT}, {"half_life": WAIT}, {"window": 30})
GAPS = (0, 12 * HOUR, 3 * DAY, 30 * DAY)
"""None, a night, a weekend, a month."""


def settings(**options: Any) -> Settings:  # noqa: ANN401
    """Let labels be waited for a day, so that one event moves a clock by at most 2.4 hours."""
    return Settings(label_timeout=WAIT, **options)


def honest(seed: int, *, gap: int = 0, models: int = 2, n: int = 120) -> list[Event]:
    """Make a stream in order of time: observations minutes apart, labels up to 10 hours late."""
    rng = np.random.default_rng(seed)
    made: list[Event] = []
    time = NOW
    for i in range(n):
        time += int(rng.integers(1, 10 * MINUTE)) + (gap if i in {n // 3, n // 2} else 0)
        model = f"m{i % models}"
        score = float(rng.random())
        made.append(Observation(f"{i}", time, model, score=score))
        delay = int(rng.integers(HOUR, 10 * HOUR))
        made.append(Label(f"{i}", time + delay, model, value=int(rng.random() < score)))
    return sorted(made, key=lambda event: event.time)


def before_silence(events: list[Event], options: Settings) -> list[Event]:
    """Return the events before the first that comes later than its clock by more than the jump."""
    p = Processor(options)
    for place, event in enumerate(events):
        p.process(event)
        if p.counters["ahead_events"]:
            return events[:place]
    return events


def of_others(outputs: list[Output], wrong: set[str]) -> list[Output]:
    """Return the outputs without those of some ids."""
    return [one for one in outputs if getattr(one, "id", None) not in wrong]


def with_wrong(
    events: list[Event], place: int, times: Sequence[int], model: str
) -> tuple[list[Event], set[str]]:
    """Put observations of ids of their own, with these times, into a stream."""
    wrong: list[Event] = [obs(f"w{i}", time, 0.5, model=model) for i, time in enumerate(times)]
    return [*events[:place], *wrong, *events[place:]], {event.id for event in wrong}


FAR = st.one_of(
    st.integers(NOW + 2 * DAY, 2**53 - 1),  # beyond the last label by more than the jump
    st.integers(-(2**53) + 1, NOW),
    st.sampled_from([0, NOW + YEAR, 4_070_908_800_000]),
)


@given(
    seed=st.integers(0, 10**6),
    place=st.integers(20, 200),
    times=st.lists(FAR, min_size=1, max_size=2),
    model=st.sampled_from(["m0", "other"]),
    forgetting=st.sampled_from(FORGETTING),
)
@example(  # the last two labels come after a silence of 2.43 hours
    seed=522891, place=40, times=[NOW + 2 * DAY, NOW + 209_603_277], model="m0", forgetting={}
)
def test_wrong_times_change_nothing_else(
    seed: int, place: int, times: list[int], model: str, forgetting: dict[str, int]
) -> None:
    """Until a silence, one or two observations far from the clock leave all other outputs alone."""
    # A calibrator without an order of teaching, where what waits says when labels are taught.
    options = settings(calibrator="isotonic", **forgetting)
    events = before_silence(honest(seed), options)
    changed, wrong = with_wrong(events, place, times, model)
    p, without = Processor(options), Processor(options)
    assert of_others(p.process_many(changed), wrong) == without.process_many(events)


@given(seed=st.integers(0, 10**6), times=st.lists(FAR, min_size=3, max_size=30))
def test_wrong_clock_of_one_model(seed: int, times: list[int]) -> None:
    """Wrong records of a model, however many, change no output of other models."""
    events = honest(seed)
    changed, wrong = with_wrong(events, 50, times, "m1")
    p, without = (Processor(settings(max_age=WAIT)) for _ in range(2))
    theirs = [one for one in p.process_many(changed) if getattr(one, "model", "") == "m0"]
    assert theirs == [one for one in without.process_many(events) if one.model == "m0"]  # type: ignore[union-attr]
    assert wrong


@given(
    seed=st.integers(0, 10**6),
    place=st.integers(0, 240),
    time=st.one_of(FAR, st.integers(NOW - WAIT, NOW + 2 * WAIT)),
    gap=st.sampled_from(GAPS),
)
def test_what_one_wrong_time_may_do(seed: int, place: int, time: int, gap: int) -> None:
    """Wherever one wrong time comes, no label is lost that comes a jump before its timeout."""
    events = honest(seed, gap=gap)
    changed, wrong = with_wrong(events, place, [time], "m0")
    p = Processor(settings())
    outputs = of_others(p.process_many(changed), wrong)
    assert {*kinds(outputs)} == {"Prediction", "Outcome"}
    assert sum(isinstance(one, Prediction) for one in outputs) == len(events) // 2
    assert {one.id for one in outputs if isinstance(one, Outcome)} == {e.id for e in events}


@given(
    seed=st.integers(0, 10**6),
    place=st.integers(0, 239),
    time=st.one_of(FAR, st.integers(NOW - WAIT, NOW + 2 * WAIT)),
)
def test_calibrators_remember(seed: int, place: int, time: int) -> None:
    """One record whose own time is wrong empties no calibrator that forgets by age."""
    events = honest(seed, models=1)
    changed = [*events]
    changed[place] = msgspec.structs.replace(events[place], time=time)
    s = settings(max_age=WAIT)
    p, without = Processor(s), Processor(s)
    p.process_many(changed)
    without.process_many(events)
    end = events[-1].time
    last = [obs(f"last-{i}", end, model="m0") for i in range(3)]
    (held,) = {one.n_labels for one in p.process_many(last)}  # type: ignore[union-attr]
    assert without.process_many(last)
    settled = {event.id: event for event in events if isinstance(event, Observation)}
    young = sum(end - one.time < WAIT - s.jump for one in settled.values())
    assert held >= young - 3  # the first two labels, and the record itself


@pytest.mark.parametrize("gap", GAPS)
@given(seed=st.integers(0, 10**6))
def test_honest_gaps_pass(gap: int, seed: int) -> None:
    """After a gap of a night, a weekend or a month, all is predicted and learned."""
    events = honest(seed, gap=gap)
    p = Processor(settings())
    assert {*kinds(p.process_many(events))} == {"Prediction", "Outcome"}
    assert p.waiting == (0, 0)
    p.process_many([obs(f"last-{i}", events[-1].time + i, model="m0") for i in range(3)])
    assert p.clock == events[-1].time + 2


def test_rare_events() -> None:
    """Where events come less often than the jump, the clock follows them after the first three."""
    p = Processor(settings(max_age=30 * DAY))
    for i in range(300):
        assert kinds(p.process(obs(f"{i}", NOW + i * DAY))) == ["Prediction"]
    assert p.clock == NOW + 299 * DAY
    assert p.counters["ahead_events"] == 6  # three must agree again every hundred events


def test_one_wrong_time_among_rare_ones() -> None:
    """One alone moves the clock by at most three times what events are apart."""
    p = Processor(settings())
    p.process_many([obs(f"{i}", NOW + i * DAY) for i in range(10)])
    p.process_many([obs("w", NOW + 13 * DAY), obs("v", NOW + 12 * DAY)])
    assert p.clock == NOW + 12 * DAY


def test_what_waits_in_a_gap() -> None:
    """What came first after a gap waits from its end on, and what came before it has expired."""
    p = Processor(settings())
    p.process_many([obs(name, NOW) for name in ("x", "y", "old")])
    after = NOW + 3 * DAY
    p.process_many([obs("a", after), lab("early", after), obs("b", after + 1)])
    assert p.counters["expired"] == 3
    p.process_many([lab("a", after + 2), obs("early", after + 2), lab("old", after + 3)])
    assert (p.counters["labels"], p.counters["late_labels"], p.counters["expired"]) == (2, 1, 3)


def test_two_wrong_times_and_a_silence() -> None:
    """The first right id after a silence agrees with two wrong ones, as if events were rare."""
    p = Processor(settings())
    p.process_many([obs(name, NOW) for name in "abc"])
    p.process_many([obs("w", NOW + 2 * DAY), obs("v", NOW + 3 * DAY)])
    assert p.clock == NOW
    p.process(obs("d", NOW + 3 * HOUR))
    assert p.clock == NOW + 3 * DAY


def test_one_id_does_not_agree_with_itself() -> None:
    """An id that comes again and again moves the clock no further than once."""
    p = Processor(settings())
    p.process_many([obs(name, NOW) for name in "abc"])
    far = NOW + YEAR
    p.process_many([obs("w", far), lab("w", far), obs("w", far + 1), lab("w", far + 2)])
    assert (p.clock, p.counters["ahead_events"]) == (NOW, 4)


def test_candidates_grow_old() -> None:
    """Wrong times that are more than a hundred events apart never agree."""
    p = Processor(settings())
    for i in range(400):
        p.process(obs(f"{i}", NOW + YEAR + i if i % 50 == 3 else NOW + i))
    assert p.clock == NOW + 399


def test_first_record_is_wrong() -> None:
    """A clock that began with a wrong time goes back when two others disagree with it."""
    p = Processor(settings(max_age=WAIT))
    p.process_many([obs("w", NOW + YEAR), lab("w", NOW + YEAR)])
    p.process_many([obs("a", NOW), lab("a", NOW + 1)])
    p.process_many([obs("b", NOW + 2), lab("b", NOW + 3)])
    assert p.clock == NOW + 3
    (after,) = p.process(obs("c", NOW + 4))
    assert isinstance(after, Prediction)
    assert after.n_labels == 1  # labels count when the clock is known


def test_forget_brings_the_clock_back() -> None:
    """Forgetting a model resets its clock; what waits keeps waiting."""
    p = Processor(settings())
    p.process_many([obs(name, NOW) for name in "abc"])
    p.process_many([obs(f"w{i}", NOW + YEAR) for i in range(3)])
    assert (p.clock, p.counters["expired"]) == (NOW + YEAR, 3)
    p.process(obs("waits", NOW + HOUR))
    p.reset_model("default")
    p = Processor.restore(p.snapshot(), p.settings)
    assert p.clock is None
    p.process_many([obs(name, NOW + 2 * HOUR) for name in "def"])
    assert p.clock == NOW + 2 * HOUR
    assert kinds(p.process(lab("waits", NOW + 3 * HOUR))) == ["Outcome"]
    p.process(obs("g", NOW + 3 * HOUR))
    assert p.counters["expired"] == 3


def test_delays_of_wrong_times() -> None:
    """A wrong time makes no delay of years."""
    p = Processor(settings())
    p.process_many([obs(name, NOW) for name in "abc"])
    p.process(obs("w", NOW + YEAR))
    from abers.stream import Events  # noqa: PLC0415

    settled = p.process_batch(Events.of([lab("w", NOW + 5), lab("a", NOW + YEAR)])).settled_batch
    assert settled is not None
    assert settled.delays.tolist() == [0, 5]
