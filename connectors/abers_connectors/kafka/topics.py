"""The topics of an application: what is missing or wrong with them.

Governing rule: looking changes nothing, and all that is found is told at once,
each in a sentence that says how to mend it.
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
    INPUTS,
    LOOKS,
    NEEDED,
    Topic,
    forgetting,
)
from abers_connectors.kafka.partitioning import misplaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from abers_connectors.config import Config, Kafka

__all__ = [
    "Finding",
    "admin_of",
    "check",
    "described",
    "identity",
    "require_keeping",
    "section",
]

_PATIENCE = 10_000  # ms for an answer


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
    kafka = section(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), admin_of(settings) as admin:
        topics = described(admin, kafka, NEEDED)
        found = [one for look in LOOKS for one in look(topics, config)]
        found += identity(admin, kafka)
        inputs = {one.where: one for one in topics.values() if one.where.endswith(INPUTS)}
        counts = {one.partitions for one in inputs.values()}
        legible = all("READ" in one.allowed and one.error == 0 for one in inputs.values())
        if keys and legible and len(counts) == 1:
            names = {where: one.name for where, one in inputs.items()}
            found += misplaced(settings, names, counts.pop())
    return found


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
    kafka = section(config)
    settings = client_settings(kafka, environ)
    with reaching(settings), admin_of(settings) as admin:
        found = [*forgetting(described(admin, kafka, ["changelog"]), config)]
    if found:
        raise ConfigError([*map(str, found)])


def section(config: Config) -> Kafka:
    """Give the section [kafka]; a ConfigError if there is none."""
    if config.kafka is None:
        raise ConfigError(["kafka: missing; topics are named in a section [kafka]"])
    return config.kafka


@contextmanager
def admin_of(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Open a client that manages topics, for a `with` block."""
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

    with KafkaAdminClient(
        **settings, bootstrap_timeout_ms=_PATIENCE, request_timeout_ms=_PATIENCE
    ) as admin:
        yield admin


def described(admin: Any, kafka: Kafka, roles: Iterable[str]) -> dict[str, Topic]:  # noqa: ANN401 - untyped
    """Ask the brokers for topics, by their keys in the section [kafka]."""
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

    names = {role: getattr(kafka, role) for role in roles if getattr(kafka, role) is not None}
    answers = {one["name"]: one for one in admin.describe_topics([*names.values()])}
    there = [name for name, one in answers.items() if one["error_code"] == 0]
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
            answers[name]["error_code"],
            len(answers[name]["partitions"]),
            frozenset(answers[name]["authorized_operations"] or ()),
            settings.get(name, {}),
        )
        for role, name in names.items()
    }


def identity(admin: Any, kafka: Kafka) -> Iterator[Finding]:  # noqa: ANN401 - untyped
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
