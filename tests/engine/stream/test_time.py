"""Effects of event times on a processor, `abers.stream.processor`."""

from __future__ import annotations

import pytest
from tests.engine.stream.replies import NOW, kinds, lab, obs, only, processor

from abers.stream import DeadLetter, Event, Prediction, Processor, Settings

# Clock, lateness, expiry


def test_clock_is_the_largest_accepted_time() -> None:
    """The clock starts with the first accepted event and never decreases."""
    p = processor()
    assert p.clock is None
    p.process(obs("", 99))
    assert p.clock is None
    for time, clock in [(-5, -5), (3, 3), (1, 3), (10, 10)]:
        p.process(obs(f"{time}", time))
        assert p.clock == clock


def test_late_events_are_applied() -> None:
    """An event more than the lateness behind the clock is counted, and applied all the same."""
    p = processor(allowed_lateness=3)
    p.process(obs("a", 10))
    assert kinds(p.process(obs("b", 7))) == ["Prediction"]
    assert p.counters["late_events"] == 0
    assert kinds(p.process(obs("c", 6))) == ["Prediction"]
    assert kinds(p.process(lab("c", 6))) == ["Outcome"]
    assert p.counters["late_events"] == 2


def test_late_duplicates_count_as_late() -> None:
    """A duplicate that is behind counts as both."""
    p = processor()
    p.process_many([obs("a", 10), obs("a", 9)])
    assert (p.counters["late_events"], p.counters["duplicate_observations"]) == (1, 1)


@pytest.mark.parametrize("lateness", [0, 3])
def test_observations_expire_after_the_wait(lateness: int) -> None:
    """An observation waits for `label_timeout` of event time, and longer by the lateness."""
    p = processor(label_timeout=10, allowed_lateness=lateness)
    p.process(obs("a", 100))
    p.process(obs("b", 110 + lateness))
    assert p.counters["expired"] == 0
    p.process(obs("c", 111 + lateness))
    assert p.counters["expired"] == 1
    assert p.process(lab("a", 111)) == []
    assert p.counters["late_labels"] == 1


def test_waiting_is_counted_from_the_clock() -> None:
    """What comes late waits as long as what does not."""
    p = processor(label_timeout=10)
    p.process_many([obs("x", 100), lab("x", 100), obs("late", 0), lab("early", 0), obs("y", 110)])
    assert (p.counters["expired"], p.counters["unknown_labels"]) == (0, 0)
    assert kinds(p.process(lab("late", 1))) == ["Outcome"]
    assert kinds(p.process(obs("early", 1))) == ["Prediction", "Outcome"]


@pytest.mark.parametrize("lateness", [0, 3])
def test_early_labels_expire_into_dead_letters(lateness: int) -> None:
    """An unmatched label (timed out) is a dead letter without a row, the event as it waited."""
    p = processor(label_timeout=10, allowed_lateness=lateness)
    p.process(lab("a", 100, value=True, recorded=101))
    assert kinds(p.process(obs("b", 110 + lateness))) == ["Prediction"]
    dead_letter, _ = p.process(obs("c", 111 + lateness))
    assert isinstance(dead_letter, DeadLetter)
    assert (dead_letter.reason, dead_letter.event, dead_letter.row) == (
        "unknown-id",
        lab("a", 100),
        None,
    )
    assert dead_letter.detail
    assert (p.counters["unknown_labels"], p.counters["dead:unknown-id"]) == (1, 1)


def test_label_of_an_expired_early_label_waits_anew() -> None:
    """An early label that expired is not remembered."""
    p = processor(label_timeout=10)
    p.process_many([lab("a", 0), lab("b", 11)])
    assert p.process(lab("a", 11)) == []
    assert kinds(p.process(obs("a", 11))) == ["Prediction", "Outcome"]
    assert p.counters["early_labels"] == 3


def test_expiry_order() -> None:
    """Early labels that expire together come out in the order in which they came."""
    p = processor(label_timeout=10)
    names = ["d", "a", "c", "b"]
    p.process_many([lab(name, i % 2) for i, name in enumerate(names)])
    outputs = p.process(obs("x", 100))
    assert [o.event.id for o in outputs if isinstance(o, DeadLetter)] == names
    assert isinstance(outputs[-1], Prediction)


def test_expired_ids_are_forgotten_in_their_order() -> None:
    """Observations that expire together are remembered oldest first, and forgotten so."""
    p = processor(label_timeout=10, dedup_max_ids=2)
    p.process_many([obs(name, 0) for name in "abc"])
    p.process(obs("x", 11))
    assert (p.counters["expired"], p.counters["forgotten"]) == (3, 1)
    p.process_many([lab("b", 11), lab("c", 11)])
    assert p.counters["late_labels"] == 2
    assert kinds(p.process(obs("a", 11))) == ["Prediction"]


def test_finished_ids_are_remembered_from_when_they_finished() -> None:
    """The memory of an id begins with its label, or when it expired."""
    p = processor(label_timeout=10, dedup_ttl=5)
    p.process_many([obs("a", 0), obs("x", 11)])
    p.process(lab("a", 16))
    assert p.counters["late_labels"] == 1
    p.process(lab("a", 17))
    assert (p.counters["late_labels"], p.counters["early_labels"]) == (1, 1)


@pytest.mark.parametrize("lateness", [0, 4])
def test_memory_lasts_for_the_wait_by_default(lateness: int) -> None:
    """Without `dedup_ttl`, finished ids are remembered for `label_timeout`, and the lateness."""
    p = processor(label_timeout=10, allowed_lateness=lateness)
    p.process_many([obs("a", 0), lab("a", 1)])
    p.process(lab("a", 11 + lateness))
    assert p.counters["duplicate_labels"] == 1
    p.process(lab("a", 12 + lateness))
    assert p.counters["early_labels"] == 1


def test_nothing_is_remembered() -> None:
    """With `dedup_max_ids=0` an id is new as soon as it is finished."""
    p = processor(dedup_max_ids=0)
    p.process_many([obs("a"), lab("a")])
    assert only(p.process(obs("a"))).n_labels == 1
    assert p.counters["forgotten"] == 1


def test_expired_while_nothing_is_remembered() -> None:
    """With `dedup_max_ids=0` the label of an expired observation waits for a new one."""
    p = processor(dedup_max_ids=0, label_timeout=10)
    p.process_many([obs("a", 0), lab("a", 11)])
    assert (p.counters["expired"], p.counters["forgotten"], p.counters["early_labels"]) == (1, 1, 1)


def test_oldest_memory_goes_first() -> None:
    """At most `dedup_max_ids` finished ids are remembered; beyond that the oldest is forgotten."""
    p = processor(dedup_max_ids=2)
    p.process_many([obs(name) for name in "abc"])
    p.process_many([lab(name) for name in "bca"])
    assert p.counters["forgotten"] == 1
    assert p.process(obs("a")) == p.process(obs("c")) == []
    assert kinds(p.process(obs("b"))) == ["Prediction"]


def test_dead_letters_do_not_expire_anything() -> None:
    """Time passes only by accepted events."""
    p = processor(label_timeout=10)
    p.process(obs("a", 0))
    p.process(obs("b", 100, score=None))
    assert p.counters["expired"] == 0
    assert kinds(p.process(lab("a", 10))) == ["Outcome"]


# The year 2099

YEAR_2099 = 4_070_908_800_000


def test_future_of_its_own_record() -> None:
    """An event may be `max_clock_skew` after the time its record was written, not more."""
    p = Processor(Settings(max_clock_skew=5))
    assert kinds(p.process(obs("a", NOW + 5, recorded=NOW))) == ["Prediction"]
    assert kinds(p.process(obs("b", NOW + 6, recorded=NOW))) == ["time-in-future"]
    assert kinds(p.process(lab("a", NOW + 6, recorded=NOW))) == ["time-in-future"]
    assert p.clock == NOW + 5


def test_past_is_no_future() -> None:
    """An event may be any time behind its record."""
    p = processor()
    p.process(obs("a", NOW))
    assert kinds(p.process(obs("b", -NOW, recorded=NOW))) == ["Prediction"]


def test_year_2099_changes_nothing_else() -> None:
    """A record written before its time leaves all else as if it had not come, but for its count."""
    events: list[Event] = [obs("a", NOW), lab("early", NOW + 1)]
    after: list[Event] = [lab("a", NOW + 2), obs("early", NOW + 3), obs("b", NOW + 4)]
    odd: list[Event] = [
        obs("odd", YEAR_2099, recorded=NOW, model="odd"),
        lab("a", YEAR_2099, recorded=NOW),
    ]
    p, without = Processor(), Processor()
    assert kinds(p.process_many([*events, *odd])) == ["Prediction", *["time-in-future"] * 2]
    without.process_many(events)
    assert p.clock == without.clock
    assert p.process_many(after) == without.process_many(after)
    differ = {n for n, count in p.counters.items() if count != without.counters[n]}
    assert differ == {"observations", "labels_in", "dead:time-in-future"}
