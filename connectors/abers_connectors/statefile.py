"""The file in which a stopped run left its state.

Governing rule: under its name stands the last complete state; a new one takes
its place in one step, after it is on the disk. A state goes on only with the
inputs and outputs that it was made with, for its position is one in them; and one
run at a time has it. A run has a state before it has outputs, so outputs without a
state are those of a run whose state is lost, or of something else.
"""

from __future__ import annotations

import fcntl
import glob
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.exceptions import StateError
from abers.stream import Processor, snapshot
from abers_connectors.files.aliases import Use
from abers_connectors.files.places import Whole, is_stream
from abers_connectors.state_key import KEYLESS, read_key, state_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from abers.stream import Settings
    from abers_connectors.records import Position

__all__ = ["StateFile", "orphaned"]

_LAYOUT = 2  # of the position; the first one knew an input only by its number of records
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
            If the file cannot be used, if it is not there but the outputs are, or if there is no
            key for the state of a learner.
        """
        if settings.learner is not None and self._key is None:
            msg = f"{self.path}: {KEYLESS}"
            raise StateError(msg)
        self._sweep()
        own: Collection[str | None] = ()
        if Path(self.path).exists():
            blob = Path(self.path).read_bytes()
            try:
                processor = Processor.restore(
                    blob, settings, key=self._key, place=_PLACE, outcomes=outcomes
                )
                self._refuse_others(processor.position)
            except StateError as error:
                before = self._position(blob)
                if not _is_beginning(before):
                    msg = f"{self.path}: {error}"
                    raise StateError(msg) from None
                own = before["files"].values()
            else:
                return processor
        self._refuse_orphans(own)
        return Processor(settings, outcomes=outcomes)

    def begin(self, processor: Processor) -> None:
        """Save the state of a run that has read and written nothing, before it has outputs."""
        self.save(processor, {"source": None, "sinks": {}})

    def save(self, processor: Processor, position: Position) -> None:
        """Put the state of a processor under the name of the file.

        Parameters
        ----------
        processor
            Whose state.
        position
            How far the inputs and outputs are.
        """
        held = position | {"files": self._files, "layout": _LAYOUT}
        pieces = processor.snapshot_pieces(held, self._key, _PLACE)
        file = Whole(self.path, private=True)
        try:
            for piece in pieces:
                file.write(piece)
            file.close()
        except BaseException:
            file.discard()
            raise

    def _position(self, blob: bytes) -> Any:  # noqa: ANN401 - whatever a snapshot holds
        try:
            return snapshot.read(blob, self._key, _PLACE)[0].position
        except StateError:
            return None

    def _lock(self) -> Path:
        target = Path(self.path).resolve()
        return target.with_name(f".{target.name}.lock")

    def _sweep(self) -> None:
        """Remove what a run that was killed in the middle of saving left beside the file."""
        target = Path(self.path).resolve()
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            left.unlink(missing_ok=True)

    def _refuse_others(self, position: Any) -> None:  # noqa: ANN401 - whatever was saved
        before = _files(position)
        differing = [
            f"{name} was {before.get(name)!r} and is {now!r}"
            for name, now in self._files.items()
            if before.get(name) != now
        ]
        if differing:
            msg = (
                f"the state was made with other files: {'; '.join(differing)}; set them back, or "
                "remove state and outputs to start anew"
            )
            raise StateError(msg)

    def _refuse_orphans(self, own: Collection[str | None]) -> None:
        """Refuse to write over outputs that a run without this state wrote."""
        outputs = {name: path for name, path in self._files.items() if name.startswith("output.")}
        others = {name: path for name, path in outputs.items() if path not in own}
        if there := orphaned(others):
            msg = f"{self.path}: {there}"
            raise StateError(msg)


def orphaned(outputs: Mapping[str, str | None]) -> str | None:
    """Say what is wrong where a run has outputs and no state; None if there are none.

    Parameters
    ----------
    outputs
        Their paths, by the names that the configuration has for them.

    Returns
    -------
    str or None
        A sentence.
    """
    there = [f"{name} {path}" for name, path in outputs.items() if _has(path)]
    if not there:
        return None
    return (
        f"there is no state, but {' and '.join(there)} {'are' if there[1:] else 'is'} there, and "
        "would be lost; put the state back, or move the outputs away to start anew"
    )


def _has(path: str | None) -> bool:
    """Say whether an output holds something."""
    if path is None or is_stream(path) or not Path(path).exists():
        return False
    return any(Path(path).iterdir()) if Path(path).is_dir() else Path(path).stat().st_size > 0


def _is_beginning(position: Any) -> bool:  # noqa: ANN401 - whatever a snapshot holds
    """Say whether a run left a state before it had read anything: none of it is worth keeping."""
    try:
        _files(position)
    except StateError:
        return False
    return "source" in position and position["source"] is None


def _files(position: Any) -> Mapping[str, str | None]:  # noqa: ANN401 - whatever was saved
    """Return the files that a position is of.

    Raises
    ------
    StateError
        If it is none of a run over files, or of another layout.
    """
    if not isinstance(position, dict) or position.get("layout") != _LAYOUT:
        msg = (
            "another version of abers saved this state, and what it keeps of the inputs does "
            "not tell whether they are the same; go on with that version, or remove state and "
            "outputs to start anew"
        )
        raise StateError(msg)
    files, source, sinks = (position.get(name) for name in ("files", "source", "sinks"))
    places = (source, sinks, *(sinks.values() if isinstance(sinks, dict) else ()))
    if isinstance(files, dict) and all(isinstance(one or {}, dict) for one in places):
        return files
    msg = "the position is none of a run over files; restore the state from a copy"
    raise StateError(msg)


def _locked(path: Path) -> int | None:
    """Lock a file, which whoever holds it removes; None if somebody does.

    The lock is the system's, so it ends with its process, however that ends.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # its holder removed it between the first line and the second
