"""How a service is put together, and taken apart."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, cast

import pytest

from abers.exceptions import BrokerError, StateError
from abers_connectors.kafka.serving import parting

if TYPE_CHECKING:
    from abers_connectors.kafka.client import Group


class Seat:
    """A seat in a group, and what became of it."""

    became = "taken"

    def close(self) -> None:
        """Keep it."""
        self.became = "kept"

    def leave(self) -> None:
        """Give it up."""
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
    """A process that is started again keeps its seat, and one that was fenced takes nobody's."""
    seat = Seat()
    with suppress(BrokerError, StateError), ExitStack() as stack:
        stack.push(parting(cast("Group", seat), leave=leave))
        if error is not None:
            raise error
    assert seat.became == became
