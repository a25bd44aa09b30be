"""Rules between the keys of a service, and between these and the keys for files.

A key that would have no effect is refused, not ignored: files or topics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from abers.stream.fields import constant
from abers.stream.option import REMOVE, SET, Quoted
from abers_connectors.config.kafka_sections import NAMED_AFTER_APPLICATION
from abers_connectors.config.options import option
from abers_connectors.config.raw_values import INPUTS, OUTPUTS
from abers_connectors.config.sections import default_client
from abers_connectors.config.security_rules import security_conflicts
from abers_connectors.config.units import milliseconds
from abers_connectors.config.value_types import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Part
    from abers_connectors.config.raw_values import Found, RawValues

__all__ = ["kafka_conflicts"]

_REMOVED = {
    "input.delay": "labels in topics are records, so remove it",
    "input.delimiter": "no topic has CSV, so remove it",
}
_NOT_SERVED = (
    *("input.observations", "input.labels", "input.fields", "input.label_fields", "input.delay"),
    *("output", "state.path"),
)
_TOPICS_ONLY = ("state.shared", "state.retain", "http", "telemetry")
_TOPIC_KEYS = ("observations", "labels", "predictions", "outcomes", "dead_letters", "alerts")
_RECORD = re.compile(r"record:(?:key|timestamp|header:.+)")
_OF_ROW = {"id": "key", "time": "timestamp"}
_URL_WITH_LOGIN = re.compile(r"\w+://[^/@]*:[^/@]*@.*", re.DOTALL)


def kafka_conflicts(values: RawValues) -> Found:
    """Return the contradictions in the sections of a service, and the keys that need one."""
    yield from _paths(values)
    yield from _alarms(values)
    if values.get("http.keyfile") is not None and values.get("http.certfile") is None:
        yield "http.keyfile", ("needs a certificate; ", SET, values.ref("http.certfile"))
    if values.get("kafka") is None:
        yield from _without_kafka(values)
        return
    if values.get("serve") is not None:
        yield "serve", "is without topics; remove the section [serve], or [kafka]"
    yield from _files_only(values)
    for check in (_topics, _routing, _group_protocol, _timeouts, security_conflicts):
        yield from check(values)
    if any(map(_URL_WITH_LOGIN.fullmatch, values.names("state.path").values())):
        yield "state.path", "contains a password; the storage reads it from the environment"


def _files_only(values: RawValues) -> Found:
    for path in (*INPUTS, *OUTPUTS):
        if values.get(path) is not None:
            other = values.ref(f"kafka.{path.partition('.')[2]}")
            yield path, ("applies only to files; with [kafka], ", SET, other, " instead")
    for path, problem in _REMOVED.items():
        if values.get(path) is not None:
            yield path, f"applies only to files; {problem}"


def _alarms(values: RawValues) -> Found:
    """Refuse a receiver of alarms if no alarm can be raised."""
    switches = ("monitoring.enabled", "monitoring.tests")
    off = [path for path in switches if values.get(path) is False]
    for path in ("kafka.alerts", "alerts.webhook"):
        if off and values.get(path) is not None:
            why = ("never gets an alarm, because ", values.ref(off[0], False))  # noqa: FBT003
            yield path, (*why, "; remove one of the two")


def _without_kafka(values: RawValues) -> Found:
    given, served = values.get("input"), values.get("serve") is not None
    lacks = values.get("input.observations") is None and not served
    if lacks and (given is None or isinstance(given, Mapping)):
        yield (
            "input.observations",
            'is missing; write a file, "-" for standard input, or topics in a section [kafka]',
        )
    if values.get("serve.learner") is not None:
        yield from _served_learner(values)
    for path in _NOT_SERVED if served else ():
        if values.get(path) is not None:
            yield path, "has no effect in a server, with a section [serve]; remove it"
    for path in _TOPICS_ONLY:
        if values.get(path) is not None and not (served and path == "http"):
            yield path, "applies only to topics, in a section [kafka]; remove it"


def _served_learner(values: RawValues) -> Found:
    """Yield why the learner of a server cannot be used."""
    if values.get("learner") is not None:
        yield "serve.learner", "is a second learner; remove it, or the section [learner]"
    if values.get("task.kind") not in {None, "binary"}:
        yield "serve.learner", ("is for the task ", Quoted("binary"), "; ", REMOVE)


def _topics(values: RawValues) -> Found:
    """Yield topics that have two roles."""
    app = values.get("kafka.application_id")
    routes = values.get("kafka.route_by") is not None
    own = {key: one for key, one in NAMED_AFTER_APPLICATION.items() if routes or key != "routed"}
    names = {name: values.get(f"kafka.{name}") for name in dict.fromkeys((*_TOPIC_KEYS, *own))}
    for name, suffix in own.items():
        names[name] = names[name] or f"{app if isinstance(app, str) else 'abers'}.{suffix}"
    seen: dict[str, str] = {}
    for name, topic in names.items():
        if not isinstance(topic, str) or not topic:
            continue
        if other := seen.get(topic):
            remedy: tuple[Part, ...] = ("; name another topic",)
            if (other, name) == ("observations", "labels"):
                remedy = ("; if it holds both, remove ", values.ref("kafka.labels"))
            is_other = (Quoted(topic), " is already ", values.ref(f"kafka.{other}"))
            yield f"kafka.{name}", (*is_other, *remedy)
        seen.setdefault(topic, name)


def _routing(values: RawValues) -> Found:
    """Yield keys of a router without one, and inputs that it cannot route alike."""
    if values.get("kafka.route_by") is None:
        if values.get("kafka.routed") is not None:
            yield "kafka.routed", ("needs ", values.ref("kafka.route_by", "model"))
        return
    model = values.get("input.fields.model")
    of_labels = values.get("input.label_fields.model") or model
    if not (_is_text(model) and _is_text(of_labels)):
        return
    if (constant(model or "") is None) != (constant(of_labels or "") is None):
        fields = (values.ref("input.fields.model"), " and ", values.ref("input.label_fields.model"))
        why = ("routes a label by its model, and ", *fields)
        yield "kafka.route_by", (*why, " name a constant and a field; write the same in both")


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _group_protocol(values: RawValues) -> Found:
    """Yield keys that the group protocol of KIP-848 does not have."""
    path, name = "kafka.group_protocol", "consumer"
    if values.get(path) != name:
        return
    if (values.get("kafka.client") or default_client()) != "librdkafka":
        yield path, (Quoted(name), " needs ", values.ref("kafka.client", "librdkafka"))
    if values.get("kafka.session_timeout") is not None:
        why = f"with {shown(name)} the brokers set the consumer.session.timeout.ms of the group"
        classic = values.ref(path, "classic")
        text = ("applies only to ", classic, f": {why}; ", REMOVE)
        yield "kafka.session_timeout", text


def _timeouts(values: RawValues) -> Found:
    def timeout(name: str) -> int | None:
        given = values.get(f"kafka.{name}")
        return milliseconds(option(f"kafka.{name}").default if given is None else given)

    stall, transaction = timeout("stall_timeout"), timeout("transaction_timeout")
    if stall is not None and transaction is not None and stall <= transaction:
        longer = ("must be longer than ", values.ref("kafka.transaction_timeout"))
        yield "kafka.stall_timeout", longer


def _paths(values: RawValues) -> Found:
    """Check the fields that are read from the key, the timestamp or the headers of a record."""
    topics = values.get("kafka") is not None
    for section in ("input.fields", "input.label_fields"):
        given = values.get(section)
        for name, paths in given.items() if isinstance(given, Mapping) else ():
            for path in _strings(paths):
                if problem := _path(name, path, topics=topics):
                    yield f"{section}.{name}", problem


def _strings(paths: object) -> Iterator[str]:
    """Return the paths of a key: one, a list, or one for each class."""
    several = [*paths.values()] if isinstance(paths, Mapping) else paths
    listed = several if isinstance(several, list | tuple) else [several]
    yield from (one for one in listed if isinstance(one, str))


def _path(name: str, path: str, *, topics: bool) -> str | None:
    if path.startswith("record:"):
        if _RECORD.fullmatch(path) is None:
            forms = '"record:key", "record:timestamp" or "record:header:NAME"'
            return f"{shown(path)} is not a part of a record; write {forms}"
        if not topics:
            return f"{shown(path)} applies only to topics; without [kafka], name a field"
    if topics and path == "row" and name in _OF_ROW:
        return f'"row" applies only to files; name a field, or write "record:{_OF_ROW[name]}"'
    return None
