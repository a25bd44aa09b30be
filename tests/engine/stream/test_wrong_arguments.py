"""Arguments of another type are refused in words of abers, and change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from abers import ParameterError, VennAbers
from abers.stream import Events, Label, Observation, Processor
from abers.stream.durable import DurableProcessor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


EVENTS = Events.of([Observation("a", 1, score=0.3), Label("a", 2, value=1)])


@pytest.mark.parametrize(
    ("column", "given", "what"),
    [
        ("scores", pd.Series([0.3, 0.0]), "not a Series"),
        ("times", [1, 2], "not a list"),
        ("ids", np.array(["a"], object), r"not \(1,\)"),
        ("values", np.array([1]), r"not \(1,\)"),
        ("models", None, "not a NoneType"),
    ],
)
def test_columns_that_are_no_columns(column: str, given: Any, what: str, tmp_path: Path) -> None:  # noqa: ANN401
    """Events with a column of another kind or length change nothing, and end no processor."""
    bad = replace(EVENTS, **{column: given})
    message = f"{column} of Events must be an array of numpy with 2 rows, as labels has, {what}"
    processor = Processor()
    before = processor.state_bytes()
    with pytest.raises(ParameterError, match=message):
        processor.process_batch(bad)
    assert processor.state_bytes() == before
    with DurableProcessor(tmp_path) as durable:
        with pytest.raises(ParameterError, match=message):
            durable.process(bad)
        assert len(durable.process(EVENTS).predictions) == 1


@pytest.mark.parametrize("bad", [np.timedelta64(5, "s"), np.timedelta64(5, "ns")])
def test_a_duration_is_no_score(bad: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A duration of numpy, which is among its integers, is a dead letter and ends no processor."""
    with DurableProcessor(tmp_path) as durable:
        outputs = durable.process([Observation("a", 1, score=bad)])
        assert [one.reason for _, one in outputs.dead_letters] == ["bad-score"]
        assert len(durable.process(EVENTS).predictions) == 1
