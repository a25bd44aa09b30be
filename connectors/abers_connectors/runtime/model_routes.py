"""Where records of the inputs are routed to: the partition that owns the slot of their model.

The model is read as the tasks read it, and no other field. A record without a readable model goes
to a fixed partition. It is no dead letter of the router: the task that decodes it makes that.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from abers.stream.fields import root
from abers_connectors.runtime.deserializer import input_schemas
from abers_connectors.runtime.poison import NO_FAULT_OF_A_RECORD
from abers_connectors.runtime.record_columns import input_columns
from abers_connectors.runtime.slots import partition_of
from abers_connectors.schemas.wire_format import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.stream.schema import Schema
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.record_columns import RecordColumns
    from abers_connectors.runtime.transport import Record

__all__ = ["UNREAD", "ModelRouting", "Routes"]

UNREAD = 0
"""The partition of records with models that cannot be read."""

_KNOWN = 1 << 16  # models; their partitions are kept


class Routes(NamedTuple):
    """Records to write now, in order, each with its input and its partition.

    They may be fewer than those that were read, or more: a record may wait in the routing.
    """

    records: Sequence[Record]
    inputs: Sequence[int]
    partitions: Sequence[int]
    unread: Sequence[int]  # rows of the records with models that cannot be read


class ModelRouting:
    """Routes records to one of so many `partitions` by their models; it has no state."""

    def __init__(
        self, config: Config, partitions: int, environ: Mapping[str, str] = os.environ
    ) -> None:
        schemas = input_schemas(config)
        reads = [frozenset(root(one.fields.model)) for one in schemas]
        columns = input_columns(config, reads, environ)
        self._inputs = [
            _ModelReader(schema, one, looks_up=one.of_values and config.schema_registry is not None)
            for schema, one in zip(schemas, columns, strict=True)
        ]
        self._partition = lru_cache(_KNOWN)(partial(partition_of, partitions=partitions))

    def prepare(
        self,
        records: Sequence[Record],
        inputs: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Look up the schemas of records, so that `route` waits for no registry.

        `tick` is called after each: many together may take long. Raises a BrokerError if the
        registry is away and the configuration says stop.
        """
        for number, one in enumerate(self._inputs):
            if not one.looks_up:
                continue
            heads = {
                record.value[:HEAD]: record.value
                for record, which in zip(records, inputs, strict=True)
                if which == number and record.value is not None
            }
            for raw in heads.values():
                one.columns.prepare([raw])
                tick()

    def models(self, records: Sequence[Record], inputs: Sequence[int]) -> list[str | None]:
        """Return the models of records, None where one cannot be read.

        The inputs are 0 (observations) or 1 (labels).
        """
        models: list[str | None] = [None] * len(records)
        rows = range(len(records))
        for number, one in enumerate(self._inputs):
            mine = [which == number for which in inputs]
            found = one.models([*compress(records, mine)])
            for row, model in zip(compress(rows, mine), found, strict=True):
                models[row] = model
        return models

    def route(self, records: Sequence[Record], inputs: Sequence[int]) -> Routes:
        """Return where records go; the inputs are as in `models`."""
        models, unread = self.models(records, inputs), list[int]()
        if None in models:
            unread = [row for row, model in enumerate(models) if model is None]
        partitions = [UNREAD if one is None else self._partition(one) for one in models]
        return Routes(records, inputs, partitions, unread)


class _ModelReader:
    """Reads the models of the records of one input."""

    def __init__(self, schema: Schema, columns: RecordColumns, *, looks_up: bool) -> None:
        self._schema, self.columns = schema, columns
        self.looks_up = looks_up
        """Whether a schema registry has the schemas of the records."""

    def models(self, records: Sequence[Record]) -> list[str | None]:
        """Return the model of each record, None where it cannot be read.

        Records are read together; if that fails, each half is, down to the bad record.
        """
        if not records:
            return []
        try:
            return self._read(records)
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the task that decodes the record says it
            if len(records) == 1:
                return [None]
        half = len(records) // 2
        return [*self.models(records[:half]), *self.models(records[half:])]

    def _read(self, records: Sequence[Record]) -> list[str | None]:
        if self.columns.of_values:
            values = [one.value for one in records if one.value is not None]
            if len(values) < len(records):
                msg = "a record has no value"
                raise ValueError(msg)
            raw = self.columns.columns(records, values)
        else:
            raw = self.columns.metadata(records)
        models: list[str | None] = self._schema.models(raw, range(len(records))).tolist()
        return models
