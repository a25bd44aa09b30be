"""The creation of the topics of an application.

Governing rule: creating makes what is missing, and changes nothing that is there; where a service
creates topics before it starts, it makes all of them or none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError
from abers_connectors.kafka.client_settings import client_settings, reaching
from abers_connectors.kafka.looks import (
    CHANGELOG,
    INPUTS,
    LOOKS,
    NEEDED,
    NO_TOPIC,
    NOT_ALLOWED,
    Topic,
    existence,
)
from abers_connectors.kafka.topics import admin_of, described, identity, section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config import Config

__all__ = ["create", "create_if"]

_EXISTS = 36  # a code of Kafka's protocol


def create(config: Config, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Create the topics of a configuration that do not exist.

    Parameters
    ----------
    config
        With a section [kafka]. All topics get as many partitions as an input has, or else as
        `kafka.partitions` says, or else as the brokers give by default.
    environ
        Where the passwords are.

    Returns
    -------
    list
        The names of those that were created.

    Raises
    ------
    BrokerError
        If no broker answers within ten seconds.
    ConfigError
        If the brokers refuse to create one.
    """
    kafka = section(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), admin_of(settings) as admin:
        return _create(admin, described(admin, kafka, NEEDED), config)


def create_if(
    config: Config,
    accept: Callable[[int], None],
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """Create the topics that do not exist, or none if anything hinders a service to run on them.

    Parameters
    ----------
    config, environ
        As of `create`.
    accept
        Called before anything is created, with the number of partitions that the inputs will have
        (0 if the brokers do not say); it raises if something else hinders the service.

    Returns
    -------
    list
        As of `create`.

    Raises
    ------
    BrokerError
        If no broker answers within ten seconds.
    ConfigError
        If a topic that exists will not do, a permission is missing, or the brokers would refuse to
        create one.
    """
    kafka = section(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), admin_of(settings) as admin:
        topics = described(admin, kafka, NEEDED)
        planned = _planned(admin, topics, config)
        looks = [look for look in LOOKS if look is not existence]
        found = [one for look in looks for one in look(planned, config)]
        found += identity(admin, kafka)
        if any(one.fatal for one in found):
            raise ConfigError([str(one) for one in found if one.fatal])
        accept(planned["observations"].partitions)
        return _create(admin, topics, config)


def _planned(admin: Any, topics: Mapping[str, Topic], config: Config) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    """Give the topics as they will be; the brokers say so, and create nothing."""
    told = _asked(admin, topics, config, validate_only=True)
    counts = {one["name"]: one["num_partitions"] for one in told}
    return {
        role: one._replace(error=0, partitions=counts[one.name], allowed=frozenset(NEEDED[role]))
        if counts.get(one.name, -1) > 0
        else one
        for role, one in topics.items()
    }


def _create(admin: Any, topics: Mapping[str, Topic], config: Config) -> list[str]:  # noqa: ANN401 - untyped
    told = _asked(admin, topics, config)
    if told:
        admin.wait_for_topics([one["name"] for one in told])
    return [one["name"] for one in told if one["error_code"] == 0]


def _asked(
    admin: Any,  # noqa: ANN401 - untyped
    topics: Mapping[str, Topic],
    config: Config,
    *,
    validate_only: bool = False,
) -> list[dict[str, Any]]:
    """Have what is missing created, or only looked at by the brokers; give what they say."""
    kafka = section(config)
    unknown = {role: one for role, one in topics.items() if one.error not in (0, NO_TOPIC)}
    if unknown:
        raise ConfigError([*map(str, existence(unknown, config))])
    inputs = [topics[role].partitions for role in INPUTS if role in topics]
    options = {
        "num_partitions": next(filter(None, inputs), kafka.partitions or -1),
        "replication_factor": kafka.replication,
    }
    missing = {
        one.name: options | {"configs": CHANGELOG if role == "changelog" else {}}
        for role, one in topics.items()
        if one.error == NO_TOPIC
    }
    if not missing:
        return []
    told: list[dict[str, Any]] = admin.create_topics(
        missing, validate_only=validate_only, raise_errors=False
    )["topics"]
    # Another process of the application may have been faster.
    if refused := [one for one in told if one["error_code"] not in (0, _EXISTS)]:
        where = {one.name: one.where for one in topics.values()}
        raise ConfigError([f"{where[one['name']]}: {_refusal(one)}" for one in refused])
    return told


def _refusal(told: Mapping[str, Any]) -> str:
    from kafka import errors  # noqa: PLC0415

    why = told["error_message"] or errors.for_code(told["error_code"]).__name__
    if told["error_code"] == NOT_ALLOWED:
        why = "permission CREATE on it is missing"
    return f"the brokers do not create topic {told['name']}: {why}"
