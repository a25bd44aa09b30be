"""The kinds of values that a configuration has beside plain numbers and words.

Governing rule: each is read by one function, which refuses what it cannot read
with a sentence that shows how to write it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from abers.stream.settings import LARGEST_TIME

__all__ = [
    "MOST",
    "Count",
    "Delay",
    "Duration",
    "Features",
    "File",
    "LabelValues",
    "Lateness",
    "Name",
    "Names",
    "Numbers",
    "Score",
    "Section",
    "Span",
    "is_number",
    "milliseconds",
    "refuse",
    "shown",
]

MOST = 2**31 - 1
"""No count is larger: the processor numbers what it holds with 32 bits."""

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(rf"(\d+)({'|'.join(_UNITS)})", re.ASCII)
_EXAMPLES = '"250ms", "5s", "5m", "2h" or "7d"'
_SHOWN = 60  # characters of a value in a message


class Section(BaseModel):
    """A section of a configuration: immutable, and without unknown keys."""

    # strict: 5 is no text, "5" is no number, and true is neither.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def shown(value: object) -> str:
    """Write a value much as TOML does, in one line, and cut if it is long.

    Examples
    --------
    >>> shown("7 days"), shown(True), shown([1, "a"])
    ('"7 days"', 'true', '[1, "a"]')
    """
    written = json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"


def refuse(value: object, advice: str) -> NoReturn:
    """Refuse a value with a sentence that begins with it."""
    what = {"value": shown(value), "advice": advice}
    raise PydanticCustomError("abers", "{value} {advice}", what)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_TIME


def milliseconds(value: Any) -> int | None:  # noqa: ANN401 - whatever TOML holds
    """Read a duration, up to `LARGEST_TIME`; None for anything else.

    Examples
    --------
    >>> milliseconds("5m"), milliseconds(250), milliseconds("soon")
    (300000, 250, None)
    """
    return value if _is_whole(value) else _written(value)


def _written(value: object) -> int | None:
    """Read a text such as "5m"."""
    # More digits than these are too large anyway, and int() refuses thousands of them.
    found = _DURATION.fullmatch(value) if isinstance(value, str) and len(value) < _SHOWN else None
    span = int(found[1]) * _UNITS[found[2]] if found else LARGEST_TIME + 1
    return span if span <= LARGEST_TIME else None


def _duration(value: Any) -> int:  # noqa: ANN401
    span = milliseconds(value)
    if span is None:
        refuse(value, f"is not a duration; write {_EXAMPLES}, or a whole number of milliseconds")
    return span


def _span(value: Any) -> int:  # noqa: ANN401
    span = _duration(value)
    if span == 0:
        refuse(value, f"is no time at all; write {_EXAMPLES}")
    return span


class Lateness(NamedTuple):
    """How late a label is, counted from its observation; one of the two is given.

    Parameters
    ----------
    observations
        So many further observations.
    span
        So many milliseconds of event time.
    """

    observations: int | None = None
    span: int | None = None


def _delay(value: Any) -> Lateness:  # noqa: ANN401
    if isinstance(value, Lateness):
        return value
    if _is_whole(value):
        return Lateness(observations=value)
    span = _written(value)
    if span is None:
        refuse(value, f"is not a delay; write a number of observations, or {_EXAMPLES}")
    return Lateness(span=span)


def _file(path: str) -> str:
    if "\0" in path:
        refuse(path, "is no path; leave out the null character")
    return path


def _features(value: Any) -> str | tuple[str, ...]:  # noqa: ANN401
    names = (value,) if isinstance(value, str) else value
    listed = isinstance(names, list | tuple) and len(names) > 0
    if not listed or not all(isinstance(name, str) and name for name in names):
        refuse(value, 'names no fields; write a path, or a list of them: ["amount", "age"]')
    return value if isinstance(value, str) else tuple(names)


def _score(value: Any) -> str | dict[str, str]:  # noqa: ANN401
    paths = list(value.values()) if isinstance(value, dict) else [value]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        refuse(value, 'names no field; write a path, or one by class: {cat = "p_cat"}')
    found: str | dict[str, str] = value
    return found


def _numbers(value: Any) -> tuple[float, ...]:  # noqa: ANN401
    if not isinstance(value, list | tuple) or not all(map(is_number, value)):
        refuse(value, "is not a list of finite numbers; write one such as [0.1, 0.5]")
    return tuple(map(float, value))


def is_number(value: object) -> bool:
    """Tell a finite number from anything else; true and false are none.

    Examples
    --------
    >>> is_number(5), is_number(True), is_number(math.inf), is_number(10**400)
    (True, False, False, False)
    """
    try:
        return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _label_value(value: Any) -> str | int | float:  # noqa: ANN401
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if not finite and not isinstance(value, str):
        refuse(value, "is not a label; write a text, a number, true or false")
    label: str | int | float = value
    return label


Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
Duration: TypeAlias = Annotated[int, PlainValidator(_duration)]
Span: TypeAlias = Annotated[int, PlainValidator(_span)]
Delay: TypeAlias = Annotated[Lateness, PlainValidator(_delay)]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Names: TypeAlias = Annotated[tuple[Name, ...], Field(strict=False)]
Numbers: TypeAlias = Annotated[tuple[float, ...], PlainValidator(_numbers)]
File: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_file)]
Score: TypeAlias = Annotated[str | dict[str, str], PlainValidator(_score)]
Features: TypeAlias = Annotated[str | tuple[str, ...], PlainValidator(_features)]
LabelValues: TypeAlias = Annotated[
    tuple[Annotated[str | int | float, PlainValidator(_label_value)], ...], Field(strict=False)
]
