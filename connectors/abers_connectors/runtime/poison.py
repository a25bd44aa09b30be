"""The search for records on which abers itself fails, so that none of them stops a partition.

A batch that raises is aborted, and every task is restored. The next batch of that task has half as
many records, down to one. A record that raises by itself twice, each time in a restored state, is
rejected. So a bad record among n costs about log2(n) + 2 restores. After a success the batches keep
their size until all that failed together is done, and then they double.

What raises only together with other records passes in smaller batches. An exception that is no
fault of a record, such as of a disk, the memory or a broker, starts no search.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from abers.exceptions import BrokerError, ConfigError, StateError
from abers.validation import shown
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.runtime.timestamp_merge import MergedRecords
    from abers_connectors.runtime.transport import Record

__all__ = ["INTERNAL_ERROR", "NO_FAULT_OF_A_RECORD", "PoisonSearch", "SuspectedError", "rejection"]

INTERNAL_ERROR = "internal-error"
"""The reason of a dead letter on which abers failed."""

NO_FAULT_OF_A_RECORD = (OSError, MemoryError, ImportError, BrokerError, ConfigError, StateError)
"""Errors that no record causes; they end the process."""

_log = logging.getLogger(__name__)


class SuspectedError(Exception):
    """A batch raised, and may hold a record to reject: abort it, and restore the tasks."""


@dataclass
class _Search:
    """The search in a partition."""

    most: int  # records of the next batch
    left: int = 0  # records not yet done of those that failed together
    raised: set[str] = field(default_factory=set)  # records that raised once by themselves
    rejected: dict[str, str] = field(default_factory=dict)  # why, by record
    unexplained: str = ""  # what was raised, as long as no record is found


class PoisonSearch:
    """The searches in all partitions; a full batch has `most` records."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._searches: dict[int, _Search] = {}  # by partition

    def most(self, partition: int) -> int:
        """Return how many records the next batch of a task may have."""
        found = self._searches.get(partition)
        return self._most if found is None else found.most

    def rejected(self, partition: int, batch: MergedRecords) -> str | None:
        """Return why the only record of a batch is rejected; None if it is to be processed."""
        found = self._searches.get(partition)
        if found is None or len(batch.records) > 1:
            return None
        return found.rejected.get(_name(batch.records[0]))

    @contextmanager
    def suspecting(self, partition: int, batch: MergedRecords) -> Iterator[None]:
        """Raise a SuspectedError if the block fails on a batch, and one record may be why."""
        try:
            yield
        except NO_FAULT_OF_A_RECORD:
            raise
        except Exception as error:
            if self.rejected(partition, batch) is not None:
                raise  # it is not the content of the record
            self._failed(partition, batch, error)
            count, first = len(batch.records), _name(batch.records[0])
            records = "a batch of one record" if count == 1 else f"a batch of {count:,} records"
            msg = f"{records} from {first} failed: {_place(error)}"
            raise SuspectedError(msg) from error

    def _failed(self, partition: int, batch: MergedRecords, error: Exception) -> None:
        count, first = len(batch.records), batch.records[0]
        found = self._searches.setdefault(partition, _Search(count))
        found.left, found.most = count, max(1, count // 2)
        found.unexplained = _place(error)
        if count > 1:
            return
        name = _name(first)
        if name not in found.raised:
            found.raised.add(name)
            return
        found.unexplained, found.rejected[name] = "", rejection(first, error)

    def passed(self, partition: int, batch: MergedRecords) -> None:
        """Record that a batch is committed."""
        found = self._searches.get(partition)
        if found is None:
            return
        for record in batch.records:
            found.raised.discard(_name(record))
            found.rejected.pop(_name(record), None)
        found.left -= len(batch.records)
        if found.left > 0:
            return
        if found.unexplained:
            _log.warning(
                "partition %d goes on: no record alone raised twice what a batch raised: %s",
                partition,
                found.unexplained,
            )
            found.unexplained = ""
        found.most *= 2
        if found.most >= self._most:
            del self._searches[partition]


def rejection(record: Record, error: Exception) -> str:
    """Log what a record alone has raised twice, and return the sentence of its dead letter."""
    _log.error(
        "abers failed twice on this record alone; it is a dead letter (%s); report the error",
        INTERNAL_ERROR,
        exc_info=error,
        extra={"topic": record.topic, "partition": record.partition, "offset": record.offset},
    )
    return (
        f"abers failed on it ({_place(error)}): {shown(error)}; the log has the traceback; "
        "report it, and write the record again once that is fixed"
    )


def _name(record: Record) -> str:
    return TopicPartition(record.topic, record.partition).at(record.offset)


def _place(error: Exception) -> str:
    """Return the type of an error and where it was raised, without what it says of a record."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}"
