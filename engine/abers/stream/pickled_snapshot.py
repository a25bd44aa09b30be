"""Pickles and copies of a processor, through its snapshot."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from abers.saveable import CopiedWhole
from abers.stream.snapshot import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.stream.settings import Settings
    from abers.stream.state import ProcessorState

__all__ = ["PickledSnapshot"]


class PickledSnapshot(CopiedWhole):
    """Base of a processor: a pickle is its snapshot, with its learners.

    Loading a pickle can run any code, so its writer must be trusted.
    """

    settings: Settings
    trusted_types: Sequence[str] | None
    position: Any
    _state: ProcessorState

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes, Settings], dict[str, Any]]:
        """Pickle and copy the snapshot, under a key of its own if there are learners."""
        state = self._state.sound()
        learners, trusted, kind = state.join.learners, self.trusted_types, cast("Any", type(self))
        restore = partial(kind.restore, outcomes=state.outcomes, trusted_types=trusted)
        key = None
        if learners is not None:
            key = os.urandom(32)
            restore = partial(restore, learner=learners.shared, key=key)
        pieces = dump(state, None, key, "", trusted, finished_ids=True)
        return restore, (b"".join(pieces), self.settings), {"position": self.position}
