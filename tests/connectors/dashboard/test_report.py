"""The numbers of a report, recomputed from the predictions as written and the labels."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.dashboard.replays import SIZE, command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.dashboard.replays import Replayed

PART = 20  # labels in the last window; all others have 40


def losses(one: dict[str, Any], row: dict[str, Any]) -> dict[str, float]:
    """Score one calibrated prediction by the definitions."""
    p, label = one["p"], row["label"]
    if isinstance(p, dict):
        return {
            "log_loss": -math.log(p[label]),
            "brier": sum((p[c] - (c == label)) ** 2 for c in p),
        }
    return {"log_loss": -math.log(p if label else 1.0 - p), "brier": (p - label) ** 2}


def test_sums_are_those_of_the_summary(replayed: Replayed) -> None:
    """A report has the numbers of the table, but not how fast they were found."""
    numbers, summary = replayed.numbers, replayed.summary
    assert summary.pop("events_per_second") > 0
    assert summary.pop("workers") == []
    counters, status = summary.pop("counters"), summary.pop("alarm_status")
    tests = {one["view"]: one for one in numbers["tests"] if one["name"] == "change-tolerance"}
    assert {view: text.split()[0] for view, text in status.items()} == {
        view: one["status"] for view, one in tests.items()
    }
    assert {name: numbers[name] for name in summary} == summary
    assert {name: count for name, count in numbers["counters"].items() if count} == counters
    assert numbers["counters"]["late_labels"] == 0
    assert "events_per_second" not in numbers


def test_what_was_replayed(replays: dict[str, Replayed]) -> None:
    """Stream, input, task, calibrator, settings and version are named."""
    numbers = replays["regression"].numbers
    named = {name: numbers[name] for name in ("stream", "inputs", "task", "calibrator", "delay")}
    assert named == {
        "stream": "abers.toml",
        "inputs": "regression.jsonl",
        "task": "regression",
        "calibrator": "ivapr",
        "delay": None,
    }
    assert numbers["settings"]["task"] == "regression"


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_scores_over_time(replays: dict[str, Replayed], task: str) -> None:
    """Each moment is the mean loss of a window of the stream, as predictions were issued."""
    one = replays[task]
    terms = [losses(p, row) for p, row in zip(one.predictions, one.rows, strict=True)]
    moments = one.numbers["over_time"]
    ends = [*range(40, SIZE, 40), SIZE]
    assert [moment["labels"] for moment in moments] == ends
    for first, moment in zip([0, *ends], moments, strict=False):
        part = terms[first : moment["labels"]]
        assert (moment["first"], moment["last"]) == (first, moment["labels"] - 1)
        assert moment["over"] == len(part)
        for name in ("log_loss", "brier"):
            expected = math.fsum(term[name] for term in part) / len(part)
            assert moment["calibrated"][name] == pytest.approx(expected)


def test_raw_scores_over_time(replays: dict[str, Replayed]) -> None:
    """Raw scores are scored next to the calibrated ones, and widths are means too."""
    one = replays["binary"]
    last = one.numbers["over_time"][-1]
    squares = [(row["score"] - row["label"]) ** 2 for row in one.rows[-PART:]]
    assert last["raw"]["brier"] == pytest.approx(sum(squares) / PART)
    widths = [p["p1"] - p["p0"] for p in one.predictions[-PART:]]
    assert last["mean_width"] == pytest.approx(sum(widths) / PART)


def test_reliability(replays: dict[str, Replayed]) -> None:
    """Each bin has the mean forecast and the share of label 1 of its predictions."""
    one = replays["binary"]
    views = one.numbers["reliability"]
    forecasts = {
        "raw": [r["score"] for r in one.rows],
        "calibrated": [p["p"] for p in one.predictions],
    }
    for name, issued in forecasts.items():
        assert sum(found["labels"] for found in views[name]) == SIZE
        for number, found in enumerate(views[name]):
            low, high = number / 10, (number + 1) / 10 if number < 9 else 2.0
            pairs = [
                (p, r["label"]) for p, r in zip(issued, one.rows, strict=True) if low <= p < high
            ]
            assert found["labels"] == len(pairs)
            if pairs:
                assert found["forecast"] == pytest.approx(sum(p for p, _ in pairs) / len(pairs))
                assert found["share"] == pytest.approx(sum(y for _, y in pairs) / len(pairs))
            else:
                assert found["forecast"] is None


def test_intervals(replays: dict[str, Replayed]) -> None:
    """Coverage and width of each central interval are those of the quantiles as written."""
    one = replays["regression"]
    by_level = {found["level"]: found for found in one.numbers["intervals"]}
    assert [*by_level] == [0.95, 0.9, 0.8, 0.5]
    ends = [
        (p["quantiles"]["0.1"], p["quantiles"]["0.9"], r["label"])
        for p, r in zip(one.predictions, one.rows, strict=True)
    ]
    inside = [(a is None or a <= y) and (b is None or y <= b) for a, b, y in ends]
    assert by_level[0.8]["coverage"] == pytest.approx(sum(inside) / SIZE)
    widths = [b - a for a, b, _ in ends if a is not None and b is not None]
    assert by_level[0.8]["width"] == pytest.approx(sum(widths) / len(widths))


def test_the_last_outcomes(replays: dict[str, Replayed]) -> None:
    """The last 60 labels have the quantiles that were predicted."""
    one = replays["regression"]
    found = one.numbers["outcomes"]
    assert (found["first"], len(found["labels"])) == (SIZE - 59, 60)
    assert found["labels"] == [row["label"] for row in one.rows[-60:]]
    assert found["scores"] == [row["score"] for row in one.rows[-60:]]
    assert found["quantiles"] == [[*p["quantiles"].values()] for p in one.predictions[-60:]]


def test_what_belongs_to_another_task(replays: dict[str, Replayed]) -> None:
    """A report has null where its task has no such numbers."""
    none = {task: [k for k, v in one.numbers.items() if v is None] for task, one in replays.items()}
    assert {"intervals", "pit", "outcomes"} <= {*none["binary"]}
    assert {"reliability", "intervals", "pit", "outcomes"} <= {*none["multiclass"]}
    assert "reliability" in none["regression"]


def test_a_file_is_named_without_its_directories(tmp_path: Path) -> None:
    """A report has no path of the machine."""
    (tmp_path / "here.csv").write_text("score,label\n0.5,1\n0.7,0\n")
    for name in ("r.json", "r.html"):
        out, report = (str(tmp_path / one) for one in ("p.jsonl", name))
        words = ("replay", str(tmp_path / "here.csv"), "--delay", "0", "--report", report)
        code, _, err = command(*words, "--output", out)
        assert code == 0, err
        assert str(tmp_path) not in (tmp_path / name).read_text()
    numbers = json.loads((tmp_path / "r.json").read_text())
    assert (numbers["stream"], numbers["inputs"], numbers["delay"]) == (
        "here.csv",
        "here.csv",
        "0 observations late",
    )
