"""Monitors that run in a stream, by task.

This is their only list: one more line adds a monitor to the state, the terminal's table, the
report, the live page and the metrics.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from abers.monitoring.coverage import BandCoverageMonitor, CoverageMonitor
from abers.monitoring.mixture_monitor import DistributionProtectionMonitor, ProtectionMonitor
from abers.monitoring.probability import BinaryMonitor, MultiClassMonitor
from abers.monitoring.regression import RegressionMonitor
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    states: Mapping[str, Sequence[Any]] | None = None,
    *,
    protected: bool = False,
    tracked: bool = False,
    banded: bool = False,
    **options: Any,  # noqa: ANN401 - those of the class
) -> TaskMonitor:
    """Return the monitor of a task, with all others that are registered for it.

    Parameters
    ----------
    task
        Name of the task.
    states
        What `Monitor.state` or `Monitor.totals` of each returned, by name. A monitor without a
        state begins empty.
    protected
        Whether a mixture of methods makes the predictions.
    tracked, banded
        Whether predictions have intervals of `calibrator.coverage`: those that a tracker moves, and
        those of a band.
    options
        Arguments of the empty monitor of the task.

    Raises
    ------
    ValueError
        If a state is not of a monitor of this kind, no monitor has its name, or two have one name.

    Examples
    --------
    >>> monitor = task_monitor("binary", raw=True)
    >>> [one.name for one in monitor.summary()]
    ['log_loss', 'brier', 'ece', 'log_loss', 'brier', 'ece', 'mean_width']
    """
    kind, others = TASK_MONITORS[task], [*MONITORS[task], *(PROTECTION[task] if protected else [])]
    others += [CoverageMonitor] * tracked + [BandCoverageMonitor] * banded
    known, names = states or {}, [kind.name, *(other.name for other in others)]
    require(len({*names}) == len(names), f"names of monitors, {', '.join(names)}, are not unique")
    require(known.keys() <= {*names}, f"names of monitors: {', '.join(known.keys() - {*names})}")
    monitor = kind.restore(known[kind.name]) if kind.name in known else kind(**options)
    monitor.others = [
        one.restore(known[one.name]) if one.name in known else one() for one in others
    ]
    return monitor


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
