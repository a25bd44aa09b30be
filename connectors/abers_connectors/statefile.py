"""The file in which a stopped run left its state.

Governing rule: under its name stands the last complete state; a new one takes
its place in one step, after it is on the disk. A state goes on only with the
inputs and outputs that it was made with, for its position is one in them; and one
run at a time has it.
"""

from __future__ import annotations

import fcntl
import glob
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.exceptions import StateError
from abers.stream import Processor
from abers_connectors.files.places import Whole
from abers_connectors.state_key import KEYLESS, read_key, state_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers.stream import Settings
    from abers_connectors.records import Position

__all__ = ["StateFile"]

_PLACE = "a run over files"  # the inputs and outputs stand in the position; the file may be moved


class StateFile:
    """A snapshot of a processor on the disk.

    Parameters
    ----------
    path
        Its name.
    files
        What is read and written, by the names that the configuration has for it.
    key
        Secret that seals the state, by default what ``ABERS_STATE_KEY`` holds.
    """

    def __init__(self, path: str, files: Mapping[str, str | None], key: str | None = None) -> None:
        self.path = path
        self._files = dict(files)
        self._key = state_key() if key is None else read_key(key)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs off the state, and so off its outputs, in a `with` block.

        Raises
        ------
        StateError
            If another run has it.
        """
        target = Path(self.path).resolve()
        lock = target.with_name(f".{target.name}.lock")
        descriptor = _locked(lock)
        if descriptor is None:
            msg = f"{self.path}: another run is using this state; wait for its end, or stop it"
            raise StateError(msg)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
            os.close(descriptor)

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
            If the file cannot be used, or there is no key for the state of a learner.
        """
        if settings.learner is not None and self._key is None:
            msg = f"{self.path}: {KEYLESS}"
            raise StateError(msg)
        self._sweep()
        try:
            blob = Path(self.path).read_bytes()
        except FileNotFoundError:
            return Processor(settings, outcomes=outcomes)
        try:
            processor = Processor.restore(
                blob, settings, key=self._key, place=_PLACE, outcomes=outcomes
            )
            self._refuse_others(_files(processor.position))
        except StateError as error:
            msg = f"{self.path}: {error}"
            raise StateError(msg) from None
        return processor

    def save(self, processor: Processor, position: Position) -> None:
        """Put the state of a processor under the name of the file.

        Parameters
        ----------
        processor
            Whose state.
        position
            How far the inputs and outputs are.
        """
        position = position | {"files": self._files}
        pieces = processor.snapshot_pieces(position, self._key, _PLACE)
        file = Whole(self.path)
        try:
            for piece in pieces:
                file.write(piece)
            file.close()
        except BaseException:
            file.discard()
            raise

    def _sweep(self) -> None:
        """Remove what a run that was killed in the middle of saving left beside the file."""
        target = Path(self.path).resolve()
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            left.unlink(missing_ok=True)

    def _refuse_others(self, before: Mapping[str, str | None]) -> None:
        differing = [
            f"{name} was {before.get(name)!r} and is {now!r}"
            for name, now in self._files.items()
            if before.get(name) != now
        ]
        if differing:
            msg = (
                f"the state was made with other files: {'; '.join(differing)}; set them back, or "
                "remove the state to start anew"
            )
            raise StateError(msg)


def _files(position: Any) -> Mapping[str, str | None]:  # noqa: ANN401 - whatever was saved
    """Give the files that a position is of; a StateError if it is none of a run over files."""
    if isinstance(position, dict):
        files, source, sinks = (position.get(name) for name in ("files", "source", "sinks"))
        places = (source or {}, sinks or {}, *(sinks.values() if isinstance(sinks, dict) else ()))
        if isinstance(files, dict) and all(isinstance(one, dict) for one in places):
            return files
    msg = "the position is none of a run over files; restore the state from a copy"
    raise StateError(msg)


def _locked(path: Path) -> int | None:
    """Lock a file, which whoever holds it removes; None if somebody does.

    The lock is the system's, so it ends with its process, however that ends.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # its holder removed it between the first line and the second
