"""A JSON Lines or CSV file as a source of events.

Governing rule: a batch is decoded in one go, and only if that fails record by
record, with the same result; so a bad record costs time, and nothing else.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from abers.exceptions import RecordError
from abers_connectors._raw import checked, too_large
from abers_connectors.files.columns import require_columns
from abers_connectors.files.compression import DamagedError, chunks
from abers_connectors.files.digest import TextDigest
from abers_connectors.files.formats import UNREADABLE, Csv, Frames, JsonLines
from abers_connectors.files.lines import Line, Oversized, is_blank, lines, shown
from abers_connectors.files.looks import require_text
from abers_connectors.files.naming import STANDARD
from abers_connectors.records import (
    Bad,
    BadRecordError,
    Batch,
    Origin,
    gathered,
    require_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.fields import Mapper
    from abers_connectors.files.formats import Format
    from abers_connectors.files.naming import Kind
    from abers_connectors.records import Position, Row

__all__ = ["TextSource"]

BATCH = 5000


class TextSource:
    """One file of lines, or standard input.

    Parameters
    ----------
    path
        The file, or "-".
    kind
        Its format and compression.
    mapper
        From records to rows.
    limit
        How many bytes a record may have.
    growing
        Whether the file is read on later. Then a last record that may be half-written, as its
        line has no end, is left until it has one.
    """

    def __init__(
        self, path: str, kind: Kind, mapper: Mapper, limit: int, *, growing: bool = False
    ) -> None:
        self.name = "standard input" if path == STANDARD else path
        self._path, self._kind, self._mapper, self._limit = path, kind, mapper, limit
        self._growing, self._left = growing, False
        self._share: float | None = None

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches after a position: a number of records to be skipped, and their hash.

        Raises
        ------
        RecordError
            If compressed data is damaged, if the file is not text, or if a CSV file has no usable
            header.
        ParameterError
            If a CSV file lacks a column.
        StateError
            If the records to be skipped are not there, or are others.
        """
        self._digest = TextDigest(self.name, position)
        skip, known = self._digest.skip, self._digest.known
        done, line = 0, 0
        with self._opened() as file:
            try:
                for frames in self._frames(file):
                    line = frames.numbers[-1]
                    self._share = None if self._path == STANDARD else _share(file)
                    if done < skip:
                        frames, done = self._skipped(frames, skip - done, done)  # noqa: PLW2901
                    if frames.raws:
                        batch = self._batch(frames, done)
                        done += batch.records
                        yield batch
            except DamagedError as error:
                msg = f"{self.name} after line {line}: {error}"
                raise RecordError(msg) from error
        require_records(self.name, done, known)
        if self._left:
            warnings.warn(
                f"{self.name}: the last record has no end yet, and is left for the next run; if "
                "nothing is to follow, end its line",
                stacklevel=2,
            )

    def fraction(self) -> float | None:
        """Give the share of the file that has been read; None for what has no size."""
        return self._share

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self._path == STANDARD:
            yield sys.stdin.buffer
            return
        with Path(self._path).open("rb") as file:
            yield file

    def _frames(self, file: BinaryIO) -> Iterator[Frames]:
        """Give some raw records at a time, never none."""
        self._format: Format = (
            Csv(self.name, self._limit, self._keeps)
            if self._kind.format == "csv"
            else JsonLines(self._mapper.typed)
        )
        checked, self._left = False, False
        read = chunks(file, self._kind.compression)
        text = require_text(self.name, read, growing=self._growing)
        for frames in self._format.frames(lines(text, self._limit, self._keeps)):
            if not checked and self._format.columns is not None:
                require_columns(self.name, self._format.columns, self._mapper)
                self._digest.begin(self._format.columns)
                checked = True
            for piece in _pieces(len(frames.raws)):
                yield Frames(frames.numbers[piece], frames.raws[piece])

    def _keeps(self, line: Line) -> bool:
        """Say whether the last line, which has no end, is a record."""
        keeps = not self._growing or is_blank(line) or self._format.is_whole(line)
        self._left |= not keeps
        return keeps

    def _batch(self, frames: Frames, done: int) -> Batch:
        """Make a batch of raw records, before which `done` were read."""
        numbers, raws = frames
        try:
            events = self._format.events(raws, self._mapper, done)
        except (*UNREADABLE, BadRecordError):
            return self._one_by_one(frames, done)

        def origin(row: int) -> Origin:
            return self._origin(numbers[row], raws[row])

        self._digest.add(raws)
        return Batch(events, (), self._digest.position(), len(raws), origin)

    def _one_by_one(self, frames: Frames, done: int) -> Batch:
        rows: list[Row] = []
        kept: list[tuple[int, Line]] = []
        bad: list[Bad] = []
        filled = [(number, raw) for number, raw in zip(*frames, strict=True) if not is_blank(raw)]
        self._digest.add([raw for _, raw in filled])
        for number, raw in filled:
            done += 1
            try:
                rows.append(self._row(raw, done))
            except BadRecordError as error:
                origin = self._origin(number, raw)
                bad.append(Bad(len(rows), error.reason, error.detail, origin))
            else:
                kept.append((number, raw))
        return Batch(
            gathered(rows),
            bad,
            self._digest.position(),
            len(rows) + len(bad),
            lambda row: self._origin(*kept[row]),
        )

    def _skipped(self, frames: Frames, skip: int, done: int) -> tuple[Frames, int]:
        """Leave out so many records, or all; blank lines are none."""
        places = [place for place, raw in enumerate(frames.raws) if not is_blank(raw)]
        self._digest.add([frames.raws[place] for place in places[:skip]])
        if len(places) <= skip:
            return Frames((), ()), done + len(places)
        first = places[skip]
        return Frames(frames.numbers[first:], frames.raws[first:]), done + skip

    def _row(self, raw: Line, number: int) -> Row:
        if isinstance(raw, Oversized):
            raise too_large(raw.size, self._limit)
        return checked(raw, lambda text: self._format.row(text, self._mapper, number))

    def _origin(self, number: int, raw: Line) -> Origin:
        return Origin(f"{self.name} line {number}", shown(raw))


def _share(file: BinaryIO) -> float | None:
    status = os.fstat(file.fileno())
    sized = stat.S_ISREG(status.st_mode) and status.st_size
    return file.tell() / status.st_size if sized else None


def _pieces(size: int) -> Iterator[slice]:
    """Divide so many records into batches of about `BATCH`."""
    step = -(-size // max(1, round(size / BATCH)))
    return (slice(start, start + step) for start in range(0, size, step or 1))
