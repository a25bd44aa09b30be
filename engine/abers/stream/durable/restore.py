"""A processor read from a folder: restored to go on, or as a follower of another process."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import SettingsError, StateError
from abers.stream.durable.answers import without_answers
from abers.stream.durable.folder import StateFolder
from abers.stream.durable.journal_file import START, Frames, require_head
from abers.stream.journal import joined
from abers.stream.processor import Processor
from abers.stream.settings import Settings

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from abers.learners import Learner
    from abers.stream.durable.answers import AnswerMemory
    from abers.stream.journal import JournalEntry
    from abers.stream.option import Front

__all__ = ["Follower", "JournalCursor", "RestoreOptions", "read_on", "restored"]


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


class RestoreOptions(NamedTuple):
    """How a processor is made and saved; see `abers.stream.Processor`."""

    settings: Settings | None
    learner: Learner | None
    key: bytes | None
    trusted_types: Sequence[str] | None
    front: Front = "python"

    @classmethod
    def of(
        cls,
        settings: Settings | None,
        learner: Learner | None,
        key: bytes | None,
        trusted_types: Sequence[str] | None,
        *,
        answers: bool,
    ) -> RestoreOptions:
        """Return the options of a folder, with or without answers."""
        if answers:
            settings = without_answers(settings or Settings())
        return cls(settings, learner, key, trusted_types)

    def new(self) -> Processor:
        """Return a processor that took no events."""
        return Processor(
            self.settings,
            learner=self.learner,
            trusted_types=self.trusted_types,
            front=self.front,
        )

    def restore(self, blob: bytes) -> Processor:
        """Return the processor of a snapshot."""
        return Processor.restore(
            blob,
            self.settings,
            key=self.key,
            learner=self.learner,
            trusted_types=self.trusted_types,
            front=self.front,
        )


def restored(
    folder: StateFolder, options: RestoreOptions, answers: AnswerMemory | None = None
) -> tuple[Processor, JournalCursor]:
    """Return the processor of the newest snapshot, with all that the journal has behind it.

    Answers, if any, are restored with it.

    Raises
    ------
    StateError
        If a file is damaged or missing, or of other settings.
    """
    processor, cursor = _from_snapshot(folder, options)
    if answers is not None and cursor.number in folder.numbers("answers"):
        name = str(folder.file(cursor.number, "answers"))
        answers.load(folder.read(cursor.number, "answers"), options.key, name)
    read_on(processor, cursor, answers)
    return processor, cursor


def read_on(
    processor: Processor, cursor: JournalCursor, answers: AnswerMemory | None = None
) -> None:
    """Let a processor take the entries that follow a place, and note the answers."""
    before = cursor.number
    try:
        for entry in joined(cursor.entries()):
            outputs = processor.apply(entry)
            if answers is not None:
                answers.note(outputs)
        if answers is not None:
            answers.adjust(processor)
    except StateError as error:
        if str(error).startswith(cursor.name):
            raise
        msg = f"{cursor.name}: an entry behind frame {before:,} cannot be applied: {error}"
        raise type(error)(msg) from None


def _from_snapshot(folder: StateFolder, options: RestoreOptions) -> tuple[Processor, JournalCursor]:
    """Return the processor of the newest snapshot that is intact, and the place behind it."""
    failed: StateError | None = None
    for number in reversed(folder.numbers("snapshot")):
        name = folder.file(number, "snapshot")
        try:
            processor = options.restore(folder.read(number, "snapshot"))
        except StateError as error:
            found = type(error)(f"{name}: {error}")
            if isinstance(error, SettingsError):
                raise found from None
            failed = failed or found
            continue
        if failed is not None:
            warnings.warn(f"{failed}; went on from {name}", RuntimeWarning, stacklevel=2)
        return processor, JournalCursor(folder, number, processor.position)
    if failed is not None:
        raise failed
    msg = f"{folder.path}: there is no snapshot; restore the newest from a copy"
    raise StateError(msg)


class Follower:
    """A processor that reads along with the writer of a folder, and changes nothing in it.

    Parameters
    ----------
    path, settings, learner, key, trusted_types, answers
        As of the `DurableProcessor` that writes there.

    Attributes
    ----------
    processor
        The processor, as of the last `poll`. Only reading it is allowed.

    Raises
    ------
    StateError
        If a file is damaged, missing, or of other settings.

    Examples
    --------
    >>> import tempfile
    >>> from abers.stream import DurableProcessor, Follower, Observation
    >>> with tempfile.TemporaryDirectory() as path, DurableProcessor(path) as durable:
    ...     follower = Follower(path)
    ...     _ = durable.process([Observation("a1", 0, score=0.3)])
    ...     follower.poll(), follower.processor
    (1, <Processor of 'ivap': 1 predictions, 0 labels, 1 pending>)
    """

    processor: Processor

    def __init__(  # noqa: PLR0913 - those of the writer
        self,
        path: str | os.PathLike[str],
        settings: Settings | None = None,
        *,
        learner: Learner | None = None,
        key: bytes | None = None,
        trusted_types: Sequence[str] | None = None,
        answers: bool = False,
    ) -> None:
        self._folder = StateFolder(path)
        self._options = RestoreOptions.of(settings, learner, key, trusted_types, answers=answers)
        self._restore()

    @property
    def position(self) -> Any:  # noqa: ANN401 - of the writer
        """The position that the writer gave with the last events that are read."""
        return self._cursor.position

    def poll(self) -> int:
        """Read what was written since the last call, and return the number of groups of events.

        Raises
        ------
        StateError
            If a file is damaged or missing.
        """
        before = self._cursor.number
        if self._cursor.file in self._folder.numbers("journal"):
            read_on(self.processor, self._cursor)
        else:  # the writer removed it behind a snapshot
            self._restore()
        return self._cursor.number - before

    def _restore(self) -> None:
        """Begin with the newest snapshot; the writer may remove files meanwhile."""
        newest = self._folder.numbers("snapshot")[-1:]
        try:
            self.processor, self._cursor = restored(self._folder, self._options)
        except (StateError, FileNotFoundError):
            if self._folder.numbers("snapshot")[-1:] == newest:
                raise
            self._restore()
