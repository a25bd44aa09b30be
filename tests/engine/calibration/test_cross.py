"""The cross Venn-Abers predictor: `abers.calibration.cross`, its batch, its folds, its saved form.

The oracle is a dict of K calibrators, each of which learns the observations of its fold.
"""

from __future__ import annotations

import copy
import pickle
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import LABELS, OPTIONS, SCORES, aging, stream
from tests.engine.oracle import Oracle

from abers import (
    CrossInterval,
    CrossVennAbers,
    ForgettingError,
    InputError,
    LabelError,
    NotHeldError,
    ParameterError,
    ScoreError,
    StateError,
    TimeError,
    VennAbers,
    WeightError,
)
from abers.batch import cvap
from abers.serialization import seal

if TYPE_CHECKING:
    from numpy.typing import NDArray

EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
pytestmark = pytest.mark.native

K = 3


def data(options: dict[str, Any], n: int, seed: int = 0) -> tuple[NDArray[Any], dict[str, Any]]:
    """Make K columns of scores, and labels, weights and times."""
    columns = [stream(options, n, seed + k).scores for k in range(K)]
    _, labels, weights, times = stream(options, n, seed)
    return np.column_stack(columns), {"labels": labels, "weights": weights, "times": times}


def row(columns: dict[str, Any], i: int) -> dict[str, Any]:
    """Weight and time of a row."""
    return {
        name[:-1]: float(column[i])
        for name, column in columns.items()
        if name != "labels" and column is not None
    }


@given(st.lists(st.tuples(st.lists(SCORES, min_size=K, max_size=K), LABELS), max_size=25))
def test_each_fold_obeys_the_definition(rows: list[tuple[list[float], int]]) -> None:
    """Each fold's pair is the definition's, of the labels of that fold and its own scores."""
    calibrator, oracles = CrossVennAbers(folds=K), [Oracle() for _ in range(K)]
    for i, (scores, label) in enumerate(rows):
        calibrator.learn_one(scores, label)
        oracles[i % K].learn(scores[i % K], label)
    for scores, _ in [*rows, ([0.3, 0.5, 0.5], 0)]:
        expected = [oracle.predict(score) for oracle, score in zip(oracles, scores, strict=True)]
        p0, p1 = zip(*expected, strict=True)
        assert calibrator.predict_one(scores) == CrossInterval(p0, p1)


@EVERY_RULE
@pytest.mark.parametrize("by", ["turn", "id", "fold"])
def test_batches_equal_loops(options: dict[str, Any], by: str) -> None:
    """Arrays are learned and predicted as their rows would be, however the fold is chosen."""
    n = 60
    scores, columns = data(options, n)
    ids = [f"id-{i}" for i in range(n)]
    numbers = np.random.default_rng(1).integers(0, K, n)
    batch, loop = CrossVennAbers(K, **options), CrossVennAbers(K, **options)
    ways: dict[str, dict[str, Any]] = {
        "turn": {},
        "id": {"ids": ids},
        "fold": {"folds": numbers},
    }
    which = ways[by]
    for part in (slice(0, 0), slice(0, 25), slice(25, n)):
        batch.learn_many(
            scores[part],
            **{name: None if c is None else c[part] for name, c in columns.items()},
            **{name: values[part] for name, values in which.items()},
        )
    for i in range(n):
        one = {name[:-1]: values[i] for name, values in which.items()}
        loop.learn_one(scores[i].tolist(), int(columns["labels"][i]), **row(columns, i), **one)
    assert batch.state_bytes() == loop.state_bytes()
    assert (len(batch), batch.late) == (len(loop), loop.late)
    asked, of = data(options, 20, seed=50)
    p0, p1 = batch.predict_many(asked, weights=of["weights"], times=of["times"])
    for i in range(20):
        made = loop.predict_one(asked[i].tolist(), **row(of, i))
        assert made == (tuple(p0[i].tolist()), tuple(p1[i].tolist()))


@EVERY_RULE
@pytest.mark.parametrize("delay", [0, 1, 7, 49, 50, 10**20])
def test_prequential_equals_one_at_a_time(options: dict[str, Any], delay: int) -> None:
    """Each row is predicted by all folds from the labels whose delay is over."""
    n = 50
    scores, columns = data(options, n)
    batch, loop = CrossVennAbers(K, **options), CrossVennAbers(K, **options)
    p0, p1 = batch.prequential(scores, delay=delay, **columns)

    def learn(i: int) -> None:
        loop.learn_one(scores[i].tolist(), int(columns["labels"][i]), **row(columns, i))

    for i in range(n):
        made = loop.predict_one(scores[i].tolist(), **row(columns, i))
        assert made == (tuple(p0[i].tolist()), tuple(p1[i].tolist()))
        if i >= delay:
            learn(i - delay)
    for i in range(max(0, n - delay), n):
        learn(i)
    assert batch.state_bytes() == loop.state_bytes()


# Folds


@given(st.one_of(st.text(), st.integers()), st.integers(2, 40))
def test_an_id_decides_its_fold_by_blake2b(id_: str | int, folds: int) -> None:
    """The fold is the digest of the id's text modulo K, whatever was learned."""
    digest = blake2b(str(id_).encode("utf-8"), digest_size=8).digest()
    calibrator = CrossVennAbers(folds)
    assert calibrator.fold_of(id_) == int.from_bytes(digest, "little") % folds


def test_ids_spread_over_the_folds() -> None:
    """Five folds get about a fifth of many ids each."""
    folds = [CrossVennAbers().fold_of(i) for i in range(5_000)]
    assert min(np.bincount(folds)) > 900


def test_without_ids_labels_take_turns() -> None:
    """`fold_of()` names the fold of the next label, which goes around with each label learned."""
    calibrator = CrossVennAbers(K)
    turns = []
    for i in range(7):
        turns.append(calibrator.fold_of())
        calibrator.learn_one([0.5] * K, i % 2)
    assert turns == [0, 1, 2, 0, 1, 2, 0]


def test_only_the_score_of_its_fold_is_learned() -> None:
    """The calibrators of the other folds stay as they were."""
    calibrator = CrossVennAbers(K)
    calibrator.learn_one([0.1, 0.2, 0.3], 1, fold=1)
    assert calibrator.predict_one([0.2] * K) == CrossInterval((0.0, 0.5, 0.0), (1.0, 1.0, 1.0))
    assert len(calibrator) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fold": 3}, "fold 3 is unknown; the folds are 0 to 2"),
        ({"fold": -1}, "fold -1 is unknown"),
        ({"fold": True}, "fold True is unknown"),
        ({"fold": 1.0}, "fold 1.0 is unknown"),
        ({"id": 1.5}, "id 1.5 is neither a string nor a whole number"),
        ({"id": "a", "fold": 0}, "exclude each other"),
    ],
)
def test_an_unknown_fold_is_refused(arguments: dict[str, Any], message: str) -> None:
    """A fold that is none of the K, or named twice, is refused; nothing is learned."""
    calibrator = CrossVennAbers(K)
    with pytest.raises(ParameterError, match=message):
        calibrator.learn_one([0.5] * K, 1, **arguments)
    assert calibrator.state_bytes() == CrossVennAbers(K).state_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": [0, 3]}, "row 1: fold 3 is unknown"),
        ({"folds": [0]}, "folds has 1 rows, scores has 2"),
        ({"ids": ["a", None]}, "row 1: id None"),
        ({"ids": ["a"], "folds": [0, 1]}, "exclude each other"),
    ],
)
def test_an_unknown_fold_of_many_is_refused(arguments: dict[str, Any], message: str) -> None:
    """In a batch the first such row is named; nothing is learned."""
    calibrator = CrossVennAbers(K)
    with pytest.raises(ParameterError, match=message):
        calibrator.learn_many([[0.5] * K] * 2, [0, 1], **arguments)
    assert calibrator.state_bytes() == CrossVennAbers(K).state_bytes()


@pytest.mark.parametrize("folds", [1, 0, -2, 2.0, True, "5"])
def test_a_number_of_folds_below_2_is_refused(folds: Any) -> None:  # noqa: ANN401
    """There are at least two folds."""
    with pytest.raises(ParameterError, match="folds"):
        CrossVennAbers(folds)


# Removing


def test_remove_undoes_learn() -> None:
    """Removed from its fold, an observation leaves no trace, the turn of the next included."""
    calibrator = CrossVennAbers(K)
    calibrator.learn_one([0.1, 0.2, 0.3], 0)
    before = calibrator.state_bytes()
    calibrator.learn_one([0.4, 0.5, 0.6], 1, id="x", weight=2.5)
    calibrator.remove_one([0.4, 0.5, 0.6], 1, id="x", weight=2.5)
    assert calibrator.state_bytes() == before
    with pytest.raises(NotHeldError):
        calibrator.remove_one([0.4, 0.5, 0.6], 1, id="x")
    with pytest.raises(ParameterError, match="give fold or id"):
        calibrator.remove_one([0.1, 0.2, 0.3], 0)
    with pytest.raises(ForgettingError):
        CrossVennAbers(window=3).remove_one([0.5] * 5, 1, fold=0)
    assert calibrator.state_bytes() == before


# Bad input


@pytest.mark.parametrize(
    ("scores", "label", "error", "message"),
    [
        ([0.1, 0.2], 0, ParameterError, "scores has 2 values; give one by each of the 3"),
        ([0.1, float("nan"), 0.3], 0, ScoreError, "fold 1: score nan"),
        ([0.1, "high", 0.3], 0, ScoreError, "fold 1: score 'high'"),
        ([0.1, 0.2, 0.3], 2, LabelError, "label 2"),
    ],
)
def test_bad_input_is_refused(
    scores: list[Any], label: int, error: type[InputError], message: str
) -> None:
    """What cannot be used is named with its fold, by one and by many; nothing changes."""
    calibrator = CrossVennAbers(K)
    with pytest.raises(error, match=message):
        calibrator.learn_one(scores, label, fold=0)
    good = [[0.5] * len(scores)]
    with pytest.raises(error):
        calibrator.learn_many([*good, scores], [0, label])
    if error is not LabelError:
        with pytest.raises(error):
            calibrator.predict_one(scores)
        with pytest.raises(error):
            calibrator.predict_many([*good, scores])
    assert calibrator.state_bytes() == CrossVennAbers(K).state_bytes()


@pytest.mark.parametrize("scores", [[[0.1, 0.2, 0.3], [0.1]], [0.1, 0.2, 0.3], [[[0.1] * K]]])
def test_scores_of_another_shape_are_refused(scores: Any) -> None:  # noqa: ANN401
    """Many scores come in a row an observation and a column a fold."""
    with pytest.raises(ParameterError, match=r"shape \(n, 3\)"):
        CrossVennAbers(K).predict_many(scores)


def test_one_score_for_all_folds_is_refused() -> None:
    """A score that is a number, as other calibrators take it, is a ParameterError."""
    calibrator = CrossVennAbers(K)
    with pytest.raises(ParameterError, match="scores has 1 values; give one by each of the 3"):
        calibrator.predict_one(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("delay", [-1, 1.5, True])
def test_a_delay_that_is_no_count_is_refused(delay: Any) -> None:  # noqa: ANN401
    """A delay is a whole number of observations."""
    with pytest.raises(ParameterError, match="delay"):
        CrossVennAbers(K).prequential([[0.1] * K], [1], delay=delay)


@EVERY_RULE
def test_a_refused_batch_changes_no_fold(options: dict[str, Any]) -> None:
    """Times missing, unwanted or out of reach, or too much weight: no fold has learned."""
    calibrator = CrossVennAbers(K, **options)
    scores, columns = data(options, 30)
    calibrator.learn_many(scores, **columns)
    before = calibrator.state_bytes()
    times = columns.pop("times")
    with pytest.raises(TimeError):
        calibrator.learn_many(scores, **columns, times=None if aging(options) else [1.0] * 30)
    heavy = 2.0**27 if "half_life" in options else 2.0**32
    columns["weights"] = np.where(np.arange(30) % K == 1, heavy, 1.0)  # fold 0 could learn
    with pytest.raises(WeightError, match="fold 1"):
        calibrator.learn_many(scores, **columns, times=times)
    if "half_life" in options:
        columns["weights"] = np.ones(30)
        with pytest.raises(TimeError, match="half-lives"):
            calibrator.learn_many(scores, **columns, times=np.where(np.arange(30) < 29, 1.0, 1e16))
    assert calibrator.state_bytes() == before


def test_one_class_only() -> None:
    """With labels of one class so far, the other side of every pair stays open."""
    calibrator = CrossVennAbers(2)
    calibrator.learn_many([[0.1, 0.2], [0.3, 0.4]], [1, 1])
    assert calibrator.predict_one([0.2, 0.3]) == CrossInterval((0.5, 0.0), (1.0, 1.0))
    assert 0.0 < calibrator.predict_one([0.2, 0.3]).merged < 1.0


# Saving


@EVERY_RULE
def test_saved_restored_pickled_and_copied(options: dict[str, Any]) -> None:
    """Restored, it has the same bytes and options and goes on the same."""
    calibrator = CrossVennAbers(K, **options)
    scores, columns = data(options, 40)
    calibrator.learn_many(scores, **columns)
    for twin in (
        CrossVennAbers.from_bytes(calibrator.to_bytes()),
        pickle.loads(pickle.dumps(calibrator)),  # noqa: S301
        copy.deepcopy(calibrator),
    ):
        assert twin.to_bytes() == calibrator.to_bytes()
        assert repr(twin) == repr(calibrator)
        before = calibrator.to_bytes()
        twin.learn_many(scores, **columns)
        assert calibrator.to_bytes() == before


def test_damaged_bytes_are_refused() -> None:
    """Bytes cut, changed, of another kind, or of folds that do not fit are a StateError."""
    calibrator = CrossVennAbers(2)
    calibrator.learn_one([0.1, 0.2], 1)
    blob = calibrator.to_bytes()
    changed = [blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :] for at in range(len(blob))]
    cut = [blob[:at] for at in range(len(blob))]
    for bad in [*changed, *cut, blob + b"\0", VennAbers().to_bytes()]:
        with pytest.raises(StateError):
            CrossVennAbers.from_bytes(bad)


@pytest.mark.parametrize(
    "parts",
    [
        (2, 0, [{}]),
        (1, 0, [{}]),
        (2, 0, [{}, {"window": 3}]),
        (1, 0, [{}, {}]),
        (0, 0, []),
        (2**60, 0, [{}, {}]),
    ],
)
def test_folds_that_do_not_fit_are_refused(parts: tuple[int, int, list[dict[str, Any]]]) -> None:
    """A good seal around folds of other rules, or another number of them, does not help."""
    folds, learned, rules = parts
    blobs = [VennAbers(**rule).to_bytes() for rule in rules]
    payload = folds.to_bytes(8, "little") + learned.to_bytes(8, "little")
    payload += b"".join(len(blob).to_bytes(8, "little") + blob for blob in blobs)
    with pytest.raises(StateError):
        CrossVennAbers.from_bytes(seal(b"abersCV\x01", payload))


def test_fewer_labels_learned_than_held_are_refused() -> None:
    """The count of labels is at least the number of observations kept."""
    one = VennAbers()
    one.learn_one(0.5, 1)
    blob = one.to_bytes()
    payload = (2).to_bytes(8, "little") + bytes(8)
    payload += 2 * (len(blob).to_bytes(8, "little") + blob)
    with pytest.raises(StateError, match="inconsistent"):
        CrossVennAbers.from_bytes(seal(b"abersCV\x01", payload))


def test_describes_itself() -> None:
    """It shows its folds and rule, counts what it holds, and is true when empty."""
    calibrator = CrossVennAbers(2, window=9)
    assert repr(calibrator) == "<CrossVennAbers(folds=2, window=9) of 0 observations>"
    assert (calibrator.folds, calibrator.window, calibrator.max_age) == (2, 9, None)
    assert CrossVennAbers(half_life=2.0).half_life == 2.0
    assert bool(calibrator)


# The batch


def test_batch_equals_the_stream() -> None:
    """A batch predicts as calibrators do that have learned the same."""
    scores, columns = data({}, 60)
    folds = np.arange(60) % K
    calibrator = CrossVennAbers(K)
    calibrator.learn_many(scores, columns["labels"])
    asked, _ = data({}, 90, seed=9)
    p0, p1 = cvap(
        [scores[folds == k, k] for k in range(K)],
        [columns["labels"][folds == k] for k in range(K)],
        list(asked.T),
    )
    q0, q1 = calibrator.predict_many(asked)
    assert (p0.tolist(), p1.tolist()) == (q0.tolist(), q1.tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.1]], [[1]], []), "scores has 1 arrays, labels 1, queries 0"),
        (([], [], []), "at least one"),
        (([[0.1]] * 2, [[1]] * 2, [[0.1], [0.1, 0.2]]), r"queries has \[1, 2\] rows"),
        (([[0.1]] * 2, [[1], [2]], [[0.1]] * 2), "fold 1: row 0: label 2"),
        (([[0.1]] * 2, [[1]] * 2, [[0.1], [float("nan")]]), "fold 1: row 0: score nan"),
    ],
)
def test_a_bad_batch_is_refused(arguments: tuple[Any, Any, Any], message: str) -> None:
    """Arrays that do not fit, and values that cannot be used, are named with their fold."""
    with pytest.raises(InputError, match=message):
        cvap(*arguments)


@EVERY_RULE
def test_any_sequence_of_steps(options: dict[str, Any]) -> None:
    """`run` predicts and learns as the calls one by one do, and says how many are kept."""
    scores, columns = data(options, 120)
    rng = np.random.default_rng(5)
    kinds, folds = rng.integers(0, 2, 120), rng.integers(0, K, 120)
    whole, single = (CrossVennAbers(folds=K, **options) for _ in range(2))
    held = np.empty(120, np.int64)
    given = {name: column for name, column in columns.items() if name != "labels"}
    p0, p1 = whole.run(kinds, scores, columns["labels"], folds=folds, held=held, **given)
    for i, kind in enumerate(kinds.tolist()):
        if kind:
            one = row(columns, i)
            single.learn_one(
                scores[i].tolist(), int(columns["labels"][i]), fold=int(folds[i]), **one
            )
            assert np.isnan(p0[i]).all()
        else:
            expected = single.predict_one(scores[i].tolist(), **row(columns, i))
            assert (tuple(p0[i]), tuple(p1[i])) == (expected.p0, expected.p1)
        assert held[i] == len(single)
    assert whole.state_bytes() == single.state_bytes()


def test_steps_that_cannot_be_taken() -> None:
    """Nothing is removed by `run`, and `held` has a row for each step."""
    calibrator, scores = CrossVennAbers(folds=K), np.zeros((1, K))
    with pytest.raises(ParameterError, match="row 0: remove observations with remove_one"):
        calibrator.run([2], scores, [0], folds=[0])
    with pytest.raises(ParameterError, match="held is float64"):
        calibrator.run([1], scores, [0], folds=[0], held=np.empty(1))  # type: ignore[arg-type]
    assert len(calibrator) == 0
