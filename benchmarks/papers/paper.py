"""A paper for the command line: data sets, tasks, and a page of results.

A page is a function of the answers that are there, so it can be written any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.papers.runner import Answer, Task

__all__ = ["Page", "Paper"]


class Page(NamedTuple):
    """A page, and its figures by their file names."""

    markdown: str
    figures: Mapping[str, str]


class Paper(NamedTuple):
    """A paper: its name, the file of each data set by the paper's name of it, tasks, and page."""

    name: str
    sets: Mapping[str, str]
    tasks: Callable[..., list[Task]]
    page: Callable[[Mapping[str, Answer]], Page]
