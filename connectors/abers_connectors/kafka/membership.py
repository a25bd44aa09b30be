"""Removal of a static member from its group, which its own client cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.admin import MemberToRemove

from abers_connectors.kafka.client_errors import translated_errors
from abers_connectors.kafka.connection import new_admin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["remove_member"]


def remove_member(
    group: str, instance: str, *, settings: Mapping[str, Any], watchdog: Watchdog
) -> None:
    """Remove a member, so that its partitions are assigned to others at once."""
    with watchdog.call("leave"), translated_errors("leaving the group"):
        member = MemberToRemove(group_instance_id=instance)
        with new_admin(settings) as admin:
            admin.remove_group_members(group, [member])
