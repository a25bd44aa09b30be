"""Outputs by columns; one becomes an object only on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec
import numpy as np

from abers.stream.column_types import column, repeated

if TYPE_CHECKING:
    from abers.stream.column_types import Column

__all__ = ["ObjectRows", "Rows"]

T = TypeVar("T", bound=msgspec.Struct)


class Rows(Sequence[T], Generic[T]):
    """Outputs of one type.

    Parameters
    ----------
    kind
        Type of the outputs.
    columns
        Columns by name of the field, in the order of the fields. The last fields may be left out:
        they have their defaults.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: int
    ...     y: int = 0
    >>> rows = Rows(Point, {"x": np.array([3, 4])})
    >>> rows[1], len(rows[:1])
    (Point(x=4, y=0), 1)
    """

    def __init__(self, kind: type[T], columns: Mapping[str, Column]) -> None:
        self.kind = kind
        self._columns = columns
        self._size = len(next(iter(columns.values())))

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name of the field."""
        return self._columns

    @classmethod
    def joined(cls, parts: Sequence[Rows[T]]) -> Rows[T]:
        """Return rows of one type, at least one part, behind each other.

        Examples
        --------
        >>> class Point(msgspec.Struct):
        ...     x: int
        ...     y: int = 0
        >>> whole, short = {"x": np.array([1]), "y": np.array([2])}, {"x": np.array([3])}
        >>> [*Rows.joined([Rows(Point, whole), Rows(Point, short)])]
        [Point(x=1, y=2), Point(x=3, y=0)]
        """
        longest = max(parts, key=lambda one: len(one.columns))
        defaults = {one.name: one.default for one in msgspec.structs.fields(longest.kind)}

        def column_of(part: Rows[T], name: str) -> Column:
            found = part.columns.get(name)
            return repeated(defaults[name], len(part)) if found is None else found

        return cls(
            longest.kind,
            {
                name: np.concatenate([column_of(part, name) for part in parts])
                for name in longest.columns
            },
        )

    def take(self, rows: Any) -> Rows[T]:  # noqa: ANN401 - an index of arrays
        """Return some rows, by numbers, a mask or a slice."""
        return Rows(self.kind, {name: one[rows] for name, one in self.columns.items()})

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...
    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        """Return one object, or consecutive rows as columns."""
        return self.take(index) if isinstance(index, slice) else next(iter(self.take([index])))

    def __iter__(self) -> Iterator[T]:
        """Yield the objects."""
        names = self.kind.__struct_fields__[: len(self.columns)]
        return map(self.kind, *(self.columns[name].tolist() for name in names))


class ObjectRows(Rows[T]):
    """Outputs of one type that are objects already; the columns are made on request.

    Parameters
    ----------
    kind
        Type of the outputs.
    outputs
        The objects.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: int
    >>> rows = ObjectRows(Point, [Point(3), Point(5)])
    >>> rows[1], rows.columns["x"].tolist()
    (Point(x=5), [3, 5])
    """

    def __init__(self, kind: type[T], outputs: Sequence[T]) -> None:
        self.kind, self._outputs, self._size = kind, outputs, len(outputs)

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name of the field."""
        names = self.kind.__struct_fields__
        return {name: column([getattr(one, name) for one in self._outputs]) for name in names}

    def __iter__(self) -> Iterator[T]:
        """Yield the objects."""
        return iter(self._outputs)
