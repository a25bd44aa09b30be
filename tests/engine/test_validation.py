"""What `abers.validation` refuses, at every entry point, and what it takes."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.cases import OPTIONS, aging, taught

from abers import (
    AbersError,
    CrossVennAbers,
    ForgettingError,
    InputError,
    LabelError,
    ParameterError,
    ScoreError,
    TimeError,
    VennAbers,
    WeightError,
    validation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAN, INF = math.nan, math.inf
HUGE = 10**400
PLAIN = {"unlimited": OPTIONS["unlimited"], "window": OPTIONS["window"]}
AGING = {name: options for name, options in OPTIONS.items() if aging(options)}
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)

DURATIONS: list[Any] = [np.timedelta64(1, "s"), np.timedelta64(1, "ns")]
NOT_NUMBERS: list[Any] = [None, "0.5", b"1", "", [0.5], (1,), {}, 1j, object(), np.array(0.5), int]
NOT_NUMBERS += DURATIONS
NOT_FINITE: list[Any] = [NAN, INF, -INF, HUGE, np.float32("nan"), np.float16("inf")]
NUMBERS: list[Any] = [
    1,
    True,
    1.0,
    np.bool_(1),
    np.float16(1),
    np.float32(1),
    np.float64(1),
    np.longdouble(1),
    *(dtype(1) for dtype in (np.int8, np.int16, np.int32, np.int64)),
    *(dtype(1) for dtype in (np.uint8, np.uint16, np.uint32, np.uint64)),
    Fraction(1),
]
BAD_LABELS: list[Any] = [2, -1, 0.5, "1", None, NAN, INF, 1j, [1], {}, b"1", np.array(1), HUGE]
BAD_WEIGHTS: list[Any] = [
    *NOT_NUMBERS,
    *NOT_FINITE,
    np.array([1.0]),
    np.array([1.0, 2.0]),
    0,
    0.0,
    -0.0,
    -1,
    False,
    1e-12,
    5e-324,
    2.0**-31,
    1e12,
    1e308,
    2.0**33,
]


def described(value: object) -> str:
    """Name a test case by the value it is about, in the same words in each process."""
    return repr(value).partition(" at 0x")[0][:24]


@pytest.fixture(params=list(OPTIONS.values()), ids=list(OPTIONS))
def calibrator(request: pytest.FixtureRequest) -> Iterator[VennAbers]:
    """Return a calibrator of each rule that must be the same after the test."""
    calibrator = taught(request.param, 12)
    before = calibrator.to_bytes()
    yield calibrator
    assert calibrator.to_bytes() == before


def when(calibrator: VennAbers, n: int | None = None) -> dict[str, Any]:
    """Time or times that the calibrator wants next to correct arguments."""
    if not (calibrator.max_age or calibrator.half_life):
        return {}
    return {"time": 20.0} if n is None else {"times": [20.0] * n}


def refused(error: type[InputError], value: object, call: Callable[[], object]) -> None:
    """Assert that a call is refused with exactly this error, which names value and remedy."""
    with pytest.raises(error, match=re.escape(validation.shown(value))) as caught:
        call()
    assert type(caught.value) is error
    assert isinstance(caught.value, ValueError)
    assert "; " in str(caught.value)


# One observation


@pytest.mark.parametrize("bad", NOT_NUMBERS + NOT_FINITE, ids=described)
def test_bad_score_of_one(calibrator: VennAbers, bad: Any) -> None:  # noqa: ANN401
    """A score that is no finite number is refused by every call for one observation."""
    refused(ScoreError, bad, lambda: calibrator.predict_one(bad))
    refused(ScoreError, bad, lambda: calibrator.isotonic(bad))
    refused(ScoreError, bad, lambda: calibrator.learn_one(bad, 1, **when(calibrator)))
    if calibrator.window is None and not when(calibrator):
        refused(ScoreError, bad, lambda: calibrator.remove_one(bad, 1))


@pytest.mark.parametrize("bad", BAD_LABELS, ids=described)
def test_bad_label_of_one(calibrator: VennAbers, bad: Any) -> None:  # noqa: ANN401
    """A label other than 0 and 1 is refused where one is learned or removed."""
    refused(LabelError, bad, lambda: calibrator.learn_one(0.5, bad, **when(calibrator)))
    if calibrator.window is None and not when(calibrator):
        refused(LabelError, bad, lambda: calibrator.remove_one(0.5, bad))


@pytest.mark.parametrize("bad", BAD_WEIGHTS, ids=described)
def test_bad_weight_of_one(calibrator: VennAbers, bad: Any) -> None:  # noqa: ANN401
    """A weight that is not positive, rounds to nothing or is too large is refused."""
    refused(WeightError, bad, lambda: calibrator.predict_one(0.5, weight=bad))
    refused(WeightError, bad, lambda: calibrator.learn_one(0.5, 1, weight=bad, **when(calibrator)))
    if calibrator.window is None and not when(calibrator):
        refused(WeightError, bad, lambda: calibrator.remove_one(0.5, 1, weight=bad))


@pytest.mark.parametrize(
    "bad", [v for v in NOT_NUMBERS + NOT_FINITE if v is not None], ids=described
)
@pytest.mark.parametrize("options", AGING.values(), ids=AGING)
def test_bad_time_of_one(options: dict[str, Any], bad: Any) -> None:  # noqa: ANN401
    """A time that is no finite number is refused."""
    calibrator = taught(options, 12)
    before = calibrator.state_bytes()
    refused(TimeError, bad, lambda: calibrator.predict_one(0.5, time=bad))
    refused(TimeError, bad, lambda: calibrator.learn_one(0.5, 1, time=bad))
    assert calibrator.state_bytes() == before


@pytest.mark.parametrize("good", NUMBERS, ids=lambda value: type(value).__name__)
@EVERY_RULE
def test_every_kind_of_number_is_taken(options: dict[str, Any], good: Any) -> None:  # noqa: ANN401
    """Python's and numpy's numbers and booleans serve as score, label, weight and time."""
    plain, other = VennAbers(**options), VennAbers(**options)
    time = {"time": good} if aging(options) else {}
    plain.learn_one(1.0, 1, **dict.fromkeys(time, 1.0))
    other.learn_one(good, good, weight=good, **time)
    assert other.state_bytes() == plain.state_bytes()
    assert other.predict_one(good, weight=good, **time) == (1 / 2, 1.0)
    assert other.isotonic(good) == 1.0
    if not options:
        other.remove_one(good, good, weight=good)
        assert len(other) == 0


# Arrays


def array_calls(
    calibrator: VennAbers,
    **columns: Any,  # noqa: ANN401
) -> dict[str, Callable[[], object]]:
    """Every call on arrays with three rows, these columns in place of correct ones."""
    times = when(calibrator, 3).get("times")
    given: dict[str, Any] = {
        "scores": [0.1, 0.2, 0.3],
        "labels": [0, 1, 0],
        "weights": [1.0] * 3,
        "times": times,
    } | columns
    scores, labels = given.pop("scores"), given.pop("labels")
    calls: dict[str, Callable[[], object]] = {
        "learn_many": lambda: calibrator.learn_many(scores, labels, **given),
        "prequential": lambda: calibrator.prequential(scores, labels, **given),
        "run": lambda: calibrator.run([0, 1, 1], scores, labels, **given),
    }
    if "labels" not in columns:
        calls["predict_many"] = lambda: calibrator.predict_many(scores, **given)
    return calls


def columns_with(bad: object) -> list[Any]:
    """Put a bad value in row 1 of columns of several kinds."""
    holder = np.empty(3, dtype=object)
    holder[0] = holder[2] = 1
    holder[1] = bad
    columns: list[Any] = [holder]
    if not isinstance(bad, list | tuple | np.ndarray):
        columns.append([1, bad, 1])
    if isinstance(bad, float):
        columns.append(np.array([1.0, bad, 1.0]))
    return columns


def shown(bad: object) -> str:
    """Show a value as a column shows it that has but one type."""
    if isinstance(bad, bool):
        return str(int(bad))
    return str(bad).lstrip("-") if isinstance(bad, float | np.floating) else validation.shown(bad)


@pytest.mark.parametrize(
    ("column", "error", "bad"),
    [
        *(("scores", ScoreError, bad) for bad in NOT_NUMBERS + NOT_FINITE),
        *(("labels", LabelError, bad) for bad in BAD_LABELS),
        *(("weights", WeightError, bad) for bad in BAD_WEIGHTS),
    ],
    ids=described,
)
def test_bad_value_in_an_array(
    calibrator: VennAbers,
    column: str,
    error: type[InputError],
    bad: Any,  # noqa: ANN401
) -> None:
    """A bad value in any column of any call on arrays is refused, naming value and row."""
    for values in columns_with(bad):
        for call in array_calls(calibrator, **{column: values}).values():
            with pytest.raises(error, match=r"^row 1: .*; ") as caught:
                call()
            assert type(caught.value) is error
            assert shown(bad) in str(caught.value)


@pytest.mark.parametrize("bad", [NAN, INF, None, "3", HUGE], ids=described)
@pytest.mark.parametrize("options", AGING.values(), ids=AGING)
def test_bad_time_in_an_array(options: dict[str, Any], bad: Any) -> None:  # noqa: ANN401
    """A bad time in any call on arrays is refused, naming value and row."""
    calibrator = taught(options, 12)
    before = calibrator.state_bytes()
    for values in columns_with(bad):
        for call in array_calls(calibrator, times=values).values():
            with pytest.raises(TimeError, match=r"^row 1: time .*; ") as caught:
                call()
            assert shown(bad) in str(caught.value)
    assert calibrator.state_bytes() == before


@pytest.mark.parametrize(
    "shape",
    [
        np.ones((3, 1)),
        np.ones((1, 3)),
        np.ones((3, 2, 2)),
        1.0,
        "111",
        [[1], [1], [1]],
        [[1], [1, 0], [1]],
        [1, [1], 1],
        [np.ones(2), np.ones(2), np.ones(2)],
        iter([1, 1, 1]),
    ],
    ids=described,
)
def test_shapes_other_than_a_column(calibrator: VennAbers, shape: Any) -> None:  # noqa: ANN401
    """Anything but a one-dimensional column is refused, ragged ones as well."""
    for column in ("scores", "labels", "weights", *when(calibrator, 3)):
        for call in array_calls(calibrator, **{column: shape}).values():
            with pytest.raises(
                ParameterError, match=f"{column} must be one-dimensional(, not|, b)"
            ):
                call()


@pytest.mark.parametrize(
    ("made", "given", "meant"),
    [
        (VennAbers, "weight", "weights"),
        (VennAbers, "time", "times"),
        (CrossVennAbers, "fold", "folds"),
    ],
)
def test_the_name_of_one_for_a_column(made: type[VennAbers], given: str, meant: str) -> None:
    """A column by the name that it has for a single label is refused, naming the column."""
    said = f"{made.__name__} takes no column {given}; did you mean {meant}?"
    with pytest.raises(ParameterError, match=re.escape(said)):
        made().learn_many(np.full((1, 5), 0.5) if given == "fold" else [0.5], [1], **{given: [1]})


@pytest.mark.parametrize("length", [0, 2, 4])
def test_columns_of_different_lengths(calibrator: VennAbers, length: int) -> None:
    """A column that is not as long as the scores is refused, naming both lengths."""
    for column in ("labels", "weights", *when(calibrator, 3)):
        for call in array_calls(calibrator, **{column: [1.0] * length}).values():
            with pytest.raises(ParameterError, match=f"{column} has {length} rows, scores has 3; "):
                call()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "i8", "u1", "u8", "?", ">f8", "O"])
@EVERY_RULE
def test_every_type_of_column_is_taken(options: dict[str, Any], dtype: str) -> None:
    """Columns of any numeric type, of either byte order, or of objects count as their values."""
    plain, other = VennAbers(**options), VennAbers(**options)
    for calibrator, column in ((plain, np.ones(3)), (other, np.ones(3, dtype=dtype))):
        times = {"times": column} if aging(options) else {}
        asked = array_calls(calibrator, scores=column, weights=column, **times)
        asked["predict_many"]()
        for call in array_calls(
            calibrator, scores=column, labels=column, weights=column, **times
        ).values():
            call()
    assert other.state_bytes() == plain.state_bytes()
    assert other.hull().weight.tolist() == plain.hull().weight.tolist()


@pytest.mark.parametrize("weights", [[2, 3.0, 0.5], [Fraction(2), 3, Fraction(1, 2)]])
def test_weights_as_objects_are_the_same_weights(weights: list[Any]) -> None:
    """A column of objects holds the weights it shows."""
    calibrator = VennAbers()
    calibrator.learn_many([0.1, 0.2, 0.3], [0, 1, 1], weights=np.array(weights, dtype=object))
    calibrator.learn_many([0.4], [1], weights=np.array([Fraction(1, 4)], dtype=object))
    loop = VennAbers()
    for score, label, weight in zip(
        [0.1, 0.2, 0.3, 0.4], [0, 1, 1, 1], [*weights, 0.25], strict=True
    ):
        loop.learn_one(score, label, weight=float(weight))
    assert calibrator.state_bytes() == loop.state_bytes()


def is_taken(call: Callable[[], object]) -> bool:
    """Return whether a call takes its weight."""
    try:
        call()
    except WeightError:
        return False
    return True


@EVERY_RULE
def test_the_largest_weight_is_the_same_alone_and_in_an_array(options: dict[str, Any]) -> None:
    """A weight that one call takes all calls take, and one that is refused all refuse."""
    edge = 2.0**27 if "half_life" in options else 2.0**32
    taken = []
    for weight in (edge / 2, float(np.nextafter(edge, 0.0)), edge, float(np.nextafter(edge, INF))):
        calibrator = VennAbers(**options)
        calls: list[Callable[[], object]] = [
            partial(calibrator.predict_one, 0.5, weight=weight),
            partial(calibrator.predict_many, [0.5], weights=[weight]),
            partial(calibrator.learn_one, 0.5, 1, weight=weight, **when(calibrator)),
            partial(
                VennAbers(**options).learn_many, [0.5], [1], weights=[weight], **when(calibrator, 1)
            ),
            partial(
                VennAbers(**options).prequential,
                [0.5],
                [1],
                weights=[weight],
                **when(calibrator, 1),
            ),
        ]
        outcomes = {is_taken(call) for call in calls}
        assert len(outcomes) == 1, weight
        taken.append(outcomes.pop())
    assert taken[0]
    assert not taken[-1]


def test_the_total_may_reach_its_limit_and_not_pass_it() -> None:
    """The sum of all weights is refused above 2^33 (2^28 with a half-life), not before."""
    calibrator = VennAbers()
    for _ in range(3):
        calibrator.learn_one(0.5, 1, weight=2.0**31)
    calibrator.learn_one(0.5, 0, weight=2.0**31 - 2.0**-20)
    before = calibrator.state_bytes()
    with pytest.raises(WeightError, match=r"total weight would pass 8589934592; .*scale"):
        calibrator.learn_one(0.5, 0, weight=2.0**-20)
    assert calibrator.state_bytes() == before
    assert len(calibrator) == 4


# Times that are missing or not wanted


@pytest.mark.parametrize("options", AGING.values(), ids=AGING)
def test_a_missing_time(options: dict[str, Any]) -> None:
    """With max_age or half_life every observation learned needs its time."""
    calibrator = taught(options, 12)
    before = calibrator.state_bytes()
    with pytest.raises(TimeError, match="time is missing; "):
        calibrator.learn_one(0.5, 1)
    for call in ("learn_many", "prequential", "run"):
        with pytest.raises(TimeError, match="time is missing; "):
            array_calls(calibrator, times=None)[call]()
    assert calibrator.state_bytes() == before


@pytest.mark.parametrize("options", PLAIN.values(), ids=PLAIN)
def test_an_unwanted_time(options: dict[str, Any]) -> None:
    """A time is refused where nothing depends on it, for each call."""
    calibrator = taught(options, 12)
    before = calibrator.state_bytes()
    refused(TimeError, 3.5, lambda: calibrator.predict_one(0.5, time=3.5))
    refused(TimeError, 3.5, lambda: calibrator.learn_one(0.5, 1, time=3.5))
    for call in array_calls(calibrator, times=[1.0, 2.0, 3.0]).values():
        with pytest.raises(TimeError, match=r"times given to a calibrator without .*; leave"):
            call()
    assert calibrator.state_bytes() == before


def test_times_too_many_half_lives_from_zero() -> None:
    """Where doubles cannot tell half-lives apart a time is refused, with a remedy."""
    calibrator = VennAbers(half_life=1e-9)
    before = calibrator.state_bytes()
    for bad in (1.7e9, -1.7e9, 1e308):
        refused(TimeError, bad, partial(calibrator.learn_one, 0.5, 1, time=bad))
        refused(TimeError, bad, partial(calibrator.predict_one, 0.5, time=bad))
        for call in array_calls(calibrator, times=[0.0, bad, 1.0]).values():
            refused(TimeError, bad, call)
    assert calibrator.state_bytes() == before


# Removing, steps and parameters


@pytest.mark.parametrize("options", [o for o in OPTIONS.values() if o], ids=list(OPTIONS)[1:])
def test_a_calibrator_that_forgets_removes_nothing(options: dict[str, Any]) -> None:
    """Removing from a calibrator with a rule of forgetting is refused, even what is kept."""
    calibrator = taught(options, 12)
    before = calibrator.state_bytes()
    calls: list[Callable[[], object]] = [
        lambda: calibrator.remove_one(0.5, 1),
        lambda: calibrator.run([2], [0.5], [1], **when(calibrator, 1)),
    ]
    for call in calls:
        with pytest.raises(ForgettingError, match="forgets by itself; "):
            call()
    assert calibrator.state_bytes() == before


@pytest.mark.parametrize("bad", [4, -1, 0.5, NAN, None, "1"], ids=described)
def test_bad_steps(calibrator: VennAbers, bad: Any) -> None:  # noqa: ANN401
    """A step other than 0, 1, 2 and 3 is refused, naming value and row."""
    for steps in columns_with(bad):
        with pytest.raises(ParameterError, match=r"^row [01]: step .* is unknown; steps are 0"):
            calibrator.run(steps, [0.1, 0.2, 0.3], [0, 1, 0], **when(calibrator, 3))


@pytest.mark.parametrize("steps", [[[0, 1, 2]], 1, None, [[0], [1, 2], [0]]], ids=described)
def test_steps_other_than_a_column(calibrator: VennAbers, steps: Any) -> None:  # noqa: ANN401
    """Steps come in one dimension."""
    with pytest.raises(ParameterError, match="steps must be one-dimensional"):
        calibrator.run(steps, [0.1, 0.2, 0.3], [0, 1, 0], **when(calibrator, 3))


def test_steps_of_another_length(calibrator: VennAbers) -> None:
    """Steps are as many as the scores."""
    with pytest.raises(ParameterError, match="steps has 2 rows, scores has 3; "):
        calibrator.run([0, 1], [0.1, 0.2, 0.3], [0, 1, 0], **when(calibrator, 3))


@pytest.mark.parametrize("delay", [-1, 0.5, 1.0, None, "1", True, NAN], ids=described)
def test_bad_delay(calibrator: VennAbers, delay: Any) -> None:  # noqa: ANN401
    """A delay is a whole number of observations."""
    with pytest.raises(ParameterError, match=re.escape(f"delay={delay!r}")):
        calibrator.prequential([0.1], [1], delay=delay, **when(calibrator, 1))


@pytest.mark.parametrize(
    "window", [0, -1, 1.0, 0.5, NAN, INF, "5", True, [5], 1 << 63, HUGE], ids=described
)
def test_bad_window(window: Any) -> None:  # noqa: ANN401
    """A window is a positive whole number."""
    with pytest.raises(ParameterError, match=re.escape(f"window={validation.shown(window)}")):
        VennAbers(window=window)


@pytest.mark.parametrize("name", ["max_age", "half_life"])
@pytest.mark.parametrize("span", [0, 0.0, -0.0, -1, NAN, INF, "5", [5], 1j, HUGE], ids=described)
def test_bad_span(name: str, span: Any) -> None:  # noqa: ANN401
    """A span of time is a positive, finite number."""
    with pytest.raises(ParameterError, match=re.escape(f"{name}={span!r}")):
        VennAbers(**{name: span})


@pytest.mark.parametrize(
    "options",
    [
        {"window": 5, "max_age": 1.0},
        {"window": 5, "half_life": 1.0},
        {"max_age": 1, "half_life": 1},
        {"window": 5, "max_age": 1.0, "half_life": 1.0},
    ],
)
def test_rules_exclude_each_other(options: dict[str, Any]) -> None:
    """At most one rule of forgetting may be given."""
    with pytest.raises(ParameterError, match="exclude each other; "):
        VennAbers(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"window": np.int32(3)},
        {"max_age": 3},
        {"max_age": Fraction(1, 4)},
        {"half_life": np.float32(0.5)},
        {"half_life": 1e308},
        {"max_age": 5e-324},
        {"window": (1 << 63) - 1},
    ],
)
def test_good_parameters(options: dict[str, Any]) -> None:
    """Any positive number is a span, any positive whole number a window; they survive saving."""
    calibrator = taught(options, 12) if "half_life" not in options else VennAbers(**options)
    restored = VennAbers.from_bytes(calibrator.to_bytes())
    assert restored.to_bytes() == calibrator.to_bytes()
    ((name, value),) = options.items()
    for one in (calibrator, restored):
        assert getattr(one, name) == value
        assert type(getattr(one, name)) is (int if name == "window" else float)


def test_decimals_are_the_nearest_doubles() -> None:
    """A decimal counts as the double that its digits mean; it must be finite."""
    calibrator, expected = VennAbers(), VennAbers()
    calibrator.learn_one(Decimal("0.1"), 1)  # type: ignore[arg-type]
    expected.learn_one(0.1, 1)
    assert calibrator == expected
    for text in ("NaN", "sNaN", "-Infinity", "1E+999"):
        with pytest.raises(ScoreError, match=re.escape(f"Decimal('{text}')")):
            calibrator.predict_one(Decimal(text))  # type: ignore[arg-type]


def test_every_refusal_is_an_abers_error() -> None:
    """One `except AbersError` or `except ValueError` catches every refusal of input."""
    for error in (ScoreError, LabelError, WeightError, TimeError, ParameterError, ForgettingError):
        assert issubclass(error, AbersError)
        assert issubclass(error, ValueError)


# Columns that are arrays of the right type already


def test_columns_of_the_right_type_are_checked_too() -> None:
    """An array that needs no conversion may still hold what is no score, label or step."""
    kinds, scores, labels = np.ones(3, np.uint8), np.ones(3), np.ones(3, np.uint8)
    bad = np.array([0, 1, 4], np.uint8)
    for arguments, error, said in (
        ((kinds, np.array([0.5, NAN, 0.5]), labels), ScoreError, "row 1: score nan"),
        ((kinds, scores, bad), LabelError, "row 2: label 4"),
        ((bad, scores, labels), ParameterError, "row 2: step 4"),
        ((kinds, scores, labels[:2]), ParameterError, "labels has 2 rows"),
    ):
        with pytest.raises(error, match=said):
            VennAbers().run(*arguments)


def test_columns_of_the_right_type_may_have_gaps() -> None:
    """Every second or third row of an array is a column as any other, and is not changed."""
    scores, labels = np.arange(6.0), np.array([0, 1, 0, 1, 1, 1], np.uint8)
    one, other = VennAbers(), VennAbers()
    one.learn_many(scores[::-2], labels[::2])
    other.learn_many(scores[::-2].tolist(), labels[::2].tolist())
    assert one.state_bytes() == other.state_bytes()
    assert scores.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_text_among_numbers_is_the_value_that_is_named() -> None:
    """Numbers next to it are not made texts, and a message shows it plain."""
    for check in (validation.scores, partial(validation.reals, length=2)):
        with pytest.raises(InputError, match=r"row 1: (score|label) 'high' is"):
            check([0.5, "high"])
    table = validation.array([[0.5, "high"], [0.25, 1]], "rows of two numbers")
    assert table.tolist() == [[0.5, "high"], [0.25, 1]]
    assert validation.array(np.array(["a"]), "texts").tolist() == ["a"]
