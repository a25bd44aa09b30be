"""Restoring of a processor from a folder: its newest snapshot, and the journal behind it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import SettingsError, StateError
from abers.stream.durable.answers import without_answers
from abers.stream.durable.cursor import JournalCursor
from abers.stream.journal import joined
from abers.stream.processor import Processor
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.learners import Learner
    from abers.stream.durable.answers import AnswerMemory
    from abers.stream.durable.folder import StateFolder
    from abers.stream.option import Front

__all__ = ["RestoreOptions", "read_on", "restored"]


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
