"""The status of a service: progress, readiness, and counts of committed batches."""

from __future__ import annotations

import json
import math
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read, turning
from tests.connectors.kafka.works import Served

from abers_connectors.runtime.application import RecordCounts
from abers_connectors.runtime.status import Counters, Histogram, Status, TaskGauges

if TYPE_CHECKING:
    from collections.abc import Callable


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def observed(id_: str, time: int) -> Read:
    """Return the record of an observation."""
    return Read(b'{"id": "%s", "time": %d, "score": 0.5}' % (id_.encode(), time))


def settled(id_: str, time: int) -> Read:
    """Return the record of a label."""
    return Read(b'{"id": "%s", "time": %d, "label": 1}' % (id_.encode(), time))


# Alive and ready


def test_alive_while_it_progresses() -> None:
    """A service is alive until the stall timeout after its last progress."""
    clock = Time()
    status = Status(60.0, clock=clock)
    clock.now += 60.0
    assert status.view().alive
    clock.now += 0.1
    assert not status.view().alive
    status.progressed()
    assert status.view().alive


def test_ready_when_all_is_restored() -> None:
    """A service is ready in its group, when all assigned tasks are restored."""
    status = Status(60.0)
    assert not status.view().ready
    status.assign({("in", 0), ("labels", 0), ("in", 2), ("labels", 2)})
    status.seats["tasks"].joined = True
    status.restored(Served(2))
    assert (status.view().assigned, status.view().restored) == ([0, 2], [2])
    assert not status.view().ready
    status.restored(Served(0))
    assert status.view().ready
    status.seats["tasks"].joined = False
    assert not status.view().ready


def test_ready_while_the_brokers_answer() -> None:
    """Without a heartbeat for the session timeout a service is not ready, even if it hangs."""
    clock = Time()
    status = Status(60.0, session_timeout=10.0, clock=clock)
    status.seats["tasks"].joined, status.seats["tasks"].last_heartbeat = True, clock.now - 4.0
    assert status.view().ready
    clock.now += 6.0
    assert status.view().joined
    clock.now += 0.1
    assert (status.view().ready, status.view().joined, status.view().alive) == (False, False, True)
    status.seats["tasks"].last_heartbeat = clock.now
    assert status.view().ready


def test_an_empty_assignment_is_ready() -> None:
    """A spare process without partitions is ready."""
    status = Status(60.0)
    status.assign(())
    status.seats["tasks"].joined = True
    assert status.view().ready


def test_a_new_assignment_is_not_ready() -> None:
    """After a new assignment all tasks must be restored again."""
    status = Status(60.0)
    status.seats["tasks"].joined = True
    status.assign([("in", 0)])
    status.restored(Served(0))
    assert status.view().ready
    status.assign([("in", 0)])
    assert not status.view().ready


# Counters


def test_a_batch_is_counted() -> None:
    """Records, outputs, dead letters and delays of a committed batch are counted."""
    status, task = Status(60.0), Served(3)
    status.assign([("in", 3)])
    records = [observed("a", 1000), observed("b", 2000), Read(b"{"), Read(None), settled("c", 1)]
    status.batch_committed(task, task.take(*records, settled("a", 3500), inputs=b"\0\0\0\0\1\1"))
    counts = status.view().counts
    assert counts.records == {"observations": 4, "labels": 2}
    assert counts.written == {"predictions": 2, "outcomes": 1, "dead_letters": 1}
    assert counts.dead == {"bad-json": 1}
    assert counts.tombstones == 1
    assert counts.label_delay.cumulated()[:2] == [("1.0", 0), ("10.0", 1)]
    assert counts.label_delay.sum == 2.5
    assert status.median_label_delay() == 10.0
    assert status.view().gauges == {3: TaskGauges(1, 1, 3500, 6, task.accounts)}


def test_a_batch_without_events() -> None:
    """A batch of bad records and tombstones is counted too."""
    status, task = Status(60.0), Served()
    status.batch_committed(task, task.take(Read(b"{"), Read(None)))
    counts = status.view().counts
    assert (counts.records["observations"], counts.dead["bad-json"], counts.tombstones) == (2, 1, 1)
    assert status.view().gauges == {0: TaskGauges(0, 0, None, 2, task.accounts)}


def test_what_became_of_events_is_counted() -> None:
    """Of what this process committed, whatever the state had before, also after a restore."""
    status, task = Status(60.0), Served()
    task.take(observed("a", 1000), observed("a", 1001))
    status.restored(task)
    status.batch_committed(task, task.take(observed("b", 1002), observed("a", 1003)))
    task.take(observed("c", 1004))  # by another process
    status.restored(task)
    status.batch_committed(task, task.take(settled("a", 2000), settled("z", 2001), inputs=b"\1\1"))
    ends = status.view().counts.ends
    assert (ends["observations"], ends["predictions"], ends["duplicate_observations"]) == (2, 1, 1)
    assert (ends["labels"], ends["learned"], ends["events"]) == (2, 1, 4)


def test_accounts_that_do_not_add_up_are_a_hint() -> None:
    """They are named by partition, and the process stays ready: a restart would not help."""
    status, task = Status(60.0), Served(4)
    status.assign([("in", 4)])
    status.seats["tasks"].joined, status.seats["tasks"].last_heartbeat = True, math.inf
    task.take(observed("a", 1000))
    status.restored(task)
    assert (status.view().unbalanced, status.view().hints) == ({}, [])
    lost = RecordCounts(records=(3, 0))
    task.checkpoint = msgspec.structs.replace(task.checkpoint, counts=lost)
    status.restored(task)
    view = status.view()
    assert [*view.unbalanced] == [4]
    assert view.hints == [f"partition 4: {one}" for one in view.unbalanced[4]]
    assert view.hints[0].startswith("partition 4: 3 records: 1 events. These are 1, not 3")
    assert view.ready


def test_what_is_lost_is_a_hint_while_it_is_true() -> None:
    """The sentences of the last check replace those before."""
    status = Status(60.0)
    status.update_losses(["3 of 1,000 labels"])
    assert status.view().hints == ["3 of 1,000 labels"]
    status.update_losses([])
    assert status.view().hints == []


def test_transactions_are_counted() -> None:
    """Commits are counted with their durations, aborts with the reason of the last."""
    status = Status(60.0)
    for seconds in (0.004, 0.02, 99.0):
        status.transaction_committed(seconds)
    for why in ("first", "second"):
        status.transaction_aborted(why)
    view = status.view()
    assert (view.counts.commits, view.counts.aborts) == ({"tasks": 3}, {"tasks": 2})
    assert dict(view.counts.commit_seconds.cumulated())["0.025"] == 2
    assert view.hints == ["the last aborted transaction: second"]


def test_other_counts() -> None:
    """Assignments, restores and snapshots are counted, and lags are updated."""
    status = Status(60.0)
    status.assign([("in", 0), ("in", 1)])
    status.restored(Served(0))
    for well in (True, False, True):
        status.snapshot_finished(saved=well)
    status.update_lags({("in", 0): 5, ("in", 1): 7})
    status.update_lags({("in", 0): 4})
    view = status.view()
    assert (view.counts.assignments, view.counts.restores) == (1, 1)
    assert view.counts.snapshots == {"saved": 2, "failed": 1}
    assert view.lags == {("in", 0): 4, ("in", 1): 7}


def test_gauges_of_a_restored_task() -> None:
    """The gauges of a task are known when it is restored, before its next batch."""
    status, task = Status(60.0), Served(4)
    task.take(observed("a", 1000), settled("c", 2000))
    status.restored(task)
    assert status.view().gauges == {4: TaskGauges(1, 1, 2000, 2, task.accounts)}


def test_gauges_of_a_revoked_partition() -> None:
    """Gauges of a revoked partition are dropped; counters stay."""
    status, task = Status(60.0), Served(1)
    status.assign([("in", 0), ("in", 1)])
    status.batch_committed(task, task.take(observed("a", 1)))
    status.update_lags({("in", 0): 5, ("in", 1): 7})
    status.assign([("in", 0)])
    view = status.view()
    assert (view.gauges, view.lags) == ({}, {("in", 0): 5})
    assert view.counts.written["predictions"] == 1


def test_hints() -> None:
    """Hints are listed once, in their order, up to a limit."""
    status = Status(60.0)
    for number in [0, 1, 0, *range(2, 50)]:
        status.hint(f"hint {number}")
    assert status.view().hints[:3] == ["hint 0", "hint 1", "hint 2"]
    assert len(status.view().hints) == 20


# Alarms


def test_an_alarm_is_counted() -> None:
    """An alarm is counted when it is committed, by model, view and test."""
    status, task = Status(60.0), Served()
    work = task.take(*turning())
    assert status.view().counts.alarms == {}
    status.batch_committed(task, work)
    assert status.view().counts.alarms == {("m", "calibrated", "change-tolerance"): 1}


def test_evidence_of_all_tasks() -> None:
    """The evidence of a model is the strongest of its tasks, until the model leaves."""
    status, tasks = Status(60.0), [Served(0), Served(1), Served(2)]
    tasks[0].take(*turning()[:300])
    tasks[1].take(*turning())
    tasks[2].take(*turning("other")[:300])
    status.update_evidence(tasks)
    found = status.view().evidence
    (monitor,) = tasks[1].processor.monitors
    assert [*found] == ["m", "other"]
    assert [one.name for one in found["m"]] == [one.name for one in monitor.tests]
    assert [one.active for one in found["m"]] == [one.active for one in monitor.tests]
    change = next(one for one in found["m"] if one.name == "change-tolerance")
    assert (change.active, change.incidents) == (True, 1)
    assert not any(one.active for one in found["other"])
    status.assign([("in", 0)])
    assert status.view().evidence == {}


def test_evidence_without_tests() -> None:
    """Without tests, or without monitors, there is no evidence."""
    for key in ("monitoring.tests", "monitoring.enabled"):
        status, task = Status(60.0), Served(0, {key: False})
        status.batch_committed(task, task.take(*turning()))
        status.update_evidence([task])
        assert not any(status.view().evidence.values())
        assert status.view().counts.alarms == {}


# Many models


def test_models_beyond_the_limit_are_counted_together() -> None:
    """The first models have totals of their own; all others share a row, and nothing is lost."""
    time = 1_700_000_000_000
    status, task, whole = Status(60.0, max_models=2), Served(0), Status(60.0)
    for number, model in enumerate("abcdabcd"):
        work = task.take(*labelled(model, time + number, times=50))
        status.batch_committed(task, work)
        whole.batch_committed(task, work)
    found, every = (one.view().counts.model_totals for one in (status, whole))
    assert [*found.rows] == ["a", "b", "other"]
    for key, table in every.tables.items():
        assert (found.tables[key][:2] == table[:2]).all()
        assert found.tables[key][2] == pytest.approx(table[2:].sum(axis=0))


def test_evidence_of_models_beyond_the_limit() -> None:
    """Of the models without totals of their own, those with the strongest evidence are named."""
    status, task = Status(60.0, max_models=1), Served(0)
    status.batch_committed(task, task.take(*labelled("first", 1_700_000_000_000)))
    for number in range(12):
        task.take(*labelled(f"calm-{number}", 1_700_000_000_001 + number))
    status.batch_committed(task, task.take(*turning("wrong")))
    status.update_evidence([task])
    view = status.view()
    assert len(view.evidence) == 11
    assert {"first", "wrong"} <= view.evidence.keys() == view.numbers.keys()
    assert view.counts.alarms == {("other", "calibrated", "change-tolerance"): 1}


# Retired models

RETIRING = {"limits.max_models": 4, "limits.retire_after": "1h", "limits.max_jump": "1d"}


def labelled(model: str, time: int, times: int = 3) -> list[Read]:
    """Return observations of a model, with their labels."""
    return [
        Read(json.dumps(common | more).encode(), timestamp=time)
        for number in range(times)
        for common in [{"id": f"{time}-{number}", "time": time, "model": model}]
        for more in ({"score": 0.5}, {"label": 1})
    ]


def crowd(status: Status, task: Served, hours: range) -> None:
    """Process one lasting model, and a new one every hour that never returns."""
    for hour in hours:
        time = 1_700_000_000_000 + 3_600_000 * hour
        records = labelled("live", time, times=50) + labelled(f"junk-{hour}", time)
        status.batch_committed(task, task.take(*records))


def test_totals_of_models_are_bounded() -> None:
    """However many models come and go, only the present ones have rows."""
    status, task = Status(60.0), Served(0, RETIRING)
    for first in range(0, 40, 5):
        crowd(status, task, range(first, first + 5))
        status.update_evidence([task])
        totals = status.view().counts.model_totals
        assert totals.rows.keys() == {model for model, _ in task.processor.keys}
    assert task.processor.counters["retired"] > 30
    assert totals.tables["brier", "calibrated"].shape == (len(totals.rows), 1)


def test_models_of_other_tasks_stay() -> None:
    """A model that only one task retired keeps its row, and so does one of a revoked task."""
    status, tasks = Status(60.0), [Served(0, RETIRING), Served(1, RETIRING)]
    leaving = Served(2, RETIRING)
    status.batch_committed(leaving, leaving.take(*labelled("gone elsewhere", 1_700_000_000_000)))
    status.batch_committed(tasks[1], tasks[1].take(*labelled("junk-0", 1_700_000_000_000)))
    crowd(status, tasks[0], range(9))
    status.update_evidence(tasks)
    assert "junk-0" not in {model for model, _ in tasks[0].processor.keys}
    assert {"junk-0", "gone elsewhere", "live"} <= status.view().counts.model_totals.rows.keys()
    assert "junk-1" not in status.view().counts.model_totals.rows


def test_alarms_of_retired_models() -> None:
    """Episodes of a retired model are dropped."""
    status = Status(60.0)
    task = Served(0, RETIRING)
    status.batch_committed(task, task.take(*turning()))
    assert status.view().counts.alarms == {("m", "calibrated", "change-tolerance"): 1}
    for time in (1_700_000_000_000, 1_700_000_000_001):
        status.batch_committed(
            task, task.take(*(r for m in "xyz" for r in labelled(m, time, times=50)))
        )
    status.update_evidence([task])
    assert "m" not in {model for model, _ in task.processor.keys}
    assert status.view().counts.alarms == {}


# Views


def test_a_view_stays_as_it_is() -> None:
    """A view does not change while the loop continues."""
    status, task = Status(60.0), Served()
    status.assign([("in", 0)])
    view = status.view()
    status.batch_committed(task, task.take(observed("a", 1), Read(b"{"), Read(None)))
    status.transaction_committed(1.0)
    status.snapshot_finished(saved=True)
    status.update_lags({("in", 0): 1})
    status.hint("x")
    assert view.counts == Counters(assignments=1)
    assert (view.gauges, view.lags, view.hints) == ({}, {}, [])


def test_a_view_is_of_one_moment() -> None:
    """A reader in another thread never gets a half-counted batch."""
    status, task = Status(60.0), Served()
    consistent: list[bool] = []

    def read() -> None:
        while not (view := status.view()).hints:
            consistent.append(
                view.counts.records["observations"] == view.counts.written["predictions"]
            )

    reader = Thread(target=read)
    reader.start()
    for number in range(300):
        status.batch_committed(task, task.take(observed(str(number), number)))
    status.hint("that is all")
    reader.join()
    assert all(consistent)


@given(st.lists(st.floats(0, 100), max_size=20))
def test_values_one_by_one_and_at_once(values: list[float]) -> None:
    """Adding many values is adding each, and cumulative buckets count up to their bounds."""
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
