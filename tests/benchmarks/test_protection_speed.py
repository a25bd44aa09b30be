"""The benchmark of protected prediction compares calibrators on the same streams."""

from __future__ import annotations

import pytest
from benchmarks import protection_speed as speed

N = 1_200
FAMILIES = speed.families(N)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("run", [speed.together, speed.singly])
def test_both_learn_all_labels(name: str, run: speed.Run) -> None:
    """The plain and the protected calibrator learn each label, in one call and in single calls."""
    of = FAMILIES[name]
    for make in (of.plain, of.protected):
        calibrator = make()
        run(calibrator, of)
        assert len(calibrator) == N
