"""The estimate of a state's memory, `abers_connectors.runtime.models`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.runtime.models import state_bytes

ROOT = Path(__file__).parents[3]


def test_nothing_takes_nothing() -> None:
    """A state without models takes nothing."""
    assert state_bytes(Processor()) == 0


def test_what_waits_is_counted() -> None:
    """Each pending observation, early label and finished id adds its bytes."""
    processor = Processor(Settings(monitors=False, tests=False))
    processor.process(Observation("a", 1, score=0.5))
    before = state_bytes(processor)
    processor.process(Observation("b", 2, score=0.5))
    assert state_bytes(processor) - before == 208 + 36
    processor.process(Label("c", 3, value=1))
    assert state_bytes(processor) - before == 208 + 36 + 110 + 36
    assert processor.held == (0, 0)
    processor.process(Label("b", 3, value=1))
    # The label is taught when that of the first observation is, or when that is overdue.
    assert processor.held == (0, 1)
    assert state_bytes(processor) - before == 110 + 36 + 110 + 36


@pytest.mark.parametrize("kind", ["protected", "abers:ProtectedVennAbers"])
def test_experts_are_counted_without_monitors(kind: str) -> None:
    """An observation that a mixture of experts predicted takes a lane, whether it is monitored."""
    given = Settings(scores="probability", calibrator=kind, monitors=False, tests=False)
    processor = Processor(given)
    processor.process(Observation("a", 1, score=0.5))
    before = state_bytes(processor)
    processor.process(Observation("b", 2, score=0.5))
    assert state_bytes(processor) - before == 208 + 36 + 490


def test_a_window_bounds_only_the_calibrator() -> None:
    """History and experts keep the labels that a window has dropped."""
    sizes = []
    for window in (None, 4):
        processor = Processor(Settings(scores="probability", window=window))
        for number in range(10):
            processor.process(Observation(f"{number}", number, score=0.5))
            processor.process(Label(f"{number}", number, value=number % 2))
        sizes.append(state_bytes(processor))
    assert sizes[0] - sizes[1] == 6 * 30


@pytest.mark.parametrize("labels", [1, 40])
@pytest.mark.parametrize("kind", ["any", "merged", "protected"])
def test_the_memory_of_many_models(kind: str, labels: int) -> None:
    """The estimate is within a quarter of what a new process grows by."""
    command = [sys.executable, "-m", "benchmarks.model_memory", "500", str(labels), kind]
    found = json.loads(subprocess.check_output(command, cwd=ROOT))
    assert found["estimated"] == pytest.approx(found["measured"], rel=0.25)
