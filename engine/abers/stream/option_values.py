"""Values of options: how they are read, and rules between them.

A value that cannot be read is a mistake, and every rule that needs it is left out. So all mistakes
are found at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, TypeAlias, get_args, get_origin

from abers.stream.option import (
    REMOVE_KEY,
    Option,
    Part,
    Phrase,
    Problem,
    Quoted,
    Ref,
    RefusedValueError,
)
from abers.stream.texts import is_text
from abers.suggestions import closest

__all__ = [
    "OptionValues",
    "Rule",
    "UnreadValueError",
    "found_by",
    "read_all",
    "read_text",
    "read_value",
]

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
