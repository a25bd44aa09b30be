"""Monitors that run in a stream, by task.

This is their only list: one more line adds a monitor to the state, the terminal's table, the
report, the live page and the metrics.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from abers.monitoring.binary import BinaryMonitor
from abers.monitoring.coverage import CoverageMonitor
from abers.monitoring.multiclass import MultiClassMonitor
from abers.monitoring.protection import DistributionProtectionMonitor, ProtectionMonitor
from abers.monitoring.regression import RegressionMonitor
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.base import Monitor, TaskMonitor
    from abers.monitoring.measures import Measure

__all__ = ["MONITORS", "TASK_MONITORS", "measure", "task_monitor"]

TASK_MONITORS: dict[str, type[TaskMonitor]] = {
    "binary": BinaryMonitor,
    "multiclass": MultiClassMonitor,
    "regression": RegressionMonitor,
}
"""Scores of the predictions of each task."""

MONITORS: dict[str, list[type[Monitor]]] = {"binary": [], "multiclass": [], "regression": []}
"""Other monitors of each task, made without arguments; a new monitor is a line here."""


PROTECTION: dict[str, list[type[Monitor]]] = {
    "binary": [ProtectionMonitor],
    "multiclass": [ProtectionMonitor],
    "regression": [DistributionProtectionMonitor],
}
"""Other monitors of the protected predictions of each task."""


def task_monitor(
    task: str,
    state: Sequence[Any] | None = None,
    *,
    protected: bool = False,
    tracked: bool = False,
    **options: Any,  # noqa: ANN401 - those of the class
) -> TaskMonitor:
    """Return the monitor of a task, with all others that are registered for it.

    Parameters
    ----------
    task
        Name of the task.
    state
        What `TaskMonitor.state` returned; None for an empty monitor. Monitors that were registered
        since it was saved are empty.
    protected
        Whether a mixture of experts makes the predictions.
    tracked
        Whether predictions have tracked intervals.
    options
        Arguments of the empty monitor of the task.

    Raises
    ------
    ValueError
        If the state is not one of such a monitor.

    Examples
    --------
    >>> monitor = task_monitor("binary", raw=True)
    >>> [one.name for one in monitor.summary()]
    ['log_loss', 'brier', 'ece', 'log_loss', 'brier', 'ece', 'mean_width']
    """
    kind, others = TASK_MONITORS[task], [*MONITORS[task], *(PROTECTION[task] if protected else [])]
    others += [CoverageMonitor] if tracked else []
    monitor = kind(**options)
    monitor.others = [other() for other in others]
    if state is None:
        return monitor
    own = len(monitor.state()) - len(others)
    saved = state[own:]
    require(len(saved) in {0, len(others)}, "monitors")
    restored = kind.restore(state[:own])
    pairs = zip(others, saved, strict=True) if saved else ()
    restored.others = [other.restore(one) for other, one in pairs] or monitor.others
    return restored


def measure(name: str) -> Measure | None:
    """Return the definition of a number by its name; None of a name that no monitor has.

    Examples
    --------
    >>> measure("coverage_90").label, measure("brier").label, measure("brier_infinite")
    ('coverage of the 90 % interval', 'Brier score', None)
    """
    kind, _, value = name.rpartition("_")
    others = chain(*MONITORS.values(), *PROTECTION.values())
    monitors: list[type[Monitor]] = [*TASK_MONITORS.values(), *others, CoverageMonitor]
    for one in chain.from_iterable(monitor.measures for monitor in monitors):
        if one.name == name and "{}" not in one.label:
            return one
        if one.name == kind and "{}" in one.label:
            return one.at(value)
    return None
