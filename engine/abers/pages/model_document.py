"""The document of a model: three answers, about now, and everything behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import formats
from abers.monitoring.answers import IntervalRow
from abers.monitoring.answers.answers import state_of
from abers.monitoring.regression import central_pairs
from abers.pages.answer_cards import alarm_fold, alarm_text, answer_cards, banners, labelled_text
from abers.pages.blocks import (
    AnswerBlock,
    AnswersBlock,
    BlockGroup,
    ChoiceBlock,
    Column,
    Document,
    FigureBlock,
    FoldBlock,
    Mark,
    Picture,
    SectionBlock,
    Span,
    TableBlock,
    TableRow,
    TextBlock,
)
from abers.pages.method_blocks import (
    method_fold,
    other_folds,
    outside_notes,
    record_fold,
    score_fold,
)
from abers.pages.model_findings import QUESTIONS, ModelDetails, ModelFindings, state_of_status, tone
from abers.pages.period_groups import (
    class_section,
    gap_bar,
    gap_cells,
    gap_limit,
    group_sections,
    over_time_section,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import TaskMonitor
    from abers.monitoring.answers import Answers, Period, Row, View
    from abers.pages.blocks import Block, Words
    from abers.pages.figures.data import IntervalBand, IntervalsData
    from abers.pages.model_findings import LatestOutcomes

__all__ = [
    "error_text",
    "interval_sections",
    "latest_section",
    "model_blocks",
    "model_document",
    "word_fold",
]


def error_text(found: ModelFindings) -> tuple[TextBlock, ...]:
    """Return between which ends the calibration error is, now and of the whole stream.

    Nothing before the first label, and of numbers. A window that is the whole stream has the ten
    tenths of that: its own were merged when hardly any prediction was known, perhaps into one, and
    gaps that cancel between tenths would not count.
    """
    now, whole = found.answers.now, found.answers.whole
    if now is None or whole is None:
        return ()
    same = now.labels == whole.labels
    if not (latest := _ranges(whole if same else now)):
        return ()
    of = " of the first choice" if found.several else ""
    words: Words = (f"The calibration error{of} is ", *latest, ".")
    if not same:
        words = (*words, " Whole stream: ", *_ranges(whole), ".")
    return (TextBlock(key=found.key("calibration-error"), words=words),)


def _ranges(period: Period) -> tuple[str | Span, ...]:
    """Return the range of each view, with its name if there are two."""
    said: list[str | Span] = []
    for view, found in period.views.items():
        if found.error is None:
            continue
        said += [", and "] if said else []
        said.append(found.error.ends)
        if len(period.views) > 1:
            said += [" (", Span(view, tone(view)), ")"]
    return (*said,)


def interval_sections(found: ModelFindings, period: Period, name: str) -> tuple[SectionBlock, ...]:
    """Return the table of all levels in a period; the period has a name."""
    rows = [row for row in period.views[found.served].rows if isinstance(row, IntervalRow)]
    if not rows:
        return ()
    limit = gap_limit(rows)
    unit = found.details.outcomes.unit.strip() if found.details.outcomes else ""
    dates = formats.period(period.start, period.until, found.zone)
    table = TableBlock(
        key=found.key(f"intervals-{name}-table"),
        caption=f"Intervals by level, {formats.count(period.labels)} labels, {dates}",
        columns=(
            Column(head="interval", align="left"),
            Column(head="labels", room="some"),
            Column(head="inside", unit="%"),
            Column(head="gap"),
            Column(head="range"),
            Column(head="below / above", unit="%", room="much"),
            Column(head="width", unit=unit),
            Column(head="narrow ← gap → wide", align="centre", room="much"),
            Column(head="so", align="left"),
        ),
        rows=tuple(TableRow(_cells(row, limit), main=row.main) for row in rows),
        note=_endless(rows),
    )
    return (
        SectionBlock(
            key=found.key(f"intervals-{name}"),
            title="Are the intervals right?",
            why="The gap is inside − promised, in points: below zero too narrow, above too wide. "
            f"All ranges hold together with 95{formats.NO_BREAK}%, however often you look.",
            blocks=(table,),
        ),
    )


def _cells(row: IntervalRow, limit: float) -> tuple[str | Mark | Picture, ...]:
    shares = [
        formats.number(100.0 * one / row.labels, 1) if row.labels else ""
        for one in (row.came_count, row.below_count, row.above_count)
    ]
    return (
        row.name,
        formats.count(row.labels),
        shares[0],
        *gap_cells(row),
        f"{shares[1]} / {shares[2]}",
        "" if row.width is None else formats.significant(row.width),
        gap_bar(row, "calibrated", limit),
        Mark(state_of_status(row.status), row.status),
    )


def _endless(rows: list[IntervalRow]) -> str:
    """Return how many intervals have no limit."""
    labels, finite = rows[0].labels, min(row.finite for row in rows)
    if finite == labels:
        return ""
    without = formats.count(labels - finite)
    return (
        f"{without} of {formats.count(labels)} predictions had an interval without a limit. They "
        "are in no mean width."
    )


def latest_section(found: ModelFindings) -> tuple[SectionBlock, ...]:
    """Return the figure of the latest labels; nothing if they are unknown."""
    latest = found.details.outcomes
    if latest is None or not len(latest.rows):
        return ()
    n = len(latest.rows)
    shown = central_pairs(latest.levels)
    names = [f"{100.0 * share:.9g}" for *_, share in reversed(shown)]
    levels = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    outside = f", large and red where it fell outside the {names[-1]} % interval" if names else ""
    figure = FigureBlock(
        key=found.key("latest-figure"),
        pictures=(
            Picture("intervals", _data(latest), f"The latest {n} labels with their intervals"),
        ),
    )
    return (
        SectionBlock(
            key=found.key("latest"),
            title=f"The last {n} labels",
            why=f"Bars are the {levels} % intervals; a dot is the label{outside}.".replace(
                " %", f"{formats.NO_BREAK}%"
            ),
            blocks=(figure,),
            record={"labels": latest.rows[:, 0].tolist(), "quantiles": latest.rows[:, 2:].tolist()},
            detail="more",
        ),
    )


def _data(latest: LatestOutcomes) -> IntervalsData:
    bands: list[IntervalBand] = [
        {
            "level": round(100.0 * share),
            "low": latest.rows[:, 2 + low].tolist(),
            "high": latest.rows[:, 2 + high].tolist(),
        }
        for low, high, share in central_pairs(latest.levels)
    ]
    return {
        "x": [float(row) for row in range(1, len(latest.rows) + 1)],
        "zone": None,
        "unit": latest.unit,
        "label": latest.rows[:, 0].tolist(),
        "bands": bands,
        "missing": 0,
    }


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


_LEADS = {
    "yes": ("The model tells the truth.", "What is served is right.", "Calibration pays."),
    "no": ("The model is off.", "What is served is off.", "Calibration costs."),
    "partly": ("The model is off in part.", "What is served is off in part.", ""),
    "recovering": ("The model recovers.", "What is served recovers.", ""),
}


def model_document(  # noqa: PLR0913 - each is of a part of the page
    monitor: TaskMonitor,
    details: ModelDetails = ModelDetails(),  # noqa: B008 - immutable
    *,
    title: str,
    zone: str = "UTC",
    facts: Sequence[Words] = (),
    foot: Words = "",
) -> Document:
    """Return the document of a model.

    Parameters
    ----------
    monitor
        Monitor of all predictions of the model.
    details
        What else its blocks show.
    title
        Name of the model or of its stream.
    zone
        IANA zone of all dates.
    facts
        What was read, behind which the warm-up is named.
    foot
        What made the document.

    Returns
    -------
    Document
        Its blocks are those of `model_blocks`.
    """
    answers = monitor.answers(zone)
    return Document(
        title=title,
        lead=_lead(answers),
        facts=(*facts, *_warm_up(answers)),
        blocks=_blocks(monitor, answers, details, zone, prefix=""),
        foot=foot,
    )


def model_blocks(
    monitor: TaskMonitor,
    details: ModelDetails = ModelDetails(),  # noqa: B008 - immutable
    *,
    zone: str = "UTC",
    prefix: str = "",
) -> tuple[Block, ...]:
    """Return the blocks of a model, with keys that begin with a prefix; see `model_document`."""
    return _blocks(monitor, monitor.answers(zone), details, zone, prefix)


def _blocks(
    monitor: TaskMonitor, answers: Answers | None, details: ModelDetails, zone: str, prefix: str
) -> tuple[Block, ...]:
    records = details.records
    if answers is None:
        return _untested(monitor, prefix, records)
    found = ModelFindings(
        monitor=monitor,
        answers=answers,
        record=answers.record(),
        zone=zone,
        prefix=prefix,
        details=details,
    )
    return (
        *banners(found),
        answer_cards(found),
        *_findings(found),
        *method_fold(found),
        *score_fold(monitor, answers, prefix),
        *other_folds(monitor, prefix),
        *record_fold(prefix, records),
        *word_fold(found),
    )


def _findings(found: ModelFindings) -> tuple[Block, ...]:
    """Return what stands between the answers and the folds; nothing before the first label."""
    now, whole = found.answers.now, found.answers.whole
    if now is None or whole is None:
        return (*alarm_fold(found),)
    return (
        *labelled_text(found),
        *error_text(found),
        *class_section(found),
        *over_time_section(found),
        *alarm_text(found),
        *outside_notes(found),
        _periods(found, now, whole),
        *latest_section(found),
        *alarm_fold(found),
    )


def _periods(found: ModelFindings, now: Period, whole: Period) -> Block:
    """Return the numbers of now and of the whole stream, between which a reader chooses."""
    record = {name: found.record[name] for name in ("now", "whole")}
    latest = _period(found, now, "now")
    if now.labels == whole.labels:
        title = "Now is the whole stream"
        why = f"All {formats.count(now.labels)} labels after the warm-up."
        return SectionBlock(
            key=found.key("period"), title=title, why=why, blocks=latest, record=record
        )
    return ChoiceBlock(
        key=found.key("period"),
        words="Numbers below are of",
        options=(
            BlockGroup(name=f"now: latest {formats.count(now.labels)}", blocks=latest),
            BlockGroup(
                name=f"whole stream: {formats.count(whole.labels)}",
                blocks=_period(found, whole, "whole"),
            ),
        ),
        record=record,
    )


def _period(found: ModelFindings, period: Period, name: str) -> tuple[Block, ...]:
    if found.of_numbers:
        return interval_sections(found, period, name)
    return group_sections(found, period, name)


def _lead(answers: Answers | None) -> str:
    """Return what the three answers say, in a sentence or two; nothing if none is certain."""
    if answers is None:
        return ""
    said = [
        _LEADS[one.state][place] for place, one in enumerate(answers.answers) if one.state in _LEADS
    ]
    return " ".join(filter(None, said))


def _warm_up(answers: Answers | None) -> tuple[str, ...]:
    """Return how many predictions no number counts."""
    if answers is None or not answers.warm_up:
        return ()
    return (f"not counted: the first {formats.count(answers.warm_up)} predictions (warm-up)",)


def _untested(
    monitor: TaskMonitor, prefix: str, records: Sequence[tuple[str, str]]
) -> tuple[Block, ...]:
    """Return the blocks of a model without tests."""
    name, question = QUESTIONS["model"]
    card = AnswerBlock(
        key=f"{prefix}model",
        name=name,
        question=question,
        state="undecided",
        sentence="tests are off, so labels decide nothing; set monitoring.tests = true",
    )
    answers = AnswersBlock(key=f"{prefix}answers", cards=(card,))
    return (
        answers,
        *score_fold(monitor, None, prefix),
        *other_folds(monitor, prefix),
        *record_fold(prefix, records),
    )
