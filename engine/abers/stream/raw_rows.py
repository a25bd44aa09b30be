"""Rows of raw columns that become events: their values by path, and the rows that are refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.cells import (
    ALL,
    BadRecordError,
    RefusedCell,
    any_of,
    both,
    cells_at,
    either,
    mask_of,
    missing,
    numbers_of,
    objects,
    others,
    repeated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.arrays import Integers
    from abers.stream.cells import Cells, Column, Mask, RawColumns, Rows
    from abers.stream.readers import CellReader

__all__ = ["RawRows"]

_NOTHING = objects([])


class RawRows:
    """Records that become events.

    Parameters
    ----------
    raw
        Their columns.
    numbers
        Number of each record.

    Attributes
    ----------
    size
        Number of the records.
    """

    def __init__(self, raw: RawColumns, numbers: Sequence[int]) -> None:
        self.size = len(numbers)
        self._raw, self._numbers = raw, numbers
        self._known: dict[str, tuple[Cells, Rows]] = {}
        self._refused: dict[int, RefusedCell] = {}

    def any_present(self, paths: Iterable[str]) -> Rows:
        """Return which rows have a value at one of some paths."""
        found: Rows = False
        for path in paths:
            found = either(found, self._at(path)[1])
        return found

    def required(self, path: str, reader: CellReader, rows: Rows = ALL) -> Column:
        """Return the values at a path, by default of all rows; refuse a row that has none."""
        self.refuse(both(rows, others(self._at(path)[1])), lambda: missing(path))
        return self.optional(path, reader, rows, None)

    def optional(
        self, path: str | None, reader: CellReader, rows: Rows, default: str | None
    ) -> Column:
        """Return the values at a path in some rows, a default where it is missing, 0 in others."""
        if path is None:
            return self.filled(default, rows)
        return self.values(path, reader, both(rows, self._at(path)[1]), rows, default)

    def values(
        self,
        path: str,
        reader: CellReader,
        wanted: Rows,
        rows: Rows,
        default: str | None = None,
    ) -> Column:
        """Return the values at a path in wanted rows, and a default in the rest of `rows`."""
        if not any_of(wanted):
            return self.filled(default, rows)
        cells, _, kind = self._at(path)[0]
        whole = wanted is ALL or not any_of(others(wanted))
        found, refused = reader.many(cells if whole else cells[wanted], kind)
        if refused:
            numbers = numbers_of(wanted, self.size)
            for one in refused:
                at = int(numbers[one.row])
                self._refused.setdefault(at, one._replace(row=at))
        return found if whole else self._spread(found, wanted, rows, default)

    def has(self, path: str, row: int) -> bool:
        """Return whether a row has a value at a path."""
        present = self._at(path)[1]
        return present if isinstance(present, bool) else bool(present[row])

    def cell(self, path: str, row: int) -> Any:  # noqa: ANN401 - as it came
        """Return the cell of a row at a path."""
        return self._at(path)[0].values[row]

    def nan(self, path: str) -> Rows:
        """Return the rows with a cell at a path that is NaN."""
        cells = self._at(path)[0]
        values = cells.values
        if values.dtype == np.float64:
            return np.isnan(values)
        if values.dtype != object or cells.kind not in {None, float}:
            return False
        found = (isinstance(one, float) and math.isnan(one) for one in values.tolist())
        return np.fromiter(found, bool, self.size)

    def optional_or_none(self, path: str | None, reader: CellReader, rows: Rows) -> Column | None:
        """Return the values at a path in some rows; None without any."""
        if path is None or not any_of(both(self._at(path)[1], rows)):
            return None
        return self.optional(path, reader, rows, None)

    def dicts(self, paths: Mapping[str, str], reader: CellReader, rows: Rows) -> Column | None:
        """Return the values at some paths by name, a dict a row; None if no row has any."""
        if not any_of(both(self.any_present(paths.values()), rows)):
            return None
        columns = [self.optional(path, reader, rows, None).tolist() for path in paths.values()]
        found: list[Any] = [
            dict(zip(paths, row, strict=True)) for row in zip(*columns, strict=True)
        ]
        present = self._present(paths.values())
        for row in np.flatnonzero(~present.all(axis=0) & rows).tolist():
            there = present[:, row].tolist()
            one = found[row]
            found[row] = {name: one[name] for name, has in zip(paths, there, strict=True) if has}
            found[row] = found[row] or None
        return objects(found) if rows is ALL else np.where(rows, objects(found), 0)

    def refuse_partial(
        self, paths: Sequence[str], rows: Rows, error: Callable[..., BadRecordError]
    ) -> None:
        """Refuse some rows with values at some of the paths only; the error takes the others."""
        if all(self._at(path)[1] is ALL for path in paths):
            return
        present = self._present(paths)
        partial = present.any(axis=0) & ~present.all(axis=0) & rows
        for row in np.flatnonzero(partial).tolist():
            there = present[:, row].tolist()
            absent = [path for path, has in zip(paths, there, strict=True) if not has]
            self.refuse_one(row, error(*absent))

    def refuse(self, rows: Rows, error: Callable[[], BadRecordError]) -> None:
        """Refuse rows that are not refused yet, all with one error."""
        for row in numbers_of(rows, self.size).tolist() if any_of(rows) else ():
            self.refuse_one(row, error())

    def refuse_one(self, row: int, error: BadRecordError) -> None:
        """Refuse a row if it is not refused yet."""
        self._refused.setdefault(row, RefusedCell(row, error.reason, error.text))

    def refused(self) -> list[RefusedCell]:
        """Return the rows that are refused, in order."""
        return [self._refused[row] for row in sorted(self._refused)]

    def good(self) -> Integers:
        """Return the rows that are not refused, in order."""
        rows = np.arange(self.size)
        return np.delete(rows, [*self._refused]) if self._refused else rows

    def filled(self, default: str | None, rows: Rows) -> Column:
        """Return a column of a default in some rows, and 0 in others."""
        if rows is ALL:
            return repeated(default, self.size)
        return self._spread(_NOTHING, np.zeros(self.size, bool), rows, default)

    def _present(self, paths: Iterable[str]) -> Mask:
        """Return which rows have a value, one mask a path."""
        return np.array([mask_of(self._at(path)[1], self.size) for path in paths])

    def _at(self, path: str) -> tuple[Cells, Rows]:
        """Return the cells at a path, and the rows that have a value."""
        if path not in self._known:
            cells = cells_at(path, self._raw, self._numbers)
            present = cells.present()
            self._known[path] = cells, ALL if present is None else present
        return self._known[path]

    def _spread(self, found: Column, wanted: Rows, rows: Rows, default: str | None) -> Column:
        """Return a column with values in the wanted rows, and a default in the rest of `rows`."""
        lacking = both(rows, others(wanted))
        whole = np.zeros(self.size, object if any_of(lacking) else found.dtype)
        whole[wanted] = found
        if whole.dtype == object:
            whole[lacking] = default
        return whole
