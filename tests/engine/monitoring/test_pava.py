"""Isotonic regression of groups, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.reference.isotonic import pool

LARGE = 2**60  # products of two such take more than 64 bits

GROUPS = st.lists(
    st.tuples(st.integers(0, 3) | st.integers(0, LARGE), st.integers(0, 3) | st.integers(0, LARGE)),
    max_size=7,  # so that the total stays below 2**63
).map(lambda groups: [(zeros or 1, ones) for zeros, ones in groups])


def pooled(groups: list[tuple[int, int]]) -> list[int]:
    """Return the ends of the blocks: each the number of groups up to it."""
    columns = np.array(groups, np.int64).reshape(-1, 2)
    ends = np.empty(len(groups), np.int64)
    count = core.pooled(columns.sum(axis=1), np.ascontiguousarray(columns[:, 1]), ends)
    found: list[int] = ends[:count].tolist()
    return found


@given(groups=GROUPS)
def test_blocks_are_those_of_the_definition(groups: list[tuple[int, int]]) -> None:
    """The blocks are those of the definition, however large the counts."""
    blocks = pool((float(number), group) for number, group in enumerate(groups, 1))
    assert pooled(groups) == [int(block.upper) for block in blocks]


def test_adjacent_violators_are_pooled() -> None:
    """Groups whose shares fall or are equal become one block, and so do those below it."""
    assert pooled([(1, 0), (1, 2), (1, 2), (1, 1), (0, 1)]) == [1, 4, 5]
    assert pooled([]) == []


def test_columns_of_different_lengths() -> None:
    """The core refuses columns of different lengths."""
    one, two = np.ones(1, np.int64), np.ones(2, np.int64)
    for columns in ((one, two, one), (one, one, two)):
        with pytest.raises(ValueError, match="differ in length"):
            core.pooled(*columns)
