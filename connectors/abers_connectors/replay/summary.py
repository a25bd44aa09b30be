"""The summary of a run, in numbers and sentences.

What a stream loses: one table of the kinds, each with its remedy. A kind is worth a sentence above
its share, which is that of its alert in deploy/rules.yml. The numbers are those of
`abers.stream.accounts`, or differences of them.

The monitors score every prediction once, as it was issued; the summary adds up their totals.
"""

from __future__ import annotations

import math
from collections import Counter
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from abers.monitoring import (
    ALARM_TEST,
    BinaryMonitor,
    event_time,
    experts,
    label_doubts,
    score_doubts,
)
from abers.stream import accounts
from abers.stream.option import LARGEST_TIME, SET, Phrase, Ref, said
from abers.stream.settings import setting_options
from abers_connectors.config.values import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.monitoring import (
        Estimate,
        Evidence,
        Expert,
        LossDifference,
        TaskMonitor,
        Verdict,
        VerdictParts,
    )
    from abers.stream import Processor, Settings
    from abers.stream.option import Front
    from abers_connectors.replay.run import BaseRun, WorkerNumbers
    from abers_connectors.sinks.alarm_record import AlarmRecord

__all__ = [
    "LOSSES",
    "NOT_DUE",
    "Loss",
    "Means",
    "Summary",
    "expert_numbers",
    "finite",
    "loss_record",
    "loss_sentences",
    "need_sentences",
    "parts_record",
    "summarize",
    "summarize_run",
    "total_monitor",
    "unlabelled_notes",
    "verdict_record",
]


def status_text(test: Evidence) -> str:
    """Return the status of a test: quiet, active, or when it was triggered.

    Examples
    --------
    >>> from abers.monitoring import EDetector
    >>> detector = EDetector("change", average_run_length=10, cooldown=1)
    >>> status_text(detector.evidence())
    'quiet'
    >>> _ = detector.update([20.0], [1_364_792_400_000])
    >>> status_text(detector.evidence())
    'active'
    >>> _ = detector.update([0.5], [1_364_792_500_000])
    >>> status_text(detector.evidence())
    'triggered on 2013-04-01 05:00:00 UTC'
    """
    if test.status != "triggered" or test.last is None:
        return test.status
    when = event_time(test.last.first)
    return f"triggered {'at' if when.startswith('event time') else 'on'} {when}"


def need_sentences(monitor: TaskMonitor) -> list[str]:
    """Return a sentence for each statement that needs more labels than came."""
    if len(monitor.e_processes) == 1:
        grace = monitor.e_processes[0].grace_period
        if (more := grace - monitor.count) > 0:
            return [f"Tests begin after {grace:,} labels: {more:,} more."]
    return [
        f"On the {subject}: {one.sentence[0].lower()}{one.sentence[1:]}"
        for subject, needs in monitor.label_needs.items()
        for one in needs
        if one.more
    ]


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON has it; what is not finite is None."""
    return {
        "subject": verdict.words.subject,
        "view": verdict.view,
        "status": verdict.status,
        "where": verdict.where,
        "sentence": verdict.sentence,
        "labels": verdict.labels,
        "came": _finite(verdict.came),
        "counted": verdict.counted,
        "observed": verdict.observed,
        "expected": verdict.expected,
        "ratio": _estimate(verdict.ratio),
        "difference": _estimate(verdict.difference),
        "tolerance": verdict.tolerance,
        "established": verdict.established,
        "since": verdict.since,
        "until": verdict.until,
        "confirmed": verdict.confirmed,
    }


def parts_record(parts: VerdictParts) -> dict[str, Any]:
    """Return verdicts on parts as JSON has them."""
    return {
        "subject": parts.subject,
        "view": parts.view,
        "parts": parts.parts,
        "sentence": parts.sentence,
        "trustworthy": parts.trustworthy,
        "outside": len(parts.outside),
        "verdicts": [{"part": one.words.part, **verdict_record(one)} for one in parts.verdicts],
    }


def loss_record(losses: LossDifference | None) -> dict[str, Any] | None:
    """Return what calibration saved a label in nats as JSON has it; None without raw scores."""
    if losses is None:
        return None
    return {
        "sentence": losses.sentence,
        "labels": losses.count,
        "saved": _estimate(losses.difference),
    }


def _estimate(one: Estimate) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in one._asdict().items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_SCORES = setting_options()["scores"]
_REMEDY = (
    *(
        "Are they probabilities? Then ",
        SET,
        Ref(_SCORES, "probability"),
        ". Are they logits? Then ",
    ),
    *(SET, Ref(_SCORES, "logit"), ". Are they per cent? Then "),
    Phrase("set input.percent = true", "divide them by 100", "add --scores percent"),
    ".",
)


def unlabelled_notes(records: int, unlabelled: int, waiting: int) -> Iterator[str]:
    """Yield sentences on records without labels so far, of so many records.

    So many labels wait for those of earlier records.

    Examples
    --------
    >>> [*unlabelled_notes(60, 10, 0)]
    ['10 rows have no label yet: they are predicted, but not scored.']
    >>> [*unlabelled_notes(60, 60, 0)]
    ['No row has a label: see that the label column is the right one.']
    """
    if unlabelled and unlabelled == records:
        yield "No row has a label: see that the label column is the right one."
    elif unlabelled == 1:
        yield "1 row has no label yet: it is predicted, but not scored."
    elif unlabelled:
        yield f"{unlabelled:,} rows have no label yet: they are predicted, but not scored."
    if unlabelled and waiting:
        yield (
            f"{waiting:,} labels count in no answer, as they wait for those of all earlier rows. "
            "Set limits.label_timeout to the longest time that a label takes."
        )


def column_notes(monitor: TaskMonitor, settings: Settings, front: Front) -> Iterator[str]:
    """Yield sentences on labels and scores that may not be what they seem.

    Scores that may be any numbers have no verdict, and a sentence says how they get one.
    """
    if isinstance(monitor, BinaryMonitor):
        yield from label_doubts(monitor.calibrated)
        yield from () if monitor.raw is None else score_doubts(monitor.raw)
    if monitor.count and settings.task != "regression" and not settings.has_raw_view:
        yield "The raw scores have no verdict, since they may be any numbers."
        yield said(_REMEDY, front)


LEAST = 1_000
"""The fewest records, events or predictions for which a share is shown."""
_ROUND = (
    86_400_000,
    3_600_000,
    60_000,
    1_000,
)  # in ms: a delay is shown in the largest unit that it has two of

_LABELS = ("labels",)
_ENDED = ("learned", "assumed", "expired", "evicted", "retired")
_CONSIDERED = ("learned", "late_labels")


class Loss(NamedTuple):
    """A kind of loss: `lost` of `whole`, both sums of named numbers, is too much above a share.

    In the sentence {lost}, {kept}, {whole} and {share} are numbers, {timeout} is
    `limits.label_timeout`, and {delay} says how late labels are, if that is known. Other names are
    those of settings.
    """

    name: str
    alert: str
    lost: tuple[str, ...]
    whole: tuple[str, ...]
    share: float
    sentence: str

    def tells(self, of: Mapping[str, int]) -> bool:
        """Return whether there is enough for a share to say something."""
        return _sum(of, self.whole) >= LEAST

    def text(
        self, of: Mapping[str, int], settings: Settings, delays: Sequence[int], front: Front
    ) -> str | None:
        """Return the sentence if more than the share is lost, for a front end; None if not."""
        lost, whole = _sum(of, self.lost), _sum(of, self.whole)
        if lost <= self.share * whole:
            return None
        return self.sentence.format(
            lost=f"{lost:,}",
            kept=f"{whole - lost:,}",
            whole=f"{whole:,}",
            share=f"{100 * lost / whole:.0f} %",
            timeout=duration(settings.label_timeout),
            delay=f"; the median delay of the others is {_rounded(delays)}" if delays else "",
            **{name: said((Ref(one),), front) for name, one in setting_options().items()},
        )


LOSSES = (
    Loss(
        "dead letters",
        "AbersDeadLetters",
        ("undecodable", "dead_letters"),
        ("records",),  # of topics: the summary of a run over files has its dead letters
        0.01,
        "{lost} of {whole} records cannot be used ({share}): see the dead letters for the reasons, "
        "and fix the writer or [input]",
    ),
    Loss(
        "late labels",
        "AbersLateLabels",
        ("late_labels",),
        _CONSIDERED,
        0.05,
        "{kept} of {whole} labels came within {timeout}{delay}: set {label_timeout} to more "
        "than the delay, or late labels are not learned",
    ),
    Loss(
        "expired predictions",
        "AbersExpiredPredictions",
        ("expired",),
        _ENDED,
        0.9,
        "{lost} of {whole} predictions had no label within {timeout} ({share}): if labels take "
        "longer, set {label_timeout}; if only one class is ever labelled, set "
        "{unlabelled}",
    ),
    Loss(
        "evicted predictions",
        "AbersEvictedPredictions",
        ("evicted",),
        _ENDED,
        0.01,
        "{lost} of {whole} predictions were dropped before their label ({share}), as too "
        "many waited: set {max_pending}, or {max_bytes}, to more than what waits within "
        "{timeout}",
    ),
    Loss(
        "duplicate observations",
        "AbersDuplicateObservations",
        ("duplicate_observations",),
        ("observations",),
        0.1,
        "{lost} of {whole} observations had an id that was there before, and were not predicted "
        "({share}): see that ids are unique, and that the writer sends each record once",
    ),
    Loss(
        "duplicate labels",
        "AbersDuplicateLabels",
        ("duplicate_labels",),
        _LABELS,
        0.1,
        "{lost} of {whole} labels had an id with a label already, and were not learned ({share}): "
        "see that ids are unique, and that the writer sends each record once",
    ),
    Loss(
        "evicted labels",
        "AbersEvictedLabels",
        ("evicted_labels",),
        _LABELS,
        0.01,
        "{lost} of {whole} labels were dropped before their observation came ({share}), as too "
        "many waited: set {max_early}, or {max_bytes}, to more",
    ),
    Loss(
        "labels without observation",
        "AbersLabelsWithoutObservation",
        ("unknown_labels",),
        _LABELS,
        0.2,
        "{lost} of {whole} labels met no observation within {timeout} ({share}): see that id and "
        "model of both agree, and that both have the same key",
    ),
    Loss(
        "retired predictions",
        "AbersRetiredPredictions",
        ("retired",),
        _ENDED,
        0.01,
        "{lost} of {whole} predictions were dropped with their models ({share}): set "
        "{max_models}, or {retire_after}, to more",
    ),
)
"""All kinds."""


def loss_sentences(
    of: Mapping[str, int], settings: Settings, delays: Sequence[int], front: Front
) -> Iterator[str]:
    """Yield the sentence of each kind that loses too much; of a run that met no label, only that.

    `of` are numbers of accounts, and `delays` those of late labels, in milliseconds. Options are
    named as in the front end.
    """
    if sentence := _unmatched(of):
        yield sentence
        return
    for one in LOSSES:
        if one.name == "expired predictions" and settings.label_timeout == LARGEST_TIME:
            continue  # they waited to the end of the input, and are counted
        if one.tells(of) and (sentence := one.text(of, settings, delays, front)):
            yield sentence


def _unmatched(of: Mapping[str, int]) -> str | None:
    """Return a sentence if there are observations and labels, and no label has an observation."""
    waiting, labels = _sum(of, ("waiting_labels",)), _sum(of, _LABELS)
    without = waiting + _sum(of, ("unknown_labels", "evicted_labels"))
    if not waiting or without != labels or not _sum(of, ("predictions",)):
        return None
    return (
        f"None of {labels:,} labels has the id and model of an observation: compare both in the "
        "inputs, and name their columns if others are meant"
    )


def _sum(of: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(of.get(name, 0) for name in names)


def _rounded(delays: Sequence[int]) -> str:
    """Write the median of delays, to a whole unit if there are two or more of it."""
    middle = int(median(delays))
    unit = next((one for one in _ROUND if abs(middle) >= 2 * one), 1)
    return duration(round(middle / unit) * unit)


Means: TypeAlias = dict[str, float | None]
"""Mean scores of one view of the forecasts; None where one is not finite."""


class Summary(msgspec.Struct, frozen=True):
    """Results of a run; observations, labels and counters count from the beginning of its state."""

    records: int
    dead_letters: dict[str, int]  # by reason
    observations: int  # predictions
    labels: int  # learned
    raw: Means | None  # None if the scores are not declared probabilities
    calibrated: Means | None
    mean_width: float | None
    events_per_second: float
    waiting: tuple[int, int]  # observations without labels, and labels without observations
    counters: dict[str, int]  # those that are not 0
    answers: dict[str, Any] | None = None  # the three, with what they are made of
    alarms: list[AlarmRecord] = []
    experts: dict[str, dict[str, float | None]] = {}  # weight and loss, of protected predictions
    alarm_status: dict[str, str] = {}  # by view, of the test that raises alarms
    verdicts: list[dict[str, Any]] = []  # on the raw scores and on what is served
    verdict_parts: list[dict[str, Any]] = []  # on each class, or each quantile
    calibration: dict[str, Any] | None = None  # what it saved or cost
    label_needs: list[str] = []  # how many labels allow which statement, where few came
    workers: Sequence[WorkerNumbers] = ()  # what each did, if there were several
    losses: Sequence[str] = ()  # of labels and predictions, a sentence each, with the remedy
    unlabelled: int = 0  # records without a label so far
    notes: Sequence[str] = ()  # on the labels and scores of the input, a sentence each


def summarize_run(run: BaseRun, events: int, seconds: float) -> Summary:
    """Return the summary of a run; see `summarize`."""
    summary = summarize(run.processors, run.records, run.dead, events, seconds)
    monitors = [monitor for one in run.processors for monitor in one.monitors]
    waiting = sum(test.labels_waiting for one in monitors for test in one.e_processes)
    return msgspec.structs.replace(
        summary,
        alarms=run.alarms,
        workers=run.workers,
        unlabelled=run.unlabelled if run.labelled else 0,
        notes=[*_label_notes(run, waiting), *summary.notes],
    )


NOT_DUE = "Some labels are not due yet: they wait for records of later times."


def _label_notes(run: BaseRun, waiting: int) -> Iterator[str]:
    if run.labelled:
        yield from unlabelled_notes(run.records, run.unlabelled, waiting)
    elif run.unlabelled:
        one = run.unlabelled == 1
        have = "record of labels has" if one else "records of labels have"
        yield f"{run.unlabelled:,} {have} no label yet, and {'is' if one else 'are'} left out."
    if run.labels_wait:
        yield NOT_DUE


def summarize(
    processors: Sequence[Processor],
    records: int,
    dead: Mapping[str, int],
    events: int,
    seconds: float,
) -> Summary:
    """Return the summary of processors with equal settings, over all models and segments.

    A run read some records, processed events, and wrote dead letters, by reason, in some seconds.
    """
    counters = Counter[str]()
    for processor in processors:
        counters.update(processor.counters)
    whole = total_monitor(processors)
    views = {} if whole is None else whole.views()
    width = math.nan if whole is None else whole.mean_width
    trusted = {} if whole is None else experts(whole.numbers_beside())
    unlabelled, unmatched = zip(*(processor.waiting for processor in processors), strict=True)
    return Summary(
        records=records,
        dead_letters=dict(Counter(dead).most_common()),
        observations=counters["predictions"],
        labels=counters["labels"] + counters["assumed"],
        raw=finite(views.get("raw")),
        calibrated=finite(views.get("calibrated")),
        mean_width=width if math.isfinite(width) else None,
        events_per_second=events / seconds if seconds > 0 else 0.0,
        waiting=(sum(unlabelled), sum(unmatched)),
        answers=_answers(whole),
        counters={name: count for name, count in counters.items() if count},
        experts=expert_numbers(trusted),
        alarm_status={
            one.view: status_text(one)
            for one in (() if whole is None else whole.tests)
            if one.name == ALARM_TEST
        },
        verdicts=[] if whole is None else [*map(verdict_record, whole.verdicts)],
        verdict_parts=[] if whole is None else [*map(parts_record, whole.verdict_parts)],
        calibration=None if whole is None else loss_record(whole.losses),
        notes=[]
        if whole is None
        else [*column_notes(whole, processors[0].settings, processors[0].front)],
        label_needs=[] if whole is None else need_sentences(whole),
        losses=[
            *loss_sentences(
                accounts.total(one.accounts for one in processors),
                processors[0].settings,
                [delay for one in processors for delay in one.late_delays],
                processors[0].front,
            )
        ],
    )


def _answers(whole: TaskMonitor | None) -> dict[str, Any] | None:
    found = None if whole is None else whole.answers()
    return None if found is None else found.record()


def total_monitor(processors: Sequence[Processor]) -> TaskMonitor | None:
    """Return the monitor of all models together; None without any.

    Sums depend on their order, in the last digit. That of several processors is by model.
    """
    found = [pair for one in processors for pair in zip(one.keys, one.monitors, strict=False)]
    if len(processors) > 1:
        found.sort(key=itemgetter(0))
    monitors = [monitor for _, monitor in found]
    return type(monitors[0]).total(monitors) if monitors else None


def expert_numbers(found: Mapping[str, Expert]) -> dict[str, dict[str, float | None]]:
    """Return experts as JSON has them: weight, and total log loss in nats."""
    return {name: one._asdict() for name, one in found.items()}


def finite(means: Mapping[str, float] | None) -> Means | None:
    """Return means with None for what is not finite; None without means."""
    if means is None:
        return None
    return {name: mean if math.isfinite(mean) else None for name, mean in means.items()}
