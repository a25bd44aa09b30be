"""Arrow arrays as numpy columns, `abers.stream.arrow_columns`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream.arrow_columns import numpy_column, plain_array

pa: Any = pytest.importorskip("pyarrow")

TEXTS = st.lists(st.none() | st.text("abé", max_size=3), max_size=80)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(TEXTS, st.sampled_from(["string", "large_string", "string_view", "dictionary"]), st.data())
def test_strings_of_every_type(texts: list[str | None], kind: str, data: st.DataObject) -> None:
    """Strings are the same objects of text, whatever type they have and wherever a slice begins."""
    start = data.draw(st.integers(0, len(texts)))
    array = pa.array(texts, pa.string())
    array = array.dictionary_encode() if kind == "dictionary" else array.cast(getattr(pa, kind)())
    found = numpy_column(array.slice(start))
    assert found is not None
    assert found.values.tolist() == [one or "" for one in texts[start:]]
    valid = np.ones(len(found.values), bool) if found.valid is None else found.valid
    assert valid.tolist() == [one is not None for one in texts[start:]]


def test_a_null_in_a_dictionary_is_none() -> None:
    """A code of a null in the dictionary has no value, as a missing code has none."""
    for codes in ([0, 1, 0], [0, None, 0]):
        array = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["a", None]))
        found = numpy_column(array)
        assert found is not None
        assert found.valid is not None
        assert found.valid.tolist() == [True, False, True]
        assert found.values.tolist() == ["a", "", "a"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit(unit: str) -> None:
    """A time with a zone becomes the millisecond in which it lies, also before 1970."""
    moments = [EPOCH + timedelta(milliseconds=m, microseconds=500) for m in (-1500, 0, 1700)]
    seconds = [moment.replace(microsecond=0) for moment in moments]
    given_ = seconds if unit == "s" else moments
    array = pa.array([*given_, None], pa.timestamp("us", "UTC"))
    array = array.cast(pa.timestamp(unit, "Europe/Zurich"), safe=False)
    found = numpy_column(array)
    assert found is not None
    ticks = {"s": 1000}.get(unit, 1)
    exact = [(moment - EPOCH) // timedelta(milliseconds=1) // ticks * ticks for moment in given_]
    if unit != "ms":  # pyarrow's own cast to milliseconds is towards zero
        assert found.values.dtype == np.dtype("datetime64[ms]")
        assert found.values.astype(np.int64).tolist() == [*exact, 0]
    assert found.valid is not None
    assert found.valid.tolist() == [True, True, True, False]


def test_seconds_that_milliseconds_cannot_hold() -> None:
    """A time beyond all milliseconds stays beyond every event, and does not become another one."""
    array = pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("s", "UTC"))
    whole = plain_array(array).view(pa.int64()).to_pylist()
    assert [abs(one) > 2**53 for one in whole] == [True, True]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([1, None], pa.int8()), [1, 0]),
        (pa.array([0.5, None], pa.float32()), [0.5, 0.0]),
        (pa.array([Decimal("0.25"), None]), [0.25, 0.0]),
        (pa.array([True, None]), [True, False]),
        (pa.array([7, None]).dictionary_encode(), [7, 0]),
        (pa.array([None, None]), [None, None]),
    ],
)
def test_numbers_and_nulls(array: Any, values: list[Any]) -> None:  # noqa: ANN401
    """Numbers have zeros where they are null, and a mask."""
    found = numpy_column(array)
    assert found is not None
    assert found.valid is not None
    assert found.values.tolist() == values
    assert found.valid.tolist()[1] is False


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([2**63], pa.uint64()),
        pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")),  # noqa: DTZ001 - without a zone
        pa.array([b"\xff"]),
        pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers()),
    ],
)
def test_what_numpy_lacks(array: Any) -> None:  # noqa: ANN401
    """Nested values, times without a zone and strings that are not UTF-8 have no column."""
    assert numpy_column(array) is None


def test_a_decimal_is_the_nearest_float() -> None:
    """Decimals of every width become the float that is nearest, as Python reads their digits."""
    texts = ["0.1", "-0.29", "9007199254740993.5", "0.30000000000000004", "123456789.987654321"]
    for kind in (pa.decimal128(38, 17), pa.decimal256(60, 17)):
        array = pa.array([*map(Decimal, texts), None], kind)
        found = numpy_column(array)
        assert found is not None
        assert found.values[:-1].tolist() == [*map(float, texts)]
        assert found.valid is not None
        assert found.valid.tolist() == [True] * 5 + [False]
