"""Answers and alarms at the top of a model's page: cards with lines over time, and banners."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from abers.monitoring import ALARM_TEST, Shift, formats
from abers.monitoring.answers import saved_range
from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    Column,
    FoldBlock,
    Mark,
    Picture,
    Span,
    TableBlock,
    TableRow,
    TextBlock,
)
from abers.pages.model_findings import QUESTIONS, tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import Evidence
    from abers.monitoring.answers import Answer, Answers, Row, Saved
    from abers.pages.blocks import Block
    from abers.pages.figures.data import SparkData
    from abers.pages.model_findings import ModelFindings, RaisedAlarm, Silence

__all__ = [
    "alarm_fold",
    "alarm_sentence",
    "alarm_text",
    "answer_cards",
    "banners",
    "error_line",
    "gap_line",
    "labelled_text",
    "moments",
    "saved_line",
    "small_gap_line",
]


def moments(answers: Answers) -> list[float]:
    """Return the latest event time up to each point over time."""
    return [float(one) for one in accumulate((one.until for one in answers.over_time), max)]


def gap_line(found: ModelFindings, view: str, row: Row) -> Picture:
    """Return the gap of a group over time, with its dates below."""
    caption = f"{found.came} − promised over time; green: tolerance"
    data = _gaps(found.answers, found.details.alarms, view, row)
    return Picture("spark", data, _label(view, row), caption=caption)


def small_gap_line(
    answers: Answers, alarms: Sequence[tuple[int, RaisedAlarm]], view: str, row: Row
) -> Picture:
    """Return the gap of a group over time, for a cell."""
    return Picture("spark", _gaps(answers, alarms, view, row), _label(view, row))


def _label(view: str, row: Row) -> str:
    return f"Gap of {view} over time, group {row.name}"


def _gaps(
    answers: Answers, alarms: Sequence[tuple[int, RaisedAlarm]], view: str, row: Row
) -> SparkData:
    points = [one.groups.get(row.key) for one in answers.over_time]
    gaps = [
        None if one is None else 100.0 * (one.came[view] - one.promised[view]) for one in points
    ]
    ends = (row.tolerance_low, row.tolerance_high)
    return {
        "which": "raw" if view == "raw" else "calibrated",
        "x": moments(answers),
        "y": gaps,
        "tolerance": None if ends[0] is None or ends[1] is None else (ends[0], ends[1]),
        "alarms": [float(one.time) for _, one in alarms if one.view == view],
        "now": _now(answers),
        "missing": 0,
    }


def error_line(found: ModelFindings) -> Picture:
    """Return the mean absolute error of the model's number over time."""
    data: SparkData = {
        "which": "raw",
        "x": moments(found.answers),
        "y": [one.losses.get("raw") for one in found.answers.over_time],
        "tolerance": None,
        "alarms": [],
        "now": _now(found.answers),
        "missing": 0,
    }
    label = "Mean absolute error of the model over time"
    return Picture("spark", data, label, caption="mean absolute error over time; line: 0")


def saved_line(found: ModelFindings) -> Picture:
    """Return how much lower losses are over time, in per cent; of numbers, errors."""
    saved, served = [], "median" if found.of_numbers else "calibrated"
    for point in found.answers.over_time:
        raw, calibrated = (point.losses.get(view) for view in ("raw", served))
        known = raw is not None and calibrated is not None and raw > 0.0
        saved.append(100.0 * (1.0 - calibrated / raw) if known else None)  # type: ignore[operator]
    data: SparkData = {
        "which": "calibrated",
        "x": moments(found.answers),
        "y": saved,
        "tolerance": None,
        "alarms": [],
        "now": _now(found.answers),
        "missing": 0,
    }
    label = f"{'Error' if found.of_numbers else 'Log loss'} saved over time, in per cent"
    caption = "per cent saved over time; line: 0"
    return Picture("spark", data, label, caption=caption)


def _now(answers: Answers) -> float | None:
    now, whole = answers.now, answers.whole
    if now is None or whole is None or now.labels == whole.labels:
        return None
    return float(now.start)


_AMONG_LABELLED = (
    "With label_rates these numbers are about observations with labels: each probability is turned "
    "into that of an observation with a label. The predictions are about all observations."
)
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


def labelled_text(found: ModelFindings) -> tuple[TextBlock, ...]:
    """Return that the numbers are about observations with labels, where predictions are not."""
    if not found.details.among_labelled:
        return ()
    return (TextBlock(key=found.key("among-labelled"), words=_AMONG_LABELLED),)


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


_TESTS = {
    "since-start": "any gap since the start",
    "change": "any gap lately",
    "since-start-tolerance": "gap beyond tolerance since the start",
    "change-tolerance": "gap beyond tolerance lately (alarm)",
    "pit": "PIT values that are not even since the start",
}
_SHOWN = 5  # alarms, the latest
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_NOTE = (
    "Evidence of 100 to 1: a bet against the probabilities turned 1 into 100. Only “beyond "
    "tolerance, lately” raises alarms. A test that is on stays on until the fault is over. Tests "
    "are about every single probability, answers about averages, so both may differ."
)


def banners(found: ModelFindings) -> tuple[AlarmBlock, ...]:
    """Return what comes first: no labels, an alarm that is active, a fault that is over."""
    blocks = []
    if found.details.silence is not None:
        blocks.append(_silence(found, found.details.silence))
    for alarm in _active(found):
        head, words = alarm_sentence(found, alarm)
        key = found.key(f"alarm-active-{alarm.view}")
        blocks.append(AlarmBlock(key=key, head=head, words=words, active=True))
    return (*blocks, *_recovering(found))


def _active(found: ModelFindings) -> list[RaisedAlarm]:
    """Return the last alarm of each incident that is open, if its fault is still seen."""
    began = {
        _view(found, one.question): one.since
        for one in found.answers.answers
        if one.since is not None and one.state != "recovering"
    }
    latest = {alarm.view: alarm for _, alarm in found.details.alarms}
    return [one for one in latest.values() if _is_of(one, began.get(one.view))]


def _is_of(alarm: RaisedAlarm, began: int | None) -> bool:
    """Return whether an alarm is of an incident with a fault that began then."""
    return began is not None and alarm.since is not None and alarm.since >= began


def _recovered(found: ModelFindings) -> list[Answer]:
    return [one for one in found.answers.answers if one.state == "recovering"]


def _view(found: ModelFindings, question: str) -> str:
    """Return the view that a question is about."""
    return "raw" if question == "model" else found.served


def _recovering(found: ModelFindings) -> list[AlarmBlock]:
    """Return that faults are not seen any more."""
    return [
        AlarmBlock(
            key=found.key(f"recovering-{one.question}"),
            head="Recovering.",
            words=f"{one.sentence} It is called over when both halves are right.",
            state="yes",
            active=True,
        )
        for one in _recovered(found)
    ]


def _silence(found: ModelFindings, silence: Silence) -> AlarmBlock:
    oldest = ""
    if silence.oldest is not None:
        oldest = f"; the oldest since {formats.moment(silence.oldest, found.zone)}"
    verb = "prediction waits" if silence.waiting == 1 else "predictions wait"
    return AlarmBlock(
        key=found.key("silence"),
        head=f"No label for {_lasting(silence.milliseconds)}.",
        words=f"{formats.count(silence.waiting)} {verb}{oldest}. "
        f"Answers are as of {formats.moment(silence.since, found.zone)}.",
        state="partly",
        active=True,
        record=silence._asdict(),
    )


def _lasting(milliseconds: int) -> str:
    """Return a time in its two largest units.

    Examples
    --------
    >>> [_lasting(one).replace(formats.NO_BREAK, " ") for one in (19_200_000, 7_200_000, 500)]
    ['5 h 20 min', '2 h', '0 s']
    """
    counts = []
    for size, unit in _UNITS:
        count, milliseconds = divmod(milliseconds, size)
        counts.append((count, unit))
    first = next((place for place, (count, _) in enumerate(counts) if count), len(counts) - 1)
    shown = [one for one in counts[first : first + 2] if one[0]] or counts[-1:]
    return formats.NO_BREAK.join(f"{count}{formats.NO_BREAK}{unit}" for count, unit in shown)


def alarm_sentence(found: ModelFindings, alarm: RaisedAlarm) -> tuple[str, str]:
    """Return when an alarm was raised and of what, and the labels since the fault began."""
    fault = alarm.fault or "off"
    verb = "are" if found.of_numbers else "is"
    view = "served intervals" if found.of_numbers else alarm.view
    head = f"{formats.moment(alarm.time, found.zone)}: {view} {verb} {fault}."
    if alarm.since is None or alarm.promised is None or alarm.came is None:
        return head, ""
    shift = Shift(alarm.since, alarm.labels, alarm.outcome, alarm.came, alarm.promised, 0.0)
    return head, shift.sentence(found.came, found.zone)


def alarm_text(found: ModelFindings) -> tuple[AlarmBlock, ...]:
    """Return the last alarm as a text has it, if it is not the first thing that is said."""
    if not found.details.alarms:
        return ()
    _, last = found.details.alarms[-1]
    if last in _active(found):
        return ()
    head, words = alarm_sentence(found, last)
    many = len(found.details.alarms)
    before = f"{formats.count(many)} alarms, the last on" if many > 1 else "Alarm,"
    key = found.key("alarm-text")
    return (AlarmBlock(key=key, head=f"{before} {head}", words=words, place="text"),)


def alarm_fold(found: ModelFindings) -> tuple[FoldBlock, ...]:
    """Return the last alarms, and all tests; nothing before a test can say anything."""
    tests = found.monitor.tests
    if not tests or (found.answers.now is None and not found.details.alarms):
        return ()
    shown = [_alarm(found, place, one) for place, (_, one) in enumerate(found.details.alarms)]
    blocks: list[Block] = [*reversed(shown[-_SHOWN:])]
    return (
        FoldBlock(
            key=found.key("alarms"),
            title="Alarms and tests",
            summary=f"{_summary(found)} A test bets against the probabilities; winning is "
            "evidence.",
            blocks=(*blocks, _tests(found, tests)),
            record={"alarms": [_alarm_record(labels, one) for labels, one in found.details.alarms]},
        ),
    )


def _summary(found: ModelFindings) -> str:
    many = len(found.details.alarms)
    if not many:
        return "No alarm."
    _, last = found.details.alarms[-1]
    noun = "alarm" if many == 1 else "alarms, the last"
    return f"{many} {noun} for {last.view}, on {formats.day(last.time, found.zone)}."


def _alarm(found: ModelFindings, place: int, alarm: RaisedAlarm) -> AlarmBlock:
    head, words = alarm_sentence(found, alarm)
    test = next(one for one in found.monitor.tests if one.name == ALARM_TEST)
    return AlarmBlock(
        key=found.key(f"alarm-{place + 1}"),
        head=head,
        words=words,
        small=test.guarantee,
        detail="more",
    )


def _alarm_record(labels: int, alarm: RaisedAlarm) -> dict[str, object]:
    names = ("view", "time", "fault", "since", "labels", "outcome", "promised", "came")
    return {"after_labels": labels} | {name: getattr(alarm, name) for name in names}


def _tests(found: ModelFindings, tests: tuple[Evidence, ...]) -> TableBlock:
    return TableBlock(
        key=found.key("tests"),
        caption="Tests of raw and calibrated probabilities",
        columns=(
            Column(head="test", align="left"),
            Column(head="evidence now"),
            Column(head="alarm line", room="much"),
            Column(head="state", align="left"),
        ),
        rows=tuple(
            TableRow(
                (
                    (Span(one.view, tone(one.view)), f": {_test_name(one.name)}"),
                    formats.to_one(one.log_wealth),
                    formats.to_one(one.log_threshold),
                    _state(found, one),
                )
            )
            for one in tests
        ),
        note=_NOTE,
        detail="more",
        record={"tests": [_test_record(one) for one in tests]},
    )


def _test_name(name: str) -> str:
    """Return what a test is against.

    Examples
    --------
    >>> _test_name("change"), _test_name("coverage-0.9-tolerance").replace(formats.NO_BREAK, " ")
    ('any gap lately', '90 % intervals too narrow beyond tolerance since the start')
    """
    if not name.startswith("coverage-"):
        return _TESTS.get(name, name)
    level, _, beyond = name.removeprefix("coverage-").partition("-")
    fault = "too narrow beyond tolerance" if beyond else "too narrow"
    return f"{100.0 * float(level):.9g}{formats.NO_BREAK}% intervals {fault} since the start"


def _test_record(one: Evidence) -> dict[str, object]:
    last = None if one.last is None else one.last._asdict()
    return one._asdict() | {"last": last}


def _state(found: ModelFindings, one: Evidence) -> Mark:
    """Return whether a test is on, and since when."""
    if one.last is None:
        return Mark("yes", "quiet", keep=True)
    if one.active:
        return Mark("no", "on", f"since {formats.day(one.last.first, found.zone)}", keep=True)
    return Mark("partly", "was on", f"until {formats.day(one.last.last, found.zone)}", keep=True)
