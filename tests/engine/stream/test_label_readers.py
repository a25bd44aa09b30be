"""Labels and scores of several classes, and of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream.cells import BadRecordError
from abers.stream.readers import ClassReader, ClassScoresReader, LabelReader
from abers.stream.schema_columns import Readers

CLASSES = ("cat", "7")


@pytest.mark.parametrize(
    ("classes", "value", "expected"),
    [
        (CLASSES, "cat", "cat"),
        (CLASSES, 7, "7"),
        (CLASSES, "7", "7"),
        (CLASSES, 7.0, "7"),
        (CLASSES, "7.0", "7"),
        (CLASSES, " cat ", "cat"),
        (("1", "0"), True, "1"),
        (("true", "false"), True, "true"),
        (("true", "false"), "TRUE", "true"),
        (("true", "false"), 0, "false"),
        (("7.0", "x"), 7, "7.0"),
        # Classes with equal values differ by their exact names.
        (("1", "01"), "01", "01"),
        (("01", "1"), "1", "1"),
        (("1", "01"), 1, "1"),
        (("01", "1"), 1, "1"),
        (("1", "true"), "true", "true"),
        (("a", " a"), " a", " a"),
        (("1" * 30, "1" * 29 + "2"), "1" * 29 + "2", "1" * 29 + "2"),
    ],
    ids=repr,
)
def test_a_class(classes: tuple[str, ...], value: object, expected: str) -> None:
    """A class is read by its exact name, or else by an equal value."""
    assert ClassReader(classes).one(value) == expected


@pytest.mark.parametrize("value", ["NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "null", " NULL "])
@pytest.mark.parametrize("positive", [(), ("fraud",)])
def test_a_word_for_no_label(value: str, positive: tuple[str, ...]) -> None:
    """What programs write for an unknown label is refused, and not taken for 0."""
    with pytest.raises(BadRecordError, match="leave it empty until the label is known"):
        LabelReader(positive).one(value)
    _, refused = LabelReader(positive).many(np.array([value, "1", value], object))
    assert [one.row for one in refused] == [0, 2]
    assert LabelReader([value]).one(value) == 1


@pytest.mark.parametrize(
    "value", ["dog", "", None, 8, 7.5, True, math.nan, math.inf, [], {}, 10**5000, "Cat"], ids=type
)
def test_no_class(value: object) -> None:
    """An unknown class is a bad label, and the message names all classes."""
    with pytest.raises(BadRecordError) as caught:
        ClassReader(CLASSES).one(value)
    assert caught.value.reason == "bad-label"
    assert "is not among the classes ['cat', '7']; add it" in str(caught.value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60))
def test_a_label_is_any_finite_number(value: float) -> None:
    """A number, or a string that parses as one, is a float, also if it is whole."""
    for written in (value, repr(value)):
        assert Readers.regression().label.one(written) == float(value)
        assert type(Readers.regression().label.one(written)) is float


@pytest.mark.parametrize(
    "value", [None, "", "x", "1_0", True, math.nan, math.inf, "inf", [], {}, 10**400], ids=repr
)
def test_no_number(value: object) -> None:
    """A label that is not a finite number is bad."""
    with pytest.raises(BadRecordError) as caught:
        Readers.regression().label.one(value)
    assert caught.value.reason == "bad-label"


def test_scores_are_an_object_of_numbers() -> None:
    """Each score is a finite number, or a string that parses as one."""
    assert ClassScoresReader().one({"cat": "0.5", "7": 1}) == {"cat": 0.5, "7": 1.0}
    for bad in (0.5, "0.5", [0.5], None, {"cat": None}, {"cat": "x"}, {"cat": math.nan}):
        with pytest.raises(BadRecordError) as caught:
            ClassScoresReader().one(bad)
        assert caught.value.reason == "bad-score"
