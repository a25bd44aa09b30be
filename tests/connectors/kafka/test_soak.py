"""The service for some minutes with faults of broker, bucket and labels: the short soak."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.chaos.apart import run_apart
from tests.connectors.kafka.chaos.traffic import START
from tests.connectors.kafka.soak.memory import slope
from tests.connectors.kafka.soak.overdue import longest_overdue
from tests.connectors.kafka.soak.prometheus import scaled
from tests.connectors.kafka.soak.records import Records

from abers.stream import Settings
from abers_connectors.metrics.alert_rules import alert_rules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.prometheus
def test_a_soak(tmp_path: Path) -> None:
    """Each fault raises its alert, and no quiet time has one; nothing is lost or doubled."""
    assert "0 were lost and 0 doubled" in run_apart("soak", "short", tmp_path)


def test_scaled_rules() -> None:
    """Windows, subqueries and `for` are divided by the number; names and thresholds are not."""
    rules = {
        rule.get("alert", rule.get("record")): rule
        for group in json.loads(scaled(alert_rules(), 60))["groups"]
        for rule in group["rules"]
    }
    assert rules["AbersLag"]["for"] == "15000ms"
    assert "> 100000 and" in rules["AbersLag"]["expr"]
    assert "[15000ms:1000ms]" in rules["AbersLag"]["expr"]
    assert "[5000ms]" in rules["job_application_model_view:abers_ece:rate5m"]["expr"]


def test_slope_of_memory() -> None:
    """The slope is in MiB an hour; noise widens its interval."""
    found = slope([(float(at), 2.0**20 * at / 3600) for at in range(100, 1000)])
    assert found.value == pytest.approx(1.0)
    assert found.error < 1e-9
    noisy = slope([(float(at), 2.0**20 * (at % 7)) for at in range(1000)])
    assert abs(noisy.value) < noisy.error


def test_snapshots_that_are_overdue() -> None:
    """A snapshot is due from one record too many on, until it was saved, in each partition."""
    slow = [(0.0, 300.0), (2.0, 301.0), (4.0, 900.0), (6.0, 950.0), (8.0, 20.0), (10.0, 301.0)]
    never = [(0.0, 300.0), (90.0, 0.0)]
    assert longest_overdue([never, slow], 300) == 4.0
    assert longest_overdue([never], 300) == 0.0


def test_no_label_is_far_ahead_of_the_clock() -> None:
    """Labels of an hour whose delays go beyond the end come if a service believes their times."""
    records = Records(7, 80.0, 255.0, START)
    end = START + 1_000_000
    sent = [*records.due(end), *records.rest(end)]
    ahead = [one.time - end for one in sent if one.topic == "labels" and one.reason is None]
    assert 200_000 < max(ahead) <= Settings().max_clock_skew
