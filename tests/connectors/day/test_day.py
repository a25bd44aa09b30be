"""A day in production, in minutes; and the parts that check it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.conftest import ROOT
from tests.connectors.day.course import Incident, Phase, wrong_alerts
from tests.connectors.day.crowd import crowded
from tests.connectors.day.history import Firing, Samples, firing
from tests.connectors.day.report import error_lines
from tests.connectors.kafka.chaos.routed_judge import SLOTS, slot_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.prometheus
def test_a_day(tmp_path: Path) -> None:
    """The accounts close, alerts fire when they should and only then, and nothing is lost."""
    command = [sys.executable, "-m", "tests.connectors.day", str(tmp_path), "--short"]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(ran.stdout)  # noqa: T201 - the summary is what the day is for
    assert ran.returncode == 0
    assert "none was lost or doubled" in ran.stdout


@pytest.mark.prometheus
def test_alerts_of_a_process_that_is_gone(tmp_path: Path) -> None:
    """Rounds are minutes: down after 2 of 5 minutes, gone 5 minutes after the last sample's age."""
    samples, of = Samples(), {"job": "abers", "instance": "a"}
    for number in range(60):
        here = not 30 <= number < 40
        samples.add(number, "up", of, float(here))
        if here:
            info = of | {"application": "app", "process": "0"}
            samples.add(number, "abers_build_info", info, 1.0)
    found = {one.alert: (one.begin, one.end) for one in firing(samples, 60, tmp_path / "day")}
    assert found == {"AbersDown": (32, 42), "AbersGone": (36, 39)}


def incident(alert: str | None, *also: str) -> Phase:
    """Return an incident of the rounds 10 to 20."""
    nothing = lambda: None  # noqa: E731 - nothing happens
    return Phase(Incident("a fault", 10, alert, frozenset(also), nothing, nothing), 10, 20, (0, 5))


def fired(alert: str, begin: int) -> Firing:
    """Return an alert that fires from a round on."""
    return Firing(alert, {"process": "tasks-0"}, begin, begin + 3)


def test_an_alert_that_is_missing() -> None:
    """An incident without its alert is wrong, even if it raises another that it may."""
    assert wrong_alerts([incident("AbersLag", "AbersDown")], [fired("AbersDown", 12)]) == [
        "a fault: no AbersLag"
    ]
    assert not wrong_alerts([incident("AbersLag", "AbersDown")], [fired("AbersLag", 12)])


def test_an_alert_that_nothing_explains() -> None:
    """An alert outside of incidents, or of another kind than theirs, is wrong."""
    for one in (fired("AbersDown", 9), fired("AbersDown", 26), fired("AbersGone", 15)):
        (sentence,) = wrong_alerts([incident(None, "AbersDown")], [one])
        assert sentence.startswith(f"{one.alert} (tasks-0")
    assert not wrong_alerts([incident(None, "AbersDown")], [fired("AbersDown", 25)])


def test_lines_of_errors() -> None:
    """Errors are found unless a fault explains them, and lines that are none of the log."""
    at = "2026-11-30T19:31:51.000Z"
    lines = [json.dumps({"level": level, "time": at}) for level in ("warning", "error", "critical")]
    lines.insert(2, "Traceback")
    assert error_lines(["\n".join(lines)]) == lines[1:]
    fault = incident(None)
    since = datetime.fromisoformat(at).timestamp()
    for errors, times, found in (
        (True, (since - 5, since + 5), lines[2:3]),
        (True, (since + 1, since + 5), lines[1:]),
        (False, (since - 5, since + 5), lines[1:]),
    ):
        phase = fault._replace(incident=fault.incident._replace(errors=errors), times=times)
        assert error_lines(["\n".join(lines)], [phase]) == found


class Routed(NamedTuple):
    """A routed record, as far as the crowd counts them."""

    headers: list[tuple[str, bytes]]
    timestamp: int
    value: bytes

    @classmethod
    def of(cls, offset: int, model: str) -> Routed:
        """Return the observation of a model at an offset of partition 0."""
        origin = struct.pack(">BIqq", 0, 0, offset, 5)
        return cls([("abers.origin", origin)], 5, json.dumps({"model": model}).encode())


def test_a_crowd_of_models() -> None:
    """A partition takes two models, and each keeps its place; more partitions have more room."""
    names = [f"m{number}" for number in range(50)]
    low, high = ([one for one in names if (slot_of(one) < SLOTS // 2) == first] for first in (1, 0))
    one = [low[0], low[1], low[0], low[2], high[0]]
    two = [low[2], high[0], low[1], high[1], high[2]]
    routed = [Routed.of(offset, model) for offset, model in enumerate(one + two)]
    application = SimpleNamespace(topics={"observations": "o", "labels": "l"}, counts={1: 1, 2: 2})
    tapped = {1: routed[: len(one)], 2: routed[len(one) :]}
    found = crowded(application, tapped, [], 2, json.loads)  # type: ignore[arg-type]
    assert sorted(found) == [("o", 0, 3), ("o", 0, 4), ("o", 0, 5), ("o", 0, 9)]
