"""The topics of an application: what is missing or wrong with them, and their creation.

Governing rule: looking changes nothing, and all that is found is told at once,
each in a sentence that says how to mend it; creating makes what is missing, and
changes nothing that is there.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError
from abers_connectors.kafka.client_settings import client_settings, reaching
from abers_connectors.kafka.finding import Finding
from abers_connectors.kafka.looks import (
    CHANGELOG,
    INPUTS,
    LOOKS,
    NEEDED,
    NO_TOPIC,
    NOT_ALLOWED,
    Topic,
    existence,
    forgetting,
)
from abers_connectors.kafka.partitioning import misplaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abers_connectors.config import Config, Kafka

__all__ = ["Finding", "check", "create", "require_keeping"]

_PATIENCE = 10_000  # ms for an answer
_EXISTS = 36  # a code of Kafka's protocol


def check(
    config: Config, environ: Mapping[str, str] = os.environ, *, keys: bool = True
) -> list[Finding]:
    """Look at all topics of a configuration.

    Parameters
    ----------
    config
        With a section [kafka].
    environ
        Where the passwords are.
    keys
        Whether to read a sample of both inputs, and compare where their keys lie.

    Returns
    -------
    list
        All that is wrong, in the order of the configuration's keys; an empty one if nothing is.

    Raises
    ------
    BrokerError
        If no broker answers within ten seconds.
    ConfigError
        If the brokers cannot be reached with this configuration.
    """
    kafka = _kafka(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), _admin(settings) as admin:
        topics = _look(admin, kafka, NEEDED)
        found = [one for look in LOOKS for one in look(topics, config)]
        found += _identity(admin, kafka)
        inputs = {one.where: one for one in topics.values() if one.where.endswith(INPUTS)}
        counts = {one.partitions for one in inputs.values()}
        legible = all("READ" in one.allowed and one.error == 0 for one in inputs.values())
        if keys and legible and len(counts) == 1:
            names = {where: one.name for where, one in inputs.items()}
            found += misplaced(settings, names, counts.pop())
    return found


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
    kafka = _kafka(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), _admin(settings) as admin:
        topics = _look(admin, kafka, NEEDED)
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
        told = admin.create_topics(missing, raise_errors=False)["topics"]
        # Another process of the application may have been faster.
        if refused := [one for one in told if one["error_code"] not in (0, _EXISTS)]:
            where = {one.name: one.where for one in topics.values()}
            raise ConfigError([f"{where[one['name']]}: {_refusal(one)}" for one in refused])
        admin.wait_for_topics([*missing])
        return [one["name"] for one in told if one["error_code"] == 0]


def require_keeping(config: Config, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a changelog that does not keep all that is written to it.

    A service calls it when it starts; that of which the brokers do not tell us the settings is
    believed, and so is one that is not there.

    Parameters
    ----------
    config
        With a section [kafka].
    environ
        Where the passwords are.

    Raises
    ------
    BrokerError
        If no broker answers within ten seconds.
    ConfigError
        If a setting of the topic can lose state.
    """
    kafka = _kafka(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), _admin(settings) as admin:
        found = [*forgetting(_look(admin, kafka, ["changelog"]), config)]
    if found:
        raise ConfigError([*map(str, found)])


def _kafka(config: Config) -> Kafka:
    if config.kafka is None:
        raise ConfigError(["kafka: missing; topics are named in a section [kafka]"])
    return config.kafka


def _refusal(told: Mapping[str, Any]) -> str:
    from kafka import errors  # noqa: PLC0415

    why = told["error_message"] or errors.for_code(told["error_code"]).__name__
    if told["error_code"] == NOT_ALLOWED:
        why = "permission CREATE on it is missing"
    return f"the brokers do not create topic {told['name']}: {why}"


@contextmanager
def _admin(settings: Mapping[str, Any]) -> Iterator[Any]:
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

    with KafkaAdminClient(
        **settings, bootstrap_timeout_ms=_PATIENCE, request_timeout_ms=_PATIENCE
    ) as admin:
        yield admin


def _look(admin: Any, kafka: Kafka, roles: Iterable[str]) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

    names = {role: getattr(kafka, role) for role in roles if getattr(kafka, role) is not None}
    described = {one["name"]: one for one in admin.describe_topics([*names.values()])}
    there = [name for name, one in described.items() if one["error_code"] == 0]
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, None) for name in there]
    told = admin.describe_configs(resources, config_filter="all") if resources else {}
    settings = {
        name: {key: one["value"] for key, one in given.items()}
        for name, given in told.get("topic", {}).items()
    }
    return {
        role: Topic(
            f"kafka.{role}",
            name,
            described[name]["error_code"],
            len(described[name]["partitions"]),
            frozenset(described[name]["authorized_operations"] or ()),
            settings.get(name, {}),
        )
        for role, name in names.items()
    }


def _identity(admin: Any, kafka: Kafka) -> Iterator[Finding]:  # noqa: ANN401 - untyped
    """Look whether we may be a member of the group, and write in transactions."""
    from kafka import errors  # noqa: PLC0415

    from abers_connectors.kafka.client._common import patiently  # noqa: PLC0415 - it needs the extra

    for where, what, name, ask in (
        ("kafka.app", "READ on group", kafka.app, admin.describe_groups),
        (
            "kafka.instance",
            "WRITE on transactional id",
            f"{kafka.app}-{kafka.instance}",
            admin.describe_transactions,
        ),
    ):
        try:
            patiently(partial(ask, [name]), _PATIENCE / 1000)
        except errors.AuthorizationError:
            yield Finding(where, f"permission {what} {name} is missing")
        except (errors.GroupIdNotFoundError, errors.TransactionalIdNotFoundError):
            continue  # which the first start makes
