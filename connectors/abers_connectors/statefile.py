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
from typing import TYPE_CHECKING

from abers.exceptions import StateError
from abers.stream import Processor
from abers_connectors.files.aliases import Use
from abers_connectors.files.places import Whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers.stream import Settings
    from abers_connectors.records import Position

__all__ = ["KEYLESS", "StateFile", "secret"]

KEYLESS = (
    "the state of a learner is kept under a secret key; put one into the environment as "
    "ABERS_STATE_KEY, or leave out state.path"
)
"""What is said where a learner and a state have no key."""


def secret(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Give the key that seals the state of learners, if there is one in the environment."""
    return _bytes(environ.get("ABERS_STATE_KEY", ""))


def _bytes(key: str) -> bytes | None:
    return key.encode("utf-8", "surrogateescape") or None


class StateFile:
    """A snapshot of a processor on the disk.

    Parameters
    ----------
    path
        Its name.
    files
        What is read and written, by the names that the configuration has for it.
    key
        Secret that seals the state of learners, by default what ``ABERS_STATE_KEY`` holds.
    """

    def __init__(self, path: str, files: Mapping[str, str | None], key: str | None = None) -> None:
        self.path = path
        self._files = dict(files)
        self._key = secret() if key is None else _bytes(key)

    def uses(self) -> list[Use]:
        """Name the files that are written: the state, and its lock."""
        return [
            Use("state.path", self.path),
            Use("the lock of state.path", str(self._lock()), derived=True),
        ]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs off the state, and so off its outputs, in a `with` block.

        Raises
        ------
        StateError
            If another run has it.
        """
        lock = self._lock()
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
            processor = Processor.restore(blob, settings, key=self._key, outcomes=outcomes)
            self._refuse_others((processor.position or {}).get("files", {}))
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
        blob = processor.snapshot(position | {"files": self._files}, self._key)
        file = Whole(self.path)
        try:
            file.write(blob)
            file.close()
        except BaseException:
            file.discard()
            raise

    def _lock(self) -> Path:
        target = Path(self.path).resolve()
        return target.with_name(f".{target.name}.lock")

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


def _locked(path: Path) -> int | None:
    """Lock a file, which whoever holds it removes; None if somebody does.

    The lock is the system's, so it ends with its process, however that ends.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # its holder removed it between the first line and the second
