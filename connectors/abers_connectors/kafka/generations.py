"""Generations of the state of an application with routers.

The topic of routers and the changelog have a fixed number of partitions. A change of it makes the
topics of the next generation, with a number after their names, and last of all commits the offsets
of the group on its topic of routers. So the offsets say which generation is in use.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import StateError
from abers_connectors.kafka.connection import TIMEOUT, open_admin
from abers_connectors.kafka.settings import client_settings
from abers_connectors.runtime.application import Application, kafka_section, name_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from abers_connectors.config.model import Config

__all__ = ["Generation", "generation_in_use"]


class Generation(NamedTuple):
    """A configuration with the names of a generation, and what its tasks share."""

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


def generation_in_use(config: Config, environ: Mapping[str, str] = os.environ) -> Generation:
    """Return the generation that an application is at: the last with committed offsets, or 1.

    Raises a StateError if the group of the application has offsets on the inputs themselves, of a
    time without routers, and none on a topic of routers.
    """
    kafka = kafka_section(config)
    if kafka.route_by is None:
        return Generation.of(config, 1)
    with open_admin(client_settings(kafka, environ)) as admin:
        topics = _topics_with_offsets(admin, kafka.application_id)
    numbers = [*_generations(topics, kafka.routed)]
    if numbers:
        return Generation.of(config, max(numbers))
    inputs = [kafka.observations, *([kafka.labels] if kafka.labels else [])]
    if before := [topic for topic in inputs if topic in topics]:
        msg = (
            f"application {kafka.application_id} has read {' and '.join(before)} without routers "
            "before, and its state is by their partitions; keep it by `abers state rescale CONFIG "
            "--partitions N`, or take another kafka.application_id for a new state"
        )
        raise StateError(msg)
    return Generation.of(config, 1)


def _topics_with_offsets(admin: Any, group: str) -> set[str | None]:  # noqa: ANN401 - untyped
    """Return the topics on which a group has committed offsets."""
    from kafka import errors  # noqa: PLC0415 - an extra

    from abers_connectors.kafka.client_errors import retried  # noqa: PLC0415 - it needs the extra

    try:
        found = retried(partial(admin.list_group_offsets, [group]), TIMEOUT)
    except errors.GroupIdNotFoundError:
        return set()
    return {one.topic for one, committed in found.get(group, {}).items() if committed.offset >= 0}


def _generations(topics: Collection[str | None], routed: str) -> list[int]:
    """Return the numbers of the generations with a topic of routers among some topics.

    Examples
    --------
    >>> _generations({"app.routed", "app.routed-3", "app.routed-x", "scores"}, "app.routed")
    [1, 3]
    """
    ends = [one.removeprefix(f"{routed}-") for one in topics if one and one != routed]
    numbers = {int(one) for one in ends if one.isascii() and one.isdigit()}
    later = [number for number in numbers if name_at(routed, number) in topics and number > 1]
    return sorted([*[1] * (routed in topics), *later])
