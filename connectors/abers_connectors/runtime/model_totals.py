"""Sums of the scores of settled predictions, by model.

Every table has a row per model. A batch is added by a few array operations, however many models it
has, so counting costs the loop next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from abers.monitoring import TrackedRows
    from abers.stream import Forecasts, ScoredRows

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int64]

__all__ = ["BINS", "PIT_BOUNDS", "WIDTH_BOUNDS", "ModelTotals", "TableKey"]

TableKey: TypeAlias = tuple[str, str]
"""Name of a table, and its view or level if there are several."""

BINS = 10
"""Number of bins of equal width, closed on the left, the last on both sides."""

WIDTH_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the buckets of interval widths."""

PIT_BOUNDS = tuple(edge / 10 for edge in range(1, 11))
"""Upper bounds of the buckets of the probability integral transform."""

_EDGES = np.array([edge / BINS for edge in range(1, BINS)])


@dataclass
class ModelTotals:
    """Sums over settled predictions.

    Examples
    --------
    >>> from abers.stream import Events, Label, Observation, Processor
    >>> processor, totals = Processor(), ModelTotals()
    >>> events = Events.of([Observation("a", 1, "m", score=0.5), Label("a", 2, "m", value=1)])
    >>> settled = processor.process_batch(events).settled_batch
    >>> totals.add({0: "m"}, settled.keys, settled.scored)
    >>> totals.rows, totals.tables["brier", "calibrated"].tolist()
    ({'m': 0}, [[0.25]])
    """

    rows: dict[str, int] = field(default_factory=dict)  # by model
    tables: dict[TableKey, Floats] = field(default_factory=dict)  # of shape (models, columns)

    def __copy__(self) -> ModelTotals:
        """Return an independent copy."""
        tables = {key: table.copy() for key, table in self.tables.items()}
        return ModelTotals(self.rows.copy(), tables)

    def add(self, models: Mapping[int, str], keys: Rows, scored: ScoredRows) -> None:
        """Add scored rows; `keys` has each row's calibrator, `models` the model of each of them."""
        if not len(keys):
            return
        rows = self._rows(models, keys)
        for key, n_columns, columns, weights in _additions(scored):
            cells = rows if columns is None else rows * n_columns + columns
            sums = np.bincount(cells, weights, len(self.rows) * n_columns)
            self._table(key, n_columns)[:] += sums.reshape(len(self.rows), n_columns)

    def drop(self, models: Iterable[str]) -> None:
        """Drop models; those without a row are ignored."""
        gone = {*models} & self.rows.keys()
        if not gone:
            return
        kept = {model: row for model, row in self.rows.items() if model not in gone}
        rows = [*kept.values()]
        size = len(self.rows)
        self.rows = {model: row for row, model in enumerate(kept)}
        # A table may lack its last rows, if nothing of those models was added to it.
        self.tables = {key: _lengthened(table, size)[rows] for key, table in self.tables.items()}

    def _rows(self, models: Mapping[int, str], keys: Rows) -> Rows:
        """Return the row of each prediction's model."""
        numbers, which = np.unique(keys, return_inverse=True)
        named = (models[number] for number in numbers.tolist())
        return np.array([self.rows.setdefault(model, len(self.rows)) for model in named])[which]

    def _table(self, key: TableKey, columns: int) -> Floats:
        """Return a table with a row for each model."""
        table = self.tables.get(key, np.zeros((0, columns)))
        if len(table) < len(self.rows):
            self.tables[key] = table = _lengthened(table, len(self.rows))
        return table


def _lengthened(table: Floats, rows: int) -> Floats:
    """Return a table with rows of zeros appended."""
    return np.pad(table, ((0, rows - len(table)), (0, 0)))


_Addition: TypeAlias = "tuple[TableKey, int, Rows | None, Floats | None]"


def _additions(scored: ScoredRows) -> Iterator[_Addition]:
    """Yield the additions: table, number of columns, column of each row, and amounts."""
    for view, forecasts in scored.forecasts.items():
        yield from _of_view(view, forecasts)
    if scored.widths is not None:
        yield (
            ("width", ""),
            len(WIDTH_BOUNDS) + 1,
            np.searchsorted(WIDTH_BOUNDS, scored.widths),
            None,
        )
        yield ("width_sum", ""), 1, None, scored.widths
    if scored.outside is not None:
        yield ("outside", ""), 1, None, scored.outside.astype(np.float64)
    if scored.pit is not None:
        yield from _of_pit(*scored.pit)
    for level, covered in scored.covered.items():
        named = f"{level:.9g}"
        yield ("outcomes", named), 1, None, None
        yield ("expected", named), 1, None, np.full(len(covered), level)
        yield ("covered", named), 1, None, covered.astype(np.float64)
    if scored.tracked is not None:
        yield from _of_tracked(scored.tracked)


def _of_view(view: str, forecasts: Forecasts) -> Iterator[_Addition]:
    bins = np.searchsorted(_EDGES, forecasts.probabilities, side="right")
    finite = np.isfinite(forecasts.losses)
    yield ("predictions", view), BINS, bins, None
    yield ("score", view), BINS, bins, forecasts.probabilities
    yield ("positives", view), BINS, bins, forecasts.true
    yield ("brier", view), 1, None, forecasts.squares
    yield ("log_loss", view), 1, None, np.where(finite, forecasts.losses, 0.0)
    yield ("infinite", view), 1, None, (~finite).astype(np.float64)


def _of_tracked(tracked: TrackedRows) -> Iterator[_Addition]:
    named = f"{tracked.level:.9g}"
    yield ("tracked_outcomes", named), 1, None, None
    yield ("tracked_expected", named), 1, None, np.full(len(tracked.covered), tracked.level)
    for name in ("covered", "widths", "whole", "empty", "scores"):
        column: Floats = getattr(tracked, name).astype(np.float64)
        yield (f"tracked_{name}", named), 1, None, np.where(np.isfinite(column), column, 0.0)
    yield ("tracked_unscored", named), 1, None, np.isinf(tracked.scores).astype(np.float64)


def _of_pit(below: Floats, at: Floats) -> Iterator[_Addition]:
    """Spread each value evenly between its ends instead of drawing a random one."""
    last = np.zeros(len(at))
    for bucket, edge in enumerate(PIT_BOUNDS):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(below < at, np.clip((edge - below) / (at - below), 0, 1), at <= edge)
        yield ("pit", ""), len(PIT_BOUNDS), np.full(len(at), bucket), share - last
        last = share
    yield ("pit_sum", ""), 1, None, (below + at) / 2
