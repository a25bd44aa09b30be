"""Bets from sums on a grid: by definition, against plain Python to the bit, and saved."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.grid_bets import GridBets

from abers.backends import core

FORECASTS = st.one_of(
    st.floats(0, 1),
    st.sampled_from((0.0, -0.0, 1.0, 0.5, 5e-324, 2.0**-53, 1 - 2.0**-53, 1e-9, 0.005)),
)
ROWS = st.lists(st.tuples(FORECASTS, st.booleans()), max_size=60)
FORECASTERS = 5


def cells(p: float) -> list[tuple[int, int]]:
    """Return the cells of a forecast by definition: their number, and which one it is."""
    x = math.log(p) - math.log(1.0 - p)
    return [
        (count, min(max(math.floor((x + 8.0) * count / 16.0), 0), count - 1))
        for count in (1, 16, 32)
    ]


def counted(rows: list[tuple[float, bool]], p: float) -> list[Fraction]:
    """Return the forecast, and what the cells say of it, in exact fractions."""
    found, ones, zeros, at = [Fraction(p)], Fraction(1), Fraction(1), Fraction(p)
    for width in range(3):
        here = [row for row in rows if cells(row[0])[width] == cells(p)[width]]
        s, y = sum(Fraction(q) for q, _ in here), sum(label for _, label in here)
        ones = (y + 10 * ones) / (s + 10)
        zeros = (len(here) - y + 10 * zeros) / (len(here) - s + 10)
        found.append(at * ones / (at * ones + (1 - at) * zeros))
    return found


@given(
    rows=st.lists(st.tuples(st.sampled_from((0.1, 0.14, 0.3, 0.6, 0.999)), st.booleans())),
    p=st.sampled_from((0.1, 0.13, 0.6, 0.9995)),
)
def test_cells_by_definition(rows: list[tuple[float, bool]], p: float) -> None:
    """A bet lies among its forecasters; those that count labels are as exact fractions say."""
    bets = GridBets()
    for q, label in rows:
        bets.learn(q, int(label))
    memory = bets._memories[0]  # noqa: SLF001 - what the mean is made of
    *known, line = memory.forecasts(p, math.log(p / (1.0 - p)), bets._centre)  # noqa: SLF001
    expected = counted(rows, p)
    assert known == [pytest.approx(float(one), rel=1e-12) for one in expected]
    assert min(*known, line) <= bets.bet(p)[0] * (1 + 1e-12)
    assert bets.bet(p)[0] <= max(*known, line) * (1 + 1e-12)


@pytest.mark.parametrize("label", [0, 1])
def test_first_label_by_definition(label: int) -> None:
    """The first label counts at once, moves weights by likelihood, and the line by a Newton step.

    The line turns about the log odds of this forecast, so its level alone has an effect there.
    """
    p, share, bets = 0.3, 1e-5, core.GridBets()
    assert bets.bet(p) == (pytest.approx(p), pytest.approx(p))
    bets.learn(p, bool(label))
    x = math.log(p / (1 - p))
    curvature, slope = p * (1 - p), p * (1 - p) * x * x
    cross = p * (1 - p) * x
    error = label - p
    step = error / ((curvature + 10) * (slope + 10) - cross * cross)
    level, tilt = (slope + 10 - cross * x) * step, ((curvature + 10) * x - cross) * step
    line = 1 / (1 + math.exp(-(x + level + tilt * x)))  # moved about 0, then turned about x
    forecasters = [float(one) for one in counted([(p, bool(label))], p)] + [line]
    weights = [(1 - share) / FORECASTERS + share / FORECASTERS] * FORECASTERS
    expected = sum(w * q for w, q in zip(weights, forecasters, strict=True)) / sum(weights)
    assert bets.bet(p)[0] == pytest.approx(expected, rel=1e-12)


@given(rows=ROWS, more=ROWS)
def test_equal_to_the_oracle(
    rows: list[tuple[float, bool]], more: list[tuple[float, bool]]
) -> None:
    """Bets and state equal plain Python to the bit, also from a saved state."""
    ours, theirs = core.GridBets(), GridBets()
    for part in (rows, more):
        for p, label in part:
            assert ours.bet(p) == theirs.bet(p)
            ours.learn(p, label)
            theirs.learn(p, int(label))
        assert ours.save() == theirs.save()
        ours = core.GridBets.load(ours.save())
    assert ours.save() == theirs.save()


@pytest.mark.large(250_000, reference=1_000)
def test_a_long_stream(size: int) -> None:
    """Recent labels are counted in a new unit before it is too large; the oracle does the same."""
    rng = np.random.default_rng(1)
    ours, theirs = core.GridBets(), GridBets()
    forecasts = rng.random(size)
    labels = rng.random(size) < forecasts
    for p, label in zip(forecasts.tolist(), labels.tolist(), strict=True):
        ours.learn(p, label)
        theirs.learn(p, int(label))
    assert ours.save() == theirs.save()
    assert len(ours.save()) <= 2_544
    (unit,) = struct.unpack_from("<d", ours.save())
    assert 1.0 <= unit <= 1e100
    assert math.log(unit) < size * math.log(500 / 499) - 200.0 * (size > 150_000)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_impossible_labels(p: float) -> None:
    """Bets on what is certain stay between 0 and 1, however often it does not come."""
    bets = core.GridBets()
    for _ in range(3_000):
        assert all(0.0 < bet < 1.0 for bet in bets.bet(p))
        bets.learn(p, p == 0.0)
    assert all(abs(bet - p) > 0.5 for bet in bets.bet(p))


def known(labels: int = 30) -> bytes:
    """Return the state behind some labels."""
    bets = core.GridBets()
    for number in range(labels):
        bets.learn(0.1 + 0.02 * number, number % 3 == 0)
    saved: bytes = bets.save()
    return saved


HEAD = 3 * 8  # unit, centre and its weight
CELLS = HEAD + 20 * 8 + 4


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, 0.5),
        (0, math.nan),
        (8, 1e3),
        (16, -1.0),
        (HEAD, 0.0),
        (HEAD, 1.5),
        (HEAD + 40, math.inf),
        (HEAD + 56, -1.0),
        (HEAD + 64, 1e9),
        (CELLS, 31.0),
        (CELLS, 30.5),
        (CELLS + 16, 31.0),
        (CELLS + 16, math.nan),
        (CELLS + 32, 11.0),
        (CELLS + 40, -1.0),
    ],
)
def test_states_that_cannot_be(at: int, value: float) -> None:
    """A state that no labels bring about is refused."""
    damaged = bytearray(known())
    struct.pack_into("<d", damaged, at, value)
    with pytest.raises(ValueError, match="bets"):
        core.GridBets.load(bytes(damaged))


@pytest.mark.parametrize("change", [lambda one: one[:-1], lambda one: one + b"\0", lambda _: b"x"])
def test_states_of_another_length(change: Any) -> None:  # noqa: ANN401
    """A state that is cut short or goes on is refused; an empty one has no labels."""
    with pytest.raises(ValueError, match=r"bets|cut short"):
        core.GridBets.load(change(known()))
    assert core.GridBets.load(b"").save() == b""


def test_no_cells() -> None:
    """A state with labels in no cell is refused."""
    damaged = known()[: CELLS - 4] + struct.pack("<I", 0)
    with pytest.raises(ValueError, match="bets"):
        core.GridBets.load(damaged)
