"""The kinds of values that the sections of a service have.

Governing rule: what Kafka would refuse is refused here, with a sentence that
shows how to write it; its own words come too late, and name no key.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PlainValidator

from abers_connectors._config_types import Duration, Span, refuse, shown
from abers_connectors.records import BadRecordError
from abers_connectors.values import time

__all__ = ["Bootstrap", "Label", "Moment", "Pause", "Port", "Start", "Topic", "Url", "Wait"]

_HOUR = 3_600_000
_LONGEST = 249  # characters of a topic, which its folders are named after
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.%]+\]):(\d{1,5})", re.ASCII)
_GRAPHIC = re.compile(r"[!-~]+")
_HERE = ("localhost", "127.0.0.1", "::1")
_PORTS = range(1, 1 << 16)
_WHEN = 'whole milliseconds since 1970, or RFC 3339 such as "2026-01-31T12:00:00Z"'


def _topic(name: str) -> str:
    if not _is_label(name) or len(name) > _LONGEST:
        refuse(name, "is no name of a topic; write up to 249 letters, digits, dots, _ and -")
    return name


def _is_label(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def _label(value: Any) -> str:  # noqa: ANN401 - whatever TOML holds
    # The ordinal of a pod comes from the environment as 0, and means "0".
    name = str(value) if type(value) is int and value >= 0 else value
    if not isinstance(name, str) or not _is_label(name) or len(name) > _LONGEST // 3:
        refuse(value, 'is no short name; write letters, digits, dots, _ and -, such as "fraud-1"')
    return name


def _bootstrap(value: Any) -> tuple[str, ...]:  # noqa: ANN401
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given or not all(map(_is_address, given)):
        told = "…@…" if "@" in str(value) else value  # what stands before it may be a password
        refuse(told, 'is no broker; write host and port, "localhost:9092", or a list of such')
    return tuple(given)


def _is_address(value: object) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and int(found[1]) in _PORTS


def _moment(value: Any) -> int:  # noqa: ANN401
    found = _time(value)
    if found is None:
        refuse(_text(value), f"is no time; write {_WHEN}")
    return found


def _start(value: Any) -> Literal["earliest", "latest"] | int:  # noqa: ANN401
    if value in ("earliest", "latest"):
        word: Literal["earliest", "latest"] = value
        return word
    found = _time(value)
    if found is None:
        refuse(_text(value), f'is no time; write "earliest", "latest", {_WHEN}')
    return found


def _time(value: object) -> int | None:
    try:
        found = time(value)
    except BadRecordError:
        return None
    return found if found >= 0 else None  # Kafka gives negative times meanings of its own


def _text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _at_most_an_hour(span: int) -> int:
    if span > _HOUR:
        refuse(f"{span}ms", f"is too long; write at most {shown('1h')}")
    return span


def _url(value: Any) -> str:  # noqa: ANN401
    if not _is_url(value):
        refuse(  # without the value, which may be a secret
            "…",
            "is no address that alarms may be sent to; write one that begins with https://, or "
            "with http:// on this machine, and without user and password",
        )
    url: str = value
    return url


def _is_url(value: object) -> bool:
    if not isinstance(value, str) or _GRAPHIC.fullmatch(value) is None:
        return False
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    near = parts.scheme == "http" and host in _HERE
    return bool(host) and "@" not in parts.netloc and (near or parts.scheme == "https")


Bootstrap: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_bootstrap)]
Topic: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_topic)]
Label: TypeAlias = Annotated[str, PlainValidator(_label)]
Moment: TypeAlias = Annotated[int, PlainValidator(_moment)]
Start: TypeAlias = Annotated[Literal["earliest", "latest"] | int, PlainValidator(_start)]
Pause: TypeAlias = Annotated[Duration, AfterValidator(_at_most_an_hour)]
Wait: TypeAlias = Annotated[Span, AfterValidator(_at_most_an_hour)]
Url: TypeAlias = Annotated[str, PlainValidator(_url)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65_535)]
