"""Protected distributions wherever numbers and figures are shown: by their CRPS, never in nats."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.replays import titles
from tests.connectors.kafka.reads import turning
from tests.connectors.kafka.works import Served

from abers.monitoring import experts
from abers.regression.protected_ivapr import METHODS
from abers_connectors.cli import main
from abers_connectors.dashboard.feed import LiveBlocks
from abers_connectors.dashboard.observer import Observer
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from pathlib import Path

N = 400
NAMES = [*METHODS, "protected"]
FLAGS = {
    "task.kind": "regression",
    "calibrator.kind": "protected",
    "calibrator.support": [0, 1],
    "calibrator.distributions": "scored",
    "calibrator.coverage": 0.8,
}
TRACKED = (
    *("tracked_coverage", "tracked_level", "tracked_coverage_bound", "tracked_width"),
    *("tracked_score", "tracked_whole", "tracked_empty"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of a stream of numbers whose score is wrong by half."""
    rng = random.Random(5)  # noqa: S311 - no secret
    rows = [(truth := rng.random(), truth / 2.0) for _ in range(N)]
    lines = [json.dumps({"score": score, "label": label}) + "\n" for label, score in rows]
    found = tmp_path_factory.mktemp("protected") / "in.jsonl"
    found.write_text("".join(lines))
    return found


def replayed(path: Path, *more: str) -> None:
    """Replay the stream."""
    command = ["replay", str(path), "--task", "regression", "--support", "0", "1", "--delay", "9"]
    main.app([*command, *more], standalone_mode=False)


def test_terminal_and_report(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has the bound on the CRPS, and the total CRPS of each expert."""
    outputs = ["-o", str(tmp_path / "out.jsonl"), "--report", str(tmp_path / "report.json")]
    replayed(path, "--calibrator", "protected", *outputs)
    assert "nats" not in capsys.readouterr().out
    numbers = json.loads((tmp_path / "report.json").read_text())
    found = numbers["experts"]
    assert [*found] == NAMES
    assert found["protected"]["weight"] is None
    assert found["protected"]["loss"] / N == pytest.approx(numbers["calibrated"]["crps"])
    assert found["protected"]["loss"] < found["base"]["loss"]
    assert numbers["calibrated"]["lanes"] == 10
    price = 10 * 2.0 * math.log(2.0)
    assert numbers["calibrated"]["price_crps"] == pytest.approx(price)
    assert numbers["calibrated"]["price_crps_per_label"] == pytest.approx(price / N)
    assert numbers["experts_over_time"][-1]["experts"] == found


def test_tracked_interval(path: Path, tmp_path: Path) -> None:
    """Both reports and the outputs have the coverage, and it is within its bound."""
    for name in ("report.json", "report.html"):
        outputs = ["-o", str(tmp_path / "out.jsonl"), "--report", str(tmp_path / name)]
        replayed(path, "--calibrator", "protected", "--coverage", "0.8", *outputs)
    numbers = json.loads((tmp_path / "report.json").read_text())["calibrated"]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    labels = [json.loads(line)["label"] for line in path.read_text().splitlines()]
    hits = [
        one["interval_low"] is not None and one["interval_low"] <= y <= one["interval_high"]
        for one, y in zip(lines, labels, strict=True)
    ]
    assert numbers["tracked_coverage"] == sum(hits) / N
    assert numbers["tracked_coverage_bound"] == (100.0 + 10) / N
    assert abs(numbers["tracked_coverage"] - 0.8) <= numbers["tracked_coverage_bound"]
    page = (tmp_path / "report.html").read_text()
    assert "Interval with a promised coverage" in page
    assert "On any stream the coverage is within the bound" in page


def test_page(path: Path, tmp_path: Path) -> None:
    """The page of a report has the methods with their weights."""
    outputs = ["-o", str(tmp_path / "out.jsonl"), "--report", str(tmp_path / "report.html")]
    replayed(path, "--calibrator", "protected", *outputs)
    page = (tmp_path / "report.html").read_text()
    assert "Methods" in titles(page)
    for words in ("raw probability", "nats"):
        assert words not in page


def test_comparison(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison leaves out no letter of a name, and says which method has most weight."""
    replayed(path, "--compare", "ivapr,protected", "--json")
    found = json.loads(capsys.readouterr().out)
    assert [*found] == ["ivapr", "protected"]
    assert [*found["protected"]["experts"]] == NAMES
    assert found["ivapr"]["experts"] == {}
    replayed(path, "--compare", "ivapr,protected")
    said = capsys.readouterr()
    assert "…" not in said.out
    assert "protected: mostly the method “" in said.err


def test_live_page_and_metrics() -> None:
    """The live page has the weights of the methods, and each number a metric that says CRPS."""
    status, task, observer = Status(60.0), Served(flags=FLAGS), Observer()
    result = task.take(*turning())
    status.batch_committed(task, result)
    status.update_evidence([task])
    assert result.outputs is not None
    observer.hold({0: task.processor})
    observer.take(task.processor, result.outputs)
    blocks = LiveBlocks(observer, "UTC")(task.processor.keys[0])
    assert blocks is not None
    methods = next(one for one in blocks if one.key == "methods")
    (monitor,) = task.processor.monitors
    known = experts(monitor.numbers_beside())
    assert [*known] == NAMES
    weights = {name: one.weight for name, one in known.items()}
    assert {name: one["weight"] for name, one in methods.record["experts"].items()} == weights
    text = exposition(registry_of(status), "")[0].decode()
    for name, one in known.items():
        labels = f'{{application="abers",expert="{name}",model="m",process="0"}}'
        if one.weight is not None:
            assert f"abers_expert_weight{labels} {one.weight}\n" in text
        assert f"abers_expert_crps{labels} {one.loss}\n" in text
    numbers = {one.name: one.value for one in monitor.numbers_beside() if not one.labels}
    of_model = '{application="abers",model="m",process="0"}'
    assert f"abers_lanes{of_model} {numbers['lanes']:.1f}\n" in text
    assert f"abers_price_crps{of_model} {numbers['price_crps']}\n" in text
    assert {*TRACKED} <= numbers.keys()
    bound = numbers["tracked_coverage_bound"]
    assert f"abers_tracked_coverage_bound{of_model} {bound}\n" in text
    labelled = '{application="abers",level="0.8",model="m",process="0"}'
    covered = numbers["tracked_coverage"] * monitor.count
    assert f"abers_tracked_interval_outcomes_total{labelled} {monitor.count:.1f}\n" in text
    assert f"abers_tracked_interval_covered_total{labelled} {covered:.1f}\n" in text
    for absent in ("abers_expert_log_loss_nats", "abers_price_nats", "per_label"):
        assert absent not in text
