"""What an index of ids needs of a record: its id, its time, and the model of an observation."""

from __future__ import annotations

import os
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

from abers.stream.fields import root
from abers_connectors.runtime.deserializer import input_schemas
from abers_connectors.runtime.field_reader import InputFields
from abers_connectors.runtime.timestamp_merge import LABELS, OBSERVATIONS
from abers_connectors.runtime.transport import BadHeaders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers.stream.schema import Schema
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Record

__all__ = ["LabelKey", "LabelKeys"]

LabelKey: TypeAlias = tuple[str, int, str | None]
"""Id, event time in milliseconds, and the model; None for a label."""


class LabelKeys:
    """Reads the keys of observations and labels, as the tasks read these fields."""

    def __init__(self, config: Config, environ: Mapping[str, str] = os.environ) -> None:
        observations, labels = input_schemas(config)
        seen, late = observations.fields, labels.fields
        reads = [_roots(seen.id, seen.time, seen.model), _roots(late.id, late.time)]
        inputs = [partial(_keys, observations, OBSERVATIONS), partial(_keys, labels, LABELS)]
        self._fields = InputFields(config, reads, inputs, environ)
        self.prepare = self._fields.prepare

    def read(self, records: Sequence[Record], inputs: Sequence[int]) -> list[LabelKey | None]:
        """Return the key of each record; None if it cannot be read, and so is no event."""
        keys = self._fields.read(records, inputs)
        if BadHeaders in {type(one.headers) for one in records}:
            bad = (type(one.headers) is BadHeaders for one in records)
            keys = [None if lost else key for lost, key in zip(bad, keys, strict=True)]
        return keys


def _roots(*paths: str) -> frozenset[str]:
    return frozenset(name for path in paths for name in root(path))


def _keys(schema: Schema, which: int, raw: RawColumns, rows: range) -> list[LabelKey | None]:
    """Return the keys of the records of an input; raises an error if an id is not UTF-8."""
    of_ids, times, of_models = schema.keys(raw, rows)
    ids: list[str | None] = of_ids.tolist()
    "".join(filter(None, ids)).encode()
    models = repeat(None) if which == LABELS else of_models.tolist()
    keys = zip(ids, times.tolist(), models, strict=False)
    return [None if id_ is None else (id_, time, model) for id_, time, model in keys]
