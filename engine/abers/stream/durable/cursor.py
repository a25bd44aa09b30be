"""Reading of a journal, from a snapshot on, across its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.exceptions import StateError
from abers.stream.durable.frames import START, Frames, require_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.durable.folder import StateFolder
    from abers.stream.journal import JournalEntry

__all__ = ["JournalCursor"]


class JournalCursor:
    """A place in a journal, which moves on as entries are read.

    Parameters
    ----------
    folder
        The folder.
    number
        Number of a snapshot: of the frames before the place.
    position
        Position of the snapshot.

    Attributes
    ----------
    number
        Number of the frames before the place.
    position
        Position of the caller behind them.
    file, offset
        Number of the file that has the place, and where in it the place is.
    """

    def __init__(self, folder: StateFolder, number: int, position: Any) -> None:  # noqa: ANN401
        self._folder = folder
        self.number, self.position = number, position
        self.file, self.offset = number, 0

    @property
    def name(self) -> str:
        """Path of the file that has the place."""
        return str(self._folder.file(self.file, "journal"))

    def entries(self) -> Iterator[JournalEntry]:
        """Yield the entries that follow, up to the last that is complete.

        Raises
        ------
        StateError
            If a file is damaged, or is not there.
        """
        while True:
            later = [one for one in self._folder.numbers("journal") if one > self.file]
            frames = self._frames()
            for one in frames:
                self.number += 1
                self.position = one.position
                self.offset = frames.end
                yield one.entry
            if not later:
                frames.require_torn()
                return
            frames.require_whole()
            self._require_next(later[0])
            self.file, self.offset = self.number, 0

    def _frames(self) -> Frames:
        """Return the frames from the place to the end of the file."""
        try:
            data = self._folder.read(self.file, "journal", self.offset)
        except FileNotFoundError:
            msg = f"{self.name} is missing; restore it from a copy"
            raise StateError(msg) from None
        if not self.offset:
            require_head(data, self.file, self.name)
            data, self.offset = data[START:], START
        return Frames(data, self.offset, self.name)

    def _require_next(self, number: int) -> None:
        if number != self.number:
            msg = (
                f"{self.name} ends at frame {self.number:,}, and the journal goes on at frame "
                f"{number:,}; restore the files between from a copy"
            )
            raise StateError(msg)
