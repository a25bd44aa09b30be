"""Compiled paths of the fields of a record.

A path is compiled into one function that maps a record and its number to the value at the path;
null and the empty string mean no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from abers.stream.fields import (
    CONSTANT_PREFIX,
    ROW,
    Fields,
    constant,
    is_of_record,
    label_without_time,
    missing,
    root,
)

__all__ = [
    "Fields",
    "Record",
    "constant",
    "getter",
    "is_of_record",
    "is_plain",
    "known",
    "label_without_time",
    "missing",
    "optional",
    "required",
    "root",
]

Record: TypeAlias = Mapping[str, Any]

T = TypeVar("T")


def is_plain(path: str) -> bool:
    """Return whether a path is the name of a top-level field or of a metadata field."""
    named = "." not in path and path != ROW and not path.startswith(CONSTANT_PREFIX)
    return named or is_of_record(path)


def getter(path: str) -> Callable[[Record, int], Any]:
    """Compile a path: "name", "outer.inner", "const:value", "record:part", or "row"."""
    if path == ROW:
        return lambda _record, number: number
    if path.startswith(CONSTANT_PREFIX):
        constant = path.removeprefix(CONSTANT_PREFIX)
        return lambda _record, _number: constant
    if "." not in path or is_of_record(path):
        return lambda record, _number: record.get(path)
    keys = path.split(".")

    def walk(record: Record, _number: int) -> Any:  # noqa: ANN401 - whatever the record holds
        found: Any = record.get(path)  # a column may have a dot in its name
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
    """Compile a reader of the value at a path; it returns None if there is none."""
    get = getter(path)

    def found(record: Record, number: int) -> T | None:
        value = get(record, number)
        return None if value is None or value == "" else read(value)

    return found


def required(path: str, read: Callable[[Any], T]) -> Callable[[Record, int], T]:
    """Compile a reader of the value at a path; it raises a BadRecordError if there is none."""
    get = getter(path)

    def found(record: Record, number: int) -> T:
        value = get(record, number)
        if value is None or value == "":
            raise missing(path)
        return read(value)

    return found


def known(path: str, read: Callable[[Any], T]) -> Callable[[Record, int], T | None]:
    """Compile a reader of a label that may not be known yet; NaN is no label, as in a data frame.

    >>> label = known("label", str)
    >>> label({"label": 1}, 1), label({"label": float("nan")}, 2), label({}, 3)
    ('1', None, None)
    """
    get, found = getter(path), optional(path, read)

    def label(record: Record, number: int) -> T | None:
        value = get(record, number)
        missing = isinstance(value, float) and math.isnan(value)
        return None if missing else found(record, number)

    return label
