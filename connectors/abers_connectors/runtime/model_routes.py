"""Where records of the inputs are routed to: the partition that owns the slot of their model.

The router reads the model as the tasks read it, and no other field. A record without a readable
model goes to a fixed partition, where the task that decodes it makes it a dead letter.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from abers.stream.cells import root
from abers_connectors.runtime.batches import NO_FAULT_OF_A_RECORD
from abers_connectors.runtime.deserializer import SchemaLookUp, input_columns, input_schemas
from abers_connectors.runtime.slots import partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers.stream.columns import Schema
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.deserializer import RecordColumns
    from abers_connectors.runtime.transport import CommittedOffset, Record, TopicPartition

__all__ = ["UNREAD", "InputFields", "ModelRouting", "Routes", "Routing", "partitions_by_model"]

T = TypeVar("T")


class InputFields(SchemaLookUp, Generic[T]):
    """Reads fields of observations and of labels.

    Parameters
    ----------
    config, reads
        Those of `input_columns`.
    read
        For each input, a function that returns the fields of rows from raw columns; None where they
        cannot be read.
    environ
        That of `input_columns`.
    """

    def __init__(
        self,
        config: Config,
        reads: Iterable[frozenset[str]],
        read: Sequence[Callable[[RawColumns, range], list[T | None]]],
        environ: Mapping[str, str],
    ) -> None:
        columns = input_columns(config, reads, environ)
        registry = config.schema_registry is not None
        self._inputs = [
            _FieldReader(one, of_one, looks_up=one.of_values and registry)
            for one, of_one in zip(columns, read, strict=True)
        ]
        self._look_ups = {
            number: one.columns.prepare for number, one in enumerate(self._inputs) if one.looks_up
        }

    def read(self, records: Sequence[Record], inputs: Sequence[int]) -> list[T | None]:
        """Return the fields of records, None where they cannot be read.

        The inputs are 0 (observations) or 1 (labels).
        """
        fields: list[T | None] = [None] * len(records)
        rows = range(len(records))
        for number, one in enumerate(self._inputs):
            mine = [which == number for which in inputs]
            found = one.read([*compress(records, mine)])
            for row, some in zip(compress(rows, mine), found, strict=True):
                fields[row] = some
        return fields


class _FieldReader(Generic[T]):
    """Reads fields of the records of one input."""

    def __init__(
        self,
        columns: RecordColumns,
        read: Callable[[RawColumns, range], list[T | None]],
        *,
        looks_up: bool,
    ) -> None:
        self.columns, self._fields = columns, read
        self.looks_up = looks_up
        """Whether a schema registry has the schemas of the records."""

    def read(self, records: Sequence[Record]) -> list[T | None]:
        """Return the fields of each record, None where they cannot be read.

        Records are read together; if that fails, each half is, down to the bad record.
        """
        if not records:
            return []
        try:
            return self._fields(self._raw(records), range(len(records)))
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception:  # noqa: BLE001 - the task that decodes the record says why
            if len(records) == 1:
                return [None]
        half = len(records) // 2
        return [*self.read(records[:half]), *self.read(records[half:])]

    def _raw(self, records: Sequence[Record]) -> RawColumns:
        if not self.columns.of_values:
            return self.columns.metadata(records)
        values = [one.value for one in records if one.value is not None]
        if len(values) < len(records):
            msg = "a record has no value"
            raise ValueError(msg)
        return self.columns.columns(records, values)


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
    found: Sequence[tuple[str, bytes] | None] = ()  # header with what was found of each id, if any


class Routing(Protocol):
    """How a router finds the partitions of records."""

    def begin(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Iterator[None]:
        """Take over the assigned partitions at their committed offsets; yield between steps."""

    def prepare(
        self, records: Sequence[Record], inputs: Sequence[int], tick: Callable[[], None] = ...
    ) -> None:
        """Look up the schemas of records, so that `route` waits for no registry.

        `tick` is called after each schema: many together may take long. Raises a BrokerError if the
        registry does not answer and `schema_registry.on_unavailable` is "stop".
        """

    def route(self, records: Sequence[Record], inputs: Sequence[int]) -> Routes:
        """Return where records go; the inputs are 0 (observations) or 1 (labels)."""

    def first_waiting(self, partition: TopicPartition) -> int | None:
        """Return the offset of the first record of a partition that waits, or None."""

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the next offsets, which are committed with all that was routed."""


class ModelRouting:
    """Routes records to `partitions` partitions by their models; it has no state."""

    def __init__(
        self, config: Config, partitions: int, environ: Mapping[str, str] = os.environ
    ) -> None:
        schemas = input_schemas(config)
        reads = [frozenset(root(one.fields.model)) for one in schemas]
        self._fields = InputFields(
            config, reads, [partial(_models, one) for one in schemas], environ
        )
        self.prepare = self._fields.prepare
        self._partition = partitions_by_model(partitions)

    def begin(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Iterator[None]:
        """Do nothing: it has no state."""
        del committed
        return iter(())

    def models(self, records: Sequence[Record], inputs: Sequence[int]) -> list[str | None]:
        """Return the models of records, None where one cannot be read.

        The inputs are 0 (observations) or 1 (labels).
        """
        return self._fields.read(records, inputs)

    def route(self, records: Sequence[Record], inputs: Sequence[int]) -> Routes:
        """Return where records go; the inputs are as in `models`."""
        models, unread = self.models(records, inputs), list[int]()
        if None in models:
            unread = [row for row, model in enumerate(models) if model is None]
        partitions = [UNREAD if one is None else self._partition(one) for one in models]
        return Routes(records, inputs, partitions, unread)

    def first_waiting(self, partition: TopicPartition) -> int | None:
        """Return None: no record waits."""
        del partition
        return None

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Do nothing."""


def partitions_by_model(partitions: int) -> Callable[[str], int]:
    """Return a function that finds the partition of a model, with a cache."""
    return lru_cache(_KNOWN)(partial(partition_of, partitions=partitions))


def _models(schema: Schema, raw: RawColumns, rows: range) -> list[str | None]:
    models: list[str | None] = schema.models(raw, rows).tolist()
    return models
