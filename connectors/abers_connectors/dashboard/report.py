"""Report of a replay, in numbers, as its JSON has them; see docs/report.md.

None of them says when, how fast, or on what machine the report was made, so the same replay gives
the same report.

Reporter: a report from before a run to after it. Everything that could prevent the report is
checked before the run, and its file is written whole or not at all; a pipe or a device is written
to at the end.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import msgspec

from abers.monitoring import (
    BinaryMonitor,
    RegressionMonitor,
    consistency_bands,
    experts,
    recent_windows,
)
from abers.pages.blocks import record
from abers.pages.html import page
from abers_connectors.dashboard.live_document import ListedModel
from abers_connectors.dashboard.observer import Observer
from abers_connectors.dashboard.replay_document import comparison_document, replay_document
from abers_connectors.files import is_stream
from abers_connectors.replay.options import report_format
from abers_connectors.replay.run import Run
from abers_connectors.replay.summary import (
    expert_numbers,
    finite,
    loss_record,
    need_sentences,
    parts_record,
    total_monitor,
    verdict_record,
)
from abers_connectors.replay.workers import ParallelRun
from abers_connectors.sinks.destination import OutputStream, WholeFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Diagram, Evidence, TaskMonitor
    from abers.stream import Alarm
    from abers_connectors.dashboard.observer import JoinedHistory, Key, ModelStatus, ObservedModel
    from abers_connectors.dashboard.replay_document import FinishedReplay
    from abers_connectors.replay.options import Period
    from abers_connectors.replay.run import BaseRun

__all__ = ["NO_FINDINGS", "Reporter"]

NO_FINDINGS: dict[str, Any] = {
    "labels": 0,
    "answers": None,
    "raw": None,
    "calibrated": None,
    "mean_width": None,
    "over_time": [],
    "reliability": None,
    "diagrams": None,
    "verdicts": [],
    "verdict_parts": [],
    "calibration": None,
    "label_needs": [],
    "tests": [],
    "evidence": [],
    "alarms": [],
    "experts": {},
    "experts_over_time": [],
    "intervals": None,
    "pit": None,
    "outcomes": None,
}
"""Findings without any prediction: all keys, in their order."""

_SEVERAL = 2  # models
_FIRST = 100  # models of a report with figures and numbers of their own


def report_numbers(run: FinishedReplay) -> dict[str, Any]:
    """Return the report of a replay as its JSON has it."""
    some = total_monitor(run.processors) is not None
    whole = _findings(*run.observer.whole()[:2], run.zone) if some else NO_FINDINGS
    found = whole | {"labels": run.summary.labels} | run.facts()
    found["zone"] = run.zone
    found["blocks"] = record(replay_document(run, folds=0))
    models, statuses = _models(run)
    if models:
        monitors, rest = run.observer.monitors(), statuses[len(models) :]
        found["models"] = [
            _findings(one.monitor, one.history, run.zone) | {"model": model, "segment": segment}
            for (model, segment), one in models.items()
        ]
        found["models_left_out"] = len(rest)
        found["left_out"] = [
            msgspec.to_builtins(ListedModel.of(one)) | _scores(_total(monitors[one.key]))
            for one in rest
        ]
    return found


def _models(run: FinishedReplay) -> tuple[dict[Key, ObservedModel], list[ModelStatus]]:
    """Return the worst models, and the status of all; none if the only one is the whole."""
    if len(statuses := run.observer.models()) < _SEVERAL:
        return {}, []
    return {one.key: run.observer.observed(one.key) for one in statuses[:_FIRST]}, statuses


def _total(monitors: Sequence[TaskMonitor]) -> TaskMonitor:
    return type(monitors[0]).total(monitors)


def _findings(monitor: TaskMonitor, history: JoinedHistory, zone: str) -> dict[str, Any]:
    """Return the numbers of the predictions of a monitor and a history."""
    answers = monitor.answers(zone)
    found = {
        "labels": monitor.count,
        "answers": None if answers is None else answers.record(),
        **_scores(monitor),
        "mean_width": monitor.mean_width if math.isfinite(monitor.mean_width) else None,
        "over_time": [
            {
                "labels": window.end,
                "over": window.labels,
                "first": window.first,
                "last": window.last,
                **_scores(window.monitor),
                "mean_width": window.monitor.mean_width,
            }
            for window in recent_windows(history.windows)
        ],
        "verdicts": [*map(verdict_record, monitor.verdicts)],
        "verdict_parts": [*map(parts_record, monitor.verdict_parts)],
        "calibration": loss_record(monitor.losses),
        "label_needs": need_sentences(monitor),
        "tests": [_test(one) for one in monitor.tests],
        "experts": expert_numbers(experts(monitor.numbers_beside())),
        "experts_over_time": [
            {"labels": labels, "time": time, "experts": expert_numbers(found)}
            for labels, time, found in history.experts
        ],
        "evidence": [one._asdict() for one in history.evidence],
        "alarms": [{"labels": labels, **_alarm(one)} for labels, one in history.alarms],
    }
    return NO_FINDINGS | found | _of_task(monitor, history)


def _alarm(one: Alarm) -> dict[str, Any]:
    """Return an alarm; `since_labels` is the number of labels since the fault began."""
    names = ("view", "episode", "time", "log_wealth", "message")
    shift = ("fault", "since", "outcome", "promised", "came")
    found = {name: getattr(one, name) for name in (*names, *shift)}
    return found | {"since_labels": one.labels}


def _scores(monitor: TaskMonitor) -> dict[str, Any]:
    views = monitor.views()
    return {"raw": finite(views.get("raw")), "calibrated": finite(views["calibrated"])}


def _test(one: Evidence) -> dict[str, Any]:
    return {
        "view": one.view,
        "name": one.name,
        "log_wealth": one.log_wealth,
        "log_threshold": one.log_threshold,
        "active": one.active,
        "status": one.status,
        "incidents": one.incidents,
        "since": None if one.last is None else one.last.first,
        "guarantee": one.guarantee,
        "skipped": one.skipped,
    }


def _of_task(monitor: TaskMonitor, history: JoinedHistory) -> dict[str, Any]:
    """Return the findings that only one task has."""
    if isinstance(monitor, BinaryMonitor):
        views = monitor.scores()
        return {
            "reliability": {name: [one._asdict() for one in v.bins()] for name, v in views.items()},
            "diagrams": {
                name: _diagram(name, view.reliability.diagram()) for name, view in views.items()
            },
        }
    if isinstance(monitor, RegressionMonitor):
        pit = monitor.pit_histogram
        return {
            "intervals": [one._asdict() for one in monitor.intervals],
            "pit": None if pit is None else pit.tolist(),
            "outcomes": {
                "first": monitor.count - len(history.last) + 1,
                "levels": history.levels,
                "quantiles": history.last[:, 2:].tolist(),
                "scores": history.last[:, 1].tolist(),
                "labels": history.last[:, 0].tolist(),
            },
        }
    return {}


def _diagram(view: str, diagram: Diagram) -> dict[str, Any]:
    blocks = (diagram.lower, diagram.upper, diagram.probability, diagram.count)
    return {
        "blocks": _rows(("lower", "upper", "share", "labels"), blocks),
        "band": _rows(("forecast", "lower", "upper"), consistency_bands(view, diagram)),
        "brier": diagram.decomposition()._asdict(),
    }


def _rows(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> list[dict[str, float]]:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


_EVENTS = 16_384  # that several workers process between two points of evidence over time


class Reporter:
    """Observer of a run that writes a report of it, in a `with` block.

    A page has the scores of the reference period too. The suffix of the
    path makes it a page or JSON; another suffix is a ParameterError.
    """

    def __init__(self, path: str, reference: Period | None = None) -> None:
        self._encode = _page if report_format(path) == "html" else _json
        self.path, self._reference = path, reference
        self._file = OutputStream(path) if is_stream(path) else WholeFile(path)

    def __enter__(self) -> Self:
        """Return the reporter."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Discard a partial file after an error."""
        if error is not None:
            self._file.discard()

    def watch(self, running: BaseRun) -> None:
        """Observe what passes from now on; several workers have no reference period."""
        self.run, self._observer = running, Observer(self._reference)
        if isinstance(running, Run):
            running.observers.append(partial(self._observer.take, running.processor))
        if isinstance(running, ParallelRun):
            running.at_once = _EVENTS

    def observer(self) -> Observer:
        """Return the observer of the run, at its end."""
        self._observer.hold(dict(enumerate(self.run.processors)))
        return self._observer

    def write(self, runs: Mapping[str, FinishedReplay]) -> None:
        """Write the report of a run, or of several by the names of their calibrators."""
        self._file.write(self._encode(runs))
        self._file.close()


def _page(runs: Mapping[str, FinishedReplay]) -> bytes:
    if len(runs) > 1:
        return page(comparison_document(runs)).encode()
    (run,) = runs.values()
    return page(replay_document(run)).encode()


def _json(runs: Mapping[str, FinishedReplay]) -> bytes:
    found = {name: report_numbers(run) for name, run in runs.items()}
    whole = next(iter(found.values())) if len(found) == 1 else {"calibrators": found}
    return msgspec.json.encode(whole)
