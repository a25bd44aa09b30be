"""Alarms of a run over files: in its summary, and posted to a webhook."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.connectors.hooks import listening
from tests.connectors.kafka.reads import turning

from abers.stream import Alarm
from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a stream whose scores turn wrong, and its configuration."""
    records = b"\n".join(one.value or b"" for one in turning())
    (tmp_path / "in.jsonl").write_bytes(records)
    path = tmp_path / "abers.toml"
    path.write_text('input.observations = "in.jsonl"\noutput.predictions = "out.jsonl"\n')
    return path


def test_a_run_tells_its_alarms(invoke: Invoke, config: Path) -> None:
    """The summary has each alarm; the webhook received the same, once."""
    with listening() as listener:
        with config.open("a") as file:
            file.write(f'alerts.webhook = "{listener.url}"\n')
        ran = invoke("run", "abers.toml", "--json")
        heard = [json.loads(one.body) for one in listener.heard.queue]
    (alarm,) = json.loads(ran.out)["alarms"]
    assert heard == [alarm]
    assert (alarm["v"], alarm["model"], alarm["view"], alarm["episode"]) == (
        1,
        "m",
        "calibrated",
        1,
    )
    assert alarm["test"] == "change-tolerance"
    assert 200 <= alarm["time"] < 300
    assert {"topic", "partition", "offset", "segment"}.isdisjoint(alarm)


def test_a_run_says_its_alarms(invoke: Invoke, config: Path) -> None:
    """An alarm stands above the answers, with its labels."""
    assert config.exists()
    ran = invoke("run", "abers.toml")
    assert re.match(r"! event time \d+: calibrated is too (high|low)\. Since event time ", ran.out)


def test_a_replay_tells_nobody_else(invoke: Invoke, config: Path) -> None:
    """A replay prints its alarms, and calls no webhook."""
    with listening() as listener:
        with config.open("a") as file:
            file.write(f'alerts.webhook = "{listener.url}"\n')
        ran = invoke("replay", "abers.toml", "--json")
        assert listener.heard.empty()
    assert len(json.loads(ran.out)["alarms"]) == 1


def test_a_run_without_alarms(invoke: Invoke, config: Path, tmp_path: Path) -> None:
    """Without an alarm there is no sentence, and an empty list."""
    records = (tmp_path / "in.jsonl").read_bytes().splitlines()[:300]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(records))
    assert config.exists()
    assert json.loads(invoke("run", "abers.toml", "--json").out)["alarms"] == []
    said = invoke("run", "abers.toml").out
    assert "Calibrated" in said
    assert "is too" not in said


def test_evidence_that_is_infinite() -> None:
    """JSON has no infinity, so infinite evidence is null."""
    alarm = Alarm("m", "s", "raw", "change-tolerance", 2, 5, math.inf, 1.5, "It changed.")
    record = json.loads(msgspec.json.encode(AlarmRecord.of(alarm, "labels", 3, 17)))
    place = {"topic": "labels", "partition": 3, "offset": 17}
    assert record == place | {
        "v": 1,
        "model": "m",
        "segment": "s",
        "view": "raw",
        "test": "change-tolerance",
        "episode": 2,
        "time": 5,
        "log_wealth": None,
        "log_threshold": 1.5,
        "message": "It changed.",
    }
