"""Isotonic regression of groups, on the native and on the reference backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.backends import core
from abers.reference import pava

if TYPE_CHECKING:
    from types import ModuleType

LARGE = 2**60  # products of two such take more than 64 bits

GROUPS = st.lists(
    st.tuples(st.integers(0, 3) | st.integers(0, LARGE), st.integers(0, 3) | st.integers(0, LARGE)),
    max_size=7,  # so that the total stays below 2**63
).map(lambda groups: [(zeros or 1, ones) for zeros, ones in groups])


def pooled(module: ModuleType, groups: list[tuple[int, int]]) -> list[int]:
    """Return the ends of the blocks."""
    columns = np.array(groups, np.int64).reshape(-1, 2)
    ends = np.empty(len(groups), np.int64)
    count = module.pooled(columns.sum(axis=1), np.ascontiguousarray(columns[:, 1]), ends)
    found: list[int] = ends[:count].tolist()
    return found


@pytest.mark.native
@given(groups=GROUPS)
def test_backends_agree(groups: list[tuple[int, int]]) -> None:
    """Both find the same blocks, whatever the counts."""
    assert pooled(core, groups) == pooled(pava, groups)


@pytest.mark.parametrize("module", [core, pava])
def test_adjacent_violators_are_pooled(module: ModuleType) -> None:
    """Groups whose shares fall or are equal become one block, and so do those below it."""
    assert pooled(module, [(1, 0), (1, 2), (1, 2), (1, 1), (0, 1)]) == [1, 4, 5]
    assert pooled(module, []) == []


@pytest.mark.native
def test_columns_of_different_lengths() -> None:
    """The core refuses columns of different lengths."""
    one, two = np.ones(1, np.int64), np.ones(2, np.int64)
    for columns in ((one, two, one), (one, one, two)):
        with pytest.raises(ValueError, match="differ in length"):
            core.pooled(*columns)
