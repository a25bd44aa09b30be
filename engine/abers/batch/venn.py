"""Venn predictors: the frequencies of the labels in the object's own category.

The object is put into the bag with each label it may have, a taxonomy sorts the whole bag into
categories, and the frequencies in the object's category, itself among them, are the prediction for
that label.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from abers.batch import scorers
from abers.calibration.intervals import VennInterval
from abers.exceptions import LabelError, ParameterError
from abers.saveable import CopiedWhole
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers.batch.scorers import Objects

__all__ = ["Taxonomy", "VennPrediction", "VennPredictor"]

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
        self._objects = scorers.extended(self._objects, scorers.many([one]))
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
        array, given = scorers.many(objects), list(labels)
        if len(array) != len(given):
            msg = f"labels has {len(given)} rows, objects has {len(array)}; give one of each"
            raise ParameterError(msg)
        numbers = [self._number(label, f"row {i}: ") for i, label in enumerate(given)]
        if not numbers:
            return
        self._objects = scorers.extended(self._objects, array)
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
        objects = scorers.extended(self._objects, scorers.many([one]))
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
