"""Venn predictors: the frequencies of the labels in the object's own category, by any taxonomy.

Scorers that are trained by the predictors themselves. A scorer is a function of a training bag that
returns a function of objects; any library's classifier becomes one in a line, and this package
imports none.

The object is put into the bag with each label it may have, a taxonomy sorts the whole bag into
categories, and the frequencies in the object's category, itself among them, are the prediction for
that label.

A category depends on an observation and on the bag, never on the order of the bag; where a choice
among equals would have to be made, all of them count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.calibration.intervals import VennInterval
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import InputError, LabelError, ParameterError
from abers.serialization import CopiedWhole
from abers.validation import count, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats, Integers

__all__ = [
    "ByFeature",
    "IsotonicTaxonomy",
    "NearestNeighbours",
    "Objects",
    "PredictedClass",
    "ScoreBins",
    "Scorer",
    "Taxonomy",
    "VennPrediction",
    "VennPredictor",
    "extended",
    "many",
    "of_scores",
    "scored",
]

Objects: TypeAlias = "NDArray[Any]"
"""Objects along the first axis, whatever one of them is."""


class Scorer(Protocol):
    """Train on a bag, and return a function from objects to scores.

    The result must not depend on the order of the observations; where training draws numbers, fix
    their seed.

    Examples
    --------
    ::

        def scorer(objects, labels):
            model = LogisticRegression().fit(objects, labels)
            return lambda objects: model.decision_function(objects)
    """

    def __call__(self, objects: Objects, labels: NDArray[Any], /) -> Callable[[Objects], ArrayLike]:
        """Train on objects and labels of shape (n, ...) and (n,)."""


def of_scores(_objects: Objects, _labels: NDArray[Any]) -> Callable[[Objects], ArrayLike]:
    """Return the scorer of objects that are scores themselves."""
    return np.asarray


def many(objects: ArrayLike) -> Objects:
    """Check an array of objects."""
    try:
        array = np.asarray(unmasked(objects))
    except ValueError as error:  # rows of different lengths
        msg = f"objects must have one shape; {error}"
        raise ParameterError(msg) from None
    if array.ndim == 0:
        msg = f"objects must be an array, one object a row, not {array!r}"
        raise ParameterError(msg)
    return array


def extended(objects: Objects, more: Objects) -> Objects:
    """Put objects of the same shape behind the others."""
    if not len(objects):
        return more
    if more.shape[1:] != objects.shape[1:]:
        msg = f"an object has shape {more.shape[1:]}, those learned have {objects.shape[1:]}"
        raise ParameterError(msg)
    return np.concatenate([objects, more])


def scored(score: Callable[[Objects], ArrayLike], objects: Objects) -> Floats:
    """Score objects, and check that there is a finite score for each."""
    try:
        column = validation.scores(score(objects))
    except InputError as error:
        msg = f"the scorer's scores cannot be used: {error}"
        raise type(error)(msg) from None
    if len(column) != len(objects):
        msg = f"the scorer gave {len(column)} scores for {len(objects)} objects; give one of each"
        raise ParameterError(msg)
    return column


_BINARY = 2


class Taxonomy(Protocol):
    """Sort a bag of labelled objects into categories.

    The category of an observation may depend on all of the bag, but not on the order of the bag:
    if the observations change places, so do their categories, and nothing else happens.

    Examples
    --------
    ::

        def taxonomy(objects, labels):  # three bins of the first feature
            return np.searchsorted([0.3, 0.6], objects[:, 0])
    """

    def __call__(
        self, objects: Objects, labels: NDArray[Any], /
    ) -> Sequence[Hashable] | NDArray[Any]:
        """Return the category of each of n objects, from arrays of shape (n, ...) and (n,)."""


class VennPrediction(NamedTuple):
    """A distribution over the labels for each label that the object may have.

    Attributes
    ----------
    labels
        The k possible labels.
    rows
        k rows of k probabilities: row i is the distribution if the object has label i.

    Examples
    --------
    >>> prediction = VennPrediction((0, 1), ((0.75, 0.25), (0.5, 0.5)))
    >>> prediction.interval(0)
    (0.5, 0.75)
    >>> prediction.binary
    VennInterval(p0=0.25, p1=0.5)
    """

    labels: tuple[Hashable, ...]
    rows: tuple[tuple[float, ...], ...]

    def interval(self, label: Hashable) -> tuple[float, float]:
        """Smallest and largest probability of a label.

        Parameters
        ----------
        label
            One of `labels`.

        Returns
        -------
        low, high
            The ends.

        Raises
        ------
        LabelError
            If it is not among the labels.
        """
        if label not in self.labels:
            msg = f"label {shown(label)} is not among {shown(list(self.labels))}"
            raise LabelError(msg)
        column = [row[self.labels.index(label)] for row in self.rows]
        return min(column), max(column)

    @property
    def binary(self) -> VennInterval:
        """Of two labels, the pair (p0, p1) of probabilities of the second."""
        if len(self.labels) != _BINARY:
            msg = f"a pair needs two labels, not {len(self.labels)}; use interval(label)"
            raise ParameterError(msg)
        return VennInterval(self.rows[0][1], self.rows[1][1])


class VennPredictor(CopiedWhole):
    """Predict by the label frequencies in a category, for any taxonomy.

    Parameters
    ----------
    taxonomy
        What sorts a bag of labelled objects into categories; `abers.batch` has several.
    labels
        All possible labels, at least two, in the order of the prediction.

    Raises
    ------
    ParameterError
        If there are not two different labels.

    Notes
    -----
    **Guarantee.** With exchangeable observations and a taxonomy that ignores their order, the
    distribution that belongs to the true label is perfectly calibrated: of two labels, one of
    `p0` and `p1` is (Vovk & Petej 2014, Theorem 1). It is marginal, not conditional on the past.

    **Cost.** A prediction applies the taxonomy to the whole bag once for each label.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors, section 2; Vovk, Gammerman & Shafer (2005),
    Algorithmic learning in a random world, chapter 6.

    Examples
    --------
    >>> from abers.batch import NearestNeighbours, VennPredictor
    >>> predictor = VennPredictor(NearestNeighbours(), labels=("no", "yes"))
    >>> predictor.learn_many([[1.0], [1.5], [4.0], [4.2]], ["no", "no", "yes", "yes"])
    >>> prediction = predictor.predict_one([3.0])
    >>> prediction.rows
    ((0.3333333333333333, 0.6666666666666666), (0.0, 1.0))
    >>> prediction.interval("yes")
    (0.6666666666666666, 1.0)
    """

    def __init__(self, taxonomy: Taxonomy, labels: Iterable[Hashable] = (0, 1)) -> None:
        self._taxonomy = taxonomy
        self._labels = tuple(labels)
        if len(self._labels) < _BINARY or len(set(self._labels)) < len(self._labels):
            msg = f"labels={shown(list(self._labels))}: give at least two, all different"
            raise ParameterError(msg)
        self._names = _array(self._labels)
        self._objects: Objects = np.empty((0,))
        self._numbers: list[int] = []  # of the labels learned

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The possible labels."""
        return self._labels

    def __len__(self) -> int:
        """Count the observations kept."""
        return len(self._numbers)

    def __bool__(self) -> bool:
        """Be true even when it is empty, so that `predictor or default` keeps it."""
        return True

    def learn_one(self, one: ArrayLike, label: Hashable) -> None:
        """Learn one labelled object.

        Parameters
        ----------
        one
            An object; all have one shape.
        label
            One of `labels`.

        Raises
        ------
        ParameterError, LabelError
            If the object or label cannot be used; nothing is learned then.
        """
        number = self._number(label)
        self._objects = extended(self._objects, many([one]))
        self._numbers.append(number)

    def learn_many(self, objects: ArrayLike, labels: Iterable[Hashable]) -> None:
        """Learn labelled objects, or none if a row is bad.

        Parameters
        ----------
        objects
            Array of shape (n, ...).
        labels
            n labels.

        Raises
        ------
        ParameterError, LabelError
            If a row cannot be used.
        """
        array, given = many(objects), list(labels)
        if len(array) != len(given):
            msg = f"labels has {len(given)} rows, objects has {len(array)}; give one of each"
            raise ParameterError(msg)
        numbers = [self._number(label, f"row {i}: ") for i, label in enumerate(given)]
        if not numbers:
            return
        self._objects = extended(self._objects, array)
        self._numbers += numbers

    def predict_one(self, one: ArrayLike) -> VennPrediction:
        """Predict the label of one object.

        Parameters
        ----------
        one
            An object, of the shape of those learned.

        Returns
        -------
        VennPrediction
            A distribution over the labels for each label that it may have.

        Raises
        ------
        ParameterError
            If the object cannot be used, or the taxonomy does not give each its category.
        """
        objects = extended(self._objects, many([one]))
        rows = [self._frequencies(objects, number) for number in range(len(self._labels))]
        return VennPrediction(self._labels, tuple(rows))

    def _frequencies(self, objects: Objects, number: int) -> tuple[float, ...]:
        """Frequencies of the labels in the category of the last object, if that is its label."""
        numbers = [*self._numbers, number]
        given = self._taxonomy(objects, self._names[numbers])
        categories = given.tolist() if isinstance(given, np.ndarray) else list(given)
        if len(categories) != len(objects):
            msg = f"the taxonomy gave {len(categories)} categories for {len(objects)} objects"
            raise ParameterError(msg)
        own = [i for i, c in zip(numbers, categories, strict=True) if c == categories[-1]]
        if not own:
            msg = f"category {shown(categories[-1])} does not equal itself; give NaN a name"
            raise ParameterError(msg)
        counts = Counter(own)
        return tuple(counts[i] / len(own) for i in range(len(self._labels)))

    def _number(self, label: Hashable, where: str = "") -> int:
        try:
            return self._labels.index(label)
        except ValueError:
            msg = f"{where}label {shown(label)} is not among {shown(list(self._labels))}"
            raise LabelError(msg) from None


def _array(labels: tuple[Hashable, ...]) -> NDArray[Any]:
    """Make an array of labels, of objects where numpy would confuse them, as 1 with "1"."""
    array = np.array(labels)
    if array.shape == (len(labels),) and tuple(array.tolist()) == labels:
        return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


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
        self._edges = scored(np.asarray, many(edges))
        if (np.diff(self._edges) <= 0).any():
            msg = "edges must ascend; sort them and drop those that are equal"
            raise ParameterError(msg)
        self._score = score

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> Integers:
        """Find the bin of each object's score."""
        scores = scored(self._score, objects)
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

    def __init__(self, scorer: Scorer = of_scores) -> None:
        self._scorer = scorer

    def __call__(self, objects: Objects, labels: NDArray[Any]) -> Integers:
        """Find the block of each object's score."""
        scores = scored(self._scorer(objects, labels), objects)
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
        msg = "an object has a feature that is not a finite number; drop the object or fill it in"
        raise ParameterError(msg)
    total = np.zeros((len(objects), len(objects)))
    for column in columns:
        total += (column[:, np.newaxis] - column) ** 2
    return total
