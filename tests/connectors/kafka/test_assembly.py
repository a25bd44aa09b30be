"""Assembly and end of a service."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, cast

import pytest

from abers.exceptions import BrokerError, StateError
from abers_connectors.kafka.assembly import close_or_leave

if TYPE_CHECKING:
    from abers_connectors.kafka.client import GroupConsumer


class Seat:
    """A membership in a group, and how it ends."""

    became = "taken"

    def close(self) -> None:
        """Keep the membership."""
        self.became = "kept"

    def leave(self) -> None:
        """Leave the group."""
        self.became = "given up"


@pytest.mark.parametrize(
    ("leave", "error", "became"),
    [
        (True, None, "given up"),
        (True, StateError("wrong"), "given up"),
        (True, BrokerError("another process took the place of this one"), "kept"),
        (False, None, "kept"),
    ],
)
def test_a_seat_is_given_up_by_who_ends_for_good(
    leave: bool,  # noqa: FBT001 - a parameter of the test
    error: Exception | None,
    became: str,
) -> None:
    """A restarted process keeps its membership, and a fenced one removes nobody's."""
    seat = Seat()
    with suppress(BrokerError, StateError), ExitStack() as stack:
        stack.push(close_or_leave(cast("GroupConsumer", seat), leave=leave))
        if error is not None:
            raise error
    assert seat.became == became
