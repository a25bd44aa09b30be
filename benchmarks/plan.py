"""How much is measured: everything, or as much as takes seconds.

A quick run goes through the same code as a full one, on fewer observations.
"""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """Sizes of bags and of what is timed on them."""

    sizes: tuple[int, ...]  # of the bag
    rounds: int
    turn: float  # seconds that a turn of a contender should take
    most: int  # events in a turn, at most
    hostile: tuple[int, ...]  # sizes of hostile bags
    probes: int  # observations tried on each
    passes: int  # times that each is built anew
    large: int  # observations of the measured memory, bytes and floor
    replayed: int  # observations of a replayed file, whole thousands
    long: int  # observations over which memory is watched, whole thousands
    models: int  # in one stream


FULL = Plan(
    (10**3, 10**4, 10**5, 10**6),
    9,
    0.12,
    50_000,
    (10**4, 10**5, 10**6),
    20_000,
    3,
    10**6,
    10**5,
    5 * 10**6,
    10**3,
)
QUICK = Plan((10**3, 3 * 10**3), 3, 0.01, 1_000, (10**3,), 300, 2, 10**4, 5_000, 5 * 10**5, 100)

PATIENCE = 1.0  # seconds for one event, above which a contender drops out
