"""Where in a record a value is found.

Governing rule: a path is compiled into one function from a record and its
number to the value there; null and the empty text are as good as no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from abers_connectors.records import BadRecordError

__all__ = [
    "Record",
    "constant",
    "getter",
    "is_of_record",
    "is_plain",
    "missing",
    "optional",
    "required",
    "root",
]

Record: TypeAlias = Mapping[str, Any]

T = TypeVar("T")

_CONSTANT = "const:"
_ROW = "row"
_OF_RECORD = "record:"


def is_plain(path: str) -> bool:
    """Say whether a path is just the name of a top-level field, or of a part of the record."""
    named = "." not in path and path != _ROW and not path.startswith(_CONSTANT)
    return named or is_of_record(path)


def constant(path: str) -> str | None:
    """Give the text that a path stands for in all records; None if it stands for none.

    Examples
    --------
    >>> constant("const:fraud"), constant("model")
    ('fraud', None)
    """
    return path.removeprefix(_CONSTANT) if path.startswith(_CONSTANT) else None


def is_of_record(path: str) -> bool:
    """Say whether a path names what a transport tells beside the text of a record.

    Whoever reads the record puts it there, under the path as its name.

    Examples
    --------
    >>> is_of_record("record:key"), is_of_record("key")
    (True, False)
    """
    return path.startswith(_OF_RECORD)


def root(path: str) -> tuple[str, ...]:
    """Give the top-level fields that a path may look at.

    Examples
    --------
    >>> root("payload.id"), root("const:fraud")
    (('payload.id', 'payload'), ())
    """
    if path == _ROW or path.startswith(_CONSTANT):
        return ()
    nested = "." in path and not is_of_record(path)
    return (path, path.split(".", 1)[0]) if nested else (path,)


def getter(path: str) -> Callable[[Record, int], Any]:
    """Compile a path: "name", "outer.inner", "const:value", "record:part", or "row", its number."""
    if path == _ROW:
        return lambda _record, number: number
    if path.startswith(_CONSTANT):
        constant = path.removeprefix(_CONSTANT)
        return lambda _record, _number: constant
    if "." not in path or is_of_record(path):
        return lambda record, _number: record.get(path)
    keys = path.split(".")

    def walk(record: Record, _number: int) -> Any:  # noqa: ANN401 - whatever the record holds
        found: Any = record.get(path)  # columns may have dots in their names
        if found is not None:
            return found
        found = record
        for key in keys:
            if not isinstance(found, Mapping):
                return None
            found = found.get(key)
        return found

    return walk


def optional(path: str, read: Callable[[Any], T]) -> Callable[[Record, int], T | None]:
    """Compile what reads the value at a path, or gives None if there is none."""
    get = getter(path)

    def found(record: Record, number: int) -> T | None:
        value = get(record, number)
        return None if value is None or value == "" else read(value)

    return found


def required(path: str, read: Callable[[Any], T]) -> Callable[[Record, int], T]:
    """Compile what reads the value at a path, or raises a BadRecordError if there is none."""
    get = getter(path)

    def found(record: Record, number: int) -> T:
        value = get(record, number)
        if value is None or value == "":
            raise missing(path)
        return read(value)

    return found


def missing(*paths: str) -> BadRecordError:
    """Make the error of a record that has a value at none of some paths.

    Examples
    --------
    >>> print(missing("score", "label"))
    the record has no "score" and no "label"; name the field that holds it in [input.fields]
    """
    named = " and ".join(f'no "{path}"' for path in paths)
    detail = f"the record has {named}; name the field that holds it in [input.fields]"
    return BadRecordError("missing-field", detail)
