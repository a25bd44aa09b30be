"""Wrappers of river classifiers: one observation at a time, and mini-batches.

Governing rule: a mini-batch is scored whole before any of its rows is learned, as it was when it
was predicted; apart from that its rows are treated as single observations are.
"""

# ruff: noqa: ANN401, N803 - dataframes of any kind, in river's words, and whatever a learner takes

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from river import base
from river.utils import dataframe

from abers._arrays import unmasked
from abers.exceptions import ParameterError
from abers.learners._calibrated import Calibrated, Features

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

__all__ = ["Batch", "CalibratedClassifier"]

Target = base.typing.ClfTarget
Probabilities = dict[Target, float]
Intervals = dict[Target, tuple[float, float]]


class Batch(NamedTuple):
    """A mini-batch to be learned."""

    X: Any
    y: Any
    scores: Any  # as `_score_many` gave them
    weights: NDArray[Any] | None
    times: NDArray[Any] | None


class CalibratedClassifier(Calibrated, base.MiniBatchClassifier):
    """A classifier of river with a calibrator beside it."""

    classifier: Any  # of river, or a pipeline

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
        dict
            By label the merged probability (for log loss); or the pair (low, high).

        Raises
        ------
        ScoreError
            If the learner's score is not a finite number.
        TimeError
            If the time cannot be used.
        """
        if with_interval:
            return self._observe(x, id, time, kwargs, self._intervals)
        return self._observe(x, id, time, kwargs, self._probabilities)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Predict the probability of each label for the rows of a dataframe.

        Parameters
        ----------
        X
            A dataframe of features, a row an observation.
        **kwargs
            `time`, a number or one a row; others are handed on to the learner where its signature
            takes them.

        Returns
        -------
        dataframe
            A column a label, of the kind and with the index of `X`.

        Raises
        ------
        ScoreError, TimeError
            If a row cannot be used.
        ParameterError
            If there is an id: only single observations wait for their labels.
        """
        times = self._times(X, kwargs)
        columns = self._probabilities_many(self._score_many(X, kwargs), times)
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Predict the labels of the rows of a dataframe, as `predict_one` does for each.

        Parameters
        ----------
        X, **kwargs
            As `predict_proba_many` has them.

        Returns
        -------
        series
            The likeliest labels; None where none is known.

        Raises
        ------
        ScoreError, TimeError, ParameterError
            As `predict_proba_many`.
        """
        frame, times = dataframe.into_frame(X), self._times(X, kwargs)
        columns = self._probabilities_many(self._score_many(X, kwargs), times)
        labels = [*columns]
        best = np.argmax([*columns.values()], axis=0).tolist() if labels else [None] * len(frame)
        found = [None if i is None else labels[i] for i in best]
        return dataframe.to_native_series(found, name=None, like=frame)

    def learn_many(self, X: Any, y: Any, **kwargs: Any) -> None:
        """Learn a mini-batch: first the calibrator, then the learner.

        Parameters
        ----------
        X
            A dataframe of features, a row an observation.
        y
            A series of labels.
        **kwargs
            `w` and `time`, a number or one a row, as `learn_one` has them; others are handed on to
            the learner where its signature takes them.

        Raises
        ------
        LabelError, ScoreError, WeightError, TimeError
            If a row cannot be used; then nothing is learned.
        ParameterError
            If there is an id: only single observations wait for their labels.
        """
        times = self._times(X, kwargs)
        scores = self._score_many(X, {name: kwargs[name] for name in kwargs if name != "w"})
        weights = _column(kwargs.get("w"), len(dataframe.into_frame(X)))
        self._learn_many(Batch(X, y, scores, weights, times), self._forwarded("learn_many", kwargs))

    def _times(self, X: Any, kwargs: dict[str, Any]) -> NDArray[Any] | None:
        """Take the times out of the keywords, and refuse an id."""
        if kwargs.pop("id", None) is not None:
            msg = "a mini-batch has no id; predict and learn one by one what waits for its label"
            raise ParameterError(msg)
        return _column(kwargs.pop("time", None), len(dataframe.into_frame(X)))

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river import linear_model, preprocessing, tree  # noqa: PLC0415 - for river's tests

        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"classifier": tree.HoeffdingTreeClassifier()}

    def _unit_test_skips(self) -> set[str]:
        # A mini-batch is scored before its first row is learned, a loop scores each row after
        # the row before was learned: so the calibrators learn different scores, and should.
        return {"check_learn_many_matches_learn_one"}

    # What a wrapper brings of its own

    def _probabilities(self, scores: Any, time: float | None) -> Probabilities:
        """Calibrate and merge the scores of one observation."""
        raise NotImplementedError

    def _intervals(self, scores: Any, time: float | None) -> Intervals:
        """Calibrate the scores of one observation."""
        raise NotImplementedError

    def _score_many(self, X: Any, given: dict[str, Any]) -> Any:
        """Let the learner score the rows of a dataframe."""
        raise NotImplementedError

    def _probabilities_many(
        self,
        scores: Any,
        times: NDArray[Any] | None,
    ) -> dict[Target, NDArray[Any]]:
        """Calibrate and merge the scores of many observations: a column a label."""
        raise NotImplementedError

    def _learn_many(self, batch: Batch, given: dict[str, Any]) -> None:
        """Let the calibrator learn, which refuses what cannot be used, and then the learner."""
        raise NotImplementedError


def _column(given: Any, n: int) -> NDArray[Any] | None:
    """Make one a row of a number or a series."""
    return None if given is None else np.broadcast_to(np.asarray(unmasked(given)), (n,))
