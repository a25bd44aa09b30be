"""Several classes and numbers through the command: checked, run, written, inspected and resumed."""

from __future__ import annotations

import json
import math
import pathlib
import random
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq
import pytest
from tests.connectors.replay.test_resume import kill_after, run_to_the_end
from tests.engine.stream.naive_tasks import band_of

from abers.stream import Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

TIME = 1_700_000_000_000
CLASSES = ("cat", "dog", "7")
TASKS = {
    "multiclass": """
[task]
kind = "multiclass"
classes = ["cat", "dog", "7"]
scores = "probability"
""",
    "regression": """
[task]
kind = "regression"
quantiles = [0.1, 0.5, 0.9]
[calibrator]
window = 50
""",
    "distributions": """
[task]
kind = "regression"
quantiles = [0.1, 0.5, 0.9]
[calibrator]
window = 50
distributions = "full"
""",
}
SETTINGS = {
    "multiclass": Settings(task="multiclass", classes=CLASSES, scores="probability"),
    "regression": Settings(task="regression", quantiles=(0.1, 0.5, 0.9), window=50),
}
SETTINGS["distributions"] = msgspec.structs.replace(SETTINGS["regression"], distributions="full")
FILES = """
[input]
observations = "in.jsonl"
[output]
predictions = "predictions.{suffix}"
outcomes = "outcomes.{suffix}"
[state]
path = "abers.state"
snapshot_every = 100
"""


def records(task: str, size: int) -> list[dict[str, Any]]:
    """Make observations of two models, and labels some time later."""
    draw = random.Random(3)  # noqa: S311 - no secret
    made: list[tuple[int, dict[str, Any]]] = []
    for i in range(size):
        head = {"id": f"a{i}", "model": draw.choice("mn")}
        if task == "multiclass":
            parts = [draw.random() + 0.01 for _ in CLASSES]
            score: Any = {c: one / sum(parts) for c, one in zip(CLASSES, parts, strict=True)}
            label: Any = draw.choices([*CLASSES[:2], 7], parts)[0]
        else:
            score, label = round(draw.uniform(-3, 3), 2), round(draw.uniform(-9, 9), 1)
        made.append((TIME + 1000 * i, {**head, "time": TIME + 1000 * i, "score": score}))
        later = TIME + 1000 * i + 7500
        made.append((later, {**head, "time": later, "label": label}))
    return [record for _, record in sorted(made, key=lambda one: one[0])]


def prepare(folder: Path, task: str, suffix: str, size: int = 120) -> list[dict[str, Any]]:
    """Write the configuration and its input."""
    made = records(task, size)
    (folder / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in made))
    (folder / "abers.toml").write_text(TASKS[task] + FILES.format(suffix=suffix))
    return made


def expected(task: str, made: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return predictions and outcomes as the processor makes them."""
    p = Processor(SETTINGS[task])
    outputs: list[Any] = []
    for one in made:
        head = (one["id"], one["time"], one["model"])
        if "score" in one:
            outputs += p.process(Observation(*head, score=one["score"]))
        else:
            outputs += p.process(Label(*head, value=one["label"]))
    outcomes = [one for one in outputs if hasattr(one, "label")]
    return [one for one in outputs if not hasattr(one, "label")], outcomes


def worded(output: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write an output as it stands on the wire: null in place of what is infinite."""
    given = msgspec.structs.asdict(output)
    unsaid = [name for name, value in given.items() if value is None or value is False]
    left_out = ("segment", "extra", *unsaid)
    return {"v": 1} | {name: finite(one) for name, one in given.items() if name not in left_out}


def finite(value: Any) -> Any:  # noqa: ANN401
    """Put null in place of what is infinite."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.mark.parametrize("task", TASKS)
def test_json_lines(task: str, invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """Predictions and outcomes of both models are those of the processor, infinity as null."""
    made = prepare(tmp_path, task, "jsonl")
    ran = invoke("run", "abers.toml", "--json")
    assert ran.code == 0, ran.err
    for name, outputs in zip(("predictions", "outcomes"), expected(task, made), strict=True):
        lines = (tmp_path / f"{name}.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [worded(one) for one in outputs]
    nulls = "null" in (tmp_path / "predictions.jsonl").read_text()
    assert nulls is (task != "multiclass")


@pytest.mark.parametrize("task", TASKS)
def test_parquet(task: str, invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """In Parquet what is by class or by level is a text of JSON, infinity as null."""
    made = prepare(tmp_path, task, "parquet")
    ran = invoke("run", "abers.toml")
    assert ran.code == 0, ran.err
    for name, outputs in zip(("predictions", "outcomes"), expected(task, made), strict=True):
        rows = pq.read_table(tmp_path / f"{name}.parquet").to_pylist()
        assert len(rows) == len(outputs) == 120
        for row, output in zip(rows, outputs, strict=True):
            for column, value in worded(output).items():
                found = json.loads(row[column]) if isinstance(value, dict) else row[column]
                assert finite(found) == value


@pytest.mark.parametrize("task", TASKS)
def test_check_and_inspect(task: str, invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The task is said before the run, and what each model holds and scores after it."""
    made = prepare(tmp_path, task, "jsonl")
    checked = invoke("check", "abers.toml", "--sample", "in.jsonl")
    assert checked.code == 0, checked.err
    said = {
        "multiclass": "3 classes: cat, dog, 7",
        "regression": "numbers; quantiles 0.1, 0.5, 0.9; scores",
        "distributions": "numbers; quantiles 0.1, 0.5, 0.9; the mean and the whole distribution",
    }
    assert said[task] in " ".join(checked.out.split())
    ran = invoke("run", "abers.toml")
    assert re.search(r"^. Calibrated +\S+ ", ran.out, re.MULTILINE)
    assert "task.scores" not in ran.err
    inspected = invoke("inspect", "abers.state", "--json")
    assert inspected.code == 0, inspected.err
    held = {one["model"]: one for one in json.loads(inspected.out)["held"]}
    assert {*held} == {"m", "n"}
    for model, one in held.items():
        labels = sum(record["model"] == model for record in made) // 2
        assert one["labels"] == (labels if task == "multiclass" else 50)
        assert ("accuracy" in one["scores"]) is (task == "multiclass")
        assert ("crps" in one["scores"]) is (task == "distributions")
    table = invoke("inspect", "abers.state")
    assert table.code == 0, table.err


@pytest.mark.parametrize(
    "task",
    [
        "regression",
        *(pytest.param(one, marks=pytest.mark.long) for one in TASKS if one != "regression"),
    ],
)
@pytest.mark.large(4_000)
def test_killed_and_started_again(task: str, tmp_path: Path, size: int) -> None:
    """A run that is killed and started again writes what one that was never stopped writes."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        prepare(folder, task, "jsonl", size)
    kills = sum(kill_after(killed, more) for more in (1, 20_000, 40_000))
    assert kills >= 1
    for folder in (whole, killed):
        run_to_the_end(folder)
    for name in ("predictions.jsonl", "outcomes.jsonl"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


# Replays


def numbers(path: Path, size: int) -> list[tuple[float, float]]:
    """Write scores and labels that are numbers as CSV."""
    draw = random.Random(5)  # noqa: S311 - no secret
    rows = [
        (score := draw.uniform(0, 9), score + draw.gauss(1, 1 + score / 5)) for _ in range(size)
    ]
    path.write_text("predicted,minutes\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows))
    return rows


def test_a_file_of_numbers(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The table of a regression is a function of the distributions as written and of the labels."""
    rows = numbers(tmp_path / "in.csv", 300)
    words = ["--task=regression", "--score=predicted", "--label=minutes", "--window=40"]
    options = ["--distributions", "--delay=5", "--output=out.jsonl", "--json"]
    ran = invoke("replay", "in.csv", *words, *options)
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    lines = [json.loads(one) for one in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["score"] for one in lines] == [score for score, _ in rows]
    bands = [band_of(one["cdf"]) for one in lines]
    losses = [band.crps(label) for band, (_, label) in zip(bands, rows, strict=True)]
    scored = [row for row, loss in enumerate(losses) if math.isfinite(loss)]
    assert len(scored) == 300 - 6
    calibrated, raw = summary["calibrated"], summary["raw"]
    assert calibrated["crps"] == pytest.approx(math.fsum(losses[row] for row in scored) / 294)
    distances = [abs(rows[row][0] - rows[row][1]) for row in scored]
    assert raw["crps"] == pytest.approx(math.fsum(distances) / 294)
    assert calibrated["crps"] < raw["crps"]
    assert calibrated["crps_infinite"] == raw["crps_infinite"] == 6
    for level, low, high in (
        (50, 0.25, 0.75),
        (80, 0.1, 0.9),
        (90, 0.05, 0.95),
        (95, 0.025, 0.975),
    ):
        ends = [band.quantile([low, high]) for band in bands]
        covered = [a <= y <= b for (a, b), (_, y) in zip(ends, rows, strict=True)]
        assert calibrated[f"coverage_{level}"] == pytest.approx(sum(covered) / 300)


@pytest.mark.parametrize(("name", "score"), [("TrumpApproval", "crps"), ("ImageSegments", "brier")])
def test_bundled_streams_gain(invoke: Callable[..., Ran], name: str, score: str) -> None:
    """Numbers and several classes are calibrated end to end, for the better."""
    ran = invoke("replay", name, "--json", "--output", "out.jsonl")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["calibrated"][score] < found["raw"][score]
    assert found["labels"] == found["observations"] == found["records"]


def test_comparisons_of_other_tasks(invoke: Callable[..., Ran]) -> None:
    """The calibrators of the task are compared, and those of others refused."""
    ran = invoke("replay", "ChickWeights", "--compare", "ivapr", "--window=10")
    assert ran.code == 0, ran.err
    assert re.search(
        r"in 95 +in 90 +in 80 +in 50 +interval *\n +CRPS( +%){4} +width +calibrated", ran.out
    )
    assert re.search(r"ivapr( +[\d.,-]+){6} ", ran.out)
    refused = invoke("replay", "ChickWeights", "--compare", "ivap")
    assert refused.code == 2
    assert "'ivap' is not a calibrator of a regression task\n  these are ivapr" in refused.err


PAGE = pathlib.Path(__file__).parents[3] / "docs" / "tasks.md"


@pytest.mark.parametrize("name", ["pets", "delivery", "orders", "parcels"])
def test_the_page_shows_what_comes_out(
    name: str, invoke: Callable[..., Ran], tmp_path: Path
) -> None:
    """The records and the configuration on the page of the documentation give what stands there."""
    blocks = re.findall(r"```(?:json|toml)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    at = next(i for i, block in enumerate(blocks) if f"{name}.jsonl" in block)
    (tmp_path / f"{name}.jsonl").write_text(blocks[at - 1])
    (tmp_path / "abers.toml").write_text(blocks[at])
    assert invoke("run", "abers.toml").code == 0
    found = [(tmp_path / f"{name}.{one}.jsonl").read_text() for one in ("out", "outcomes")]
    assert "".join(found) == blocks[at + 1]
