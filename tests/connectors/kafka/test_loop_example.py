"""The example of a plain loop on a real broker: it is killed, and applies each record once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT
from tests.connectors.kafka.brokers import Message

from abers.stream import Event, Follower, Label, Observation, Prediction, Processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

LOOP = ROOT / "examples" / "serving" / "kafka_loop.py"
RECORDS = 6_000


def events() -> Iterator[Event]:
    """Yield observations, and the label of each some events later."""
    for number in range(RECORDS // 2 + 5):
        if number < RECORDS // 2:
            yield Observation(f"{number}", number, score=number % 97 / 97)
        if number >= 5:
            yield Label(f"{number - 5}", number, value=int(number % 3 == 0))


def record(event: Event) -> dict[str, Any]:
    """Return an event as the example reads it."""
    if isinstance(event, Observation):
        return {"id": event.id, "time": event.time, "score": event.score}
    return {"id": event.id, "time": event.time, "label": event.value}


def test_a_loop_that_is_killed(
    tmp_path: Path, broker: Broker, topics: Callable[..., str], produce: Callable[..., list[int]]
) -> None:
    """A loop that is killed again and again ends with the state of one that was not, to the bit."""
    topic, state = topics("loop"), tmp_path / "state"
    values = [json.dumps(record(one)).encode() for one in events()]
    produce(topic, [Message(one) for one in (*values[:7], b"junk", *values[7:])])
    command = [sys.executable, str(LOOP), broker.bootstrap, topic, str(state)]
    printed: list[str] = []
    said = ""
    for least in (1, 700, RECORDS):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            for line in running.stdout:
                printed.append(line)
                if len(printed) >= least or json.loads(line)["id"] == f"{RECORDS // 2 - 1}":
                    break
            if least == RECORDS:
                end(state, len(values))
            running.kill()
            said += running.stderr.read()
    undisturbed = Processor()
    outputs = undisturbed.process_many([*events()])
    made = {one.id: one.p for one in outputs if isinstance(one, Prediction)}
    follower = Follower(state)
    assert follower.position == {"0": len(values) + 1}
    assert follower.processor.state_bytes() == undisturbed.state_bytes()
    for line in printed:
        found = json.loads(line)
        assert found["p"] == made[found["id"]]
    assert len({json.loads(line)["id"] for line in printed}) == len(printed)
    assert "offset 7 of partition 0: JSON is malformed" in said


def end(state: Path, count: int) -> None:
    """Read along until all events are on disk."""
    follower = Follower(state)
    while follower.processor.accounts["events"] < count:
        follower.poll()
