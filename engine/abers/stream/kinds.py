"""The kinds of tasks there are.

Governing rule: this is the only place that knows all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream.binary import Binary
from abers.stream.cross import Cross
from abers.stream.multiclass import MultiClass
from abers.stream.regression import Regression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers.stream.settings import Settings
    from abers.stream.tasks import Task

__all__ = ["task_of"]

_TASKS: Mapping[str, Callable[[Settings], Task]] = {
    "binary": Binary,
    "multiclass": MultiClass,
    "regression": Regression,
}


def task_of(settings: Settings) -> Task:
    """Make the task that settings name.

    Parameters
    ----------
    settings
        Those of a processor.

    Returns
    -------
    Task
        It.
    """
    return Cross(settings) if settings.calibrator == "cvap" else _TASKS[settings.task](settings)
