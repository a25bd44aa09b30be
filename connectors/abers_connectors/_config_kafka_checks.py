"""What the keys of a service say of one another, and of those for files.

Governing rule: a key that would have no effect is refused, not ignored; so files
and topics, TLS and no TLS, never stand in one configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from abers_connectors._config_kafka import Kafka
from abers_connectors._config_types import milliseconds, shown

if TYPE_CHECKING:
    from abers_connectors._config_values import Values

__all__ = ["service"]

Found: TypeAlias = Iterator[tuple[str, str]]

_OF_FILES = {
    "input.observations": "kafka.observations",
    "input.labels": "kafka.labels",
    "output.predictions": "kafka.predictions",
    "output.outcomes": "kafka.outcomes",
    "output.dead_letters": "kafka.dead_letters",
}
_OF_TOPICS = ("state.shared", "state.keep", "http")
_TOPICS = ("observations", "labels", "predictions", "outcomes", "dead_letters", "alerts")
_TLS, _SASL = ("SSL", "SASL_SSL"), ("SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS = ("PLAINTEXT", *_TLS, *_SASL)
_RECORD = re.compile(r"record:(?:key|timestamp|header:.+)")
_OF_ROW = {"id": "key", "time": "timestamp"}
_LOGIN = re.compile(r"\w+://[^/@]*:[^/@]*@.*", re.DOTALL)


def service(values: Values) -> Found:
    """Find what contradicts itself in the sections of a service, or goes with them only.

    Parameters
    ----------
    values
        Of the whole configuration.

    Yields
    ------
    tuple
        A dotted path, and what is wrong with it.
    """
    yield from _paths(values)
    yield from _alarms(values)
    if values.get("kafka") is None:
        yield from _without(values)
        return
    yield from _files(values)
    for check in (_topics, _times, _transport, _login, _place):
        yield from check(values)


def _alarms(values: Values) -> Found:
    """Refuse to tell alarms where none can come: nobody would miss them."""
    off = [f"monitoring.{name}" for name in ("enabled", "tests")]
    off = [path for path in off if values.get(path) is False]
    for path in ("kafka.alerts", "alerts.webhook"):
        if off and values.get(path) is not None:
            yield path, f"is told of alarms, and with {off[0]} = false there are none"


def _without(values: Values) -> Found:
    """Look at a configuration of files."""
    given = values.get("input")
    if values.get("input.observations") is None and (given is None or isinstance(given, Mapping)):
        yield (
            "input.observations",
            'missing; name a file, "-" for standard input, or topics in a section [kafka]',
        )
    for path in _OF_TOPICS:
        if values.get(path) is not None:
            yield path, "is for topics, which there are with a section [kafka]; leave it out"


def _files(values: Values) -> Found:
    for path, topic in _OF_FILES.items():
        if values.get(path) is not None:
            yield path, f"is for files; with [kafka] name a topic in {topic}, and leave it out"
    if values.get("input.format") is not None:
        yield "input.format", "is for files; the records of topics are JSON, so leave it out"
    if values.get("input.delay") is not None:
        yield "input.delay", "is for files; with [kafka] labels come as records, so leave it out"


def _topics(values: Values) -> Found:
    app = values.get("kafka.app")
    names = {name: values.get(f"kafka.{name}") for name in (*_TOPICS, "changelog")}
    for name, suffix in (("dead_letters", "dead-letters"), ("changelog", "changelog")):
        names[name] = names[name] or f"{app if isinstance(app, str) else 'abers'}.{suffix}"
    seen: dict[str, str] = {}
    for name, topic in names.items():
        if not isinstance(topic, str) or not topic:
            continue
        if other := seen.get(topic):
            mend = "name another topic"
            if (other, name) == ("observations", "labels"):
                mend = "if it holds both, leave kafka.labels out"
            yield f"kafka.{name}", f"{shown(topic)} is kafka.{other} already; {mend}"
        seen.setdefault(topic, name)


def _times(values: Values) -> Found:
    """Compare durations, once each of them is one."""
    watchdog, timeout = _span(values, "watchdog"), _span(values, "transaction_timeout")
    if watchdog is not None and timeout is not None and watchdog <= timeout:
        yield (
            "kafka.watchdog",
            "ends the process before kafka.transaction_timeout is over; make it longer",
        )


def _span(values: Values, name: str) -> int | None:
    given = values.get(f"kafka.{name}")
    default: int = Kafka.model_fields[name].default
    return default if given is None else milliseconds(given)


def _transport(values: Values) -> Found:
    protocol = _protocol(values)
    given = {name: values.get(f"kafka.security.{name}") for name in ("cafile", "certfile")}
    given["keyfile"] = values.get("kafka.security.keyfile")
    if protocol in _PROTOCOLS and protocol not in _TLS:
        given["check_hostname"] = values.get("kafka.security.check_hostname")
        for name in (name for name, value in given.items() if value not in (None, True)):
            mend = f"write protocol = {' or '.join(map(shown, _TLS))}"
            yield f"kafka.security.{name}", f"is for TLS; {mend}, or leave it out"
    elif given["keyfile"] is not None and given["certfile"] is None:
        yield "kafka.security.keyfile", "is that of a certificate; name it in certfile"


def _login(values: Values) -> Found:
    protocol = _protocol(values)
    for name, example in (("mechanism", "SCRAM-SHA-512"), ("username", "abers")):
        path = f"kafka.security.{name}"
        value = values.get(path)
        if protocol in _SASL and value is None:
            yield path, f"missing; protocol {shown(protocol)} needs one, such as {shown(example)}"
        elif protocol in _PROTOCOLS and protocol not in _SASL and value is not None:
            mend = f"write protocol = {shown('SASL_SSL')}"
            yield path, f"is for SASL; {mend}, or leave it out"


def _protocol(values: Values) -> object:
    found = values.get("kafka.security.protocol")
    return "PLAINTEXT" if found is None else found


def _place(values: Values) -> Found:
    if any(map(_LOGIN.fullmatch, values.texts("state.path").values())):
        yield "state.path", "holds a password; leave it to the environment, as the storage has it"


def _paths(values: Values) -> Found:
    """Look at what is read from the records of Kafka themselves."""
    topics = values.get("kafka") is not None
    for section in ("input.fields", "input.label_fields"):
        given = values.get(section)
        for name, path in given.items() if isinstance(given, Mapping) else ():
            for one in _texts(path):
                if problem := _path(name, one, topics=topics):
                    yield f"{section}.{name}", problem


def _texts(path: object) -> Iterator[str]:
    """Give the paths that a key has: one, a list, or one by class."""
    several = [*path.values()] if isinstance(path, Mapping) else path
    listed = several if isinstance(several, list | tuple) else [several]
    yield from (one for one in listed if isinstance(one, str))


def _path(name: str, path: str, *, topics: bool) -> str | None:
    if path.startswith("record:"):
        if _RECORD.fullmatch(path) is None:
            forms = '"record:key", "record:timestamp" or "record:header:NAME"'
            return f"{shown(path)} is no part of a record; write {forms}"
        if not topics:
            return f"{shown(path)} is for topics; without [kafka] name a field"
    if topics and path == "row" and name in ("id", "time"):
        return f'"row" is for files; name a field, or write "record:{_OF_ROW[name]}"'
    return None
