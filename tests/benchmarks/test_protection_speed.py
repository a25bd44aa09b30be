"""The benchmark of protected prediction compares calibrators on the same streams."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize("name", FAMILIES)
def test_ratios(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A ratio is that of the two times in its line, in one call and in single calls."""
    speed.compared(name, FAMILIES[name])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        plain, protected, ratio = map(float, re.findall(r"\d+\.\d+", line))
        assert ratio == pytest.approx(protected / plain, rel=0.03)
