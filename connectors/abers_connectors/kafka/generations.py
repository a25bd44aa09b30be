"""Generations of the state of an application with routers.

The routed topic and the changelog have a fixed number of partitions. To change it, `abers state
rescale` makes the topics of the next generation, with a number after their names, and last of all
commits the offsets of the group on its routed topic. So the offsets say which generation is in use.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import BrokerError, StateError
from abers_connectors.kafka.connection import TIMEOUT, client_settings, open_admin
from abers_connectors.runtime.application import Application, kafka_section, name_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from abers_connectors.config.model import Config

__all__ = [
    "Generation",
    "generation_in_use",
    "generation_with_state",
    "next_generation",
    "require_generation",
]

_END = -1  # asks for the end of a partition


class Generation(NamedTuple):
    """A configuration with the topics of a generation, and its application."""

    number: int  # from 1
    config: Config
    application: Application

    @classmethod
    def of(cls, config: Config, number: int) -> Generation:
        """Return a generation of the application of a configuration."""
        kafka = kafka_section(config)
        if number > 1:
            routed, changelog = (name_at(one, number) for one in (kafka.routed, kafka.changelog))
            kafka = msgspec.structs.replace(kafka, routed=routed, changelog=changelog)
            config = msgspec.structs.replace(config, kafka=kafka)
        return cls(number, config, Application.of(config, number))

    @property
    def topics(self) -> tuple[str, str]:
        """The routed topic, and the changelog."""
        kafka = kafka_section(self.config)
        return kafka.routed, kafka.changelog


def generation_in_use(config: Config, environ: Mapping[str, str] = os.environ) -> Generation:
    """Return the generation that an application is at: the last with committed offsets, or 1.

    Raises a StateError if the group of the application has offsets on the inputs themselves, from a
    time without routers, and none on a routed topic.
    """
    kafka = kafka_section(config)
    if kafka.route_by is None:
        return Generation.of(config, 1)
    found = generation_with_state(config, environ)
    if found.application.sources:
        return found
    msg = (
        f"application {kafka.application_id} has read {' and '.join(found.application.inputs)} "
        "without routers before, so its state has their partitions; convert it by `abers state "
        "rescale CONFIG --partitions N`, or take another kafka.application_id for a new state"
    )
    raise StateError(msg)


def generation_with_state(config: Config, environ: Mapping[str, str] = os.environ) -> Generation:
    """Return the generation in use of an application with routers.

    If it has only run without routers, that is the first generation, without them. Raises a
    StateError if a later generation has run, but has no offsets: its routed topic or the offsets
    on it were deleted.
    """
    kafka = kafka_section(config)
    with open_admin(client_settings(kafka, environ)) as admin:
        topics = _topics_with_offsets(admin, kafka.application_id)
        used, logged = _generations(topics, kafka.routed), _with_changelog(admin, kafka.changelog)
    if not topics:  # brokers delete the offsets of an empty group
        used = logged
    _require_last(config, max(used, default=1), max(logged, default=1))
    if used:
        return Generation.of(config, max(used))
    if topics & {kafka.observations, kafka.labels}:
        alone = msgspec.structs.replace(kafka, route_by=None)
        return Generation.of(msgspec.structs.replace(config, kafka=alone), 1)
    return Generation.of(config, 1)


def require_generation(config: Config, number: int) -> None:
    """Raise a BrokerError if the generation in use is another by now: start again."""
    found = generation_in_use(config).number
    if found != number:
        msg = (
            f"the application was rescaled meanwhile: its state is of generation {found}, and this "
            f"process of {number}; ending, to be restarted"
        )
        raise BrokerError(msg)


def next_generation(
    config: Config, number: int, environ: Mapping[str, str] = os.environ
) -> tuple[Generation, list[str]]:
    """Return the first generation after a number without topics, and the topics of earlier ones.

    A change that was interrupted leaves topics, which nobody reads.
    """
    with open_admin(client_settings(kafka_section(config), environ)) as admin:
        existing = {*admin.list_topics()}
    before: list[str] = []
    found = Generation.of(config, 1)
    while found.number <= number or existing.intersection(found.topics):
        before += [topic for topic in found.topics if topic in existing]
        found = Generation.of(config, found.number + 1)
    return found, before


def _require_last(config: Config, used: int, logged: int) -> None:
    """Raise a StateError if the last generation with a changelog is after the one in use."""
    if logged <= used:
        return
    group = kafka_section(config).application_id
    routed, changelog = Generation.of(config, logged).topics
    msg = (
        f"{changelog} has records, and group {group} has no offsets on {routed}: that topic or its "
        "offsets were deleted. Start a new application (kafka.application_id), or delete "
        f"{changelog} to go back to the state before the last `abers state rescale`"
    )
    raise StateError(msg)


def _topics_with_offsets(admin: Any, group: str) -> set[str | None]:  # noqa: ANN401 - untyped
    """Return the topics on which a group has committed offsets."""
    from kafka import errors  # noqa: PLC0415 - an extra

    from abers_connectors.kafka.client_errors import retried  # noqa: PLC0415 - it needs the extra

    try:
        found = retried(partial(admin.list_group_offsets, [group]), TIMEOUT)
    except errors.GroupIdNotFoundError:
        return set()
    return {one.topic for one, committed in found.get(group, {}).items() if committed.offset >= 0}


def _with_changelog(admin: Any, changelog: str) -> list[int]:  # noqa: ANN401 - untyped
    """Return the generations that have records in their changelogs: only a service writes them."""
    from kafka import TopicPartition  # noqa: PLC0415 - an extra

    numbers = _generations(admin.list_topics(), changelog)
    topics = {name_at(changelog, number): number for number in numbers}
    if not topics:
        return []
    parts = [
        TopicPartition(one["name"], part["partition_index"])
        for one in admin.describe_topics([*topics])
        for part in one["partitions"]
    ]
    ends = admin.list_partition_offsets(dict.fromkeys(parts, _END))
    return [topics[part.topic] for part, end in ends.items() if end.offset > 0]


def _generations(topics: Collection[str | None], first: str) -> list[int]:
    """Return the numbers of the generations with a topic among some; generation 1 has `first`.

    Examples
    --------
    >>> _generations({"app.routed", "app.routed-3", "app.routed-x", "scores"}, "app.routed")
    [1, 3]
    """
    ends = [one.removeprefix(f"{first}-") for one in topics if one and one != first]
    numbers = {int(one) for one in ends if one.isascii() and one.isdigit()}
    later = [number for number in numbers if name_at(first, number) in topics and number > 1]
    return sorted([*[1] * (first in topics), *later])
