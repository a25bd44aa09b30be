"""A wrapper that turns a river regressor's predictions into predictive distributions.

The score is the regressor's own prediction. `predict_one` uses the calibrator only for an interval
or a median.
"""

# ruff: noqa: ANN401 - keywords of any model

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

from river import base
from river.conf.interval import Interval

from abers import validation
from abers.exceptions import ParameterError
from abers.regression import IVAPR
from abers.river._wrapper import CalibratedWrapper, Features
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Hashable

    from river.compose import Pipeline

    from abers.base import Calibrator
    from abers.mathematics import Capabilities
    from abers.regression import PredictiveDistribution

__all__ = ["VennAbersRegressor"]

_POINTS = ("learner", "median")


class VennAbersRegressor(CalibratedWrapper, base.Regressor):
    """Turn a river regressor into calibrated predictive distributions while it learns.

    The regressor's predictions go through an `IVAPR` calibrator. It learns past predictions with
    their labels, and maps a new prediction to a distribution of the label.

    Parameters
    ----------
    regressor
        Any regressor, or a pipeline that ends in one.
    confidence_level
        The level of the intervals, between 0 and 1.
    point
        What `predict_one` returns: the prediction of the "learner", or the "median" of the merged
        distribution.
    window, max_age, half_life, max_pending
        As in `VennAbersClassifier`; without a rule of forgetting, intervals take ever longer.
    support
        The two bounds of all labels, as in `IVAPR`.
    calibrator
        Another calibrator of distributions: ``ProtectedIVAPR(support=(low, high))`` predicts
        protected distributions. It learns in place, and has its own rule of forgetting and support.

    Attributes
    ----------
    calibrator
        The calibrator that learns.
    unmatched, dropped
        As in `VennAbersClassifier`.

    Raises
    ------
    ParameterError
        If `regressor` is not a river regressor, or another option is invalid.

    Notes
    -----
    **Guarantee.** None while the regressor learns: that of `IVAPR` holds, threshold by threshold,
    for a scorer that is fixed before the calibration data. In practice the coverage of intervals
    is close to their level. With a `ProtectedIVAPR`, and ids, the CRPS of the distributions exceeds
    that of the regressor's prediction plus its last residuals by at most `calibrator.price` in
    total, on any stream.

    **Few labels.** A quantile in the mass beyond the labels seen is infinite (see `IVAPR`). The
    regressor's prediction replaces a median that is infinite or unknown.

    **Delayed labels** and keywords are as in `VennAbersClassifier`. A prediction that is not a
    finite number raises a ScoreError.

    Examples
    --------
    >>> from abers.river import VennAbersRegressor
    >>> from river import datasets, linear_model, preprocessing
    >>> learner = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model = VennAbersRegressor(learner, window=300)
    >>> inside = 0
    >>> for x, y in datasets.TrumpApproval():
    ...     inside += y in model.predict_one(x, with_interval=True)
    ...     model.learn_one(x, y)
    >>> round(inside / 1001, 2)
    0.96
    >>> model.predict_distribution_one(x).quantile([0.1, 0.5, 0.9]).round(1).tolist()
    [41.2, 41.7, 42.1]
    """

    _model_kind = "regressor"
    _kind = "a calibrator of distributions from scores that are numbers, such as IVAPR()"

    def __init__(  # noqa: PLR0913, PLR0917 - an option each, those of `IVAPR` in its order
        self,
        regressor: base.Regressor | Pipeline,
        confidence_level: float = 0.9,
        point: str = "learner",
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        support: tuple[float, float] | None = None,
        max_pending: int = 100_000,
        calibrator: Calibrator[Any, float, Any, Any] | None = None,
    ) -> None:
        if point not in _POINTS:
            msg = f"point={shown(point)} is unknown; there are {' and '.join(_POINTS)}"
            raise ParameterError(msg)
        self.regressor: Any = regressor
        self.confidence_level = validation.fraction(confidence_level, "confidence_level")
        self.point = point
        self.window, self.max_age, self.half_life = window, max_age, half_life
        self.support = support
        self.max_pending = max_pending
        if calibrator is not None and support is not None:
            msg = "calibrator has its own support; leave out support"
            raise ParameterError(msg)
        self._choose(calibrator, lambda: IVAPR(window, max_age, half_life, support=support))

    @staticmethod
    def _fits(able: Capabilities) -> bool:
        return (able.task, able.answer, able.score) == ("regression", "distribution", "number")

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @overload
    def predict_one(
        self,
        x: Features,
        with_interval: Literal[False] = ...,
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,
    ) -> float: ...
    @overload
    def predict_one(
        self,
        x: Features,
        with_interval: Literal[True],
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,
    ) -> Interval: ...
    def predict_one(
        self,
        x: Features,
        with_interval: bool = False,  # noqa: FBT001, FBT002 - as in river.conf
        *,
        id: Hashable | None = None,  # noqa: A002 - the field's word
        time: float | None = None,
        **kwargs: Any,
    ) -> float | Interval:
        """Predict a number, or the central interval of the merged distribution.

        Parameters
        ----------
        x
            The features.
        with_interval
            Whether to return an interval.
        id, time, **kwargs
            As in `VennAbersClassifier.predict_proba_one`.

        Returns
        -------
        float or river.conf.interval.Interval
            The point, or the interval, with infinite ends while there are too few labels.

        Raises
        ------
        ScoreError, TimeError
            If the regressor's prediction is not a finite number, or the time is invalid.
        """
        if with_interval:
            return self._observe(x, id, time, kwargs, self._interval)
        return self._observe(x, id, time, kwargs, self._point)

    def predict_distribution_one(
        self,
        x: Features,
        *,
        id: Hashable | None = None,  # noqa: A002 - the field's word
        time: float | None = None,
        **kwargs: Any,
    ) -> PredictiveDistribution:
        """Predict the distribution of the label.

        Parameters and errors are those of `predict_one`.

        Returns
        -------
        PredictiveDistribution
            The band of predictive CDFs and its merge; vacuous before the first label.
        """
        return self._observe(x, id, time, kwargs, self._distribution)

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river import linear_model, preprocessing, tree  # noqa: PLC0415 - for river's tests

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}
        yield {"regressor": tree.HoeffdingTreeRegressor(), "point": "median", "window": 20}

    def _label(self, y: Any) -> float:
        return validation.real(y)

    def _score(self, x: Features, keywords: dict[str, Any]) -> Any:
        return self.regressor.predict_one(x, **self._forwarded.accepted("predict_one", keywords))

    def _distribution(
        self, score: float, time: float | None, number: int | None
    ) -> PredictiveDistribution:
        found: PredictiveDistribution = self._calibrator.predict_one(score, time, number=number)
        return found

    def _interval(self, score: float, time: float | None, number: int | None) -> Interval:
        tail = (1.0 - self.confidence_level) / 2.0
        return Interval(*self._quantiles(score, [tail, 1.0 - tail], time, number))

    def _point(self, score: float, time: float | None, number: int | None) -> float:
        score = validation.score(score)
        if self.point == "median" or self._stateful:
            (median,) = self._quantiles(score, [0.5], time, number)
            if self.point == "median" and math.isfinite(median):
                return median
        return score

    def _quantiles(
        self, score: float, levels: list[float], time: float | None, number: int | None
    ) -> list[float]:
        """Return quantiles; `IVAPR` finds a few without the whole distribution."""
        if isinstance(self._calibrator, IVAPR):
            return [self._calibrator.quantile_one(score, level, time) for level in levels]
        found: list[float] = self._distribution(score, time, number).quantile(levels).tolist()
        return found
