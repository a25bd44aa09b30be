"""A sink that is opened when the first row comes.

Governing rule: a file that would be empty is not made; and one of the same name
from before is not left to pass for this run's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abers_connectors.files.base import FileSink
from abers_connectors.files.places import is_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from abers_connectors.records import Position

__all__ = ["LazySink"]


class LazySink(FileSink):
    """A sink that may turn out not to be needed.

    Parameters
    ----------
    opened
        Opens it.
    path
        Of its file.
    """

    def __init__(self, opened: Callable[[], FileSink], path: str) -> None:
        self._opened, self._path = opened, path
        self._sink: FileSink | None = None

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""
        if self._sink is None:
            self._sink = self._opened()
        self._sink.write(rows)

    def commit(self) -> Position | None:
        """Commit what there is; None as long as there is nothing."""
        return None if self._sink is None else self._sink.commit()

    def close(self) -> None:
        """Close the file, or remove one that another run left."""
        if self._sink is not None:
            self._sink.close()
        elif not is_stream(self._path):
            Path(self._path).unlink(missing_ok=True)

    def discard(self) -> None:
        """Discard the file, if there is one."""
        if self._sink is not None:
            self._sink.discard()
