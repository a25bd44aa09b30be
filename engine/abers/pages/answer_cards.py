"""The three answers of a model, as cards with their numbers and lines over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from abers.monitoring.answers import formats, saved_range
from abers.pages.blocks import AnswerBlock, AnswersBlock
from abers.pages.model_findings import QUESTIONS
from abers.pages.spark_lines import error_line, gap_line, saved_line

if TYPE_CHECKING:
    from abers.monitoring.answers import Answer, Row, Saved
    from abers.pages.model_findings import ModelFindings

__all__ = ["answer_cards"]

_SURE = "Ranges: 95 % for this window, however often you look."


def answer_cards(found: ModelFindings) -> AnswersBlock:
    """Return the three answers, each with its number, its range, and its line over time."""
    cards = [_card(found, answer) for answer in found.answers.answers]
    if found.details.silence is not None:
        as_of = formats.moment(found.details.silence.since, found.zone)
        cards = [_silent(card, as_of) for card in cards]
    now, progress = found.answers.now, None
    if now is None:
        first = found.answers.answers[0]
        progress = (min(first.labels, first.of), first.of)
    return AnswersBlock(
        key=found.key("answers"),
        cards=tuple(cards),
        note=f"{found.latest()} {_SURE}" if now else "",
        progress=progress,
        record={name: found.record[name] for name in ("wrong_by", "warm_up")},
    )


def _card(found: ModelFindings, answer: Answer) -> AnswerBlock:
    """Return the card of an answer."""
    name, question = QUESTIONS[answer.question]
    records = found.record["answers"]
    card = AnswerBlock(
        key=found.key(answer.question),
        name=name,
        question=question,
        state=answer.state,  # type: ignore[arg-type] # one of these
        sentence=answer.sentence[:1].lower() + answer.sentence[1:].removesuffix("."),
        then=_then(found, answer),
        record=next(one for one in records if one["question"] == answer.question),
    )
    if answer.question == "pays":
        return _of_saving(found, answer, card)
    if found.of_numbers and answer.question == "model":
        return _of_number(found, card)
    return _of_view(found, answer, card)


def _of_number(found: ModelFindings, card: AnswerBlock) -> AnswerBlock:
    """Return the card of a model that says a single number."""
    now = found.answers.now
    if now is None:
        return card
    card = replace(card, word="No promise")
    if now.errors is None or now.errors.model is None:
        return card
    unit = found.details.outcomes.unit.strip() if found.details.outcomes else ""
    return replace(
        card,
        sentence="a single number promises nothing that labels could contradict",
        number=formats.significant(now.errors.model),
        unit=f"{unit} mean absolute error".strip(),
        range=f"in {formats.count(now.labels)} labels",
        spark=error_line(found),
    )


def _of_view(found: ModelFindings, answer: Answer, card: AnswerBlock) -> AnswerBlock:
    """Return the card of an answer about a view, with its row."""
    now = found.answers.now
    view = found.served if answer.question == "calibrated" else "raw"
    if now is None or view not in now.views or answer.number is None:
        return card
    rows = now.views[view].rows
    row = next(one for one in rows if answer.group in {one.name, None})  # the first is of all
    return replace(card, **_row_words(found, answer, row), spark=gap_line(found, view, row))


def _row_words(found: ModelFindings, answer: Answer, row: Row) -> dict[str, Any]:
    """Return sentence, number and range of an answer about a row."""
    low, high, gap = row.low or 0.0, row.high or 0.0, row.gap or 0.0
    places = formats.decimals(low, high)
    labels = formats.count(row.labels)
    counted = labels if row.labels == answer.of else f"{labels} of {formats.count(answer.of)}"
    signed = f"range {formats.span((low, high), places, signs=True)}, in {counted} labels"
    if answer.state in {"no", "partly"}:
        ends = (-high, -low) if gap < 0.0 else (low, high)
        shares = [formats.per_cent(one or 0.0, places) for one in (row.promised, row.came)]
        return {
            "group": _group(found, row),
            "sentence": f"promised {shares[0]}, {found.came} {shares[1]}",
            "number": formats.number(abs(gap), places),
            "unit": f"points {found.faults[gap > 0.0]}",
            "range": f"range {formats.span(ends, places)}, in {counted} labels",
        }
    if answer.state == "yes":
        return {"number": formats.signed(gap, places), "unit": "points", "range": signed}
    return {"range": signed} if answer.state == "undecided" else {}


def _group(found: ModelFindings, row: Row) -> str:
    """Return what a card calls a row; nothing if it is all of two classes."""
    subject = "intervals of" if found.of_numbers else "first choice" if found.several else ""
    name = "" if row.key == "all" else row.name
    group = f"{subject} {name}".strip()
    return group[:1].upper() + group[1:]


def _of_saving(found: ModelFindings, answer: Answer, card: AnswerBlock) -> AnswerBlock:
    """Return the card of what calibration saved."""
    whole = found.answers.whole
    if found.of_numbers and whole is not None:
        return replace(card, spark=saved_line(found))
    losses = None if whole is None else whole.losses
    if losses is None or answer.number is None:
        return card
    return replace(card, **_saved_words(answer, losses), spark=saved_line(found))


def _saved_words(answer: Answer, losses: Saved) -> dict[str, Any]:
    calibrated, raw = (formats.loss(one or 0.0) for one in (losses.calibrated, losses.raw))
    saved = answer.number or 0.0
    sure = saved_range(answer.state, losses)
    return {
        "sentence": f"log loss {calibrated} instead of {raw}",
        "number": f"{formats.number(abs(saved), 1)}{formats.NO_BREAK}%",
        "unit": "lower" if saved >= 0.0 else "higher",
        "range": f"{sure}, over {formats.count(answer.labels)} labels",
    }


def _then(found: ModelFindings, answer: Answer) -> str:
    """Return what else a reader should know: since when, the whole stream, and alarms."""
    said = [] if answer.since is None else [f"Since {formats.day(answer.since, found.zone)}."]
    said += [answer.then] if answer.then else []
    view = "raw" if answer.question == "model" else found.served
    days = [
        formats.day(alarm.time, found.zone)
        for _, alarm in found.details.alarms
        if alarm.view == view and answer.question != "pays"
    ]
    if days:
        many = f"{formats.count(len(days))} alarms, the last" if len(days) > 1 else "Alarm"
        said.append(f"{many} on {days[-1]}.")
    return " ".join(said)


def _silent(card: AnswerBlock, as_of: str) -> AnswerBlock:
    """Return a card that is old: its state is no longer known, and its word is."""
    if card.state == "waiting":
        return card
    word, sentence = card.word or card.state.capitalize(), f"as of {as_of}: {card.sentence}"
    return replace(card, state="waiting", word=word, sentence=sentence, group="")
