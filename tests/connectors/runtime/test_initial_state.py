"""An application starts at `kafka.starting_offset`, or where a replay ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker

OBSERVATIONS = observations(300, PARTITIONS)
LABELS = labels_of(OBSERVATIONS)
CUT, LAST = OBSERVATIONS[150].time, OBSERVATIONS[250].time


def test_a_seeded_service_continues_where_the_replay_ended(
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    invoke: Callable[..., Ran],
) -> None:
    """It publishes only later outputs, has the state of the whole stream, and is seeded once."""
    served = Served(broker, tmp_path, start)
    served.produce(*([one for one in part if one.time < LAST] for part in (OBSERVATIONS, LABELS)))
    words = ("--until", str(CUT), "--output", "before.jsonl", "--save-state", "seed")
    ran = invoke("replay", "abers.toml", *words)
    assert ran.code == 0, ran.err
    served.configure("limits.max_models = 2_000")  # this limit may be raised
    served.serve("--initial-state", "seed")
    served.produce(*([one for one in part if one.time >= LAST] for part in (OBSERVATIONS, LABELS)))
    served.serve()  # with no snapshot but the seed
    processors, lines = oracle(OBSERVATIONS, LABELS, served.config().settings(), PARTITIONS)
    before = (tmp_path / "before.jsonl").read_bytes().splitlines()
    assert before == [line for time, line in lines if time < CUT]
    found = broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines[len(before) :]
    with served.log() as look:
        tasks = look.tasks()
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.state_bytes() == processor.state_bytes()
    code, err = served.refused("--initial-state", "seed")
    assert code == 78
    assert "an initial state is for an application that has none" in err


def test_a_service_starts_at_the_latest_offset(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """With `kafka.starting_offset = "latest"` only records after the first start are read."""
    served = Served(broker, tmp_path, start)
    served.configure('kafka.starting_offset = "latest"')
    served.produce([one for one in OBSERVATIONS if one.time < CUT], [])
    served.serve()
    since = [one for one in OBSERVATIONS if one.time >= CUT]
    served.produce(since, [])
    served.serve()
    _, lines = oracle(since, [], served.config().settings(), PARTITIONS)
    found = broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines
