"""The base class of the wrappers of river classifiers: single observations and mini-batches.

A mini-batch is scored as a whole before any of its rows is learned, as it is at prediction time.
Otherwise its rows are treated as single observations. No model gets a mini-batch without rows: the
mean gradient of none is NaN, which some of river's models keep permanently.
"""

# ruff: noqa: ANN401, N803 - dataframes of any kind, named as in river, and keywords of any model

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from river import base
from river.utils import dataframe

from abers.arrays import unmasked
from abers.exceptions import ParameterError
from abers.river._wrapper import CalibratedWrapper, Features

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

__all__ = ["CalibratedClassifier", "MiniBatch"]

Target = base.typing.ClfTarget
Probabilities = dict[Target, float]
Intervals = dict[Target, tuple[float, float]]


class MiniBatch(NamedTuple):
    """A mini-batch to learn."""

    X: Any
    y: Any
    scores: Any  # as `_score_many` returned them
    weights: NDArray[Any] | None
    times: NDArray[Any] | None


class CalibratedClassifier(CalibratedWrapper, base.MiniBatchClassifier):
    """A river classifier with a calibrator."""

    classifier: Any  # of river, or a pipeline
    _model_kind = "classifier"

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @overload
    def predict_proba_one(
        self,
        x: Features,
        with_interval: Literal[False] = ...,
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,
    ) -> Probabilities: ...
    @overload
    def predict_proba_one(
        self,
        x: Features,
        with_interval: Literal[True],
        *,
        id: Hashable | None = ...,
        time: float | None = ...,
        **kwargs: Any,
    ) -> Intervals: ...
    def predict_proba_one(
        self,
        x: Features,
        with_interval: bool = False,  # noqa: FBT001, FBT002 - as in river.conf
        *,
        id: Hashable | None = None,  # noqa: A002 - the field's word
        time: float | None = None,
        **kwargs: Any,
    ) -> Probabilities | Intervals:
        """Predict the probability of each label, or an interval for it.

        Parameters
        ----------
        x
            The features.
        with_interval
            Whether to return intervals.
        id
            Store the score under this id until its label arrives. A pending id keeps its first
            score, and is predicted with it. Without an id the prediction has no side effect.
        time
            Event time of the observation, with `max_age` or `half_life`; by default the newest
            time seen.
        **kwargs
            Passed to the model where its signature takes them.

        Returns
        -------
        dict
            By label the calibrated probability, or the pair (low, high).

        Raises
        ------
        ScoreError, TimeError
            If the model's score is not a finite number, or the time is invalid.
        """
        if with_interval:
            return self._observe(x, id, time, kwargs, self._intervals)
        return self._observe(x, id, time, kwargs, self._probabilities)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Predict the probability of each label for the rows of a dataframe.

        Parameters
        ----------
        X
            A dataframe of features, one row for each observation.
        **kwargs
            `time`, a number or a column; others are passed to the model where its signature takes
            them.

        Returns
        -------
        dataframe
            A column for each label, of the kind and with the index of `X`.

        Raises
        ------
        ScoreError, TimeError
            If a row is invalid.
        ParameterError
            If an id is given: only single observations have pending scores.
        """
        times = self._times(X, kwargs)
        columns = self._probabilities_many(self._score_many(X, kwargs), times)
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Predict the labels of the rows of a dataframe, as `predict_one` does for each.

        Parameters and errors are those of `predict_proba_many`.

        Returns
        -------
        series
            The likeliest labels; None where no label is known.
        """
        frame, times = dataframe.into_frame(X), self._times(X, kwargs)
        columns = self._probabilities_many(self._score_many(X, kwargs), times)
        labels = [*columns]
        best = np.argmax([*columns.values()], axis=0).tolist() if labels else [None] * len(frame)
        found = [None if i is None else labels[i] for i in best]
        return dataframe.to_native_series(found, name=None, like=frame)

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn a mini-batch: first the calibrator, then the model.

        One without rows changes nothing.

        Parameters
        ----------
        X
            A dataframe of features, one row for each observation.
        y
            A series of labels.
        **kwargs
            `w` and `time`, a number or a column, as in `learn_one`; others are passed to the model
            where its signature takes them.

        Raises
        ------
        LabelError, ScoreError, WeightError, TimeError
            If a row is invalid; nothing is learned then.
        ParameterError
            If there is an id: only single observations wait for their labels. Or if there is not
            one label for each row.
        """
        times = self._times(X, kwargs)
        rows, labels = len(dataframe.into_frame(X)), len(dataframe.into_series(y))
        if labels != rows:
            msg = f"y has {labels} rows, X has {rows}; give one of each per row"
            raise ParameterError(msg)
        if not rows:
            return
        scores = self._score_many(X, {name: kwargs[name] for name in kwargs if name != "w"})
        weights = _column(kwargs.get("w"), rows)
        self._learn_many(
            MiniBatch(X, y, scores, weights, times), self._forwarded.accepted("learn_many", kwargs)
        )

    def _times(self, X: Any, kwargs: dict[str, Any]) -> NDArray[Any] | None:
        """Remove the times from the keywords and return them; raise an error for an id."""
        if kwargs.pop("id", None) is not None:
            msg = "a mini-batch has no id; predict and learn observations with ids one by one"
            raise ParameterError(msg)
        return _column(kwargs.pop("time", None), len(dataframe.into_frame(X)))

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river import linear_model, preprocessing, tree  # noqa: PLC0415 - for river's tests

        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"classifier": tree.HoeffdingTreeClassifier()}

    def _unit_test_skips(self) -> set[str]:
        # A mini-batch is scored before its first row is learned. A loop scores each row after the
        # row before it was learned. So the calibrators learn different scores, by design.
        return {"check_learn_many_matches_learn_one"}

    # Methods of the wrappers

    def _probabilities(self, scores: Any, time: float | None, number: int | None) -> Probabilities:
        """Calibrate the scores of one observation: one probability for each label."""
        raise NotImplementedError

    def _intervals(self, scores: Any, time: float | None, number: int | None) -> Intervals:
        """Calibrate the scores of one observation."""
        raise NotImplementedError

    def _score(self, x: Features, keywords: dict[str, Any]) -> Any:
        keywords = self._forwarded.accepted("predict_proba_one", keywords)
        return self.classifier.predict_proba_one(x, **keywords)

    def _score_many(self, X: Any, keywords: dict[str, Any]) -> Any:
        """Return the scores of the rows of a dataframe, as the calibrator takes them."""
        raise NotImplementedError

    def _ask_many(self, model: Any, X: Any, keywords: dict[str, Any]) -> Any:
        """Return a model's probabilities of the rows of a dataframe; without rows it is not asked.

        Columns of other predictions do no harm where there are no rows.
        """
        if not len(dataframe.into_frame(X)):
            return X
        return model.predict_proba_many(
            X, **self._forwarded.accepted("predict_proba_many", keywords)
        )

    def _probabilities_many(
        self, scores: Any, times: NDArray[Any] | None
    ) -> dict[Target, NDArray[Any]]:
        """Calibrate the scores of many observations: one column for each label."""
        raise NotImplementedError

    def _learn_many(self, batch: MiniBatch, keywords: dict[str, Any]) -> None:
        """Let the calibrator learn, which raises for invalid values, and then the model."""
        raise NotImplementedError


def _column(value: Any, n: int) -> NDArray[Any] | None:
    """Return a number or a series as a column of n values."""
    return None if value is None else np.broadcast_to(np.asarray(unmasked(value)), (n,))
