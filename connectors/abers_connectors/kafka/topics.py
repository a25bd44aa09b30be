"""Topics of an application as the brokers describe them, and the requirements of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers_connectors.config.sections import KafkaSection

__all__ = [
    "CHANGELOG",
    "INPUTS",
    "NEEDED",
    "NOT_AUTHORIZED",
    "NO_TOPIC",
    "ROUTED",
    "Finding",
    "Topic",
    "describe_topics",
    "topic_configs",
]

CHANGELOG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
}
"""Required settings of the changelog; with others, parts of the state can be lost."""

ROUTED = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
"""Required settings of the topic to which routers write; with others, records can be lost."""

INPUTS = ("observations", "labels")
NEEDED = {
    **dict.fromkeys(INPUTS, ("READ",)),
    **dict.fromkeys(("predictions", "outcomes", "dead_letters", "alerts"), ("WRITE",)),
    "routed": ("READ", "WRITE"),
    "changelog": ("READ", "WRITE"),
}
"""Required permissions on a topic, by its key in the configuration."""

NO_TOPIC, NOT_AUTHORIZED = 3, 29  # error codes of Kafka's protocol


class Finding(NamedTuple):
    """A mistake in a topic, or a possible one if it is not fatal.

    Examples
    --------
    >>> print(Finding("kafka.labels", "there is no topic labels"))
    kafka.labels: there is no topic labels
    """

    where: str  # dotted path of the key in the configuration
    text: str  # what is wrong, and how to fix it
    fatal: bool = True  # whether a service must not start with it

    def __str__(self) -> str:
        """Return both as one sentence."""
        return f"{self.where}: {self.text}"


class Topic(NamedTuple):
    """A topic as the brokers describe it."""

    where: str  # dotted path of the key in the configuration
    name: str
    id: str  # which a topic that was made anew does not share; "" if it is unknown
    error: int  # error code of Kafka's protocol; 0 if the topic exists
    partitions: int
    allowed: frozenset[str]  # operations that we may use on it
    settings: Mapping[str, str]  # empty if we may not see them


def topic_configs(admin: Any, topics: Iterable[str]) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - untyped
    """Return the configurations of topics, without those that we may not see."""
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 - an extra

    resources = [ConfigResource(ConfigResourceType.TOPIC, name, None) for name in topics]
    found = admin.describe_configs(resources, config_filter="all") if resources else {}
    return {
        name: {key: one["value"] for key, one in config.items()}
        for name, config in found.get("topic", {}).items()
    }


def describe_topics(admin: Any, kafka: KafkaSection, roles: Iterable[str]) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    """Describe topics, by their keys in the section [kafka]."""
    used = [role for role in roles if role != "routed" or kafka.route_by is not None]
    names = {role: getattr(kafka, role) for role in used if getattr(kafka, role) is not None}
    found = {one["name"]: one for one in admin.describe_topics([*names.values()])}
    configs = topic_configs(admin, [name for name, one in found.items() if one["error_code"] == 0])
    return {
        role: Topic(
            f"kafka.{role}",
            name,
            str(found[name].get("topic_id") or ""),
            found[name]["error_code"],
            len(found[name]["partitions"]),
            frozenset(found[name]["authorized_operations"] or ()),
            configs.get(name, {}),
        )
        for role, name in names.items()
    }
