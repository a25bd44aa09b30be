"""Records as they are read: their cells, and the rows that are refused so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.cells import Cells, Refused
from abers.stream.column_types import objects
from abers.stream.fields import cells_at, missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.arrays import Integers
    from abers.stream.cells import BadRecordError, Mask, RawColumns
    from abers.stream.column_types import Column
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
    keep
        Whether no row is refused: its cells stay as they are, None where there is none.

    Attributes
    ----------
    all
        Every row.
    """

    def __init__(self, raw: RawColumns, numbers: Sequence[int], *, keep: bool) -> None:
        self.all = np.ones(len(numbers), bool)
        self._raw, self._numbers, self._keep = raw, numbers, keep
        self._known: dict[str, tuple[Cells, Mask]] = {}
        self._refused: dict[int, Refused] = {}

    def any_present(self, paths: Iterable[str]) -> Mask:
        """Return which rows have a value at one of some paths."""
        first, *rest = [self._at(path)[1] for path in paths] or [~self.all]
        for one in rest:
            first = first | one
        return first

    def required(self, path: str, reader: CellReader, rows: Mask | None = None) -> Column:
        """Return the values at a path, by default of all rows; refuse a row that has none."""
        wanted = self.all if rows is None else rows
        self.refuse(wanted & ~self._at(path)[1], lambda: missing(path))
        return self.optional(path, reader, wanted, None)

    def optional(
        self, path: str | None, reader: CellReader, rows: Mask, default: str | None
    ) -> Column:
        """Return the values at a path in some rows, a default where there is none, 0 in others."""
        if path is None:
            return self.filled(default, rows)
        return self.values(path, reader, rows & self._at(path)[1], rows, default)

    def values(
        self,
        path: str,
        reader: CellReader,
        wanted: Mask,
        rows: Mask,
        default: str | None = None,
    ) -> Column:
        """Return the values at a path in wanted rows, and a default in the rest of `rows`."""
        cells = self._at(path)[0].values
        whole = bool(wanted.all())
        found, refused = reader.many(cells if whole else cells[wanted])
        if refused and not self._keep:
            numbers = np.flatnonzero(wanted)
            for row, reason, detail in refused:
                at = int(numbers[row])
                self._refused.setdefault(at, Refused(at, reason, detail))
        return found if whole else self._spread(found, wanted, rows, default)

    def nan(self, path: str) -> Mask:
        """Return the rows whose cell at a path is NaN."""
        cells = self._at(path)[0].values
        if cells.dtype == np.float64:
            return np.isnan(cells)
        if cells.dtype != object:
            return ~self.all
        found = (isinstance(one, float) and math.isnan(one) for one in cells.tolist())
        return np.fromiter(found, bool, len(cells))

    def optional_or_none(self, path: str | None, reader: CellReader, rows: Mask) -> Column | None:
        """Return the values at a path in some rows; None if none has any."""
        if path is None or not (self._at(path)[1] & rows).any():
            return None
        return self.optional(path, reader, rows, None)

    def dicts(self, paths: Mapping[str, str], reader: CellReader, rows: Mask) -> Column | None:
        """Return the values at some paths by name, a dict a row; None if no row has any."""
        if not (self.any_present(paths.values()) & rows).any():
            return None
        columns = [self.optional(path, reader, rows, None).tolist() for path in paths.values()]
        present = np.array([self._at(path)[1] for path in paths.values()])
        found: list[Any] = [
            dict(zip(paths, row, strict=True)) for row in zip(*columns, strict=True)
        ]
        for row in np.flatnonzero(rows & ~present.all(axis=0)).tolist():
            there = present[:, row].tolist()
            one = found[row]
            found[row] = {name: one[name] for name, has in zip(paths, there, strict=True) if has}
            found[row] = found[row] or None
        return np.where(rows, objects(found), 0)

    def refuse_partial(
        self, paths: Sequence[str], rows: Mask, error: Callable[..., BadRecordError]
    ) -> None:
        """Refuse some rows with values at some of the paths only; the error takes the others."""
        if not paths:
            return
        present = np.array([self._at(path)[1] for path in paths])
        partial = present.any(axis=0) & ~present.all(axis=0) & rows
        for row in np.flatnonzero(partial).tolist():
            there = present[:, row].tolist()
            absent = [path for path, has in zip(paths, there, strict=True) if not has]
            self.refuse_one(row, error(*absent))

    def refuse(self, rows: Mask, error: Callable[[], BadRecordError]) -> None:
        """Refuse rows that are not refused yet, all with one error."""
        for row in np.flatnonzero(rows).tolist() if rows.any() else ():
            self.refuse_one(row, error())

    def refuse_one(self, row: int, error: BadRecordError) -> None:
        """Refuse a row if it is not refused yet."""
        if not self._keep:
            self._refused.setdefault(row, Refused(row, error.reason, error.detail))

    def refused(self) -> list[Refused]:
        """Return the rows that are refused, in order."""
        return [self._refused[row] for row in sorted(self._refused)]

    def good(self) -> Integers:
        """Return the rows that are not refused, in order."""
        rows = np.arange(len(self.all))
        return np.delete(rows, [*self._refused]) if self._refused else rows

    def filled(self, default: str | None, rows: Mask) -> Column:
        """Return a column of a default in some rows, and 0 in others."""
        return self._spread(_NOTHING, ~self.all, rows, default)

    def _at(self, path: str) -> tuple[Cells, Mask]:
        """Return the cells at a path, and the rows that have a value."""
        if path not in self._known:
            cells = cells_at(path, self._raw, self._numbers)
            present = cells.present()
            self._known[path] = cells, self.all if present is None else present
        return self._known[path]

    def _spread(self, found: Column, wanted: Mask, rows: Mask, default: str | None) -> Column:
        """Return a column with values in the wanted rows, and a default in the rest of `rows`."""
        lacking = rows & ~wanted
        whole = np.zeros(len(rows), object if lacking.any() else found.dtype)
        whole[wanted] = found
        if whole.dtype == object:
            whole[lacking] = default
        return whole
