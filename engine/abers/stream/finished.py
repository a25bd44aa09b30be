"""The ids that are done with, remembered for a while to know a duplicate by.

Governing rule: first in, first out; an id is remembered with whether its label
came, and with the clock at which it was done with.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Finished", "FinishedColumns"]

_TRIM = 1024  # forgotten rows that are not worth moving the others


class FinishedColumns(NamedTuple):
    """All remembered ids, oldest first."""

    ids: list[str]
    models: NDArray[np.uint32]
    stored: NDArray[np.int64]
    labelled: NDArray[np.uint8]


class Finished:
    """Remembered ids; `labelled[model]` maps an id to whether its label came."""

    def __init__(self) -> None:
        self.labelled: list[dict[str, bool]] = []
        self._ids: deque[str] = deque()
        self._models, self._stored = array("I"), array("q")
        self._head = 0  # of the two arrays: rows before it are forgotten

    def __len__(self) -> int:
        """Count the remembered ids."""
        return len(self._ids)

    @property
    def oldest(self) -> int:
        """Clock at which the oldest one was done with, if there is one."""
        return self._stored[self._head]

    def add(self, model: int, id_: str, stored: int, *, labelled: bool) -> None:
        """Remember an id."""
        self.labelled[model][id_] = labelled
        self._ids.append(id_)
        self._models.append(model)
        self._stored.append(stored)

    def forget_oldest(self) -> None:
        """Forget the id that has been remembered longest."""
        del self.labelled[self._models[self._head]][self._ids.popleft()]
        self._head += 1
        if self._head > _TRIM and 2 * self._head > len(self._stored):
            del self._models[: self._head], self._stored[: self._head]
            self._head = 0

    def columns(self) -> FinishedColumns:
        """Give all remembered ids, oldest first."""
        models = np.array(self._models[self._head :], np.uint32)
        flags = (self.labelled[m][i] for m, i in zip(models.tolist(), self._ids, strict=True))
        return FinishedColumns(
            ids=list(self._ids),
            models=models,
            stored=np.array(self._stored[self._head :], np.int64),
            labelled=np.fromiter(flags, np.uint8, len(self._ids)),
        )

    def load(self, columns: FinishedColumns) -> None:
        """Fill an empty memory, whose models are there already, with what `columns` gave."""
        rows = zip(columns.models.tolist(), columns.ids, columns.stored.tolist(), strict=True)
        for (model, id_, stored), labelled in zip(rows, columns.labelled.tolist(), strict=True):
            self.add(model, id_, stored, labelled=bool(labelled))
