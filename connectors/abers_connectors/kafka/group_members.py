"""The members of a consumer group of either protocol."""

from __future__ import annotations

from typing import Any

from abers.exceptions import BrokerError

__all__ = ["group_members"]

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


def _is_used(admin: Any, group: str) -> bool:  # noqa: ANN401 - untyped
    """Return whether a group of any protocol has members."""
    states: dict[str, str] = {one["group_id"]: one["group_state"] for one in admin.list_groups()}
    return states.get(group, _EMPTY) != _EMPTY
