"""The calls on arrays of `abers.VennAbers`: one engine, whether one at a time or many."""

from __future__ import annotations

import pickle
import sys
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import OPTIONS, Stream, aging, check, stream, taught

from abers import InputError, NotHeldError, ScoreError, VennAbers, VennInterval, WeightError
from abers.arrays import LEARN, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
Pairs = tuple[list[float], list[float]]


def keywords(data: Stream, i: int) -> dict[str, Any]:
    """Weight and time of a row, as the calls for one observation take them."""
    when = {} if data.times is None else {"time": float(data.times[i])}
    return {"weight": float(data.weights[i]), **when}


def learn(calibrator: VennAbers, data: Stream, i: int) -> None:
    """Learn a row of a stream by itself."""
    calibrator.learn_one(float(data.scores[i]), int(data.labels[i]), **keywords(data, i))


def one_at_a_time(calibrator: VennAbers, data: Stream, delay: int) -> Pairs:
    """Go through a stream as a loop in Python would, labels `delay` predictions late."""
    pairs = []
    for i in range(len(data.scores)):
        pairs.append(calibrator.predict_one(float(data.scores[i]), **keywords(data, i)))
        if i >= delay:
            learn(calibrator, data, i - delay)
    for i in range(max(len(data.scores) - delay, 0), len(data.scores)):
        learn(calibrator, data, i)
    return [p0 for p0, _ in pairs], [p1 for _, p1 in pairs]


# Batches equal loops


@EVERY_RULE
@pytest.mark.parametrize("delay", [0, 1, 7, 59, 60, 61, 10**20])
def test_prequential_equals_one_at_a_time(options: dict[str, Any], delay: int) -> None:
    """Each row is predicted from the labels whose delay is over, then the rest is learned."""
    data = stream(options, 60)
    batch, loop = VennAbers(**options), VennAbers(**options)
    p0, p1 = batch.prequential(
        data.scores, data.labels, delay=delay, weights=data.weights, times=data.times
    )
    assert (p0.tolist(), p1.tolist()) == one_at_a_time(loop, data, delay)
    assert batch.state_bytes() == loop.state_bytes()
    assert batch.late == loop.late


@EVERY_RULE
def test_learn_many_equals_learn_one(options: dict[str, Any]) -> None:
    """Learning arrays, in pieces of any size, is learning each row."""
    data = stream(options, 80)
    many, loop = VennAbers(**options), VennAbers(**options)
    for piece in (slice(0, 0), slice(0, 1), slice(1, 50), slice(50, 80)):
        many.learn_many(
            *(None if column is None else column[piece] for column in data[:2]),
            weights=data.weights[piece],
            times=None if data.times is None else data.times[piece],
        )
    for i in range(80):
        learn(loop, data, i)
    assert many.state_bytes() == loop.state_bytes()


@EVERY_RULE
def test_predict_many_equals_predict_one(options: dict[str, Any]) -> None:
    """Predicting an array is predicting each row, and changes nothing."""
    calibrator = taught(options, 80)
    before = calibrator.state_bytes()
    data = stream(options, 50, seed=1)
    p0, p1 = calibrator.predict_many(data.scores, weights=data.weights, times=data.times)
    pairs = [calibrator.predict_one(float(data.scores[i]), **keywords(data, i)) for i in range(50)]
    assert list(zip(p0.tolist(), p1.tolist(), strict=True)) == pairs
    assert calibrator.state_bytes() == before


@EVERY_RULE
def test_predictions_without_times_are_made_at_the_newest(options: dict[str, Any]) -> None:
    """Left out, the time of each prediction is the newest time seen."""
    calibrator = taught(options, 80)
    p0, p1 = calibrator.predict_many([0.2, 0.6])
    assert (p0[0], p1[0]) == calibrator.predict_one(0.2)
    assert (p0[1], p1[1]) == calibrator.predict_one(0.6)
    q0, q1 = calibrator.run([PREDICT, PREDICT], [0.2, 0.6], [0, 1])
    assert (q0.tolist(), q1.tolist()) == (p0.tolist(), p1.tolist())


@given(
    st.lists(st.tuples(st.sampled_from((PREDICT, LEARN, REMOVE)), st.integers(0, 5)), max_size=60)
)
def test_run_equals_one_at_a_time(wanted: list[tuple[int, int]]) -> None:
    """Any sequence of steps gives what the calls for one observation give, NaN for the others."""
    loop, held = VennAbers(), [0] * 6
    steps, scores, labels, pairs = [], [], [], []
    for step, pick in wanted:
        if step == REMOVE and not held[pick]:
            continue
        score, label = pick // 2 / 2, pick % 2
        pair = VennInterval(np.nan, np.nan)
        if step == PREDICT:
            pair = loop.predict_one(score)
        elif step == LEARN:
            loop.learn_one(score, label)
        else:
            loop.remove_one(score, label)
        held[pick] += (step == LEARN) - (step == REMOVE)
        steps.append(step)
        scores.append(score)
        labels.append(label)
        pairs.append(pair)
    batch = VennAbers()
    p0, p1 = batch.run(steps, scores, labels)
    assert np.array_equal(p0, [pair.p0 for pair in pairs], equal_nan=True)
    assert np.array_equal(p1, [pair.p1 for pair in pairs], equal_nan=True)
    assert batch.state_bytes() == loop.state_bytes()


def test_the_label_of_a_prediction_is_ignored() -> None:
    """A prediction is the same whichever label stands in its row."""
    calibrator = taught({}, 30)
    p0, p1 = calibrator.run([PREDICT, PREDICT], [0.4, 0.4], [0, 1])
    assert p0[0] == p0[1]
    assert p1[0] == p1[1]


@EVERY_RULE
def test_empty_arrays_do_nothing(options: dict[str, Any]) -> None:
    """Arrays without rows are accepted everywhere and change nothing."""
    calibrator = taught(options, 20)
    before = calibrator.state_bytes()
    calibrator.learn_many([], [])
    results = [
        *calibrator.predict_many([]),
        *calibrator.prequential([], [], delay=3),
        *calibrator.run([], [], []),
    ]
    assert [result.shape for result in results] == [(0,)] * 6
    assert calibrator.state_bytes() == before


def test_views_and_other_types_are_taken() -> None:
    """Strided, reversed and read-only arrays, lists and narrow types give the same result."""
    scores, labels = np.arange(20) / 32, np.arange(20) % 3 == 0
    plain = VennAbers()
    plain.learn_many(scores, labels)
    wide = np.zeros((20, 3))
    wide[:, 1] = scores
    frozen = scores.copy()
    frozen.flags.writeable = False
    for variant in (wide[:, 1], scores[::-1][::-1], frozen, scores.tolist(), np.float32(scores)):
        other = VennAbers()
        other.learn_many(variant, labels.tolist())
        assert other.state_bytes() == plain.state_bytes()


def test_arrays_handed_in_stay_as_they_are() -> None:
    """No call writes into the arrays of its caller."""
    data = stream({"max_age": 5.0}, 30)
    copies = [column.copy() for column in data if column is not None]
    calibrator = VennAbers(max_age=5.0)
    calibrator.prequential(
        data.scores, data.labels, delay=2, weights=data.weights, times=data.times
    )
    for column, copy in zip(data, copies, strict=True):
        assert column is not None
        assert column.tolist() == copy.tolist()


# A bad row changes nothing


@EVERY_RULE
@pytest.mark.parametrize("row", [0, 17, 29])
def test_a_bad_row_changes_nothing(options: dict[str, Any], row: int) -> None:
    """With one bad score in a batch nothing is learned, and the error names its row."""
    calibrator = taught(options, 25, seed=1)
    before = calibrator.state_bytes()
    data = stream(options, 30)
    data.scores[row] = np.nan
    for call in (calibrator.learn_many, calibrator.prequential):
        with pytest.raises(ScoreError, match=rf"^row {row}: score nan"):
            call(data.scores, data.labels, weights=data.weights, times=data.times)
    assert calibrator.state_bytes() == before


def test_a_refused_remove_takes_the_batch_back() -> None:
    """Where a remove half-way finds nothing, the steps before it are undone."""
    calibrator = taught({}, 25)
    before, size = calibrator.state_bytes(), len(calibrator)
    steps = [LEARN, PREDICT, LEARN, REMOVE, LEARN, REMOVE, REMOVE, LEARN]
    scores = [0.21, 0.3, 0.22, 0.21, 0.23, 0.22, 0.22, 0.9]
    labels = [1, 0, 0, 1, 1, 0, 0, 1]
    with pytest.raises(NotHeldError, match=r"^row 6: no weight 1 of score 0.22 with label 0"):
        calibrator.run(steps, scores, labels)
    assert calibrator.state_bytes() == before
    assert len(calibrator) == size


def test_a_refused_remove_brings_back_what_was_removed() -> None:
    """Steps that emptied the calibrator before the refused one are undone, too."""
    calibrator = VennAbers()
    calibrator.learn_many([0.5, 0.5, 0.7], [1, 1, 0], weights=[0.1, 2.0, 1.0])
    before = calibrator.state_bytes()
    with pytest.raises(NotHeldError, match=r"^row 3"):
        calibrator.run(
            [REMOVE] * 4, [0.5, 0.7, 0.5, 0.5], [1, 0, 1, 1], weights=[2.0, 1.0, 0.1, 1.0]
        )
    assert calibrator.state_bytes() == before
    assert len(calibrator) == 3


@pytest.mark.parametrize(
    ("options", "heavy"),
    [
        ({}, 2.0**31),
        ({"window": 9}, 2.0**31),
        ({"max_age": 100.0}, 2.0**31),
        ({"half_life": 100.0}, 2.0**26),
    ],
)
def test_an_overflow_takes_the_batch_back(options: dict[str, Any], heavy: float) -> None:
    """Where the total weight would overflow half-way, the batch is undone."""
    calibrator = taught(options, 9)
    before, size = calibrator.state_bytes(), len(calibrator)
    times = np.full(9, 20.0) if aging(options) else None
    weights = np.where(np.arange(9) < 2, 1.0, heavy)
    for call in (calibrator.learn_many, calibrator.prequential):
        with pytest.raises(WeightError, match=r"^row 5: the total weight would pass"):
            call(np.arange(9) / 9, np.arange(9) % 2, weights=weights, times=times)
        assert calibrator.state_bytes() == before
        assert len(calibrator) == size
        assert calibrator.late == 0


@pytest.mark.parametrize("options", [{"max_age": 10.0}, {"half_life": 1.0}])
def test_an_overflow_forgets_late_labels_and_new_times(options: dict[str, Any]) -> None:
    """A refused batch leaves neither its late labels counted nor its times as the newest."""
    calibrator = taught(options, 9)
    before = calibrator.state_bytes()
    heavy = 2.0**26 if "half_life" in options else 2.0**31
    with pytest.raises(WeightError, match=r"^row 6"):
        calibrator.learn_many(
            np.arange(8) / 9,
            [0, 1] * 4,
            weights=[1.0, 1.0, *[heavy] * 6],
            times=[1e3, 1.0, *[1e3] * 2, 2.0, *[1e3] * 3],
        )
    assert calibrator.late == 0
    assert calibrator.state_bytes() == before


@EVERY_RULE
def test_a_refused_batch_leaves_a_working_calibrator(options: dict[str, Any]) -> None:
    """After a refusal the calibrator goes on bit for bit as if nothing had happened."""
    tried, untried = taught(options, 25), taught(options, 25)
    heavy = np.full(30, 2.0**27 if "half_life" in options else 2.0**31)
    data = stream(options, 30, seed=3)
    times = None if data.times is None else data.times + 20.0
    try:
        tried.learn_many(data.scores, data.labels, weights=heavy, times=times)
    except InputError:
        assert tried.state_bytes() == untried.state_bytes()
        for calibrator in (tried, untried):
            calibrator.learn_many(data.scores, data.labels, weights=data.weights, times=times)
    else:
        untried.learn_many(data.scores, data.labels, weights=heavy, times=times)
    assert tried.state_bytes() == untried.state_bytes()
    assert tried.predict_one(0.5) == untried.predict_one(0.5)


def test_an_overflow_by_plain_weights_takes_the_batch_back() -> None:
    """A batch without weights is undone as well if it makes the total pass the limit."""
    calibrator = VennAbers(half_life=10.0)
    for _ in range(2):
        calibrator.learn_one(0.5, 1, weight=2.0**27 - 5, time=0.0)
    before = calibrator.state_bytes()
    with pytest.raises(WeightError, match="row 10"):
        calibrator.learn_many([0.1] * 20, [0] * 20, times=[0.0] * 20)
    assert calibrator.state_bytes() == before


# Many steps of one kind are done together, which must not show


MANY = 200
"""Steps enough for the core to go through the whole diagram at once."""


@EVERY_RULE
@pytest.mark.parametrize("held", [0, 1, 90])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_predictions_equal_single_ones(
    options: dict[str, Any],
    held: int,
    weighted: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Predicting many scores, ties and scores beyond both ends among them, is predicting each."""
    calibrator = VennAbers(**options)
    scores, labels, weights, times = stream(options, held)
    calibrator.learn_many(scores, labels, weights=weights if weighted else None, times=times)
    queries = np.concatenate([stream(options, MANY, seed=1).scores, scores, [-1e308, -0.0, 1e308]])
    p0, p1 = calibrator.predict_many(queries)
    pairs = [calibrator.predict_one(score) for score in queries.tolist()]
    assert list(zip(p0.tolist(), p1.tolist(), strict=True)) == pairs


@pytest.mark.native  # the reference has no table, and takes minutes
@pytest.mark.parametrize("options", [{}, {"window": 990}, {"max_age": 1e3}, {"half_life": 200.0}])
def test_predictions_follow_every_change(options: dict[str, Any]) -> None:
    """Between any two changes, of any kind, batch after batch is what single predictions are."""
    calibrator, data = VennAbers(**options), stream(options, 1_100)
    queries = stream(options, 100, seed=1).scores
    times = None if data.times is None else data.times[40:1_000]
    changes: list[Callable[[], object]] = [
        *(partial(learn, calibrator, data, i) for i in range(40)),
        lambda: calibrator.learn_many(data.scores[40:1_000], data.labels[40:1_000], times=times),
        *(partial(learn, calibrator, data, i) for i in range(1_000, 1_005)),
        lambda: calibrator.predict_one(0.5, **keywords(data, 1_099)),  # moves what is too old
        lambda: calibrator.predict_one(0.5, weight=0.3),
    ]
    if not options:
        changes.append(lambda: calibrator.remove_one(float(data.scores[40]), int(data.labels[40])))
    for change in changes:
        change()
        pairs = [calibrator.predict_one(score) for score in queries.tolist()]
        for _ in range(3):
            p0, p1 = calibrator.predict_many(queries)
            assert list(zip(p0.tolist(), p1.tolist(), strict=True)) == pairs
        check(calibrator)


def size_of(calibrator: VennAbers) -> int:
    """Return the bytes of what a calibrator holds."""
    return sys.getsizeof(calibrator._held)  # noqa: SLF001 - C++ tells its size


@pytest.mark.native
def test_a_table_between_two_labels_is_small_and_no_state() -> None:
    """The second batch leaves a table of at most 24 bytes a score, until the next label.

    It is neither saved nor copied.
    """
    calibrator, n = VennAbers(), 20_000
    scores = np.random.default_rng(0).permutation(n) / n
    labels = (np.random.default_rng(1).random(n) < scores).astype(int)
    calibrator.learn_many(scores, labels)
    plain, saved = size_of(calibrator), calibrator.to_bytes()
    queries = np.linspace(-1, 2, MANY)
    calibrator.predict_many(queries)
    assert size_of(calibrator) == plain
    calibrator.predict_many(queries)
    assert plain < size_of(calibrator) <= plain + 24 * (n + 1)
    assert calibrator.to_bytes() == saved
    for copied in (deepcopy(calibrator), pickle.loads(pickle.dumps(calibrator))):  # noqa: S301 - ours
        assert size_of(copied) == size_of(VennAbers.from_bytes(saved)) < size_of(calibrator)
    calibrator.learn_one(0.5, 1)
    assert size_of(calibrator) <= plain + 64


@pytest.mark.native
def test_labels_between_batches_do_not_make_table_after_table() -> None:
    """A table is made again only after as much work as it takes, however labels come."""
    calibrator, n = VennAbers(), 20_000
    calibrator.learn_many(np.arange(n) / n, np.arange(n) % 3 == 0)
    queries, made = np.linspace(0, 1, MANY), []
    for i in range(20):
        before = size_of(calibrator)
        calibrator.predict_many(queries)
        calibrator.predict_many(queries)
        made.append(size_of(calibrator) > before)
        calibrator.learn_one(i / 20, 1)
    assert made == [i % 7 == 0 for i in range(20)]  # 7 rounds of 401 steps: an eighth of the labels


@EVERY_RULE
@pytest.mark.parametrize("held", [0, 1, 90])
@pytest.mark.parametrize("weighted", [False, True])
def test_learning_many_equals_learning_each(
    options: dict[str, Any],
    held: int,
    weighted: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Learning many at once, by an empty calibrator or another, is learning each."""
    data = stream(options, held + MANY)
    many, loop = VennAbers(**options), VennAbers(**options)
    for part in (slice(0, held), slice(held, held + MANY)):
        many.learn_many(
            data.scores[part],
            data.labels[part],
            weights=data.weights[part] if weighted else None,
            times=None if data.times is None else data.times[part],
        )
        check(many)
    for i in range(held + MANY):
        weight = {} if weighted else {"weight": 1.0}
        loop.learn_one(float(data.scores[i]), int(data.labels[i]), **keywords(data, i) | weight)
    assert many.state_bytes() == loop.state_bytes()
    assert len(many) == len(loop)
    for score in (0.0, 0.3, 0.5, 1.0):
        assert many.predict_one(score) == loop.predict_one(score)


def test_many_that_would_overflow_are_refused_at_their_row() -> None:
    """Of many heavy observations the first that passes the limit is named; none is learned."""
    calibrator = taught({}, 30)
    before = calibrator.state_bytes()
    with pytest.raises(WeightError, match="row 31"):
        calibrator.learn_many(np.zeros(MANY), np.ones(MANY), weights=np.full(MANY, 2.0**28))
    assert calibrator.state_bytes() == before


def test_what_was_learned_together_can_be_removed() -> None:
    """A calibrator built at once from many goes on like any other."""
    data = stream({}, MANY)
    calibrator = VennAbers()
    calibrator.learn_many(data.scores, data.labels)
    for score, label in zip(data.scores.tolist(), data.labels.tolist(), strict=True):
        calibrator.remove_one(score, label)
    check(calibrator)
    assert calibrator.state_bytes() == VennAbers().state_bytes()
