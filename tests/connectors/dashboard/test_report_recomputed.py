"""Every number of a report, anew from the predictions as written and the labels of the input.

Each stream has two segments; a report names the rows, and a reader needs a few lines of numpy.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.connectors.dashboard.replays import Outline, command, lines
from tests.engine.monitoring import answers_recomputed as anew
from tests.engine.monitoring.test_answers_recomputed import check_level, check_losses, check_view

from abers.monitoring import formats

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CLASSES = ("a", "b", "c")
CONFIG = """
[task]
kind = "{kind}"
{task}
[input]
observations = "{input}"
delay = 40
[input.fields]
segment = "country"
[output]
predictions = "out.jsonl"
"""


class Segment(SimpleNamespace):
    """A segment: rows of the output with labels, answers of the report, tables of the page."""

    outputs: list[dict[str, Any]]
    labels: list[Any]
    answers: Any
    tables: list[list[list[str]]]

    @property
    def first(self) -> int:
        """Place of the first row that counts."""
        return int(self.answers.whole.first_row) - 1


def replayed(
    folder: Path, kind: str, task: str, name: str, labels: dict[str, Any]
) -> list[Segment]:
    """Replay a file for its outputs, and its report as numbers and as a page."""
    (folder / "abers.toml").write_text(CONFIG.format(kind=kind, task=task, input=name))
    for report in ("r.json", "r.html"):
        code, _, err = command("replay", "abers.toml", "--report", report)
        assert code == 0, err
    models = json.loads((folder / "r.json").read_text())["models"]
    page, outputs = (folder / "r.html").read_text(), lines(folder / "out.jsonl")
    assert {one["segment"] for one in models} == {"s", "t"}
    found = []
    for one in models:
        mine = [row for row in outputs if row["segment"] == one["segment"]]
        fold = next(
            part for part in page.split('id="model-')[1:] if f"· {one['segment']}</h2>" in part
        )
        found.append(
            Segment(
                outputs=mine,
                labels=[labels[row["id"]] for row in mine],
                answers=json.loads(json.dumps(one["answers"]), object_hook=spaced),
                tables=Outline(fold).tables,
            )
        )
    return found


def spaced(found: dict[str, Any]) -> Any:  # noqa: ANN401 - views stay a mapping
    """Return an object of JSON with its keys as attributes."""
    return found if {"raw", "calibrated"} >= {*found} else SimpleNamespace(**found)


def check_page(segment: Segment, view: Any, head: str) -> None:  # noqa: ANN401 - as of JSON
    """Find each row of a view in a table of the page, in the format of people."""
    shown = {tuple(row[:5]) for table in segment.tables if table[0][0] == head for row in table[1:]}
    for row in view.rows:
        places = formats.decimals(row.low, row.high)
        gap = formats.signed(row.gap, places)
        shares = [formats.number(100.0 * one, 1) for one in (row.promised, row.came)]
        assert (row.name, formats.count(row.labels), *shares, gap) in shown


def check_now(segment: Segment, units: Any) -> tuple[int, int]:  # noqa: ANN401 - an array
    """Return where now begins among the rows that count, and the window before."""
    begin, earlier = anew.now_start(units)
    now, whole = segment.answers.now, segment.answers.whole
    assert now.first_row == whole.first_row + begin
    assert now.last_row == whole.last_row == len(segment.outputs)
    assert (now.labels, whole.labels) == (len(units) - begin, len(units))
    return begin, earlier


def test_two_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, shares, gaps, ranges and losses of a CSV file are those of its rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 26_000
    p = rng.beta(2.0, 4.0, n).round(6)
    y = rng.random(n) < np.where(np.arange(n) < n // 2, p, p / (p + 2.0 * (1.0 - p)))
    labels = {f"{k}": int(one) for k, one in enumerate(y)}
    rows = [f"{k},{k},{p[k]},{labels[f'{k}']},{'st'[k % 2]}" for k in range(n)]
    (tmp_path / "in.csv").write_text("\n".join(["id,time,score,label,country", *rows]))
    task = 'scores = "probability"'
    for segment in replayed(tmp_path, "binary", task, "in.csv", labels):
        every = {
            "raw": np.array([one["score"] for one in segment.outputs]),
            "calibrated": np.array([one["p"] for one in segment.outputs]),
        }
        of_rows = {view: one[segment.first :] for view, one in every.items()}
        came = np.array(segment.labels[segment.first :])
        served = of_rows["calibrated"]
        begin, earlier = check_now(segment, served * (1.0 - served))
        assert begin > 0
        now, whole = segment.answers.now, segment.answers.whole
        for view, one in of_rows.items():
            before, warm = one[earlier:begin], every[view][: segment.first]
            check_view(now.views[view], one[begin:], came[begin:] * 1.0, before, merged=True)
            check_view(whole.views[view], one, came * 1.0, warm, merged=False)
            check_page(segment, now.views[view], "group")
            check_page(segment, whole.views[view], "group")
        both = [np.column_stack((1.0 - one, one)) for one in of_rows.values()]
        check_losses(whole.losses, both, came)
        check_losses(now.losses, [one[begin:] for one in both], came[begin:])


def test_several_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice has the numbers of the rows; losses are of the class that came."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    n = 8_000
    p = rng.dirichlet((3.0, 2.0, 1.0), n)
    drawn = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    wrong = p**1.5 / (p**1.5).sum(axis=1, keepdims=True)
    labels = {f"{k}": CLASSES[one] for k, one in enumerate(drawn)}
    rows = [
        {"id": f"{k}", "time": k, "label": labels[f"{k}"], "country": "st"[k % 2]}
        | {"score": dict(zip(CLASSES, wrong[k].tolist(), strict=True))}
        for k in range(n)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = f'scores = "probability"\nclasses = {json.dumps(CLASSES)}'
    for segment in replayed(tmp_path, "multiclass", task, "in.jsonl", labels):
        first, came = segment.first, np.array([CLASSES.index(one) for one in segment.labels])
        every = {
            view: np.array([[one[name][c] for c in CLASSES] for one in segment.outputs])
            for view, name in (("raw", "score"), ("calibrated", "p"))
        }
        top = {view: one.max(axis=1) for view, one in every.items()}
        right = {view: (one.argmax(axis=1) == came) * 1.0 for view, one in every.items()}
        served = top["calibrated"][first:]
        begin, earlier = check_now(segment, served * (1.0 - served))
        for view, one in top.items():
            choice = one[first + earlier : first + begin] if begin else one[:first]
            now, whole = (each.views[view] for each in (segment.answers.now, segment.answers.whole))
            at = first + begin
            check_view(now, one[at:], right[view][at:], choice, merged=True)
            check_view(whole, one[first:], right[view][first:], one[:first], merged=False)
            check_page(segment, now, "group")
        both = [one[first:] for one in every.values()]
        check_losses(segment.answers.whole.losses, both, came[first:])


def test_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level of the intervals has the numbers of the rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n = 4_000
    scores = rng.normal(0.0, 1.0, n).round(6)
    y = (scores + rng.normal(0.0, 1.0, n)).round(6).tolist()
    labels = {f"{k}": one for k, one in enumerate(y)}
    rows = [f"{k},{k},{scores[k]},{y[k]},{'st'[k % 2]}" for k in range(n)]
    (tmp_path / "in.csv").write_text("\n".join(["id,time,score,label,country", *rows]))
    task = "quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]"
    for segment in replayed(tmp_path, "regression", task, "in.csv", labels):
        came = np.array(segment.labels[segment.first :])
        table = np.array(
            [[*one["quantiles"].values()] for one in segment.outputs[segment.first :]], float
        )
        table[:, :2] = np.where(np.isnan(table[:, :2]), -np.inf, table[:, :2])
        table[:, 3:] = np.where(np.isnan(table[:, 3:]), np.inf, table[:, 3:])
        whole = segment.answers.whole
        assert (whole.labels, whole.last_row) == (len(came), len(segment.outputs))
        shown = {tuple(row[:3]) for one in segment.tables if one[0][0] == "interval" for row in one}
        for row, low, high in zip(
            whole.views["calibrated"].rows, table[:, :2].T, table[:, :-3:-1].T, strict=True
        ):
            check_level(row, came, low, high)
            inside = formats.number(100.0 * row.came_count / row.labels, 1)
            name = f"{100.0 * row.level:g}{formats.NO_BREAK}%"
            assert (name, formats.count(row.labels), inside) in shown
