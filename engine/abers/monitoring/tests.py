"""Sequential tests by betting: valid however often you check.

A test takes factors in the order of the observations. Under the hypothesis the mean of each factor,
given all that came before it, is at most 1. A martingale bounds the probability of a false alarm;
an e-detector bounds the mean time between false alarms. No test has both guarantees.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.event_time import duration
from abers.monitoring.evidence import Evidence, Incident
from abers.saveable import CopiedWhole
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import SequentialTest as NativeTest
    from abers.arrays import Floats

__all__ = ["EDetector", "Martingale", "SequentialTest", "hypothesis_of"]

_LARGEST_TIME = (1 << 63) - 1
_RIGHT = "all probabilities are right"
_PARTS = 1_000_000.0  # of a run length in event time, in which its statistic is measured


def hypothesis_of(tolerance: float) -> str:
    """Return the hypothesis of tests with a tolerance, a ratio of odds of at least 1.

    Raises
    ------
    ParameterError
        If the tolerance is not a finite number of at least 1.

    Examples
    --------
    >>> hypothesis_of(1.0), hypothesis_of(1.25)
    ('all probabilities are right', 'all odds are within 1.25 times')
    """
    if not 1.0 <= tolerance < math.inf:
        msg = f"tolerance={shown(tolerance)} is not a finite ratio of odds of at least 1"
        raise ParameterError(msg)
    return f"all odds are within {tolerance:g} times" if tolerance > 1.0 else _RIGHT


class SequentialTest(CopiedWhole, ABC):
    """Incidents of a test by betting.

    Attributes
    ----------
    name
        Name of the test.
    native
        What the core has of the test.
    """

    cooldown: float = math.inf
    """Number of factors below the threshold after which an incident is over."""

    def __init__(self, name: str) -> None:
        self.name, self.native = name, self._begin()

    @abstractmethod
    def _begin(self) -> NativeTest:
        """Return the test before its first factor."""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What the test guarantees, in one sentence."""

    def having(self, native: NativeTest) -> Self:
        """Return a test with the same options, and another state."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), native=native)
        return other

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the evidence now."""
        return self.native.log_wealth

    @property
    def log_threshold(self) -> float:
        """Natural logarithm of the evidence at which it becomes active."""
        return self.native.log_threshold

    @property
    def armed(self) -> int:
        """Number of times that it began: 1 unless it was restarted."""
        return self.native.armed

    @property
    def count(self) -> int:
        """Number of factors so far."""
        return self.native.count

    @property
    def last(self) -> Incident | None:
        """The last incident; None before the first."""
        last = self.native.last
        return None if last is None else Incident(*last)

    @property
    def active(self) -> bool:
        """Whether an incident is open."""
        return self.native.active

    def update(
        self, factors: Sequence[float] | Floats, times: Sequence[int]
    ) -> list[tuple[int, Incident]]:
        """Take factors in their order.

        Parameters
        ----------
        factors
            Positive, possibly infinite.
        times
            Event time of the observation of each.

        Returns
        -------
        list
            Incidents that opened, each with the index of the factor that opened it.
        """
        columns = np.ascontiguousarray(factors, float), np.ascontiguousarray(times, np.int64)
        return [(row, Incident(*one)) for row, one in self.native.update(*columns)]

    def arm(self) -> None:
        """Begin anew if it was triggered and would stay so: what triggered it is over."""
        self.native.arm()

    @property
    def status(self) -> Literal["quiet", "active", "triggered"]:
        """Status of the test, see `Evidence`."""
        if self.last is None:
            return "quiet"
        return "active" if self.active and math.isfinite(self.cooldown) else "triggered"

    def evidence(self, skipped: int = 0, view: str = "calibrated") -> Evidence:
        """Return the evidence against a view, with the number of observations left out."""
        last = self.last
        return Evidence(
            self.name,
            view,
            self.log_wealth,
            self.log_threshold,
            self.active,
            self.status,
            0 if last is None else last.number,
            last,
            self.guarantee,
            skipped,
        )

    def state(self) -> bytes:
        """Return the state: what `load` takes."""
        return self.native.save()

    def load(self, state: bytes) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        self.native.load(state)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; that of the core by its state."""
        return vars(self) | {"native": self.state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        state = saved.pop("native")
        vars(self).update(saved)
        self.native = self._begin()
        self.load(state)


class Martingale(SequentialTest):
    """Test martingale: whether anything was wrong since the beginning.

    Parameters
    ----------
    name
        Name of the test.
    alpha
        Probability that it ever becomes active although nothing is wrong, above 0 and below 1.
    hypothesis
        The hypothesis, as the guarantee says it.

    Raises
    ------
    ParameterError
        If alpha is not above 0 and below 1.

    Notes
    -----
    The evidence is the product of all factors.

    **Guarantee.** If the hypothesis is true, the product is a non-negative supermartingale that
    begins at 1, so the probability that it ever reaches 1 / alpha is at most alpha, however often
    you check (Ville 1939). It does not restart by itself: its incident stays open until it is
    restarted. Then the product begins at 1 anew, and for the k-th time reaches its threshold at k
    (k + 1) / alpha. So the probability that any later count becomes active, although the hypothesis
    is true since its restart, is at most alpha / 2, for restarts for any reason. The test does not
    say when something went wrong. After a long time of good forecasts little is left to bet with,
    and a late change takes thousands of observations to show; use `EDetector` for late changes.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif; Shafer & Vovk (2019), Game-Theoretic
    Foundations for Probability and Finance, chapter 2.

    Examples
    --------
    >>> test = Martingale("since-start", alpha=0.05)
    >>> test.update([4.0, 5.0, 0.5], [100, 200, 300])
    [(1, Incident(number=1, first=200, last=200, log_wealth=2.995732273553991))]
    >>> test.active, round(test.log_wealth, 4), round(test.log_threshold, 4)
    (True, 2.3026, 2.9957)
    >>> test.arm()
    >>> test.active, test.log_wealth, round(math.exp(test.log_threshold))
    (False, 0.0, 120)
    """

    def __init__(self, name: str, *, alpha: float = 0.01, hypothesis: str = _RIGHT) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha={shown(alpha)} is not above 0 and below 1"
            raise ParameterError(msg)
        self.alpha, self._hypothesis = alpha, hypothesis
        super().__init__(name)

    def _begin(self) -> NativeTest:
        made: NativeTest = core.SequentialTest.since_start(self.alpha)
        return made

    @property
    def guarantee(self) -> str:
        """What the test guarantees, in one sentence."""
        times = self.armed
        alpha = self.alpha / (times * (times + 1)) if times > 1 else self.alpha
        since = " since it counts anew" if times > 1 else ""
        return (
            f"If {self._hypothesis}{since}, this test is ever on with a probability of at most "
            f"{100.0 * alpha:.3g} %, however often you look."
        )


class EDetector(SequentialTest):
    """E-detector of Shiryaev-Roberts type: whether anything went wrong lately.

    Parameters
    ----------
    name
        Name of the test.
    average_run_length
        Least mean number of observations between false alarms, above 1.
    average_run_time
        Least mean event time between false alarms instead, in milliseconds.
    cooldown
        Number of observations without another crossing after which an incident is over, at least 1.
    hypothesis
        The hypothesis, as the guarantee says it.

    Raises
    ------
    ParameterError
        If one of them is out of range.

    Notes
    -----
    The statistic R becomes (R + 1) times the factor, as if each observation added a bet of one unit
    and all earlier bets stayed. At an observation without a bet the factor is 1,
    and R stays as it is. The test becomes active when R reaches the average run length, and R
    restarts at 0. With a run length in event time R becomes (R + d) times the factor, d being the
    growth of the largest event time so far, but at most a hundredth of the run length.

    **Guarantee.** If the hypothesis is true, R minus the number of observations is a
    supermartingale from 0; so by optional stopping the mean number of observations up to an alarm,
    from the beginning or from the alarm before, is at least the average run length (Shin, Ramdas &
    Rinaldo 2024). In event time, R minus the growth of the largest event time is one, so it is the
    mean event time up to an alarm; that needs event times that are known at the prediction.
    Neither is a probability: in a time as long as the average run length a false alarm is no
    surprise.

    Observations without a bet add nothing. Otherwise R would reach the run length on them alone,
    and each test of forecasts that are well within their tolerance would raise a false alarm after
    exactly that time. Adding less cannot raise an alarm earlier.

    `log_wealth` is that of R, or 0 where R is less than 1; R in event time is in millionths of the
    run length, so its threshold is that of a million observations.

    References
    ----------
    Shin, Ramdas & Rinaldo (2024), E-detectors: a nonparametric framework for sequential change
    detection.

    Examples
    --------
    >>> detector = EDetector("change", average_run_length=10, cooldown=2)
    >>> detector.update([2.0, 2.0, 2.0], [100, 200, 300])  # R is 2, 6, 14
    [(2, Incident(number=1, first=300, last=300, log_wealth=2.6390573296152584))]
    >>> detector.update([1.5, 1.0], [400, 500])  # R is 1.5; nothing is bet on the last
    []
    >>> detector.active, round(detector.log_wealth, 4), detector.status
    (False, 0.4055, 'triggered')
    """

    def __init__(
        self,
        name: str,
        *,
        average_run_length: float = 1_000_000.0,
        average_run_time: int | None = None,
        cooldown: float = 10_000.0,
        hypothesis: str = _RIGHT,
    ) -> None:
        if not 1.0 < average_run_length < math.inf or not cooldown >= 1.0:
            msg = (
                f"average_run_length={shown(average_run_length)} and cooldown={shown(cooldown)} "
                "are not a finite number above 1 and a number of at least 1"
            )
            raise ParameterError(msg)
        if average_run_time is not None and not 0 < average_run_time <= _LARGEST_TIME:
            msg = f"average_run_time={shown(average_run_time)} is not a positive time"
            raise ParameterError(msg)
        self.average_run_length, self.average_run_time = float(average_run_length), average_run_time
        self.cooldown, self._hypothesis = cooldown, hypothesis
        super().__init__(name)

    def _begin(self) -> NativeTest:
        time = self.average_run_time
        length = self.average_run_length if time is None else _PARTS
        made: NativeTest = core.SequentialTest.of_change(length, self.cooldown, time or 0)
        return made

    @property
    def guarantee(self) -> str:
        """What the test guarantees, in one sentence."""
        if self.average_run_time is None:
            length = f"{self.average_run_length:,.10g} labels"
        else:
            length = f"{duration(self.average_run_time)} of event time"
        return f"If {self._hypothesis}, false alarms come once in {length} on average, at most."
