"""E-processes against predictive distributions and their intervals: they grow if miscalibrated.

A bet on an observation is made from the labels of those before it, and settled in the order of the
observations, whenever labels come.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers import validation
from abers.backends import core
from abers.monitoring.answers import Sums, labels_of_a_mark, main_level
from abers.monitoring.e_processes import EProcess, OpenedIncident
from abers.monitoring.regression import spread
from abers.monitoring.tested_view import ALARM_TEST, SettledForecasts, TestedView, VerdictSequence
from abers.monitoring.tests import EDetector, Martingale, checked_options, hypothesis_of
from abers.monitoring.verdict import Words
from abers.serialization import MAX_COUNT, column, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.monitoring.e_processes import EProcessSteps
    from abers.monitoring.tests import SequentialTest

__all__ = ["DistributionEProcess"]

_ALPHA = 0.05  # of the verdicts on all levels
_BINS = 10  # of the PIT values
_FORGET = 1.0 - 1.0 / 500.0  # share of a count that is left at the next label, for the detector
_PRIOR = 0.5  # labels in each bin before the first


_PIT_WORDS = (
    Words(
        "served distributions",
        *("PIT values up to 1/2", "too low", "too high", "points too few", "points too many"),
        part="middle",
        parts="properties",
    ),
    Words(
        "served distributions",
        *("PIT values from 1/4 to 3/4", "too narrow", "too wide"),
        *("points too few", "points too many"),
        part="width",
        parts="properties",
    ),
)


@cache
def _tests(  # noqa: PLR0913, PLR0917 - each is an option
    levels: tuple[float, ...],
    pit: bool,  # noqa: FBT001
    tolerance: float,
    alpha: float,
    average_run_length: float,
    average_run_time: int | None,
    cooldown: float,
) -> tuple[SequentialTest, ...]:
    """Return the tests as they begin, which all e-processes of these options share."""
    right, about = hypothesis_of(1.0), hypothesis_of(tolerance)
    names = [f"coverage-{level:.9g}" for level in levels]
    tests: list[SequentialTest] = [
        *(Martingale(name, alpha=alpha, hypothesis=right) for name in names),
        *(Martingale(f"{name}-tolerance", alpha=alpha, hypothesis=about) for name in names),
    ]
    if pit:
        tests.append(Martingale("pit", alpha=alpha, hypothesis=right))
    if tests:
        for name, hypothesis in (("change", right), (ALARM_TEST, about if levels else right)):
            change = EDetector(
                name,
                average_run_length=average_run_length,
                average_run_time=average_run_time,
                cooldown=cooldown,
                hypothesis=hypothesis,
            )
            tests.append(change)
    return (*tests,)


class _Frequencies:
    """Betting strategy: labels fall into bins as often as they did before."""

    def __init__(self, null: Sequence[float], forget: float, *, capped: bool = False) -> None:
        self._null, self._forget, self._capped = np.array(null), forget, capped
        self._prior = _PRIOR * len(null) * self._null
        self.counts = np.zeros(len(null))

    def factors(self, shares: Floats) -> Floats:
        """Return the factor of each label, given by its shares in the bins, and count it."""
        found = np.empty(len(shares))
        known = (self._null, self._prior, self.counts, self._forget)
        core.bet_on_bins(shares, *known, found, capped=self._capped)
        return found


class DistributionEProcess(EProcess):
    """Test whether intervals cover what they should, and PIT values are uniform.

    Parameters
    ----------
    levels
        Share of the labels that each interval should cover, between 0 and 1.
    quantiles
        Levels of quantiles that have verdicts, between 0 and 1.
    pit
        Whether PIT values are tested too, and have verdicts.
    tolerance, alpha, average_run_length, average_run_time, cooldown, grace_period
        As of `CalibrationEProcess`.
    intervals
        Whether there are answers about the intervals. Then a label first brings, of each level,
        whether it is below the interval, and the width of this; how far it is above the model's
        number; and how far it is from the median, NaN without a median.

    Raises
    ------
    ParameterError
        If a level is not between 0 and 1, or an option is out of range.

    Notes
    -----
    **Coverage.** The hypothesis of the test "coverage-0.9" is that P(the interval covers the
    label), given the labels of all observations before it, is at least 0.9. The bet is the share q
    of the intervals before that covered, after one at the level itself, but no bet is above the
    level: the factor is q/0.9 for an interval that covers and (1 - q)/0.1 for one that does not.
    Its mean is at most 1, so that intervals may be too wide, as they are while little is known. The
    test "coverage-0.9-tolerance" is the same for the level with the odds of 0.9 divided by the
    tolerance: 0.878 with 1.25.

    **PIT.** The hypothesis of the test "pit" is that the label, given all labels before it, has the
    distribution predicted. Then its PIT value, drawn evenly between the CDF just below the label
    and at it, is uniform. The bet is on ten equal bins by how many values fell into each before,
    starting with half a value each; the factor is the mean over that draw, so nothing is random.
    It has no tolerance.

    **Change.** The detector "change" multiplies the factors of the PIT values, or without PIT
    values the mean of those of the intervals, where older labels count less: with each label,
    counts lose a five hundredth. The detector "change-tolerance" multiplies the mean of those of
    the intervals with their tolerance; where there are no intervals it is "change".

    **Verdicts.** The intervals share half of alpha. The other half is shared by the quantiles, each
    with the share of labels below it, and if there are PIT values by two shares of these: of values
    up to 1/2, which says whether distributions are too high or too low, and of those in the middle
    half, which says whether they are too narrow or too wide. Outcomes of an observation are whether
    each interval covers the label; of each quantile 0 if the label is above, 1/2 if it is equal,
    and 1 if below; and the two ends of the PIT value.

    **Guarantee.** That of each test, see `Martingale` and `EDetector`. As of
    `CalibrationEProcess`, an observation that expires is left out, which is valid only if the lack
    of a label does not depend on its value.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting; Arnold,
    Henzi & Ziegel (2023), Sequentially valid tests for forecast calibration; Krichevsky & Trofimov
    (1981), The performance of universal encoding.

    Examples
    --------
    >>> from abers.monitoring import EProcessSteps
    >>> process = DistributionEProcess([0.9])
    >>> numbers = np.arange(30)
    >>> steps = [np.full(30, kind, np.uint8) for kind in (0, 1)]
    >>> for kinds in steps:  # predict 30 observations; none is covered
    ...     opened = process.run(EProcessSteps(kinds, numbers, numbers, np.zeros((30, 1))))
    >>> for one in opened:
    ...     print(one.test, one.incident.first)
    coverage-0.9 3
    coverage-0.9-tolerance 3
    change 7
    change-tolerance 8
    >>> shift = opened[-1].shift  # behind the first observation, at which nothing was bet yet
    >>> shift.labels, round(shift.expected, 1), shift.observed
    (8, 7.2, 0.0)
    """

    subjects: ClassVar[Mapping[str, str]] = {"calibrated": "served intervals are"}
    came = "inside"
    faults: ClassVar[Mapping[int, str]] = dict.fromkeys((-1, 0, 1), "too narrow")
    _of_core: ClassVar[frozenset[str]] = frozenset({"_buffer", "_intervals"})

    def __init__(  # noqa: PLR0913 - each is a choice
        self,
        levels: Sequence[float],
        *,
        quantiles: Sequence[float] = (),
        pit: bool = False,
        tolerance: float = 1.25,
        alpha: float = 0.01,
        average_run_length: float = 1_000_000.0,
        average_run_time: int | None = None,
        cooldown: float = 10_000.0,
        grace_period: int = 0,
        intervals: bool = False,
    ) -> None:
        levels = [validation.fraction(one, "level") for one in levels]
        quantiles = [validation.fraction(one, "level") for one in quantiles]
        tolerance, alpha = validation.tolerance(tolerance), validation.fraction(alpha, "alpha")
        tolerated = [level / (level + (1.0 - level) * tolerance) for level in levels]
        self._levels, self._quantiles, self._pit = np.array(levels), len(quantiles), pit
        self._tolerance = tolerance
        self._since = [_coverage(one, 1.0) for one in (*levels, *tolerated)]
        self._recent = [_coverage(one, _FORGET) for one in levels]
        self._tolerant = [_coverage(one, _FORGET) for one in tolerated]
        if pit:
            uniform = [1.0 / _BINS] * _BINS
            self._since.append(_Frequencies(uniform, 1.0))
            self._recent = [_Frequencies(uniform, _FORGET)]
        run = checked_options(average_run_length, average_run_time, cooldown)
        tests = _tests((*levels,), pit, tolerance, alpha, *run)
        outcomes = [f"labels inside the central {100 * level:.9g} % intervals" for level in levels]
        verdicts = [_verdicts(level, len(levels), tolerance) for level in levels]
        parts = [*map(_quantile_words, quantiles), *(_PIT_WORDS if pit else ())]
        for level, words in zip([*quantiles, *[0.5] * len(_PIT_WORDS)], parts, strict=False):
            share = _ALPHA / 2 / len(parts)
            sequence = VerdictSequence("calibrated", tolerance, share, words=words, level=level)
            verdicts.append(sequence)
        view = TestedView("calibrated", tests, outcomes, verdicts)
        self._measured = 2 * len(levels) + 2 if intervals else 0
        width = max(1, len(levels) + len(quantiles) + 2 * pit) + self._measured
        super().__init__([view], width, grace_period)

    def _begin(self) -> None:
        super()._begin()
        mark = labels_of_a_mark(self._levels.tolist())
        self._intervals = core.IntervalSums(len(self._levels), mark)

    def run(self, steps: EProcessSteps, most: int | None = None) -> list[OpenedIncident]:
        """Run any sequence of steps; see `EProcess.run`."""
        numbers, times, at, gaps, rows = self._buffer.run(*steps, most)
        if not len(times):
            return []
        measured, rows = np.split(rows, [self._measured], axis=1)
        if self._measured:
            inside = rows[:, : len(self._levels)]
            self._intervals.add(np.hstack((inside, measured)), numbers, times)
        (view,) = self.views
        opened = view.update(*self._settled(rows, times, gaps))
        return [OpenedIncident(int(at[one.row]), view.name, *one[1:]) for one in opened]

    def _settled(
        self, rows: Floats, times: Integers, skipped: Integers
    ) -> tuple[SettledForecasts, Floats]:
        """Return the forecasts of settled observations, and the factors of each test."""
        k = len(self._levels)
        covered = rows[:, :k]
        shares = [np.column_stack((1.0 - one, one)) for one in covered.T]
        pit = [spread(rows[:, -2], rows[:, -1], _BINS)] if self._pit else []
        factors = _factors(self._since, [*shares, *shares, *pit])
        recent, tolerant = (
            _factors(self._recent, pit or shares),
            _factors(self._tolerant, shares),
        )
        if recent:
            factors += [_mean(recent), _mean(tolerant or recent)]
        forecasts = np.broadcast_to(self._levels, covered.shape)
        counted = rows[:, k : k + self._quantiles]
        least: list[Floats] = [forecasts, np.floor(counted)]
        most: list[Floats] = [covered, np.ceil(counted)]
        if self._pit:
            quarters = spread(rows[:, -2], rows[:, -1], 4)
            halves = np.column_stack((quarters[:, :2].sum(axis=1), quarters[:, 1:3].sum(axis=1)))
            for one in (least, most):
                one.append(np.minimum(halves, 1.0))
        first, last = (np.ascontiguousarray(np.hstack(one).T) for one in (least, most))
        table = np.column_stack(factors) if factors else np.empty((len(rows), 0))
        return SettledForecasts(first, last, times, skipped), table

    @property
    def _strategies(self) -> list[_Frequencies]:
        return [*self._since, *self._recent, *self._tolerant]

    def answer_sums(self, *, over_time: bool = True) -> Sums:
        """Return the sums behind the answers about the intervals; see `EProcess.answer_sums`."""
        sums, levels = self._intervals, self._levels.tolist()
        main = main_level(levels)
        return Sums(
            sums.now(),
            sums.whole(),
            sums.trail() if over_time else (),
            None,
            self._buffer.came,
            self.grace_period,
            [view.name for view in self.views],
            self._incidents(0 if main is None else levels.index(main)),
            levels,
            self._tolerance,
            of_numbers=True,
        )

    def _dump(self) -> list[bytes]:
        counts = [one.counts.astype("<f8").tobytes() for one in self._strategies]
        return [*counts, self._intervals.save()]

    def _restore(self, strategies: Sequence[bytes]) -> None:
        self._intervals.load(strategies[-1])
        for one, saved in zip(self._strategies, strategies[:-1], strict=True):
            counts = column(saved, "<f8", "counts of bins", len(one.counts))
            require(((counts >= 0.0) & (counts <= MAX_COUNT)).all(), "counts of bins")
            one.counts[:] = counts

    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        measured, values = np.split(rows[labelled], [self._measured], axis=1)
        wide = measured[:, len(self._levels) : -2] >= 0.0
        return bool(wide.all() and ((values >= 0.0) & (values <= 1.0)).all())


def _verdicts(level: float, levels: int, tolerance: float) -> VerdictSequence:
    """Return the verdicts on the intervals of a level, with a share of the usual alpha."""
    words = Words(
        f"central {100 * level:.9g} % intervals",
        *("labels inside", "too narrow", "too wide", "points too few", "points too many"),
    )
    return VerdictSequence("calibrated", tolerance, _ALPHA / 2 / levels, words=words)


def _quantile_words(level: float) -> Words:
    """Return the words of a quantile: it is too low if too few labels are below."""
    return Words(
        "served quantiles",
        *("labels at or below", "too low", "too high", "points too few", "points too many"),
        part=f"{100 * level:.9g} %",
        parts="levels",
    )


def _coverage(level: float, forget: float) -> _Frequencies:
    """Return a strategy that bets on less coverage than a level."""
    return _Frequencies((1.0 - level, level), forget, capped=True)


def _factors(strategies: Sequence[_Frequencies], shares: Sequence[Floats]) -> list[Floats]:
    return [one.factors(part) for one, part in zip(strategies, shares, strict=True)]


def _mean(factors: Sequence[Floats]) -> Floats:
    mean: Floats = sum(factors[1:], factors[0]) / len(factors)
    return mean
