"""A report of several models: each as if it were alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.dashboard.replays import TASKS, Outline, command, titles
from tests.connectors.dashboard.several import CONFIG, KEYS, mixed, reported

from abers_connectors.dashboard.report import NO_FINDINGS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

SAMPLED = ("evidence", "experts_over_time")
"""What is sampled when a batch ends: before the last point, batches end elsewhere."""


def numbers(task: str, folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of rows as numbers."""
    found: dict[str, Any] = json.loads(reported(task, folder, rows, "r.json"))
    return found


@pytest.mark.parametrize("task", TASKS)
def test_each_model_as_if_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    """The part of a model equals the report of its events alone."""
    monkeypatch.chdir(tmp_path)
    rows = mixed(task)
    whole = numbers(task, tmp_path, rows)
    assert [(one["model"], one["segment"]) for one in whole["models"]] == KEYS
    for one in whole["models"]:
        key = one.pop("model"), one.pop("segment")
        mine = [row for row in rows if (row["model"], row["country"]) == key]
        alone = numbers(task, tmp_path, mine)
        sampled = {name: one[name] for name in SAMPLED}
        assert [each[-1:] for each in sampled.values()] == [alone[name][-1:] for name in SAMPLED]
        assert one == {name: alone[name] for name in NO_FINDINGS} | sampled
        assert one["labels"] == len(mine)
        assert "models" not in alone


def test_the_whole_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts come next to the numbers of all together, and have all the labels."""
    monkeypatch.chdir(tmp_path)
    whole = numbers("binary", tmp_path, mixed("binary"))
    assert [*whole][-3:] == ["models", "models_left_out", "left_out"]
    assert (whole["models_left_out"], whole["left_out"]) == (0, [])
    assert sum(one["labels"] for one in whole["models"]) == whole["labels"] == 240
    for view in ("raw", "calibrated"):
        terms = [one["labels"] * one[view]["brier"] for one in whole["models"]]
        assert sum(terms) / 240 == pytest.approx(whole[view]["brier"])


@pytest.mark.parametrize("report", ["r.html", "r.json"])
def test_the_same_bytes(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, report: str
) -> None:
    """In another process the models are in the same order, with the same numbers."""
    rows = "\n".join(map(json.dumps, mixed("binary")))
    (tmp_path / "in.jsonl").write_text(rows + "\n")
    (tmp_path / "abers.toml").write_text(CONFIG.format(task="binary", more=""))
    found = []
    for seed in ("1", "2"):
        process = start("replay", "abers.toml", "--report", report, PYTHONHASHSEED=seed)
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()
        found.append((tmp_path / report).read_bytes())
    assert found[0] == found[1]


def test_a_bad_record_changes_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused records are counted for all together, and change no model."""
    monkeypatch.chdir(tmp_path)
    rows = mixed("binary")
    bad = [rows[0] | {"id": "bad", "score": "high"}, rows[1] | {"id": "worse", "time": "soon"}]
    found, before = (
        numbers("binary", tmp_path, [*rows[:9], *more, *rows[9:]]) for more in (bad, [])
    )
    assert sum(found["dead_letters"].values()) == 2
    for one, other in zip(found["models"], before["models"], strict=True):
        sampled = {name: one[name] for name in SAMPLED}
        assert [each[-1:] for each in sampled.values()] == [other[name][-1:] for name in SAMPLED]
        assert one == other | sampled


def crowd(size: int) -> list[dict[str, Any]]:
    """Return a stream of some models, of which the last has most labels."""
    labelled = [
        {"id": f"i{n}", "score": 0.5, "label": n % 2, "model": f"m{n % size}"}
        for n in range(2 * size)
    ]
    more = [{"id": f"j{n}", "score": 0.5, "label": 1, "model": f"m{size - 1}"} for n in range(3)]
    return [{"time": n} | row for n, row in enumerate([*labelled, *more])]


def test_too_many_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst 100 models are reported, and of the others the numbers: all have a row."""
    monkeypatch.chdir(tmp_path)
    found = numbers("binary", tmp_path, crowd(103))
    labels = Counter(row["model"] for row in crowd(103))
    order = sorted(labels, key=lambda model: (-labels[model], model))  # without any evidence
    assert [one["model"] for one in found["models"]] == order[:100]
    assert (found["models_left_out"], found["labels"]) == (3, 209)
    assert [one["model"] for one in found["left_out"]] == order[100:]
    (first, *_) = found["left_out"]
    assert (first["labels"], first["alarm_active"], first["evidence_log10"]) == (2, False, 0.0)
    assert first["calibrated"]["brier"] > 0.0
    page = reported("binary", tmp_path, crowd(103), "r.html")
    assert "The 10 worst of 103 can be opened below." in page
    listed = next(table for table in Outline(page).tables if table[0][0] == "model")
    assert [row[:2] for row in listed[1:4]] == [
        ["m102", "5 of 200"],
        ["m0", "2 of 200"],
        ["m1", "2 of 200"],
    ]
    assert len(listed) == 1 + 103
    assert len(titles(page)) == 10 + len(["Scores", "Records"])


def test_the_worst_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose labels disagree with its scores stands before one with more labels."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"i{n}", "time": n, "score": 0.1, "label": int(n % 3 == 0), "model": model}
        for n in range(1_200)
        for model in ["odd" if n % 3 == 0 else "calm"]
    ]
    found = numbers("binary", tmp_path, rows)["models"]
    assert [(one["model"], one["labels"]) for one in found] == [("odd", 400), ("calm", 800)]


def test_a_model_without_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without labels comes after the others, and the page says so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abers.toml").write_text(
        '[input]\nobservations = "in.jsonl"\nlabels = "labels.jsonl"\n'
        '[output]\npredictions = "out.jsonl"\n'
    )
    rows = [{"id": "a", "time": n, "model": model, "score": 0.5} for n, model in enumerate("xyz")]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "labels.jsonl").write_text('{"id": "a", "time": 9, "model": "y", "label": 1}\n')
    for name in ("r.json", "r.html"):
        assert command("replay", "abers.toml", "--report", name)[0] == 0
    found = json.loads((tmp_path / "r.json").read_text())["models"]
    assert [(one["model"], one["labels"]) for one in found] == [("y", 1), ("x", 0), ("z", 0)]
    listed = next(
        one for one in Outline((tmp_path / "r.html").read_text()).tables if one[0][0] == "model"
    )
    assert {row[0]: row[1] for row in listed[1:]} == {
        "x": "0 of 200",
        "y": "1 of 200",
        "z": "0 of 200",
    }


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model has its row and its fold, all names are text, and ids are unique."""
    monkeypatch.chdir(tmp_path)
    page = reported("binary", tmp_path, mixed("binary"), "r.html")
    outline = Outline(page)
    listed = next(table for table in outline.tables if table[0][0] == "model")
    names = ["fraud · fr", "fraud · de", "<b>spam · fr"]
    assert [row[0] for row in listed[1:]] == names
    assert [*map(unescape, titles(page))][:3] == names
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len({*ids}) == len(ids)
    assert re.findall(r"<b>spam", page) == []


def test_one_model_has_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one model its own answers are shown, and no table of models."""
    monkeypatch.chdir(tmp_path)
    mine = [row for row in mixed("binary") if (row["model"], row["country"]) == KEYS[0]]
    outline = Outline(reported("binary", tmp_path, mine, "r.html"))
    assert "model" not in [table[0][0] for table in outline.tables]
    assert "Is what is served right?" in {text for _, text in outline.texts}


def test_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst models have a row, all of them with -v; one has its own answers."""
    monkeypatch.chdir(tmp_path)
    reported("binary", tmp_path, crowd(25), "r.json")
    _, out, _ = command("replay", "abers.toml")
    assert out.splitlines()[:2] == [
        "  Model        25 have too few labels",
        "  Calibrated   25 have too few labels",
    ]
    rows = [line.split() for line in out.splitlines() if re.match(r" +m\d", line)]
    assert [row[:4] for row in rows[:2]] == [["m24", "5", "of", "200"], ["m0", "2", "of", "200"]]
    assert len(rows) == 5
    assert "… 20 more" in out
    _, out, _ = command("replay", "abers.toml", "-v")
    assert len([line for line in out.splitlines() if re.match(r"  m\d", line)]) == 25
    _, out, _ = command("replay", "abers.toml", "-q")
    assert len(out.splitlines()) == 2
    reported("binary", tmp_path, crowd(1), "r.json")
    assert "wrong by" not in command("replay", "abers.toml")[1]
