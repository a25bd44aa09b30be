"""Many models, or segments, in a table sorted by harm."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers.monitoring import formats
from abers.monitoring.answers.answers import state_of
from abers.pages.answer_cards import small_gap_line
from abers.pages.blocks import (
    Column,
    FoldBlock,
    Mark,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    TilesBlock,
    TileValue,
)
from abers.pages.model_findings import QUESTIONS
from abers.pages.period_groups import gap_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers import Answer, Answers, Row
    from abers.pages.blocks import Block, Cell
    from abers.pages.model_findings import RaisedAlarm

__all__ = ["ModelRow", "by_harm", "models_block", "models_blocks", "states_line"]

_BLOCKED = "blocked"  # enough labels came, but an earlier prediction waits for its own
_ORDER = ("no", "partly", "recovering", "undecided", "yes", "waiting", _BLOCKED)
_STATES = {  # of a model, and of several
    "waiting": ("has too few labels", "have too few labels"),
    _BLOCKED: ("waits for earlier labels", "wait for earlier labels"),
}
_SHOWN = ("model", "calibrated")
_OFF = {"no", "partly"}
_HEADS = {"model": "raw", "calibrated": "calibrated"}
_LATEST = "Each row is about its latest labels. Few labels alone are never called wrong."


class ModelRow(NamedTuple):
    """A model in a table.

    Attributes
    ----------
    name, segment
        Of the model; the only model of a stream may have an empty name.
    answers
        Its answers; None without tests.
    alarms
        Its last alarms, each behind the number of labels so far.
    blocks
        Blocks of the model, which a fold behind the table has; see `model_blocks`.
    """

    name: str
    answers: Answers | None
    segment: str = ""
    alarms: Sequence[tuple[int, RaisedAlarm]] = ()
    blocks: tuple[Block, ...] = ()

    @property
    def title(self) -> str:
        """Name of model and segment."""
        return " · ".join(filter(None, (self.name, self.segment))) or "default"


def by_harm(rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Return models sorted by harm: labels that are wrong, then state, then labels."""
    return sorted(rows, key=_harm)


def _harm(row: ModelRow) -> tuple[float, int, int, str]:
    answers = row.answers
    if answers is None:
        return (0.0, len(_ORDER), 0, row.title)
    state = min(_ORDER.index(answers[one].state) for one in _asked([row]))
    labels = answers.answers[0].labels if answers.now is None else answers.now.labels
    return (-answers.wrong_by, state, -labels, row.title)


def _asked(rows: Sequence[ModelRow]) -> list[str]:
    """Return the questions about promises that models have answers to."""
    known = [row.answers for row in rows if row.answers is not None]
    return [one for one in _SHOWN if not known or any(one in answers for answers in known)]


def states_line(rows: Sequence[ModelRow], question: str) -> str:
    """Return how many models have each state, such as "2 no, 7 partly"."""
    states = Counter(_state(row.answers[question]) for row in rows if row.answers is not None)
    said = [
        f"{formats.count(states[one])} {_STATES.get(one, (one, one))[states[one] > 1]}"
        for one in _ORDER
        if states[one]
    ]
    untested = sum(row.answers is None for row in rows)
    return ", ".join([*said, *([f"{formats.count(untested)} without tests"] if untested else [])])


def models_blocks(
    rows: Sequence[ModelRow],
    *,
    name: str = "model",
    most: int = 5,
    prefix: str = "",
    hint: str = "",
) -> tuple[Block, ...]:
    """Return how many models have each state, their table, and a fold for each that has blocks.

    Parameters
    ----------
    rows
        Models in any order.
    name
        Head of the first column.
    most
        Number of models in a text.
    prefix
        What all keys begin with.
    hint
        How to see the others, behind their number in a text.
    """
    ordered = by_harm(rows)
    tiles = TilesBlock(
        key=f"{prefix}states",
        tiles=tuple(
            TileValue(states_line(rows, question), QUESTIONS[question][0])
            for question in _asked(rows)
        ),
        detail="answers",
    )
    section = SectionBlock(
        key=f"{prefix}models",
        title=f"{name.capitalize()}s",
        why=_why(_asked(rows)),
        blocks=(
            models_block(ordered, name=name, prefix=prefix),
            _text_block(ordered, most, prefix, hint),
        ),
    )
    folds = (
        FoldBlock(
            key=f"{prefix}model-{place + 1}",
            title=row.title,
            summary=_summary(row),
            blocks=row.blocks,
        )
        for place, row in enumerate(ordered)
        if row.blocks
    )
    return (tiles, section, *folds)


def _why(asked: Sequence[str]) -> str:
    """Return how a table is sorted."""
    promises = _HEADS[asked[-1]]
    raw = " (raw in brackets)" if len(asked) > 1 else ""
    return (
        f"Sorted by harm: how many of the latest labels the {promises} promises are wrong by at "
        f"least, in the two halves together{raw}. {_LATEST}"
    )


def models_block(rows: Sequence[ModelRow], *, name: str = "model", prefix: str = "") -> TableBlock:
    """Return the table of models, the worst first."""
    ordered, asked = by_harm(rows), _asked(rows)
    heads = [_HEADS[one] for one in asked]
    return TableBlock(
        key=f"{prefix}models-table",
        place="page",
        caption="Models, the worst first",
        columns=(
            Column(head=name, align="left"),
            Column(head="labels", room="some"),
            *(
                column
                for head in heads
                for column in (
                    Column(head=head, align="left"),
                    Column(head="where, points", room="much"),
                )
            ),
            Column(head="wrong at least (raw)" if len(asked) > 1 else "wrong at least"),
            Column(head=f"gap of {heads[-1]}", align="centre", room="much"),
        ),
        rows=tuple(TableRow(_cells(row, asked)) for row in ordered),
        record={"models": [_record(row) for row in ordered]},
    )


def _record(row: ModelRow) -> dict[str, object]:
    """Return the numbers of a row: those of now, without the stream's and those over time."""
    answers = None
    if row.answers is not None:
        answers = msgspec.structs.replace(row.answers, whole=None, over_time=[]).record()
    return {"model": row.name, "segment": row.segment, "answers": answers}


def _cells(row: ModelRow, asked: Sequence[str]) -> tuple[Cell, ...]:
    answers = row.answers
    if answers is None:
        return (row.title, "", *(("no tests", "") * len(asked)), "", "")
    said = [answers[one] for one in asked]
    return (
        row.title,
        _labels(answers),
        *(cell for one in said for cell in (_mark(one), _where(answers, one))),
        _wrong(answers),
        _line(row, answers),
    )


def _labels(answers: Answers) -> str:
    if answers.now is not None:
        return formats.count(answers.now.labels)
    first = answers.answers[0]
    if _state(first) == _BLOCKED:
        return "0"
    return f"{formats.count(first.labels)} of {formats.count(first.of)}"


def _state(answer: Answer) -> str:
    """Return the state, and of those that wait whether enough labels came."""
    enough = answer.state == "waiting" and answer.labels >= answer.of
    return _BLOCKED if enough else answer.state


def _mark(answer: Answer) -> Mark:
    state = _state(answer)
    words = {"waiting": "too few", _BLOCKED: "waiting", "yes": "right"}
    return Mark(answer.state, words.get(state, state))  # type: ignore[arg-type] # one of these


def _row(answers: Answers, answer: Answer) -> Row | None:
    """Return the row that an answer is about."""
    if answers.now is None:
        return None
    view = "raw" if answer.question == "model" else [*answers.now.views][-1]
    return state_of(answers.now.views[view])[1] if view in answers.now.views else None


def _where(answers: Answers, answer: Answer) -> str:
    """Return the gap of the row that is off."""
    row = _row(answers, answer)
    if row is None or answer.state not in _OFF:
        return ""
    gap = gap_cells(row)[0]
    return gap if row.key == "all" else f"{gap} for {row.name}"


def _wrong(answers: Answers) -> Cell:
    """Return by how many labels promises are wrong at least, raw in brackets."""
    if answers.now is None:
        return ""
    least, raw = formats.count(answers.wrong_by), answers.now.views.get("raw")
    return (
        least
        if raw is None or len(answers.now.views) == 1
        else (least, Span(f" ({formats.count(raw.wrong_by)})", "soft"))
    )


def _line(row: ModelRow, answers: Answers) -> Cell:
    """Return the gap of what is served over time; nothing before the first label."""
    about = _row(answers, answers[_asked([row])[-1]])
    if about is None or answers.now is None:
        return ""
    key = about.key if any(about.key in one.groups for one in answers.over_time) else "all"
    view = [*answers.now.views][-1]
    shown = next(one for one in answers.now.views[view].rows if one.key == key or one is about)
    return small_gap_line(answers, row.alarms, view, shown)


def _text_block(ordered: Sequence[ModelRow], most: int, prefix: str, hint: str) -> TableBlock:
    """Return the worst models as a text has them."""
    more, asked = len(ordered) - most, _asked(ordered)[::-1]
    return TableBlock(
        key=f"{prefix}models-text",
        place="text",
        caption="Models",
        columns=(
            Column(head="worst", align="left"),
            Column(head="labels", room="some"),
            *(Column(head=one, align="left") for one in asked),
            Column(head="wrong by"),
        ),
        rows=tuple(TableRow(_text_cells(row, asked)) for row in ordered[:most]),
        note=f"… {formats.count(more)} more{hint}" if more > 0 else "",
    )


def _text_cells(row: ModelRow, asked: Sequence[str]) -> tuple[Cell, ...]:
    answers, name = row.answers, (Span(row.title, "strong"),)
    if answers is None:
        return (name, "", "no tests", *([""] * len(asked)))
    marks = []
    for question in asked:
        answer = answers[question]
        where = _where(answers, answer)
        marks.append(Mark(_mark(answer).state, where or _mark(answer).word))
    wrong = "" if answers.now is None else formats.count(answers.wrong_by)
    return (name, _labels(answers), *marks, wrong)


def _summary(row: ModelRow) -> str:
    if row.answers is None:
        return "Without tests."
    states = (f"{QUESTIONS[one][0]}: {row.answers[one].state}" for one in _asked([row]))
    return f"{', '.join(states)}."
