"""Calibrators of several classes against the definition, one at a time and on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import GAPS, OPTIONS, aging
from tests.engine.multi_oracle import Answer, Label, MultiOracle

from abers import MultiInterval, OneVsOne, OneVsRest
from abers.reference import LEARN, PREDICT

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
    """Tell whether an answer is the exact one but for rounding, class for class."""
    return all(
        [*told] == [*wanted]
        and np.allclose([*told.values()], [float(v) for v in wanted.values()], 1e-12, 1e-15)
        for told, wanted in zip(answer, exact, strict=True)
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


def keywords(weights: Any, times: Any, i: int) -> dict[str, float]:  # noqa: ANN401
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
    told = batch.prequential(scores, labels, delay=delay, weights=weights, times=times)
    for which in range(3):
        assert told[which].tolist() == [[*answer[which].values()] for answer in answers]
    assert batch.to_bytes() == loop.to_bytes()


@EVERY_KIND
@EVERY_RULE
def test_predict_many_equals_predict_one(kind: type[Calibrator], options: dict[str, Any]) -> None:
    """Predicting a table is predicting each row, and changes nothing."""
    scores, labels, weights, times = table(options, 60)
    calibrator = kind(("a", "b", "c"), **options)
    calibrator.learn_many(scores, labels, weights=weights, times=times)
    before = calibrator.to_bytes()
    told = calibrator.predict_many(scores, weights=weights, times=times)
    for i in range(60):
        answer = calibrator.predict_one(named(scores[i]), **keywords(weights, times, i))
        assert [column[i].tolist() for column in told] == [[*part.values()] for part in answer]
    assert calibrator.to_bytes() == before


@EVERY_KIND
@EVERY_RULE
def test_run_in_pieces_equals_prequential(kind: type[Calibrator], options: dict[str, Any]) -> None:
    """Steps in any pieces give what one call gives, NaN where a label was learned, and counts."""
    scores, labels, weights, times = table(options, 50)
    whole, pieces = (kind(("a", "b", "c"), **options) for _ in range(2))
    told = whole.prequential(scores, labels, weights=weights, times=times)
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
        for answer, wanted in zip(answers, told, strict=True):
            assert np.isnan(answer[learned]).all()
            assert answer[~learned].tolist() == wanted[row[~learned]].tolist()
    assert pieces.to_bytes() == whole.to_bytes()
    assert held[-1] == len(whole)
