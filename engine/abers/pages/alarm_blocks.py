"""Alarms, tests, and what a page says before all else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import ALARM_TEST, Shift
from abers.monitoring.answers import formats
from abers.pages.blocks import (
    AlarmBlock,
    Column,
    FoldBlock,
    Mark,
    Span,
    TableBlock,
    TableRow,
)
from abers.pages.model_findings import tone

if TYPE_CHECKING:
    from abers.monitoring import Evidence
    from abers.monitoring.answers import Answer
    from abers.pages.blocks import Block
    from abers.pages.model_findings import ModelFindings, RaisedAlarm, Silence

__all__ = ["alarm_fold", "alarm_sentence", "alarm_text", "banners"]

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
