"""The members of a consumer group of either protocol, and offsets of a group without members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.exceptions import BrokerError, StateError
from abers_connectors.kafka.connection import TIMEOUT, to_client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["commit_offsets", "group_members", "require_no_members"]

# States of a group. The client describes one of the consumer protocol as dead, without its members.
_NO_CLASSIC_GROUP, _EMPTY = "Dead", "Empty"
_UNNAMED = 'processes with kafka.group_protocol = "consumer"'


def group_members(admin: Any, group: str) -> list[str]:  # noqa: ANN401 - untyped
    """Return the names of the members of a group; one phrase for all of the consumer protocol."""
    found = admin.describe_groups([group])[group]
    if found["group_state"] == _NO_CLASSIC_GROUP:
        return [_UNNAMED] if _is_used(admin, group) else []
    if found["error"] is not None:
        msg = f"group {group}: {found['error']}"
        raise BrokerError(msg)
    return sorted(one["group_instance_id"] or one["member_id"] for one in found["members"])


def require_no_members(admin: Any, group: str) -> None:  # noqa: ANN401 - untyped
    """Raise a StateError if a consumer group has members."""
    if members := group_members(admin, group):
        msg = (
            f"{', '.join(members)}: the group of {group} has members; stop them and wait "
            "for the session time-out, after which they leave the group"
        )
        raise StateError(msg)


def commit_offsets(admin: Any, group: str, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ANN401 - untyped
    """Commit offsets of a group by one request; the brokers refuse it if the group has members.

    Raises a StateError if it has, and a BrokerError if anything else prevents it.
    """
    from kafka import OffsetAndMetadata, errors  # noqa: PLC0415 - an extra

    from abers_connectors.kafka.client_errors import retried  # noqa: PLC0415 - it needs the extra

    wanted = {to_client(one): OffsetAndMetadata(at, "") for one, at in offsets.items()}

    def commit() -> None:
        found = {*admin.alter_group_offsets(group, wanted).values()} - {errors.NoError}
        for error in found:
            raise error

    try:
        retried(commit, TIMEOUT)
    except errors.KafkaError as error:
        require_no_members(admin, group)
        msg = f"offsets of group {group} are not committed: {error or type(error).__name__}"
        raise BrokerError(msg) from error


def _is_used(admin: Any, group: str) -> bool:  # noqa: ANN401 - untyped
    """Return whether a group of any protocol has members."""
    states: dict[str, str] = {one["group_id"]: one["group_state"] for one in admin.list_groups()}
    return states.get(group, _EMPTY) != _EMPTY
