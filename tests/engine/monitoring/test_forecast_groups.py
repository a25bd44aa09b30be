"""Groups of forecasts, against their definition in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from abers import LabelError, ParameterError, ScoreError
from abers.monitoring import ForecastGroup, ForecastGroups
from abers.monitoring.forecast_groups import GRID

Pairs = list[tuple[float, int]]
FORECASTS = st.integers(0, 256).map(lambda k: k / 256)
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), max_size=40)
TOLERANCES = st.sampled_from([1.0, 1.25, 1.3, 20.0])


def added(pairs: Pairs, tolerance: float = 1.25) -> ForecastGroups:
    """Add pairs of a forecast and a label."""
    groups = ForecastGroups(tolerance)
    groups.update([p for p, _ in pairs], [y for _, y in pairs])
    return groups


def ends(p: Fraction, tolerance: Fraction) -> tuple[Fraction, Fraction]:
    """Return the probabilities whose odds are those of p divided and multiplied by a tolerance."""
    return p / (p + (1 - p) * tolerance), p * tolerance / (p * tolerance + 1 - p)


def is_upper(earlier: Pairs, p: float) -> bool:
    """Return whether a forecast is in the upper half, by the definition of the cut."""
    weights = [one * (1.0 - one) for one, _ in earlier]
    if not math.fsum(weights):
        return True
    logits = [clipped_logit(one) for one, _ in earlier]
    mean = math.fsum(w * x for w, x in zip(weights, logits, strict=True)) / math.fsum(weights)
    distance = clipped_logit(p) - mean
    assume(abs(distance) > 1e-9 or len({*earlier, (p, 0), (p, 1)}) == 2)  # rounding decides
    return distance >= -1e-9


def clipped_logit(p: float) -> float:
    """Return log odds between -15 and 15."""
    if p in {0.0, 1.0}:
        return 15.0 if p else -15.0
    return max(-15.0, min(15.0, math.log(p) - math.log1p(-p)))


def sums(pairs: Pairs, tolerance: float) -> list[float]:
    """Return the sums of a group, rounded once."""
    columns: list[list[Fraction]] = [[] for _ in range(6)]
    for p, y in pairs:
        exact = Fraction(p)
        row = (Fraction(1), Fraction(y), exact, (y - exact) ** 2, *ends(exact, Fraction(tolerance)))
        for column, term in zip(columns, row, strict=True):
            column.append(term)
    return [float(sum(column)) for column in columns]


def grouped(pairs: Pairs) -> list[Pairs]:
    """Return the pairs of each group, by definition; those near the cut as the mean has them."""
    lower = [pairs[i] for i in range(len(pairs)) if not is_upper(pairs[:i], pairs[i][0])]
    upper = [pairs[i] for i in range(len(pairs)) if is_upper(pairs[:i], pairs[i][0])]
    edges = [k / 10 for k in range(10)] + [2.0]
    bins = [[one for one in pairs if edges[k] <= one[0] < edges[k + 1]] for k in range(10)]
    return [pairs, lower, upper, *bins]


def near(one: ForecastGroup, pairs: Pairs, tolerance: float) -> bool:
    """Return whether a group has the sums of some pairs, but for rounding."""
    return list(one) == pytest.approx(sums(pairs, tolerance), rel=1e-12, abs=1e-12)


@given(pairs=PAIRS, tolerance=TOLERANCES)
def test_sums_by_definition(pairs: Pairs, tolerance: float) -> None:
    """Every group has the counts and sums of its forecasts, chosen by those before."""
    groups = added(pairs, tolerance)
    for one, members in zip(groups.groups(), grouped(pairs), strict=True):
        assert near(one, members, tolerance)
    assert groups.labels == len(pairs)


@given(pairs=PAIRS, tolerance=st.sampled_from(GRID))
def test_sums_of_the_grid(pairs: Pairs, tolerance: float) -> None:
    """The main groups have the sums for each tolerance of the grid."""
    found = added(pairs).main_groups(tolerance)
    for one, members in zip(found, grouped(pairs)[:3], strict=True):
        assert near(one, members, tolerance)


def test_the_cut_is_of_earlier_rows() -> None:
    """A forecast is compared with the weighted mean of those before, and not with its own."""
    lower, upper = added([(0.5, 0), (0.9, 1), (0.6, 0), (0.7, 1)]).groups()[1:3]
    mean = 0.09 * math.log(9.0) / 0.34
    assert 1.0 / (1.0 + math.exp(-mean)) > 0.6
    assert (lower.labels, lower.observed) == (1.0, 0.0)
    assert (upper.labels, upper.observed) == (3.0, 2.0)


@given(p=st.floats(0, 1), n=st.integers(1, 300))
def test_equal_forecasts_are_all_in_one_half(p: float, n: int) -> None:
    """Equal forecasts are all in the upper half, whatever rounding does."""
    assert added([(p, 0)] * n).groups()[2].labels == n


@given(pairs=PAIRS, more=PAIRS)
def test_restored(pairs: Pairs, more: Pairs) -> None:
    """Restored groups go on as the saved ones would have."""
    tolerance, saved = added(pairs).state()
    restored = ForecastGroups.restore((tolerance, bytes(saved)))
    for one, y in more:
        restored.update([one], [y])
    assert restored.sums().tobytes() == added(pairs + more).sums().tobytes()


@given(parts=st.lists(PAIRS, min_size=1, max_size=3))
def test_total(parts: list[Pairs]) -> None:
    """The total has the sums of all parts, and the mean of their cuts."""
    many = [added(part) for part in parts]
    total = ForecastGroups.total(many)
    expected = np.sum([one.sums() for one in many], axis=0)
    found = total.sums()
    assert found[[0, *range(2, len(found))]] == pytest.approx(expected[[0, *range(2, len(found))]])
    if found[0]:
        cuts, weights = zip(*((one.sums()[1], one.sums()[0]) for one in many), strict=True)
        assert found[1] == pytest.approx(np.average(cuts, weights=weights), abs=1e-9)


def test_total_of_other_tolerances() -> None:
    """Groups of different tolerances cannot be added."""
    with pytest.raises(ValueError, match="tolerances"):
        ForecastGroups.total([ForecastGroups(1.25), ForecastGroups(1.5)])


@pytest.mark.parametrize("tolerance", [0.9, math.nan, math.inf])
def test_bad_tolerance(tolerance: float) -> None:
    """A tolerance below 1 or without bound is refused."""
    with pytest.raises(ParameterError, match="tolerance"):
        ForecastGroups(tolerance)


@pytest.mark.parametrize(
    ("forecasts", "labels", "error"), [([0.5, 1.5], [0, 1], ScoreError), ([0.5], [2], LabelError)]
)
def test_bad_rows(forecasts: list[float], labels: list[int], error: type[Exception]) -> None:
    """A bad row is refused, and nothing is added."""
    groups = ForecastGroups(1.25)
    with pytest.raises(error):
        groups.update(forecasts, labels)
    assert groups.labels == 0


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, math.nan), (0, 1e9), (1, 16.0), (2, -1.0), (2, 0.5), (3, 99.0), (4, math.inf), (-6, 7.0)],
)
def test_what_is_no_state(index: int, value: float) -> None:
    """Sums that no forecasts have are refused."""
    saved = added([(0.25, 1), (0.5, 0), (0.75, 1)]).sums()
    saved[index] = value
    with pytest.raises(ValueError, match=r"sums|labels|cut"):
        ForecastGroups.restore((1.25, saved.tobytes()))
