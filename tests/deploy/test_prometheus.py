"""What Prometheus is told: rules that hold for the metrics there are, and fire when they should."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.deploy.files import DEPLOY, read

from abers_connectors.http.metrics import registry_of
from abers_connectors.kafka.status import Status

if TYPE_CHECKING:
    from prometheus_client import Metric

PAGE = DEPLOY.parent / "docs" / "operations.md"
RULES: list[dict[str, Any]] = read(DEPLOY / "alerts.yml")["groups"][0]["rules"]


def metrics() -> list[Metric]:
    """Give the metrics of a service to which a little of everything has happened."""
    status, shard = Status(60.0), Served()
    status.assign([("in", 0)])
    status.commit(shard, shard.take(Read(b'{"id": "a", "time": 5, "score": 0.5}'), Read(b"{")))
    status.lag({("in", 0): 5})
    own = (one for one in registry_of(status).collect() if one.name.startswith("abers_"))
    return sorted(own, key=lambda one: one.name)


def promtool(*words: object) -> None:
    """Run promtool, which must find nothing."""
    command = ["promtool", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.prometheus
def test_the_configuration() -> None:
    """Prometheus accepts what it is configured with, rules included."""
    promtool("check", "config", DEPLOY / "prometheus.yml")


@pytest.mark.prometheus
def test_alerts_fire() -> None:
    """Each alert fires in a story that calls for it, and in no other."""
    stories = Path(__file__).with_name("alerts_test.yml")
    promtool("test", "rules", stories)
    told = {
        alert["alertname"]
        for story in read(stories)["tests"]
        for alert in story["alert_rule_test"]
        if alert.get("exp_alerts")
    }
    assert told == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alerts_ask_for_what_there_is(rule: dict[str, Any]) -> None:
    """An alert goes by metrics and labels that a service has."""
    samples = {sample.name for metric in metrics() for sample in metric.samples} | {"up"}
    asked = re.findall(r"\b(?:abers_\w+|up)\b(?=[{\[) ])", rule["expr"])
    assert asked
    assert samples.issuperset(asked)


def test_alerts_say_what_is_wrong() -> None:
    """Each alert has a sentence, and says whether somebody is woken."""
    for rule in RULES:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_the_page_has_every_metric_and_alert() -> None:
    """Whoever looks a metric or an alert up finds it, and nothing that is not there."""
    page = PAGE.read_text()
    names = {_called(metric) for metric in metrics()}
    listed = {*re.findall(r"`(abers_\w+)`", page)}
    assert listed == names
    alerts = re.findall(r"^\| (Abers\w+) \|", page, re.MULTILINE)
    assert alerts == [rule["alert"] for rule in RULES]


def _called(metric: Metric) -> str:
    endings = {"counter": "_total", "info": "_info"}
    return metric.name + endings.get(metric.type, "")
