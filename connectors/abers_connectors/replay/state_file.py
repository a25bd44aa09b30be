"""The file with the state of a stopped run.

It always has the last complete state; a new state replaces it in one step, once it is on the disk.
A state continues only with the inputs and outputs that it was saved with, as its positions are in
them, and one run at a time has it. A run saves a state before it has outputs, so outputs without a
state belong to a run that lost its state, or to something else.
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
from abers_connectors.files import FileUse, is_stream
from abers_connectors.regular_files import open_regular
from abers_connectors.secret import KEYLESS, read_key, state_key
from abers_connectors.sinks.destination import WholeFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from abers.stream import Settings
    from abers.stream.option import Front
    from abers_connectors.sources.base import Position

__all__ = ["StateFile", "orphaned"]

_LAYOUT = 1  # version of the position
_CONTEXT = "a run over files"  # the inputs and outputs are in the position; the file may be moved


class StateFile:
    """A snapshot of a processor on the disk, with inputs and outputs by their configuration keys.

    The key seals the state; by default it is the value of ``ABERS_STATE_KEY``, or in `key_file`.
    """

    def __init__(
        self,
        path: str,
        files: Mapping[str, str | None],
        key: str | None = None,
        *,
        key_file: str | None = None,
    ) -> None:
        self.path = path
        self._files = dict(files)
        self._key = state_key(file=key_file) if key is None else read_key(key)

    def uses(self) -> list[FileUse]:
        """Return the files that are written: the state, and its lock."""
        return [
            FileUse("state.path", self.path),
            FileUse("the lock of state.path", str(self._lock()), derived=True),
        ]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the state for a `with` block, or raise a StateError if another run has it."""
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

    def load(self, settings: Settings, *, outcomes: bool, front: Front = "toml") -> Processor:
        """Restore the processor, or return a new one, without a position, if there is no file.

        Raises
        ------
        StateError
            If the file cannot be used, if it is missing but the outputs are not, or if there is
            no key for the state of a learner.
        """
        if settings.learner is not None and self._key is None:
            msg = f"{self.path}: {KEYLESS}"
            raise StateError(msg)
        self._sweep()
        own: Collection[str | None] = ()
        if Path(self.path).exists():
            with open_regular(self.path) as file:
                blob = file.read()
            try:
                processor = Processor.restore(
                    blob, settings, key=self._key, owner=_CONTEXT, outcomes=outcomes, front=front
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
        return Processor(settings, outcomes=outcomes, front=front)

    def begin(self, processor: Processor) -> None:
        """Save the state of a run that has read and written nothing, before it has outputs."""
        self.save(processor, {"source": None, "sinks": {}})

    def save(self, processor: Processor, position: Position) -> None:
        """Save the state of a processor with the positions of its inputs and outputs."""
        held = position | {"files": self._files, "layout": _LAYOUT}
        pieces = processor.snapshot_pieces(held, self._key, _CONTEXT)
        file = WholeFile(self.path, private=True)
        try:
            for piece in pieces:
                file.write(piece)
            file.close()
        except BaseException:
            file.discard()
            raise

    def _position(self, blob: bytes) -> Any:  # noqa: ANN401 - anything a snapshot holds
        try:
            return snapshot.read(blob, self._key, _CONTEXT).position
        except StateError:
            return None

    def _lock(self) -> Path:
        target = Path(self.path).resolve()
        return target.with_name(f".{target.name}.lock")

    def _sweep(self) -> None:
        """Remove the partial file of a run that was killed while it saved."""
        target = Path(self.path).resolve()
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            left.unlink(missing_ok=True)

    def _refuse_others(self, position: Any) -> None:  # noqa: ANN401 - anything was saved
        """Raise a StateError if the state was saved for other files."""
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
        """Refuse to overwrite outputs of a run without this state."""
        outputs = {name: path for name, path in self._files.items() if name.startswith("output.")}
        others = {name: path for name, path in outputs.items() if path not in own}
        if there := orphaned(others):
            msg = f"{self.path}: {there}"
            raise StateError(msg)


def orphaned(outputs: Mapping[str, str | None]) -> str | None:
    """Describe the problem of outputs, by configuration key, without a state; None without any."""
    there = [f"{name} {path}" for name, path in outputs.items() if _has(path)]
    if not there:
        return None
    return (
        f"there is no state, but {' and '.join(there)} {'are' if there[1:] else 'is'} there, and "
        "would be lost; put the state back, or move the outputs away to start anew"
    )


def _has(path: str | None) -> bool:
    """Return whether an output exists and is not empty."""
    if path is None or is_stream(path) or not Path(path).exists():
        return False
    return any(Path(path).iterdir()) if Path(path).is_dir() else Path(path).stat().st_size > 0


def _is_beginning(position: Any) -> bool:  # noqa: ANN401 - anything a snapshot holds
    """Return whether a state is from before its run read anything, so that it may be lost."""
    try:
        _files(position)
    except StateError:
        return False
    return "source" in position and position["source"] is None


def _files(position: Any) -> Mapping[str, str | None]:  # noqa: ANN401 - anything was saved
    """Return the inputs and outputs of a position, or raise a StateError if it has none."""
    if not isinstance(position, dict) or position.get("layout") != _LAYOUT:
        msg = (
            "another version of abers saved this state, and its description of the inputs "
            "does not show whether they are the same; go on with that version, or remove state and "
            "outputs to start anew"
        )
        raise StateError(msg)
    files, source, sinks = (position.get(name) for name in ("files", "source", "sinks"))
    positions = (source, sinks, *(sinks.values() if isinstance(sinks, dict) else ()))
    if isinstance(files, dict) and all(isinstance(one or {}, dict) for one in positions):
        return files
    msg = "the position is not that of a run over files; restore the state from a copy"
    raise StateError(msg)


def _locked(path: Path) -> int | None:
    """Lock a file, which its holder removes; return None if another process has it.

    The operating system releases the lock when the process ends, however that happens.
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
        os.close(descriptor)  # its holder removed it after it was opened
