"""Reporter: a report from before a run to after it.

Everything that could prevent the report is checked before the run, and its file is written whole or
not at all; a pipe or a device is written to at the end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

import msgspec

from abers_connectors.dashboard.observer import Observer
from abers_connectors.dashboard.report import FinishedReplay
from abers_connectors.files.formats import is_stream
from abers_connectors.replay.options import report_format
from abers_connectors.replay.parallel_run import ParallelRun
from abers_connectors.replay.run import Run
from abers_connectors.sinks.destination import OutputStream, WholeFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config.value_types import Lateness
    from abers_connectors.replay.options import Period
    from abers_connectors.replay.run import BaseRun
    from abers_connectors.replay.summary import Summary
    from abers_connectors.sources.base import Source

__all__ = ["Reporter"]


_EVENTS = 16_384  # that several workers process between two points of evidence over time


class Reporter:
    """Observer of a run that writes a report of it, in a `with` block.

    A page has the reference period beside the whole run.

    The suffix of the path makes it a page or JSON; another suffix is a ParameterError, and a page
    without plotly or Jinja2 a MissingExtraError.
    """

    def __init__(self, path: str, reference: Period | None = None) -> None:
        self._encode: Callable[[Mapping[str, FinishedReplay]], bytes] = _json
        if report_format(path) == "html":
            from abers_connectors.dashboard.report_page import (  # noqa: PLC0415 - imports the extra
                ReportPage,
            )

            self._encode = ReportPage().encode
        self.path, self._reference = path, reference
        self._file = OutputStream(path) if is_stream(path) else WholeFile(path)

    def __enter__(self) -> Self:
        """Return the reporter."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Discard a partial file after an error."""
        if error is not None:
            self._file.discard()

    def watch(self, running: BaseRun) -> None:
        """Observe what passes from now on; several workers have no reference period."""
        self._run, self._observer = running, Observer(self._reference)
        if isinstance(running, Run):
            running.observers.append(partial(self._observer.take, running.processor))
        if isinstance(running, ParallelRun):
            running.at_once = _EVENTS

    def finished(
        self, title: str, source: Source, summary: Summary, delay: Lateness | None
    ) -> FinishedReplay:
        """Return what is known of the run that was observed; see `FinishedReplay`."""
        processors = self._run.processors
        self._observer.hold(dict(enumerate(processors)))
        return FinishedReplay(title, delay, source, processors, summary, self._observer)

    def write(self, runs: Mapping[str, FinishedReplay]) -> None:
        """Write the report of a run, or of several by the names of their calibrators."""
        self._file.write(self._encode(runs))
        self._file.close()


def _json(runs: Mapping[str, FinishedReplay]) -> bytes:
    found = {name: run.numbers() for name, run in runs.items()}
    whole = next(iter(found.values())) if len(found) == 1 else {"calibrators": found}
    return msgspec.json.encode(whole)
