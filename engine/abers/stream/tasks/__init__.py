"""Tasks: the kinds of prediction that a stream makes."""

from abers.stream.tasks.base import Task
from abers.stream.tasks.registry import TASKS, make_task

__all__ = ["TASKS", "Task", "make_task"]
