"""The figures of a report, `abers_connectors.dashboard.document`, against its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.pages import Worked
from tests.connectors.dashboard.replays import observed
from tests.connectors.sources.memory import Labelled, MemorySource

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.dashboard.document import cards
from abers_connectors.dashboard.observer import Observer
from abers_connectors.replay.run import Run
from abers_connectors.sinks.memory import MemorySink
from abers_connectors.sources.delayed_labels import DelayedLabels

if TYPE_CHECKING:
    from abers_connectors.dashboard.document import Card

FIGURES = {
    "binary": [
        *("reliability", "experts", "evidence", "experts-over-time", "losses-over-time"),
        *("over-log_loss", "over-brier", "over-width", "over-outside_interval"),
    ],
    "multiclass": [
        *(
            "reliability",
            "experts",
            "evidence",
            "experts-over-time",
            "losses-over-time",
            "over-log_loss",
        ),
        *("over-brier", "over-accuracy", "over-width", "over-outside_interval"),
    ],
    "regression": ["coverage", "evidence", "over-pinball", "over-width", "fan-by-score", "fan"],
}


def figures(task: str) -> dict[str, Card]:
    """Replay a stream of a task, and return the cards of its report."""
    classes = ("a", "b", "c") if task == "multiclass" else ()
    scores = "any" if task == "regression" else "probability"
    processor = Processor(Settings(task=task, classes=classes, scores=scores))  # type: ignore[arg-type] # texts
    observer = Observer()
    observer.hold({0: processor})
    rows = observed(task, 260)
    pairs = [Labelled(Observation(r["id"], r["time"], score=r["score"]), r["label"]) for r in rows]
    source = DelayedLabels(MemorySource(pairs), count=7)
    ran = Run(source, processor, {"predictions": MemorySink()})
    assert [*ran.run()]
    return {one.name: one for one in cards(observer.whole().view()) if one.figure}


@pytest.mark.parametrize("task", [*FIGURES])
def test_each_task_has_its_figures(task: str) -> None:
    """Every figure has a heading, a description and a table, and its axes have names."""
    found = figures(task)
    assert [*found] == FIGURES[task]
    for one in found.values():
        assert one.heading
        assert one.description.endswith(".")
        assert one.figure is not None
        assert one.figure.layout["xaxis"]["title"]["text"]
        assert one.figure.layout["yaxis"]["title"]["text"]
        assert one.table.rows
        assert {len(row) for row in one.table.rows} == {len(one.table.columns)}


def test_a_table_has_what_its_figure_shows() -> None:
    """The points of a figure stand in its table, rounded."""
    found = figures("binary")
    table, figure = found["reliability"].table, found["reliability"].figure
    assert figure is not None
    diagrams = [one for one in figure.data if "marker" in one]
    assert len(diagrams) == 2
    for view in diagrams:
        rows = [row for row in table.rows if row[0] == view["name"]]
        ends = [end for row in rows for end in row[1:3]]
        assert ends == [f"{x:.4f}" for x in view["x"]]
        assert [row[3] for row in rows for _ in range(2)] == [f"{y:.4f}" for y in view["y"]]
        assert sum(int(row[4]) for row in rows) == 260
    over = found["over-brier"]
    assert over.figure is not None
    columns = [over.figure.data[0]["x"], *(view["y"] for view in over.figure.data)]
    assert over.table.columns == ["labels so far", "over", "raw", "calibrated"]
    assert [[row[0], *row[2:]] for row in over.table.rows] == [
        [f"{n:,}", f"{a:.4f}", f"{b:.4f}"] for n, a, b in zip(*columns, strict=True)
    ]


def test_a_view_without_a_number_is_not_drawn() -> None:
    """Where scores are not probabilities there is no line and no column of raw scores."""
    worked = Worked(Settings())
    worked.learn(*((0.25, 0), (0.75, 1)) * 30)
    view = worked.observer.view(("", ""))
    assert view is not None
    shown = {one.name: one for one in cards(view)}
    brier = shown["over-brier"]
    assert brier.table.columns == ["labels so far", "over", "calibrated"]
    assert brier.figure is not None
    assert [trace["name"] for trace in brier.figure.data] == ["calibrated"]
    assert [row[1] for row in shown["scores"].table.rows][:2] == ["-", "-"]


def test_evidence_that_rounds_to_nothing_has_no_sign() -> None:
    """A little less than none is 0.00, not -0.00."""
    worked = Worked(Settings(scores="probability", grace_period=0))
    worked.learn((0.25, 0), (0.75, 1))
    view = worked.observer.view(("", ""))
    assert view is not None
    view = view._replace(tests=[one._replace(log_wealth=-0.001) for one in view.tests])
    (table,) = (one.table for one in cards(view) if one.name == "tests")
    assert [row[1] for row in table.rows] == ["0.00 of 2.00", "0.00 of 6.00"] * 4


def test_an_infinite_mean_is_a_gap() -> None:
    """An infinite point is missing in a figure, and a dash in its table."""
    worked = Worked(Settings(task="regression", quantiles=(0.01, 0.5, 0.99)))
    worked.learn(*((float(n % 11), float(n % 7)) for n in range(300)))
    view = worked.observer.view(("", ""))
    assert view is not None
    (pinball,) = (one for one in cards(view) if one.name == "over-pinball")
    assert pinball.figure is not None
    _, calibrated = pinball.figure.data
    assert calibrated["y"][0] is None
    assert calibrated["y"][-1] is not None
    assert [pinball.table.rows[at][-1] == "-" for at in (0, -1)] == [True, False]


@pytest.mark.parametrize(("labels", "missing"), [(5, (15, 36)), (39, (0, 2)), (40, (0, 1))])
def test_a_figure_says_how_many_labels_are_missing(labels: int, missing: tuple[int, int]) -> None:
    """Before a figure says anything, a sentence with the number of labels stands in its place."""
    worked = Worked()
    worked.learn(*((n % 10 / 10, n % 3 % 2) for n in range(labels)))
    view = worked.observer.view(("", ""))
    assert view is not None
    found = {one.name: one for one in cards(view)}
    for name, more in zip(("reliability", "over-brier"), missing, strict=True):
        assert (name in found) == (more == 0)
        if more:
            card = found[f"{name}-placeholder"]
            noun = "label is" if more == 1 else "labels are"
            assert card.description == f"{more} more {noun} needed before this figure can be drawn."
            assert card.figure is None


def test_figures_over_time_have_dates() -> None:
    """Where event times are dates, the axis has them, and hover texts have the labels so far."""
    processor, observer = Processor(Settings(scores="probability")), Observer()
    observer.hold({0: processor})
    start = 1_704_067_200_000
    for n in range(120):
        at, label = start + 3_600_000 * n, n % 2
        events = Events.of([Observation(f"i{n}", at, score=0.5), Label(f"i{n}", at, value=label)])
        observer.take(processor, processor.process_batch(events))
    found = {one.name: one for one in cards(observer.whole().view())}
    for name in ("evidence", "over-brier", "experts-over-time"):
        drawn = found[name].figure
        assert drawn is not None
        assert drawn.layout["xaxis"]["type"] == "date"
        assert drawn.data[0]["x"][-1] == start + 3_600_000 * 119
        assert drawn.data[0]["customdata"][-1] == 120
    assert "2024-01-05 23:00:00 UTC" in found["over-brier"].table.rows[-1]
