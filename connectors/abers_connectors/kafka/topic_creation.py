"""Creation of an application's topics.

Missing topics are created; existing topics do not change. A service that creates its topics at its
start creates all that are missing, or none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ConfigError, StateError
from abers_connectors.kafka.connection import open_admin
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_checks import (
    CHECKS,
    existence_findings,
    identity_findings,
    largest_routed,
)
from abers_connectors.kafka.topics import (
    CHANGELOG,
    INPUTS,
    NEEDED,
    NO_TOPIC,
    NOT_AUTHORIZED,
    ROUTED,
    describe_topics,
)
from abers_connectors.runtime.application import kafka_section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config.model import Config
    from abers_connectors.kafka.topics import Topic

__all__ = ["create_generation", "create_topics", "create_topics_if"]

_TASKS = 16  # partitions of the topic of routers: with many more, a commit takes long
_EXISTS = 36  # error code of Kafka's protocol


def create_topics(config: Config, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Create the topics of a configuration that do not exist, and return their names.

    New topics get as many partitions as an existing input. Without one, `kafka.partitions` sets
    the number, and without that the brokers do. The topic of routers and the changelog have equally
    many, by default 16. Raises a ConfigError if the brokers reject a topic.
    """
    kafka = kafka_section(config)
    with open_admin(client_settings(kafka, environ)) as admin:
        return _create(admin, describe_topics(admin, kafka, NEEDED), config)


def create_topics_if(
    config: Config,
    accept: Callable[[int], None],
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """Create the topics that do not exist, or none if a service could not run on them.

    Raises a ConfigError, and creates nothing, if an existing topic has a mistake, a permission is
    missing, or the brokers would reject a new topic. Last before the creation, `accept` is called
    with the number of partitions that tasks will read (0 if the brokers do not report it).
    `accept` raises to prevent the creation.
    """
    kafka = kafka_section(config)
    with open_admin(client_settings(kafka, environ)) as admin:
        topics = describe_topics(admin, kafka, NEEDED)
        planned = _planned(admin, topics, config)
        # A topic that does not exist yet is no mistake here.
        checks = [check for check in CHECKS if check is not existence_findings]
        findings = [finding for check in checks for finding in check(planned, config)]
        findings += identity_findings(admin, kafka)
        if fatal := [str(finding) for finding in findings if finding.fatal]:
            raise ConfigError(fatal)
        accept(planned["routed" if "routed" in planned else "observations"].partitions)
        return _create(admin, topics, config)


def create_generation(
    config: Config, partitions: int, environ: Mapping[str, str] = os.environ
) -> None:
    """Create the topic of routers and the changelog of a configuration, with so many partitions.

    Raises a ConfigError if the brokers reject one, and a StateError if one exists.
    """
    kafka = msgspec.structs.replace(kafka_section(config), partitions=partitions)
    with open_admin(client_settings(kafka, environ)) as admin:
        topics = describe_topics(admin, kafka, (*INPUTS, "routed", "changelog"))
        created = _create(admin, topics, msgspec.structs.replace(config, kafka=kafka))
    if {*created} != {kafka.routed, kafka.changelog}:
        msg = (
            f"another command has made topics {kafka.routed} and {kafka.changelog} meanwhile; let "
            "it end, then repeat"
        )
        raise StateError(msg)


def _planned(admin: Any, topics: Mapping[str, Topic], config: Config) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    """Return the topics as they will be, from a request that creates nothing."""
    responses = _request(admin, topics, config, validate_only=True)
    counts = {one["name"]: one["num_partitions"] for one in responses}
    planned = dict(topics)
    for role, topic in topics.items():
        count = counts.get(topic.name, -1)
        if count > 0:  # -1 if the brokers do not report it
            # The check of permissions applies to existing topics, so assume those of a new topic.
            allowed = frozenset(NEEDED[role])
            planned[role] = topic._replace(error=0, partitions=count, allowed=allowed)
    return planned


def _create(admin: Any, topics: Mapping[str, Topic], config: Config) -> list[str]:  # noqa: ANN401 - untyped
    responses = _request(admin, topics, config)
    if responses:
        admin.wait_for_topics([one["name"] for one in responses])
    return [one["name"] for one in responses if one["error_code"] == 0]


def _request(
    admin: Any,  # noqa: ANN401 - untyped
    topics: Mapping[str, Topic],
    config: Config,
    *,
    validate_only: bool = False,
) -> list[dict[str, Any]]:
    """Create the missing topics, or only validate them; return the brokers' responses."""
    missing = _missing(topics, config)
    if not missing:
        return []
    responses: list[dict[str, Any]] = admin.create_topics(
        missing, validate_only=validate_only, raise_errors=False
    )["topics"]
    # Another process of the application may have been faster.
    if rejected := [one for one in responses if one["error_code"] not in (0, _EXISTS)]:
        where = {one.name: one.where for one in topics.values()}
        raise ConfigError([f"{where[one['name']]}: {_rejection(one)}" for one in rejected])
    return responses


def _missing(topics: Mapping[str, Topic], config: Config) -> dict[str, dict[str, Any]]:
    """Return the options of each missing topic, by its name.

    Raises a ConfigError if the brokers do not say whether a topic exists.
    """
    unknown = {role: one for role, one in topics.items() if one.error not in (0, NO_TOPIC)}
    if unknown:
        raise ConfigError([*map(str, existence_findings(unknown, config))])
    kafka = kafka_section(config)
    inputs = [topics[role].partitions for role in INPUTS if role in topics]
    existing = [count for count in inputs if count]
    options = {
        "num_partitions": existing[0] if existing else kafka.partitions or -1,
        "replication_factor": kafka.replication_factor,
    }
    own: dict[str, dict[str, Any]] = {"changelog": {"configs": CHANGELOG}}
    if "routed" in topics:
        tasks = topics["routed"].partitions or topics["changelog"].partitions
        number = {"num_partitions": tasks or kafka.partitions or _TASKS}
        routed = ROUTED | {"max.message.bytes": str(largest_routed(topics))}
        own = {"changelog": number | own["changelog"], "routed": number | {"configs": routed}}
    return {
        one.name: options | {"configs": {}} | own.get(role, {})
        for role, one in topics.items()
        if one.error == NO_TOPIC
    }


def _rejection(response: Mapping[str, Any]) -> str:
    from kafka import errors  # noqa: PLC0415

    why = response["error_message"] or errors.for_code(response["error_code"]).__name__
    if response["error_code"] == NOT_AUTHORIZED:
        why = "permission CREATE on it is missing"
    return f"the brokers do not create topic {response['name']}: {why}"
