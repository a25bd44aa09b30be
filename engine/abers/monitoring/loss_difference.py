"""What calibration saved or cost: the difference of the log losses before and after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.confidence_sequence import ConfidenceSequence
from abers.monitoring.forecast_groups import checked_rows
from abers.monitoring.verdict import Estimate, period
from abers.saveable import CopiedWhole
from abers.serialization import count, number, require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers._core import LossDifference as CoreLossDifference
    from abers.arrays import Floats, Integers

__all__ = ["LossDifference"]

_LARGEST = 3.0  # nats that a label counts at most: its probability was changed by a factor of 20
# Differences with a mean square of 0.03 have this sum after some 4,000 labels, when a saving
# of a hundredth of a nat is about to be found.
_TIGHTEST = 120.0
_ROUNDED = 1.0 + 1e-9
_LARGEST_TIME = (1 << 63) - 1


class LossDifference(CopiedWhole):
    """What calibration saved: the mean log loss of raw scores minus that of served probabilities.

    Parameters
    ----------
    alpha
        Bound on the probability that the interval ever misses the mean, between 0 and 1.

    Raises
    ------
    ParameterError
        If alpha is out of its range.

    Notes
    -----
    The difference of a label is clipped to 3 nats: a label counts no more if calibration changed
    its probability by a factor above 20. So each difference lies in a known range, and a saving of
    a hundredth of a nat is found after some thousands of labels. With probabilities clipped to
    [1e-6, 1 - 1e-6] alone, the range would be nine times as wide, and that would take some ten
    thousand labels more. `clipped` counts the labels for which it matters.

    **Guarantee.** The probability that `difference` ever misses the mean of the true expected
    differences so far is at most `alpha`, for any labels and forecasts, even if they drift. It is a
    statement about the average since the start, not about single events.

    References
    ----------
    Choe & Ramdas (2024), Comparing sequential forecasters; Howard, Ramdas, McAuliffe & Sekhon
    (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 10_000)
    >>> labels = rng.random(10_000) < p
    >>> raw = p / (p + (1 - p) / 2)  # odds that are twice too high
    >>> losses = LossDifference()
    >>> losses.update(raw, p, labels, np.arange(10_000))
    >>> print(losses.sentence)  # doctest: +NORMALIZE_WHITESPACE
    Calibration saved 0.045 nats a label (at least 0.033), over 10,000 labels
    from event time 0 until event time 9,999.
    """

    def __init__(self, alpha: float = 0.05) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha {alpha!r} is not a probability between 0 and 1"
            raise ParameterError(msg)
        self.alpha = alpha
        self._sequence = ConfidenceSequence(_TIGHTEST, alpha / 2, 2.0 * _LARGEST)
        self.core: CoreLossDifference = core.LossDifference()

    @property
    def count(self) -> int:
        """Number of labels."""
        return int(self.core.count)

    @property
    def clipped(self) -> int:
        """Number of labels with a difference of more than 3 nats."""
        return int(self.core.clipped)

    @property
    def start(self) -> int:
        """Event time of the first label."""
        return int(self.core.start)

    @property
    def until(self) -> int:
        """Latest event time of a label."""
        return int(self.core.until)

    def update(self, raw: ArrayLike, served: ArrayLike, labels: ArrayLike, times: Integers) -> None:
        """Take labelled forecasts of both kinds, in the order of the observations.

        Parameters
        ----------
        raw, served
            Arrays of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.
        times
            Array of shape (n,): event times, in milliseconds where they are dates.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is taken then.
        """
        first, truth = checked_rows(raw, labels)
        second, _ = checked_rows(served, truth)
        if len(times) != len(first):
            msg = f"{len(first)} forecasts need as many event times, not {len(times)}"
            raise ParameterError(msg)
        self.add(first, second, truth, times)

    def add(self, raw: Floats, served: Floats, labels: Floats, times: Integers) -> None:
        """Take columns that were checked; see `update`."""
        self.core.add(raw, served, labels, np.ascontiguousarray(times, np.int64))

    @property
    def mean(self) -> float:
        """Nats that a label saved on average; NaN before the first."""
        return float(self.core.total) / self.count if self.count else math.nan

    @property
    def difference(self) -> Estimate:
        """Nats that a label saved on average, with its range; NaN before the first."""
        if not self.count:
            return Estimate(math.nan, math.nan, math.nan)
        total, squares = self.core.total, self.core.squares
        margin = self._sequence.boundary(squares, self.alpha / 2)
        ends = (total, total - margin, total + margin)
        return Estimate(*(one / self.count for one in ends))

    @property
    def sentence(self) -> str:
        """What calibration saved or cost, and what to do if it cost."""
        if not self.count:
            return "No difference by calibration found: no label is counted yet."
        mean, lower, upper = self.difference
        counted = f"over {self.count:,} labels {period(self.start, self.until)}"
        digits = max(2, 1 - math.floor(math.log10(max(upper - lower, 1e-6))))
        if lower > 0.0:
            sizes = f"{mean:.{digits}f} nats a label (at least {lower:.{digits}f})"
            return f"Calibration saved {sizes}, {counted}."
        if upper < 0.0:
            sizes = f"{-mean:.{digits}f} nats a label (at least {-upper:.{digits}f})"
            return (
                f"Calibration cost {sizes}, {counted}. To serve better probabilities, let it "
                "forget old labels (calibrator.window), protect the raw score "
                '(calibrator.probability = "protected"), or only monitor '
                '(calibrator.kind = "none").'
            )
        between = f"from {-lower:.{digits}f} lost to {upper:.{digits}f} saved"
        return (
            f"No difference by calibration found: {between} nats a label are possible, {counted}."
        )

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        one = self.core
        return (one.count, one.total, one.squares, one.clipped, one.start, one.until)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        counted, total, squares, clipped, start, until = state
        one, n = self.core, count(counted, "labels")
        most = n * _LARGEST * _ROUNDED
        one.count = n
        one.total = number(total, "differences of losses", -most, most)
        one.squares = number(squares, "squares of differences", 0.0, most * _LARGEST)
        one.clipped = count(clipped, "clipped differences", n)
        one.start, one.until = (
            whole(time, "times", -_LARGEST_TIME - 1, _LARGEST_TIME) for time in (start, until)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy the level and the state."""
        return {"alpha": self.alpha, "state": self.state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore the level and the state."""
        vars(self).update(vars(type(self)(saved["alpha"])))
        self.load(saved["state"])

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up different forecasts of one model; the guarantee holds if they are independent."""
        combined = cls(many[0].alpha)
        sums = combined.core
        for one in many:
            require(one.alpha == combined.alpha, "levels differ")
            count_, total, squares, clipped, *_ = one.state()
            sums.count += count_
            sums.total += total
            sums.squares += squares
            sums.clipped += clipped
        begun = [one for one in many if one.count] or many
        sums.start = min(one.start for one in begun)
        sums.until = max(one.until for one in begun)
        return combined
