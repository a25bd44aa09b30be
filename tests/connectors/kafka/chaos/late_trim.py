"""The command, in which routed records are deleted late, and often.

python -m tests.connectors.kafka.chaos.late_trim run CONFIG

What is due is deleted when the next is: so a reader that follows has seen it.
"""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING, Any

from abers_connectors.cli.main import main
from abers_connectors.kafka.topic_watch import RoutedTrimmer

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERVAL = 15.0  # seconds


def _late(delete: Callable[..., None]) -> Callable[..., None]:
    """Return a method that deletes what it was given at the call before."""
    before: list[Any] = []

    def called(trimmer: RoutedTrimmer, offsets: object) -> None:
        before.append(offsets)
        if len(before) > 1:
            delete(trimmer, before.pop(0))

    return called


if __name__ == "__main__":
    setattr(RoutedTrimmer, "_delete", _late(RoutedTrimmer._delete))  # noqa: B010
    setattr(RoutedTrimmer, "__init__", partialmethod(RoutedTrimmer.__init__, interval=_INTERVAL))  # noqa: B010
    main()
