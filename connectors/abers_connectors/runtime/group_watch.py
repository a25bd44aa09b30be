"""Watch over the membership in a consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.runtime.transport import GroupMembership

__all__ = ["GroupWatch"]


class GroupWatch:
    """Watches that the process is not outside a group for more than `stall_timeout` seconds."""

    def __init__(self, group: str, stall_timeout: float, clock: Callable[[], float]) -> None:
        self._group, self._stall_timeout, self._clock = group, stall_timeout, clock
        self._since: float | None = None  # when the process left the group

    @property
    def joined(self) -> bool:
        """Whether the process was in the group when that was last required."""
        return self._since is None

    def require(self, membership: GroupMembership) -> None:
        """Raise a BrokerError if the process has been outside the group for too long.

        This client may hang, and the client of a restarted process may not.
        """
        if membership.group_metadata is not None:
            self._since = None
            return
        self._since = self._since or self._clock()
        if self._clock() - self._since > self._stall_timeout:
            msg = (
                f"could not join the group of {self._group} within "
                f"{self._stall_timeout:g} s (kafka.stall_timeout); ending, to be restarted"
            )
            raise BrokerError(msg)
