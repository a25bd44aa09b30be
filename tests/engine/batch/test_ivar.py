"""The interval for the mean, `abers.batch.ivar`: against isotonic fits in fractions."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from tests.engine.cases import aging

from abers import (
    ForgettingError,
    LabelError,
    NotHeldError,
    ParameterError,
    ScoreError,
    StateError,
    TimeError,
    VennAbers,
)
from abers.batch import IVAR, MeanInterval
from abers.serialization import pack, seal

if TYPE_CHECKING:
    from collections.abc import Iterable

Pairs = list[tuple[float, float]]

OPTIONS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "window": {"window": 7},
    "max_age": {"max_age": 5.0},
    "half_life": {"half_life": 2.0},
}
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
LO, HI = -3.0, 7.0
GRID = 2.0**-30 * (HI - LO)  # to which labels are rounded
LABELS = st.one_of(st.sampled_from([LO, HI, 0.0, 0.1]), st.floats(LO, HI))
PAIRS = st.lists(st.tuples(st.integers(0, 5).map(float), LABELS), max_size=12)


def fitted(pairs: Iterable[tuple[float, Fraction]], query: float, label: Fraction) -> Fraction:
    """Isotonic regression with the query added, at the query: max over a of min over b of means."""
    held = [*pairs, (query, label)]

    def mean(a: float, b: float) -> Fraction:
        inside = [y for s, y in held if a <= s <= b]
        return sum(inside, Fraction()) / len(inside)

    known = sorted({s for s, _ in held})
    rights = [b for b in known if b >= query]
    return max(min(mean(a, b) for b in rights) for a in known if a <= query)


def naive(pairs: Pairs, query: float) -> tuple[float, float]:
    """Return the interval by definition, the labels as they came."""
    exact = [(s, Fraction(y)) for s, y in pairs]
    low, high = (fitted(exact, query, Fraction(end)) for end in (LO, HI))
    return float(low), float(high)


def taught(options: dict[str, Any], n: int = 30) -> IVAR:
    """Make a calibrator that has learned `stream(n)`."""
    calibrator = IVAR(LO, HI, **options)
    scores, ys, times = stream(n)
    calibrator.learn_many(scores, ys, times=times if aging(options) else None)
    return calibrator


def stream(n: int) -> tuple[Any, Any, Any]:
    """Make scores and labels with ties, ends of the bounds among them, and times."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 8, n) / 8.0
    ys = np.clip(scores * 8.0 + rng.normal(0.0, 4.0, n).round(1), LO, HI)
    return scores, ys, np.cumsum(rng.choice([0.0, 0.5, -0.3, 1.0], n))


# Answers


@given(PAIRS, st.integers(-1, 11).map(lambda half: half / 2.0))
def test_the_interval_is_that_of_the_isotonic_fits_with_both_labels(
    pairs: Pairs, query: float
) -> None:
    """Both ends equal the fits by definition, but for the rounding of the labels."""
    calibrator = IVAR(LO, HI)
    for score, y in pairs:
        calibrator.learn_one(score, y)
    assert calibrator.predict_one(query) == pytest.approx(naive(pairs, query), abs=GRID)


@given(PAIRS, st.sampled_from([0.0, 1.5, 3.0]))
def test_nothing_but_the_labels_is_rounded(pairs: Pairs, query: float) -> None:
    """With labels on the grid the ends are right to the last bits."""
    calibrator = IVAR(LO, HI)
    on_grid = [(score, LO + round((y - LO) / GRID) * GRID) for score, y in pairs]
    calibrator.learn_many([s for s, _ in on_grid], [y for _, y in on_grid])
    assert calibrator.predict_one(query) == pytest.approx(naive(on_grid, query), abs=4e-15)


def test_tied_scores_are_pooled_and_low_is_not_above_high() -> None:
    """A fit that takes tied scores one by one would give a low end above the high one."""
    calibrator = IVAR(0.0, 1.0)
    calibrator.learn_many([0.5] * 4, [0.0, 0.0, 1.0, 1.0])
    assert calibrator.predict_one(0.5) == (0.4, 0.6)
    order = IVAR(0.0, 1.0)
    order.learn_many([0.5] * 4, [1.0, 1.0, 0.0, 0.0])
    assert order.to_bytes() == calibrator.to_bytes()


def test_every_interval_is_in_order_and_inside_the_bounds() -> None:
    """Rounding never turns an interval round or lets it out of awkward bounds."""
    rng = np.random.default_rng(3)
    calibrator = IVAR(0.1, 0.3)
    low, high = calibrator.predict_many([0.0])
    assert (low.item(), high.item()) == (0.1, 0.3)
    calibrator.learn_many(rng.integers(0, 50, 500), rng.uniform(0.1, 0.3, 500))
    low, high = calibrator.predict_many(rng.uniform(-1.0, 51.0, 2_000))
    assert (low <= high).all()
    assert np.min(low) >= 0.1
    assert np.max(high) <= 0.3


def test_an_interval_tells_its_width_and_its_middle() -> None:
    """Width and middle are those of the two ends."""
    assert (MeanInterval(1.0, 4.0).width, MeanInterval(1.0, 4.0).middle) == (3.0, 2.5)


@EVERY_RULE
def test_arrays_are_the_same_as_one_by_one(options: dict[str, Any]) -> None:
    """`learn_many` and `predict_many` do what a loop does, to the last byte."""
    many, one = taught(options), IVAR(LO, HI, **options)
    for score, y, time in zip(*(column.tolist() for column in stream(30)), strict=True):
        one.learn_one(score, y, time=time if aging(options) else None)
    assert many.to_bytes() == one.to_bytes()
    queries = np.linspace(-0.1, 1.1, 13)
    pairs = [one.predict_one(query) for query in queries.tolist()]
    assert np.array_equal(np.array(many.predict_many(queries)).T, np.array(pairs))


# Forgetting and removing


def test_a_window_keeps_the_last_observations() -> None:
    """A window answers as a calibrator that never saw what it forgot."""
    scores, ys, _ = stream(30)
    fresh = IVAR(LO, HI)
    fresh.learn_many(scores[-7:], ys[-7:])
    windowed = taught({"window": 7})
    queries = np.linspace(-0.1, 1.1, 13)
    assert np.array_equal(windowed.predict_many(queries), fresh.predict_many(queries))
    assert len(windowed) == 7


def test_an_age_keeps_the_young_observations_and_counts_late_ones() -> None:
    """What is older than the age is forgotten whole, and a label that is too old is counted."""
    calibrator = IVAR(LO, HI, max_age=1.0)
    calibrator.learn_many([1.0, 2.0, 3.0], [LO, 0.3, HI], times=[0.0, 1.0, 1.5])
    calibrator.learn_one(4.0, 0.3, time=0.1)
    assert (len(calibrator), calibrator.late) == (2, 1)


def test_a_half_life_halves_the_pull_of_an_old_label() -> None:
    """After one half-life a label weighs a half next to the query's whole."""
    calibrator = IVAR(0.0, 1.0, half_life=2.0)
    calibrator.learn_one(0.5, 0.25, time=0.0)
    assert calibrator.predict_one(0.5, time=2.0) == (0.125 / 1.5, 1.125 / 1.5)


@given(PAIRS, st.data())
def test_removal_undoes_learning(pairs: Pairs, data: st.DataObject) -> None:
    """Whatever is learned and removed in any order leaves the bytes as they were."""
    calibrator = IVAR(LO, HI)
    calibrator.learn_one(2.0, 1.0)
    before = calibrator.to_bytes()
    for score, y in pairs:
        calibrator.learn_one(score, y)
    for score, y in data.draw(st.permutations(pairs)):
        calibrator.remove_one(score, y)
    assert calibrator.to_bytes() == before


def test_removing_what_is_not_held_is_refused() -> None:
    """Neither of the two parts goes when one is missing, and the message names the label."""
    calibrator = IVAR(0.0, 1.0)
    calibrator.learn_one(0.5, 0.25)
    before = calibrator.to_bytes()
    with pytest.raises(NotHeldError, match=r"score 0\.5 with label 0\.125"):
        calibrator.remove_one(0.5, 0.125)
    assert calibrator.to_bytes() == before
    with pytest.raises(ForgettingError, match="window=3"):
        IVAR(0.0, 1.0, window=3).remove_one(0.5, 0.25)


# Refusals


@pytest.mark.parametrize(
    "bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), ("a", 1.0), (None, 1), (0, 10**400)]
)
def test_bounds_are_finite_and_in_order(bounds: tuple[Any, Any]) -> None:
    """Anything else is refused."""
    with pytest.raises(ParameterError, match="y_min < y_max"):
        IVAR(*bounds)


def test_a_range_that_doubles_do_not_hold_is_refused() -> None:
    """Bounds whose difference overflows cannot scale anything."""
    with pytest.raises(ParameterError, match="y_min < y_max"):
        IVAR(-1e308, 1e308)


@pytest.mark.parametrize(
    ("row", "error", "says"),
    [
        ((0.5, HI + 1e-9), LabelError, "outside the bounds"),
        ((0.5, LO - 1.0), LabelError, "outside the bounds"),
        ((0.5, np.nan), LabelError, "label nan"),
        ((np.inf, 0.5), ScoreError, "score inf"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_learned(
    row: tuple[float, float], error: type[Exception], says: str
) -> None:
    """Neither one by one nor in a batch does a bad row change anything."""
    calibrator = taught({})
    before = calibrator.to_bytes()
    with pytest.raises(error, match=says):
        calibrator.learn_one(*row)
    with pytest.raises(error, match=f"row 1: .*{says}"):
        calibrator.learn_many([0.1, row[0]], [0.2, row[1]])
    assert calibrator.to_bytes() == before


def test_times_belong_to_what_forgets_by_time() -> None:
    """A missing or a needless time is refused."""
    with pytest.raises(TimeError, match="missing"):
        IVAR(0.0, 1.0, max_age=1.0).learn_one(0.5, 0.5)
    with pytest.raises(TimeError, match="leave it out"):
        IVAR(0.0, 1.0).learn_one(0.5, 0.5, time=1.0)


# Saving


@EVERY_RULE
def test_a_saved_calibrator_goes_on_as_before(options: dict[str, Any]) -> None:
    """Saved, pickled and copied ones have the options, and stay equal through more labels."""
    calibrator = taught(options)
    copies = [pickle.loads(pickle.dumps(calibrator)), copy.deepcopy(calibrator)]  # noqa: S301 - own bytes
    copies.append(IVAR.from_bytes(calibrator.to_bytes()))
    for each in [calibrator, *copies]:
        each.learn_one(0.3, 1.5, time=30.0 if aging(options) else None)
        assert repr(each) == repr(calibrator)
        assert each.to_bytes() == calibrator.to_bytes()


def test_damaged_bytes_are_refused() -> None:
    """Every changed byte and every cut is noticed."""
    blob = taught({"window": 3}).to_bytes()
    for at in range(len(blob)):
        with pytest.raises(StateError):
            IVAR.from_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
        with pytest.raises(StateError):
            IVAR.from_bytes(blob[:at])


def test_bytes_that_no_calibrator_wrote_are_refused() -> None:
    """A good seal over half an observation, odd windows or senseless bounds is no calibrator."""
    half = VennAbers()
    half.learn_one(0.5, 1)
    bounds = np.array([0.0, 1.0]).tobytes()
    forged = [
        [bounds, half.to_bytes()],
        [bounds, VennAbers(window=3).to_bytes()],
        [bounds[::-1], VennAbers().to_bytes()],
        [bounds[:8], VennAbers().to_bytes()],
        [bounds],
    ]
    for pieces in forged:
        with pytest.raises(StateError):
            IVAR.from_bytes(seal(b"abersIM\x01", pack(pieces)))


def test_it_names_its_options() -> None:
    """A repr tells bounds, forgetting and size; the options can be read back."""
    calibrator = taught({"window": 7})
    assert repr(calibrator) == "<IVAR(-3.0, 7.0, window=7) of 7 observations>"
    assert (calibrator.y_min, calibrator.y_max, calibrator.window) == (LO, HI, 7)
    assert (calibrator.max_age, calibrator.half_life) == (None, None)
    assert IVAR(0.0, 1.0)


# Guarantee


@pytest.mark.once
def test_the_interval_contains_a_calibrated_mean() -> None:
    """The fit with the true label is right on average wherever it is high or low."""
    rng = np.random.default_rng(1)
    errors, high_fits = [], []
    for _ in range(4_000):
        scores = rng.integers(0, 5, 12) / 4.0
        ys = (rng.random(12) < 0.2 + 0.6 * scores) * rng.random(12)
        exact = [
            (s, Fraction(y)) for s, y in zip(scores[:-1].tolist(), ys[:-1].tolist(), strict=True)
        ]
        fit = float(fitted(exact, float(scores[-1]), Fraction(float(ys[-1]))))
        calibrator = IVAR(0.0, 1.0)
        calibrator.learn_many(scores[:-1], ys[:-1])
        low, high = calibrator.predict_one(scores[-1])
        assert low - 1e-9 <= fit <= high + 1e-9
        errors.append(ys[-1] - fit)
        high_fits.append(fit > 0.3)
    for chosen in (np.array(high_fits), ~np.array(high_fits)):
        gaps = np.array(errors)[chosen]
        assert abs(gaps.mean()) < 4.0 * gaps.std() / np.sqrt(len(gaps))
