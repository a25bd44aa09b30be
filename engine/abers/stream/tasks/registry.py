"""The tasks by name: the only list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers import registry
from abers.stream.setting_rules import unable
from abers.stream.settings import require_none
from abers.stream.tasks.binary import BinaryTask, CrossTask
from abers.stream.tasks.multiclass import MultiClassTask
from abers.stream.tasks.regression import RegressionTask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task

__all__ = ["TASKS", "make_task"]

TASKS: Mapping[str, type[Task]] = {
    "binary": BinaryTask,
    "cross": CrossTask,
    "multiclass": MultiClassTask,
    "regression": RegressionTask,
}
"""By name of the task; "cross" is binary, by a calibrator of a score of each fold."""


def make_task(settings: Settings) -> Task:
    """Return the task that settings name.

    Parameters
    ----------
    settings
        Settings of a processor.

    Returns
    -------
    Task
        The task, with these settings.

    Raises
    ------
    ParameterError
        If the calibrator is for another task or for other scores, or does not forget so.

    Examples
    --------
    >>> from abers.stream import Settings
    >>> make_task(Settings(task="regression")).score_width
    1
    """
    task, name = settings.task, settings.calibrator_name
    able = registry.capabilities(name, task)
    require_none(unable(settings.values(), name, able))
    return TASKS["cross" if able.score == "folds" else task](settings)
