"""Options: their declaration, and mistakes in the words of each front end.

An option is declared once, in the annotation of its field::

    half_life: Annotated[int | None, Option(key="calibrator.half_life", sentence="...")] = None

A mistake keeps the options that it names, so that a file, a variable, a flag and a call can each be
written as the user writes it.
"""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date, time
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec

from abers import validation
from abers.exceptions import ScoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "REMOVE",
    "REMOVE_KEY",
    "SET",
    "Front",
    "Option",
    "Part",
    "Phrase",
    "Problem",
    "Quoted",
    "Ref",
    "RefusedScoreError",
    "RefusedValueError",
    "ValueKind",
    "attributes",
    "declared",
    "named",
    "said",
    "shown",
    "variable",
    "written",
]

Front: TypeAlias = Literal["toml", "env", "flag", "python"]
"""Where options are written: a file, the environment, a command line, or a call."""

_MAX_SHOWN_CHARACTERS = 60  # of a value in a message
_NOTHING = msgspec.UNSET


class ValueKind(NamedTuple):
    """How values of a type are read; a part of the annotation of a field."""

    read: Callable[[Option, Any], Any] | None = None  # raises a RefusedValueError
    least: float | None = None
    most: float | None = None
    inner: bool = False  # whether the ends of the range are left out


@dataclass(frozen=True)
class Option:
    """The declaration of an option. `declared` fills in what the field says itself."""

    key: str = ""  # its dotted path in a configuration
    sentence: str = ""  # what it is; with `more` all that a file of examples says
    more: str = ""
    _: KW_ONLY
    flag: str | None = None
    metavar: str | None = None
    group: str | None = None  # of the help
    unit: str | None = None  # "ms" for a span of time
    least: float | None = None
    most: float | None = None
    inner: bool = False  # whether the ends of the range are left out
    example: Any = None  # a value to show if there is no default
    read: Callable[[Option, Any], Any] | None = None  # raises a RefusedValueError
    name: str = ""  # of the field
    kind: Any = field(default=None, repr=False)  # type of the field, without None
    optional: bool = False
    required: bool = False
    default: Any = _NOTHING  # UNSET if it is required, or depends on what is installed

    @property
    def choices(self) -> tuple[str, ...]:
        """Words that may be written, if only some may."""
        return tuple(_words(self.kind))

    def with_kind(self, kind: ValueKind | None, **changes: Any) -> Option:  # noqa: ANN401 - fields
        """Return the option with values of another kind, and other changes."""
        return replace(self, **({} if kind is None else kind._asdict()), **changes)


class Ref(NamedTuple):
    """An option in a message, and a value that it may be set to."""

    option: Option
    value: Any = _NOTHING


class Quoted(NamedTuple):
    """A value in a message."""

    value: Any


class Phrase(NamedTuple):
    """Words that differ: in a file or the environment, in a call, and on a command line."""

    toml: str
    python: str
    flag: str


REMOVE = Phrase("remove it", "leave it out", "leave it out")
REMOVE_KEY = Phrase("remove the key", "leave it out", "leave it out")
SET = Phrase("set ", "set ", "add ")

Part: TypeAlias = str | Ref | Quoted | Phrase


class Problem(NamedTuple):
    """A mistake in the value of an option."""

    option: Option
    text: tuple[Part, ...]
    at: tuple[int, ...] = ()  # the element of a list


class RefusedValueError(ValueError):
    """A value cannot be read; the text says why."""

    def __init__(self, *text: Part, at: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.text, self.at = text, at


class RefusedScoreError(ScoreError):
    """A score is not for a task; the text says why, and may name options."""

    def __init__(self, *text: Part) -> None:
        super().__init__(*text)
        self.text = text

    def __str__(self) -> str:
        """Return the text in the words of a call."""
        return said(self.text, "python")


def declared(kind: type[msgspec.Struct], section: str = "") -> dict[str, Option]:
    """Return the options of a class by the names of its fields.

    Without a key of its own an option has the name of its field, in a section.

    Examples
    --------
    >>> from abers.stream import Settings
    >>> declared(Settings)["half_life"].key
    'calibrator.half_life'
    """
    hints = get_type_hints(kind, include_extras=True)
    return {
        one.name: _completed(one, hints[one.name], section)
        for one in msgspec.structs.fields(kind)
        if any(isinstance(part, Option) for part in getattr(hints[one.name], "__metadata__", ()))
    }


def _completed(info: msgspec.structs.FieldInfo, hint: Any, section: str) -> Option:  # noqa: ANN401
    """Return an option with what its field says."""
    declaration = next(one for one in hint.__metadata__ if isinstance(one, Option))
    several = [one for one in get_args(hint.__origin__) if one is not NoneType]
    optional = NoneType in get_args(hint.__origin__)
    kind = several[0] if optional and len(several) == 1 else hint.__origin__
    parts = (*hint.__metadata__, *getattr(kind, "__metadata__", ()))
    reads = next((one for one in parts if isinstance(one, ValueKind)), None)
    return replace(
        declaration,
        key=declaration.key or f"{section}.{info.name}",
        name=info.name,
        kind=getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind,
        optional=optional,
        required=info.required,
        default=_NOTHING if info.default is msgspec.NODEFAULT else info.default,
    ).with_kind(reads)


def _words(kind: Any) -> Iterator[str]:  # noqa: ANN401 - any type
    """Yield the words of all literals in a type."""
    for one in get_args(kind):
        if isinstance(one, str):
            yield one
        else:
            yield from _words(one)


def attributes(options: Mapping[str, Option]) -> str:
    """Return the part of a docstring that says what each field of a class is."""
    names = {f"`{one.key}`": f"`{name}`" for name, one in options.items()}
    keys = re.compile("|".join(map(re.escape, names)))
    lines = ["Attributes", "----------"]
    for name, one in options.items():
        text = keys.sub(lambda key: names[key[0]], f"{one.sentence} {one.more}".strip())
        lines += [name, *textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


def variable(key: str) -> str:
    """Return the environment variable of a key.

    Examples
    --------
    >>> variable("input.label_fields.id")
    'ABERS_INPUT__LABEL_FIELDS__ID'
    """
    return f"ABERS_{key.replace('.', '__')}".upper()


def named(option: Option, front: Front) -> str:
    """Return the name of an option as a user writes it."""
    if front == "env":
        return variable(option.key)
    return {"flag": option.flag, "python": option.name}.get(front) or option.key


def written(value: object, front: Front = "toml") -> str:
    """Return a value much as a user writes it, in one line, shortened if it is long.

    Examples
    --------
    >>> written("7 days"), written(True), written([1, "a"]), written("7 days", "python")
    ('"7 days"', 'true', '[1, "a"]', "'7 days'")
    """
    if front == "python":
        return validation.shown(value)
    line = json.dumps(value, ensure_ascii=False, default=_text)
    return line if len(line) <= _MAX_SHOWN_CHARACTERS else f"{line[:_MAX_SHOWN_CHARACTERS]}…"


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date | time) else str(value)


def said(text: tuple[Part, ...], front: Front) -> str:
    """Return a text in the words of a front end."""
    return "".join(_part(one, front) for one in text)


def _part(part: Part, front: Front) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Quoted):
        return written(part.value, front)
    if isinstance(part, Phrase):
        return {"flag": part.flag, "python": part.python}.get(front, part.toml)
    name = named(part.option, front)
    found = name if part.value is _NOTHING else f"{name}{_setting(part, front)}"
    return f"{found} in a configuration" if front == "flag" and not part.option.flag else found


def _setting(ref: Ref, front: Front) -> str:
    """Return the value of an option, with what stands before it."""
    if front == "flag" and ref.option.flag:
        several = isinstance(ref.value, list | tuple)
        return f" {' '.join(map(str, ref.value)) if several else ref.value}"
    between = {"toml": " = ", "flag": " = "}.get(front, "=")
    return f"{between}{written(ref.value, front)}"


def shown(problem: Problem, front: Front) -> str:
    """Return a mistake in the words of a front end.

    Examples
    --------
    >>> from abers.stream import Settings
    >>> scores = declared(Settings)["scores"]
    >>> problem = Problem(scores, ("must be ", Quoted("any")))
    >>> shown(problem, "toml"), shown(problem, "flag"), shown(problem, "python")
    ('task.scores: must be "any"', '--scores: must be "any"', "scores: must be 'any'")
    """
    name = named(problem.option, front)
    if front == "toml":
        name = ".".join([name, *map(str, problem.at)])
    elif front == "python":
        name += "".join(f"[{one}]" for one in problem.at)
    return f"{name}: {said(problem.text, front)}"
