"""Some fields of the records of both inputs, read as the tasks read them, and no others."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Generic, TypeVar

from abers_connectors.runtime.poison import NO_FAULT_OF_A_RECORD
from abers_connectors.runtime.record_columns import input_columns, look_up_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.stream.cells import RawColumns
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.record_columns import RecordColumns
    from abers_connectors.runtime.transport import Record

__all__ = ["InputFields"]

T = TypeVar("T")


class InputFields(Generic[T]):
    """Reads fields of observations and of labels.

    Parameters
    ----------
    config
        The configuration, with the formats of both.
    reads
        The paths that are read of each.
    read
        What makes fields of raw columns, of each: one of a row, None where it cannot be read.
    environ
        The environment, with the password of the schema registry.
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

    def prepare(
        self,
        records: Sequence[Record],
        inputs: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Look up the schemas of records, so that `read` waits for no registry.

        `tick` is called after each: many together may take long. Raises a BrokerError if the
        registry is away and the configuration says stop.
        """
        looks_up = {
            number: one.columns.prepare for number, one in enumerate(self._inputs) if one.looks_up
        }
        look_up_schemas(looks_up, records, inputs, tick)

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
