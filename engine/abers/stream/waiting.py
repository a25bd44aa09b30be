"""What waits: observations for their labels, labels for their observations.

Governing rule: an entry is a slot, the same row of every column, found by model
and id through one dictionary a model; the slots are linked in the order in
which their entries came, so the oldest is at hand and leaving costs the same
wherever it happens. No object is kept for an entry but its id.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Columns", "Waiting"]

_END = 0  # the slot that is none: it links the newest entry to the oldest
_SPARE = 8  # rows grow by one part in so many: doubling would waste half of a million


class Columns(NamedTuple):
    """All entries, oldest first."""

    ids: list[str]
    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    stored: NDArray[np.int64]
    rows: NDArray[np.float64]
    things: list[Any]


class Waiting:
    """Entries by model and id, in the order in which they came.

    Parameters
    ----------
    width
        Number of floats an entry keeps.
    things
        Whether an entry keeps an object too.

    Notes
    -----
    `slots[model]` maps an id to its slot; the columns `keys`, `times`, `stored`, `rows` and
    `things` are read by slot. A slot given back by `take` is used again only after `recycle`:
    until then its row can be read.
    """

    def __init__(self, width: int, *, things: bool) -> None:
        self.slots: list[dict[str, int]] = []
        self.ids: list[str | None] = [None]
        self.models, self.keys = array("I", [0]), array("I", [0])
        self.times, self.stored = array("q", [0]), array("q", [0])
        self.rows = np.empty((1, width))
        self.things: list[Any] | None = [None] if things else None
        self._before, self._after = array("i", [_END]), array("i", [_END])
        self._free: list[int] = []
        self._left: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        """Count the entries."""
        return self._count

    @property
    def oldest(self) -> int:
        """Slot of the oldest entry; 0 if there is none."""
        return self._after[_END]

    def add(self, model: int, id_: str, key: int, time: int, stored: int) -> int:
        """Put an entry behind all others; its slot."""
        if self._free:
            slot = self._free.pop()
            self.ids[slot] = id_
            self.models[slot], self.keys[slot] = model, key
            self.times[slot], self.stored[slot] = time, stored
        else:
            slot = self._append(model, id_, key, time, stored)
        self.slots[model][id_] = slot
        before, after = self._before, self._after
        newest = before[_END]
        after[newest] = before[_END] = slot
        before[slot] = newest
        after[slot] = _END
        self._count += 1
        return slot

    def _append(self, model: int, id_: str, key: int, time: int, stored: int) -> int:
        slot = len(self.ids)
        self.ids.append(id_)
        self.models.append(model)
        self.keys.append(key)
        self.times.append(time)
        self.stored.append(stored)
        self._before.append(_END)
        self._after.append(_END)
        if self.things is not None:
            self.things.append(None)
        return slot

    def take(self, model: int, id_: str) -> int:
        """Take an entry out; its slot."""
        slot = self.slots[model].pop(id_)
        before, after = self._before, self._after
        left, right = before[slot], after[slot]
        after[left] = right
        before[right] = left
        self.ids[slot] = None
        self._left.append(slot)
        self._count -= 1
        return slot

    def recycle(self) -> None:
        """Give back the slots of the entries that were taken."""
        if self.things is not None:
            for slot in self._left:
                self.things[slot] = None
        self._free += self._left
        self._left.clear()

    def fit(self) -> None:
        """Make a row for every slot."""
        missing = len(self.ids) - len(self.rows)
        if missing > 0:
            room = len(self.ids) + len(self.ids) // _SPARE
            self.rows.resize((room, self.rows.shape[1]), refcheck=False)

    def __iter__(self) -> Iterator[int]:
        """Give the slots, oldest entry first."""
        slot = self.oldest
        while slot != _END:
            yield slot
            slot = self._after[slot]

    def columns(self) -> Columns:
        """Give all entries, oldest first."""
        slots = np.fromiter(self, np.int64, self._count)
        things = self.things
        order = slots.tolist()
        self.fit()
        return Columns(
            ids=[str(self.ids[slot]) for slot in order],
            models=np.asarray(self.models, np.uint32)[slots],
            keys=np.asarray(self.keys, np.uint32)[slots],
            times=np.asarray(self.times, np.int64)[slots],
            stored=np.asarray(self.stored, np.int64)[slots],
            rows=self.rows[slots],
            things=[] if things is None else [things[slot] for slot in order],
        )

    def load(self, columns: Columns) -> None:
        """Fill an empty store, whose models are there already, with what `columns` gave."""
        count = len(columns.ids)
        self.ids += columns.ids
        self.models.frombytes(columns.models.tobytes())
        self.keys.frombytes(columns.keys.tobytes())
        self.times.frombytes(columns.times.tobytes())
        self.stored.frombytes(columns.stored.tobytes())
        links = np.arange(count + 1, dtype=np.int32)
        self._before = array("i", np.roll(links, 1).tobytes())
        self._after = array("i", np.roll(links, -1).tobytes())
        self.fit()
        self.rows[1 : count + 1] = columns.rows
        if self.things is not None:
            self.things += columns.things
        for slot, (id_, model) in enumerate(
            zip(columns.ids, columns.models.tolist(), strict=True), 1
        ):
            self.slots[model][id_] = slot
        self._count = count
