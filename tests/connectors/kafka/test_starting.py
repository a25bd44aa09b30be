"""Where an application begins: where `kafka.start` says, or where a replay ended (`--seed`)."""

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

SEEN = observations(300, PARTITIONS)
TOLD = labels_of(SEEN)
CUT, LAST = SEEN[150].time, SEEN[250].time


def test_a_seeded_service_goes_on_where_the_replay_ended(
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    invoke: Callable[..., Ran],
) -> None:
    """It publishes what the replay had not, its state is that of all, and it is seeded once."""
    served = Served(broker, tmp_path, start)
    served.produce(*([one for one in part if one.time < LAST] for part in (SEEN, TOLD)))
    words = ("--until", str(CUT), "--output", "before.jsonl", "--save-state", "seed")
    ran = invoke("replay", "abers.toml", *words)
    assert ran.code == 0, ran.err
    served.configure("limits.max_models = 2_000")  # a limit of admission may be raised
    served.serve("--seed", "seed")
    served.produce(*([one for one in part if one.time >= LAST] for part in (SEEN, TOLD)))
    served.serve()  # with no snapshot but the seed
    processors, lines = oracle(SEEN, TOLD, served.config().settings(), PARTITIONS)
    before = (tmp_path / "before.jsonl").read_bytes().splitlines()
    assert before == [line for time, line in lines if time < CUT]
    found = broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines[len(before) :]
    with served.log() as look:
        shards = look.shards()
    for shard, processor in zip(shards, processors, strict=True):
        assert shard.processor.state_bytes() == processor.state_bytes()
    code, err = served.refused("--seed", "seed")
    assert code == 78
    assert "a seed is for an application that has none" in err


def test_a_service_begins_with_what_comes(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """With `kafka.start = "latest"` nothing is read that was there before its first start."""
    served = Served(broker, tmp_path, start)
    served.configure('kafka.start = "latest"')
    served.produce([one for one in SEEN if one.time < CUT], [])
    served.serve()
    since = [one for one in SEEN if one.time >= CUT]
    served.produce(since, [])
    served.serve()
    _, lines = oracle(since, [], served.config().settings(), PARTITIONS)
    found = broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines
