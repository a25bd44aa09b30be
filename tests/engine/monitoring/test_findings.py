"""What groups show, against the rules written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from abers.monitoring import ForecastGroup, ForecastGroups
from abers.monitoring.findings import (
    FIRST_BIN,
    LOWER,
    NOT_FOUND,
    OVER_CONFIDENT,
    TOO_HIGH,
    TOO_LOW,
    TRUSTWORTHY,
    UNDER_CONFIDENT,
    UPPER,
    GroupFinding,
    established,
    find,
    find_in,
    margin,
)
from abers.monitoring.level_sums import LevelSums

ALPHA = 0.025
NOTHING = ForecastGroup(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
# Groups of 10,000 forecasts of 0.5 with a tolerance of 1.25: ends 0.444 and 0.556.
N, SQUARES = 10_000.0, 2_500.0
LEAST, MOST = N / 2.25, N * 1.25 / 2.25
ONES = {"high": 3_500.0, "low": 6_500.0, "in": 5_000.0, "open": 4_444.0}


def group(side: str) -> ForecastGroup:
    """Return a group that is outside, inside, or on the edge."""
    return NOTHING if side == "-" else ForecastGroup(N, ONES[side], N / 2, SQUARES, LEAST, MOST)


def found(whole: str, lower: str, upper: str, *bins: str) -> tuple[str, int]:
    """Return status and group of main groups and the first bins."""
    sides = [whole, lower, upper, *bins] + ["-"] * (10 - len(bins))
    return find([group(one) for one in sides], ALPHA)[:2]


@pytest.mark.parametrize(
    ("sides", "status", "shown"),
    [
        (("open", "in", "high"), OVER_CONFIDENT, UPPER),
        (("open", "low", "high"), OVER_CONFIDENT, UPPER),
        (("open", "low", "in"), OVER_CONFIDENT, LOWER),
        (("high", "in", "high"), OVER_CONFIDENT, UPPER),  # before "too high" of all
        (("open", "in", "low"), UNDER_CONFIDENT, UPPER),
        (("open", "high", "low"), UNDER_CONFIDENT, UPPER),
        (("open", "high", "in"), UNDER_CONFIDENT, LOWER),
        (("high", "open", "open"), TOO_HIGH, 0),
        (("high", "-", "high"), TOO_HIGH, 0),
        (("open", "low", "low"), TOO_LOW, 0),
        (("low", "open", "low"), TOO_LOW, 0),
        (("open", "high", "open"), TOO_HIGH, LOWER),
        (("open", "open", "low"), TOO_LOW, UPPER),
        (("in", "in", "in", "open", "low"), TOO_LOW, FIRST_BIN + 1),
        (("in", "in", "in", "in", "open"), TRUSTWORTHY, 0),
        (("in", "-", "in"), TRUSTWORTHY, 0),
        (("in", "in", "open"), NOT_FOUND, 0),
        (("open", "in", "in"), NOT_FOUND, 0),
        (("-", "-", "-"), NOT_FOUND, 0),
    ],
)
def test_rules(sides: tuple[str, ...], status: str, shown: int) -> None:
    """The first rule that holds decides, and names the group that shows it."""
    assert found(*sides) == (status, shown)


def boundary(alpha: float) -> float:
    """Return the boundary of a group by scipy: the root of the mixture."""
    log = -2.0 * math.log(0.025 / 8)
    r = 500.0 / (log + math.log1p(log))
    a, low, high = SQUARES + r, 0.0, N
    for _ in range(100):
        s = 0.5 * (low + high)
        x = s + a
        value = r * math.log(r) - special.gammaln(r) - math.log(special.gammainc(r, r))
        value += special.gammaln(a) + math.log(special.gammainc(a, x)) - a * math.log(x) + x - r
        low, high = (s, high) if value < -math.log(alpha) else (low, s)
    return high


@pytest.mark.parametrize(("index", "share"), [(0, 1 / 8), (UPPER, 1 / 8), (FIRST_BIN, 1 / 80)])
def test_levels(index: int, share: float) -> None:
    """A side of a main group has an eighth of alpha, one of a bin an eightieth."""
    bound = boundary(ALPHA * share)
    assert margin(group("in"), index, ALPHA) == pytest.approx(bound, rel=1e-6)
    for more, status in ((1.001, TOO_HIGH), (0.999, NOT_FOUND)):
        groups = [NOTHING] * 13
        groups[index] = group("open")._replace(observed=LEAST - more * bound)
        assert find(groups, ALPHA).status == status


def test_inside_needs_both_sides() -> None:
    """A group is inside from the boundary within both ends on."""
    bound = boundary(ALPHA / 8)
    for more, status in ((1.001, TRUSTWORTHY), (0.999, NOT_FOUND)):
        for observed in (LEAST + more * bound, MOST - more * bound):
            one = group("in")._replace(observed=observed)
            assert find([one, one, one, *[NOTHING] * 10], ALPHA).status == status


def test_established_tolerance() -> None:
    """The smallest tolerance of the grid is found within which all main groups are."""
    groups = ForecastGroups(3.0)
    groups.update([0.5] * 10_000, [1, 0] * 5_000)
    bound = boundary(ALPHA / 8)
    holds = [t for t in (1.05, 1.1, 1.15, 1.2, 1.25) if 1e4 * t / (1 + t) - 5_000 >= bound]
    assert established(groups, ALPHA) == holds[0]
    assert established(ForecastGroups(3.0), ALPHA) is None


@pytest.mark.parametrize(
    ("finding", "rank", "agrees"),
    [
        (GroupFinding(TOO_HIGH, UPPER, inside=False), 2, {TOO_HIGH, OVER_CONFIDENT}),
        (GroupFinding(TOO_HIGH, LOWER, inside=False), 2, {TOO_HIGH, UNDER_CONFIDENT}),
        (GroupFinding(TOO_LOW, LOWER, inside=False), 2, {TOO_LOW, OVER_CONFIDENT}),
        (GroupFinding(TOO_LOW, 0, inside=False), 3, {TOO_LOW}),
        (GroupFinding(OVER_CONFIDENT, UPPER, inside=False), 3, {OVER_CONFIDENT}),
        (GroupFinding(TOO_LOW, 5, inside=False), 1, {TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT}),
        (GroupFinding(TRUSTWORTHY, 0, inside=True), 0, {TRUSTWORTHY}),
    ],
)
def test_what_a_finding_agrees_with(finding: GroupFinding, rank: int, agrees: set[str]) -> None:
    """A finding agrees with its status, and as a part with over- or under-confidence."""
    assert finding.rank == rank
    statuses = {TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, TRUSTWORTHY}
    assert {one for one in statuses if finding.agrees(one)} == agrees


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), max_size=40),
    times=st.integers(1, 60),
    alpha=st.floats(1e-6, 0.9),
    tolerance=st.sampled_from([1.0, 1.25, 4.0]),
)
def test_what_is_undecided(
    rows: list[tuple[float, int]], times: int, alpha: float, tolerance: float
) -> None:
    """Sums show the same as their groups, whether or not something is decided."""
    p, y = (np.array(one, float) for one in zip(*rows * times, strict=True)) if rows else [[], []]
    groups = ForecastGroups(tolerance)
    groups.update(p, y)
    assert find_in(groups, alpha) == find(groups.groups(), alpha)
    level = LevelSums(0.3, tolerance)
    level.add(np.array(y), np.array(y))
    assert find_in(level, alpha) == find(level.groups(), alpha)


def test_something_is_decided() -> None:
    """Few labels decide nothing, and thousands do."""
    groups = ForecastGroups(1.25)
    p, y = np.tile([0.25, 0.5], 4), np.array([0, 1, 0, 0, 0, 1, 1, 0])
    for times, status in ((10, NOT_FOUND), (2_500, TRUSTWORTHY)):
        groups.update(np.tile(p, times), np.tile(y, times))
        assert find_in(groups, ALPHA).status == status
