"""A service exports its metrics and its traces to a collector, and needs none to work."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.clients import CLIENTS, on_each_classic_client
from tests.connectors.kafka.streams import labels_of, observations, written
from tests.connectors.schemas.registries import NOWHERE
from tests.connectors.telemetry.collector import collecting

from abers.exceptions import ConfigError
from abers_connectors.config.sections import KafkaSection
from abers_connectors.runtime.status import Status
from abers_connectors.telemetry import exporting

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

COUNT, SECRET = 60, "open-sesame-3"


def parent(number: int) -> str:
    """Return the header of an observation; every second trace is recorded."""
    return f"00-{number + 1:032x}-{number + 1:016x}-{number % 2:02x}"


def traced(served: Served) -> dict[str, str]:
    """Write observations with traces and their labels without; return the traces by id."""
    seen = observations(COUNT, PARTITIONS)
    parents = {one.event.id: parent(n) for n, one in enumerate(seen)}
    records = [
        message._replace(headers=[("traceparent", parents[one.event.id].encode())])
        for message, one in zip(written(seen), seen, strict=True)
    ]
    served.broker.produce(served.topics["observations"], records)
    served.broker.produce(
        served.topics["labels"], [one._replace(headers=()) for one in written(labels_of(seen))]
    )
    return parents


def ended(served: Served) -> str:
    """Let a service process all records, stop it, and return its log."""
    process = served.run()
    with served.log() as log:
        while not log.drained():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
    process.terminate()
    said = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 0, said
    served.broker.await_transactions(*served.topics.values())
    return said


@on_each_classic_client
def test_event_in_prediction_out(
    client: str,
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The trace of an observation goes on in its prediction, and the counts are those of topics.

    The copies of the process that make snapshots export nothing, and no log shows a header.
    """
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{SECRET}")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    served = Served(broker, tmp_path, start)
    parents = traced(served)
    keys = "\n".join(f'kafka.{key} = "{value}"' for key, value in CLIENTS[client].items())
    with collecting() as collector:
        served.configure(f'{keys}\ntelemetry.endpoint = "{collector.url}/"', snapshot_every=20)
        said = ended(served)
    spans = collector.sent()
    outputs = broker.consume(served.topics["predictions"])
    assert len(outputs) == COUNT
    for record in outputs:
        ((_, raw),) = record.headers
        version, trace, span, flags = raw.decode().split("-")
        before = parents[json.loads(record.value)["id"]]
        if flags == "00":
            assert raw.decode() == before
        else:
            found = spans.pop(span)
            assert f"{version}-{found.trace_id.hex()}-{found.parent_span_id.hex()}-01" == before
            assert found.trace_id.hex() == trace
    assert not spans
    links = [one.span_id.hex() for each in collector.transactions() for one in each.links]
    assert sorted(links) == sorted(collector.sent())
    assert len(links) == COUNT // 2
    last = collector.exports[-1]
    (predictions,) = last["abers_predictions"].sum.data_points
    assert predictions.as_double == COUNT
    assert {one["service.name"] for one in collector.resources} == {served.app}
    assert {one["deployment.environment.name"] for one in collector.resources} == {"test"}
    assert {*collector.authorizations} == {f"Bearer {SECRET}"}
    assert SECRET not in said


@pytest.mark.kafka
def test_a_collector_that_is_away(
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service predicts, says that it cannot export, and ends in order."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    served = Served(broker, tmp_path, start)
    traced(served)
    served.configure(f'telemetry.endpoint = "{NOWHERE}"')
    said = ended(served)
    assert "Failed to export" in said
    assert len(broker.consume(served.topics["predictions"])) == COUNT


def test_the_last_export_is_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted after the last interval is exported, too; a variable names the service."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "scores")
    kafka = KafkaSection(bootstrap_servers=("b:1",), observations="in", predictions="out")
    status = Status(60.0)
    with collecting() as collector:
        with exporting(collector.url, kafka, status):
            status.transaction_committed(0.5)
        assert len(collector.exports) == 1
    (point,) = collector.exports[0]["abers_transactions_committed"].sum.data_points
    assert point.as_double == 1
    (resource,) = collector.resources
    assert (resource["service.name"], resource["service.instance.id"]) == ("scores", "0")


@pytest.mark.parametrize("given", ["0", "5s", "-1", ""])
def test_an_interval_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is exported."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", given)
    kafka = KafkaSection(bootstrap_servers=("b:1",), observations="in", predictions="out")
    with (
        pytest.raises(ConfigError, match=r"OTEL_METRIC_EXPORT_INTERVAL: .* milliseconds above 0"),
        exporting(NOWHERE, kafka, Status(60.0)),
    ):
        pass
