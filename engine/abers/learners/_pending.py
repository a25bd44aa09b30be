"""Scores that wait for their labels.

Governing rule: the first score of an id stands until its label takes it; when there are too many,
the oldest goes, and is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers._shown import shown
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Pending", "Waiting"]


# The scores that an observation was predicted with, as the calibrator takes them, and its time. No
# NamedTuple: to make one costs as much as a look-up in the calibrator.
Waiting: TypeAlias = tuple[Any, float | None]


class Pending:
    """A bounded store of what waits, by id.

    Parameters
    ----------
    most
        The greatest number of ids that wait.
    """

    def __init__(self, most: int) -> None:
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
            msg = f"max_pending={shown(most)} is not a whole number of observations, 1 or more"
            raise ParameterError(msg)
        self._most = int(most)
        self._waiting: dict[Hashable, Waiting] = {}
        self.dropped = 0

    def __len__(self) -> int:
        """Count the ids that wait."""
        return len(self._waiting)

    def get(self, id_: Hashable) -> Waiting | None:
        """Return what waits under an id, if anything does."""
        return self._waiting.get(id_)

    def keep(self, id_: Hashable, waiting: Waiting) -> None:
        """Let a new id wait."""
        if len(self._waiting) >= self._most and id_ not in self._waiting:
            del self._waiting[next(iter(self._waiting))]
            self.dropped += 1
        self._waiting[id_] = waiting

    def release(self, id_: Hashable) -> None:
        """Let an id go, if it waits."""
        self._waiting.pop(id_, None)
