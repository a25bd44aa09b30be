"""What fields may hold: the same values from CSV, where all is text, as from JSON."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.files import _values


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60))
def test_a_score_is_any_finite_number(number: float) -> None:
    """A number and its text are the same score."""
    assert _values.score(number) == _values.score(repr(number)) == float(number)


@pytest.mark.parametrize(
    "value", ["nan", math.nan, "inf", "-Infinity", 1e999, "1e999", 10**400, "high", "", None, True]
)
def test_what_is_no_finite_number_is_no_score(value: object) -> None:
    """NaN, the infinite, words, nothing and booleans are refused by name."""
    with pytest.raises(ValueError, match="is not a finite number; drop the record or repair"):
        _values.score(value)


@pytest.mark.parametrize("value", [-0.01, "1.01", 2])
def test_a_score_outside_the_unit_interval_is_no_probability(value: object) -> None:
    """Once declared probabilities, scores must be such."""
    with pytest.raises(ValueError, match=r"is not a probability in \[0, 1\]"):
        _values.probability(value)


@pytest.mark.parametrize("value", [0, "1", 0.5])
def test_the_ends_are_probabilities(value: object) -> None:
    """0 and 1 themselves are probabilities."""
    assert _values.probability(value) == float(str(value))


@pytest.mark.parametrize("value", [1, True, "1", "true", "True", "TRUE", " 1 "])
def test_ways_to_write_the_positive_label(value: object) -> None:
    """1 and true, as number, boolean or text in any case."""
    assert _values.label(value) == 1


@pytest.mark.parametrize("value", [0, False, "0", "false", "False", "FALSE"])
def test_ways_to_write_the_negative_label(value: object) -> None:
    """0 and false likewise."""
    assert _values.label(value) == 0


@pytest.mark.parametrize("value", [2, -1, 0.5, "yes", "", None, "nan", [1]])
def test_anything_else_is_no_label(value: object) -> None:
    """A label outside the two is refused by name, never guessed."""
    with pytest.raises(ValueError, match="is not a label; write 0 or 1, or false or true"):
        _values.label(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        ("3", 3),
        ("-2.5", -2.5),
        (1.5, 1.5),
        (1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        ("1700000000123456789", 1_700_000_000_123_456_789),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14 23:13:20+01:00", 1_700_000_000_000),
    ],
)
def test_ways_to_write_a_time(value: object, expected: float) -> None:
    """A number stays what it is, to the nanosecond; RFC 3339 becomes epoch milliseconds."""
    time = _values.time(value)
    assert time == expected
    assert type(time) is type(expected)


@pytest.mark.parametrize("value", ["noon", "", None, True, "nan", "2023-11-14", "2023-11-14T22:13"])
def test_anything_else_is_no_time(value: object) -> None:
    """Words, dates alone and times without an offset are refused with an example to follow."""
    with pytest.raises(ValueError, match=r"is no time; .* 2026-01-31T12:00:00Z"):
        _values.time(value)


def test_a_whole_number_too_large_for_the_wire_becomes_a_float() -> None:
    """Beyond 64 bits a time keeps its size and loses its last digits."""
    assert _values.time(10**20) == 1e20
    assert isinstance(_values.time(10**20), float)


@pytest.mark.parametrize(("value", "expected"), [("a1", "a1"), (17, "17"), ("", "")])
def test_an_id_is_a_text(value: object, expected: str) -> None:
    """A text stays as it is, a whole number is written out."""
    assert _values.identity(value) == expected


@pytest.mark.parametrize("value", [None, 1.5, True, ["a"]])
def test_anything_else_is_no_id(value: object) -> None:
    """What has no one way to be written is refused."""
    with pytest.raises(ValueError, match="is no id; write a text or a whole number"):
        _values.identity(value)
