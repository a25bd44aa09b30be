"""The figures of a report, `abers_connectors.report.figures`, against its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.report.conftest import observed

from abers.stream import Observation, Processor, Settings
from abers_connectors import running
from abers_connectors.delayed import Delayed
from abers_connectors.memory import MemorySink, MemorySource
from abers_connectors.records import Labelled
from abers_connectors.report.content import Ended, reported
from abers_connectors.report.figures import drawn
from abers_connectors.report.findings import Findings, Moment
from abers_connectors.report.gathering import Gathered
from abers_connectors.report.watching import Watching
from abers_connectors.summary import summarised

if TYPE_CHECKING:
    from abers.stream import Outputs
    from abers_connectors.report.tables import Drawn

FIGURES = {
    "binary": ["reliability", "over-log_loss", "over-brier", "over-width"],
    "multiclass": ["over-log_loss", "over-brier", "over-accuracy", "over-width"],
    "regression": ["coverage", "over-pinball", "over-width", "fan-by-score", "fan"],
}


def figures(task: str) -> dict[str, Drawn]:
    """Replay a stream of a task, and draw what is reported of it."""
    classes = ("a", "b", "c") if task == "multiclass" else ()
    scores = "any" if task == "regression" else "probability"
    processor = Processor(Settings(task=task, classes=classes, scores=scores))  # type: ignore[arg-type] # texts
    gathered = Gathered(processor.settings)
    rows = observed(task, 260)
    pairs = [Labelled(Observation(r["id"], r["time"], score=r["score"]), r["label"]) for r in rows]
    source = Delayed(MemorySource(pairs), count=7)
    ran = running.Run(source, processor, {"predictions": MemorySink()})

    def take(outputs: Outputs) -> None:
        assert outputs.judged is not None
        gathered.take(outputs.judged, [], [])

    ran.onlookers.append(take)
    assert [*ran.run()]
    summary = summarised(ran, 520, 1.0)
    run = Ended("memory", 7, source, processor, summary, gathered, Watching())
    return {one.name: one for one in drawn(reported(run))}


@pytest.mark.parametrize("task", [*FIGURES])
def test_each_task_has_its_figures(task: str) -> None:
    """Every figure has a heading, a sentence and a table of numbers, and its axes have names."""
    found = figures(task)
    assert [*found] == FIGURES[task]
    for one in found.values():
        assert one.heading
        assert one.sentence.endswith(".")
        assert one.figure.layout["xaxis"]["title"]["text"]
        assert one.figure.layout["yaxis"]["title"]["text"]
        assert one.table.rows
        assert {len(row) for row in one.table.rows} == {len(one.table.columns)}


def test_a_table_has_what_its_figure_shows() -> None:
    """The points of a figure stand in its table, rounded."""
    found = figures("binary")
    table = found["reliability"].table
    for view in found["reliability"].figure.data[-2:]:
        rows = [row for row in table.rows if row[0] == view["name"]]
        ends = [end for row in rows for end in row[1:3]]
        assert ends == [f"{x:.4f}" for x in view["x"]]
        assert [row[3] for row in rows for _ in range(2)] == [f"{y:.4f}" for y in view["y"]]
        assert sum(int(row[4]) for row in rows) == 260
    over = found["over-brier"]
    columns = [over.figure.data[0]["x"], *(view["y"] for view in over.figure.data)]
    assert over.table.columns == ["labels so far", "over", "raw", "calibrated"]
    assert [[row[0], *row[2:]] for row in over.table.rows] == [
        [f"{n:,}", f"{a:.4f}", f"{b:.4f}"] for n, a, b in zip(*columns, strict=True)
    ]


def test_a_view_without_a_number_is_not_drawn() -> None:
    """Where scores are no probabilities there is no line and no column of raw scores."""
    moments = [Moment(5, 5, None, {"brier": 0.25}, 1.0), Moment(9, 9, None, {"brier": None}, 1.0)]
    found = Findings(
        labels=9, raw=None, calibrated={"brier": 0.25}, mean_width=1.0, over_time=moments
    )
    brier, _ = drawn(found)
    assert brier.table.columns == ["labels so far", "over", "calibrated"]
    assert brier.figure.data[0]["y"] == [0.25, None]
    assert brier.table.rows[1] == ["9", "9", "-"]
