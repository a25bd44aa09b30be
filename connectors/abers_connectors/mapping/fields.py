"""Fields of a record and their paths.

A path is compiled into one function that maps a record and its number to the value at the path;
null and the empty string mean no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from abers_connectors.mapping.bad_record import BadRecordError

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

_CONSTANT_PREFIX = "const:"
_ROW = "row"
_OF_RECORD = "record:"


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Paths of the fields of a record.

    Each is the name of a field, a dotted path into nested ones ("payload.id"), or a constant
    ("const:fraud"); id and time may be "row", the number of the record.
    """

    id: str = "id"
    time: str = "time"
    model: str = "model"  # a record without one belongs to the model "default"
    segment: str | None = None
    score: str | Mapping[str, str] = "score"  # of several classes: one object, or a path by class
    x: str | Sequence[str] | None = None  # of the features, or the fields that are features
    label: str = "label"
    label_time: str | None = None  # of a record that has an observation and its label
    passthrough: Sequence[str] = ()  # fields that are passed through to the prediction

    @property
    def scored(self) -> tuple[str, ...]:
        """Paths of scores and features: a record with any of them is an observation."""
        score = (self.score,) if isinstance(self.score, str) else tuple(self.score.values())
        return (*score, *self.features)

    @property
    def features(self) -> Sequence[str]:
        """Paths of the features."""
        return [self.x] if isinstance(self.x, str) else self.x or ()


def is_plain(path: str) -> bool:
    """Return whether a path is the name of a top-level field or of a metadata field."""
    named = "." not in path and path != _ROW and not path.startswith(_CONSTANT_PREFIX)
    return named or is_of_record(path)


def constant(path: str) -> str | None:
    """Return the value of a constant path, or None if the path is not a constant.

    >>> constant("const:fraud"), constant("model")
    ('fraud', None)
    """
    return path.removeprefix(_CONSTANT_PREFIX) if path.startswith(_CONSTANT_PREFIX) else None


def is_of_record(path: str) -> bool:
    """Return whether a path names metadata of a record, such as its key or a header.

    The reader of the record adds the metadata as fields named by their paths.

    >>> is_of_record("record:key"), is_of_record("key")
    (True, False)
    """
    return path.startswith(_OF_RECORD)


def root(path: str) -> tuple[str, ...]:
    """Return the top-level fields that a path may read.

    >>> root("payload.id"), root("const:fraud")
    (('payload.id', 'payload'), ())
    """
    if path == _ROW or path.startswith(_CONSTANT_PREFIX):
        return ()
    nested = "." in path and not is_of_record(path)
    return (path, path.split(".", 1)[0]) if nested else (path,)


def getter(path: str) -> Callable[[Record, int], Any]:
    """Compile a path: "name", "outer.inner", "const:value", "record:part", or "row"."""
    if path == _ROW:
        return lambda _record, number: number
    if path.startswith(_CONSTANT_PREFIX):
        constant = path.removeprefix(_CONSTANT_PREFIX)
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


def label_without_time(label: str, time: str) -> BadRecordError:
    """Return the error for a record with a label whose time is missing.

    >>> print(label_without_time("y", "seen"))
    the record has a "y", but no "seen"; fill it in, or leave "y" empty until it is known
    """
    detail = (
        f'the record has a "{label}", but no "{time}"; fill it in, or leave "{label}" empty until '
        "it is known"
    )
    return BadRecordError("missing-field", detail)


def missing(*paths: str) -> BadRecordError:
    """Return the error for a record without a value at any of some paths.

    >>> print(missing("score", "label"))
    the record has no "score" and no "label"; fill it in, drop the record, or name the field ...
    """
    named = " and ".join(f'no "{path}"' for path in paths)
    remedy = "fill it in, drop the record, or name the field that holds it in [input.fields]"
    detail = f"the record has {named}; {remedy}"
    return BadRecordError("missing-field", detail)
