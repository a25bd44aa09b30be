"""Rows of a batch: True and False mean what masks of all and of no rows mean."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from abers.stream.cells import any_of, both, either, mask_of, numbers_of, others

if TYPE_CHECKING:
    from abers.stream.cells import Rows

SIZE = 3
ROWS: list[Rows] = [
    True,
    False,
    *(np.array(one) for one in product([True, False], repeat=SIZE)),
]


def members(rows: Rows) -> set[int]:
    """Return the numbers of some rows."""
    return {row for row in range(SIZE) if (rows if isinstance(rows, bool) else rows[row])}


@pytest.mark.parametrize(("one", "two"), [*product(ROWS, repeat=2)])
def test_two_selections_are_combined_as_sets(one: Rows, two: Rows) -> None:
    """Intersection and union of rows are those of the sets of their numbers."""
    assert members(both(one, two)) == members(one) & members(two)
    assert members(either(one, two)) == members(one) | members(two)


@pytest.mark.parametrize("rows", ROWS)
def test_a_selection_is_read_as_a_set(rows: Rows) -> None:
    """The complement, the numbers, the mask and whether there is a row are those of the set."""
    assert members(others(rows)) == set(range(SIZE)) - members(rows)
    assert numbers_of(rows, SIZE).tolist() == sorted(members(rows))
    assert mask_of(rows, SIZE).tolist() == [row in members(rows) for row in range(SIZE)]
    assert any_of(rows) == bool(members(rows))
