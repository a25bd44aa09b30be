"""A service whose release has another monitor, restored from a snapshot and the changelog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.connectors.runtime.restorers import APPLICATION, Log, restorer, still
from tests.walkthroughs import example_monitor

from abers.monitoring import MONITORS
from abers.stream import Events, Label, Observation
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import ChangelogRecord

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Event, Processor


def batch(number: int) -> list[Event]:
    """Return 20 observations with their labels, of which a quarter in each batch is 1."""
    rows = range(20 * number, 20 * number + 20)
    observed = [Observation(f"a{n}", 10 * n, score=n % 10 / 10) for n in rows]
    return [*observed, *(Label(f"a{n}", 10 * n + 5, value=int(n % 4 == 0)) for n in rows)]


def written(snapshots: SnapshotStore) -> tuple[Processor, ChangelogRecord]:
    """Save a snapshot after one batch, and return the processor and the record of the next one."""
    live = APPLICATION.new_processor()
    live.process_batch(Events.of(batch(0)))
    size = len(batch(0))
    checkpoint = Checkpoint("app", 0, 1, 1, (size, -1))
    snapshots.save(0, 1, APPLICATION.snapshot(live, checkpoint))
    _, entry = live.process_logged(Events.of(batch(1)))
    offsets = np.arange(size, 2 * size, dtype="<i8").tobytes()
    return live, ChangelogRecord("0", 1, (2 * size, -1), bytes(size), offsets, [], entry)


def views(processor: Processor) -> dict[str, float]:
    """Return the numbers of the predictions."""
    assert processor.monitor is not None
    return processor.monitor.views()["calibrated"]


@pytest.mark.parametrize("new", [True, False], ids=["new", "gone"])
def test_a_release_with_another_monitor(
    new: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new monitor counts from the changelog on, and one that is gone is dropped.

    All else is as the service before had it, and goes on alike.
    """
    before, after = ([], [example_monitor()]) if new else ([example_monitor()], [])
    monkeypatch.setitem(MONITORS, "binary", before)
    snapshots, said = SnapshotStore(str(tmp_path), "app"), list[str]()
    live, record = written(snapshots)
    known = views(live)
    monkeypatch.setitem(MONITORS, "binary", after)
    task, _ = restorer(Log(1, 2, record), snapshots, said.append).restore(0, None, still)
    assert not said
    found = views(task.processor)
    share = {"label_share": 0.25}
    assert found == (
        known | share if new else {n: one for n, one in known.items() if n not in share}
    )
    again = live.process_batch(Events.of(batch(2))).in_order()
    assert task.processor.process_batch(Events.of(batch(2))).in_order() == again
