"""Rules for Prometheus that hold for the metrics there are, and fire when they should."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.deploy.files import DEPLOY, promtool, read
from typer.testing import CliRunner

from abers.monitoring.answer_numbers import STATES
from abers.pages.model_findings import QUESTIONS
from abers_connectors.cli.main import app
from abers_connectors.metrics.alert_rules import alert_rules
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

PAGE = DEPLOY.parent / "docs" / "metrics.md"
GROUPS: list[dict[str, Any]] = read(DEPLOY / "rules.yml")["groups"]
RECORDED: list[dict[str, Any]] = [
    rule for group in GROUPS for rule in group["rules"] if "record" in rule
]
RULES: list[dict[str, Any]] = [
    rule for group in GROUPS for rule in group["rules"] if "alert" in rule
]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "abers.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
VARIABLES = {one["name"]: one for one in BOARD["templating"]["list"]}
PROCESS = {
    *("process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds"),
}
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]


PROBABILITIES = {"task.scores": "probability", "monitoring.grace_period": 1}


def metrics(*prefixes: str) -> list[Metric]:
    """Return the metrics of services to which a little of everything has happened, by names."""
    numbers = {
        "task.kind": "regression",
        "calibrator.distributions": "scored",
        "monitoring.grace_period": 1,
    }
    pooled = numbers | {"calibrator.kind": "protected", "calibrator.support": [0, 1]}
    tracked = pooled | {"calibrator.coverage": 0.9}
    found: dict[str, Metric] = {}
    for flags in (numbers, pooled, tracked, PROBABILITIES):
        for one in registry_of(served(flags)).collect():
            if len(one.samples) >= len(found[one.name].samples if one.name in found else ()):
                found[one.name] = one
    return [one for name, one in sorted(found.items()) if name.startswith(prefixes)]


def served(flags: dict[str, Any]) -> Status:
    """Return the status of a service that predicted, learned, and met a bad record."""
    status, task = Status(60.0), Served(flags=flags)
    status.snapshot_every, status.input_partitions = 100, 1
    status.assign([("in", 0)])
    for time, score in enumerate((0.5, 0.2, 0.8)):  # the first fixes the halves of the others
        event = {"id": f"{time}", "time": time}
        values = [json.dumps(event | one).encode() for one in ({"score": score}, {"label": 1})]
        status.batch_committed(task, task.take(*map(Read, values)))
    status.batch_committed(task, task.take(Read(b"{")))
    status.update_evidence([task])
    status.update_lags({("in", 0): 5})
    return status


@pytest.mark.prometheus
def test_the_configuration() -> None:
    """Prometheus accepts what it is configured with, rules included."""
    promtool("check", "config", DEPLOY / "prometheus.yml")


@pytest.mark.prometheus
def test_alerts_fire() -> None:
    """Each alert fires in a story that calls for it, and in no other."""
    stories = Path(__file__).with_name("rules_test.yml")
    promtool("test", "rules", stories)
    tested = {
        alert["alertname"]
        for story in read(stories)["tests"]
        for alert in story["alert_rule_test"]
        if alert.get("exp_alerts")
    }
    assert tested == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RECORDED + RULES, ids=lambda one: one.get("alert", "recorded"))
def test_rules_tell_applications_apart(rule: dict[str, Any]) -> None:
    """What a rule adds up is of one application of one job, and no rule names a job."""
    expression = rule["expr"]
    added = [{*one.split(", ")} for one in re.findall(r" by \(([^)]*)\)", expression)]
    assert added
    assert all({"job", "application"} <= labels for labels in added)
    assert "job=" not in expression


def test_the_command_writes_the_rules(tmp_path: Path) -> None:
    """`abers prometheus-rules` gives the rules that lie in deploy/."""
    rules, mine = (DEPLOY / "rules.yml").read_text(), tmp_path / "mine.yml"
    assert CliRunner().invoke(app, ["prometheus-rules"]).stdout == rules
    assert CliRunner().invoke(app, ["prometheus-rules", "--output", str(mine)]).stdout == ""
    assert mine.read_text() == rules


@pytest.mark.parametrize("query", [rule["expr"] for rule in RECORDED + RULES] + QUERIES)
def test_queries_ask_for_what_there_is(query: str) -> None:
    """Alerts and panels go by metrics that a service has."""
    samples = {sample.name for metric in metrics("abers_") for sample in metric.samples}
    samples |= {"up", *PROCESS}
    samples |= {rule["record"] for rule in RECORDED}
    asked = _asked(query)
    assert asked
    assert samples.issuperset(asked)


def _asked(query: str) -> list[str]:
    """Return the metrics that a query asks for."""
    return re.findall(r"(?<![\w:])(?:[\w:]*abers_[\w:]+|process_\w+|up)(?=[{\[) ]|$)", query)


@pytest.mark.prometheus
def test_panels_draw_something(tmp_path: Path) -> None:
    """Each query of a panel has a result where all has happened that can happen."""
    names = re.compile(r"\$(\w+)")
    assert {name for query in QUERIES for name in names.findall(query)} < {*VARIABLES}
    queries = [names.sub(".*", query) for query in QUERIES]
    tests = [
        {
            "expr": f"count({query}) > bool 0",
            "eval_time": "2h",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query in queries
    ]
    one = {"interval": "1m", "input_series": [*_series()], "promql_expr_test": tests}
    rules = [str(DEPLOY / "rules.yml")]
    story = {"rule_files": rules, "evaluation_interval": "1m", "tests": [one]}
    (tmp_path / "story.yml").write_text(json.dumps(story))
    promtool("test", "rules", tmp_path / "story.yml")


def _series() -> Iterator[dict[str, str]]:
    """Yield what two hours of a busy service look like: all counters grow."""
    for metric in metrics("abers_", "process_"):
        for sample in metric.samples:
            labels = sample.labels | {"job": "abers", "instance": "a:8090"}
            written = ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            grows = metric.type in {"counter", "histogram"} or "start_time" in sample.name
            values = "1+1x120" if grows else "1x120"
            yield {"series": f"{sample.name}{{{written}}}", "values": values}


def test_panels_ask_the_source_there_is() -> None:
    """Grafana asks the chosen data source, at first the Prometheus of the environment."""
    (source,) = read(DEPLOY / "grafana" / "datasource.yaml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
    assert VARIABLES["datasource"]["current"]["value"] == source["uid"]
    assert [*VARIABLES] == ["datasource", "job", "application", "process", "model"]


def test_panels_can_be_read() -> None:
    """Each panel has a description and a unit, no two overlap, and lines of models are few."""
    cells: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        mine = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & mine
        cells |= mine
    assert [one["title"] for one in BOARD["panels"]] == [
        *dict.fromkeys(one["title"] for one in BOARD["panels"])
    ]
    for panel in PANELS:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            many = "{{model}}" in target["legendFormat"]
            assert not many or re.search(r"(top|bottom)k\(|> 0", target["expr"])
    kinds = {"row", "stat", "state-timeline", "timeseries"}
    assert {one["type"] for one in BOARD["panels"]} == kinds


def test_the_answers_come_first() -> None:
    """The first row has a panel for each question, whose colours and words are those of states."""
    first = [one for one in BOARD["panels"] if one["gridPos"]["y"] == 1]
    assert [one["title"] for one in first] == [question for _, question in QUESTIONS.values()]
    for panel, question in zip(first, QUESTIONS, strict=True):
        (expr,) = [one["expr"] for one in panel["targets"]]
        codes = {
            state: code
            for about, state, code in re.findall(
                r'question="(\w+)", state="(\w+)"} == 1\) \* (\d)', expr
            )
            if about == question
        }
        assert {*codes} == {*STATES}
        words = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        assert len(words) == len(codes)
        assert all(words[code]["text"] == state.capitalize() for state, code in codes.items())


def test_alerts_say_what_is_wrong() -> None:
    """Each alert has a sentence, and says whether somebody is woken."""
    for rule in RULES:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] == "ticket"


def test_some_alerts_page() -> None:
    """Alerts that are named wake somebody, all others are tickets; an unknown one is an error."""
    printed = CliRunner().invoke(app, ["prometheus-rules", "--page", "AbersDown, AbersLag"]).stdout
    severities = {
        rule["alert"]: rule["labels"]["severity"]
        for group in YAML(typ="safe").load(printed)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert {name for name, one in severities.items() if one == "page"} == {"AbersDown", "AbersLag"}
    assert alert_rules(["all"]).count("severity: page") == len(RULES) == len(severities)
    ran = CliRunner().invoke(app, ["prometheus-rules", "--page", "AbersUp"])
    assert ran.exit_code != 0
    assert "--page AbersUp: no such alert" in ran.stderr


def test_the_page_has_every_metric_and_alert() -> None:
    """The page has every metric and alert, and no other."""
    page = PAGE.read_text()
    names = {_called(metric) for metric in metrics("abers_")}
    listed = {*re.findall(r"`(abers_\w+)`", page)}
    assert listed == names
    alerts = re.findall(r"^\| (Abers\w+) \|", page, re.MULTILINE)
    assert alerts == [rule["alert"] for rule in RULES]


def _called(metric: Metric) -> str:
    endings = {"counter": "_total", "info": "_info"}
    return metric.name + endings.get(metric.type, "")
