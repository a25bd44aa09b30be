"""Verdicts as sentences, and as JSON has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abers.monitoring import Estimate, LossDifference, TaskMonitor, Verdict, VerdictParts

__all__ = [
    "loss_record",
    "need_sentences",
    "parts_record",
    "verdict_record",
]


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
    """Return what calibration saved an event in nats as JSON has it; None without raw scores."""
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
