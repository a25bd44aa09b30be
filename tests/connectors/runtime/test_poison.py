"""The search for records on which abers fails, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read

from abers_connectors.runtime.batches import MergedRecords, PoisonSearch, SuspectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fails = Callable[[Sequence[int]], bool]


class Ended(NamedTuple):
    """The end of a search: rejected offsets, failed batches, and the size of the next batch."""

    rejected: list[int]
    failed: int
    most: int


def searched(count: int, most: int, fails: Fails) -> Ended:
    """Process records in batches, as a worker does; `fails` says whether some offsets raise."""
    search, at, failed, rejected = PoisonSearch(most), 0, 0, list[int]()
    while at < count:
        offsets = range(count)[at : at + search.most(0)]
        batch = MergedRecords([Read(b"x", one) for one in offsets], [0] * len(offsets))
        why = search.rejected(0, batch)
        try:
            with search.suspecting(0, batch):
                if why is None and fails(offsets):
                    raise ValueError(offsets)
        except SuspectedError:
            failed += 1
            continue
        rejected += offsets if why is not None else []
        search.passed(0, batch)
        at += len(offsets)
    return Ended(rejected, failed, search.most(0))


@given(st.integers(1, 200), st.integers(1, 64), st.data())
def test_only_the_records_that_raise_are_rejected(
    count: int, most: int, data: st.DataObject
) -> None:
    """Each takes about log2 of a full batch, and then batches grow again."""
    bad = data.draw(st.sets(st.integers(0, count - 1)))
    found = searched(count, most, lambda offsets: not bad.isdisjoint(offsets))
    assert found.rejected == sorted(bad)
    assert found.failed <= len(bad) * (most.bit_length() + 2)


def test_batches_are_full_again_after_a_while() -> None:
    """One record among 2,000 takes 12 failures, and 2,000 in a row take about three each."""
    one = searched(10_000, 2_000, lambda offsets: 1_234 in offsets)
    assert one == ([1_234], 12, 2_000)
    all_ = searched(2_000, 2_000, lambda _: True)
    assert len(all_.rejected) == 2_000
    assert all_.failed == 3 * 2_000 + 8


@given(st.integers(2, 100), st.integers(2, 64), st.integers(2, 5))
def test_what_only_several_records_raise_rejects_none(count: int, most: int, least: int) -> None:
    """The batches become so small that nothing is raised."""
    found = searched(count, most, lambda offsets: len(offsets) >= least)
    assert found.rejected == []


@given(st.sets(st.integers(0, 200), max_size=40))
def test_a_record_is_rejected_only_if_it_fails_alone_twice(times: set[int]) -> None:
    """Errors at any moments reject nothing that did not raise alone, and twice."""
    calls, alone = iter(range(10_000)), dict[int, int]()

    def fails(offsets: Sequence[int]) -> bool:
        raises = next(calls) in times
        if raises and len(offsets) == 1:
            alone[offsets[0]] = alone.get(offsets[0], 0) + 1
        return raises

    found = searched(50, 16, fails)
    assert found.rejected == sorted(one for one, number in alone.items() if number == 2)


def test_the_error_is_raised_if_the_dead_letter_fails_too() -> None:
    """Then it does not depend on the content of the record."""
    search, batch = PoisonSearch(1), MergedRecords([Read(b"x")], [0])
    for _ in range(2):
        with pytest.raises(
            SuspectedError,
            match=r"one record from scores\[0\]@0 failed: KeyError in test_poison.py:\d+$",
        ):
            _fail(search, batch)
    assert "abers failed on it (KeyError in test_poison.py:" in (search.rejected(0, batch) or "")
    with pytest.raises(KeyError, match="no"):
        _fail(search, batch)
    search.passed(0, batch)
    assert search.rejected(0, batch) is None


def _fail(search: PoisonSearch, batch: MergedRecords) -> None:
    with search.suspecting(0, batch):
        raise KeyError("no")
