"""Assignor of a consumer group that keeps partitions where they are.

Members report which partitions they had, and in which generation of the group. Each keeps them up
to its fair share; the rest goes to members that have fewer. All topics are assigned alike: a member
has the same partitions of each.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from kafka.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ["Member", "StickyAssignor", "assign"]

_log = logging.getLogger(__name__)

_NO_GENERATION = -1


class _Owned(msgspec.Struct, frozen=True):
    """The partitions that a member had, as it reports them to the leader of the group."""

    generation: int = _NO_GENERATION
    partitions: tuple[int, ...] = ()


class Member(NamedTuple):
    """A member of a group, with the partitions that it had in a generation of the group."""

    name: str
    owned: Collection[int] = ()
    generation: int = _NO_GENERATION


def assign(members: Sequence[Member], partitions: Sequence[int]) -> dict[str, list[int]]:
    """Return the partitions of each member, by its name.

    Parameters
    ----------
    members
        Members, in the order in which they take free partitions.
    partitions
        Numbers of all partitions.

    Returns
    -------
    dict
        Numbers, in order. Members have equally many, or one more, and as few partitions move as
        that allows. If no member had any, each gets consecutive numbers, as by the range assignor.

    Examples
    --------
    >>> assign([Member("a"), Member("b")], range(5))
    {'a': [0, 1, 2], 'b': [3, 4]}
    >>> assign([Member("a", [0, 1, 2], 7), Member("b", [3, 4], 7), Member("c")], range(5))
    {'a': [0, 1], 'b': [3, 4], 'c': [2]}
    """
    had = _claims(members, partitions)
    share, more = divmod(len(partitions), len(members))
    order = sorted(had, key=lambda name: -len(had[name]))  # who had most may have one more
    limits = {name: share + (place < more) for place, name in enumerate(order)}
    kept = {name: mine[: limits[name]] for name, mine in had.items()}
    free = sorted({*partitions}.difference(*kept.values()))
    for name, mine in kept.items():
        wanted = limits[name] - len(mine)
        mine.extend(free[:wanted])
        del free[:wanted]
    return {name: sorted(mine) for name, mine in kept.items()}


def _claims(members: Sequence[Member], partitions: Sequence[int]) -> dict[str, list[int]]:
    """Return the partitions that each member had, in order; the latest generation wins."""
    owners: dict[int, str] = {}
    for member in sorted(members, key=lambda one: -one.generation):
        for number in member.owned:
            owners.setdefault(number, member.name)
    return {
        member.name: [one for one in sorted(partitions) if owners.get(one) == member.name]
        for member in members
    }


class StickyAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # has no types
    """The assignor of one member of a group; the client calls it."""

    name = "abers-sticky"
    version = 0

    def __init__(self) -> None:
        self._owned = _Owned()

    def metadata(self, topics: Collection[str]) -> Any:  # noqa: ANN401 - of the client
        """Return the subscription that the member sends when it joins."""
        said = msgspec.msgpack.encode(self._owned)
        return ConsumerProtocolSubscription(self.version, list(topics), said)

    def on_assignment(self, assignment: Any, generation: int) -> None:  # noqa: ANN401
        """Remember the partitions that the member got."""
        numbers = {number for _, number in assignment.partitions()}
        self._owned = _Owned(generation, tuple(sorted(numbers)))

    def assign(self, cluster: Any, members: Any) -> Mapping[str, Any]:  # noqa: ANN401
        """Return the assignment of each member of the group, as its leader."""
        topics = sorted({topic for one in members for topic in one.metadata.topics})
        known = {topic: cluster.partitions_for_topic(topic) or set() for topic in topics}
        # Static members first, each in the order of names, as by the range assignor.
        ordered = sorted(members, key=lambda one: (one.group_instance_id or "~", one.member_id))
        found = assign([*map(_said, ordered)], sorted(set().union(*known.values())))
        return {
            name: ConsumerProtocolAssignment(
                self.version,
                [(topic, [one for one in numbers if one in known[topic]]) for topic in topics],
                b"",
            )
            for name, numbers in found.items()
        }


def _said(member: Any) -> Member:  # noqa: ANN401 - of the client
    """Return a member with the partitions that it reported."""
    name, said = member.member_id, member.metadata.user_data or b""
    try:
        owned = msgspec.msgpack.decode(said, type=_Owned)
    except msgspec.MsgspecError as error:
        _log.warning("member %s reports no earlier partitions (%s), so any may move", name, error)
        owned = _Owned()
    return Member(name, owned.partitions, owned.generation)
