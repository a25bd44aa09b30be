"""What groups show, against the rules written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from tests.oracles import confidence_sequence, findings

from abers.backends import core
from abers.monitoring import ForecastGroup, VerdictSequence
from abers.monitoring.forecast_groups import (
    FIRST_BIN,
    LOWER,
    NOT_FOUND,
    OVER_CONFIDENT,
    STATUSES,
    TOO_HIGH,
    TOO_LOW,
    TRUSTWORTHY,
    UNDER_CONFIDENT,
    UPPER,
    tolerances,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHA = 0.025
NOTHING = ForecastGroup(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
# Groups of 10,000 forecasts of 0.5 with a tolerance of 1.25: ends 0.444 and 0.556.
N, SQUARES = 10_000.0, 2_500.0
LEAST, MOST = N / 2.25, N * 1.25 / 2.25
ONES = {"high": 3_500.0, "low": 6_500.0, "in": 5_000.0, "open": 4_444.0}


def group(side: str) -> ForecastGroup:
    """Return a group that is outside, inside, or on the edge."""
    return NOTHING if side == "-" else ForecastGroup(N, ONES[side], N / 2, SQUARES, LEAST, MOST)


def find(groups: Sequence[ForecastGroup]) -> tuple[str, int, bool]:
    """Return what groups show: the status, the group that shows it, and whether all is inside."""
    status, shown, inside = core.find_groups(np.array(groups), ALPHA)
    return STATUSES[status], shown, inside


def found(whole: str, lower: str, upper: str, *bins: str) -> tuple[str, int]:
    """Return status and group of main groups and the first bins."""
    sides = [whole, lower, upper, *bins] + ["-"] * (10 - len(bins))
    return find([group(one) for one in sides])[:2]


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
    assert core.margin(SQUARES, index, ALPHA) == pytest.approx(bound, rel=1e-6)
    for more, status in ((1.001, TOO_HIGH), (0.999, NOT_FOUND)):
        groups = [NOTHING] * 13
        groups[index] = group("open")._replace(observed=LEAST - more * bound)
        assert find(groups)[0] == status


def test_inside_needs_both_sides() -> None:
    """A group is inside from the boundary within both ends on."""
    bound = boundary(ALPHA / 8)
    for more, status in ((1.001, TRUSTWORTHY), (0.999, NOT_FOUND)):
        for observed in (LEAST + more * bound, MOST - more * bound):
            one = group("in")._replace(observed=observed)
            assert find([one, one, one, *[NOTHING] * 10])[0] == status


def test_established_tolerance() -> None:
    """The smallest tolerance of the grid is found within which all main groups are."""
    sequence = VerdictSequence("raw", 3.0, 2 * ALPHA)
    assert sequence.verdict().established is None
    sequence.update(np.full(10_000, 0.5), np.tile([1.0, 0.0], 5_000), np.arange(10_000))
    bound = boundary(ALPHA / 8)
    holds = [t for t in (1.05, 1.1, 1.15, 1.2, 1.25) if 1e4 * t / (1 + t) - 5_000 >= bound]
    assert sequence.verdict().established == holds[0]


SUMS = st.tuples(
    st.sampled_from([0.0, 40.0, 4_000.0]), *[st.floats(0, 1) for _ in range(2)], st.floats(0, 0.25)
)


@settings(max_examples=200)
@given(sums=st.lists(SUMS, min_size=13, max_size=13), alpha=st.floats(1e-9, 0.9))
def test_findings_equal_the_oracle(sums: list[tuple[float, ...]], alpha: float) -> None:
    """What groups show, and their margins, are those of plain Python, to the last bit."""
    groups = [
        findings.Group(n, float(round(n * y)), n * p, n * v, 0.8 * n * p, 1.1 * n * p)
        for n, y, p, v in sums
    ]
    assert core.find_groups(np.array(groups), alpha) == tuple(findings.find(groups, alpha))
    for index, one in enumerate(groups[2:5]):
        found_margin = core.margin(one.squares, index + 2, alpha)
        assert found_margin == findings.margin(one.squares, index + 2, alpha)


@pytest.mark.parametrize(
    ("status", "group", "rank", "agrees"),
    [
        (TOO_HIGH, UPPER, 2, {TOO_HIGH, OVER_CONFIDENT}),
        (TOO_HIGH, LOWER, 2, {TOO_HIGH, UNDER_CONFIDENT}),
        (TOO_LOW, LOWER, 2, {TOO_LOW, OVER_CONFIDENT}),
        (TOO_LOW, 0, 3, {TOO_LOW}),
        (OVER_CONFIDENT, UPPER, 3, {OVER_CONFIDENT}),
        (TOO_LOW, 5, 1, {TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT}),
        (TRUSTWORTHY, 0, 0, {TRUSTWORTHY}),
    ],
)
def test_what_a_finding_agrees_with(status: str, group: int, rank: int, agrees: set[str]) -> None:
    """A finding agrees with its status, and as a part with over- or under-confidence."""
    finding = findings.Finding(STATUSES.index(status), group, inside=False)
    assert finding.rank == rank
    statuses = {TOO_HIGH, TOO_LOW, OVER_CONFIDENT, UNDER_CONFIDENT, TRUSTWORTHY}
    assert {one for one in statuses if finding.agrees(STATUSES.index(one))} == agrees


def test_something_is_decided() -> None:
    """Few labels decide nothing, and thousands do."""
    sequence = VerdictSequence("raw", 1.25)
    p, y = np.tile([0.25, 0.5], 4), np.array([0, 1, 0, 0, 0, 1, 1, 0], float)
    for times, status in ((10, NOT_FOUND), (2_500, TRUSTWORTHY)):
        sequence.update(np.tile(p, times), np.tile(y, times), np.arange(8 * times))
        assert sequence.verdict().status == status


class Library(confidence_sequence.ConfidenceSequence):
    """The confidence sequence with the functions of scipy and of the C library."""

    def __init__(self, tightest: float, alpha: float) -> None:
        """Choose the mixture before the data."""
        log = -2.0 * math.log(alpha)
        self._rho = rho = tightest / (log + math.log1p(log))
        self._constant = rho * math.log(rho) - special.gammaln(rho) - rho
        self._constant -= math.log(special.gammainc(rho, rho))

    def reaches_at(self, deviation: float, squares: float, threshold: float) -> bool:
        """Return whether a deviation reaches the boundary at the level exp(-threshold)."""
        if deviation <= 0.0 or deviation * deviation < 2.0 * squares * threshold:
            return False
        a = squares + self._rho
        x = deviation + a
        mixture = self._constant + special.gammaln(a) - a * math.log(x) + x
        return bool(mixture + math.log(special.gammainc(a, x)) >= threshold)


SHAPES = [(2.0, 5.0), (0.5, 0.5), (2.0, 40.0)]


@pytest.mark.simulation
def test_findings_are_those_with_the_functions_of_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In 3,000 streams nothing is found otherwise than with the functions of libraries."""
    monkeypatch.setattr(findings, "_SEQUENCE", Library(500.0, 0.05 / 16))
    monkeypatch.setattr(findings, "logarithm", math.log)
    seen = set()
    for seed in range(3_000):
        rng = np.random.default_rng(seed)
        a, b = SHAPES[seed % len(SHAPES)]
        p = rng.beta(a, b, 1_200)
        factors = rng.choice([0.4, 0.7, 1.0, 1.0, 1.4, 2.5], 2)
        odds = p / (1.0 - p) * factors[(p > np.median(p)).astype(int)]
        labels = (rng.random(len(p)) < odds / (1.0 + odds)).astype(float)
        groups = core.GroupSums(tolerances(float(rng.choice([1.1, 1.25, 2.0]))))
        for start in range(0, len(p), 200):
            groups.add(p[start : start + 200], labels[start : start + 200])
            rows = [findings.Group(*row) for row in groups.groups()]
            status, shown, inside = core.find_groups(np.array(rows), ALPHA)
            assert findings.find(rows, ALPHA) == (status, shown, inside)
            seen.add(STATUSES[status])
    assert seen == {*STATUSES}
