"""What the words mean, and how to check a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import IntervalRow, formats
from abers.monitoring.answers.answer import state_of
from abers.pages.blocks import Column, FoldBlock, Span, TableBlock, TableRow, TextBlock

if TYPE_CHECKING:
    from abers.monitoring.answers import Period, Row, View
    from abers.pages.blocks import Words
    from abers.pages.model_findings import ModelFindings

__all__ = ["word_fold"]


def word_fold(found: ModelFindings) -> tuple[FoldBlock, ...]:
    """Return the words, and the rows and sums behind one number; nothing before the first."""
    now = found.answers.now
    if now is None:
        return ()
    table = TableBlock(
        key=found.key("words-table"),
        caption="What the words mean",
        columns=(Column(head="word", align="left"), Column(head="meaning", align="left")),
        rows=tuple(TableRow((word, meaning)) for word, meaning in _words(found, now).items()),
        detail="more",
    )
    return (
        FoldBlock(
            key=found.key("words"),
            title="What the words mean, and how to check a number",
            summary="With the rows and the sum behind one number.",
            blocks=(table, *_check(found, now)),
        ),
    )


def _words(found: ModelFindings, now: Period) -> dict[str, str]:
    fewer, more = found.faults
    label = "What really happened: 1 or 0. Here “came” means: the label was 1."
    promised, came = "The mean of the probabilities of a group.", "The share of label 1 in it."
    if found.several:
        label = "The class that came. First choice: the class with the largest probability."
        came = "The share of a group with the label as first choice; of one class, its share."
    if found.of_numbers:
        label, promised = "The number that came.", "The share of labels that intervals promise."
        came = "The share of labels in their intervals, ends included."
    served = "What abers serves instead" + ("." if found.of_numbers else ", column p.")
    return {
        "label": label,
        "raw": "What your model said.",
        **({"calibrated": served} if "calibrated" in found.answers else {}),
        "promised": promised,
        found.came: came,
        "gap": f"{found.came} − promised, in percentage points. Below zero: {fewer}. "
        f"Above: {more}.",
        "range": f"Where the gap is in truth, on average, with 95{formats.NO_BREAK}% for all rows "
        "of a table together, however often you look. It holds for each window, not for all "
        "windows together.",
        "tolerance": f"Gaps that do not matter: odds within {found.tolerance:g} times.",
        f"right, leans, {fewer}, undecided": "Right: the range lies within the tolerance. "
        f"{fewer.capitalize()}, {more}: it lies outside. Leans: it excludes zero, but part of it "
        "is within the tolerance. Undecided: it has zero and reaches beyond.",
        "Yes, Partly, No": f"The first that applies. No: a main row is {fewer} or {more}. Yes: all "
        f"main rows are right, and no row is {fewer} or {more}. Partly: some row leans or is off. "
        "Undecided: else. " + _main_rows(now.views[found.served]),
        **_error(found, now),
        "now": _now(found, now),
    }


def _error(found: ModelFindings, now: Period) -> dict[str, str]:
    """Return what the calibration error is, where there is one."""
    if now.views[found.served].error is None:
        return {}
    return {
        "calibration error": "The mean distance of promised and true share over the groups by "
        f"tenth, with 95{formats.NO_BREAK}% however often you look. Plain ECE, in the scores, has "
        f"what {found.came} in place of the true share: chance makes it too large. Gaps that "
        "cancel within a group do not count, so the error without groups may be larger."
    }


def _main_rows(view: View) -> str:
    """Return which rows decide, where there are some."""
    names = [row.name for row in view.main]
    if not names:
        return ""
    if not names[1:]:
        return f"The main row is {names[0]}."
    return f"Main rows are {', '.join(names[:-1])} and {names[-1]}."


def _now(found: ModelFindings, now: Period) -> str:
    """Return which labels are now, and where they begin."""
    counted = "a prediction p counts p(1 − p)"
    if found.of_numbers:
        counted = "an interval of 90 % counts 0.09".replace(" %", f"{formats.NO_BREAK}%")
    row = "" if now.first_row is None else f" It begins at row {formats.count(now.first_row)};"
    fixed = "its groups were fixed there, before any of its labels."
    return (
        f"The latest {formats.count(now.labels)} labels in the order of the predictions: 1,000 "
        f"to 2,000 units, where {counted}; fewer after the warm-up.{row} {fixed}"
    )


def _check(found: ModelFindings, now: Period) -> tuple[TextBlock, ...]:
    """Return the rows and the sums behind one number; nothing where nothing is promised."""
    view = now.views[found.served]
    if not view.main:
        return ()
    _, row = state_of(view)
    words: Words = (
        "To check a row: filter ",
        Span(found.details.where, "code"),
        f"{_rows(now)}{_kept(found, now, row)}, join your labels. {_sum(found, row)}",
    )
    return (TextBlock(key=found.key("check"), words=words, detail="more"),)


def _rows(now: Period) -> str:
    if now.first_row is None or now.last_row is None:
        return ""
    first, last = formats.count(now.first_row), formats.count(now.last_row)
    return f" to rows {first} to {last} of the model"


def _kept(found: ModelFindings, now: Period, row: Row) -> str:
    """Return which of the rows are those of a group."""
    if isinstance(row, IntervalRow):
        return f", take the {row.name} intervals"
    cut = now.views[found.served].cut
    of = "the largest p" if found.several else "p"
    if row.key == "all" or (row.main and cut is None):
        return ""
    name = row.name if row.name[:1] in "<≥" else f"in {row.name}"
    return f", keep {of} {name}"


def _sum(found: ModelFindings, row: Row) -> str:
    count, promised = formats.count(row.came_count), formats.number(row.promised_sum, 1)
    came = {"came": "labels 1", "right": "right", "inside": "inside"}[found.came]
    places = formats.decimals(row.low or 0.0, row.high or 0.0)
    gap = formats.signed(row.gap or 0.0, places)
    labels = formats.count(row.labels)
    promises = "promised" if found.of_numbers else "sum of p"
    return (
        f"{labels} rows, {count} {came}, {promises} {promised}: "
        f"gap ({count} − {promised}) / {labels} = {gap} points."
    )
