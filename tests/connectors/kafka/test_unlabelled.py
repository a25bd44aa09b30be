"""Labels that do not come, or are assumed then, by a service on a real broker."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING

from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle

from abers.stream import accounts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

OBSERVATIONS = observations(400, PARTITIONS)  # a second apart
LABELS = labels_of(OBSERVATIONS)[::2]  # 20 seconds late; the others never come
CUT = OBSERVATIONS[200].time


def kill(served: Served) -> None:
    """Start a service, and kill it once it has committed something."""
    with served.log() as look, served.run() as process:
        parts = look.application.input_partitions(0)
        while not any(map(look.log.committed, parts)):
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.01)
        process.kill()


def test_labels_that_never_come(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Observations without a label are predicted and expire; neither is a dead letter."""
    served = Served(broker, tmp_path, start)
    served.configure("limits.label_timeout = '30s'")
    served.produce(OBSERVATIONS, LABELS)
    served.serve()
    processors, expected = oracle(OBSERVATIONS, LABELS, served.config().settings(), PARTITIONS)
    with served.log() as look:
        for task, processor in zip(look.tasks(), processors, strict=True):
            assert task.processor.state_bytes() == processor.state_bytes()
    found = [one.value for one in broker.consume(served.topics["predictions"])]
    assert sorted(found) == sorted(line for _, line in expected)
    assert len(found) == len(OBSERVATIONS)
    assert len(broker.consume(served.topics["outcomes"])) == len(LABELS)
    assert broker.consume(served.topics["dead_letters"]) == []
    assert sum(one.counters["expired"] for one in processors) > 0


def test_labels_are_assumed_once_through_a_kill_and_the_loss_of_all_snapshots(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A service that is killed, and one that has only the changelog, assume each label once.

    Half of the labels never come. The states are those of one run without a fault.
    """
    served = Served(broker, tmp_path, start)
    served.configure("input.unlabelled = 1\nlimits.label_timeout = '30s'")
    served.produce(*([one for one in part if one.time < CUT] for part in (OBSERVATIONS, LABELS)))
    kill(served)
    served.serve()
    for snapshot in (tmp_path / "state").rglob("*.*"):
        snapshot.unlink()
    served.produce(*([one for one in part if one.time >= CUT] for part in (OBSERVATIONS, LABELS)))
    served.serve()
    processors, _ = oracle(OBSERVATIONS, LABELS, served.config().settings(), PARTITIONS)
    with served.log() as look:
        for task, processor in zip(look.tasks(), processors, strict=True):
            assert task.processor.state_bytes() == processor.state_bytes()
    written = broker.consume(served.topics["outcomes"])
    found = [json.loads(one.value) for one in written]
    learned = Counter(one["id"] for one in found)
    assert {*learned.values()} == {1}
    ends = accounts.total(one.accounts for one in processors)
    assert len(learned) == ends["learned"] + ends["assumed"] > len(LABELS)
    true = {one.event.id for one in LABELS}
    assert all(one["label"] == 1 and one["id"] not in true for one in found if "assumed" in one)
    assert all(
        (one.key is None) == ("assumed" in of) for one, of in zip(written, found, strict=True)
    )
