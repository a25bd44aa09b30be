"""Arguments of another type are refused in words of abers, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from abers import ParameterError, VennAbers
from abers.stream import Events, Observation, Processor

if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = pd.DataFrame({"id": ["a"], "time": [0], "score": [0.3]})


@pytest.mark.parametrize("given", [FRAME, "abc", 5, None, [{"id": "a"}]], ids=str)
@pytest.mark.parametrize("take", [Events.of, Processor().process_many])
def test_what_is_no_list_of_events(given: Any, take: Callable[[Any], object]) -> None:  # noqa: ANN401
    """A frame, a dict or a number in the place of events is named."""
    with pytest.raises(
        ParameterError,
        match=r"neither an Observation nor a Label|must be a list of observations and labels",
    ):
        take(given)


@pytest.mark.parametrize("given", [{"window": 5}, "x", 0], ids=str)
def test_what_is_no_settings(given: Any) -> None:  # noqa: ANN401
    """A processor says what it takes."""
    with pytest.raises(ParameterError, match=r"pass Settings, such as Settings\(window=5\)"):
        Processor(given)


@pytest.mark.parametrize("restore", [Processor.restore, VennAbers.from_bytes])
@pytest.mark.parametrize("given", ["state.abers", None, 5], ids=str)
def test_what_is_no_saved_state(given: Any, restore: Callable[[Any], object]) -> None:  # noqa: ANN401
    """The name of a file in the place of its bytes is named."""
    name = type(given).__name__
    with pytest.raises(
        ParameterError, match=f"is bytes, and not {name}; read them from their file"
    ):
        restore(given)


def test_saved_states_in_any_buffer() -> None:
    """Bytes may stand in any buffer."""
    blob = Processor().snapshot({"line": 1})
    buffers: list[Any] = [blob, bytearray(blob), memoryview(blob)]
    for given in buffers:
        assert Processor.restore(given).position == {"line": 1}
    assert Processor().process_many(iter([Observation("a", 0, score=0.5)]))
