"""What a service tells of itself: what moved, what is served, what was committed."""

from __future__ import annotations

import json
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read, turning
from tests.connectors.kafka.works import Served

from abers_connectors.kafka.status import Counts, Gauges, Histogram, Status

if TYPE_CHECKING:
    from collections.abc import Callable


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Read it."""
        return self.now


def observed(id_: str, time: int) -> Read:
    """Make the record of an observation."""
    return Read(b'{"id": "%s", "time": %d, "score": 0.5}' % (id_.encode(), time))


def settled(id_: str, time: int) -> Read:
    """Make the record of a label."""
    return Read(b'{"id": "%s", "time": %d, "label": 1}' % (id_.encode(), time))


# Alive and ready


def test_alive_while_it_progresses() -> None:
    """A service is alive up to its patience after its last progress, and again with the next."""
    clock = Time()
    status = Status(60.0, clock=clock)
    clock.now += 60.0
    assert status.view().alive
    clock.now += 0.1
    assert not status.view().alive
    status.progressed()
    assert status.view().alive


def test_ready_when_all_is_restored() -> None:
    """A service is ready when it is in its group, and serves everything that is assigned."""
    status = Status(60.0)
    assert not status.view().ready
    status.assign({("in", 0), ("labels", 0), ("in", 2), ("labels", 2)})
    status.joined = True
    status.restore(Served(2))
    assert (status.view().assigned, status.view().restored) == ([0, 2], [2])
    assert not status.view().ready
    status.restore(Served(0))
    assert status.view().ready
    status.joined = False
    assert not status.view().ready


def test_ready_while_the_brokers_are_heard() -> None:
    """A service that hears nothing for its session is not ready, even where its loop hangs."""
    clock = Time()
    status = Status(60.0, session=10.0, clock=clock)
    status.joined, status.heard = True, clock.now - 4.0
    assert status.view().ready
    clock.now += 6.0
    assert status.view().joined
    clock.now += 0.1
    assert (status.view().ready, status.view().joined, status.view().alive) == (False, False, True)
    status.heard = clock.now
    assert status.view().ready


def test_an_empty_assignment_is_ready() -> None:
    """A spare process, to which nothing is assigned, is ready."""
    status = Status(60.0)
    status.assign(())
    status.joined = True
    assert status.view().ready


def test_a_new_assignment_is_not_ready() -> None:
    """What was restored is looked at again when partitions are assigned."""
    status = Status(60.0)
    status.joined = True
    status.assign([("in", 0)])
    status.restore(Served(0))
    assert status.view().ready
    status.assign([("in", 0)])
    assert not status.view().ready


# What is counted


def test_a_batch_is_counted() -> None:
    """Records, outputs, dead letters and delays are counted as they were committed."""
    status, shard = Status(60.0), Served(3)
    status.assign([("in", 3)])
    records = [observed("a", 1000), observed("b", 2000), Read(b"{"), Read(None), settled("c", 1)]
    status.commit(shard, shard.take(*records, settled("a", 3500), inputs=b"\0\0\0\0\1\1"))
    counts = status.view().counts
    assert counts.records == {"observations": 4, "labels": 2}
    assert counts.written == {"predictions": 2, "outcomes": 1, "dead_letters": 1}
    assert counts.dead == {"bad-json": 1}
    assert counts.tombstones == 1
    assert counts.label_delay.cumulated()[:2] == [("1.0", 0), ("10.0", 1)]
    assert counts.label_delay.sum == 2.5
    assert status.usual_delay() == 10.0
    assert status.view().gauges == {3: Gauges(1, 1, 3500)}


def test_a_batch_without_events() -> None:
    """A batch of poison and tombstones is counted too."""
    status, shard = Status(60.0), Served()
    status.commit(shard, shard.take(Read(b"{"), Read(None)))
    counts = status.view().counts
    assert (counts.records["observations"], counts.dead["bad-json"], counts.tombstones) == (2, 1, 1)
    assert status.view().gauges == {0: Gauges(0, 0, None)}


def test_transactions_are_counted() -> None:
    """Commits by how long they took; those given up with the reason of the last."""
    status = Status(60.0)
    for seconds in (0.004, 0.02, 99.0):
        status.committed(seconds)
    for why in ("first", "second"):
        status.abort(why)
    view = status.view()
    assert (view.counts.commits, view.counts.aborts) == (3, 2)
    assert dict(view.counts.commit_seconds.cumulated())["0.025"] == 2
    assert view.hints == ["the last transaction that was given up: second"]


def test_other_counts() -> None:
    """Assignments, restores, snapshots and lags are told."""
    status = Status(60.0)
    status.assign([("in", 0), ("in", 1)])
    status.restore(Served(0))
    for well in (True, False, True):
        status.saved(well=well)
    status.lag({("in", 0): 5, ("in", 1): 7})
    status.lag({("in", 0): 4})
    view = status.view()
    assert (view.counts.assignments, view.counts.restores) == (1, 1)
    assert view.counts.snapshots == {"saved": 2, "failed": 1}
    assert view.lags == {("in", 0): 4, ("in", 1): 7}


def test_a_restored_shard_is_seen() -> None:
    """What waits in a shard is told when it is restored, before anything new comes."""
    status, shard = Status(60.0), Served(4)
    shard.take(observed("a", 1000), settled("c", 2000))
    status.restore(shard)
    assert status.view().gauges == {4: Gauges(1, 1, 2000)}


def test_what_leaves_is_told_no_more() -> None:
    """Gauges of a partition go with it; what was counted stays."""
    status, shard = Status(60.0), Served(1)
    status.assign([("in", 0), ("in", 1)])
    status.commit(shard, shard.take(observed("a", 1)))
    status.lag({("in", 0): 5, ("in", 1): 7})
    status.assign([("in", 0)])
    view = status.view()
    assert (view.gauges, view.lags) == ({}, {("in", 0): 5})
    assert view.counts.written["predictions"] == 1


def test_hints_are_told_once() -> None:
    """A hint is told once, in the order given, and there are never many."""
    status = Status(60.0)
    for number in [0, 1, 0, *range(2, 50)]:
        status.hint(f"hint {number}")
    assert status.view().hints[:3] == ["hint 0", "hint 1", "hint 2"]
    assert len(status.view().hints) == 20


# Alarms


def test_an_alarm_is_counted() -> None:
    """An alarm counts when it is committed, by model and test."""
    status, shard = Status(60.0), Served()
    work = shard.take(*turning())
    assert status.view().counts.alarms == {}
    status.commit(shard, work)
    assert status.view().counts.alarms == {("m", "change"): 1}


def test_evidence_is_of_all_shards() -> None:
    """Of each model the loudest of its tests is told, whichever shard has it; until it leaves."""
    status, shards = Status(60.0), [Served(0), Served(1), Served(2)]
    shards[0].take(*turning()[:300])
    shards[1].take(*turning())
    shards[2].take(*turning("other")[:300])
    status.weigh(shards)
    found = status.view().evidence
    (monitor,) = shards[1].processor.monitors
    assert [*found] == ["m", "other"]
    assert [one.name for one in found["m"]] == [one.name for one in monitor.tests]
    assert [one.ringing for one in found["m"]] == [one.ringing for one in monitor.tests]
    change = next(one for one in found["m"] if one.name == "change")
    assert (change.ringing, change.episodes) == (True, 1)
    assert not any(one.ringing for one in found["other"])
    status.assign([("in", 0)])
    assert status.view().evidence == {}


def test_evidence_where_there_are_no_tests() -> None:
    """Without tests, or without monitors, there is nothing to be told."""
    for key in ("monitoring.tests", "monitoring.enabled"):
        status, shard = Status(60.0), Served(0, {key: False})
        status.commit(shard, shard.take(*turning()))
        status.weigh([shard])
        assert not any(status.view().evidence.values())
        assert status.view().counts.alarms == {}


# Models that were retired

RETIRING = {"limits.max_models": 4, "limits.retire_after": "1h", "limits.max_jump": "1d"}


def judged(model: str, time: int, times: int = 3) -> list[Read]:
    """Make observations of a model, with their labels."""
    return [
        Read(json.dumps(seen | more).encode(), timestamp=time)
        for number in range(times)
        for seen in [{"id": f"{time}-{number}", "time": time, "model": model}]
        for more in ({"score": 0.5}, {"label": 1})
    ]


def crowd(status: Status, shard: Served, hours: range) -> None:
    """Let one model live, and one be new every hour that comes never again."""
    for hour in hours:
        time = 1_700_000_000_000 + 3_600_000 * hour
        records = judged("live", time, times=50) + judged(f"junk-{hour}", time)
        status.commit(shard, shard.take(*records))


def test_what_is_counted_of_models_is_bounded() -> None:
    """However many names come and go, a scrape has rows of those that are there alone."""
    status, shard = Status(60.0), Served(0, RETIRING)
    for first in range(0, 40, 5):
        crowd(status, shard, range(first, first + 5))
        status.weigh([shard])
        tallies = status.view().counts.tallies
        assert tallies.rows.keys() == {model for model, _ in shard.processor.keys}
    assert shard.processor.counters["retired"] > 30
    assert tallies.tables["brier", "calibrated"].shape == (len(tallies.rows), 1)


def test_what_another_shard_has_stays() -> None:
    """A name that was retired in one shard alone keeps its row, and so does one that left."""
    status, shards = Status(60.0), [Served(0, RETIRING), Served(1, RETIRING)]
    leaving = Served(2, RETIRING)
    status.commit(leaving, leaving.take(*judged("gone elsewhere", 1_700_000_000_000)))
    status.commit(shards[1], shards[1].take(*judged("junk-0", 1_700_000_000_000)))
    crowd(status, shards[0], range(9))
    status.weigh(shards)
    assert "junk-0" not in {model for model, _ in shards[0].processor.keys}
    assert {"junk-0", "gone elsewhere", "live"} <= status.view().counts.tallies.rows.keys()
    assert "junk-1" not in status.view().counts.tallies.rows


def test_alarms_of_retired_models() -> None:
    """Episodes of a model are forgotten with it."""
    status = Status(60.0)
    shard = Served(0, RETIRING)
    status.commit(shard, shard.take(*turning()))
    assert status.view().counts.alarms == {("m", "change"): 1}
    for time in (1_700_000_000_000, 1_700_000_000_001):
        status.commit(shard, shard.take(*(r for m in "xyz" for r in judged(m, time, times=50))))
    status.weigh([shard])
    assert "m" not in {model for model, _ in shard.processor.keys}
    assert status.view().counts.alarms == {}


# What readers get


def test_a_view_stays_as_it_is() -> None:
    """What was seen does not change while the loop goes on."""
    status, shard = Status(60.0), Served()
    status.assign([("in", 0)])
    view = status.view()
    status.commit(shard, shard.take(observed("a", 1), Read(b"{"), Read(None)))
    status.committed(1.0)
    status.saved(well=True)
    status.lag({("in", 0): 1})
    status.hint("x")
    assert view.counts == Counts(assignments=1)
    assert (view.gauges, view.lags, view.hints) == ({}, {}, [])


def test_a_view_is_of_one_moment() -> None:
    """A reader in another thread never sees a batch counted by half."""
    status, shard = Status(60.0), Served()
    seen: list[bool] = []

    def read() -> None:
        while not (view := status.view()).hints:
            seen.append(view.counts.records["observations"] == view.counts.written["predictions"])

    reader = Thread(target=read)
    reader.start()
    for number in range(300):
        status.commit(shard, shard.take(observed(str(number), number)))
    status.hint("that is all")
    reader.join()
    assert all(seen)


@given(st.lists(st.floats(0, 100), max_size=20))
def test_values_one_by_one_and_at_once(values: list[float]) -> None:
    """A histogram is the same however values come, and each bucket has what is up to its bound."""
    one, many = Histogram.over(0.5, 1.0, 50.0), Histogram.over(0.5, 1.0, 50.0)
    for value in values:
        one.add(value)
    many.add_many(np.array(values))
    assert one.counts == many.counts
    assert np.isclose(one.sum, many.sum)
    middle = sorted(values)[(len(values) - 1) // 2] if values else 0.0
    bounds = [bound for bound in one.bounds if bound >= middle]
    assert one.median() == (0.0 if not values else bounds[0] if bounds else 50.0)
    up_to: Callable[[float], int] = lambda bound: sum(value <= bound for value in values)  # noqa: E731
    assert one.cumulated() == [
        ("0.5", up_to(0.5)),
        ("1.0", up_to(1.0)),
        ("50.0", up_to(50.0)),
        ("+Inf", len(values)),
    ]
