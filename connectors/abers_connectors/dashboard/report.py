"""Report of a replay, in numbers, as its JSON has them; see docs/report.md.

None of them says when, how fast, or on what machine the report was made, so the same replay gives
the same report.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from abers.monitoring import (
    BinaryMonitor,
    RegressionMonitor,
    consistency_bands,
    experts,
    recent_windows,
)
from abers.pages.blocks import record
from abers_connectors.dashboard.model_list import ListedModel
from abers_connectors.dashboard.replay_document import replay_document
from abers_connectors.replay.summary import expert_numbers, finite, total_monitor
from abers_connectors.replay.verdict_text import (
    loss_record,
    need_sentences,
    parts_record,
    verdict_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Diagram, Evidence, TaskMonitor
    from abers.stream import Alarm
    from abers_connectors.dashboard.finished_replay import FinishedReplay
    from abers_connectors.dashboard.model_history import JoinedHistory
    from abers_connectors.dashboard.models import Key, ModelStatus
    from abers_connectors.dashboard.observer import ObservedModel

__all__ = ["NO_FINDINGS", "report_numbers"]

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
