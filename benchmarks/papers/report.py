"""Tables "published | ours | difference", and what stands at the end of every evidence page.

A mean stands with its standard error and the number of repetitions; a difference
is ours minus the published number, and missing where either is infinite or missing.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.page import table
from benchmarks.papers.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.papers.runner import Answer, Task

__all__ = ["NONE", "Mean", "beside", "data_sets", "difference", "ending", "mean", "number"]

NONE = "-"  # not run, or not published


class Mean(NamedTuple):
    """A mean over repetitions, its standard error, and how many of them were infinite."""

    value: float
    error: float
    infinite: int
    repetitions: int

    def shown(self, digits: int = 3) -> str:
        """Write it, with the error of a mean of more than one repetition."""
        if not self.repetitions:
            return NONE
        if self.infinite:
            return f"∞ ({self.infinite} of {self.repetitions})"
        error = f" ± {self.error:.{digits}f}" if self.repetitions > 1 else ""
        return f"{self.value:.{digits}f}{error}"


def mean(values: Sequence[float | None]) -> Mean:
    """Take the mean of repetitions; None stands for an infinite one."""
    finite = np.array([value for value in values if value is not None])
    infinite = len(values) - len(finite)
    if infinite or not len(values):
        return Mean(math.inf if infinite else math.nan, math.nan, infinite, len(values))
    error = float(finite.std(ddof=1) / math.sqrt(len(finite))) if len(finite) > 1 else math.nan
    return Mean(float(finite.mean()), error, 0, len(finite))


def number(value: float, digits: int = 3) -> str:
    """Write a published number."""
    return "∞" if math.isinf(value) else NONE if math.isnan(value) else f"{value:.{digits}f}"


def difference(published: float, ours: Mean, digits: int = 3) -> str:
    """Write ours minus the published number."""
    gap = ours.value - published
    return f"{gap:+.{digits}f}" if math.isfinite(gap) else NONE


def beside(published: float, ours: Iterable[Mean], digits: int = 3) -> list[str]:
    """Write a published number, and each of ours with its difference."""
    cells = [number(published, digits)]
    for each in ours:
        cells += [each.shown(digits), difference(published, each, digits)]
    return cells


def data_sets(sets: Mapping[str, str]) -> str:
    """List the data used."""
    rows = [
        [name, wanted.file, wanted.rows, wanted.features, wanted.source, wanted.licence]
        for name, wanted in ((name, MANIFEST[file]) for name, file in sets.items())
    ]
    head = ["data", "file", "rows", "features", "source", "licence"]
    return f"## Data\n\n{table(head, rows)}"


def ending(name: str, tasks: Sequence[Task], answers: Mapping[str, Answer]) -> str:
    """Write what was run and with what, and what was not run."""
    seconds = sum(answer.seconds for answer in answers.values())
    used = Counter(
        ", ".join(f"{k} {v}" for k, v in answer.environment.items()) for answer in answers.values()
    )
    done = (
        f"{len(answers)} of {len(tasks)} tasks, {seconds / 60:.0f} minutes of one core that had"
        f" other work too. [Every answer](answers/{name}.jsonl) is kept, with its specification and"
        " its seeds; the command computes what is missing there."
    )
    lines = [f"- {words} ({count} tasks)" for words, count in used.items()]
    parts = [f"## What was run\n\n{done}\n", *lines]
    rest = Counter(task.name.rpartition("/")[0] for task in tasks if task.name not in answers)
    if rest:
        missing = ", ".join(f"{name} ({count})" for name, count in _joined(rest).items())
        parts.append(f"\nNot run, by source and model, with the number of tasks: {missing}.")
    return "\n".join(parts) + "\n"


def _joined(rest: Counter[str]) -> Counter[str]:
    """Count by the first two parts of a name after the paper."""
    found: Counter[str] = Counter()
    for name, count in rest.items():
        found[" ".join(name.split("/")[1:3])] += count
    return found
