"""Document of a page: its words, tables and figures, before a browser has them.

The live page is a document that the server sends again and again; a report is the documents of all
models, written once. Both are made here, so they show the same in the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import abers
from abers import plotting
from abers.monitoring import event_time
from abers_connectors.dashboard.power import evidence_text
from abers_connectors.replay.evidence_text import VIEWS, status_text
from abers_connectors.replay.score_text import left_out, number, score_cell, score_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.monitoring import Evidence, Figure
    from abers.plotting import Drawing
    from abers.stream import Alarm
    from abers_connectors.dashboard.model_view import ModelView

__all__ = ["VERSION", "Card", "Choice", "Document", "Table", "Tile", "cards", "triggered"]

VERSION = f"abers {abers.__version__}"
"""Version as every page shows it."""

_EVIDENCE_NOTE = (
    "Evidence is the capital of a bet against the predictions that began with 1, as a power of "
    "ten. A test is triggered when it reaches the threshold. The guarantee of the threshold holds "
    "however often you look."
)
_VERDICT_NOTE = (
    "Can these forecasts be trusted now? Sizes are averages over the labels that are named; what "
    "lies beyond them is excluded with a confidence of 95 %, however often you look. The tests "
    "below are about every single forecast."
)
_LAST_ALARMS = 5


class Table(msgspec.Struct, frozen=True):
    """Column names, and rows of formatted cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Card(msgspec.Struct, frozen=True):
    """Card of a page: a table, or a figure for plotly's script with its numbers in the table.

    The name is unique among the cards of a document; the notes are paragraphs below.
    """

    name: str
    heading: str
    description: str
    table: Table
    figure: Drawing | None = None
    notes: Sequence[str] = ()


class Choice(msgspec.Struct, frozen=True):
    """Option of the list of models."""

    id: str
    name: str


class Tile(msgspec.Struct, frozen=True):
    """Large number, with its unit and a note."""

    name: str
    value: str
    unit: str = ""
    note: str = ""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Page of one model.

    The phase is "waiting", "live" or "ended", and the status a sentence about it. Alarm and hints
    are sentences to announce. `models` is a list to choose from, `choose` its label, and `model`
    the id of what is shown; `listed` says which models a long list has, `shown` which is shown.
    `empty` says why there are no cards. The title is that of the stream, and in a part of a report
    that of the model.
    """

    title: str
    phase: str = "waiting"
    status: str = "Connecting…"
    alarm: Sequence[str] = ()
    hints: Sequence[str] = ()
    choose: str = "Model"
    models: Sequence[Choice] = ()
    listed: str = ""
    shown: str = ""
    model: str | None = None
    tiles: Sequence[Tile] = ()
    cards: Sequence[Card] = ()
    empty: str | None = None
    version: str = VERSION


def cards(view: ModelView, title: str = "") -> Iterator[Card]:
    """Yield the cards of one model with labels: its verdicts, tests, scores, and each figure.

    The title is the name of the model, if the heading of the scores has it.
    """
    if view.verdicts:
        rows = [[name, sentence] for name, sentence in view.verdicts.items()]
        heading = f"Verdict on {title}" if title else "Verdict"
        table = Table(["of", "verdict"], rows)
        yield Card("verdict", heading, _VERDICT_NOTE, table, notes=view.label_needs)
    if view.tests:
        alarms = [*_alarms(view.alarms)]
        yield Card("tests", "Sequential tests", _EVIDENCE_NOTE, _tests(view.tests), notes=alarms)
    description = " ".join(
        [
            f"Means over {view.labels:,} labels: each prediction is scored once, as issued.",
            *left_out(view.calibrated or {}, view.labels),
        ]
    )
    yield Card("scores", f"Scores of {title}" if title else "Scores", description, _scores(view))
    yield from map(_figure_card, view.figures)


def _figure_card(one: Figure) -> Card:
    if one.missing:
        noun = "label is" if one.missing == 1 else "labels are"
        words = f"{one.missing:,} more {noun} needed before this figure can be drawn."
        return Card(f"{one.id}-placeholder", one.title, words, Table([], []))
    drawing: Drawing = getattr(plotting, one.kind).drawing(**one.data, title=one.title)
    # The heading stands above. Zoomed and hidden traces stay from one second to the next.
    margin = drawing.layout["margin"] | {"t": 16, "b": 80}
    drawing.layout |= {"title": None, "margin": margin, "uirevision": one.id}
    rows = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in one.rows]
    return Card(one.id, one.title, one.caption, Table(one.columns, rows), drawing)


def _scores(view: ModelView) -> Table:
    """Return the mean scores, both views side by side."""
    means = (view.raw, view.calibrated)
    names = score_labels(view.calibrated or {})
    rows = [
        [text, *(score_cell(one, name, view.labels) for one in means)]
        for name, text in names.items()
    ]
    if view.mean_width is not None and not any(name.startswith("width_") for name in names):
        rows.append(["mean interval width", "", number(view.mean_width)])
    for part in ("miscalibration", "discrimination", "uncertainty") if view.brier else ():
        parts = [view.brier.get(name) for name in ("raw", "calibrated")]
        rows.append([part, *(number(one and getattr(one, part)) for one in parts)])
    return Table(["score", "raw score", "calibrated"], rows)


def _tests(tests: Iterable[Evidence]) -> Table:
    rows = [
        [
            f"{VIEWS[one.view]}: {one.name.replace('-', ' ')}",
            evidence_text(one.log_wealth, one.log_threshold),
            status_text(one),
            f"{one.incidents:,}",
        ]
        for one in tests
    ]
    return Table(["test", "evidence of threshold", "status", "incidents"], rows)


def _alarms(alarms: Sequence[tuple[int, Alarm]]) -> Iterator[str]:
    """Yield sentences about the last alarms, the newest first."""
    for labels, alarm in alarms[: -_LAST_ALARMS - 1 : -1]:
        yield triggered(labels, alarm)
    if (earlier := len(alarms) - _LAST_ALARMS) > 0:
        yield f"There were {earlier:,} alarms before these."


def triggered(labels: int, alarm: Alarm) -> str:
    """Return a sentence: when an alarm was triggered, and what it means."""
    return f"Triggered at {event_time(alarm.time)}, after about {labels:,} labels: {alarm.message}"
