"""The ids that a processor knows: those that wait, and those that are finished."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.stream.pending_store import EARLY, FINISHED
from abers.stream.saved_store import STORES, StoreColumns, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers.stream.join import Join
    from abers.stream.tasks.base import Task

__all__ = ["KnownIds", "known_count", "known_ids"]


class KnownIds(NamedTuple):
    """Some ids of one kind.

    Attributes
    ----------
    names
        Model and id of each.
    kind
        `PENDING`, `EARLY` or `FINISHED`.
    labels
        Of an early label its value, of a finished id whether its label came, else None.
    """

    names: list[tuple[str, str]]
    kind: int
    labels: Iterable[Any]


def known_count(join: Join) -> int:
    """Return the number of ids."""
    return sum(map(join.store.count, STORES))


def known_ids(join: Join, task: Task) -> Iterator[KnownIds]:
    """Yield all ids, some at a time; they take time in proportion to their number."""
    models = join.names.by_number
    for kind in STORES:
        columns = StoreColumns.empty(join.store.count(kind))
        blocks = zip(parts(len(columns.slots)), columns.ids_of(join.store, kind), strict=True)
        for part, ids in blocks:
            of = map(models.__getitem__, columns.models[part].tolist())
            labels: Iterable[Any] = repeat(None)
            if kind == EARLY:
                labels = map(task.label, columns.values[part].tolist())
            elif kind == FINISHED:
                labels = map(bool, columns.keys[part].tolist())
            yield KnownIds([*zip(of, ids, strict=True)], kind, labels)
