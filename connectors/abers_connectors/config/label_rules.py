"""Rules of labels that are assumed since they do not come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream.cells import BadRecordError
from abers.stream.label_readers import ClassReader, LabelReader
from abers_connectors.config.value_types import DROP

if TYPE_CHECKING:
    from abers.stream.readers import CellReader
    from abers_connectors.config.raw_values import Found, RawValues

__all__ = ["label_reader", "unlabelled"]

_KEY = "input.unlabelled"


def unlabelled(values: RawValues) -> Found:
    """Find a label that the task does not have, and a time to wait that is not set."""
    given = values.get(_KEY)
    if given == DROP or not isinstance(given, str | int | float):
        return
    kind = values.get("task.kind") or "binary"
    if kind == "regression":
        return
    if values.get("limits.label_timeout") is None:
        needs = ("needs ", values.ref("limits.label_timeout"))
        yield _KEY, (*needs, '; set how long a label may take, such as "30d"')
    try:
        if (read := label_reader(values, kind)) is not None:
            read.one(given)
    except BadRecordError as error:
        yield _KEY, (*error.text, f'; or write "{DROP}"')


def label_reader(values: RawValues, kind: object) -> CellReader | None:
    """Return the reader of labels; None if the keys that it depends on are wrong."""
    if kind == "multiclass":
        names = values.strings("task.classes")
        return ClassReader(names) if names else None
    positive = values.get("input.pos_label") or ()
    plain = isinstance(positive, list | tuple)
    usable = plain and all(isinstance(one, str | int | float) for one in positive)
    return LabelReader(positive) if usable and kind == "binary" else None
