"""The types of configuration values.

Each type reads the forms that TOML can have. An error shows the value and says what to write
instead; values that may hold a password are not shown.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from abers.stream.cells import BadRecordError
from abers.stream.declarations import MAX_COUNT
from abers.stream.option import Option, Quoted, RefusedValueError, ValueKind
from abers.stream.option import written as shown
from abers.stream.option_values import read_text, read_value
from abers.stream.times import TimeReader
from abers_connectors.config.units import counted, duration, is_time, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DROP",
    "MAX_COUNT",
    "RUN_LENGTH",
    "Bootstrap",
    "CollectorUrl",
    "Count",
    "Delay",
    "Extensions",
    "Features",
    "File",
    "Label",
    "LabelValue",
    "LabelValues",
    "Lateness",
    "Moment",
    "Name",
    "Names",
    "Pause",
    "Port",
    "RegistryUrl",
    "Score",
    "Start",
    "TimeZone",
    "Topic",
    "Url",
    "Wait",
    "is_number",
    "read_span",
    "read_toml",
    "shown",
]

_HOUR = 3_600_000
_DURATIONS = '"250ms", "5s", "5m", "2h" or "7d"'
_TIMES = 'whole milliseconds since 1970, or RFC 3339 such as "2026-01-31T12:00:00Z"'
_MAX_TOPIC_CHARACTERS = 249  # the limit of Kafka
_NAME_PATTERN = re.compile(r"[\w.-]+", re.ASCII)
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.%]+\]):(\d{1,5})", re.ASCII)
_ALPHABETIC = re.compile(r"[A-Za-z]+")
_GRAPHIC = re.compile(r"[!-~]+")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_PORTS = range(1, 1 << 16)


class Lateness(NamedTuple):
    """How late a label comes after its observation; without either, at a time of its own."""

    observations: int | None = None  # a number of further observations of its model
    span: int | None = None  # milliseconds of event time

    def __str__(self) -> str:
        """Return it in words, such as "50 observations late" or "6 hours late"."""
        if self.observations is not None:
            return f"{counted(self.observations, 'observation')} late"
        return "at their own times" if self.span is None else f"{duration(self.span)} late"


def is_number(value: object) -> bool:
    """Return whether this is a finite number; true and false are not.

    >>> is_number(5), is_number(True), is_number(math.inf), is_number(10**400)
    (True, False, False, False)
    """
    try:
        return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _by(read: Callable[[Any], Any], message: str, *, quoted: bool = True) -> ValueKind:
    """Read a value by a function that returns None for what it cannot read."""

    def of(_: Option, value: Any) -> Any:  # noqa: ANN401 - any TOML value
        found = read(value)
        if found is None:
            raise RefusedValueError(*((Quoted(value), f" {message}") if quoted else (message,)))
        return found

    return ValueKind(of)


def _text(test: Callable[[str], bool], message: str) -> ValueKind:
    """Read a string that passes a test."""

    def of(option: Option, value: Any) -> Any:  # noqa: ANN401 - any TOML value
        if not test(found := read_text(option, value)):
            raise RefusedValueError(Quoted(value), f" {message}")
        return found

    return ValueKind(of)


_TOO_SHORT = f"must be longer than zero; write {_DURATIONS}"
_TOO_LONG = 'must be at most "1h"'


def read_span(option: Option, value: Any) -> int:  # noqa: ANN401 - any TOML value
    """Read a duration in the range of its option."""
    found = milliseconds(value)
    if found is None:
        words = f" is not a duration; write {_DURATIONS}, or a whole number of milliseconds"
        raise RefusedValueError(Quoted(value), words)
    if option.least and not found:
        raise RefusedValueError(_TOO_SHORT)
    if option.most is not None and found > option.most:
        raise RefusedValueError(_TOO_LONG)
    return found


def read_toml(option: Option, value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Read a value as configurations write it: like a setting, but for spans of time."""
    return (read_span if option.unit == "ms" else read_value)(option, value)


def _read_delay(value: object) -> Lateness | None:
    if isinstance(value, Lateness):
        return value
    if isinstance(value, int):
        return Lateness(observations=value) if is_time(value) else None
    span = milliseconds(value)
    return None if span is None else Lateness(span=span)


def _read_run_length(value: object) -> int | str | None:
    if isinstance(value, str):
        return value if milliseconds(value) else None
    counted = isinstance(value, int) and not isinstance(value, bool)
    return value if counted and 2 <= value <= MAX_COUNT else None  # type: ignore[operator, return-value]  # noqa: PLR2004 - one is no distance


def _read_features(value: object) -> str | tuple[str, ...] | None:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(map(_is_path, names)):
        return None
    return value if isinstance(value, str) else tuple(names)


def _read_score(value: object) -> object:
    paths = list(value.values()) if isinstance(value, dict) else [value]
    return value if paths and all(map(_is_path, paths)) else None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _read_extensions(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict) or not value or "auth" in value:
        return None
    good = all(
        isinstance(one, str) and _ALPHABETIC.fullmatch(name) and _GRAPHIC.fullmatch(one)
        for name, one in value.items()
    )
    return value if good else None


def _label_value(value: object) -> object:
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if finite or isinstance(value, str) else None


def _is_topic(name: str) -> bool:
    return (
        _NAME_PATTERN.fullmatch(name) is not None
        and name not in (".", "..")
        and len(name) <= _MAX_TOPIC_CHARACTERS
    )


def _read_label(value: object) -> str | None:
    # The ordinal of a pod is 0 in the environment, and means "0".
    name = str(value) if type(value) is int and value >= 0 else value
    # Topics are named after an application, so its own name must be shorter.
    short = isinstance(name, str) and _is_topic(name) and len(name) <= _MAX_TOPIC_CHARACTERS // 3
    return name if short else None  # type: ignore[return-value]


def _read_bootstrap(_: Option, value: object) -> tuple[str, ...]:
    # Several may stand in one string, with commas, as Kafka's own tools take them.
    given = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given or not all(map(_is_address, given)):
        words = " is not a broker address; write host and port, "
        hidden = "…@…" if "@" in str(value) else value  # a password may stand before the @
        many = (Quoted("localhost:9092"), ", or a list of these")
        raise RefusedValueError(Quoted(hidden), words, *many)
    return tuple(given)


def _is_address(value: object) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and int(found[1]) in _PORTS


def _read_moment(value: object) -> int | None:
    try:
        found = TimeReader().one(value)
    except BadRecordError:
        return None
    return found if found >= 0 else None  # negative times are codes of Kafka


def _read_start(value: object) -> object:
    return value if value in ("earliest", "latest") else _read_moment(value)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no relative path, a folder of zones
        return False
    return True


def _is_safe_url(value: object) -> bool:
    """Return whether this is a URL, encrypted unless on this machine, without a login."""
    if not _is_url(value):
        return False
    parts = urlsplit(str(value))
    return parts.scheme == "https" or parts.hostname in _LOCAL


def _is_url(value: object) -> bool:
    """Return whether this is a URL without a login."""
    if not isinstance(value, str) or _GRAPHIC.fullmatch(value) is None:
        return False
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and "@" not in parts.netloc and parts.scheme in ("http", "https")


def _read_labels(_: Option, value: Any) -> tuple[object, ...]:  # noqa: ANN401 - any TOML value
    if not isinstance(value, list | tuple):
        raise RefusedValueError(Quoted(value), " is not a list; write ", Quoted([value]))
    for at, one in enumerate(value):
        if _label_value(one) is None:
            raise RefusedValueError(Quoted(one), f" {_NO_LABEL}", at=(at,))
    return tuple(value)


_NO_LABEL = "is not a label; write a string, a number, true or false"
_SHORT = _MAX_TOPIC_CHARACTERS // 3

Count: TypeAlias = Annotated[int, ValueKind(least=1, most=MAX_COUNT)]
Pause: TypeAlias = Annotated[int, ValueKind(read_span, least=0, most=_HOUR)]
Wait: TypeAlias = Annotated[int, ValueKind(read_span, least=1, most=_HOUR)]
Delay: TypeAlias = Annotated[
    Lateness,
    _by(_read_delay, f"is not a delay; write a number of observations, or {_DURATIONS}"),
]
RUN_LENGTH = _by(
    _read_run_length,
    f"is not a run length; write a number of observations from 2 to {MAX_COUNT}, or a time such as "
    '"30d"',
)
Moment: TypeAlias = Annotated[int, _by(_read_moment, f"is not a time; write {_TIMES}")]
Start: TypeAlias = Annotated[
    Literal["earliest", "latest"] | int,
    _by(_read_start, f'is not a time; write "earliest", "latest", {_TIMES}'),
]
TimeZone: TypeAlias = Annotated[
    str,
    _text(
        _is_zone,
        'is not a known time zone; write a name such as "Europe/Berlin" or "UTC" '
        "(where the system has no time zones, install the package tzdata)",
    ),
]
Name: TypeAlias = str
Names: TypeAlias = tuple[str, ...]
File: TypeAlias = Annotated[
    str, _text(lambda path: "\0" not in path, "must not contain a null character")
]
Score: TypeAlias = Annotated[
    str | dict[str, str],
    _by(
        _read_score,
        'is not a field path; write one path, or one for each class: {cat = "p_cat"}',
    ),
]
Features: TypeAlias = Annotated[
    str | tuple[str, ...],
    _by(
        _read_features,
        'is not a field path; write one path, or a list of them: ["amount", "age"]',
    ),
]
Extensions: TypeAlias = Annotated[
    dict[str, str],
    _by(
        _read_extensions,
        "is not a section of extensions; write names of a-z and A-Z, and values without "
        'spaces: {logicalCluster = "lkc-1"}',
    ),
]
LabelValue: TypeAlias = Annotated[str | int | float, _by(_label_value, _NO_LABEL)]
LabelValues: TypeAlias = Annotated[tuple[str | int | float, ...], ValueKind(_read_labels)]
DROP = "drop"
"""What becomes of an observation without a label, instead of a label that is assumed."""
Bootstrap: TypeAlias = Annotated[tuple[str, ...], ValueKind(_read_bootstrap)]
Topic: TypeAlias = Annotated[
    str,
    _text(
        _is_topic,
        f"is not a topic name; use up to {_MAX_TOPIC_CHARACTERS} of a-z, A-Z, 0-9, dots, _ and -",
    ),
]
Label: TypeAlias = Annotated[
    str,
    _by(
        _read_label,
        f'is not a name; use up to {_SHORT} of a-z, A-Z, 0-9, dots, _ and -, such as "fraud-1"',
    ),
]
Port: TypeAlias = Annotated[int, ValueKind(least=0, most=65_535)]
Url: TypeAlias = Annotated[
    str,
    _by(
        lambda value: value if _is_safe_url(value) else None,
        "must be a URL that begins with https://, or with http:// on this machine, and has no "
        "user and password",
        quoted=False,
    ),
]


def _service_url(example: str) -> ValueKind:
    return _by(
        lambda value: value if _is_url(value) and not urlsplit(value).query else None,
        f"must be a URL such as {shown(example)}, without user, password and query",
        quoted=False,
    )


RegistryUrl: TypeAlias = Annotated[str, _service_url("https://registry:8081")]
CollectorUrl: TypeAlias = Annotated[str, _service_url("http://localhost:4318")]
