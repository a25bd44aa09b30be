"""The fields of an event, and the paths at which a record has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.cells import BadRecordError, Cells
from abers.stream.column_types import objects, repeated
from abers.stream.option import Phrase

if TYPE_CHECKING:
    from abers.stream.cells import RawColumns

__all__ = [
    "CONSTANT_PREFIX",
    "FIELDS",
    "LABEL_FIELDS",
    "ROW",
    "Fields",
    "cells_at",
    "constant",
    "is_of_record",
    "label_without_time",
    "missing",
    "root",
]

CONSTANT_PREFIX = "const:"
ROW = "row"
FIELDS = Phrase(
    "in [input.fields]", "in fields", "with --score, --label, --id, --time or --model-column"
)
"""Where a user names fields: in a configuration, by options of a command, or in a call."""
LABEL_FIELDS = Phrase("in [input.label_fields]", "in fields", "with --id, --label or --label-time")
"""Where a user names the fields of a second input, of labels."""
_OF_RECORD = "record:"


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Paths of the fields of a record.

    Each is the name of a field, a dotted path into nested fields ("payload.id"), or a constant
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
    recorded: str | None = None  # when the record was written, if its transport does not say

    @property
    def scored(self) -> tuple[str, ...]:
        """Paths of scores and features: a record with any of them is an observation."""
        score = (self.score,) if isinstance(self.score, str) else tuple(self.score.values())
        return (*score, *self.features)

    @property
    def features(self) -> Sequence[str]:
        """Paths of the features."""
        return [self.x] if isinstance(self.x, str) else self.x or ()


def constant(path: str) -> str | None:
    """Return the value of a constant path, or None if the path is not a constant.

    Examples
    --------
    >>> constant("const:fraud"), constant("model")
    ('fraud', None)
    """
    return path.removeprefix(CONSTANT_PREFIX) if path.startswith(CONSTANT_PREFIX) else None


def is_of_record(path: str) -> bool:
    """Return whether a path names metadata of a record, such as its key or a header.

    The decoder of the record adds the metadata as fields named by their paths.

    Examples
    --------
    >>> is_of_record("record:key"), is_of_record("key")
    (True, False)
    """
    return path.startswith(_OF_RECORD)


def root(path: str) -> tuple[str, ...]:
    """Return the top-level fields that a path may read.

    Examples
    --------
    >>> root("payload.id"), root("const:fraud")
    (('payload.id', 'payload'), ())
    """
    if path == ROW or constant(path) is not None:
        return ()
    return (path, path.split(".", 1)[0]) if _is_nested(path) else (path,)


def cells_at(path: str, raw: RawColumns, numbers: Sequence[int]) -> Cells:
    """Return the cells at a path of records with these numbers.

    Examples
    --------
    >>> payloads = np.array([{"id": "a"}, None], object)
    >>> cells_at("payload.id", {"payload": Cells(payloads)}, [1, 2]).values.tolist()
    ['a', None]
    """
    if path == ROW:
        return Cells(np.array(numbers, np.int64))
    if (same := constant(path)) is not None:
        return Cells(repeated(same, len(numbers)))
    if (found := raw.get(path)) is not None and not _is_nested(path):
        return found
    if _is_nested(path):
        return _nested(path, found, raw.get(path.split(".", 1)[0]), len(numbers))
    return Cells.none(len(numbers))


def label_without_time(label: str, time: str) -> BadRecordError:
    """Return the error for a record with a label without its time.

    Examples
    --------
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

    A constant is not named, as no record can have it.

    Examples
    --------
    >>> print(missing("score", "label"))
    the record has no "score" and no "label"; fill it in, drop the record, or name its ...
    """
    named = " and ".join(f'no "{path}"' for path in paths if constant(path) is None)
    remedy = "fill it in, drop the record, or name its field "
    return BadRecordError("missing-field", f"the record has {named}; {remedy}", FIELDS)


def _is_nested(path: str) -> bool:
    return "." in path and not is_of_record(path)


def _nested(path: str, own: Cells | None, outer: Cells | None, size: int) -> Cells:
    """Return cells within others, where no column has the path as its name."""
    if outer is None:
        return own or Cells.none(size)
    if own is not None and own.present() is None:
        return own
    valid = np.ones(size, bool) if outer.valid is None else outer.valid
    keys = path.split(".")[1:]
    within = [
        _walk(one, keys) if there else None
        for one, there in zip(outer.values.tolist(), valid.tolist(), strict=True)
    ]
    if own is None:
        return Cells(objects(within))
    there = own.present()
    return Cells(np.where(there, own.values.astype(object), objects(within)))


def _walk(found: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - anything the record holds
    for key in keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found
