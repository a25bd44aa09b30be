"""A replay at its end: all that its document and its numbers are made of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import abers
from abers.stream.settings import CALIBRATORS
from abers_connectors.dashboard.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.processor import Processor
    from abers_connectors.config.value_types import Lateness
    from abers_connectors.replay.summary import Summary

__all__ = ["FinishedReplay", "observed"]


class FinishedReplay(NamedTuple):
    """All that is known of a replay at its end; files are named without their directories."""

    title: str  # command-line arguments that named the stream
    delay: Lateness | None  # of the labels; None if a configuration sets it
    inputs: str  # names of what was read
    zone: str  # IANA zone of the times of the input
    processors: Sequence[Processor]
    summary: Summary
    observer: Observer  # of the processors

    @property
    def stream(self) -> str:
        """Name of the stream."""
        return Path(self.title).name

    def facts(self) -> dict[str, Any]:
        """Return what was replayed."""
        settings, summary = self.processors[0].settings, self.summary
        counters = Counter[str]()
        for one in self.processors:
            counters.update(one.counters)
        return {
            "abers": abers.__version__,
            "stream": self.stream,
            "inputs": " and ".join(Path(name).name for name in self.inputs.split(" and ")),
            "task": settings.task,
            "calibrator": settings.calibrator or CALIBRATORS[settings.task][0],
            "delay": None if self.delay is None else str(self.delay),
            "settings": msgspec.to_builtins(settings),
            "records": summary.records,
            "dead_letters": summary.dead_letters,
            "observations": summary.observations,
            "waiting": summary.waiting,
            "losses": summary.losses,
            "unlabelled": summary.unlabelled,
            "notes": summary.notes,
            "counters": dict(counters),
        }


def observed(processors: Sequence[Processor]) -> Observer:
    """Return an observer of processors at the end of a replay."""
    observer = Observer()
    observer.hold(dict(enumerate(processors)))
    return observer
