"""Protected predictions wherever numbers and figures are shown: terminal, pages and metrics."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.dashboard.replays import titles
from tests.connectors.kafka.reads import turning
from tests.connectors.kafka.works import Served

from abers import ProtectedMultiClass
from abers.monitoring import experts
from abers_connectors.cli import main
from abers_connectors.dashboard.feed import LiveBlocks
from abers_connectors.dashboard.observer import Observer
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from pathlib import Path

N = 1_200
FLAGS = {"calibrator.kind": "protected", "task.scores": "probability"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of a stream whose scorer breaks half-way."""
    rng = random.Random(5)  # noqa: S311 - no secret
    lines = []
    for number in range(N):
        truth = rng.random()
        score = truth if number < N // 2 else 1.0 - truth
        lines.append(json.dumps({"score": score, "label": int(rng.random() < truth)}) + "\n")
    found = tmp_path_factory.mktemp("protected") / "in.jsonl"
    found.write_text("".join(lines))
    return found


def replayed(path: Path, *more: str) -> None:
    """Replay the stream."""
    command = ["replay", str(path), "--scores", "probability", "--delay", "9"]
    main.app([*command, *more], standalone_mode=False)


def numbers_of(path: Path, tmp_path: Path) -> dict[str, Any]:
    """Return the numbers of the report of a replay."""
    outputs = ["-o", str(tmp_path / "out.jsonl"), "--report", str(tmp_path / "report.json")]
    replayed(path, "--calibrator", "protected", *outputs)
    found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    return found


def test_terminal_and_report(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Raw loses its weight after the scorer breaks, and the report says so."""
    numbers = numbers_of(path, tmp_path)
    assert "p is outside its interval in " in capsys.readouterr().out
    issued = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    outside = sum(not one["p0"] <= one["p"] <= one["p1"] for one in issued)
    assert numbers["calibrated"]["outside_interval"] == pytest.approx(outside / N)
    assert numbers["calibrated"]["lanes"] == 10
    found = numbers["experts"]
    assert found["protected"]["weight"] is None
    assert found["protected"]["loss"] / N == pytest.approx(numbers["calibrated"]["log_loss"])
    assert found["raw"]["loss"] / N == pytest.approx(numbers["raw"]["log_loss"])
    points = numbers["experts_over_time"]
    assert points[-1]["experts"] == found
    half = next(one for one in points if one["labels"] >= N // 3)
    assert half["experts"]["raw"]["weight"] > 0.1
    assert found["raw"]["weight"] < 1e-3


def test_page(path: Path, tmp_path: Path) -> None:
    """The page of a report has the methods, if there are any."""
    outputs = ["-o", str(tmp_path / "out.jsonl"), "--report", str(tmp_path / "report.html")]
    replayed(path, "--calibrator", "protected", *outputs)
    page = (tmp_path / "report.html").read_text()
    assert "Methods" in titles(page)
    replayed(path, "--probability", "merged", *outputs)
    assert "Methods" not in titles((tmp_path / "report.html").read_text())


def test_comparison(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison has a row, and says below which method has most weight at the end."""
    replayed(path, "--compare", "ivap,protected")
    found = capsys.readouterr()
    assert [line.split()[0] for line in found.out.splitlines() if line.split()][-1] == "protected"
    assert "outside" not in found.out
    assert "protected: mostly the method “" in found.err
    assert "ivap: " not in found.err


CLASSES = ("cat", "dog", "owl")
SEVERAL = """
input = {observations = "in.jsonl", delay = 9}
task = {kind = "multiclass", classes = ["cat", "dog", "owl"], scores = "probability"}
output.predictions = "out.jsonl"
"""


def test_several_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Declared probabilities of several classes are protected, and every page says so."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(6)  # noqa: S311 - no secret
    lines = []
    for number in range(N):
        parts = [rng.random() + 0.01 for _ in CLASSES]
        truth = parts if number < N // 2 else [*parts[1:], parts[0]]  # the scorer breaks
        score = {name: part / sum(parts) for name, part in zip(CLASSES, parts, strict=True)}
        row = {"id": f"{number}", "time": 1000 * number, "score": score}
        lines.append(json.dumps(row | {"label": rng.choices(CLASSES, truth)[0]}) + "\n")
    (tmp_path / "in.jsonl").write_text("".join(lines))
    (tmp_path / "abers.toml").write_text(SEVERAL)
    for report in ("report.json", "report.html"):
        main.app(["replay", "abers.toml", "--report", report], standalone_mode=False)
    assert "p is outside its interval in " in capsys.readouterr().out
    assert "Methods" in titles((tmp_path / "report.html").read_text())
    numbers = json.loads((tmp_path / "report.json").read_text())
    issued = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    outside = sum(
        any(not one["low"][name] <= one["p"][name] <= one["high"][name] for name in CLASSES)
        for one in issued
    )
    assert 0 < outside < N
    assert numbers["calibrated"]["outside_interval"] == pytest.approx(outside / N)
    assert numbers["calibrated"]["lanes"] == 10
    found = numbers["experts"]
    assert [*found] == [*ProtectedMultiClass(CLASSES).experts, "protected"]
    assert found["protected"]["loss"] / N == pytest.approx(numbers["calibrated"]["log_loss"])
    assert found["raw"]["loss"] / N == pytest.approx(numbers["raw"]["log_loss"])
    assert found["protected"]["loss"] < found["raw"]["loss"]
    assert numbers["experts_over_time"][-1]["experts"] == found


def test_live_page_and_metrics() -> None:
    """The live page has the methods and their weights, and each number has its metric."""
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
    weights = {name: one.weight for name, one in known.items()}
    assert {name: one["weight"] for name, one in methods.record["experts"].items()} == weights
    text = exposition(registry_of(status), "")[0].decode()
    for name, one in known.items():
        labels = f'{{application="abers",expert="{name}",model="m",process="0"}}'
        if one.weight is not None:
            assert f"abers_expert_weight{labels} {one.weight}\n" in text
        assert f"abers_expert_log_loss_nats{labels} {one.loss}\n" in text
    numbers = {one.name: one.value for one in monitor.numbers_beside() if not one.labels}
    of_model = '{application="abers",model="m",process="0"}'
    assert f"abers_lanes{of_model} {numbers['lanes']:.1f}\n" in text
    assert f"abers_price_nats{of_model} {numbers['price_nats']}\n" in text
    outside = numbers["outside_interval"] * monitor.count
    name = "abers_outside_interval_predictions_total"
    assert f"{name}{of_model} {outside:.1f}\n" in text
    assert "abers_price_per_label" not in text
