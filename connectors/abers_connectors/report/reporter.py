"""A report from before a run to after it.

Governing rule: whatever could hinder a report is known before the run begins, and its file stands
there whole or not at all; a pipe or a device is written to at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from abers.exceptions import ParameterError
from abers.monitoring.evidence import loudest
from abers_connectors.files.places import Stream, Whole, is_stream
from abers_connectors.report.content import Ended, reported
from abers_connectors.report.gathering import Gathered
from abers_connectors.report.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from abers.stream import Outputs
    from abers_connectors.records import Source
    from abers_connectors.report.content import Report
    from abers_connectors.running import Run
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

    def watch(self, running: Run) -> None:
        """Gather what passes from now on."""
        self._processor = processor = running.processor
        self._gathered = gathered = Gathered(processor.settings)
        self._watching = watching = Watching()
        watching.hold({0: processor})

        def take(outputs: Outputs) -> None:
            if outputs.judged is not None:
                tests = loudest([one.tests for one in processor.monitors])
                gathered.take(outputs.judged, tests, [alarm for _, alarm in outputs.alarms])
            watching.take(processor, outputs)

        running.onlookers.append(take)

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
        known = self._processor, summary, self._gathered, self._watching
        self._file.write(self._written(reported(Ended(title, delay, source, *known))))
        self._file.close()
