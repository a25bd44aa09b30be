"""Calibrators of several classes against the definition, one at a time and on arrays."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import GAPS, OPTIONS, aging
from tests.engine.multi_oracle import Answer, Label, MultiOracle, pkpd

from abers import (
    ForgettingError,
    LabelError,
    MultiInterval,
    NotHeldError,
    OneVsOne,
    OneVsRest,
    ParameterError,
    ScoreError,
    TimeError,
    VennAbers,
    WeightError,
)
from abers.arrays import LEARN, PREDICT, REMOVE
from abers.calibration.multiclass import PKPD

Calibrator = OneVsRest | OneVsOne
KINDS: list[type[Calibrator]] = [OneVsRest, OneVsOne]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)

CLASSES = ("a", "b", "c", "d")
PARTS = st.sampled_from((0.0, 0.1, 0.25, 0.25, 1 / 3, 0.5, 1.0, 7.0))
SCORES = st.dictionaries(st.sampled_from(CLASSES), PARTS, max_size=4)
WEIGHTS = st.sampled_from((1.0, 1.0, 1.0, 0.1, 2.5, 2.0**-30))
EVENTS = st.lists(
    st.tuples(SCORES, st.sampled_from(CLASSES), WEIGHTS, GAPS, st.booleans()), max_size=20
)


def defined(kind: type[Calibrator], oracle: MultiOracle, *query: Any) -> Answer:  # noqa: ANN401
    """Ask the oracle for the answer of a kind."""
    return (oracle.one_vs_rest if kind is OneVsRest else oracle.one_vs_one)(*query)


def same(answer: MultiInterval, exact: Answer) -> bool:
    """Return whether an answer is the exact one but for rounding, class for class."""
    return all(
        [*predicted] == [*wanted]
        and np.allclose([*predicted.values()], [float(v) for v in wanted.values()], 1e-12, 1e-15)
        for predicted, wanted in zip(answer, exact, strict=True)
    )


@EVERY_KIND
@EVERY_RULE
@given(events=EVENTS)
def test_every_answer_is_that_of_the_definition(
    kind: type[Calibrator],
    options: dict[str, Any],
    events: list[tuple[dict[Label, float], str, float, float, bool]],
) -> None:
    """Whatever classes come, go, tie and weigh, each answer equals the naive one in fractions."""
    calibrator, oracle, now = kind(**options), MultiOracle(**options), 0.0
    for scores, label, weight, gap, learns in events:
        now += gap
        when = {"time": now} if aging(options) else {}
        if learns:
            calibrator.learn_one(scores, label, weight=weight, **when)
            oracle.learn(scores, label, weight, **when)
        answer = calibrator.predict_one(scores, weight=weight, **when)
        assert same(answer, defined(kind, oracle, scores, weight, *when.values()))
        assert same(calibrator.predict_one(scores), defined(kind, oracle, scores))
        assert (len(calibrator), calibrator.late) == (len(oracle), oracle.stream.late)
        assert calibrator.classes == tuple(oracle.classes)


# Many at a time


def table(options: dict[str, Any], n: int, seed: int = 0) -> tuple[Any, ...]:
    """Make scores with ties and zeros, labels, weights and times for three classes."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (n, 3)) / 4
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    weights = rng.choice(np.array([1.0, 1.0, 0.7, 100.0]), n)
    times = np.cumsum(rng.choice(np.array([0.0, 0.1, 0.5, -0.3, 4.0]), n))
    return scores, labels, weights, times if aging(options) else None


def keywords(weights: Any, times: Any, i: int) -> dict[str, Any]:  # noqa: ANN401
    """Weight and time of a row, as the calls for one observation take them."""
    return {"weight": float(weights[i]), **({} if times is None else {"time": float(times[i])})}


def named(row: Any) -> dict[Label, float]:  # noqa: ANN401
    """Scores of a row by class."""
    return dict(zip("abc", row.tolist(), strict=True))


def opened(kind: type[Calibrator], options: dict[str, Any]) -> Calibrator:
    """Make a calibrator open to more classes that knows three already."""
    calibrator = kind(**options)
    calibrator.learn_one({"a": 0.5, "b": 0.25}, "c", **({"time": 0.0} if aging(options) else {}))
    return calibrator


@EVERY_KIND
@EVERY_RULE
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("delay", [0, 3, 10**9])
def test_prequential_equals_one_at_a_time(
    kind: type[Calibrator], options: dict[str, Any], *, closed: bool, delay: int
) -> None:
    """A stream in one call gives the doubles and leaves the bytes of a loop of single calls."""
    scores, labels, weights, times = table(options, 40)
    batch, loop = (kind(("a", "b", "c"), **options) for _ in range(2))
    if not closed:
        batch, loop = opened(kind, options), opened(kind, options)
    answers, waiting = [], []
    for i in range(40):
        answers.append(loop.predict_one(named(scores[i]), **keywords(weights, times, i)))
        waiting.append(i)
        if len(waiting) > delay:
            j = waiting.pop(0)
            loop.learn_one(named(scores[j]), str(labels[j]), **keywords(weights, times, j))
    for j in waiting:
        loop.learn_one(named(scores[j]), str(labels[j]), **keywords(weights, times, j))
    predicted = batch.prequential(scores, labels, delay=delay, weights=weights, times=times)
    for which in range(3):
        assert predicted[which].tolist() == [[*answer[which].values()] for answer in answers]
    assert batch.to_bytes() == loop.to_bytes()


@EVERY_KIND
@EVERY_RULE
def test_predict_many_equals_predict_one(kind: type[Calibrator], options: dict[str, Any]) -> None:
    """Predicting a table is predicting each row, and changes nothing."""
    scores, labels, weights, times = table(options, 60)
    calibrator = kind(("a", "b", "c"), **options)
    calibrator.learn_many(scores, labels, weights=weights, times=times)
    before = calibrator.to_bytes()
    predicted = calibrator.predict_many(scores, weights=weights, times=times)
    for i in range(60):
        answer = calibrator.predict_one(named(scores[i]), **keywords(weights, times, i))
        assert [column[i].tolist() for column in predicted] == [[*part.values()] for part in answer]
    assert calibrator.to_bytes() == before


@EVERY_KIND
@EVERY_RULE
def test_run_in_pieces_equals_prequential(kind: type[Calibrator], options: dict[str, Any]) -> None:
    """Steps in any pieces give what one call gives, NaN where a label was learned, and counts."""
    scores, labels, weights, times = table(options, 50)
    whole, pieces = (kind(("a", "b", "c"), **options) for _ in range(2))
    predicted = whole.prequential(scores, labels, weights=weights, times=times)
    rows = np.repeat(np.arange(50), 2)
    steps = np.tile([PREDICT, LEARN], 50)
    numbers = np.searchsorted(["a", "b", "c"], labels)
    held = np.empty(100, np.int64)
    for at in (slice(0, 0), slice(0, 1), slice(1, 62), slice(62, 100)):
        row = rows[at]
        given_times = None if times is None else times[row]
        columns = {"weights": weights[row], "times": given_times, "held": held[at]}
        answers = pieces.run(steps[at], scores[row], numbers[row], **columns)
        learned = steps[at] == LEARN
        for answer, wanted in zip(answers, predicted, strict=True):
            assert np.isnan(answer[learned]).all()
            assert answer[~learned].tolist() == wanted[row[~learned]].tolist()
    assert pieces.to_bytes() == whole.to_bytes()
    assert held[-1] == len(whole)


# Formulas


@given(st.integers(2, 5), st.data())
def test_pkpd_is_its_formula(k: int, data: st.DataObject) -> None:
    """Coupled pairs give 1 / (sum of 1 / r - (k - 2)) in fractions, and so do their ends."""
    eighths = st.integers(0, 8)
    drawn = data.draw(st.lists(st.tuples(eighths, eighths), min_size=10, max_size=10))
    pairs = [(min(a, b, 7), max(a, b, 1)) for a, b in drawn[: k * (k - 1) // 2]]  # p0 < 1, p1 > 0
    first, second = np.triu_indices(k, 1)
    coupling = PKPD(k, 1)
    p0, p1 = np.array(pairs, float).T[..., np.newaxis] / 8
    coupling.add(first, second, p0, p1)
    p, low, high = (ends[:, 0].tolist() for ends in coupling.result())
    r: list[list[tuple[Fraction, Fraction, Fraction]]] = [[] for _ in range(k)]
    for i, j, (a, b) in zip(first.tolist(), second.tolist(), pairs, strict=True):
        f0, f1 = Fraction(a, 8), Fraction(b, 8)
        merged = f1 / (1 - f0 + f1)
        r[i].append((merged, f0, f1))
        r[j].append((1 - merged, 1 - f1, 1 - f0))
    exact = [[pkpd([ends[which] for ends in each]) for each in r] for which in range(3)]
    assert p == pytest.approx([float(each / sum(exact[0])) for each in exact[0]], abs=1e-13)
    assert low == pytest.approx([float(each) for each in exact[1]], abs=1e-13)
    assert high == pytest.approx([float(each) for each in exact[2]], abs=1e-13)
    assert all(a <= b for a, b in zip(low, high, strict=True))


@EVERY_KIND
@EVERY_RULE
def test_two_classes_agree_with_the_binary_calibrator(
    kind: type[Calibrator], options: dict[str, Any]
) -> None:
    """With two classes whose scores sum to one, all is what VennAbers says of one of them."""
    rng = np.random.default_rng(0)
    score = rng.integers(0, 17, 80) / 16
    labels = rng.integers(0, 2, 80)
    times = np.cumsum(rng.random(80)) if aging(options) else None
    binary, two = VennAbers(**options), kind((False, True), **options)
    p0, p1 = binary.prequential(score, labels, times=times)
    p, low, high = two.prequential(
        np.column_stack((1 - score, score)), labels.astype(bool), times=times
    )
    assert p[:, 1] == pytest.approx(p1 / (1 - p0 + p1), abs=1e-14)
    assert p.sum(axis=1) == pytest.approx(1, abs=1e-14)
    assert low == pytest.approx(np.column_stack((1 - p1, p0)), abs=1e-14)
    assert high == pytest.approx(np.column_stack((1 - p0, p1)), abs=1e-14)


# Classes that come, go, or never come


@EVERY_KIND
def test_nothing_known_is_said_of_nothing(kind: type[Calibrator]) -> None:
    """Without classes or scores the answer is empty; scored classes share, each in [0, 1]."""
    calibrator = kind()
    assert calibrator.predict_one({}) == MultiInterval({}, {}, {})
    answer = calibrator.predict_one({"a": 0.2, "b": 0.8})
    assert answer == MultiInterval({"a": 0.5, "b": 0.5}, {"a": 0, "b": 0}, {"a": 1, "b": 1})
    assert calibrator.classes == ()


@EVERY_KIND
def test_one_class_only_so_far(kind: type[Calibrator]) -> None:
    """A single class has probability one, in an interval that reaches one."""
    calibrator = kind()
    for _ in range(3):
        calibrator.learn_one({"a": 1.0}, "a")
        answer = calibrator.predict_one({"a": 1.0})
        assert answer.p == {"a": 1.0}
        assert answer.high == {"a": 1.0}
        assert answer.low["a"] < 1.0


@EVERY_KIND
def test_a_class_that_never_had_a_label_is_vacuous_above_its_scores(
    kind: type[Calibrator],
) -> None:
    """A class without a label has a lower end of 0, and 1 above where scores without it lie."""
    calibrator = kind(("a", "b", "c"))
    calibrator.learn_many([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0]] * 5, ["a", "b"] * 5)
    answer = calibrator.predict_one({"a": 0.2, "b": 0.2, "c": 0.6})
    assert (answer.low["c"], answer.high["c"]) == (0.0, 1.0)
    assert sum(answer.p.values()) == pytest.approx(1)


@EVERY_KIND
def test_a_class_that_vanished_from_the_window_is_known_and_forgotten(
    kind: type[Calibrator],
) -> None:
    """A class that left the window keeps its column, and nothing is left of its labels."""
    forgot, never = kind(("a", "b", "c"), window=6), kind(("a", "b", "c"), window=6)
    forgot.learn_many([[0.1, 0.2, 0.7]] * 9, ["c"] * 9)
    for calibrator in (forgot, never):
        calibrator.learn_many([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3]] * 3, ["a", "b"] * 3)
    scores = {"a": 0.3, "b": 0.3, "c": 0.4}
    assert forgot.predict_one(scores) == never.predict_one(scores)
    assert forgot.predict_one(scores).low["c"] == 0.0
    assert forgot.classes == ("a", "b", "c")


def test_a_pair_that_left_the_window_is_vacuous() -> None:
    """In one-vs-one, two classes that both vanished say nothing of each other."""
    calibrator = OneVsOne(("a", "b", "c"), window=2)
    calibrator.learn_many([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]] * 4, ["a", "b"] * 4)
    calibrator.learn_many([[0.0, 0.0, 1.0]] * 2, ["c"] * 2)
    fresh = OneVsOne(("a", "b", "c"), window=2)
    fresh.learn_many([[0.0, 0.0, 1.0]] * 2, ["c"] * 2)
    scores = {"a": 0.7, "b": 0.3, "c": 0.0}
    assert calibrator.predict_one(scores) == fresh.predict_one(scores)


@EVERY_KIND
@EVERY_RULE
def test_an_open_calibrator_becomes_the_closed_one(
    kind: type[Calibrator], options: dict[str, Any]
) -> None:
    """Classes that appear late have missed nothing: all answers are those of known classes."""
    scores, labels, weights, times = table(options, 50)
    scores[:20, 1:] = 0.0  # nothing is heard of the other classes at first
    labels[:20] = "a"
    opened, closed = kind(**options), kind(("a", "b", "c"), **options)
    for i in range(50):
        row = {c: p for c, p in named(scores[i]).items() if p}
        opened.learn_one(row, str(labels[i]), **keywords(weights, times, i))
        closed.learn_one(named(scores[i]), str(labels[i]), **keywords(weights, times, i))
    rows: list[dict[str, Any]] = [{"a": 0.5, "b": 0.25, "c": 0.25}, {"b": 1.0}, {}]
    for query in rows:
        predicted, known = opened.predict_one(query), closed.predict_one(query)
        for column, wanted in zip(predicted, known, strict=True):
            assert [column[c] for c in "abc"] == pytest.approx(
                [wanted[c] for c in "abc"], abs=1e-14
            )


@EVERY_KIND
def test_a_class_in_calibration_that_was_never_in_training(kind: type[Calibrator]) -> None:
    """A label that the model gives no score counts as one of score 0."""
    calibrator, explicit = kind(), kind()
    calibrator.learn_one({"a": 0.6, "b": 0.4}, "new")
    explicit.learn_one({"a": 0.6, "b": 0.4, "new": 0.0}, "new")
    assert calibrator.classes == ("a", "b", "new")
    assert calibrator.to_bytes() == explicit.to_bytes()


@EVERY_KIND
def test_scores_need_not_sum_to_one(kind: type[Calibrator]) -> None:
    """Scores are taken as they are; one-vs-one uses shares, so the scale is irrelevant."""
    scores = np.array([[0.2, 0.1, 0.4], [3.0, 1.0, 5.0], [0.0, 0.0, 0.0], [1e308, 1e308, 1e308]])
    calibrator = kind(("a", "b", "c"))
    p, low, high = calibrator.prequential(scores, ["a", "b", "c", "a"])
    assert np.isfinite([p, low, high]).all()
    assert p.sum(axis=1) == pytest.approx(1)
    if kind is OneVsOne:
        scaled = kind(("a", "b", "c"))
        again = scaled.prequential(scores / 4, ["a", "b", "c", "a"])
        assert p.tolist() == again[0].tolist()


def test_one_vs_rest_takes_margins_and_one_vs_one_refuses_them() -> None:
    """Negative scores have no shares, so only one-vs-rest takes them."""
    rest, one = OneVsRest(("a", "b")), OneVsOne(("a", "b"))
    rest.learn_one({"a": -1.5, "b": 0.5}, "b")
    assert rest.predict_one({"a": -2.0, "b": 1.0}).high["b"] == 1.0
    with pytest.raises(ScoreError, match=r"class 'a': score -1.5 is negative"):
        one.learn_one({"a": -1.5, "b": 0.5}, "b")
    with pytest.raises(ScoreError, match=r"row 1: class 'b': score -0.5 is negative"):
        one.predict_many([[0.5, 0.5], [0.5, -0.5]])


@EVERY_KIND
@pytest.mark.parametrize("options", [{"max_age": 5.0}, {"half_life": 1 / 6}], ids=["age", "half"])
def test_a_late_label_is_counted_and_not_learned(
    kind: type[Calibrator], options: dict[str, Any]
) -> None:
    """What is older than the horizon of the stream is of no account; what lies on it is."""
    calibrator, without = kind(("a", "b", "c"), **options), kind(("a", "b", "c"), **options)
    for each in (calibrator, without):
        each.learn_one({"c": 1.0}, "c", time=10.0)
    calibrator.learn_one({"a": 0.6, "b": 0.4}, "a", time=4.9)
    scores = {"a": 0.7, "b": 0.2, "c": 0.1}
    assert (calibrator.late, len(calibrator)) == (1, 1)
    for ahead in (4.9, 10.0, 12.0):
        assert calibrator.predict_one(scores, time=ahead) == without.predict_one(scores, time=ahead)
    calibrator.learn_one({"a": 0.6, "b": 0.4}, "a", time=5.0)
    assert (calibrator.late, len(calibrator)) == (1, 2)
    assert calibrator.predict_one(scores) != without.predict_one(scores)


# What is refused


@EVERY_KIND
@pytest.mark.parametrize("options", [{}, {"window": 5}], ids=["unlimited", "window"])
def test_bad_rows_change_nothing(kind: type[Calibrator], options: dict[str, Any]) -> None:
    """A batch with one bad row learns nothing, and the message names row, class and remedy."""
    calibrator = kind(("a", "b"), **options)
    calibrator.learn_many([[0.4, 0.6]], ["a"])
    before = calibrator.to_bytes()
    good = [[0.4, 0.6], [0.3, 0.7]]
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ScoreError, "row 1: class 'b': score nan", {"scores": [[0.1, 0.9], [0.1, np.nan]]}),
        (ParameterError, "a column for each of the 2 classes", {"scores": [[0.1], [0.2]]}),
        (ParameterError, "shape", {"scores": [0.1, 0.2]}),
        (ParameterError, "numbers", {"scores": [["0.1", "x"], ["0.2", "y"]]}),
        (ParameterError, "shape", {"scores": [[0.1, 0.2], [0.3]]}),
        (LabelError, "row 1: class 'z' is not among", {"labels": ["a", "z"]}),
        (LabelError, "row 0: class 'z' is not among", {"labels": np.array(["z", "y"])}),
        (LabelError, "row 1: label 1.5", {"labels": ["a", 1.5]}),
        (ParameterError, "labels is of shape", {"labels": ["a"]}),
        (WeightError, "row 1: weight -1.0", {"weights": [1.0, -1.0]}),
        (TimeError, "leave them out", {"times": [1.0, 2.0]}),
    ]
    for error, text, wrong in refused:
        columns: dict[str, Any] = {"scores": good, "labels": ["a", "b"], **wrong}
        with pytest.raises(error, match=text):
            calibrator.learn_many(**columns)
        with pytest.raises(error, match=text):
            calibrator.prequential(**columns)
    for steps, numbers, error, text in (
        ([LEARN, LEARN], [0, 2], LabelError, "row 1: label 2 is not the number"),
        ([LEARN, LEARN], [0], ParameterError, "labels is of shape"),
        ([LEARN, REMOVE], [0, 0], ParameterError, "row 1: remove observations with remove_one"),
        ([LEARN, 7], [0, 0], ParameterError, "row 1: step 7"),
    ):
        with pytest.raises(error, match=text):
            calibrator.run(steps, good, numbers)
    assert calibrator.to_bytes() == before


@EVERY_KIND
def test_bad_observations_change_nothing(kind: type[Calibrator]) -> None:
    """A refused observation leaves no class and no count behind."""
    calibrator = kind(max_age=5.0, max_classes=3)
    calibrator.learn_one({"a": 0.4, "b": 0.6}, "a", time=1.0)
    before = calibrator.to_bytes()
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ScoreError, "class 'c': score nan", {"scores": {"c": math.nan}}),
        (ScoreError, "must be a dict", {"scores": [0.5, 0.5]}),
        (LabelError, "label 1.5 must be a string", {"label": 1.5}),
        (LabelError, "label None must be a string", {"scores": {None: 0.5}}),
        (
            LabelError,
            "class 'd' would be one more than max_classes=3",
            {"scores": {"c": 0, "d": 0}},
        ),
        (WeightError, "weight 0.0", {"scores": {"c": 0.5}, "weight": 0.0}),
        (TimeError, "time is missing", {"scores": {"c": 0.5}, "time": None}),
    ]
    for error, text, wrong in refused:
        given: dict[str, Any] = {"scores": {"a": 0.5}, "label": "b", "time": 2.0, **wrong}
        with pytest.raises(error, match=text):
            calibrator.learn_one(given.pop("scores"), given.pop("label"), **given)
        assert calibrator.to_bytes() == before
    closed = kind(("a", "b"))
    for call in (lambda: closed.predict_one({"c": 0.5}), lambda: closed.learn_one({}, "c")):
        with pytest.raises(LabelError, match="class 'c' is not among classes="):
            call()


@EVERY_KIND
def test_an_overflow_half_way_is_taken_back(kind: type[Calibrator]) -> None:
    """Weights that pass the limit are refused before any part has learned."""
    calibrator = kind(("a", "b", "c"))
    before = calibrator.to_bytes()
    weights = [1.0, 2.0**32, 2.0**32]
    scores, labels = [[0.1, 0.2, 0.7]] * 3, ["a", "b", "c"]
    with pytest.raises(WeightError, match="row 2: the total weight"):
        calibrator.learn_many(scores, labels, weights=weights)
    with pytest.raises(WeightError, match=r"^row 2: the total weight"):
        calibrator.prequential(scores, labels, weights=weights)
    assert calibrator.to_bytes() == before


@EVERY_KIND
@pytest.mark.parametrize(
    "classes", [("a",), ("a", "a"), (), (1, True), "ab", {"a": 1, "b": 2}, range(101)]
)
def test_classes_that_are_no_choice_are_refused(kind: type[Calibrator], classes: Any) -> None:  # noqa: ANN401
    """Classes are 2 to `max_classes` different labels in a list."""
    with pytest.raises(ParameterError, match="classes="):
        kind(classes)


@EVERY_KIND
@pytest.mark.parametrize("most", [1, 2.5, True, "9"])
def test_a_greatest_number_that_is_none_is_refused(kind: type[Calibrator], most: Any) -> None:  # noqa: ANN401
    """`max_classes` is a whole number, 2 or more."""
    with pytest.raises(ParameterError, match="max_classes="):
        kind(max_classes=most)


@EVERY_KIND
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_with_the_names_of_classes(kind: type[Calibrator], frame: Any) -> None:  # noqa: ANN401
    """A frame whose columns are named by the classes may have them in any order."""
    calibrator = kind(("a", "b", "c"))
    scores = {"a": [0.1, 0.5], "b": [0.2, 0.3], "c": [0.7, 0.2]}
    array = np.column_stack([*scores.values()])
    calibrator.learn_many(array, ["c", "a"])
    turned = frame({name: scores[name] for name in ("c", "a", "b")})
    assert np.array_equal(calibrator.predict_many(turned).p, calibrator.predict_many(array).p)


@EVERY_KIND
def test_arrays_need_classes(kind: type[Calibrator]) -> None:
    """Columns have no meaning before classes are known."""
    with pytest.raises(ParameterError, match="arrays of scores need classes"):
        kind().predict_many([[0.5, 0.5]])


@EVERY_KIND
def test_only_what_was_learned_is_removed(kind: type[Calibrator]) -> None:
    """Removal is exact, whole or not at all, and refused where something forgets."""
    calibrator = kind(("a", "b", "c"))
    calibrator.learn_one({"a": 0.5, "b": 0.25, "c": 0.25}, "a")
    before = calibrator.to_bytes()
    calibrator.learn_one({"a": 0.1, "b": 0.2, "c": 0.7}, "c", weight=2.0)
    for scores, label in (({"a": 0.1, "b": 0.2, "c": 0.6}, "c"), ({"a": 0.5}, "b"), ({}, "z")):
        with pytest.raises(NotHeldError, match="the observation is not there"):
            calibrator.remove_one(scores, label)
    calibrator.remove_one({"a": 0.1, "b": 0.2, "c": 0.7}, "c", weight=2.0)
    assert calibrator.to_bytes() == before
    with pytest.raises(ForgettingError):
        kind(("a", "b"), window=3).remove_one({"a": 0.5}, "a")


# Faults of peers


@EVERY_KIND
@pytest.mark.parametrize("kinds", [(1, 2, 3), ("x", "y", "z"), (True, False), (-5, 10**30, 0)])
def test_any_labels_do(kind: type[Calibrator], kinds: tuple[Any, ...]) -> None:
    """Labels 1..K, strings, truth values and huge numbers are classes like others."""
    k = len(kinds)
    for labels in ([*kinds], np.array(kinds)):
        calibrator = kind(kinds)
        calibrator.learn_many(np.eye(k), labels)
        answer = calibrator.predict_one({c: float(c == kinds[0]) for c in kinds})
        assert max(answer.p, key=lambda c: answer.p[c]) == kinds[0]
        assert tuple(answer.p) == kinds


@EVERY_KIND
def test_a_class_missing_from_calibration_drops_no_column(kind: type[Calibrator]) -> None:
    """All classes given have a column and a probability, also those without a label."""
    calibrator = kind(("a", "b", "c", "d"))
    calibrator.learn_many(np.eye(4)[[0, 2]], ["a", "c"])
    p, low, high = calibrator.predict_many(np.full((5, 4), 0.25))
    assert p.shape == low.shape == high.shape == (5, 4)
    assert (p > 0).all()
    assert p.sum(axis=1) == pytest.approx(1)


@EVERY_KIND
def test_a_nan_score_gets_no_prediction(kind: type[Calibrator]) -> None:
    """A score of NaN is refused, not calibrated."""
    calibrator = kind(("a", "b"))
    with pytest.raises(ScoreError):
        calibrator.predict_one({"a": math.nan, "b": 0.5})
    with pytest.raises(ScoreError):
        calibrator.predict_many([[math.nan, 0.5]])


@EVERY_KIND
def test_ties_do_not_depend_on_arrival(kind: type[Calibrator]) -> None:
    """Equal scores are pooled: the order of the labels is of no account."""
    scores, labels, *_ = table({}, 60)
    there, back = kind(("a", "b", "c")), kind(("a", "b", "c"))
    there.learn_many(scores, labels)
    back.learn_many(scores[::-1], labels[::-1])
    assert there.to_bytes() == back.to_bytes()


def test_a_person_can_read_the_answer() -> None:
    """The answer shows each class with its probability and interval, in four digits."""
    answer = MultiInterval({"a": 2 / 3, 7: 1 / 3}, {"a": 0.5, 7: 0.0}, {"a": 1.0, 7: 0.123456})
    assert repr(answer) == "MultiInterval('a': 0.6667 [0.5, 1], 7: 0.3333 [0, 0.1235])"


@EVERY_KIND
def test_it_tells_what_it_is(kind: type[Calibrator]) -> None:
    """Options, classes and counts can be asked for, and an empty one is true."""
    calibrator = kind(("a", "b"), window=9, max_classes=5)
    assert repr(calibrator) == f"<{kind.__name__}(window=9) of 0 observations, 2 classes>"
    assert (calibrator.window, calibrator.max_age, calibrator.half_life) == (9, None, None)
    assert (calibrator.max_classes, calibrator.classes, len(calibrator)) == (5, ("a", "b"), 0)
    assert calibrator


@pytest.mark.parametrize("half_life", [1.0, 1e300, 1e308])
def test_a_half_life_of_any_length_is_saved(half_life: float) -> None:
    """One-vs-one comes back with its clock also where nothing ever grows too old."""
    calibrator = OneVsOne(["cat", "dog"], half_life=half_life)
    calibrator.learn_one({"cat": 0.5, "dog": 0.25}, "dog", time=7.0)
    assert OneVsOne.from_bytes(calibrator.to_bytes()) == calibrator
