"""The file in which a stopped run left its state.

Governing rule: under its name stands the last complete state; a new one takes
its place in one step, after it is on the disk.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.exceptions import StateError
from abers.stream import Processor
from abers_connectors.files.places import Whole

if TYPE_CHECKING:
    from abers.stream import Settings

__all__ = ["StateFile"]


class StateFile:
    """A snapshot of a processor on the disk.

    Parameters
    ----------
    path
        Its name.
    key
        Secret that seals the state of learners, by default what ``ABERS_STATE_KEY`` holds.
    """

    def __init__(self, path: str, key: str | None = None) -> None:
        self.path = path
        secret = os.environ.get("ABERS_STATE_KEY", "") if key is None else key
        self._key = secret.encode() or None

    def load(self, settings: Settings, *, outcomes: bool) -> Processor:
        """Restore the processor, or make a new one if there is no file.

        Parameters
        ----------
        settings, outcomes
            Those of the processor.

        Returns
        -------
        Processor
            Its `position` is where the run goes on; None at the beginning.

        Raises
        ------
        StateError
            If the file cannot be used.
        """
        try:
            blob = Path(self.path).read_bytes()
        except FileNotFoundError:
            return Processor(settings, outcomes=outcomes)
        try:
            return Processor.restore(blob, settings, key=self._key, outcomes=outcomes)
        except StateError as error:
            msg = f"{self.path}: {error}"
            raise StateError(msg) from None

    def save(self, processor: Processor, position: Any) -> None:  # noqa: ANN401 - what JSON can hold
        """Put the state of a processor under the name of the file.

        Parameters
        ----------
        processor
            Whose state.
        position
            What goes with it, see `Processor.snapshot`.
        """
        file = Whole(self.path)
        try:
            file.write(processor.snapshot(position, self._key))
            file.close()
        except BaseException:
            file.discard()
            raise
