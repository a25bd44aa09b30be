"""What all baselines have in common: the calls of `VennAbers`, so that one word is swapped."""

from __future__ import annotations

import copy
import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.cases import OPTIONS, Stream, aging, stream

from abers import (
    BetaCalibration,
    Isotonic,
    LabelError,
    ParameterError,
    Platt,
    ScoreError,
    StateError,
    TimeError,
    VennAbers,
    WeightError,
)
from abers.arrays import LEARN, PREDICT, REMOVE
from abers.calibration import DirectIsotonic
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.calibration.baselines import Baseline

KINDS: list[type[Baseline]] = [DirectIsotonic, Isotonic, Platt, BetaCalibration]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
REFITTED = pytest.mark.parametrize("kind", [Platt, BetaCalibration])
DIGEST = 16


def keywords(data: Stream, i: int) -> dict[str, Any]:
    """Weight and time of a row, as the calls for one observation take them."""
    when = {} if data.times is None else {"time": float(data.times[i])}
    return {"weight": float(data.weights[i]), **when}


def loop(calibrator: Baseline, data: Stream, delay: int) -> list[float]:
    """Go through a stream as a loop in Python would, labels `delay` predictions late."""
    p, n = [], len(data.scores)
    for i in range(n + min(delay, n)):
        if i < n:
            p.append(calibrator.predict_one(float(data.scores[i]), **keywords(data, i)))
        j = i - min(delay, n)
        if j >= 0:
            calibrator.learn_one(float(data.scores[j]), int(data.labels[j]), **keywords(data, j))
    return p


@EVERY_KIND
@EVERY_RULE
@pytest.mark.parametrize("delay", [0, 3, 90])
def test_prequential_equals_one_at_a_time(
    kind: type[Baseline], options: dict[str, Any], delay: int
) -> None:
    """A stream in one call gives the doubles and leaves the bytes of a loop of single calls."""
    data = stream(options, 60)
    batch, single = kind(**options), kind(**options)
    p = batch.prequential(
        data.scores, data.labels, delay=delay, weights=data.weights, times=data.times
    )
    assert p.tolist() == loop(single, data, delay)
    assert batch.to_bytes() == single.to_bytes()
    assert (len(batch), batch.late) == (len(single), single.late)


@EVERY_KIND
@EVERY_RULE
def test_run_in_pieces_equals_prequential(kind: type[Baseline], options: dict[str, Any]) -> None:
    """Steps in any pieces give what one call gives, NaN for labels, and what is kept."""
    data = stream(options, 100)
    whole, pieces, counted = kind(**options), kind(**options), VennAbers(**options)
    p = whole.prequential(data.scores, data.labels, weights=data.weights, times=data.times)
    rows, steps = np.repeat(np.arange(100), 2), np.tile([PREDICT, LEARN], 100)
    for at in (slice(0, 0), slice(0, 1), slice(1, 122), slice(122, 200)):
        row = rows[at]
        given: dict[str, Any] = {
            "weights": data.weights[row],
            "times": None if data.times is None else data.times[row],
        }
        held, wanted = np.empty((2, len(row)), np.int64)
        columns = (steps[at], data.scores[row], data.labels[row])
        predicted = pieces.run(*columns, **given, held=held)
        counted.run(*columns, **given, held=wanted)
        assert np.isnan(predicted[steps[at] == LEARN]).all()
        asked = steps[at] == PREDICT
        assert predicted[asked].tolist() == p[row[asked]].tolist()
        assert held.tolist() == wanted.tolist()
    assert pieces.to_bytes() == whole.to_bytes()


@EVERY_KIND
@EVERY_RULE
def test_learn_many_fits_to_all_that_is_held(kind: type[Baseline], options: dict[str, Any]) -> None:
    """A batch learned ends with a fit, which a loop reaches by learning none."""
    data = stream(options, 120)
    many, single = kind(**options), kind(**options)
    many.learn_many(data.scores, data.labels, weights=data.weights, times=data.times)
    loop(single, data, 0)
    single.learn_many([], [], times=[] if aging(options) else None)
    asked = stream(options, 50, seed=1)
    p = many.predict_many(asked.scores, weights=asked.weights, times=asked.times)
    assert p == pytest.approx(single.predict_many(asked.scores), abs=1e-7)
    ones = [many.predict_one(score) for score in asked.scores.tolist()]
    assert p.tolist() == ones
    assert {type(one) for one in ones} == {float}
    assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.once
@EVERY_KIND
@EVERY_RULE
@pytest.mark.parametrize(
    ("n", "duplicate"),
    [
        (60, copy.copy),
        (60, lambda c: pickle.loads(pickle.dumps(c))),  # noqa: S301 - our own bytes
        *((n, lambda c: type(c).from_bytes(c.to_bytes())) for n in (0, 1, 60)),
    ],
    ids=["copy", "pickle", "bytes-0", "bytes-1", "bytes-60"],
)
def test_a_restored_baseline_goes_on_bit_for_bit(
    kind: type[Baseline],
    options: dict[str, Any],
    n: int,
    duplicate: Callable[[Baseline], Baseline],
) -> None:
    """A restored baseline refits when and as the one that never stopped."""
    data, later = stream(options, n), stream(options, 60, seed=1)
    calibrator = kind(**options)
    loop(calibrator, data, 0)
    before = calibrator.to_bytes()
    restored = duplicate(calibrator)
    assert repr(restored) == repr(calibrator)
    p = loop(restored, later, 0)
    assert calibrator.to_bytes() == before
    assert p == loop(calibrator, later, 0)
    assert restored.to_bytes() == calibrator.to_bytes()


@EVERY_KIND
def test_bad_rows_change_nothing(kind: type[Baseline]) -> None:
    """A batch with one bad row learns nothing, and the message names the row."""
    calibrator = kind(window=50)
    calibrator.learn_many([0.1, 0.2, 0.3], [0, 1, 0])
    before = calibrator.to_bytes()
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ScoreError, "row 1: score nan", {"scores": [0.1, np.nan], "labels": [0, 1]}),
        (LabelError, "row 0: label 2", {"scores": [0.1, 0.2], "labels": [2, 1]}),
        (WeightError, "row 1: ", {"scores": [0.1, 0.2], "labels": [0, 1], "weights": [1, -1]}),
        (TimeError, "times given", {"scores": [0.1, 0.2], "labels": [0, 1], "times": [1, 2]}),
    ]
    for error, text, columns in refused:
        with pytest.raises(error, match=text):
            calibrator.learn_many(**columns)
        with pytest.raises(error, match=text):
            calibrator.prequential(**columns)
        with pytest.raises(error, match=text):
            calibrator.run([LEARN, LEARN], **columns)
    with pytest.raises(ParameterError, match=r"row 1: .* removes nothing"):
        calibrator.run([LEARN, REMOVE], [0.1, 0.1], [0, 0])
    with pytest.raises(ParameterError, match="held"):
        calibrator.run([LEARN], [0.1], [0], held=np.empty(2, np.int64))
    with pytest.raises(LabelError):
        calibrator.learn_one(0.5, 3)
    with pytest.raises(TimeError):
        calibrator.predict_one(0.5, time=1.0)
    with pytest.raises(WeightError):
        calibrator.predict_one(0.5, weight=0.0)
    assert calibrator.to_bytes() == before


@EVERY_KIND
@pytest.mark.parametrize("options", [{}, {"half_life": 1.0}], ids=["unlimited", "half_life"])
def test_an_overflow_half_way_is_taken_back(kind: type[Baseline], options: dict[str, Any]) -> None:
    """Weights that would pass the limit are refused with their row, fits in between undone."""
    calibrator = kind(**options)
    when = {"time": 0.0} if options else {}
    calibrator.learn_one(0.4, 1, **when)
    before = calibrator.to_bytes()
    heavy = 2.0**27 if options else 2.0**32
    given: dict[str, Any] = {
        "weights": [1.0, heavy, heavy, 1.0],
        "times": [0.0] * 4 if options else None,
    }
    for call in (calibrator.learn_many, calibrator.prequential):
        with pytest.raises(WeightError, match=r"^row 2: the total weight"):
            call([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], **given)
        assert calibrator.to_bytes() == before
    assert calibrator.predict_one(0.3) == kind.from_bytes(before).predict_one(0.3)


@pytest.mark.parametrize("kind", [BetaCalibration])
@pytest.mark.parametrize("bad", [-0.1, 1.0000001, 7])
def test_scores_that_are_no_probabilities_are_refused(kind: type[Baseline], bad: float) -> None:
    """Where scores must be probabilities, others are refused one at a time and in arrays."""
    calibrator = kind()
    with pytest.raises(ScoreError, match=r"^score .* is not a probability"):
        calibrator.predict_one(bad)
    with pytest.raises(ScoreError, match=r"^score .* is not a probability"):
        calibrator.learn_one(bad, 1)
    with pytest.raises(ScoreError, match=r"^row 1: score .* is not a probability"):
        calibrator.predict_many([0.5, bad])
    assert len(calibrator) == 0


@EVERY_KIND
def test_damaged_bytes_are_refused(kind: type[Baseline]) -> None:
    """Cut, changed, foreign or forged bytes raise a StateError."""
    calibrator = kind()
    calibrator.learn_many([0.1, 0.6], [0, 1])
    blob = calibrator.to_bytes()
    pieces = unpack(memoryview(blob)[8:-DIGEST])
    forged = [pieces[:-1], [*pieces, b""], [b"x", *pieces[1:]]]
    if len(pieces) > 1:
        forged += [
            [*pieces[:2], np.full(len(pieces[2]) // 8, np.nan).tobytes()],
            [*pieces[:2], pieces[2][:-8]],
            [pieces[0], pieces[1][:8] + bytes(8), pieces[2]],
            [pieces[0], np.array([2.0]).tobytes() + pieces[1][8:], pieces[2]],
        ]
    bad = [b"", blob[:-1], blob[:20] + b"!" + blob[21:], VennAbers().to_bytes()]
    for each in [*bad, *(seal(blob[:8], pack(parts)) for parts in forged)]:
        with pytest.raises(StateError):
            kind.from_bytes(each)


@REFITTED
def test_the_schedule_is_a_function_of_the_labels(kind: type[Platt | BetaCalibration]) -> None:
    """A fit comes after each share of what was kept at the last; predictions have no part in it."""
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    labels = (rng.random(300) < scores).astype(int)
    silent, asked = kind(refit=0.1), kind(refit=0.1)
    changes = []
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        before = silent.predict_one(0.3)
        silent.learn_one(score, label)
        asked.learn_one(score, label)
        asked.predict_many(scores)
        changes.append(silent.predict_one(0.3) != before)
    assert silent.to_bytes() == asked.to_bytes()
    fits, due = [], 1
    while due <= 300:
        fits.append(due)
        due += max(1, -(-due // 10))
    changed = [i + 1 for i, changed in enumerate(changes) if changed]
    assert set(changed) <= set(fits)
    assert len(changed) > len(fits) - 6


@REFITTED
@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, "0.5", None])
def test_a_share_outside_is_refused(kind: type[Platt | BetaCalibration], share: Any) -> None:  # noqa: ANN401
    """A share of the observations lies between 0 and 1; another is a mistake of that option."""
    with pytest.raises(ParameterError, match="refit="):
        kind(refit=share)


@EVERY_KIND
def test_rules_of_forgetting_exclude_each_other(kind: type[Baseline]) -> None:
    """At most one rule may be given, as in VennAbers; repr shows it."""
    with pytest.raises(ParameterError):
        kind(window=3, max_age=1.0)
    assert kind(window=3).window == 3
    assert kind(max_age=3).max_age == 3
    assert kind(half_life=3).half_life == 3
    assert kind() or False
    assert repr(kind(window=3)) == f"<{kind.__name__}(window=3) of 0 observations>"


@REFITTED
@pytest.mark.parametrize("n", [10, 25, 40])
def test_a_restored_schedule_goes_on(kind: type[Platt | BetaCalibration], n: int) -> None:
    """Between two fits that lie far apart, a restored one waits as long as the one saved."""
    data, later = stream({}, n), stream({}, 60, seed=1)
    calibrator = kind(refit=0.5)
    loop(calibrator, data, 0)
    restored = kind.from_bytes(calibrator.to_bytes())
    assert restored.refit == 0.5
    assert loop(restored, later, 0) == loop(calibrator, later, 0)
    assert restored.to_bytes() == calibrator.to_bytes()
