"""Reading along with a durable processor, from another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.exceptions import StateError
from abers.stream.durable.folder import StateFolder
from abers.stream.durable.restore import RestoreOptions, read_on, restored

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from abers.learners import Learner
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

__all__ = ["Follower"]


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
