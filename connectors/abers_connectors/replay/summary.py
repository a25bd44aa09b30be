"""The summary of a run, in numbers.

The monitors score every prediction once, as it was issued; the summary adds up their totals.
"""

from __future__ import annotations

import math
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from abers.monitoring import ALARM_TEST, experts
from abers.stream import accounts
from abers_connectors.replay.evidence_text import status_text
from abers_connectors.replay.input_notes import column_notes, unlabelled_notes
from abers_connectors.replay.losses import loss_sentences
from abers_connectors.replay.verdict_text import (
    loss_record,
    need_sentences,
    parts_record,
    verdict_record,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.monitoring import Expert, TaskMonitor
    from abers.stream import Processor
    from abers_connectors.replay.run import BaseRun, WorkerNumbers
    from abers_connectors.sinks.alarm_record import AlarmRecord

__all__ = [
    "Means",
    "Summary",
    "expert_numbers",
    "finite",
    "summarize",
    "summarize_run",
    "total_monitor",
]


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
        unlabelled=run.unlabelled,
        notes=[*unlabelled_notes(run.records, run.unlabelled, waiting), *summary.notes],
    )


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
