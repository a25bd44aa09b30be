"""Beta calibration of a CDF: a smooth map of probabilities with three parameters.

As with all refitted baselines, a fit is due after a fixed share of the values then kept, and is a
function of those values alone.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, ClassVar, overload

import numpy as np

from abers.batch._beta_curve import BetaCurve, fitted, logs
from abers.batch._pit_map import PITMap
from abers.batch.continuous import CalibratedDistribution
from abers.calibration.baselines import STEEPEST, share
from abers.regression.distribution import PredictiveDistribution
from abers.serialization import MAX_COUNT, require

if TYPE_CHECKING:
    from abers.arrays import Floats
    from abers.batch.continuous import Smooth

__all__ = ["BetaCDF"]

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
        If an option is invalid.

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
