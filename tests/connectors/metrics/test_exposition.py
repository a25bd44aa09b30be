"""Metrics as text, against what prometheus-client writes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import Metric

OPEN = "application/openmetrics-text; version=1.0.0"
TEXTS = st.text(st.sampled_from('ab\\"\n{}=, é\0\r'), max_size=5)
VALUES = st.floats() | st.integers(-(10**18), 10**18)


class Given(Collector):
    """Metrics of the test."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        """Store the metrics."""
        self.metrics = [*metrics]

    def describe(self) -> list[Metric]:
        """Return no names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        yield from self.metrics


@st.composite
def metrics(draw: st.DrawFn) -> Metric:
    """Draw a metric of any kind that a service has."""
    name, what = draw(st.sampled_from(["abers_x", "a", "abers_total_x"])), draw(TEXTS)
    kind = draw(st.sampled_from([CounterMetricFamily, GaugeMetricFamily]))
    labels = draw(st.lists(st.sampled_from(["model", "view", "bin", "le_"]), unique=True))
    family = kind(name, what, labels=labels)
    for _ in range(draw(st.integers(0, 3))):
        family.add_metric([draw(TEXTS) for _ in labels], draw(VALUES))
    if draw(st.booleans()):
        family = HistogramMetricFamily(name, what, labels=labels)
        buckets = [("0.5", draw(VALUES)), ("+Inf", draw(VALUES))]
        family.add_metric([draw(TEXTS) for _ in labels], buckets, draw(VALUES))
    elif draw(st.booleans()):
        family = InfoMetricFamily(name, what, {"version": draw(TEXTS)})
    found: Metric = family
    return found


@given(st.lists(metrics(), max_size=4))
def test_what_the_library_writes(drawn: list[Metric]) -> None:
    """Both formats are those of prometheus-client, to the byte, whatever labels and values are."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given(drawn))
    assert exposition(registry, "")[0] == generate_latest(registry)
    assert exposition(registry, OPEN)[0] == openmetrics.generate_latest(  # type: ignore[no-untyped-call]
        registry
    )


@pytest.mark.parametrize("accept", ["", OPEN, "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"])
def test_the_media_type(accept: str) -> None:
    """The media type says which format it is."""
    text, kind = exposition(CollectorRegistry(), accept)
    assert (kind.startswith("application/openmetrics-text"), text) == (
        accept == OPEN,
        b"# EOF\n" if accept == OPEN else b"",
    )


def test_long_names_are_no_metrics() -> None:
    """A model whose name takes nearly a megabyte makes a dead letter, and no scrape larger."""
    status, task = Status(60.0), Served()
    status.assign([("in", 0)])
    status.restored(task)
    name = "m" * 900_000
    observation = '{"id": "%s", "time": 1700000000000, "score": 0.5, "model": "%s"}'
    label = '{"id": "%s", "time": 1700000000000, "label": 1, "model": "%s"}'
    records = [Read((record % ("a", name)).encode()) for record in (observation, label)]
    work = task.take(*records)
    status.batch_committed(task, work)
    text, _ = exposition(registry_of(status), "")
    assert (
        b'abers_dead_letters_total{application="abers",process="0",reason="too-long"} 2.0' in text
    )
    assert len(text) < 30_000
    written = [value for one in work.output_records.values() for value in one.values]
    assert max(map(len, written)) < 1_000_000
