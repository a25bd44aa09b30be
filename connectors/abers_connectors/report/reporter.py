"""A report from before a run to after it.

Governing rule: whatever could hinder a report is known before the run begins, and its file stands
there whole or not at all; a pipe or a device is written to at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from abers.exceptions import ParameterError
from abers_connectors.files.places import Stream, Whole, is_stream
from abers_connectors.report.content import Run, reported
from abers_connectors.report.gathering import Gathered

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from abers.stream import Processor
    from abers_connectors.records import Source
    from abers_connectors.report.content import Report
    from abers_connectors.summary import Summary

__all__ = ["Reporter", "require_name"]


def require_name(path: str) -> str:
    """Tell by its name what kind of file a report is to be.

    Parameters
    ----------
    path
        Of the file.

    Returns
    -------
    str
        "html" or "json".

    Raises
    ------
    ParameterError
        If it is neither.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".html", ".json"}:
        msg = f"--report {path}: name a file that ends in .html, for a page, or .json, for numbers"
        raise ParameterError(msg)
    return suffix[1:]


class Reporter:
    """Watches a run and writes a report of it; a context manager.

    Parameters
    ----------
    path
        Of the report, which its suffix makes a page or JSON.

    Raises
    ------
    ParameterError
        If the path is none for a report.
    MissingExtraError
        If it is to be a page and what draws it is not installed.
    """

    def __init__(self, path: str) -> None:
        self._written: Callable[[Report], bytes] = msgspec.json.encode
        if require_name(path) == "html":
            from abers_connectors.report.page import Page  # noqa: PLC0415 - imports the extra

            self._written = Page().written
        self.path = path
        self._file = Stream(path) if is_stream(path) else Whole(path)

    def __enter__(self) -> Self:
        """Use it in a `with` block, in which the report is written."""
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave nothing half written."""
        if error is not None:
            self._file.discard()

    def watch(self, processor: Processor) -> None:
        """Gather what passes from now on."""
        self._processor, self._gathered = processor, Gathered(processor.settings)
        processor.watch(self._gathered)

    def write(self, title: str, source: Source, summary: Summary, delay: int | None) -> None:
        """Write the report of the run that was watched.

        Parameters
        ----------
        title
            The words that named it.
        source
            What was read.
        summary
            What came of it.
        delay
            How many observations late the labels were, if that was the rule.
        """
        run = Run(title, delay, source, self._processor, summary, self._gathered)
        self._file.write(self._written(reported(run)))
        self._file.close()
