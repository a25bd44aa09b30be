"""Alarms of a whole service: one record and one call for each episode, whatever dies in between."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from tests.connectors.hooks import listening
from tests.connectors.kafka.applications import Served
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.streams import START, Record

from abers.stream import Label, Observation

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker


def turning(first: int, count: int, *, right: bool) -> tuple[list[Record], list[Record]]:
    """Return observations and their labels, whose scores turn from right to wrong."""
    observations, labels = [], []
    for number in range(first, first + count):
        score, at = (0.1, 0.9)[number % 2], START + 1000 * number
        label = int((score > 0.5) == right)
        observations.append(Record(at, 0, Observation(f"o{number}", at, "m", score)))
        labels.append(Record(at + 500, 0, Label(f"o{number}", at + 500, "m", label)))
    return observations, labels


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Create an application with a topic of alarms."""
    found = Served(broker, tmp_path, start)
    found.topics["alerts"] = broker.create("alerts", 2)
    found.configure()
    return found


def test_an_alarm_is_sent_once(served: Served, broker: Broker) -> None:
    """An incident is one record and one call of the same bytes, also after a restart."""
    with listening() as listener:
        served.configure(f'alerts.webhook = "{listener.url}"')
        served.produce(*turning(0, 200, right=True))
        served.serve()
        assert broker.consume(served.topics["alerts"]) == []
        served.produce(*turning(200, 100, right=False))
        served.serve()
        (one,) = broker.consume(served.topics["alerts"])
        served.produce(*turning(300, 50, right=False))
        served.serve()
        assert len(broker.consume(served.topics["alerts"])) == 1
        assert [each.body for each in listener.heard.queue] == [one.value]
    alarm = json.loads(one.value)
    assert (alarm["v"], alarm["model"], alarm["view"], alarm["episode"]) == (
        1,
        "m",
        "calibrated",
        1,
    )
    assert alarm["test"] == "change-tolerance"
    assert (alarm["topic"], alarm["partition"]) == (served.topics["labels"], 0)
    cause = broker.consume(served.topics["labels"])[alarm["offset"]]
    assert json.loads(cause.value)["id"] == f"o{(alarm['time'] - START) // 1000}"
    assert (one.key, one.headers, one.timestamp) == (cause.key, cause.headers, cause.timestamp)
    assert alarm["time"] >= START + 200_000


@pytest.mark.parametrize("words", [[], ["--from", "changelog"]])
def test_a_replay_says_its_alarms(
    served: Served, broker: Broker, start: Callable[..., subprocess.Popen[bytes]], words: list[str]
) -> None:
    """A replay has the alarms of the service in its summary, and calls no webhook."""
    with listening() as listener:
        served.produce(*turning(0, 200, right=True))
        served.produce(*turning(200, 100, right=False))
        served.serve()
        served.configure(f'alerts.webhook = "{listener.url}"')
        with start("replay", "abers.toml", "--json", "--output", "out.jsonl", *words) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert listener.heard.empty()
    assert process.returncode == 0, err
    (one,) = broker.consume(served.topics["alerts"])
    alarm = json.loads(one.value)
    place = {name: alarm.pop(name) for name in ("topic", "partition", "offset")}
    assert json.loads(out)["alarms"] == [alarm], place


def test_a_process_that_dies(served: Served, broker: Broker) -> None:
    """A process that is killed once an alarm is written, committed or not, leaves exactly one."""
    served.produce(*turning(0, 200, right=True))
    served.produce(*turning(200, 100, right=False))
    with served.run() as process:
        deadline = time.monotonic() + PATIENCE
        while not broker.consume(served.topics["alerts"], "read_uncommitted"):
            assert process.poll() is None
            assert time.monotonic() < deadline
        process.kill()
    served.serve()
    assert len(broker.consume(served.topics["alerts"])) == 1
