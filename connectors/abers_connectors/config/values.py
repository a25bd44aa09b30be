"""The types of configuration values, and values as text.

Each type reads the forms that TOML can have. An error shows the value and says what to write
instead; values that may hold a password are not shown.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from abers.exceptions import ConfigError
from abers.stream.cells import BadRecordError
from abers.stream.option import (
    MAX_COUNT,
    Option,
    Quoted,
    RefusedValueError,
    ValueKind,
    declared,
    read_all,
    read_text,
    read_value,
    shown,
    written,
)
from abers.stream.settings import LARGEST_TIME
from abers.stream.times import TimeReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    "Section",
    "Start",
    "TimeZone",
    "Topic",
    "Url",
    "Wait",
    "counted",
    "duration",
    "key",
    "milliseconds",
    "moment",
    "read_toml",
    "section_options",
    "written_value",
]

_UNITS = {
    "d": (86_400_000, "day"),
    "h": (3_600_000, "hour"),
    "m": (60_000, "minute"),
    "s": (1000, "second"),
    "ms": (1, "millisecond"),
}
# int() refuses thousands of digits, and far fewer are too large already.
_DURATION_PATTERN = re.compile(rf"(\d{{1,60}})({'|'.join(_UNITS)})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_time(value: object) -> bool:
    """Return whether this is a whole number of milliseconds, up to `LARGEST_TIME`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_TIME


def milliseconds(value: object) -> int | None:
    """Read a duration; return None for anything else.

    >>> milliseconds("5m"), milliseconds(250), milliseconds("soon")
    (300000, 250, None)
    """
    if isinstance(value, str) and (found := _DURATION_PATTERN.fullmatch(value)):
        value = int(found[1]) * _UNITS[found[2]][0]
    return value if isinstance(value, int) and is_time(value) else None


def duration(span: int) -> str:
    """Write a duration in its largest whole unit.

    >>> duration(604_800_000), duration(60_000), duration(1_500), duration(0)
    ('7 days', '1 minute', '1,500 milliseconds', '0 seconds')
    """
    if span == 0:
        return "0 seconds"
    size, unit = next((size, unit) for size, unit in _UNITS.values() if span % size == 0)
    return counted(span // size, unit)


def short_duration(span: int) -> str:
    """Write a duration as configurations do, in its largest whole unit.

    >>> short_duration(604_800_000), short_duration(10), short_duration(0)
    ('7d', '10ms', '0s')
    """
    units = {short: size for short, (size, _) in _UNITS.items() if span % size == 0}
    short = next(iter(units)) if span else "s"
    return f"{span // _UNITS[short][0]}{short}"


def counted(number: int, noun: str) -> str:
    """Write a number and its noun.

    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def moment(time: int) -> str:
    """Write a time in milliseconds since 1970 as RFC 3339, if the calendar has it.

    >>> moment(1_700_000_000_000), moment(2**62)
    ('2023-11-14T22:13:20.000Z', '4611686018427387904 ms')
    """
    try:
        found = _EPOCH + timedelta(milliseconds=time)
    except OverflowError:
        return f"{time} ms"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
        f"must be a URL such as {written(example)}, without user, password and query",
        quoted=False,
    )


RegistryUrl: TypeAlias = Annotated[str, _service_url("https://registry:8081")]
CollectorUrl: TypeAlias = Annotated[str, _service_url("http://localhost:4318")]


_LONG = 10_000  # whole numbers with separators


def written_value(option: Option, value: Any) -> str:  # noqa: ANN401 - of any option
    """Return a value that was read, as TOML has it.

    >>> from abers_connectors.config.layers import option
    >>> written_value(option("limits.label_timeout"), 604_800_000)
    '"7d"'
    """
    if isinstance(value, dict):
        pairs = (f"{name} = {json.dumps(inner)}" for name, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Lateness):
        value = value.observations if value.span is None else short_duration(value.span)
    if type(value) is not int:
        return json.dumps(value, ensure_ascii=False)
    if option.unit == "ms" or option.read is read_span:
        return f'"{short_duration(value)}"'
    return f"{value:_}" if value >= _LONG else str(value)


def key(sentence: str, more: str = "", **rest: Any) -> Option:  # noqa: ANN401 - see `Option`
    """Return the declaration of an option that is named after its field."""
    return Option("", sentence, more, **rest)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a configuration; values are read like those of a file."""

    intro: ClassVar[str] = ""  # what the example says first

    def __post_init__(self) -> None:
        """Read the values that are no defaults; raise a ConfigError for mistakes."""
        options = section_options(type(self), "")
        values = {name: getattr(self, name) for name in options}
        given = {name: one for name, one in values.items() if one != options[name].default}
        read, problems = read_all({name: options[name] for name in given}, given, read_toml)
        if problems:
            raise ConfigError([shown(one, "python") for one in problems])
        for name, value in read.items():
            msgspec.structs.force_setattr(self, name, value)


@cache
def section_options(kind: type[Section], path: str) -> Mapping[str, Option]:
    """Return the options of a section by the names of its fields."""
    return declared(kind, path)
