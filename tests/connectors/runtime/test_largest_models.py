"""Models with large shares, `abers_connectors.runtime.models`, and the memory limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.process import memory_limit, memory_sentence
from abers_connectors.runtime.models import LargestModels, model_bytes, state_bytes

if TYPE_CHECKING:
    from pathlib import Path


def _predict(processor: Processor, model: str, count: int, segment: str = "") -> None:
    start = processor.counters["observations"]
    events = [
        Observation(f"{model}{start + n}", n, model=model, segment=segment, score=0.5)
        for n in range(count)
    ]
    processor.process_many(events)


def test_shares_are_of_the_last_minutes() -> None:
    """A model that is hot now leads, however many predictions another made before."""
    now = 0.0
    processor, largest = Processor(), LargestModels(lambda: now)
    _predict(processor, "old", 900)
    _predict(processor, "new", 100)
    assert [(one.model, one.share) for one in largest([processor])] == [("old", 0.9), ("new", 0.1)]
    now = 301.0
    _predict(processor, "new", 300, "a segment")
    assert [(one.model, one.share) for one in largest([processor])] == [("new", 1.0)]
    now = 500.0
    _predict(processor, "old", 100)
    found = largest([processor])
    assert [(one.model, one.predictions, one.share) for one in found] == [
        ("new", 400, 0.75),
        ("old", 1000, 0.25),
    ]
    now = 602.0  # what came before 301 s is no longer counted
    assert [(one.model, one.share) for one in largest([processor])] == [("old", 1.0)]
    now = 903.0  # nothing came since, so the shares are of all time
    assert [(one.model, one.share) for one in largest([processor])] == [
        ("old", 1000 / 1400),
        ("new", 400 / 1400),
    ]


def test_ten_of_all_processors() -> None:
    """The ten largest of all processors are listed, and none is listed twice."""
    processors = [Processor(), Processor()]
    for number in range(12):
        _predict(processors[0], f"m{number:02}", number + 1)
    _predict(processors[1], "m00", 99)
    found = LargestModels()(processors)
    assert [one.model for one in found] == ["m00", *(f"m{n:02}" for n in range(11, 2, -1))]
    assert found[0].predictions == 100
    assert LargestModels()([]) == []


@pytest.mark.parametrize("scores", ["any", "probability"])
def test_sizes_of_models_add_up(scores: str) -> None:
    """The sizes of all models are that of the state, which counts all models alike."""
    processor = Processor(Settings(scores=scores))  # type: ignore[arg-type]
    for model in ("a", "b"):
        _predict(processor, model, 5)
        _predict(processor, model, 5, "segment")
        first = "a0" if model == "a" else "b10"
        processor.process_many(
            [Label(first, 9, model=model, value=1), Label("early", 9, model=model, value=1)]
        )
    held = processor.holdings({"a", "b", "unknown"})
    assert {model: one[1:] for model, one in held.items()} == {"a": (1, 9, 2), "b": (1, 9, 2)}
    sizes = [model_bytes(processor, one) for one in held.values()]
    assert abs(sum(sizes) - state_bytes(processor)) <= 1


def test_the_limit_of_a_container(tmp_path: Path) -> None:
    """The limit is that of the container, or that of the machine if there is none."""
    machine = memory_limit(str(tmp_path))
    assert machine is not None
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit(str(tmp_path)) == machine
    (tmp_path / "memory.max").write_text("104857600\n")
    assert memory_limit(str(tmp_path)) == 100 << 20
    (tmp_path / "memory.max").unlink()
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("52428800\n")
    assert memory_limit(str(tmp_path)) == 50 << 20


def test_a_state_beyond_memory_is_said() -> None:
    """States that do not fit twice into the memory give a sentence with a remedy."""
    assert memory_sentence(437 << 20, 1 << 30) is None
    assert memory_sentence(1 << 50, None) is None
    said = memory_sentence(438 << 20, 1 << 30)
    assert said is not None
    assert "about 438 MiB" in said
    assert "limits.retire_after" in said
