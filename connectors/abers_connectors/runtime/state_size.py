"""Estimate of the memory that a state takes, by the formula of docs/deploy.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream import make_task
from abers.stream.processor_view import ModelHoldings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream import Processor, Settings

__all__ = ["model_bytes", "state_bytes"]

_ID = 36  # bytes of an id, as a UUID has
_MODEL, _MONITOR = 3_000, 3_500  # its calibrator, and its monitor
_ANSWERS, _VIEW = 3_500, 7_000  # sums behind its answers, and the tests of a view
_HISTORY, _LONGEST_HISTORY = 20, 52_000  # a label, and at most
_LABEL = 30  # in a calibrator
_PROTECTED, _EXPERT = 7_500, 85  # a model, and a label in an expert with a half-life
_FADING = (9_000, 90_000)  # labels of these experts at most, which only distributions have
_CLASS, _CLASS_LANE = 10_000, 190  # each of several classes: in a model, and in its lanes
_PENDING, _LANE, _KNOWN = 200, 490, 110  # an observation, its lane, an early label or finished id


def state_bytes(processor: Processor) -> int:
    """Estimate the bytes of memory that a processor takes, as if all models had as many labels.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor, Settings
    >>> processor = Processor(Settings(tests=False))
    >>> _ = processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> state_bytes(processor) == 3_000 + 3_500 + 20 + 30 + 110 + 36
    True
    """
    pending, early = processor.waiting
    labels, finished = processor.held
    whole = ModelHoldings(range(len(processor.keys)), labels, pending, early + finished)
    return _bytes(processor.settings, whole, processor.monitors)


def model_bytes(processor: Processor, held: ModelHoldings) -> int:
    """Estimate the bytes of memory that a model takes in a processor, as `state_bytes` does."""
    monitors = processor.monitors
    return _bytes(processor.settings, held, [monitors[key] for key in held.keys if monitors])


def _bytes(settings: Settings, held: ModelHoldings, monitors: Sequence[TaskMonitor]) -> int:
    models, classes = len(held.keys), len(settings.classes)
    model = _MODEL + _LABEL * held.labels / max(models, 1)
    each = sum(monitor.count for monitor in monitors) / max(models, 1)  # of all time
    for monitor in monitors[:1]:
        views = sum(len(process.views) for process in monitor.e_processes)
        model += (
            _MONITOR
            + min(_HISTORY * each, _LONGEST_HISTORY)
            + views * _VIEW
            + _ANSWERS * (views > 0)
        )
    task = make_task(settings)
    mixed = task.mixed
    if mixed:
        fading = () if task.native() else _FADING
        model += _PROTECTED + _EXPERT * sum(min(each, most) for most in fading)
        model += (_CLASS + _LABEL * held.labels / max(models, 1)) * classes
    lane = mixed * (_CLASS_LANE * classes + _PENDING if classes else _LANE)
    waiting = held.pending * (_PENDING + _ID + lane) + held.known * (_KNOWN + _ID)
    return round(models * model + waiting)
