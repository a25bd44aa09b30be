"""Sequential tests by betting: valid however often one checks.

A test takes factors in the order of the observations. Under the hypothesis the mean of each factor,
given all that came before it, is at most 1. A martingale bounds the probability of a false alarm;
an e-detector bounds the mean time between false alarms. No test has both guarantees.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from abers.exceptions import ParameterError
from abers.monitoring.evidence import Evidence, Incident
from abers.serialization import count, number, require, whole
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EDetector", "Martingale", "SequentialTest"]

_LARGEST_TIME = (1 << 63) - 1


class SequentialTest(ABC):
    """Incidents of a test by betting.

    Attributes
    ----------
    name
        Name of the test.
    log_threshold
        Natural logarithm of the evidence at which it becomes active.
    guarantee
        What the test guarantees, in one sentence.
    count
        Number of factors so far.
    last
        The last incident; None before the first.
    """

    cooldown: float = math.inf
    """Number of factors below the threshold after which an incident is over."""

    def __init__(
        self, name: str, log_threshold: float, guarantee: str, wealth: tuple[float, float]
    ) -> None:
        self.name, self.log_threshold, self.guarantee = name, log_threshold, guarantee
        self._least, self._most = wealth
        self.count = 0
        self.last: Incident | None = None
        self._wealth = 0.0
        self._crossed = 0  # number of factors at the last crossing

    @property
    @abstractmethod
    def log_wealth(self) -> float:
        """Natural logarithm of the evidence now."""

    @abstractmethod
    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Incident]]:
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

    @property
    def active(self) -> bool:
        """Whether an incident is open."""
        return self.last is not None and self.count - self._crossed < self.cooldown

    def _cross(self, time: int, log_wealth: float) -> Incident | None:
        """Count a crossing at the last factor; return the incident if it opens one."""
        last = self.last
        opens = last is None or self.count - 1 - self._crossed >= self.cooldown
        if last is None or opens:
            self.last = Incident(1 if last is None else last.number + 1, time, time, log_wealth)
        else:
            self.last = Incident(last.number, last.first, time, log_wealth)
        self._crossed = self.count
        return self.last if opens else None

    def evidence(self, skipped: int = 0) -> Evidence:
        """Return the evidence, with the number of observations that were left out."""
        return Evidence(
            self.name,
            self.log_wealth,
            self.log_threshold,
            self.active,
            0 if self.last is None else self.last.number,
            self.last,
            self.guarantee,
            skipped,
        )

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        last = None if self.last is None else tuple(self.last)
        return (self._wealth, self.count, self._crossed, last)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        wealth, factors, crossed, last = state
        self._wealth = number(wealth, "wealth", self._least, self._most)
        self.count = count(factors, "factors")
        self._crossed = count(crossed, "crossings", self.count)
        require((last is None) == (not self._crossed), "incidents")
        if last is not None:
            ordinal, first, latest, log_wealth = last
            self.last = Incident(
                whole(ordinal, "incidents", 1, self._crossed),
                whole(first, "times", -_LARGEST_TIME, _LARGEST_TIME),
                whole(latest, "times", -_LARGEST_TIME, _LARGEST_TIME),
                number(log_wealth, "wealth"),
            )


class Martingale(SequentialTest):
    """Test martingale: whether anything was wrong since the beginning.

    Parameters
    ----------
    name
        Name of the test.
    alpha
        Probability that it ever becomes active although nothing is wrong, above 0 and below 1.

    Raises
    ------
    ParameterError
        If alpha is not above 0 and below 1.

    Notes
    -----
    The evidence is the product of all factors.

    **Guarantee.** If the hypothesis is true, the product is a non-negative supermartingale that
    begins at 1, so the probability that it ever reaches 1 / alpha is at most alpha, however often
    one checks (Ville 1939). It never restarts: its one incident stays open. It does not say when
    something went wrong; after a long time of good forecasts little is left to bet with, and a
    late change takes thousands of observations to show: that is what `EDetector` is for.

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
    """

    def __init__(self, name: str, *, alpha: float = 0.01) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha={shown(alpha)} is not above 0 and below 1"
            raise ParameterError(msg)
        self.alpha = alpha
        guarantee = (
            "If nothing is wrong, the probability that this is ever active is at most "
            f"{alpha:g}, however often one checks."
        )
        super().__init__(name, -math.log(alpha), guarantee, (-sys.float_info.max, math.inf))

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the product."""
        return self._wealth

    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Incident]]:
        """Take factors in their order; see `SequentialTest.update`."""
        wealth, opened = self._wealth, []
        for index, factor in enumerate(factors):
            # An infinite product stays so: no factor is 0.
            wealth += math.log(factor)
            self.count += 1
            if wealth >= self.log_threshold and (incident := self._cross(times[index], wealth)):
                opened.append((index, incident))
        self._wealth = wealth
        return opened


class EDetector(SequentialTest):
    """E-detector of Shiryaev-Roberts type: whether anything went wrong lately.

    Parameters
    ----------
    name
        Name of the test.
    average_run_length
        Least mean number of observations between false alarms, above 1.
    cooldown
        Number of observations without another crossing after which an incident is over, at least 1.

    Raises
    ------
    ParameterError
        If one of them is out of range.

    Notes
    -----
    The statistic R becomes (R + 1) times the factor: as if at each observation one more unit were
    bet, and all earlier bets stayed in the game. The test becomes active when R reaches the average
    run length, and R restarts at 0.

    **Guarantee.** If the hypothesis is true, R minus the number of observations is a
    supermartingale from 0; so by optional stopping the mean number of observations up to an alarm,
    from the beginning or from the alarm before, is at least the average run length (Shin, Ramdas &
    Rinaldo 2024). That is no probability: in a time as long as the average run length a false alarm
    is no surprise.

    `log_wealth` is that of R, or 0 where R is less than 1.

    References
    ----------
    Shin, Ramdas & Rinaldo (2024), E-detectors: a nonparametric framework for sequential change
    detection.

    Examples
    --------
    >>> detector = EDetector("change", average_run_length=10, cooldown=2)
    >>> detector.update([2.0, 2.0, 2.0], [100, 200, 300])  # R is 2, 6, 14
    [(2, Incident(number=1, first=300, last=300, log_wealth=2.6390573296152584))]
    >>> detector.update([1.0, 1.0], [400, 500])
    []
    >>> detector.active, detector.log_wealth
    (False, 0.6931471805599453)
    """

    def __init__(
        self, name: str, *, average_run_length: float = 1_000_000.0, cooldown: float = 10_000.0
    ) -> None:
        if not 1.0 < average_run_length < math.inf or not cooldown >= 1.0:
            msg = (
                f"average_run_length={shown(average_run_length)} and cooldown={shown(cooldown)} "
                "are not a finite number above 1 and a number of at least 1"
            )
            raise ParameterError(msg)
        self.average_run_length, self.cooldown = float(average_run_length), cooldown
        guarantee = (
            "If nothing is wrong, the mean distance from one alarm to the next is at least "
            f"{self.average_run_length:,.10g} observations."
        )
        limits = (0.0, self.average_run_length)
        super().__init__(name, math.log(average_run_length), guarantee, limits)

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the statistic, at least 0."""
        return math.log(max(self._wealth, 1.0))

    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Incident]]:
        """Take factors in their order; see `SequentialTest.update`."""
        statistic, opened, before = self._wealth, [], self.count
        for index, factor in enumerate(factors):
            statistic = (statistic + 1.0) * factor
            if statistic >= self.average_run_length:
                self.count = before + index + 1
                if incident := self._cross(times[index], math.log(statistic)):
                    opened.append((index, incident))
                statistic = 0.0
        self.count, self._wealth = before + len(factors), statistic
        return opened
