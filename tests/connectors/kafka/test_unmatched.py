"""Labels that do not meet their observations are told, and no others."""

from __future__ import annotations

from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.kafka.unmatched import Unmatched

SECOND = 1000


def observe(shard: Served, *names: str, time: int) -> None:
    """Let some observations come."""
    shard.take(
        *(Read(b'{"id": "%s", "time": %d, "score": 0.5}' % (n.encode(), time)) for n in names)
    )


def settle(shard: Served, *names: str, time: int) -> None:
    """Let some labels come."""
    value = '{"id": "%s", "time": %d, "label": 1}'
    shard.take(*(Read((value % (name, time)).encode()) for name in names))


def names(prefix: str, count: int) -> list[str]:
    """Make some ids."""
    return [f"{prefix}{number}" for number in range(count)]


def test_labels_that_meet_nothing() -> None:
    """When over a fifth of a thousand labels stay alone it is said, and where to look."""
    unmatched, shard = Unmatched(), Served()
    observe(shard, *names("a", 800), time=0)
    assert unmatched.look([shard], 0.0) is None
    settle(shard, *names("a", 798), *names("b", 201), time=1)
    assert unmatched.look([shard], 0.0) is None
    settle(shard, "a799", time=1)
    told = unmatched.look([shard], 0.0)
    assert told is not None
    assert told.startswith("201 of the last 1,000 labels have met no observation.")
    assert "`abers check --connect`" in told


def test_it_is_said_once() -> None:
    """Whoever was told is not told again."""
    unmatched, shard = Unmatched(), Served()
    unmatched.look([shard], 0.0)
    told = []
    for prefix in "abc":
        settle(shard, *names(prefix, 1000), time=0)
        told.append(unmatched.look([shard], 0.0) is not None)
    assert told == [True, False, False]


def test_few_may_be_alone() -> None:
    """A fifth, or less than a thousand, is not enough; and the next thousand counts anew."""
    unmatched, shard = Unmatched(), Served()
    observe(shard, *names("a", 2000), time=0)
    unmatched.look([shard], 0.0)
    settle(shard, *names("a", 800), *names("b", 200), time=1)
    assert unmatched.look([shard], 0.0) is None
    settle(shard, *names("c", 999), time=1)
    assert unmatched.look([shard], 0.0) is None
    settle(shard, "c999", time=1)
    assert str(unmatched.look([shard], 0.0)).startswith("1,000 of the last 1,000 ")


def test_labels_that_are_early() -> None:
    """Labels that wait for less than labels usually are late may still meet theirs."""
    unmatched, shard = Unmatched(), Served()
    observe(shard, "first", time=0)
    unmatched.look([shard], 60.0)
    settle(shard, *names("a", 1000), time=30 * SECOND)
    assert unmatched.look([shard], 60.0) is None
    observe(shard, *names("a", 1000), time=60 * SECOND)
    assert unmatched.look([shard], 60.0) is None


def test_labels_that_were_given_up() -> None:
    """Labels that waited in vain to the end are alone too."""
    unmatched, shard = Unmatched(), Served()
    unmatched.look([shard], 0.0)
    settle(shard, *names("a", 1000), time=0)
    observe(shard, "late", "later", "latest", time=8 * 86_400 * SECOND)
    assert shard.processor.waiting == (3, 0)
    assert unmatched.look([shard], 0.0) is not None


def test_other_shards() -> None:
    """What a shard brought with it when it came is not counted."""
    unmatched, first, second = Unmatched(), Served(0), Served(1)
    settle(second, *names("a", 5000), time=0)
    assert unmatched.look([first], 0.0) is None
    assert unmatched.look([first, second], 0.0) is None
    assert unmatched.look([first, second], 0.0) is None
    settle(first, *names("a", 1000), time=0)
    assert unmatched.look([first, second], 0.0) is not None


def test_a_shard_that_was_restored_anew() -> None:
    """A shard that has fewer labels than before is another one."""
    unmatched, shard = Unmatched(), Served()
    settle(shard, *names("a", 1500), time=0)
    unmatched.look([shard], 0.0)
    anew = Served()
    settle(anew, *names("a", 1000), time=0)
    assert unmatched.look([anew], 0.0) is None
    settle(anew, *names("b", 1000), time=0)
    assert unmatched.look([anew], 0.0) is not None
