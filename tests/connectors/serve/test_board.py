"""The dashboard over `abers serve`: what its panels show, and which of them stay empty."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from tests.conftest import ROOT
from tests.connectors.serve.running import Running

if TYPE_CHECKING:
    from pathlib import Path

BOARD = ROOT / "deploy" / "grafana" / "dashboards" / "abers.json"
EMPTY = {
    *("Consumer lag", "Consumer lag, by topic", "Partitions not served"),
    *("Commit time, p99", "Commit time, p50 and p99", "Label delay, p50 and p99"),
}
PATIENCE = 60.0


def shown(text: str) -> dict[str, float]:
    """Return the largest value of each metric."""
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)\{.*\} (\S+)$", text, re.MULTILINE):
        found[name] = max(found.get(name, 0.0), float(value))
    return found


@pytest.mark.once
def test_what_the_board_shows(tmp_path: Path) -> None:
    """Panels have predictions, labels, dead letters and answers; those of topics are empty."""
    panels = json.loads(BOARD.read_text())["panels"]
    queries = {one["title"]: one["targets"][0]["expr"] for one in panels if "targets" in one}
    first = {title: re.findall(r"\babers_\w+(?=\{)", query) for title, query in queries.items()}
    with Running(tmp_path / "state") as running:
        rows = [{"id": f"{n}", "score": n % 10 / 10} for n in range(300)]
        soon = time.time_ns() // 1_000_000 + 3_600_000
        running.predict(*rows, {"id": "ahead", "score": 0.5, "time": soon})
        running.label(*({"id": one["id"], "label": n % 2} for n, one in enumerate(rows[:250])))
        end = time.monotonic() + PATIENCE
        found: dict[str, float] = {}
        while found.get("abers_outcomes_total") != 250:
            assert time.monotonic() < end, found
            found = shown(running.ask("/metrics").body.decode())
    assert found["abers_predictions_total"] == 300
    assert found["abers_dead_letters_total"] == 1
    assert found["abers_pending_observations"] == 50
    empty = {title for title, names in first.items() if names and not found.get(names[0])}
    assert empty >= EMPTY
    assert not {"Predictions a second", "Is what is served right?", "Memory"} & empty
