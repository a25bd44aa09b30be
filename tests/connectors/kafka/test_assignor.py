"""Who gets which partitions, `abers_connectors.kafka.assignor`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor
from tests.connectors.kafka.joining import member, settled

from abers_connectors.kafka import client
from abers_connectors.kafka.assignor import Member, assign

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.process import Watchdog

GROUPS = st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=2, max_size=6)


def moved(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    """Return the number of partitions that have another owner."""
    owners = {one: name for name, numbers in before.items() for one in numbers}
    return sum(owners[one] != name for name, numbers in after.items() for one in numbers)


def needed(before: dict[str, list[int]], names: set[str], n: int) -> int:
    """Return how many partitions must move: those without a member, and those above the share."""
    share, more = divmod(n, len(names))
    counts = sorted((len(before.get(name, [])) for name in names), reverse=True)
    kept = sum(min(count, share + (place < more)) for place, count in enumerate(counts))
    return n - kept


@given(groups=GROUPS, n=st.integers(1, 20))
def test_few_move(groups: list[set[str]], n: int) -> None:
    """Whichever members come and go, shares are fair, and no partition moves that need not."""
    found = assign([Member(name) for name in sorted(groups[0])], range(n))
    for generation, (_, names) in enumerate(pairwise(groups)):
        members = [Member(name, found.get(name, ()), generation) for name in sorted(names)]
        after = assign(members, range(n))
        assert sorted(one for numbers in after.values() for one in numbers) == [*range(n)]
        sizes = {len(numbers) for numbers in after.values()}
        assert max(sizes) - min(sizes) <= 1
        assert moved(found, after) == needed(found, names, n)
        found = after


@pytest.mark.parametrize("n", [3, 4, 12, 16, 100])
def test_a_fourth_member(n: int) -> None:
    """When a fourth member joins three, at most a third of the partitions move."""
    three = assign([Member(name) for name in "abc"], range(n))
    four = assign([*(Member(name, three[name], 1) for name in "abc"), Member("d")], range(n))
    assert moved(three, four) <= n / 3


def test_who_was_away() -> None:
    """Of two members that had the same partition, the one of the later generation keeps it."""
    found = assign([Member("a", [0, 1], 3), Member("b", [0], 5)], range(2))
    assert found == {"a": [1], "b": [0]}


def test_a_broker_moves_few(broker: Broker, topics: Callable[..., str], watchdog: Watchdog) -> None:
    """A fourth member gets its share of both topics, and the three others keep theirs."""
    observations, labels = topics("observations", 12), topics("labels", 12)
    members = [member(broker, watchdog, name, observations, labels) for name in "abc"]
    before = settled(*members, owned=24)
    members.append(member(broker, watchdog, "d", observations, labels))
    after = settled(*members, owned=24)
    kept = [len(old.assigned & new.assigned) for old, new in zip(before, after, strict=False)]
    assert kept == [6, 6, 6]
    for one in after:
        numbers = [
            sorted(n for topic, n in one.assigned if topic == of) for of in (observations, labels)
        ]
        assert numbers[0] == numbers[1]
    for each in members:
        each.close()


def test_a_member_that_knows_only_ranges(
    broker: Broker,
    topics: Callable[..., str],
    watchdog: Watchdog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one member knows only the range assignor, all use that, and both topics match."""
    observations, labels = topics("observations", 6), topics("labels", 6)
    first = member(broker, watchdog, "a", observations, labels)
    settled(first, owned=12)
    monkeypatch.setattr(client, "ASSIGNORS", (RangePartitionAssignor,))
    second = member(broker, watchdog, "b", observations, labels)
    found = settled(first, second, owned=12)
    assert [sorted({n for _, n in one.assigned}) for one in found] == [[0, 1, 2], [3, 4, 5]]
    first.close()
    second.close()
