"""Checks of an application's topics and permissions.

A check changes nothing. All findings are reported at once, each in a sentence that says how to fix
it. Each function in `CHECKS` finds one kind of mistake in what the brokers have described.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError
from abers_connectors.config.units import duration
from abers_connectors.kafka.connection import TIMEOUT, open_admin
from abers_connectors.kafka.copartition_check import copartition_findings
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topics import (
    CHANGELOG,
    INPUTS,
    NEEDED,
    NO_TOPIC,
    NOT_AUTHORIZED,
    ROUTED,
    Finding,
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
    "CHECKS",
    "MAX_BATCH_BYTES",
    "changelog_findings",
    "check",
    "existence_findings",
    "identity_findings",
    "largest_routed",
    "permission_findings",
    "require_durable",
    "routed_findings",
    "times_findings",
]

_LARGEST = "max.message.bytes"
_USUAL_LARGEST = 1_048_588  # of a topic by the default of brokers, as of inputs yet to be created
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
        f"{wanted:,} partitions are wanted, and topic {one.name} has {one.partitions:,}, as before;"
        f" to change that, run `abers state rescale CONFIG --partitions {wanted}`"
    )
    yield Finding("kafka.partitions", text, fatal=False)


def _unlike(topics: Topics, first: Topic, alike: Mapping[str, str]) -> Iterator[Finding]:
    """Find topics that have not as many partitions as another, each with why they must."""
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
    """Find settings of the routed topic that can lose records, or refuse one of an input."""
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
