"""Estimate of the memory that a state takes, by the formula of docs/deploy.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream import make_task

if TYPE_CHECKING:
    from abers.stream import Processor

__all__ = ["state_bytes"]

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
    models, monitors = len(processor.keys), processor.monitors
    labels, finished = processor.held
    pending, early = processor.waiting
    classes = len(processor.settings.classes)
    model = _MODEL + _LABEL * labels / max(models, 1)
    each = sum(monitor.count for monitor in monitors) / max(models, 1)  # of all time
    for monitor in monitors[:1]:
        views = sum(len(process.views) for process in monitor.e_processes)
        model += (
            _MONITOR
            + min(_HISTORY * each, _LONGEST_HISTORY)
            + views * _VIEW
            + _ANSWERS * (views > 0)
        )
    task = make_task(processor.settings)
    mixed = task.mixed
    if mixed:
        fading = () if task.native() else _FADING
        model += _PROTECTED + _EXPERT * sum(min(each, most) for most in fading)
        model += (_CLASS + _LABEL * labels / max(models, 1)) * classes
    lane = mixed * (_CLASS_LANE * classes + _PENDING if classes else _LANE)
    waiting = pending * (_PENDING + _ID + lane) + (early + finished) * (_KNOWN + _ID)
    return round(models * model + waiting)
