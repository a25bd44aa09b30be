"""The data sets that river includes, as sources.

Importing river takes most of a second, so it happens only when a data set is opened.
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
from abers.learners.river_adapters import require_river
from abers.stream.cells import ROW, Cells, Fields
from abers.stream.columns import Schema
from abers.stream.schema_columns import Readers
from abers.suggestions import did_you_mean
from abers_connectors.sources.base import Origin, batch_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from river.datasets.base import FileDataset

    from abers_connectors.sources.base import Batch, Position

__all__ = ["RiverDataset", "river_datasets"]

_TASKS = {
    "Binary classification": "binary",
    "Multi-class classification": "multiclass",
    "Regression": "regression",
}
"""river's names of the tasks."""
_FIELDS = Fields(id=ROW, time=ROW, x="x", label="y")
_BATCH_ROWS = 100  # a learner scores them in milliseconds, so that a progress bar moves


def river_datasets() -> dict[str, FileDataset]:
    """Return, by name, the data sets with one label that river includes.

    >>> sorted(river_datasets())  # doctest: +ELLIPSIS
    ['AirlinePassengers', 'Bananas', 'ChickWeights', ..., 'TrumpApproval', 'WaterFlow']
    """
    require_river()
    from river import datasets
    from river.datasets import base

    def ships(kind: Any) -> bool:  # noqa: ANN401 - anything the package exports
        file = inspect.isclass(kind) and issubclass(kind, base.FileDataset)
        return file and not issubclass(kind, base.RemoteDataset)

    exported = (getattr(datasets, name) for name in datasets.__all__)
    shipped = [kind() for kind in exported if ships(kind)]
    return {type(one).__name__: one for one in shipped if one.task in _TASKS}


class RiverDataset:
    """A data set of ``river.datasets``, with labels; ids and times number the observations.

    A feature that is a date becomes seconds since 1970, as learners take numbers. An unknown name
    is a ParameterError. `task` is "binary", "multiclass" or "regression", and `classes` are those
    of a multi-class data set, in alphabetical order.

    >>> events = next(iter(RiverDataset("Bananas").batches())).events
    >>> events.ids[0], int(events.awaited[0]), events.x[0]
    ('1', 0, {'1': 1.617466, '2': -0.919233})
    """

    def __init__(self, name: str) -> None:
        known = river_datasets()
        if name not in known:
            msg = (
                f"{name}: no such data set; river includes {', '.join(known)}; "
                f"a file ends in .csv, .tsv, .jsonl, .ndjson or .parquet{did_you_mean(name, known)}"
            )
            raise ParameterError(msg)
        self.name = name
        self._dataset = known[name]
        self._done = 0
        self.task = _TASKS[self._dataset.task]
        several = self.task == "multiclass"
        self.classes = sorted({str(y) for _, y in self._dataset}) if several else []
        self._schema = Schema(_FIELDS, self._readers(), "labelled")

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the labelled observations after a position, a number of them to skip."""
        self._done = position["records"] if position else 0
        rest = islice(self._dataset, self._done, None)
        while rows := list(islice(rest, _BATCH_ROWS)):
            before = self._done
            self._done += len(rows)
            x, y = [_numbers(features) for features, _ in rows], [label for _, label in rows]
            raw = {"x": Cells.of(x), "y": Cells.of(y)}
            reading = self._schema.read(raw, range(before + 1, self._done + 1))
            origin, position = partial(self._origin, before, x), {"records": self._done}
            yield batch_of(reading, range(len(rows)), {}, origin, position)

    def _readers(self) -> Readers:
        if self.task == "regression":
            return Readers.regression()
        return Readers.multiclass(self.classes) if self.classes else Readers.binary()

    def _origin(self, before: int, x: Sequence[dict[Any, Any]], row: int) -> Origin:
        features = msgspec.json.encode(x[row]).decode()
        return Origin(f"{self.name} observation {before + row + 1}", features)

    def fraction(self) -> float:
        """Return the share of the observations that has been read."""
        total: int = self._dataset.n_samples
        return self._done / total


def _numbers(x: dict[Any, Any]) -> dict[Any, Any]:
    return {name: _seconds(one) if isinstance(one, datetime) else one for name, one in x.items()}


def _seconds(moment: datetime) -> float:
    # Without a time zone Python would take that of the machine.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
