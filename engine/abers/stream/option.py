"""Options: declarations and values, rules between them, and mistakes in the words of a front end.

An option is declared once, in the annotation of its field::

    half_life: Annotated[int | None, Option(key="calibrator.half_life", sentence="...")] = None

A mistake keeps the options that it names, so that a file, a variable, a flag and a call can each be
written as the user writes it. A value that cannot be read is a mistake, and every rule that needs
it is left out. So all mistakes are found at once.

A text has exactly the type `str` and can be encoded as UTF-8, unlike half of a surrogate pair. Its
length is that of its UTF-8, in bytes.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date, time
from numbers import Real
from types import NoneType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from abers import validation
from abers.exceptions import ScoreError
from abers.suggestions import closest

__all__ = [
    "LARGEST_TIME",
    "MAX_COUNT",
    "REMOVE",
    "REMOVE_KEY",
    "SET",
    "Front",
    "Option",
    "OptionValues",
    "Part",
    "Phrase",
    "Problem",
    "Quoted",
    "Ref",
    "RefusedScoreError",
    "RefusedValueError",
    "Rule",
    "UnreadValueError",
    "ValueKind",
    "attributes",
    "count",
    "declared",
    "fits",
    "found_by",
    "is_text",
    "named",
    "read_all",
    "read_text",
    "read_value",
    "said",
    "share",
    "shown",
    "span",
    "variable",
    "written",
]


def fits(text: str, most: int) -> bool:
    """Return whether a text takes at most `most` bytes."""
    return len(text) <= most and len(text.encode()) <= most


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


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


LARGEST_TIME = 1 << 53  # whole numbers below are exact as doubles, and in every JSON reader
MAX_COUNT = (1 << 31) - 1
"""The largest count: the processor numbers what it keeps with 32 bits."""


def span(key: str, sentence: str, more: str = "", least: int = 0, **rest: Any) -> Option:  # noqa: ANN401 - see `Option`
    """Return the declaration of a span of time, in milliseconds."""
    return Option(key, sentence, more, unit="ms", least=least, most=LARGEST_TIME, **rest)


def count(key: str, sentence: str, more: str = "", least: int = 1, **rest: Any) -> Option:  # noqa: ANN401 - likewise
    """Return the declaration of a number of things."""
    return Option(key, sentence, more, least=least, most=MAX_COUNT, **rest)


def share(key: str, sentence: str, more: str = "", **rest: Any) -> Option:  # noqa: ANN401 - likewise
    """Return the declaration of a number between 0 and 1, without the ends."""
    return Option(key, sentence, more, least=0.0, most=1.0, inner=True, **rest)


_UNQUOTED = Phrase(", without quotes", ", without quotes", "")
_LIST = Phrase("a list such as [0.1, 0.5]", "a list such as [0.1, 0.5]", "numbers such as 0.1 0.5")
_EMPTY = ("must be a non-empty string; write one, or ", REMOVE_KEY)


class UnreadValueError(LookupError):
    """A rule needs a value that could not be read."""


class OptionValues:
    """The values that could be read by name, and as they were given."""

    def __init__(
        self, options: Mapping[str, Option], read: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        self._options, self._read, self._given = options, read, given

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any option
        """Return a value; without one the rule that asks ends."""
        return self[name]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - likewise
        """Return a value; without one the rule that asks ends."""
        if name not in self._read:
            raise UnreadValueError(name)
        return self._read[name]

    def given(self, name: str) -> Any:  # noqa: ANN401 - likewise
        """Return a value as it was given, or None."""
        return self._given.get(name)

    def quoted(self, name: str) -> Quoted:
        """Return a value for a message, as it was given."""
        return Quoted(self._given.get(name, self[name]))

    def ref(self, name: str, *value: Any) -> Ref:  # noqa: ANN401 - at most one
        """Return an option for a message, with a value to set it to."""
        return Ref(self._options[name], *value)

    def problem(self, name: str, *text: Part) -> Problem:
        """Return a mistake in the value of an option."""
        return Problem(self._options[name], text)


Rule: TypeAlias = Callable[[OptionValues], Iterator[Problem]]


def found_by(rules: Iterable[Rule], values: OptionValues) -> Iterator[Problem]:
    """Yield the mistakes that rules find in the values that could be read."""
    for rule in rules:
        try:
            yield from rule(values)
        except UnreadValueError:
            continue


def read_all(
    options: Mapping[str, Option],
    given: Mapping[str, Any],
    read: Callable[[Option, Any], Any] | None = None,
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the values that can be read, and the mistakes in the others.

    An option that is not given has its default.
    """
    found: dict[str, Any] = {}
    problems = []
    for name, option in options.items():
        value = given.get(name, option.default)
        try:
            found[name] = None if value is None and option.optional else _read(option, value, read)
        except RefusedValueError as error:
            problems.append(Problem(option, error.text, error.at))
    return found, problems


def _read(option: Option, value: Any, read: Callable[[Option, Any], Any] | None) -> Any:  # noqa: ANN401
    return (option.read or read or read_value)(option, value)


def read_value(option: Option, value: Any) -> Any:  # noqa: ANN401 - of any option
    """Read a value by the type of its field, or raise a RefusedValueError."""
    if option.choices:
        return _choice(option, value)
    if get_origin(option.kind) is tuple:
        return _listed(option, value)
    return _READERS.get(option.kind, _any)(option, value)


def _any(_: Option, value: object) -> object:
    return value


def _choice(option: Option, value: object) -> str:
    known = option.choices
    if isinstance(value, str) and value in known:
        return value
    words = [part for one in known for part in (", ", Quoted(one))][1:]
    start: tuple[Part, ...] = (Quoted(value), " is not one of " if known[1:] else " is not ")
    raise RefusedValueError(
        *start, *words, *_hint(closest(value, known) if isinstance(value, str) else None)
    )


def _hint(near: str | None) -> tuple[Part, ...]:
    return ("; did you mean ", Quoted(near), "?") if near else ()


def _whole(option: Option, value: object) -> int:
    if type(value) is not int:
        raise RefusedValueError(Quoted(value), " is not a whole number; write one", _UNQUOTED)
    _require_range(option, value)
    return value


def _number(option: Option, value: object) -> float:
    if type(value) not in {int, float}:
        raise RefusedValueError(Quoted(value), " is not a number; write one", _UNQUOTED)
    _require_range(option, value)  # type: ignore[arg-type]
    return float(value)  # type: ignore[arg-type]


def _require_range(option: Option, value: float) -> None:
    """Refuse a number that is out of range."""
    least, most = option.least, option.most
    if math.isnan(value):
        raise RefusedValueError(Quoted(value), " is not a number; write one", _UNQUOTED)
    if least is not None and not (value > least if option.inner else value >= least):
        words = "more than " if option.inner else "at least "
        raise RefusedValueError(Quoted(value), f" is too small; write {words}", Quoted(least))
    if most is not None and not (value < most if option.inner else value <= most):
        words = "less than " if option.inner else "at most "
        raise RefusedValueError(Quoted(value), f" is too large; write {words}", Quoted(most))


def _switch(_: Option, value: object) -> bool:
    if not isinstance(value, bool):
        words = (" is not a boolean; write ", Quoted(True), " or ", Quoted(False))  # noqa: FBT003
        raise RefusedValueError(Quoted(value), *words, _UNQUOTED)
    return value


def read_text(_: Option, value: object) -> str:
    """Read a string that is not empty."""
    if not isinstance(value, str):
        raise RefusedValueError(Quoted(value), " is not a string; put it in quotes")
    if not value:
        raise RefusedValueError(*_EMPTY)
    if not is_text(value):
        raise RefusedValueError(Quoted(value), " is not UTF-8; write other characters")
    return value


def _listed(option: Option, value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any list or array
    if get_args(option.kind)[0] is float:
        return _numbers(value)
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise RefusedValueError(Quoted(value), " is not a list; write ", Quoted([value]))
    return tuple(_element(option, at, one) for at, one in enumerate(value))


def _element(option: Option, at: int, value: object) -> str:
    try:
        return read_text(option, value)
    except RefusedValueError as error:
        raise RefusedValueError(*error.text, at=(at,)) from None


def _numbers(value: Any) -> tuple[float, ...]:  # noqa: ANN401 - any list or array
    try:
        found = None if isinstance(value, str) else tuple(map(_finite, value))
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise RefusedValueError(Quoted(value), " is not a list of finite numbers; write ", _LIST)
    return found


def _finite(value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise TypeError
    return float(value)


_READERS: Mapping[Any, Callable[[Option, Any], Any]] = {
    bool: _switch,
    float: _number,
    int: _whole,
    str: read_text,
}
