"""Taxonomies for Venn predictors.

A category depends on an observation and on the bag, never on the order of the bag; where a choice
among equals would have to be made, all of them count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.batch import scorers
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import ParameterError
from abers.validation import count

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers
    from abers.batch.scorers import Objects, Scorer

__all__ = ["ByFeature", "IsotonicTaxonomy", "NearestNeighbours", "PredictedClass", "ScoreBins"]


class NearestNeighbours:
    """Category: how often each label is among the nearest neighbours.

    The neighbours of an observation are the others that are no further away (by Euclid) than the
    k-th nearest; at equal distances these may be more than k.

    Parameters
    ----------
    k
        Number of neighbours, at least 1.

    Raises
    ------
    ParameterError
        If k is not a positive whole number.

    Notes
    -----
    The objects are vectors of numbers, or numbers. A bag of n takes n² distances.

    Examples
    --------
    >>> NearestNeighbours()(np.array([1.0, 1.1, 5.0]), np.array([0, 1, 1]))
    [((1, 1),), ((0, 1),), ((1, 1),)]
    """

    def __init__(self, k: int = 1) -> None:
        self.k = count(k, "k", 1)

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> list[Hashable]:
        """Count the labels around each object."""
        distances = _distances(objects)
        np.fill_diagonal(distances, np.inf)
        names = labels.tolist()
        nth = min(self.k, len(names) - 1) - 1
        categories: list[Hashable] = []
        for row in distances:
            furthest = np.partition(row, nth)[nth] if nth >= 0 else -1.0
            near = Counter(names[i] for i in np.flatnonzero(row <= furthest))
            categories.append(tuple(sorted(near.items(), key=lambda item: names.index(item[0]))))
        return categories


class ScoreBins:
    """Category: the bin of a score by a fixed scorer.

    Parameters
    ----------
    edges
        Ascending inner edges; a score at an edge belongs to the bin above it.
    score
        What scores an array of objects; by default the objects are scores themselves.

    Raises
    ------
    ParameterError, ScoreError
        If the edges are not numbers that ascend.

    Examples
    --------
    >>> ScoreBins([0.2, 0.8])(np.array([0.1, 0.2, 0.9]), np.array([0, 1, 1])).tolist()
    [0, 1, 2]
    """

    def __init__(
        self, edges: ArrayLike, score: Callable[[Objects], ArrayLike] = np.asarray
    ) -> None:
        self._edges = scorers.scored(np.asarray, scorers.many(edges))
        if (np.diff(self._edges) <= 0).any():
            msg = "edges must ascend; sort them and drop those that are equal"
            raise ParameterError(msg)
        self._score = score

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> Integers:
        """Find the bin of each object's score."""
        scores = scorers.scored(self._score, objects)
        return np.searchsorted(self._edges, scores, side="right")


class PredictedClass:
    """Category: the class that a classifier predicts which was trained on the whole bag.

    Parameters
    ----------
    classifier
        A function that trains on objects and labels and returns a function from objects to
        classes. It must not depend on the order of the observations.

    Examples
    --------
    >>> def classifier(objects, labels):
    ...     middle = objects.mean()
    ...     return lambda objects: np.where(objects > middle, "high", "low")
    >>> PredictedClass(classifier)(np.array([1.0, 2.0, 9.0]), np.array([0, 0, 1])).tolist()
    ['low', 'low', 'high']
    """

    def __init__(self, classifier: Scorer) -> None:
        self._classifier = classifier

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> NDArray[Any]:
        """Train, then predict the training objects."""
        return np.asarray(self._classifier(objects, labels)(objects))


class ByFeature:
    """Category: a feature of the object itself, which makes the predictor a Mondrian one.

    Parameters
    ----------
    feature
        The column of the objects, or a function from one object to its category.

    Examples
    --------
    >>> ByFeature(0)(np.array([["de", "x"], ["fr", "y"]]), np.array([0, 1]))
    ['de', 'fr']
    >>> ByFeature(lambda text: len(text))(np.array(["ab", "abc"]), np.array([0, 1]))
    [2, 3]
    """

    def __init__(self, feature: int | Callable[[Any], Hashable]) -> None:
        self._feature = feature

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> list[Hashable]:
        """Read the feature of each object."""
        if callable(self._feature):
            return [self._feature(one) for one in objects]
        column: list[Hashable] = objects[:, self._feature].tolist()
        return column


class IsotonicTaxonomy:
    """Category: the value of the isotonic calibrator, which makes the predictor Venn-Abers.

    Parameters
    ----------
    scorer
        A function that trains on objects and labels and returns a function that scores objects;
        by default the objects are scores themselves, and the predictor is that of `VennAbers`.

    Notes
    -----
    For labels 0 and 1 alone (Vovk & Petej 2014, Proposition 1).

    Examples
    --------
    >>> IsotonicTaxonomy()(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 1, 0, 1])).tolist()
    [0, 1, 0, 1]
    """

    def __init__(self, scorer: Scorer = scorers.of_scores) -> None:
        self._scorer = scorer

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> Integers:
        """Find the block of each object's score."""
        scores = scorers.scored(self._scorer(objects, labels), objects)
        calibrator = VennAbers()
        calibrator.learn_many(scores, labels)
        return np.searchsorted(calibrator.hull().upper, scores)


def _distances(objects: Objects) -> Floats:
    """Squared Euclidean distances of all pairs, the same in either direction to the last bit."""
    try:
        columns = np.asarray(objects, dtype=np.float64).reshape(len(objects), -1).T
    except (TypeError, ValueError) as error:
        msg = f"objects must be vectors of numbers to have distances; {error}"
        raise ParameterError(msg) from None
    if not np.isfinite(columns).all():
        msg = "an object has a feature that is not a finite number; it has no nearest neighbour"
        raise ParameterError(msg)
    total = np.zeros((len(objects), len(objects)))
    for column in columns:
        total += (column[:, np.newaxis] - column) ** 2
    return total
