"""Saved calibrators whose checksum is right and whose content is not.

Each is refused with a StateError when it is loaded, or does no harm later.
"""

from __future__ import annotations

import random

import pytest
from tests.engine import damaging

EACH = pytest.mark.parametrize("name", damaging.MADE)


@EACH
def test_sound_bytes_are_used(name: str) -> None:
    """What is asked of damaged calibrators can be asked of a sound one."""
    one = damaging.made(name)
    damaging.use(type(one).from_bytes(one.to_bytes()))


@EACH
@pytest.mark.parametrize("times", [15, pytest.param(3_000, marks=pytest.mark.long)])
def test_damaged_bytes(name: str, times: int) -> None:
    """Options, numbers and columns that are wrong are refused, or harmless."""
    refused = 0
    for number in range(times):
        rng = random.Random(f"{name} {number}")  # noqa: S311 - no secret
        refused += damaging.try_bytes(name, rng)
    assert 0 < refused < times
