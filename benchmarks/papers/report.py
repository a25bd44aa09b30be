"""Tables "published | ours | difference", and what stands at the end of every evidence page.

A mean stands with its standard error and the number of repetitions; a difference
is ours minus the published number, and missing where either is infinite or missing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.page import folded, table
from benchmarks.papers.manifest import MANIFEST
from benchmarks.papers.runner import left

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.papers.runner import Answer, Left, Task

__all__ = [
    "NONE",
    "Mean",
    "beside",
    "data_sets",
    "difference",
    "ending",
    "foldings",
    "mean",
    "missing",
    "number",
]

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
    return f"### Data\n\n{table(head, rows)}"


def foldings(text: str) -> str:
    """Fold away each part of a page with a title of the third level, under that title."""
    first, *rest = re.split(r"^(#{2,3}) (.+)\n", text, flags=re.MULTILINE)
    parts = [first]
    for level, title, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        away = level == "###"
        parts.append(f"{folded(escape(title), body)}\n" if away else f"{level} {title}\n{body}")
    return "".join(parts)


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
    if len(answers) < len(tasks):
        parts.append(f"\n{missing(tasks, answers)}")
    return "\n".join(parts) + "\n"


def missing(tasks: Sequence[Task], answers: Mapping[str, Answer]) -> str:
    """Write what was not run, by the first two words of a task, with the hours that it takes."""
    found: dict[str, list[Left]] = {}
    for kind, rest in left(tasks, answers).items():
        found.setdefault(" ".join(kind.split("/")[1:3]), []).append(rest)
    counts = {name: sum(each.tasks for each in kinds) for name, kinds in found.items()}
    listed = ", ".join(f"{counts[name]:,} {name} ({_hours(found[name])})" for name in found)
    every = [each for kinds in found.values() for each in kinds]
    return (
        f"Not run: {sum(counts.values()):,} tasks, {_hours(every)} on one core of this machine, by"
        f" the fastest task of each kind: {listed}."
    )


def _hours(kinds: Sequence[Left]) -> str:
    hours = sum(each.tasks * each.seconds for each in kinds) / 3600
    return "unknown" if math.isnan(hours) else f"about {max(hours, 0.1):.1f} h"
