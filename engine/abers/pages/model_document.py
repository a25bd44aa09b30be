"""The document of a model: three answers, about now, and everything behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring.answers import formats
from abers.pages.alarm_blocks import alarm_fold, alarm_text, banners
from abers.pages.answer_cards import answer_cards
from abers.pages.blocks import (
    AnswerBlock,
    AnswersBlock,
    BlockGroup,
    ChoiceBlock,
    Document,
    SectionBlock,
)
from abers.pages.class_table import class_section
from abers.pages.error_block import error_text
from abers.pages.interval_tables import interval_sections, latest_section
from abers.pages.method_blocks import method_fold, outside_notes
from abers.pages.model_findings import QUESTIONS, ModelDetails, ModelFindings
from abers.pages.other_monitors import other_folds
from abers.pages.over_time import over_time_section
from abers.pages.period_groups import group_sections
from abers.pages.score_blocks import record_fold, score_fold
from abers.pages.word_blocks import word_fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import TaskMonitor
    from abers.monitoring.answers import Answers, Period
    from abers.pages.blocks import Block, Words

__all__ = ["model_blocks", "model_document"]

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
