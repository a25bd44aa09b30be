"""Slots: every model has one, and every slot one partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as java

from abers_connectors.runtime.slots import SLOTS, murmur2, partition_of, slot_of, slots_of

COUNTS = st.integers(1, SLOTS)


@given(st.binary(max_size=40))
def test_hash(data: bytes) -> None:
    """The hash is that of kafka-python and Java."""
    assert murmur2(data) == java(data) & 0xFFFFFFFF


@given(st.text(), COUNTS)
def test_owner(model: str, partitions: int) -> None:
    """The partition of a model owns its slot."""
    slot = (java(model.encode()) & 0x7FFFFFFF) % SLOTS
    assert slot_of(model) == slot
    assert slot in slots_of(partition_of(model, partitions), partitions)


@given(COUNTS)
def test_all_slots_are_owned_once(partitions: int) -> None:
    """The ranges of all partitions follow one another, from the first slot to the last."""
    ends = [0, *(slots_of(one, partitions).stop for one in range(partitions))]
    assert [slots_of(one, partitions).start for one in range(partitions)] == ends[:-1]
    assert ends[-1] == SLOTS


@given(st.text(), st.integers(1, SLOTS // 2))
def test_doubling_cuts_each_range_in_two(model: str, partitions: int) -> None:
    """With twice the partitions a model goes to one of the two halves of its partition."""
    assert partition_of(model, 2 * partitions) // 2 == partition_of(model, partitions)
