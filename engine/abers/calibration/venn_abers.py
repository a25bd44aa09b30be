"""The incremental Venn-Abers calibrator: a calibration set of the core, and the isotonic fit.

Methods of `VennAbers` and `UnboundedIVAR` that the native core answers where a call is plain. A
plain call has no option, and nothing is wrong with it. All others go on to the method that is
decorated, which alone checks its arguments and words its errors. On the reference it takes all.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from abers import validation
from abers.arrays import ONE
from abers.backends import backend, core
from abers.base import Capabilities
from abers.calibration import sets
from abers.calibration.intervals import VennInterval, VennIntervals
from abers.calibration.sets import ALL, TOO_HEAVY, HeldCalibrator, checked_rates
from abers.mathematics import Forgetting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.calibration.sets import LabelRates
    from abers.mathematics import Steps

__all__ = ["IsotonicFit", "VennAbers", "learns", "predicts"]

_Method = TypeVar("_Method", bound="Callable[..., object]")


def predicts(answer: type) -> Callable[[_Method], _Method]:
    """Return a decorator of a `predict_one` that predicts objects of a class of numbers."""

    def decorated(general: _Method) -> _Method:
        if backend() != "native":
            return general
        return cast("_Method", update_wrapper(core.plain_predict(general, answer), general))

    return decorated


def learns(general: _Method) -> _Method:
    """Decorate a `learn_one`."""
    if backend() != "native":
        return general
    return cast("_Method", update_wrapper(core.plain_learn(general), general))


_new_tuple = tuple.__new__  # makes a VennInterval of a pair, without checking it again


class IsotonicFit(NamedTuple):
    """The isotonic regression of label on score, a row a block.

    Attributes
    ----------
    lower, upper
        Smallest and largest score of each block, ascending.
    weight
        Total weight of each block.
    positives
        Weight of label 1 in each block.
    value
        The fitted probability, positives / weight, strictly increasing.
    """

    lower: Floats
    upper: Floats
    weight: Floats
    positives: Floats
    value: Floats


class VennAbers(HeldCalibrator[float, int, VennInterval, VennIntervals]):
    """Calibrate the scores of any binary model, one labelled observation at a time.

    The inductive Venn-Abers predictor (IVAP) with an exact incremental update: a prediction costs
    about a microsecond whether a thousand or a million observations are kept, and equals the
    definition to the last bit.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept.

    Parameters
    ----------
    window
        Keep only the last `window` learned observations.
    max_age
        Keep only observations with an event time at most `max_age` before the newest time seen,
        in the unit of the times.
    half_life
        Halve the weight of an observation every `half_life` of event time; after 30 half-lives it
        is dropped.
    label_rates
        Shares of the labels of class 0, and of class 1, that ever come, each from 1e-6 to 1, where
        these are known. A label of class y is then learned with its weight over the rate of y, and
        each end of a prediction is that of a query with the weight of its own class. The total
        weight is bounded (see Weights): with a rate of 1e-6, and without forgetting, 8,589 labels
        of its class fill the calibrator.

    Raises
    ------
    ParameterError
        If more than one of the first three is given, one is not positive, or the rates are not two
        shares.

    Notes
    -----
    **Guarantee.** With a scorer fixed before the calibration data and exchangeable observations of
    equal weight, one of `p0` and `p1` is perfectly calibrated at every step, also with a `window`
    (Vovk & Petej 2014, Theorem 1). A half-life, a scorer that keeps learning, or drift void the
    guarantee. It is marginal at each step, not conditional on the past.

    **Labels that are missing by class.** The same holds with `label_rates` r if the label of an
    observation of class y comes with probability r_y, at any score. It is then about all
    observations, with labels and without. A label of class y that is late must be so by itself, not
    by its class: where delays depend on the class, learn labels at one age of their observations.

    **Unequal weights** keep the guarantee if they are the known ratio w = dP/dQ of the distribution
    P of queries to Q, that of labelled observations: learn with w(s, y), and take `p0` of a query
    with weight w(s, 0) and `p1` of one with w(s, 1) (weighted exchangeability, Tibshirani et al.
    2019). Other weights void it.

    **Ties** in the score are pooled; the order of arrival never matters.

    **Weights** are rounded to multiples of 2**-30 on entry, with a rate once more when they are
    divided by it; all sums are exact, and may total 2**33 (2**28 with a half-life).

    **Time.** A prediction at a time ignores observations that are too old by then, but does not
    drop them. A label too old to be kept is counted in `late` and not learned. Predictions with
    times that jump back and forth over a range move the observations of that range out and in each
    time.

    **Memory.** Between two labels `predict_many` keeps a table of the steps of both probabilities:
    at most 24 bytes for each distinct score, and mostly far less. The next label drops it. It is
    neither saved nor copied.

    **Threads** may share a calibrator: every call is atomic, and a call on arrays releases the
    interpreter lock while it runs.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 4; Vovk, Petej & Fedorova (2015),
    Large-scale probabilistic predictors with and without guarantees of validity, section 3;
    Tibshirani, Barber, Candes & Ramdas (2019), Conformal prediction under covariate shift.

    Examples
    --------
    >>> from abers import VennAbers
    >>> calibrator = VennAbers()
    >>> for score, label in [(0.1, 0), (0.4, 1), (0.35, 0), (0.8, 1)]:
    ...     calibrator.learn_one(score, label)
    >>> calibrator.predict_one(0.5)
    VennInterval(p0=0.5, p1=1.0)
    >>> round(calibrator.predict_one(0.5).merged, 4)
    0.6667

    Every second label 0 never comes:

    >>> half = VennAbers(label_rates=(0.5, 1.0))
    >>> half.learn_many([0.5] * 30, [0] * 10 + [1] * 20)
    >>> half.predict_one(0.5)
    VennInterval(p0=0.47619047619047616, p1=0.5121951219512195)
    """

    capabilities = Capabilities(task="binary", options=("label_rates",))
    _magic: ClassVar[bytes] = sets.MAGIC

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        label_rates: Sequence[float] = ALL,
    ) -> None:
        self._rates = checked_rates(label_rates)
        super().__init__(window, max_age, half_life)

    def _start(self) -> None:
        self._held: CalibrationSet = sets.empty(self._forgetting, self._rates)

    def _forget_by(self, rule: Forgetting) -> None:
        super()._forget_by(rule)
        self._heaviest = int(self._heaviest * min(self._rates))

    @property
    def label_rates(self) -> LabelRates:
        """Shares of the labels of class 0, and of class 1, that come."""
        return self._rates

    def _options(self) -> list[str]:
        rates = [] if self._rates == ALL else [f"label_rates={self._rates}"]
        return [*super()._options(), *rates]

    # The core answers plain calls: the checks of the base class take longer than the prediction.

    @predicts(VennInterval)
    def predict_one(
        self,
        score: float,
        time: float | None = None,
        weight: float = 1.0,
        *,
        number: float | None = None,
    ) -> VennInterval:
        """Predict for one score, as all calibrators do: `abers.base.Calibrator.predict_one`."""
        return super().predict_one(score, time, weight, number=number)

    @learns
    def learn_one(
        self,
        score: float,
        label: int,
        *,
        weight: float = 1.0,
        time: float | None = None,
        number: float | None = None,
    ) -> None:
        """Learn one observation, as all calibrators do: `abers.base.Calibrator.learn_one`."""
        super().learn_one(score, label, weight=weight, time=time, number=number)

    def _predict(self, score: float, weight: int, time: float, number: int) -> VennInterval:
        return _new_tuple(VennInterval, self._held.predict(score, weight, time))

    def _take(self, steps: Steps, held: Integers | None) -> tuple[VennIntervals, int]:
        p0, p1, done = sets.pairs(self._held, steps, held)
        return VennIntervals(p0, p1), done

    def _must_copy(self, steps: Steps) -> bool:
        heavy = sets.may_overflow(self._held, steps, min(self._rates))
        return bool(self._forgetting) and heavy

    def _overflow(self) -> str:
        return super()._overflow() if self._rates == ALL else self._forgetting.too_heavy(TOO_HEAVY)

    def _save(self) -> bytes:
        return sets.dump(self._held)

    def _load(self, payload: memoryview) -> None:
        self._held = sets.load(payload)
        self._rates = self._held.label_rates
        self._forget_by(Forgetting.of(self._held))

    # The fit itself

    def isotonic(self, score: float) -> float | None:
        """Return the value of the isotonic regression of label on score.

        Parameters
        ----------
        score
            Any finite number.

        Returns
        -------
        float or None
            The fitted value of the block that covers the score; linear between two blocks,
            constant outside; None without observations.

        Raises
        ------
        ScoreError
            If the score is not a finite number.

        Examples
        --------
        >>> calibrator = VennAbers()
        >>> calibrator.learn_many([0.0, 1.0], [0, 1])
        >>> calibrator.isotonic(0.25)
        0.25
        """
        score = validation.score(score)
        with self._lock:
            return sets.fitted(self._held, score)

    def hull(self) -> IsotonicFit:
        """Return the isotonic regression, the lower hull of the cumulative sum diagram.

        Returns
        -------
        IsotonicFit
            Arrays of shape (number of blocks,).

        Examples
        --------
        >>> calibrator = VennAbers()
        >>> calibrator.learn_many([0.1, 0.2, 0.3], [1, 0, 1])
        >>> calibrator.hull().value.tolist()
        [0.5, 1.0]
        """
        with self._lock:
            count = self._held.block_count()
            lower, upper, value = np.empty(count), np.empty(count), np.empty(count)
            weight, positives = np.empty(count, np.int64), np.empty(count, np.int64)
            self._held.blocks(lower, upper, weight, positives, value)
        return IsotonicFit(lower, upper, weight / ONE, positives / ONE, value)
