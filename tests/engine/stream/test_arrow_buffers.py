"""Arrow arrays and numpy arrays, `abers.stream.arrow_columns`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream.arrow_columns import new_array, numbers, repeated_array, text_ends, valid_rows

pa: Any = pytest.importorskip("pyarrow")

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bool_": st.booleans(),
    "string": st.text("ab\0é€", max_size=4),
}


@pytest.mark.parametrize("kind", CELLS)
@given(st.data())
def test_values_come_back(kind: str, data: st.DataObject) -> None:
    """An array is that of pyarrow, and its slices have the values and the nulls of the rows."""
    values = data.draw(st.lists(st.none() | CELLS[kind], max_size=20))
    array = new_array(np.fromiter(values, object, len(values)), getattr(pa, kind)())
    array.validate(full=True)
    assert array.equals(pa.array(values, getattr(pa, kind)()))
    part, rest = array[3:], values[3:]
    valid = valid_rows(part)
    assert [one is not None for one in rest] == ([True] * len(rest) if valid is None else [*valid])
    if kind == "string":
        sizes = [len((one or "").encode()) for one in rest]
        assert np.diff(text_ends(part)).tolist() == sizes
    else:
        assert numbers(part).tolist() == [one or 0 for one in rest]


@pytest.mark.parametrize(
    ("kind", "value"), [("int64", 3), ("float64", 0.5), ("bool_", True), ("string", "é")]
)
def test_columns_of_numpy_and_repeated_values(kind: str, value: Any) -> None:  # noqa: ANN401
    """A column of numpy becomes an array as it is, and a value one of any length."""
    wanted = pa.array([value] * 3, getattr(pa, kind)())
    assert new_array(np.array([value] * 3), wanted.type).equals(wanted)
    assert repeated_array(value, wanted.type, 3).equals(wanted)
    assert repeated_array(None, wanted.type, 2).null_count == 2


def test_a_number_that_would_change_is_refused() -> None:
    """A fraction never becomes a whole number."""
    with pytest.raises(TypeError):
        new_array(np.array([1.5, None], object), pa.int64())


SCRIPT = """
import sys
import numpy as np
import pyarrow as pa
from abers.stream import Events, Processor
from abers.stream.arrow_columns import new_array
size = 20
times = new_array(1_772_323_200_000 + 1000 * np.arange(size), pa.int64())
table = pa.RecordBatch.from_arrays(
    [
        new_array(np.array([f"a{row}" for row in range(size)], object), pa.string()),
        times.view(pa.timestamp("ms", "UTC")),
        new_array(np.arange(size) / size, pa.float64()),
        new_array(np.arange(size) % 2, pa.int64()),
        new_array(np.array(["m", None] * (size // 2), object), pa.string()),
    ],
    ["id", "time", "score", "label", "model"],
)
events = Events.from_arrow(table, {"label_time": "time"})
outputs = Processor().process_batch(events).to_arrow()
assert outputs.predictions.num_rows == outputs.outcomes.num_rows == size
assert not outputs.dead_letters.num_rows
print("pandas" in sys.modules)
"""


@pytest.mark.once
def test_pandas_is_not_imported() -> None:
    """Events from Arrow and outputs to Arrow do without pandas, which takes long to import."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
