"""The counts of records in a checkpoint, `abers_connectors.runtime.application`."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.connectors.runtime.test_status import observed, settled

from abers.stream import Processor, accounts
from abers_connectors.runtime.application import Checkpoint, RecordCounts
from abers_connectors.runtime.task import Assembler, StreamTask, encode

KINDS: dict[str, Any] = {
    "a": lambda n: (observed(f"o{n}", 1_000 + n), 0),
    "b": lambda n: (observed(f"o{n // 2}", 1_000 + n), 0),
    "l": lambda n: (settled(f"o{n // 2}", 1_000 + n), 1),
    "x": lambda _: (Read(b"{"), 0),
    "y": lambda _: (Read(b"{}"), 1),
    "0": lambda _: (Read(None), 0),
    "1": lambda _: (Read(None), 1),
}


@given(st.lists(st.text("ablxy01", max_size=20), max_size=6))
def test_every_record_is_counted(batches: list[str]) -> None:
    """By input, live and from the changelog, and the account of records closes."""
    live = Served()
    other = StreamTask(Processor(live.processor.settings), Checkpoint("app", 0, 0, 0, (0, 0)))
    for batch in batches:
        made = [KINDS[kind](n) for n, kind in enumerate(batch)]
        if not made:
            continue
        result = live.take(*(read for read, _ in made), inputs=bytes(which for _, which in made))
        assembler = Assembler(result.changelog_record.number)
        for part in encode(result.changelog_record):
            if (record := assembler.add(part)) is not None:
                other.apply(record)
        assert accounts.unbalanced(live.accounts) == []
    kinds = "".join(batches)
    counts = live.checkpoint.counts
    assert counts.records == (sum(map(kinds.count, "abx0")), sum(map(kinds.count, "ly1")))
    assert counts.undecodable == (kinds.count("x"), kinds.count("y"))
    assert counts.tombstones == (kinds.count("0"), kinds.count("1"))
    assert counts.decoded == live.accounts["events"]
    assert other.accounts == live.accounts
    saved = msgspec.convert(msgspec.to_builtins(live.checkpoint), Checkpoint)
    assert saved.counts == counts


def test_counts_begin_with_nothing() -> None:
    """A task without a record has counted none."""
    assert {*RecordCounts().numbers().values()} == {0}
    assert Checkpoint("app", 0, 0, 0, (0, 0)).counts == RecordCounts()
