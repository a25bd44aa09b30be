"""The interval of the band wherever that of a tracker is: with its theorem, and without a bound."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.reads import turning
from tests.connectors.kafka.works import Served

from abers.stream import RegressionPrediction
from abers_connectors.cli import main
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from pathlib import Path

N = 300
NAMES = ("coverage", "level", "width", "score", "whole")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of a stream of numbers with noise around the score."""
    rng = random.Random(6)  # noqa: S311 - no secret
    rows = [(score := rng.random(), score + rng.gauss(0.0, 0.1)) for _ in range(N)]
    found = tmp_path / "in.jsonl"
    lines = [json.dumps({"score": score, "label": label}) + "\n" for score, label in rows]
    found.write_text("".join(lines))
    return found


def test_replay_and_reports(path: Path, tmp_path: Path) -> None:
    """Both reports and the outputs have it; an infinite end is null in JSON."""
    out = tmp_path / "out.jsonl"
    for name in ("report.json", "report.html"):
        words = ["--task", "regression", "--coverage", "0.8", "--delay", "3"]
        outputs = ["-o", str(out), "--report", str(tmp_path / name)]
        main.app(["replay", str(path), *words, *outputs], standalone_mode=False)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    labels = [json.loads(line)["label"] for line in path.read_text().splitlines()]
    hits = endless = 0
    for one, label in zip(lines, labels, strict=True):
        low, high = one["interval_low"], one["interval_high"]
        hits += (low is None or low <= label) and (high is None or label <= high)
        endless += None in {low, high}
    numbers = json.loads((tmp_path / "report.json").read_text())["calibrated"]
    assert numbers["tracked_coverage"] == hits / N > 0.8
    assert numbers["tracked_whole"] == endless / N > 0.0
    assert numbers["tracked_score"] >= numbers["tracked_width"] > 0.0
    assert {f"tracked_{name}" for name in NAMES} <= numbers.keys()
    assert "tracked_coverage_bound" not in numbers
    page = (tmp_path / "report.html").read_text()
    assert "By theorem, with a fixed model and a stream that does not move" in page
    assert "On any stream" not in page


def test_topics_and_metrics() -> None:
    """Records of topics have the interval, and a scrape its counters and its level."""
    flags = {"task.kind": "regression", "calibrator.coverage": 0.8}
    status, task = Status(60.0), Served(flags=flags)
    result = task.take(*turning())
    status.batch_committed(task, result)
    status.update_evidence([task])
    assert result.outputs is not None
    outputs: list[Any] = result.outputs.in_order()
    predictions = [one for one in outputs if isinstance(one, RegressionPrediction)]
    ends = [(one.interval_low, one.interval_high) for one in predictions]
    assert ends
    assert all(low is not None and high is not None and low <= high for low, high in ends)
    text = exposition(registry_of(status), "")[0].decode()
    of_level = '{application="abers",level="0.8",model="m",process="0"}'
    values = {
        name: float(text.split(f"abers_tracked_interval_{name}_total{of_level} ")[1].split("\n")[0])
        for name in ("outcomes", "expected", "covered", "width", "whole", "score", "unscored")
    }
    assert 0.0 < values["covered"] <= values["outcomes"]
    assert values["expected"] == pytest.approx(0.8 * values["outcomes"])
    assert values["whole"] == values["unscored"] > 0.0
    assert values["score"] >= values["width"] > 0.0
    of_model = '{application="abers",model="m",process="0"}'
    assert f"abers_tracked_level{of_model} 0.8\n" in text
    assert "abers_tracked_coverage_bound{" not in text
