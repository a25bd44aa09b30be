"""The table of metrics, `abers_connectors.metrics.service_metrics`."""

from __future__ import annotations

from abers_connectors.metrics.service_metrics import METRICS, registry_of
from abers_connectors.runtime.status import Status


def test_each_metric_is_defined_once() -> None:
    """Names are unique and ours, all say what they are, and counters leave their suffix out."""
    names = [one.name for one in METRICS]
    assert len({*names}) == len(names)
    for one in METRICS:
        assert one.name.startswith("abers_")
        assert one.help.endswith(".")
        assert one.kind in {"counter", "gauge", "histogram", "info"}
        assert not one.name.endswith("_total")


def test_a_service_has_them_all() -> None:
    """A service that has done nothing yet has every metric of the table, in its order."""
    found = [one.name for one in registry_of(Status(60.0)).collect()]
    assert found[: len(METRICS)] == [one.name for one in METRICS]
