"""What may be wrong with the topics of an application, one look after the other.

Governing rule: each look knows one thing that goes wrong, and takes what the
brokers have told, so that it asks nothing itself and all are told at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers_connectors._config_moments import duration
from abers_connectors.kafka.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.config import Config

__all__ = [
    "CHANGELOG",
    "INPUTS",
    "LOOKS",
    "NEEDED",
    "NOT_ALLOWED",
    "NO_TOPIC",
    "Topic",
    "existence",
    "forgetting",
]

CHANGELOG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
}
"""What the changelog must be, or parts of the state are lost when nobody looks."""

INPUTS = ("observations", "labels")
NEEDED = {
    **dict.fromkeys(INPUTS, ("READ",)),
    **dict.fromkeys(("predictions", "outcomes", "dead_letters", "alerts"), ("WRITE",)),
    "changelog": ("READ", "WRITE"),
}
"""What we must be allowed to do with a topic, by its key in the configuration."""

NO_TOPIC, NOT_ALLOWED = 3, 29  # codes of Kafka's protocol
_HOUR = 3_600_000  # what brokers allow by default since Kafka 4
_LARGEST = 1 << 20  # bytes of a batch of records in the changelog


class Topic(NamedTuple):
    """A topic as the broker describes it.

    Parameters
    ----------
    where
        The key that names it in the configuration.
    name
        Its name.
    error
        The broker's code, 0 if it is there.
    partitions
        How many.
    allowed
        What we may do with it.
    settings
        Its settings; none if we may not see them.
    """

    where: str
    name: str
    error: int
    partitions: int
    allowed: frozenset[str]
    settings: Mapping[str, str]


Topics = dict[str, Topic]


def existence(topics: Topics, config: Config) -> Iterator[Finding]:
    """Look for topics that do not exist, or might."""
    from kafka import errors  # noqa: PLC0415

    del config
    for one in topics.values():
        if one.error == NO_TOPIC:
            mend = "create it, or have `abers run --create-topics` do so"
            yield Finding(one.where, f"there is no topic {one.name}; {mend}")
        elif one.error == NOT_ALLOWED:
            yield Finding(one.where, f"permission DESCRIBE on topic {one.name} is missing")
        elif one.error:
            name = errors.for_code(one.error).__name__
            yield Finding(one.where, f"topic {one.name} is not usable: {name}")


def _permissions(topics: Topics, config: Config) -> Iterator[Finding]:
    trims = config.state.path is not None and config.state.shared
    for role, one in topics.items():
        missing = [right for right in NEEDED[role] if right not in one.allowed]
        if one.error == 0 and missing:
            rights = " and ".join(missing)
            yield Finding(one.where, f"permission {rights} on topic {one.name} is missing")
        elif one.error == 0 and not one.settings:
            text = f"topic {one.name} cannot be checked: permission DESCRIBE_CONFIGS is missing"
            yield Finding(one.where, text, fatal=False)
        if one.error == 0 and role == "changelog" and trims and "DELETE" not in one.allowed:
            text = (
                f"permission DELETE on topic {one.name} is missing, with which it is shortened "
                "where state.shared = true; without it grows for ever"
            )
            yield Finding(one.where, text, fatal=False)


def _partitions(topics: Topics, config: Config) -> Iterator[Finding]:
    del config
    first = topics["observations"]
    for role, why in _ALIKE.items():
        one = topics.get(role)
        if one is None or one.error or first.error or one.partitions == first.partitions:
            continue
        counts = f"{one.partitions} partitions, and topic {first.name} has {first.partitions}"
        yield Finding(one.where, f"topic {one.name} has {counts}; {why}")


_ALIKE = {
    "labels": "a label meets its observation only where both have as many; recreate one of them",
    "changelog": (
        "each partition has its state in that of its number; after a change of the inputs, "
        "begin anew with another kafka.app"
    ),
}


def forgetting(topics: Topics, config: Config) -> Iterator[Finding]:
    """Look for a changelog that does not keep all that is written to it."""
    del config
    one = topics["changelog"]
    if not one.settings:
        return
    wrong = {key: value for key, value in CHANGELOG.items() if one.settings.get(key) != value}
    if int(one.settings["max.message.bytes"]) < _LARGEST:
        wrong["max.message.bytes"] = str(_LARGEST)
    if wrong:
        now = ", ".join(f"{key}={one.settings.get(key)}" for key in wrong)
        mend = ",".join(f"{key}={value}" for key, value in wrong.items())
        text = (
            f"topic {one.name} has {now}, with which state can be lost; run: kafka-configs.sh "
            f"--alter --entity-type topics --entity-name {one.name} --add-config {mend}"
        )
        yield Finding(one.where, text)


def _retention(topics: Topics, config: Config) -> Iterator[Finding]:
    """Look for inputs that forget what may not have been read."""
    wait = config.limits.label_wait
    for one in (topics[role] for role in INPUTS if role in topics):
        kept = int(one.settings.get("retention.ms", -1))
        if 0 <= kept < wait:
            text = (
                f"topic {one.name} keeps its records for {duration(kept)}, and limits.label_wait "
                f"is {duration(wait)}; state that is lost cannot be had again from the inputs, so "
                f"set retention.ms={wait} or more"
            )
            yield Finding(one.where, text, fatal=False)
        if "compact" in one.settings.get("cleanup.policy", ""):
            text = (
                f"topic {one.name} is compacted, and loses all but the last record of a key, maybe "
                "before they are read; set cleanup.policy=delete"
            )
            yield Finding(one.where, text, fatal=False)


def _times(topics: Topics, config: Config) -> Iterator[Finding]:
    """Look for outputs that would refuse the time of a record that an input has accepted."""
    del config
    inputs = [topics[role] for role in INPUTS if role in topics]
    outputs = [one for role, one in topics.items() if NEEDED[role] == ("WRITE",)]
    for side in ("before", "after"):
        key = f"message.timestamp.{side}.max.ms"
        accepted = max((int(one.settings[key]) for one in inputs if key in one.settings), default=0)
        for one in outputs:
            if int(one.settings.get(key, accepted)) < accepted:
                text = (
                    f"topic {one.name} has {key}={one.settings[key]}, less than an input's; "
                    f"outputs keep the times of their records, so set it to {accepted}"
                )
                yield Finding(one.where, text)


def _clocks(topics: Topics, config: Config) -> Iterator[Finding]:
    """Look for inputs that accept records of a producer whose clock is far ahead."""
    del config
    key = "message.timestamp.after.max.ms"
    for one in (topics[role] for role in INPUTS if role in topics):
        created = one.settings.get("message.timestamp.type") == "CreateTime"
        if created and int(one.settings.get(key, _HOUR)) > _HOUR:
            text = (
                f"topic {one.name} has {key}={one.settings[key]} and accepts records whose time is "
                "far ahead, which come after all others where inputs are merged; set it to "
                f"{_HOUR} or less"
            )
            yield Finding(one.where, text, fatal=False)


LOOKS: tuple[Callable[[Topics, Config], Iterator[Finding]], ...] = (
    existence,
    _permissions,
    _partitions,
    forgetting,
    _retention,
    _times,
    _clocks,
)
