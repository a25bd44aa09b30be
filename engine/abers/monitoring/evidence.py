"""Tests by betting, whose evidence may be looked at at any time.

Governing rule: what comes in are factors, in the order of the observations; if the hypothesis is
true, the mean of each, given all that was before it, is at most 1. What their product may say is
one guarantee, what a detector of changes may say is another, and no test has both.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from abers._saved import count, number, require, whole
from abers._shown import shown
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Betting",
    "Bettor",
    "ChangeDetector",
    "Episode",
    "Evidence",
    "SinceStart",
    "Tested",
    "loudest",
]


_LARGEST_TIME = (1 << 63) - 1


class Episode(NamedTuple):
    """A time during which a test rang.

    Attributes
    ----------
    number
        1 for the first episode of the test.
    first, last
        Event times of the observations at which it rang first and last.
    log_wealth
        Natural logarithm of what the evidence had grown to when it rang last.
    """

    number: int
    first: int
    last: int
    log_wealth: float


class Evidence(NamedTuple):
    """What a test has come to.

    Attributes
    ----------
    name
        Of the test, unique among those of a monitor.
    log_wealth
        Natural logarithm of the evidence now; infinite after a factor that was.
    line
        Natural logarithm of the evidence at which the test rings.
    ringing
        Whether an episode is open.
    episodes
        How many there were.
    last
        The last of them; None before the first.
    guarantee
        What is guaranteed, in one sentence.
    skipped
        Observations that were left out, because no label came in time.
    """

    name: str
    log_wealth: float
    line: float
    ringing: bool
    episodes: int
    last: Episode | None
    guarantee: str
    skipped: int


class Betting(ABC):
    """What the two forms of a test have in common: their episodes.

    Attributes
    ----------
    name
        Of the test.
    line
        Natural logarithm of the evidence at which it rings.
    count
        Factors seen.
    last
        The last episode; None before the first.
    """

    quiet: float = math.inf
    """After how many factors without a ring an episode is over."""

    def __init__(self, name: str, line: float) -> None:
        self.name, self.line = name, line
        self.count = 0
        self.last: Episode | None = None
        self._wealth = 0.0
        self._rung = 0  # factors seen when it rang last

    @property
    @abstractmethod
    def log_wealth(self) -> float:
        """Natural logarithm of the evidence now."""

    @property
    @abstractmethod
    def _range(self) -> tuple[float, float]:
        """Between what the wealth that is remembered lies."""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence."""

    @abstractmethod
    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Episode]]:
        """Take factors in their order.

        Parameters
        ----------
        factors
            Positive; they may be infinite.
        times
            Event time of the observation of each.

        Returns
        -------
        list
            The episodes that opened, each with the place of the factor that did it.
        """

    @property
    def ringing(self) -> bool:
        """Whether an episode is open."""
        return self.last is not None and self.count - self._rung < self.quiet

    def _ring(self, time: int, log_wealth: float) -> Episode | None:
        """Ring at the factor that was counted last; the episode if it opens one."""
        last = self.last
        opens = last is None or self.count - 1 - self._rung >= self.quiet
        if last is None or opens:
            self.last = Episode(1 if last is None else last.number + 1, time, time, log_wealth)
        else:
            self.last = Episode(last.number, last.first, time, log_wealth)
        self._rung = self.count
        return self.last if opens else None

    def evidence(self, skipped: int = 0) -> Evidence:
        """Give what the test has come to, with how many observations were left out."""
        return Evidence(
            self.name,
            self.log_wealth,
            self.line,
            self.ringing,
            0 if self.last is None else self.last.number,
            self.last,
            self.guarantee,
            skipped,
        )

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered: what `load` takes."""
        last = None if self.last is None else tuple(self.last)
        return (self._wealth, self.count, self._rung, last)

    def load(self, state: Sequence[Any]) -> None:
        """Remember what gave this `state`; a ValueError if nothing did."""
        wealth, factors, rung, last = state
        self._wealth = number(wealth, "wealth", *self._range)
        self.count = count(factors, "factors")
        self._rung = count(rung, "rings", self.count)
        require((last is None) == (not self._rung), "episodes")
        self.last = None if last is None else _episode(last, self._rung)


def _episode(state: Sequence[Any], rings: int) -> Episode:
    """Read an episode that was remembered."""
    place, first, last, log_wealth = state
    return Episode(
        whole(place, "episodes", 1, rings),
        whole(first, "times", -_LARGEST_TIME, _LARGEST_TIME),
        whole(last, "times", -_LARGEST_TIME, _LARGEST_TIME),
        number(log_wealth, "wealth"),
    )


class SinceStart(Betting):
    """Test whether anything was wrong since the beginning: the product of all factors.

    Parameters
    ----------
    name
        Of the test.
    alpha
        With what probability it may ring at all though nothing is wrong, above 0 and below 1.

    Raises
    ------
    ParameterError
        If alpha is no such number.

    Notes
    -----
    **Guarantee.** If the hypothesis is true, the product is a non-negative supermartingale that
    begins at 1, so the probability that it ever reaches 1 / alpha is at most alpha, however often
    one looks (Ville 1939). It never begins anew, and what it has crossed it has crossed: the one
    episode stays open. It says nothing about when something went wrong; after a long time of good
    forecasts little is left to bet with, and a late change takes thousands of observations to
    show: that is what `ChangeDetector` is for.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif; Shafer & Vovk (2019), Game-Theoretic
    Foundations for Probability and Finance, chapter 2.

    Examples
    --------
    >>> test = SinceStart("since-start", alpha=0.05)
    >>> test.update([4.0, 5.0, 0.5], [100, 200, 300])
    [(1, Episode(number=1, first=200, last=200, log_wealth=2.995732273553991))]
    >>> test.ringing, round(test.log_wealth, 4), round(test.line, 4)
    (True, 2.3026, 2.9957)
    """

    def __init__(self, name: str, *, alpha: float = 0.01) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha={shown(alpha)} is not above 0 and below 1"
            raise ParameterError(msg)
        self.alpha = alpha
        super().__init__(name, -math.log(alpha))

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the product."""
        return self._wealth

    @property
    def _range(self) -> tuple[float, float]:
        return -sys.float_info.max, math.inf

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence."""
        return (
            f"If nothing is wrong, the probability that this ever rings is at most {self.alpha:g}, "
            "however often one looks."
        )

    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Episode]]:
        """Take factors in their order; see `Betting.update`."""
        wealth, opened = self._wealth, []
        for place, factor in enumerate(factors):
            # An infinite product stays so: no factor is 0.
            wealth += math.log(factor)
            self.count += 1
            if wealth >= self.line and (episode := self._ring(times[place], wealth)):
                opened.append((place, episode))
        self._wealth = wealth
        return opened


class ChangeDetector(Betting):
    """Detect that something went wrong lately: an e-detector after Shiryaev and Roberts.

    Parameters
    ----------
    name
        Of the test.
    distance
        How many observations there are at least between false alarms, on average; above 1.
    quiet
        An episode is over when so many observations passed without another ring, at least 1.

    Raises
    ------
    ParameterError
        If one of them is no such number.

    Notes
    -----
    The statistic R becomes (R + 1) times the factor: as if at each observation one more unit were
    bet, and all that was bet before stayed in the game. It rings when R reaches `distance`, and
    begins anew at 0.

    **Guarantee.** If the hypothesis is true, R minus the number of observations is a
    supermartingale from 0; so by optional stopping the mean number of observations up to an alarm,
    from the beginning or from the alarm before, is at least `distance` (Shin, Ramdas & Rinaldo
    2024). That is no probability: in a time as long as `distance` a false alarm
    is no surprise.

    `log_wealth` is that of R, or 0 where R is less than 1.

    References
    ----------
    Shin, Ramdas & Rinaldo (2024), E-detectors: a nonparametric framework for sequential change
    detection.

    Examples
    --------
    >>> detector = ChangeDetector("change", distance=10, quiet=2)
    >>> detector.update([2.0, 2.0, 2.0], [100, 200, 300])  # R is 2, 6, 14
    [(2, Episode(number=1, first=300, last=300, log_wealth=2.6390573296152584))]
    >>> detector.update([1.0, 1.0], [400, 500])
    []
    >>> detector.ringing, detector.log_wealth
    (False, 0.6931471805599453)
    """

    def __init__(
        self, name: str, *, distance: float = 1_000_000.0, quiet: float = 10_000.0
    ) -> None:
        if not 1.0 < distance < math.inf or not quiet >= 1.0:
            msg = (
                f"distance={shown(distance)} and quiet={shown(quiet)} are not a finite number "
                "above 1 and a number of at least 1"
            )
            raise ParameterError(msg)
        self.distance, self.quiet = float(distance), quiet
        super().__init__(name, math.log(distance))

    @property
    def log_wealth(self) -> float:
        """Natural logarithm of the statistic, at least 0."""
        return math.log(max(self._wealth, 1.0))

    @property
    def _range(self) -> tuple[float, float]:
        return 0.0, self.distance

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in one sentence."""
        return (
            "If nothing is wrong, the mean distance from one alarm to the next is at least "
            f"{self.distance:,.10g} observations."
        )

    def update(self, factors: Sequence[float], times: Sequence[int]) -> list[tuple[int, Episode]]:
        """Take factors in their order; see `Betting.update`."""
        statistic, opened, before = self._wealth, [], self.count
        for place, factor in enumerate(factors):
            statistic = (statistic + 1.0) * factor
            if statistic >= self.distance:
                self.count = before + place + 1
                if episode := self._ring(times[place], math.log(statistic)):
                    opened.append((place, episode))
                statistic = 0.0
        self.count, self._wealth = before + len(factors), statistic
        return opened


class Bettor(Protocol):
    """What is asked of bets."""

    def evidence(self) -> tuple[Evidence, ...]:
        """Give what the tests have come to."""
        ...


class Tested:
    """A monitor beside which tests run.

    Attributes
    ----------
    bets
        The bets of each calibrator that it is of; none where there are no tests.
    """

    bets: Sequence[Bettor] = ()

    @property
    def tests(self) -> tuple[Evidence, ...]:
        """What the tests have come to, none if there are none; see `loudest`."""
        return loudest([one.evidence() for one in self.bets])


def loudest(many: Sequence[Sequence[Evidence]]) -> tuple[Evidence, ...]:
    """Put the tests of different calibrators together.

    Parameters
    ----------
    many
        The tests of each, of the same names in the same order; none of some that have none.

    Returns
    -------
    tuple
        Of each name the evidence that is largest, whether any rings, all episodes, and the one
        that rang last. Each guarantee is that of each calibrator by itself.
    """
    some = [tests for tests in many if tests]
    return tuple(map(_joined, zip(*some, strict=True))) if some else ()


def _joined(tests: Sequence[Evidence]) -> Evidence:
    if len(tests) == 1:
        return tests[0]
    loud = max(tests, key=lambda one: one.log_wealth)
    rung = [one.last for one in tests if one.last is not None]
    return loud._replace(
        ringing=any(one.ringing for one in tests),
        episodes=sum(one.episodes for one in tests),
        last=max(rung, key=lambda one: one.last) if rung else None,
        guarantee=f"Of each of {len(tests)} calibrators by itself: {loud.guarantee}",
        skipped=sum(one.skipped for one in tests),
    )
