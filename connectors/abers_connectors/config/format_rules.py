"""Rules between the formats of records, topics, and the schema registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from abers.stream.option import REMOVE, SET, Quoted
from abers_connectors.config.options import option
from abers_connectors.config.sections import FileFormat, TopicFormat
from abers_connectors.config.units import milliseconds
from abers_connectors.config.value_types import shown

if TYPE_CHECKING:
    from abers_connectors.config.raw_values import Found, RawValues

__all__ = ["format_conflicts"]

_FILE_FORMATS, _TOPIC_FORMATS = get_args(FileFormat), get_args(TopicFormat)
_REGISTERED = _TOPIC_FORMATS[1:]
_KEYS = ("input.format", "input.label_format", "output.format")


def format_conflicts(values: RawValues) -> Found:
    """Return formats of files for topics, and the reverse, and what needs the registry."""
    if values.get("kafka") is None:
        yield from _of_topics(values)
        return
    given = values.get("input.format")
    if given in _FILE_FORMATS:
        known = ", ".join(map(shown, _TOPIC_FORMATS))
        yield "input.format", f"{shown(given)} applies only to files; for topics write {known}"
    if values.get("input.label_format") is not None and values.get("kafka.labels") is None:
        needs = ("needs a second input; ", SET, values.ref("kafka.labels"))
        yield "input.label_format", needs
    registered = [path for path in _KEYS if values.get(path) in _REGISTERED]
    section = values.get("schema_registry")
    for path in registered if section is None else ():
        need = (" needs a schema registry; ", SET, values.ref("schema_registry.url"))
        yield path, (Quoted(values.get(path)), *need)
    if section is not None and not registered:
        known = ", ".join(map(shown, _REGISTERED))
        remedy = (SET, values.ref("input.format"), ", or ", REMOVE)
        yield "schema_registry", (f"is asked only for {known}; ", *remedy)
    if section is not None:
        yield from _login(values)
        yield from _timeout(values)


def _of_topics(values: RawValues) -> Found:
    """Yield what applies only to topics."""
    remedy = "applies only to topics, in a section [kafka]"
    given = values.get("input.format")
    if given in _TOPIC_FORMATS:
        known = ", ".join(map(shown, _FILE_FORMATS))
        yield "input.format", f"{shown(given)} {remedy}; for files write {known}"
    for path in ("input.label_format", "output.format", "schema_registry"):
        if values.get(path) is not None:
            yield path, f"{remedy}; remove it"


def _login(values: RawValues) -> Found:
    """Find a key of a login or of TLS that would have no effect."""

    def given(key: str) -> bool:
        return values.get(f"schema_registry.{key}") is not None

    url = values.get("schema_registry.url")
    if given("cafile") and isinstance(url, str) and url.startswith("http://"):
        yield "schema_registry.cafile", 'applies only to TLS; write "https://", or remove it'
    if given("token_file") and given("username"):
        both = ("cannot be combined with ", values.ref("schema_registry.username"))
        yield "schema_registry.token_file", (*both, "; remove one of them")
    if given("password_file") and not given("username"):
        needs = ("needs a user; ", SET, values.ref("schema_registry.username"))
        yield "schema_registry.password_file", needs


def _timeout(values: RawValues) -> Found:
    """Find a registry that may take longer than the process may be without progress."""

    def timeout(path: str) -> int | None:
        given = values.get(path)
        return milliseconds(option(path).default if given is None else given)

    stall, registry = timeout("kafka.stall_timeout"), timeout("schema_registry.timeout")
    if stall is not None and registry is not None and stall <= registry:
        shorter = ("must be shorter than ", values.ref("kafka.stall_timeout"))
        yield "schema_registry.timeout", shorter
