"""From columns to events, all rows at once.

Governing rule: only columns that are plainly right are taken (texts, whole
numbers, finite numbers, or texts of such, no nulls); at the least doubt the
answer is None, and the rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from abers.stream.events import Label, Observation
from abers_connectors import values
from abers_connectors._paths import is_plain
from abers_connectors.records import BadRecordError

if TYPE_CHECKING:
    from abers_connectors.fields import Fields

__all__ = ["Columns", "labels", "observations", "read_labels"]

Columns: TypeAlias = Mapping[str, npt.NDArray[Any] | None]
"""By name: texts as objects, int64, float64 or bool; None for a column of anything else."""


def observations(fields: Fields) -> Callable[[Columns], list[Observation] | None]:
    """Compile what makes observations of columns."""
    segment = fields.segment
    paths = fields.score, segment or fields.score
    plain = _plain_head(fields) and all(map(is_plain, paths)) and not (fields.x or fields.extra)

    def rows(columns: Columns) -> list[Observation] | None:
        scores = _numbers(columns.get(fields.score), np.float64) if plain else None
        if scores is None:
            return None
        head = _head(fields, columns)
        parts = _texts(columns[segment]) if segment and segment in columns else repeat("")
        if head is None or parts is None or not np.isfinite(scores).all():
            return None
        return list(map(Observation, *head, scores.tolist(), repeat(None), parts))

    return rows


def labels(fields: Fields, read: Callable[[Any], int]) -> Callable[[Columns], list[Label] | None]:
    """Compile what makes labels of columns; `read` reads one value."""
    plain = _plain_head(fields)

    def rows(columns: Columns) -> list[Label] | None:
        given = read_labels(columns.get(fields.label), read)
        head = _head(fields, columns) if plain else None
        return None if head is None or given is None else list(map(Label, *head, given))

    return rows


def read_labels(
    column: npt.NDArray[Any] | None, read: Callable[[Any], int]
) -> Sequence[int] | None:
    """Read a column of label values, or give None if one of them is no label."""
    try:
        return None if column is None or "" in column.tolist() else list(map(read, column.tolist()))
    except BadRecordError:
        return None


def _plain_head(fields: Fields) -> bool:
    return is_plain(fields.id) and is_plain(fields.time) and is_plain(fields.model)


def _head(
    fields: Fields, columns: Columns
) -> tuple[Sequence[str], Sequence[int], Sequence[str] | repeat[str]] | None:
    """Give ids, times and models."""
    ids, times = _texts(columns.get(fields.id)), _numbers(columns.get(fields.time), np.int64)
    if ids is None or times is None or not values.are_plain_times(times):
        return None
    if fields.model not in columns:
        return ids, times.tolist(), repeat(values.DEFAULT_MODEL)
    models = _texts(columns[fields.model])
    return None if models is None else (ids, times.tolist(), models)


def _texts(column: npt.NDArray[Any] | None) -> list[str] | None:
    if column is None or column.dtype != object:
        return None
    texts: list[str] = column.tolist()
    return None if "" in texts else texts


def _numbers(
    column: npt.NDArray[Any] | None, kind: type[np.int64 | np.float64]
) -> npt.NDArray[Any] | None:
    texts = _texts(column)
    if texts is None:
        return column if column is not None and column.dtype == kind else None
    read = int if kind is np.int64 else float
    try:
        # An underscore, which Python allows between digits, is none of a number's.
        return None if "_" in "".join(texts) else np.fromiter(map(read, texts), kind, len(texts))
    except (ValueError, OverflowError):
        return None
