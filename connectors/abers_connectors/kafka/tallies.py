"""What labels said of predictions, added up by model.

Governing rule: a row a model in every table, and a batch is added to all of them by a few calls
whatever number of models it has; so counting costs the loop next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream import Facts, Forecasts

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int64]

__all__ = ["BINS", "PIT", "WIDTHS", "Tallies", "Told"]

Told: TypeAlias = tuple[str, str]
"""What a table is of: its name, and the view or the level, if there are several."""

BINS = 10
"""Of equal width, closed on the left, the last one on both sides."""

WIDTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Up to which width of an interval each bucket goes."""

PIT = tuple(edge / 10 for edge in range(1, 11))
"""Up to which value of the probability integral transform each bucket goes."""

_EDGES = np.array([edge / BINS for edge in range(1, BINS)])


@dataclass
class Tallies:
    """Sums over predictions whose labels came.

    Attributes
    ----------
    rows
        Of each model.
    tables
        Sums, of shape (models, columns).

    Examples
    --------
    >>> from abers.stream import Events, Label, Observation, Processor
    >>> processor, tallies = Processor(), Tallies()
    >>> events = Events.of([Observation("a", 1, "m", score=0.5), Label("a", 2, "m", value=1)])
    >>> judged = processor.take(events).judged
    >>> tallies.add([model for model, _ in processor.keys], judged.keys, processor.facts(judged))
    >>> tallies.rows, tallies.tables["brier", "calibrated"].tolist()
    ({'m': 0}, [[0.25]])
    """

    rows: dict[str, int] = field(default_factory=dict)
    tables: dict[Told, Floats] = field(default_factory=dict)

    def copied(self) -> Tallies:
        """Give a copy, which stays as it is."""
        return Tallies(dict(self.rows), {told: table.copy() for told, table in self.tables.items()})

    def add(self, models: Sequence[str], keys: Rows, facts: Facts) -> None:
        """Add what became known.

        Parameters
        ----------
        models
            By number of the calibrator.
        keys
            Number of the calibrator of each row.
        facts
            Rows.
        """
        if not len(keys):
            return
        rows = self._rows(models, keys)
        for (name, what), columns, places, weights in _parts(facts):
            size = len(self.rows) * columns
            at = rows if places is None else rows * columns + places
            sums = np.bincount(at, weights, size).reshape(len(self.rows), columns)
            self._table((name, what), columns)[:] += sums

    def drop(self, models: Iterable[str]) -> None:
        """Forget some models, of which there need be no rows."""
        gone = {*models} & self.rows.keys()
        if not gone:
            return
        kept = {model: row for model, row in self.rows.items() if model not in gone}
        rows = [*kept.values()]
        size = len(self.rows)
        self.rows = {model: row for row, model in enumerate(kept)}
        # A table without its last rows is one to which nothing of those models was added.
        self.tables = {
            told: np.concatenate([table, np.zeros((size - len(table), table.shape[1]))])[rows]
            for told, table in self.tables.items()
        }

    def _rows(self, models: Sequence[str], keys: Rows) -> Rows:
        """Find the row of each prediction's model."""
        numbers, which = np.unique(keys, return_inverse=True)
        named = (models[number] for number in numbers.tolist())
        return np.array([self.rows.setdefault(model, len(self.rows)) for model in named])[which]

    def _table(self, told: Told, columns: int) -> Floats:
        """Give a table, with a row for each model."""
        table = self.tables.get(told, np.zeros((0, columns)))
        if len(table) < len(self.rows):
            more = np.zeros((len(self.rows) - len(table), columns))
            self.tables[told] = table = np.concatenate([table, more])
        return table


_Part: TypeAlias = "tuple[Told, int, Rows | None, Floats | None]"


def _parts(facts: Facts) -> Iterator[_Part]:
    """Give what is added to which table: its columns, the column of each row, and how much."""
    for view, forecasts in facts.forecasts.items():
        yield from _of_view(view, forecasts)
    if facts.widths is not None:
        yield ("width", ""), len(WIDTHS) + 1, np.searchsorted(WIDTHS, facts.widths), None
        yield ("width_sum", ""), 1, None, facts.widths
    if facts.pit is not None:
        yield from _of_pit(*facts.pit)
    for level, covered in facts.covered.items():
        named = f"{level:.9g}"
        yield ("outcomes", named), 1, None, None
        yield ("expected", named), 1, None, np.full(len(covered), level)
        yield ("covered", named), 1, None, covered.astype(np.float64)


def _of_view(view: str, forecasts: Forecasts) -> Iterator[_Part]:
    bins = np.searchsorted(_EDGES, forecasts.probabilities, side="right")
    finite = np.isfinite(forecasts.losses)
    yield ("predictions", view), BINS, bins, None
    yield ("score", view), BINS, bins, forecasts.probabilities
    yield ("positives", view), BINS, bins, forecasts.true
    yield ("brier", view), 1, None, forecasts.squares
    yield ("log_loss", view), 1, None, np.where(finite, forecasts.losses, 0.0)
    yield ("infinite", view), 1, None, (~finite).astype(np.float64)


def _of_pit(below: Floats, at: Floats) -> Iterator[_Part]:
    """Spread each value evenly between its ends, so that nothing is random."""
    last = np.zeros(len(at))
    for bucket, edge in enumerate(PIT):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(below < at, np.clip((edge - below) / (at - below), 0, 1), at <= edge)
        yield ("pit", ""), len(PIT), np.full(len(at), bucket), share - last
        last = share
    yield ("pit_sum", ""), 1, None, (below + at) / 2
