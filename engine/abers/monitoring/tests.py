"""Sequential tests by betting, their evidence and incidents, and the confidence sequence of a mean.

Confidence sequence for the mean of bounded outcomes, which may drift. It says how far the sum of
outcomes may be from the sum of their conditional means, at all times at once. It assumes nothing
about the outcomes except their range.

Sequential tests by betting: valid however often you check. A test takes factors in the order of the
observations. Under the hypothesis the mean of each factor, given all that came before it, is at
most 1. A martingale bounds the probability of a false alarm; an e-detector bounds the mean time
between false alarms. No test has both guarantees.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from abers import validation
from abers.backends import core
from abers.monitoring.formats import duration
from abers.monitoring.measures import Measure, Number
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import SequentialTest as NativeTest
    from abers.arrays import Floats

__all__ = [
    "TESTS",
    "ConfidenceSequence",
    "EDetector",
    "Evidence",
    "Incident",
    "Martingale",
    "SequentialTest",
    "checked_options",
    "evidence_numbers",
    "hypothesis_of",
    "strongest",
]

_LN10 = math.log(10.0)
_ACTIVE = Measure("alarm_active", "", "boolean", "Whether an incident is open.")
_EVIDENCE_MEASURE = Measure(
    "evidence_log10", "", "powers of ten", "Evidence against the predictions."
)
_THRESHOLD = Measure(
    "evidence_threshold_log10", "", "powers of ten", "The evidence at which a test is active."
)
_STATUSES: tuple[Literal["active", "triggered", "quiet"], ...] = ("active", "triggered", "quiet")
TESTS = (_ACTIVE, _EVIDENCE_MEASURE, _THRESHOLD)
"""Numbers of each test, with its view and its name as labels."""


class Incident(NamedTuple):
    """A time during which a test was active.

    Attributes
    ----------
    number
        1 for the first incident of the test.
    first, last
        Event times of the first and the last observation at which the evidence reached its
        threshold.
    log_wealth
        Natural logarithm of the evidence at the last of them.
    """

    number: int
    first: int
    last: int
    log_wealth: float


class Evidence(NamedTuple):
    """Evidence of a test.

    Attributes
    ----------
    name
        Name of the test, unique among those of a view.
    view
        What is tested: the "raw" scores, or the "calibrated" predictions, which are served.
    log_wealth
        Natural logarithm of the evidence now; infinite after an infinite factor.
    log_threshold
        Natural logarithm of the evidence at which the test becomes active.
    active
        Whether an incident is open.
    status
        "quiet" before the first incident, "active" during an incident, else "triggered". A test
        since the beginning stays triggered: it says that something was wrong, not that something
        is wrong now. It may be restarted, and is not active then.
    incidents
        Number of incidents.
    last
        Last incident; None before the first.
    guarantee
        What the test guarantees, in one sentence.
    skipped
        Number of observations left out because no label came in time.
    """

    name: str
    view: str
    log_wealth: float
    log_threshold: float
    active: bool
    status: Literal["quiet", "active", "triggered"]
    incidents: int
    last: Incident | None
    guarantee: str
    skipped: int


def strongest(many: Sequence[Sequence[Evidence]]) -> tuple[Evidence, ...]:
    """Combine the tests of different calibrators.

    Parameters
    ----------
    many
        Tests of each calibrator, of the same views and names in the same order; or none.

    Returns
    -------
    tuple
        Of each name the largest evidence, whether any test is active, the number of all incidents,
        and the most recent incident. Each guarantee holds for each calibrator by itself.
    """
    some = [tests for tests in many if tests]
    return tuple(map(_combined, zip(*some, strict=True))) if some else ()


def _combined(tests: Sequence[Evidence]) -> Evidence:
    if len(tests) == 1:
        return tests[0]
    most = max(tests, key=lambda one: one.log_wealth)
    incidents = [one.last for one in tests if one.last is not None]
    found = {one.status for one in tests}
    return most._replace(
        active=any(one.active for one in tests),
        status=next(one for one in _STATUSES if one in found),
        incidents=sum(one.incidents for one in tests),
        last=max(incidents, key=lambda one: one.last) if incidents else None,
        guarantee=f"Of each of {len(tests)} calibrators by itself: {most.guarantee}",
        skipped=sum(one.skipped for one in tests),
    )


def evidence_numbers(tests: Sequence[Evidence]) -> list[Number]:
    """Return the numbers of `TESTS` for each test, for the summary of a monitor."""
    return [
        Number(measure, value, one.view, labels={"test": one.name})
        for one in tests
        for measure, value in (
            (_ACTIVE, one.active),
            (_EVIDENCE_MEASURE, one.log_wealth / _LN10),
            (_THRESHOLD, one.log_threshold / _LN10),
        )
    ]


def _positive(value: object, name: str) -> float:
    words = "a finite number above 0"
    return validation.number(value, name, words, lambda one: 0.0 < one < math.inf)


class ConfidenceSequence:
    """Empirical Bernstein confidence sequence with a gamma-exponential mixture.

    Parameters
    ----------
    tightest
        The sum of squares at which the boundary is about as tight as can be, above 0. It is chosen
        before the data.
    alpha
        The level at which it is, between 0 and 1.
    scale
        The largest width of the range in which an outcome lies, given what came before it.

    Raises
    ------
    ParameterError
        If `tightest` or `scale` is not above 0, or alpha not between 0 and 1.

    Notes
    -----
    Outcomes X come one after the other. Before each, a range of at most `scale` is known in which
    it lies, and a guess in that range. S is the sum of X minus its mean given all that came before
    it, and V the sum of (X - guess)**2.

    **Guarantee.** The probability that S ever reaches ``boundary(V, alpha)`` is at most `alpha`;
    so is that of -S. The outcomes may depend on each other and their means may drift. It is a
    statement about their average, not about single outcomes.

    For each rate a in [0, 1/c), exp(a S - V (-log(1 - c a) - c a) / c**2) is at most a martingale
    that begins with 1. So is its mean over rates, in closed form, and Ville's inequality bounds
    the probability that this mean ever reaches 1/alpha.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences: theorem 4 and proposition 9.

    Examples
    --------
    >>> sequence = ConfidenceSequence(500.0, 0.003)
    >>> round(sequence.boundary(500.0, 0.003), 1)
    88.0
    >>> sequence.reaches(88.0, 500.0, 0.003), sequence.reaches(87.9, 500.0, 0.003)
    (True, False)
    """

    def __init__(self, tightest: float, alpha: float, scale: float = 1.0) -> None:
        self._options = (
            _positive(tightest, "tightest"),
            validation.fraction(alpha, "alpha"),
            _positive(scale, "scale"),
        )
        self._core = core.ConfidenceSequence(*self._options)

    def log_mixture(self, deviation: float, squares: float) -> float:
        """Return the natural logarithm of the mixture.

        Parameters
        ----------
        deviation
            The sum S, 0 or more.
        squares
            The sum V, 0 or more.

        Returns
        -------
        float
            It reaches log(1 / alpha) where S reaches the boundary.
        """
        return float(self._core.log_mixture(deviation, squares))

    def reaches(self, deviation: float, squares: float, alpha: float) -> bool:
        """Return whether a deviation reaches the boundary; one of 0 or less never does.

        Parameters
        ----------
        deviation, squares
            The sums S and V.
        alpha
            Level of this side.
        """
        return bool(self._core.reaches(deviation, squares, alpha))

    def boundary(self, squares: float, alpha: float) -> float:
        """Return the deviation S at which the mixture reaches 1/alpha.

        Parameters
        ----------
        squares
            The sum V, 0 or more.
        alpha
            Level of this side.
        """
        return float(self._core.boundary(squares, alpha))

    def __reduce__(self) -> tuple[object, tuple[float, float, float]]:
        """Pickle and copy the options."""
        return type(self), self._options


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
    tolerance = validation.tolerance(tolerance)
    return f"all odds are within {tolerance:g} times" if tolerance > 1.0 else _RIGHT


def checked_options(
    average_run_length: object, average_run_time: object, cooldown: object
) -> tuple[float, int | None, float]:
    """Check the options of an `EDetector`, in its order."""
    above_1 = "a finite number above 1"
    return (
        validation.number(
            average_run_length, "average_run_length", above_1, lambda one: 1.0 < one < math.inf
        ),
        average_run_time
        if average_run_time is None
        else validation.count(average_run_time, "average_run_time", 1),
        validation.number(cooldown, "cooldown", "a number of 1 or more", lambda one: one >= 1.0),
    )


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
        self.alpha, self._hypothesis = validation.fraction(alpha, "alpha"), hypothesis
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
        options = checked_options(average_run_length, average_run_time, cooldown)
        self.average_run_length, self.average_run_time, self.cooldown = options
        self._hypothesis = hypothesis
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
