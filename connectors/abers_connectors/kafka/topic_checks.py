"""Checks of an application's topics and permissions, and the creation of topics.

A check changes nothing. All findings are reported at once, each in a sentence that says how to fix
it. Each function in `CHECKS` finds one kind of mistake in what the brokers have described.

Missing topics are created; existing topics do not change. A service that creates its topics at its
start creates all that are missing, or none.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ConfigError, StateError
from abers_connectors.config.values import duration
from abers_connectors.kafka.connection import TIMEOUT, client_settings, open_admin
from abers_connectors.kafka.topics import (
    CHANGELOG,
    INPUTS,
    NEEDED,
    NO_TOPIC,
    NOT_AUTHORIZED,
    ROUTED,
    Finding,
    copartition_findings,
    describe_topics,
)
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.model_routes import ModelRouting
from abers_connectors.runtime.slots import SLOTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.kafka.topics import Topic

    Topics = Mapping[str, Topic]

__all__ = [
    "MAX_BATCH_BYTES",
    "changelog_findings",
    "check",
    "create_generation",
    "create_topics",
    "create_topics_if",
    "existence_findings",
    "permission_findings",
    "require_durable",
    "routed_findings",
    "times_findings",
]

_LARGEST = "max.message.bytes"
_USUAL_LARGEST = 1_048_588  # the default of brokers, assumed of inputs that do not exist yet
_ORIGIN_BYTES = 1 << 12  # for the header that a router adds, as sizes are estimated
_KEEPS_TIMES = [*(role for role, rights in NEEDED.items() if rights == ("WRITE",)), "routed"]
_HOUR = 3_600_000  # the default of brokers since Kafka 4

MAX_BATCH_BYTES = 1 << 20
"""Bytes of the largest batch of records that a service sends."""


def existence_findings(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find topics that do not exist, or that we may not see."""
    from kafka import errors  # noqa: PLC0415

    del config
    for one in topics.values():
        if one.error == NO_TOPIC:
            fix = "create it, or let `abers run --create-topics` create it"
            yield Finding(one.where, f"there is no topic {one.name}; {fix}")
        elif one.error == NOT_AUTHORIZED:
            yield Finding(one.where, f"permission DESCRIBE on topic {one.name} is missing")
        elif one.error:
            name = errors.for_code(one.error).__name__
            yield Finding(one.where, f"topic {one.name} cannot be used: {name}")


def permission_findings(topics: Topics, config: Config) -> Iterator[Finding]:
    """Yield missing permissions on the topics."""
    trims = config.state.path is not None and config.state.shared
    for role, one in topics.items():
        missing = [right for right in NEEDED[role] if right not in one.allowed]
        if one.error == 0 and missing:
            rights = " and ".join(missing)
            yield Finding(one.where, f"permission {rights} on topic {one.name} is missing")
        elif one.error == 0 and not one.settings:
            text = f"topic {one.name} cannot be checked: permission DESCRIBE_CONFIGS is missing"
            yield Finding(one.where, text, fatal=False)
        uses = {"changelog": "state.shared = true uses" if trims else "", "routed": "tasks use"}
        if one.error == 0 and uses.get(role) and "DELETE" not in one.allowed:
            text = (
                f"permission DELETE on topic {one.name} is missing, which {uses[role]} "
                "to trim it; without it the topic grows without bound"
            )
            yield Finding(one.where, text, fatal=False)


def _partitions(topics: Topics, config: Config) -> Iterator[Finding]:
    first, alike = topics["observations"], _COPARTITIONED
    if config.finds_models:
        yield from _unlike(topics, first, {"labels": _BY_ID})
    if "routed" in topics:
        first, alike = topics["routed"], _OF_TASKS
        if first.partitions > SLOTS:
            text = f"topic {first.name} has {first.partitions} partitions; at most {SLOTS} are used"
            yield Finding(first.where, text)
    yield from _unlike(topics, first, alike)


def _rescaled(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find a number of partitions in the configuration that tasks do not have."""
    wanted, one = kafka_section(config).partitions, topics.get("routed")
    if wanted is None or one is None or one.error or one.partitions == wanted:
        return
    text = (
        f"{wanted:,} partitions are wanted, but topic {one.name} has {one.partitions:,}, as before;"
        f" to change that, run `abers state rescale CONFIG --partitions {wanted}`"
    )
    yield Finding("kafka.partitions", text, fatal=False)


def _unlike(topics: Topics, first: Topic, alike: Mapping[str, str]) -> Iterator[Finding]:
    """Find topics that do not have as many partitions as `first`, and say why they must."""
    for role, why in alike.items():
        one = topics.get(role)
        if one is None or one.error or first.error or one.partitions == first.partitions:
            continue
        counts = f"{one.partitions} partitions, and topic {first.name} has {first.partitions}"
        yield Finding(one.where, f"topic {one.name} has {counts}; {why}")


_COPARTITIONED = {
    "labels": "a label meets its observation only if both have equally many; recreate one of them",
    "changelog": (
        "each input partition has its state in the changelog partition of the same number; after "
        "a change of the inputs, start again with another kafka.application_id"
    ),
}


_BY_ID = (
    "a router finds the model of a label by its id only if both have equally many; recreate one of "
    "them, or let labels name their model (input.label_fields.model)"
)
_OF_TASKS = {
    "changelog": (
        "each partition of it has its state in the changelog partition of the same number; "
        "recreate the one that is empty"
    ),
}


def changelog_findings(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find settings of the changelog that can lose state."""
    del config
    yield from _losing(topics["changelog"], CHANGELOG, MAX_BATCH_BYTES, "state")


def routed_findings(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find settings of the routed topic that can lose records, or refuse a record of an input."""
    del config
    if "routed" in topics:
        least = largest_routed(topics)
        yield from _losing(topics["routed"], ROUTED, least, "records")


def largest_routed(topics: Topics) -> int:
    """Return the bytes of the largest record of the inputs, with its origin."""
    sizes = [int(one.settings.get(_LARGEST, 0)) for one in _inputs(topics)]
    return max([_USUAL_LARGEST, *sizes]) + _ORIGIN_BYTES


def _losing(one: Topic, required: Mapping[str, str], largest: int, what: str) -> Iterator[Finding]:
    """Find settings of a topic that can lose state or records, or refuse the largest record."""
    if not one.settings:
        return
    wrong = {key: value for key, value in required.items() if one.settings.get(key) != value}
    if int(one.settings[_LARGEST]) < largest:
        wrong[_LARGEST] = str(largest)
    if wrong:
        now = ", ".join(f"{key}={one.settings.get(key)}" for key in wrong)
        fix = ",".join(f"{key}={value}" for key, value in wrong.items())
        refused = "compact" in one.settings["cleanup.policy"]
        why = ", and its records are refused, as they have no keys" if refused else ""
        text = (
            f"topic {one.name} has {now}, with which {what} can be lost{why}; run: "
            f"kafka-configs.sh --alter --entity-type topics --entity-name {one.name} --add-config "
            f"{fix}"
        )
        yield Finding(one.where, text)


def _inputs(topics: Topics) -> list[Topic]:
    return [topics[role] for role in INPUTS if role in topics]


def _retention(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find inputs that delete records which may not have been read."""
    wait = config.settings().label_timeout
    for one in _inputs(topics):
        kept = int(one.settings.get("retention.ms", -1))
        if 0 <= kept < wait:
            text = (
                f"topic {one.name} keeps its records for {duration(kept)}, and "
                f"limits.label_timeout is {duration(wait)}; a lost state could not be rebuilt from "
                f"the inputs, so set retention.ms={wait} or more"
            )
            yield Finding(one.where, text, fatal=False)
        if "compact" in one.settings.get("cleanup.policy", ""):
            text = (
                f"topic {one.name} is compacted, which keeps only the last record of a key, "
                "perhaps before the others are read; set cleanup.policy=delete"
            )
            yield Finding(one.where, text, fatal=False)


def times_findings(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find outputs that would reject the timestamp of a record that an input accepted."""
    del config
    inputs = _inputs(topics)
    outputs = [one for role, one in topics.items() if role in _KEEPS_TIMES]
    for side in ("before", "after"):
        key = f"message.timestamp.{side}.max.ms"
        accepted = max((int(one.settings[key]) for one in inputs if key in one.settings), default=0)
        for one in outputs:
            if int(one.settings.get(key, accepted)) < accepted:
                text = (
                    f"topic {one.name} has {key}={one.settings[key]}, less than an input's; "
                    f"outputs keep the timestamps of their records, so set it to {accepted}"
                )
                yield Finding(one.where, text)


def _clocks(topics: Topics, config: Config) -> Iterator[Finding]:
    """Find inputs that accept records of a producer with a clock far ahead."""
    del config
    key = "message.timestamp.after.max.ms"
    for one in _inputs(topics):
        created = one.settings.get("message.timestamp.type") == "CreateTime"
        if created and int(one.settings.get(key, _HOUR)) > _HOUR:
            text = (
                f"topic {one.name} has {key}={one.settings[key]} and accepts records with a "
                "timestamp far ahead, which come after all others where inputs are merged; set "
                f"it to {_HOUR} or less"
            )
            yield Finding(one.where, text, fatal=False)


CHECKS: tuple[Callable[[Topics, Config], Iterator[Finding]], ...] = (
    existence_findings,
    permission_findings,
    _partitions,
    _rescaled,
    changelog_findings,
    routed_findings,
    _retention,
    times_findings,
    _clocks,
)


def check(
    config: Config, environ: Mapping[str, str] = os.environ, *, keys: bool = True
) -> list[Finding]:
    """Return the findings about all topics of a configuration, in the order of its keys.

    With `keys`, a sample of both inputs is read to compare the partitions of their keys.
    """
    kafka = kafka_section(config)
    settings = client_settings(kafka, environ)
    with open_admin(settings) as admin:
        topics = describe_topics(admin, kafka, NEEDED)
        found = [one for check in CHECKS for one in check(topics, config)]
        found += identity_findings(admin, kafka)
        inputs = {one.where: one for one in topics.values() if one.where.endswith(INPUTS)}
        counts = {one.partitions for one in inputs.values()}
        readable = all("READ" in one.allowed and one.error == 0 for one in inputs.values())
        by_keys = kafka.route_by is None or config.finds_models
        if keys and readable and len(counts) == 1 and by_keys:
            names = {where: one.name for where, one in inputs.items()}
            models = ModelRouting(config, 1, environ).models
            found += copartition_findings(
                settings, names, counts.pop(), models, routed=config.finds_models
            )
    return found


def require_durable(config: Config, environ: Mapping[str, str] = os.environ) -> int:
    """Raise a ConfigError if a setting of the changelog or of the routed topic can lose records.

    A topic that does not exist, or has settings that we may not see, passes. Returns the bytes of
    the largest record that a router may have to write.
    """
    kafka = kafka_section(config)
    with open_admin(client_settings(kafka, environ)) as admin:
        topics = describe_topics(admin, kafka, ["changelog", "routed", *INPUTS])
        found = [*changelog_findings(topics, config), *routed_findings(topics, config)]
    if found:
        raise ConfigError([*map(str, found)])
    return largest_routed(topics)


def identity_findings(admin: Any, kafka: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - untyped
    """Check the permissions to join the group and to write in transactions."""
    from kafka import errors  # noqa: PLC0415

    from abers_connectors.kafka.client_errors import retried  # noqa: PLC0415 - it needs the extra

    group, process = kafka.application_id, kafka.group_instance_id
    names = {"kafka.application_id": [group], "kafka.group_instance_id": [f"{group}-{process}"]}
    if kafka.route_by is not None:
        for many in names.values():
            many.append(f"{many[0]}-router")
    asked = {
        "kafka.application_id": ("READ on group", admin.describe_groups),
        "kafka.group_instance_id": ("WRITE on transactional id", admin.describe_transactions),
    }
    for where, name in ((where, name) for where, many in names.items() for name in many):
        what, ask = asked[where]
        try:
            retried(partial(ask, [name]), TIMEOUT)
        except errors.AuthorizationError:
            yield Finding(where, f"permission {what} {name} is missing")
        except (errors.GroupIdNotFoundError, errors.TransactionalIdNotFoundError):
            continue  # the first start creates it


_TASKS = 16  # partitions of the routed topic: with many more, a commit takes long
_EXISTS = 36  # error code of Kafka's protocol


def create_topics(config: Config, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Create the topics of a configuration that do not exist, and return their names.

    New topics get as many partitions as an existing input. Without one, `kafka.partitions` sets
    the number, and without that the brokers do. With routers, the routed topic and the changelog
    get `kafka.partitions`, by default 16. Raises a ConfigError if the brokers reject a topic.
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
    """Create the routed topic and the changelog of a configuration, with so many partitions.

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
