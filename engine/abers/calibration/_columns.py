"""What a cross calibrator accepts: K scores an observation, and what goes with them.

Governing rule: all columns are checked before any fold learns, and a refusal names the fold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from abers._arrays import unmasked
from abers.calibration import _checks
from abers.exceptions import InputError, ParameterError
from abers.reference import LIMIT, ONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats

_Result = TypeVar("_Result")
_HEAVIEST = (LIMIT + 1) // 2


def of_fold(fold: int, call: Callable[..., _Result], *arguments: object) -> _Result:
    """Call for a fold, and name the fold in what is refused."""
    try:
        return call(*arguments)
    except InputError as error:
        msg = f"fold {fold}: {error}"
        raise type(error)(msg) from None


def row(scores: Sequence[float], folds: int) -> list[float]:
    """Check the scores of one observation."""
    given = list(scores)
    if len(given) != folds:
        msg = f"scores has {len(given)} values; give one by each of the {folds} learners"
        raise ParameterError(msg)
    return [of_fold(k, _checks.score, score) for k, score in enumerate(given)]


def columns(scores: ArrayLike, folds: int) -> Floats:
    """Check the scores of many observations, given a row each; a contiguous row a fold."""
    try:
        array = np.asarray(unmasked(scores))
    except ValueError as error:  # rows of different lengths
        msg = f"scores must be of shape (n, {folds}); {error}"
        raise ParameterError(msg) from None
    if array.size == 0:
        array = array.reshape(0, folds)
    if array.ndim != 2 or array.shape[1] != folds:  # noqa: PLR2004 - rows and folds
        msg = f"scores must be of shape (n, {folds}), one column a fold, not {array.shape}"
        raise ParameterError(msg)
    return np.array([of_fold(k, _checks.scores, array[:, k]) for k in range(folds)])


def weights(values: ArrayLike, length: int) -> Floats:
    """Check weights, and give them in their own unit."""
    return _checks.weights(values, length, _HEAVIEST) / ONE
