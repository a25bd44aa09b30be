"""Reporter: a report from before a run to after it.

Everything that could prevent the report is checked before the run, and its file is written whole or
not at all; a pipe or a device is written to at the end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

import msgspec

from abers.pages.html import page
from abers_connectors.dashboard.observer import Observer
from abers_connectors.dashboard.replay_document import comparison_document, replay_document
from abers_connectors.dashboard.report import report_numbers
from abers_connectors.files.formats import is_stream
from abers_connectors.replay.options import report_format
from abers_connectors.replay.parallel_run import ParallelRun
from abers_connectors.replay.run import Run
from abers_connectors.sinks.destination import OutputStream, WholeFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.dashboard.finished_replay import FinishedReplay
    from abers_connectors.replay.options import Period
    from abers_connectors.replay.run import BaseRun

__all__ = ["Reporter"]


_EVENTS = 16_384  # that several workers process between two points of evidence over time


class Reporter:
    """Observer of a run that writes a report of it, in a `with` block.

    A page has the scores of the reference period too. The suffix of the
    path makes it a page or JSON; another suffix is a ParameterError.
    """

    def __init__(self, path: str, reference: Period | None = None) -> None:
        self._encode = _page if report_format(path) == "html" else _json
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
        self.run, self._observer = running, Observer(self._reference)
        if isinstance(running, Run):
            running.observers.append(partial(self._observer.take, running.processor))
        if isinstance(running, ParallelRun):
            running.at_once = _EVENTS

    def observer(self) -> Observer:
        """Return the observer of the run, at its end."""
        self._observer.hold(dict(enumerate(self.run.processors)))
        return self._observer

    def write(self, runs: Mapping[str, FinishedReplay]) -> None:
        """Write the report of a run, or of several by the names of their calibrators."""
        self._file.write(self._encode(runs))
        self._file.close()


def _page(runs: Mapping[str, FinishedReplay]) -> bytes:
    if len(runs) > 1:
        return page(comparison_document(runs)).encode()
    (run,) = runs.values()
    return page(replay_document(run)).encode()


def _json(runs: Mapping[str, FinishedReplay]) -> bytes:
    found = {name: report_numbers(run) for name, run in runs.items()}
    whole = next(iter(found.values())) if len(found) == 1 else {"calibrators": found}
    return msgspec.json.encode(whole)
