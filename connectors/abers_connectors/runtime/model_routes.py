"""Where records of the inputs are routed to: the partition that owns the slot of their model.

The model is read as the tasks read it, and no other field. A record without a readable model goes
to a fixed partition. It is no dead letter of the router: the task that decodes it makes that.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.stream.fields import root
from abers_connectors.runtime.deserializer import input_schemas
from abers_connectors.runtime.field_reader import InputFields
from abers_connectors.runtime.slots import partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers.stream.schema import Schema
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import CommittedOffset, Record, TopicPartition

__all__ = ["UNREAD", "ModelRouting", "Routes", "Routing", "partitions_by_model"]

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
        """Take the partitions that are assigned, from what is committed; yield while it lasts."""

    def prepare(
        self, records: Sequence[Record], inputs: Sequence[int], tick: Callable[[], None] = ...
    ) -> None:
        """Look up the schemas of records, so that `route` waits for no registry.

        `tick` is called after each: many together may take long. Raises a BrokerError if the
        registry is away and the configuration says stop.
        """

    def route(self, records: Sequence[Record], inputs: Sequence[int]) -> Routes:
        """Return where records go; the inputs are 0 (observations) or 1 (labels)."""

    def first_waiting(self, partition: TopicPartition) -> int | None:
        """Return the offset of the first record of a partition that waits, or None."""

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the next offsets, which are committed with all that was routed."""


class ModelRouting:
    """Routes records to one of so many `partitions` by their models; it has no state."""

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
    """Return a function that finds the partition of a model, and keeps what it found."""
    return lru_cache(_KNOWN)(partial(partition_of, partitions=partitions))


def _models(schema: Schema, raw: RawColumns, rows: range) -> list[str | None]:
    models: list[str | None] = schema.models(raw, rows).tolist()
    return models
