"""A river regressor with a calibrator that gives predictive distributions.

Governing rule: the score is the regressor's own prediction; the calibrator is asked only where
more than that is wanted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

from river import base
from river.conf.interval import Interval

from abers._shown import shown
from abers.calibration import _checks
from abers.exceptions import ParameterError
from abers.learners._calibrated import Calibrated, Features
from abers.regression import IVAPR

if TYPE_CHECKING:
    from collections.abc import Hashable

    from river.compose import Pipeline

    from abers.regression import PredictiveDistribution

__all__ = ["VennAbersRegressor"]

_POINTS = ("learner", "median")


class VennAbersRegressor(Calibrated, base.Regressor):
    """Turn a river regressor into calibrated predictive distributions while it learns.

    Beside the regressor stands an `IVAPR` calibrator, which learns the regressor's predictions and
    the labels that came, and answers a prediction by a distribution of the label.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is kept,
    and the time of an interval grows with it.

    Parameters
    ----------
    regressor
        Any regressor, or a pipeline that ends in one.
    confidence_level
        The level of the intervals, between 0 and 1.
    point
        What `predict_one` gives: the prediction of the "learner", or the "median" of the merged
        distribution.
    window
        Keep only the last `window` calibration observations.
    max_age
        Keep only those whose event time, the keyword `time`, is at most `max_age` before the
        newest time seen.
    half_life
        Let the weight of an observation halve every `half_life` of event time.
    support
        The two ends between which all labels lie, as `IVAPR` has them.
    max_pending
        How many ids may wait for their label. With one more the oldest is dropped, and counted in
        `dropped`.

    Attributes
    ----------
    unmatched
        Number of labels whose id was not waiting: they taught the regressor alone.
    dropped
        Number of ids that were dropped because more than `max_pending` waited.

    Raises
    ------
    ParameterError
        If an option makes no sense.

    Notes
    -----
    **Guarantee.** None while the regressor learns: the one of `IVAPR` holds, threshold by
    threshold, for a scorer fixed before the calibration data. The coverage of intervals is close
    to their level in practice, and no more.

    **Few labels.** A quantile that lies in the mass beyond the labels seen is infinite (see
    `IVAPR`); a median that is, or of which nothing is known, is replaced by the learner's
    prediction.

    **Labels that come later** and keywords are as in `VennAbersClassifier`. A prediction that is
    no finite number is refused by a ScoreError.

    References
    ----------
    Petej (2018), Inductive Venn-Abers prediction for regression.

    Examples
    --------
    >>> from abers.learners import VennAbersRegressor
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
    ) -> None:
        if point not in _POINTS:
            msg = f"point={shown(point)} is unknown; there are {' and '.join(_POINTS)}"
            raise ParameterError(msg)
        if not 0.0 < confidence_level < 1.0:
            msg = f"confidence_level={shown(confidence_level)} does not lie between 0 and 1"
            raise ParameterError(msg)
        self.regressor: Any = regressor
        self.confidence_level = confidence_level
        self.point = point
        self.window = window
        self.max_age = max_age
        self.half_life = half_life
        self.support = support
        self.max_pending = max_pending
        self._start(IVAPR(window, max_age, half_life, support=support), max_pending)

    @property
    def _wrapped_model(self) -> Any:  # noqa: ANN401 - a regressor or a pipeline
        return self.regressor

    @overload
    def predict_one(
        self,
        x: Features,
        with_interval: Literal[False] = ...,
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,  # noqa: ANN401 - whatever the learner takes
    ) -> float: ...
    @overload
    def predict_one(
        self,
        x: Features,
        with_interval: Literal[True],
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,  # noqa: ANN401 - likewise
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
        id
            Keep the score under this id, for the label that comes with it. An id that waits
            already keeps its first score, and is answered by it. Without an id the prediction has
            no side effect.
        time
            Event time of the observation, with `max_age` or `half_life`; by default the newest
            time seen.
        **kwargs
            Handed on to the learner where its signature takes them.

        Returns
        -------
        float or river.conf.interval.Interval
            The point; or the interval, with infinite ends as long as the labels are too few.

        Raises
        ------
        ScoreError
            If the learner's prediction is not a finite number.
        TimeError
            If the time cannot be used.
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
        **kwargs: Any,  # noqa: ANN401 - whatever the learner takes
    ) -> PredictiveDistribution:
        """Predict the distribution of the label.

        Parameters
        ----------
        x, id, time, **kwargs
            As `predict_one` has them.

        Returns
        -------
        PredictiveDistribution
            The band of predictive CDFs and its merge; vacuous as long as nothing is learned.

        Raises
        ------
        ScoreError, TimeError
            As `predict_one`.
        """
        found: PredictiveDistribution
        found = self._observe(x, id, time, kwargs, self._calibrator.predict_one)
        return found

    @classmethod
    def _unit_test_params(cls) -> Any:  # noqa: ANN401 - an iterator of parameters
        from river import linear_model, preprocessing, tree  # noqa: PLC0415 - for river's tests

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}
        yield {"regressor": tree.HoeffdingTreeRegressor(), "point": "median", "window": 20}

    def _label(self, y: Any) -> float:  # noqa: ANN401 - checked here
        return _checks.real(y)

    def _score(self, x: Features, given: dict[str, Any]) -> Any:  # noqa: ANN401 - checked later
        if given:
            given = self._forwarded("predict_one", given)
        return self.regressor.predict_one(x, **given)

    def _interval(self, score: float, time: float | None) -> Interval:
        tail = (1.0 - self.confidence_level) / 2.0
        return Interval(self._quantile(score, tail, time), self._quantile(score, 1.0 - tail, time))

    def _point(self, score: float, time: float | None) -> float:
        score = _checks.score(score)
        median = self._quantile(score, 0.5, time) if self.point == "median" else score
        return median if math.isfinite(median) else score

    def _quantile(self, score: float, q: float, time: float | None) -> float:
        found: float = self._calibrator.quantile_one(score, q, time)
        return found
