"""Session time-out of the consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.connection import open_admin
from abers_connectors.kafka.settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.sections import KafkaSection

__all__ = ["session_timeout"]

_KEY = "consumer.session.timeout.ms"
_DEFAULT = "45000"  # of brokers


def session_timeout(kafka: KafkaSection, group: str) -> float:
    """Return the seconds without a heartbeat after which the brokers remove a member of a group.

    In the consumer protocol this is a setting of the group on the brokers. If we may not see it, it
    is taken to be their default.
    """
    if kafka.group_protocol == "classic":
        return kafka.session_timeout / 1000
    with open_admin(client_settings(kafka)) as admin:
        found = _group_config(admin, group)
    return int(found.get(_KEY, {}).get("value", _DEFAULT)) / 1000


def _group_config(admin: Any, group: str) -> Mapping[str, Any]:  # noqa: ANN401 - untyped
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 - an extra

    resource = ConfigResource(ConfigResourceType.GROUP, group, None)
    found: Mapping[str, Any] = admin.describe_configs([resource], config_filter="all")
    config: Mapping[str, Any] = found.get("group", {}).get(group, {})
    return config
