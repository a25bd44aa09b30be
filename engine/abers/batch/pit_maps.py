"""Maps of probabilities from PIT values, which recalibrate CDFs: a curve, or how often each came.

Maps of probabilities that are made from PIT values, which are what they remember. A PIT value is
the CDF of the base distribution at the label. The map is a function of the values kept alone, in
sorted order, so it does not depend on their order of arrival.

Beta calibration of a CDF: a smooth map of probabilities with three parameters. As with all refitted
baselines, a fit is due after a fixed share of the values then kept, and is a function of those
values alone.

Quantile calibration: a base probability is replaced by how often it was not exceeded. The map is
the empirical CDF of the PIT values kept, so a calibrated CDF is a step CDF with a step at each base
quantile of those values: no grid and no interpolation.
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

import numpy as np
from sortedcontainers import SortedList

from abers import validation
from abers.arrays import packed, parsed
from abers.batch._beta_curve import BetaCurve, fitted, logs
from abers.batch.continuous import CalibratedDistribution
from abers.calibration.baselines import STEEPEST, share
from abers.exceptions import ParameterError, ScoreError
from abers.mathematics import Forgetting
from abers.regression.distribution import PredictiveDistribution
from abers.serialization import MAX_COUNT, Saveable, pack, require, unpack
from abers.validation import numbers, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats
    from abers.batch.continuous import Smooth
    from abers.regression.base_distribution import Many

__all__ = ["BetaCDF", "Continuous", "PITMap", "QuantileCalibration"]

_WINDOW = struct.Struct("<Q")


class PITMap(Saveable):
    """A monotone map of [0, 1] to itself that makes the CDFs of a base model calibrated."""

    def __init__(self, window: int | None = None) -> None:
        self._begin(Forgetting(window).window, [])

    def _begin(self, window: int | None, values: list[float]) -> None:
        self._window = window
        self._sorted = SortedList(values)
        self._arrived = deque([] if window is None else values)

    @property
    def window(self) -> int | None:
        """Number of PIT values kept at most, None without a window."""
        return self._window

    def __len__(self) -> int:
        """Count the PIT values kept."""
        return len(self._sorted)

    def __repr__(self) -> str:
        """Name the window and the number of values."""
        option = "" if self._window is None else f"window={self._window}"
        return f"<{type(self).__name__}({option}) of {len(self)} PIT values>"

    @abstractmethod
    def _map(self, u: Floats) -> Floats:
        """Map checked probabilities."""

    def learn_one(self, u: float) -> None:
        """Learn one PIT value: the base CDF at the label, as it was predicted.

        Parameters
        ----------
        u
            The value, in [0, 1]; of a step CDF the randomised one, `PredictiveDistribution.pit`.

        Raises
        ------
        ScoreError
            If it is not a number in [0, 1]; nothing is learned then.
        """
        values = _checked(np.array([validation.score(u)]))
        with self._lock:
            self._keep(values.tolist())

    def learn_many(self, us: ArrayLike) -> None:
        """Learn an array of PIT values, or nothing if one is bad.

        Parameters
        ----------
        us
            Array of shape (n,), as in `learn_one`.

        Raises
        ------
        ScoreError
            If a row cannot be used; the message names the first one.
        """
        values = _checked(validation.scores(us), "row {}: ")
        with self._lock:
            self._keep(values.tolist())

    @overload
    def calibrated(self, u: float) -> float: ...
    @overload
    def calibrated(self, u: Many) -> Floats: ...
    def calibrated(self, u: float | Many) -> float | Floats:
        """Map probabilities of the base model.

        Parameters
        ----------
        u
            A probability, or an array of them of any shape.

        Returns
        -------
        float or numpy.ndarray
            The calibrated probabilities, of the shape of `u`.

        Raises
        ------
        ScoreError
            If one is not in [0, 1].
        """
        values = _checked(numbers(u, "u"))
        with self._lock:
            mapped = self._map(values)
        return mapped if mapped.ndim else float(mapped)

    def _mapped_steps(self, base: PredictiveDistribution) -> PredictiveDistribution:
        """Map the merged CDF of a step distribution."""
        return PredictiveDistribution(
            base.thresholds, self.calibrated(base.values), support=base.support
        )

    def _keep(self, values: list[float]) -> None:
        self._sorted.update(values)
        if self._window is not None:
            self._arrived.extend(values)
            while len(self._arrived) > self._window:
                self._sorted.remove(self._arrived.popleft())

    def _values(self) -> Floats:
        """List what is kept, in order."""
        return np.array(self._sorted, np.float64)

    def _save(self) -> bytes:
        return pack(self._pieces())

    def _load(self, payload: memoryview) -> None:
        self._fill(unpack(payload))

    def _pieces(self) -> list[bytes]:
        held = self._sorted if self._window is None else self._arrived
        column = b"".join(packed(np.array(held, np.float64)))
        return [_WINDOW.pack(self._window or 0), column]

    def _fill(self, pieces: list[bytes]) -> None:
        header, columns = pieces
        (window,) = _WINDOW.unpack(header)
        ((letter, column),) = parsed(columns, 0)
        values = _checked(validation.scores(column), "row {}: ")
        orderly = len(values) <= window if window else bool((values[:-1] <= values[1:]).all())
        require(letter == "d" and orderly, "values")
        self._begin(Forgetting(window or None).window, values.tolist())


def _checked(values: Floats, where: str = "") -> Floats:
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if bad.size:
        value = f"{where.format(bad[0])}PIT value {shown(float(values.flat[bad[0]]))}"
        msg = f"{value} is not in [0, 1]; give the base CDF at the label"
        raise ScoreError(msg)
    return values


_FIT = struct.Struct("<dQddd")


class BetaCDF(PITMap):
    """Map a base CDF u to logistic(a ln u - b ln(1 - u) + c), with a, b >= 0.

    It learns the PIT value of each label, the base CDF at it. The slope of the map is the ratio of
    the calibrated density to the base density, so a continuous base stays one, and the parameters
    are fitted by the likelihood of the labels.

    Parameters
    ----------
    window
        Keep only the last `window` values; None keeps all.
    refit
        A fit is made when the values learned since the last one reach this share of those that
        were kept then (0: after each value or batch).

    Raises
    ------
    ParameterError
        If the window is not a whole number of 1 or more, or `refit` no share in [0, 1].

    Notes
    -----
    **Guarantee.** None: it is right where the miscalibration is a map of this kind, the same for
    all inputs.

    **Few values.** The fit is the most likely one times a normal prior of variance 1 around the
    identity (a = b = 1, c = 0), which it is with nothing learned. The prior weighs about as much
    as one value. Values are kept 2**-53 away from 0 and 1 in the fit.

    References
    ----------
    Song, Diethe, Kull & Flach (2019), Distribution calibration for regression, where the
    parameters depend on the input as well; Kull, Silva Filho & Flach (2017), Beta calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.batch import BetaCDF
    >>> calibrator = BetaCDF()
    >>> calibrator.learn_many(np.linspace(0.005, 0.995, 100) ** 2)  # labels are low too often
    >>> round(calibrator.calibrated(0.25), 2)
    0.5
    """

    _magic: ClassVar[bytes] = b"abersBF\x01"

    def __init__(self, window: int | None = None, *, refit: float = 0.01) -> None:
        super().__init__(window)
        self._refit, self._due, self._curve = share(refit), 1, BetaCurve()

    @property
    def refit(self) -> float:
        """Share of the values kept after which as many new values make a fit due."""
        return self._refit

    @property
    def a(self) -> float:
        """Weight of ln(u)."""
        return self._curve.a

    @property
    def b(self) -> float:
        """Weight of -ln(1 - u)."""
        return self._curve.b

    @property
    def c(self) -> float:
        """Log odds where the two logarithms cancel."""
        return self._curve.c

    @overload
    def distribution(self, base: PredictiveDistribution) -> PredictiveDistribution: ...
    @overload
    def distribution(self, base: Smooth) -> CalibratedDistribution: ...
    def distribution(
        self, base: PredictiveDistribution | Smooth
    ) -> PredictiveDistribution | CalibratedDistribution:
        """Calibrate a base distribution.

        Parameters
        ----------
        base
            A `PredictiveDistribution`, to map its merged CDF; or a continuous distribution
            with `logcdf`, `logsf`, `ppf`, `isf` and `logpdf`, such as a frozen one of
            `scipy.stats`.

        Returns
        -------
        PredictiveDistribution or CalibratedDistribution
            A step distribution for a base with steps, otherwise a continuous distribution. Later
            labels do not change it.

        Examples
        --------
        >>> from scipy import stats
        >>> calibrator = BetaCDF()
        >>> calibrator.learn_many([0.1, 0.2, 0.2, 0.3, 0.4])
        >>> calibrator.distribution(stats.norm(0.0, 1.0)).mean < 0.0
        True
        """
        if isinstance(base, PredictiveDistribution):
            return self._mapped_steps(base)
        return CalibratedDistribution(base, self._curve)

    def _map(self, u: Floats) -> Floats:
        return self._curve.mapped(*logs(u))

    def _keep(self, values: list[float]) -> None:
        super()._keep(values)
        self._due -= len(values)
        if self._due <= 0:
            self._curve = fitted(self._values())
            self._due = max(1, math.ceil(self._refit * len(self)))

    def _pieces(self) -> list[bytes]:
        return [*super()._pieces(), _FIT.pack(self._refit, self._due, *self._curve)]

    def _fill(self, pieces: list[bytes]) -> None:
        *held, fit = pieces
        refit, due, *curve = _FIT.unpack(fit)
        steep = not (np.abs(curve) < STEEPEST).all() or min(curve[:2]) < 0.0
        require(0 < due <= MAX_COUNT and not steep, "parameters")
        super()._fill(held)
        self._refit, self._due, self._curve = share(refit), due, BetaCurve(*curve)


class Continuous(Protocol):
    """A continuous distribution, such as a frozen one of `scipy.stats`."""

    def ppf(self, q: Any, /) -> Any:
        """Return the quantiles at an array of levels."""


class QuantileCalibration(PITMap):
    """Map a base CDF to the empirical frequency of labels below it, one map for all inputs.

    It learns the PIT value of each label, the base CDF at it, and maps u to the share of those
    that are at most u.

    Parameters
    ----------
    window
        Keep only the last `window` values; None keeps all.

    Raises
    ------
    ParameterError
        If the window is not a positive whole number.

    Notes
    -----
    **Guarantee.** None at a finite number of labels; with independent PIT values of one
    distribution the map is within sqrt(ln(2 / d) / (2 n)) of the true one everywhere, with
    probability 1 - d (Dvoretzky, Kiefer & Wolfowitz 1956, Massart 1990), so labels fall below a
    calibrated quantile nearly as often as its level says, on average over all inputs.

    With nothing learned, every probability is mapped to 1/2 and the distribution is vacuous.

    **Cost.** Learning and mapping a probability take a search in a sorted list; a distribution of
    a continuous base has a step for each distinct value kept.

    References
    ----------
    Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using calibrated
    regression, Algorithm 1.

    Examples
    --------
    >>> from abers.batch import QuantileCalibration
    >>> calibrator = QuantileCalibration()
    >>> calibrator.learn_many([0.4, 0.5, 0.5, 0.7])
    >>> calibrator.calibrated(0.5), calibrator.calibrated([0.1, 0.9]).tolist()
    (0.75, [0.0, 1.0])
    """

    _magic: ClassVar[bytes] = b"abersQC\x01"

    def distribution(self, base: PredictiveDistribution | Continuous) -> PredictiveDistribution:
        """Calibrate a base distribution.

        Parameters
        ----------
        base
            A `PredictiveDistribution`, to map its merged CDF; or a continuous distribution
            with `ppf`, such as a frozen one of `scipy.stats`, with the CDF that made the values.

        Returns
        -------
        PredictiveDistribution
            Its CDF is `calibrated` of the base CDF, everywhere.

        Raises
        ------
        ParameterError
            If the quantiles of the base are not numbers in order.

        Examples
        --------
        >>> from abers.regression import PredictiveDistribution
        >>> calibrator = QuantileCalibration()
        >>> calibrator.learn_many([0.2, 0.4, 0.6, 0.6])
        >>> base = PredictiveDistribution([1.0, 2.0, 3.0], [0.0, 0.3, 0.5, 1.0])
        >>> calibrator.distribution(base).cdf([1.0, 2.0, 3.0]).tolist()
        [0.25, 0.5, 1.0]
        """
        if isinstance(base, PredictiveDistribution):
            return self._mapped_steps(base) if len(self) else _vacuous(base.support)
        return self._steps(base) if len(self) else _vacuous(None)

    def _map(self, u: Floats) -> Floats:
        held = self._sorted
        if not held:
            return np.full(u.shape, 0.5)
        below = np.array([held.bisect_right(value) for value in u.ravel().tolist()], np.float64)
        return below.reshape(u.shape) / len(held)

    def _steps(self, base: Continuous) -> PredictiveDistribution:
        """Step at the base quantiles of the values: the base CDF reaches u from there on."""
        with self._lock:
            values = self._values()
        quantiles = np.where(values > 0.0, np.asarray(base.ppf(values), np.float64), -np.inf)
        if not (quantiles[:-1] <= quantiles[1:]).all() or np.isnan(quantiles).any():
            msg = f"the quantiles of {type(base).__name__} are not numbers in order; fix its ppf"
            raise ParameterError(msg)
        finite = np.unique(quantiles[np.isfinite(quantiles)])
        at_most = np.searchsorted(quantiles, np.append(-np.inf, finite), side="right")
        return PredictiveDistribution(finite, at_most / len(values))


def _vacuous(support: tuple[float, float] | None) -> PredictiveDistribution:
    return PredictiveDistribution([], [0.0], [1.0], support=support)
