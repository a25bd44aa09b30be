"""Alignment: a router goes no further than the slowest other router that makes progress."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import pytest

from abers_connectors.runtime.router import RouterAlignment
from abers_connectors.runtime.transport import CommittedOffset, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.runtime.transport import Reader

MINE, OTHER, THIRD = (TopicPartition("in", number) for number in range(3))
PATIENCE = 10.0


class Offsets:
    """The offsets of a group in memory, with a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.ends = {MINE: 50, OTHER: 50, THIRD: 50}
        self.questions = 0

    def all_committed(
        self, partitions: Sequence[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return what is committed, open transactions or not."""
        assert not stable
        self.questions += 1
        return {one: self.committed[one] for one in partitions if one in self.committed}

    def last_stable_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the ends."""
        return {one: self.ends[one] for one in partitions}


@pytest.fixture
def offsets() -> Offsets:
    """Return offsets of which none is committed."""
    return Offsets()


@pytest.fixture
def alignment(offsets: Offsets) -> RouterAlignment:
    """Return the alignment of a router with one of three partitions."""
    found = RouterAlignment(cast("Reader", offsets), PATIENCE, lambda: offsets.now)
    found.begin([MINE, OTHER, THIRD], [MINE])
    return found


def test_a_router_alone_asks_nobody(offsets: Offsets, alignment: RouterAlignment) -> None:
    """A router with all partitions goes as far as it likes."""
    alignment.begin([MINE, OTHER], [MINE, OTHER])
    assert alignment.alone
    assert alignment.reached() == math.inf
    assert offsets.questions == 0


def test_the_slowest_counts(offsets: Offsets, alignment: RouterAlignment) -> None:
    """Of the partitions with records to read the earliest timestamp counts."""
    offsets.committed = {
        OTHER: CommittedOffset(7, "reached=300"),
        THIRD: CommittedOffset(9, "reached=200"),
    }
    assert not alignment.alone
    assert alignment.reached() == 200
    offsets.now += 1.0
    offsets.committed[THIRD] = CommittedOffset(50, "reached=250")  # at its end
    assert alignment.reached() == 300
    offsets.now += 1.0
    offsets.committed[OTHER] = CommittedOffset(50, "reached=400")
    assert alignment.reached() == math.inf


def test_at_most_ten_questions_a_second(offsets: Offsets, alignment: RouterAlignment) -> None:
    """Answers count for a tenth of a second."""
    for _ in range(100):
        alignment.reached()
        offsets.now += 0.01
    assert 9 <= offsets.questions <= 11


def test_a_partition_without_progress(offsets: Offsets, alignment: RouterAlignment) -> None:
    """Who has said nothing is waited for, but without progress for some time only."""
    offsets.committed = {THIRD: CommittedOffset(50, "reached=1")}
    assert alignment.reached() == -math.inf
    offsets.now += PATIENCE
    assert alignment.reached() == -math.inf
    offsets.now += 1.0
    assert alignment.reached() == math.inf
    offsets.committed[OTHER] = CommittedOffset(3, "reached=-5")
    offsets.now += 1.0
    assert alignment.reached() == -5
