"""An application starts at `kafka.starting_offset`, or where a replay ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.conftest import in_a_line
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle
from tests.connectors.keys import KEY

from abers_connectors.runtime.snapshots import SnapshotStore

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


@pytest.mark.parametrize("key", [None, KEY])
def test_one_replay_seeds_applications_of_other_ids(  # noqa: PLR0913, PLR0917 - fixtures
    key: str | None,
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    invoke: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An initial state that another application id saved is used, and its seal is checked."""
    if key is not None:
        monkeypatch.setenv("ABERS_STATE_KEY", key)
    blue = Served(broker, tmp_path, start)
    blue.produce(OBSERVATIONS, LABELS)
    ran = invoke("replay", "abers.toml", "--output", "before.jsonl", "--save-state", "seed")
    assert ran.code == 0, ran.err
    green = Served(broker, tmp_path, start)
    green.topics |= {name: blue.topics[name] for name in ("observations", "labels")}
    green.configure()
    green.serve("--initial-state", "seed")
    processors, _ = oracle(OBSERVATIONS, LABELS, green.config().settings(), PARTITIONS)
    with green.log() as look:
        states = [task.processor.state_bytes() for task in look.tasks()]
    assert states == [processor.state_bytes() for processor in processors]
    assert broker.consume(green.topics["predictions"]) == []


def test_an_initial_state_that_cannot_be_used(
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    invoke: Callable[..., Ran],
) -> None:
    """The error says whose state there is, that it is a service's, or of how many partitions."""
    served = Served(broker, tmp_path, start)
    served.produce(OBSERVATIONS, LABELS)
    served.configure(snapshot_every=50)
    served.serve()
    other = Served(broker, tmp_path, start)
    code, err = other.refused("--initial-state", "state")
    assert code == 78
    assert "is a snapshot of a service; an initial state is what `abers replay" in in_a_line(err)
    for app in ("blue", "green"):
        SnapshotStore(str(tmp_path / "both"), app).save(0, 0, b"")
    code, err = other.refused("--initial-state", "both")
    assert code == 78
    assert f"has snapshots of blue, green, and none of {other.app}" in err
    ran = invoke("replay", "abers.toml", "--output", "before.jsonl", "--save-state", "seed")
    assert ran.code == 0, ran.err
    other.topics |= broker.create_all(1)
    other.configure()
    code, err = other.refused("--initial-state", "seed")
    assert code == 78
    assert (
        f"the initial state is of {PARTITIONS} partitions, and {other.topics['observations']} has 1"
        in err
    )


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
