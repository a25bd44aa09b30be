"""Delayed labels: the same as by a plain loop, from any position."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.sources.memory import Labelled, MemorySource

from abers import ParameterError
from abers.stream.events import Event, Label, Observation
from abers_connectors.sources.delayed_labels import DelayedLabels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers_connectors.sources.base import Batch

TIMES = st.lists(st.integers(0, 30), max_size=30)
MODELS = st.lists(st.sampled_from("xyz"), min_size=30, max_size=30)


def pairs(times: list[int], models: Sequence[str] = "x" * 12_000) -> list[Labelled]:
    """Return labelled observations of some times and models."""
    return [Labelled(Observation(f"a{n}", time, models[n]), n % 2) for n, time in enumerate(times)]


def by_count(times: list[int], count: int, models: Sequence[str]) -> list[tuple[str, str, int]]:
    """Release each label after a number of further observations of its model, in a plain loop.

    A label comes before the next observation of the model, and the rest come at the end.
    """
    found = []
    waiting: dict[str, deque[int]] = {model: deque() for model in models}
    last: dict[str, int] = {}
    for n, time in enumerate(times):
        mine = waiting[models[n]]
        if len(mine) > count:
            found.append(("l", f"a{mine.popleft()}", last[models[n]]))
        found.append(("o", f"a{n}", time))
        mine.append(n)
        last[models[n]] = time
    rest = sorted(n for mine in waiting.values() for n in mine)
    return found + [("l", f"a{n}", last[models[n]]) for n in rest]


def by_span(times: list[int], span: int) -> list[tuple[str, str, int]]:
    """Release each label after a span of event time, in a plain loop."""
    found = []
    out: list[tuple[int, int]] = []
    clock = -1
    for n, time in enumerate(times):
        clock = max(clock, time)
        while out and out[0][0] + span <= clock:
            first = out.pop(0)[1]
            found.append(("l", f"a{first}", times[first] + span))
        found.append(("o", f"a{n}", time))
        out.append((clock, n))
    return found + [("l", f"a{n}", times[n] + span) for _, n in out]


def kinds_ids_times(events: list[Event]) -> list[tuple[str, str, int]]:
    """Return kind, id and time of events."""
    return [("l" if isinstance(event, Label) else "o", event.id, event.time) for event in events]


@given(TIMES, MODELS, st.integers(0, 8), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_labels_are_released_as_by_a_plain_loop(  # noqa: PLR0913, PLR0917 - what is drawn
    times: list[int],
    models: list[str],
    delay: int,
    size: int,
    other: int,
    counts: bool,  # noqa: FBT001
) -> None:
    """Batches of any size, resumed after any of them, have the events of the loop."""
    expected = by_count(times, delay, models) if counts else by_span(times, delay)

    def source(size: int) -> DelayedLabels:
        memory = MemorySource(pairs(times, models), size=size)
        return delayed(memory, "count" if counts else "span", delay, whole=True)

    batches = list(source(size).batches())
    events = [event for batch in batches for event in batch.events]
    assert kinds_ids_times(events) == expected
    assert all(event.value == int(event.id[1:]) % 2 for event in events if type(event) is Label)
    done = 0
    for batch in batches:
        done += len(batch.events)
        position = json.loads(json.dumps(batch.position))
        rest = [event for one in source(other).batches(position) for event in one.events]
        assert kinds_ids_times(events[:done] + rest) == expected


def test_a_position_reads_no_more_than_it_must() -> None:
    """A resumed stream is read from the oldest observation whose label is pending."""
    source = DelayedLabels(MemorySource(pairs(list(range(1000))), size=10), count=25)
    for number, batch in enumerate(source.batches()):
        if 3 <= number < 100:
            assert batch.position["at"] == {"records": 10 * (number - 2)}
            assert batch.position["events"] == 30


def test_many_labels_at_the_end_come_in_batches() -> None:
    """The labels that are pending at the end come in several batches."""
    source = DelayedLabels(MemorySource(pairs(list(range(12_000)))), span=10**6, whole=True)
    sizes = [len(batch.events) for batch in source.batches()]
    assert sizes == [5000, 5000, 2000, 5000, 5000, 2000]


def test_origins_of_labels() -> None:
    """The origin of a label names its observation; an observation has its own origin."""
    source = DelayedLabels(MemorySource(pairs([5, 6, 7]), name="stream"), count=1)
    batch = next(iter(source.batches()))
    assert kinds_ids_times(list(batch.events))[2:4] == [("l", "a0", 6), ("o", "a2", 7)]
    assert batch.origin(2).where == "stream, label of observation a0"
    assert batch.origin(3).where == "stream event 3"


def test_two_delays_are_an_error() -> None:
    """At most one of count and span may be given."""
    with pytest.raises(ParameterError, match="give one of them, or none"):
        DelayedLabels(MemorySource([]), count=1, span=1)


def delayed(source: MemorySource, by: str, delay: int, *, whole: bool = False) -> DelayedLabels:
    """Return a source whose labels are late by a count or a span, or have times of their own."""
    late: dict[str, Any] = {} if by == "own" else {by: delay}
    return DelayedLabels(source, **late, whole=whole)


@given(
    TIMES,
    st.lists(st.booleans(), min_size=30, max_size=30),
    st.integers(0, 5),
    st.sampled_from(["count", "span", "own"]),
    st.integers(1, 7),
)
def test_in_a_whole_stream_waits_end_where_labels_would_come(
    times: list[int], known: list[bool], delay: int, by: str, size: int
) -> None:
    """A wait without a label ends where that would be released, at its own time at once."""
    delays = [delay if one else 0 for one in known[: len(times)]]
    rows = timed_pairs(times, delays) if by == "own" else pairs(times)
    rows = [
        one if here else one._replace(value=None) for one, here in zip(rows, known, strict=False)
    ]
    released = {
        "own": by_own_time(times, delays),
        "count": by_count(times, delay, "x" * len(times)),
        "span": by_span(times, delay),
    }
    expected = [
        ("e" if kind == "l" and not known[int(id_[1:])] else kind, id_, time)
        for kind, id_, time in released[by]
    ]
    found = [
        ("ole"[kind], event.id, event.time)
        for batch in delayed(MemorySource(rows, size=size), by, delay, whole=True).batches()
        for kind, event in zip(batch.events.kinds, batch.events, strict=True)
    ]
    assert found == expected


def timed_pairs(times: list[int], delays: list[int]) -> list[Labelled]:
    """Return labelled observations whose labels have times of their own."""
    return [
        one._replace(time=one.observation.time + delay)
        for one, delay in zip(pairs(times), delays, strict=True)
    ]


def by_own_time(times: list[int], delays: list[int]) -> list[tuple[str, str, int]]:
    """Release each label before the first later observation that is not before it, in a loop."""
    found: list[tuple[str, str, int]] = []
    out: list[tuple[int, int]] = []
    clock = -1
    for n, time in enumerate(times):
        clock = max(clock, time)
        for due, label in sorted(one for one in out if one[0] <= clock):
            found.append(("l", f"a{label}", due))
        out = [one for one in out if one[0] > clock]
        found.append(("o", f"a{n}", time))
        out.append((time + delays[n], n))
    return found + [("l", f"a{n}", due) for due, n in sorted(out)]


@given(TIMES, st.data(), st.integers(1, 7), st.integers(1, 7))
def test_labels_with_times_of_their_own(
    times: list[int], data: st.DataObject, size: int, other: int
) -> None:
    """Each label comes at its own time, in batches of any size, resumed after any of them."""
    several = st.lists(st.integers(0, 12), min_size=len(times), max_size=len(times))
    delays = data.draw(several)
    expected = by_own_time(times, delays)
    records = timed_pairs(times, delays)
    batches = list(DelayedLabels(MemorySource(records, size=size), whole=True).batches())
    events = [event for batch in batches for event in batch.events]
    assert kinds_ids_times(events) == expected
    done = 0
    for batch in batches:
        done += len(batch.events)
        position = json.loads(json.dumps(batch.position))
        again = DelayedLabels(MemorySource(records, size=other), whole=True).batches(position)
        rest = [event for one in again for event in one.events]
        assert kinds_ids_times(events[:done] + rest) == expected


@given(
    TIMES,
    TIMES,
    MODELS,
    st.integers(0, 8),
    st.sampled_from(["count", "span", "own"]),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_a_stream_that_has_grown(  # noqa: PLR0913, PLR0917 - what is drawn
    times: list[int],
    later: list[int],
    models: list[str],
    delay: int,
    by: str,
    size: int,
    other: int,
) -> None:
    """Each model of a file that has grown has the events of one that was there at once."""
    grown = times + later
    delays = [delay] * len(grown)

    def source(times: list[int], size: int, *, whole: bool = False) -> DelayedLabels:
        made = timed_pairs(times, delays[: len(times)]) if by == "own" else pairs(times)
        records = [
            one._replace(observation=msgspec.structs.replace(one.observation, model=model))
            for one, model in zip(made, models * 2, strict=False)
        ]
        return delayed(MemorySource(records, size=size), by, delay, whole=whole)

    def of_models(batches: Iterable[Batch]) -> dict[str, list[tuple[str, str, int]]]:
        events = [event for one in batches for event in one.events]
        return {
            model: kinds_ids_times([one for one in events if one.model == model]) for model in "xyz"
        }

    before = list(source(times, size).batches())
    position = json.loads(json.dumps(before[-1].position)) if before else None
    found = of_models([*before, *source(grown, other).batches(position)])
    assert found == of_models(source(grown, size).batches())
    for model, whole in of_models(source(grown, size, whole=True).batches()).items():
        assert found[model] == whole[: len(found[model])]


@given(
    TIMES,
    st.lists(st.booleans(), min_size=60, max_size=60),
    TIMES,
    st.integers(0, 8),
    st.sampled_from(["count", "span", "own"]),
    st.integers(1, 7),
)
def test_labels_that_are_not_known_yet(  # noqa: PLR0913, PLR0917 - what is drawn
    times: list[int],
    known: list[bool],
    later: list[int],
    delay: int,
    by: str,
    size: int,
) -> None:
    """An observation without a label counts like any other, and no label of it is released."""
    grown = times + later
    delays = [delay] * len(grown)

    def records(times: list[int]) -> list[Labelled]:
        made = timed_pairs(times, delays[: len(times)]) if by == "own" else pairs(times)
        return [one if known[n] else one._replace(value=None) for n, one in enumerate(made)]

    def source(times: list[int]) -> DelayedLabels:
        return delayed(MemorySource(records(times), size=size), by, delay)

    def without_unknown(found: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        return [one for one in found if one[0] == "o" or known[int(one[1][1:])]]

    everything = {
        "own": by_own_time(times, delays[: len(times)]),
        "count": by_count(times, delay, "x" * len(times)),
        "span": by_span(times, delay),
    }
    batches = list(source(times).batches())
    found = kinds_ids_times([event for one in batches for event in one.events])
    assert found == without_unknown(everything[by])[: len(found)]  # the other labels wait
    assert sum(one.unlabelled for one in batches) == known[: len(times)].count(False)
    done = 0
    for batch in batches:
        done += len(batch.events)
        position = json.loads(json.dumps(batch.position))
        rest = [event for one in source(times).batches(position) for event in one.events]
        assert found[:done] + kinds_ids_times(rest) == found
    position = batches[-1].position if batches else None
    after = [event for one in source(grown).batches(position) for event in one.events]
    whole = found + kinds_ids_times(after)
    assert [id_ for kind, id_, _ in whole if kind == "o"] == [f"a{n}" for n in range(len(grown))]
    at_once = [event for one in source(grown).batches() for event in one.events]
    assert whole == kinds_ids_times(at_once)
