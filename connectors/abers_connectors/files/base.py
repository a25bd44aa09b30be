"""What every sink on files can do.

Governing rule: at the end of a `with` block a sink is closed, and if something
failed there it is discarded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import msgspec

    from abers_connectors.records import Position

__all__ = ["FileSink"]


class FileSink(ABC):
    """A sink on a file, a directory or a stream."""

    @abstractmethod
    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows."""

    @abstractmethod
    def commit(self) -> Position | None:
        """Make all that was written durable, and say how much that is; None if nothing is."""

    @abstractmethod
    def close(self) -> None:
        """Commit, and take no more."""

    @abstractmethod
    def discard(self) -> None:
        """Take no more, and leave nothing that was not committed, as far as that can be."""

    def __enter__(self) -> Self:
        """Use the sink in a `with` block."""
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the sink, or discard it."""
        if error is None:
            self.close()
        else:
            self.discard()
