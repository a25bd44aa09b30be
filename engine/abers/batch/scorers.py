"""Scorers that are trained by the predictors themselves.

A scorer is a function of a training bag that returns a function of objects; any library's
classifier becomes one in a line, and this package imports none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.exceptions import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats

__all__ = ["Objects", "Scorer", "extended", "many", "of_scores", "scored"]

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
