"""The meaning of a cell: the same as a text, as CSV has it, and as a number."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream.cells import BadRecordError
from abers.stream.readers import ExtraReader, FeaturesReader, IdReader, LabelReader, ScoreReader
from abers.stream.times import TimeReader

if TYPE_CHECKING:
    from collections.abc import Callable


def refused(read: Callable[[object], object], value: object) -> tuple[str, str]:
    """Return reason and detail of the error that a value raises."""
    with pytest.raises(BadRecordError) as caught:
        read(value)
    return caught.value.reason, str(caught.value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60))
def test_a_score_is_any_finite_number(number: float) -> None:
    """A number and its string are the same score, always a float."""
    assert ScoreReader().one(number) == ScoreReader().one(repr(number)) == float(number)
    assert type(ScoreReader().one(number)) is float


@pytest.mark.parametrize(
    "value",
    ["nan", math.nan, "inf", 1e999, "1e999", 10**400, "9" * 5000, "high", "1_000", True, [1], {}],
)
def test_bad_scores(value: object) -> None:
    """NaN, infinity, words and booleans are refused with a remedy."""
    reason, detail = refused(ScoreReader().one, value)
    assert reason == "bad-score"
    assert detail.endswith("is not a finite number; drop the record or repair the model's output")
    assert len(detail) < 150


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_700_000_000_123, 1_700_000_000_123),
        ("1700000000123", 1_700_000_000_123),
        (1.7e12, 1_700_000_000_000),
        ("1.7e12", 1_700_000_000_000),
        (3, 3),
        ("-2", -2),
        (999_999_999, 999_999_999),
        (-99_999_999_999_999, -99_999_999_999_999),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14 23:13:20.1239+01:00", 1_700_000_000_123),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_000_000),
        ("2026-03-01 00:00:00+00", 1_772_323_200_000),
        ("2026-03-01 00:00:00 Z", 1_772_323_200_000),
        ("2026-03-01T00:00Z", 1_772_323_200_000),
        ("20260301T000000Z", 1_772_323_200_000),
        ("1970-05-01T00:00:00Z", 10_368_000_000),
        (datetime(1970, 5, 1, tzinfo=UTC), 10_368_000_000),
    ],
)
def test_ways_to_write_a_time(value: object, expected: int) -> None:
    """Whole milliseconds as number or string, small numbers, and RFC 3339 are times."""
    time = TimeReader().one(value)
    assert time == expected
    assert type(time) is int


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (10**9, "seems to be in seconds"),
        ("1700000000", "seems to be in seconds"),
        (1_700_000_000.25, "seems to be in seconds"),
        (10**11 - 1, "seems to be in seconds"),
        (10**14, "seems to be in micro- or nanoseconds"),
        (1_700_000_000_123_456_789, "seems to be in micro- or nanoseconds"),
        (-(10**14), "seems to be in micro- or nanoseconds"),
        (1.5, "is not a whole number"),
        (1_700_000_000_000.5, "is not a whole number"),
        ("noon", "is not a time"),
        ("2023-11-14", "UTC offset"),
        ("2023-11-14T22:13:20", "UTC offset"),
        (datetime(2023, 11, 14, 22, 13, 20), "UTC offset"),  # noqa: DTZ001 - that is the point
        (True, "is not a time"),
        (math.nan, "is not a time"),
        (10**400, "is not a time"),
        ([], "is not a time"),
    ],
)
def test_bad_times(value: object, hint: str) -> None:
    """Seconds, micro- and nanoseconds are recognized by their range."""
    reason, detail = refused(TimeReader().one, value)
    assert reason == "bad-time"
    assert hint in detail
    assert "write whole milliseconds since 1970, or RFC 3339" in detail


@pytest.mark.parametrize(("value", "expected"), [("a1", "a1"), (17, "17"), ("007", "007")])
def test_an_id_is_a_text(value: object, expected: str) -> None:
    """A string is unchanged, and an integer becomes its digits."""
    assert IdReader().one(value) == expected


@pytest.mark.parametrize("value", [1.5, True, ["a"], {"a": 1}, pytest.param(10**5000, id="huge")])
def test_bad_ids(value: object) -> None:
    """Values without a unique text are refused."""
    reason, detail = refused(IdReader().one, value)
    assert reason == "bad-id"
    assert detail.endswith("is not a valid id; write a string or a whole number")


@pytest.mark.parametrize("value", [1, True, 1.0, "1", "true", "TRUE", " 1 ", "1.0"])
def test_ways_to_write_the_positive_label(value: object) -> None:
    """1 and true, as number, boolean or string in any case, are 1; also as positive values."""
    assert LabelReader([]).one(value) == 1
    for positive in (1, True, "1", "True"):
        assert LabelReader([positive]).one(value) == 1


@pytest.mark.parametrize("value", [0, False, 0.0, -0.0, "0", "false", "FALSE"])
def test_ways_to_write_the_negative_label(value: object) -> None:
    """0 and false, as number, boolean or string in any case, are 0."""
    assert LabelReader([]).one(value) == 0
    assert LabelReader([1]).one(value) == 0


@pytest.mark.parametrize(
    "value", [2, -1, 0.5, "yes", [1], {}, pytest.param(10**5000, id="huge"), math.inf]
)
def test_bad_labels(value: object) -> None:
    """Any other label is refused."""
    reason, detail = refused(LabelReader([]).one, value)
    assert reason == "bad-label"
    assert "is not a label; write 0 or 1, or false or true, or name the values" in detail


def test_every_other_value_is_negative_once_the_positive_are_named() -> None:
    """With positive values all other strings, numbers and booleans mean 0; a list is refused."""
    read = LabelReader(["fraud", "chargeback", 3]).one
    assert [read(value) for value in ("fraud", "chargeback", 3, "3", 3.0)] == [1] * 5
    assert [read(value) for value in ("genuine", "Fraud", 1, True, 2.5)] == [0] * 5
    assert refused(read, ["fraud"])[0] == "bad-label"


def test_positive_may_be_what_is_usually_negative() -> None:
    """A positive value 0 means 1."""
    read = LabelReader([0]).one
    assert [read(value) for value in ("0", False, 1)] == [1, 1, 0]


def test_features_are_an_object() -> None:
    """Features are an object; anything else is refused."""
    assert FeaturesReader().one({"a": [1]}) == {"a": [1]}
    assert refused(FeaturesReader().one, [1])[0] == "bad-features"


def test_texts_that_read_as_numbers_are_such() -> None:
    """A CSV cell that parses as a number is one."""
    found = [ExtraReader().one(text) for text in ("5", "0.5", "nan", "x", "1e3")]
    assert found == [5, 0.5, "nan", "x", 1000.0]


def test_messages_stay_short() -> None:
    """A value in a message is shortened, also one that contains itself."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("x" * 10**6, deep):
        assert len(refused(ScoreReader().one, value)[1]) < 200
    while deep:  # taken apart by hand, for its end would be as deep
        deep = deep.pop()  # type: ignore[assignment]


def test_a_date_is_its_first_moment_in_the_zone() -> None:
    """A date is read as in a text: with a zone its midnight there, without one it is refused."""
    read = TimeReader(ZoneInfo("Europe/Berlin")).one
    assert read(date(2026, 3, 1)) == read("2026-03-01") == 1_772_319_600_000
    assert "has no UTC offset" in refused(TimeReader().one, date(2026, 3, 1))[1]
