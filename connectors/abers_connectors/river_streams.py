"""river's bundled streams as sources.

Governing rule: river is imported when a stream is asked for, never before,
because that takes most of a second.
"""

# ruff: noqa: PLC0415 - the imports inside functions are the rule above

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ParameterError
from abers.learners.river import require_river
from abers.stream import Observation
from abers_connectors._suggest import did_you_mean
from abers_connectors.records import Batch, Labelled, Origin, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from river.datasets.base import FileDataset

    from abers_connectors.records import Position

__all__ = ["BundledStream", "bundled_streams"]

_TASKS = {
    "Binary classification": "binary",
    "Multi-class classification": "multiclass",
    "Regression": "regression",
}
"""What river calls the tasks of streams."""
_LABELS: Mapping[str, Callable[[Any], Any]] = {
    "binary": int,
    "multiclass": str,
    "regression": float,
}
_BATCH = 100  # a learner takes milliseconds for them: a progress bar moves


def bundled_streams() -> dict[str, FileDataset]:
    """Find river's streams with one label that ship inside it.

    Returns
    -------
    dict
        The datasets by name.

    Raises
    ------
    MissingExtraError
        If river is not installed.

    Examples
    --------
    >>> sorted(bundled_streams())  # doctest: +ELLIPSIS
    ['AirlinePassengers', 'Bananas', 'ChickWeights', ..., 'TrumpApproval', 'WaterFlow']
    """
    require_river()
    from river import datasets
    from river.datasets import base

    def ships(kind: Any) -> bool:  # noqa: ANN401 - whatever the package exports
        file = inspect.isclass(kind) and issubclass(kind, base.FileDataset)
        return file and not issubclass(kind, base.RemoteDataset)

    exported = (getattr(datasets, name) for name in datasets.__all__)
    shipped = [kind() for kind in exported if ships(kind)]
    return {type(one).__name__: one for one in shipped if one.task in _TASKS}


class BundledStream:
    """One of river's bundled streams; ids and times are the numbers of the observations.

    A feature that is a moment becomes seconds since 1970, for learners take numbers.

    Parameters
    ----------
    name
        Its name in ``river.datasets``.

    Attributes
    ----------
    task
        "binary", "multiclass" or "regression".
    classes
        Of a multi-class stream, in alphabetical order.

    Raises
    ------
    ParameterError
        If there is no such stream.
    MissingExtraError
        If river is not installed.

    Examples
    --------
    >>> events = next(iter(BundledStream("Bananas").batches())).events
    >>> events.ids[0], int(events.awaited[0]), events.x[0]
    ('1', 0, {'1': 1.617466, '2': -0.919233})
    """

    def __init__(self, name: str) -> None:
        streams = bundled_streams()
        if name not in streams:
            msg = (
                f"{name}: no such stream; river's bundled streams are {', '.join(streams)}, "
                f"and a file ends in .csv, .jsonl, .ndjson or .parquet{did_you_mean(name, streams)}"
            )
            raise ParameterError(msg)
        self.name = name
        self._dataset = streams[name]
        self._done = 0
        self.task = _TASKS[self._dataset.task]
        several = self.task == "multiclass"
        self.classes = sorted({str(y) for _, y in self._dataset}) if several else []

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the observations with their labels, after a number of them."""
        self._done = position["records"] if position else 0
        rest, label = islice(self._dataset, self._done, None), _LABELS[self.task]
        while rows := list(islice(rest, _BATCH)):
            events = [
                Labelled(Observation(str(number), number, x=_numbers(x)), label(y))
                for number, (x, y) in enumerate(rows, start=self._done + 1)
            ]
            origin = partial(self._origin, self._done, events)
            self._done += len(events)
            yield Batch(gathered(events), (), {"records": self._done}, len(events), origin)

    def _origin(self, before: int, events: list[Labelled], row: int) -> Origin:
        features = msgspec.json.encode(events[row].observation.x).decode()
        return Origin(f"{self.name} observation {before + row + 1}", features)

    def fraction(self) -> float:
        """Give the share of the observations that has been read."""
        total: int = self._dataset.n_samples
        return self._done / total


def _numbers(x: dict[Any, Any]) -> dict[Any, Any]:
    return {name: _seconds(one) if isinstance(one, datetime) else one for name, one in x.items()}


def _seconds(moment: datetime) -> float:
    # Without a zone a moment would be one of the machine's.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
