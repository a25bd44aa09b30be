"""The K folds of a cross calibrator: which one an observation belongs to, and its K scores.

The id decides the fold, by blake2b, so the fold is known before the label and is the same on every
machine. Without ids, labels go to the folds in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.exceptions import ParameterError
from abers.validation import at, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers

__all__ = ["fold_of", "fold_of_id", "fold_of_rows", "score_columns", "score_row"]

_FLOATS = {float}
_DIGEST = 8  # bytes of blake2b that are read as a number, little-endian


def fold_of_id(id_: object, folds: int) -> int:
    """Return the fold of an id: blake2b of its text in UTF-8, modulo K."""
    if isinstance(id_, bool) or not isinstance(id_, str | int | np.integer):
        msg = f"id {shown(id_)} is neither a string nor a whole number; give it as a string"
        raise ParameterError(msg)
    digest = blake2b(str(id_).encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
    return int.from_bytes(digest, "little") % folds


def _checked(fold: object, folds: int) -> int:
    if isinstance(fold, bool) or not isinstance(fold, int | np.integer) or not 0 <= fold < folds:
        msg = f"fold {shown(fold)} is unknown; the folds are 0 to {folds - 1}"
        raise ParameterError(msg)
    return int(fold)


def fold_of(fold: object, id_: object, folds: int) -> int | None:
    """Return the fold of an observation, by number or by id; None without either."""
    if fold is not None and id_ is not None:
        msg = "fold and id exclude each other; the id decides the fold"
        raise ParameterError(msg)
    if id_ is not None:
        return fold_of_id(id_, folds)
    return None if fold is None else _checked(fold, folds)


def fold_of_rows(
    numbers: ArrayLike | None, ids: Iterable[object] | None, folds: int, rows: int
) -> Integers | None:
    """Return the fold of each row, by number or by id; None without either."""
    if numbers is not None and ids is not None:
        msg = "folds and ids exclude each other; the ids decide the folds"
        raise ParameterError(msg)
    if numbers is None and ids is None:
        return None
    given = list(ids) if ids is not None else np.asarray(unmasked(numbers)).tolist()
    if len(given) != rows:
        what = "folds" if ids is None else "ids"
        msg = f"{what} has {len(given)} rows, scores has {rows}; give one of each per row"
        raise ParameterError(msg)
    check = _checked if ids is None else fold_of_id
    return np.array([at(f"row {i}", check, one, folds) for i, one in enumerate(given)], np.int64)


def score_row(scores: object, folds: int) -> list[float]:
    """Check the scores of one observation, one by each of the K learners."""
    if (
        isinstance(scores, list | tuple)
        and len(scores) == folds
        and {*map(type, scores)} == _FLOATS
    ):
        row = [score + 0.0 for score in scores]  # -0.0 becomes 0.0
        if math.isfinite(sum(row)):  # so all of them are
            return row
    given = list(scores) if isinstance(scores, Iterable) else [scores]
    if len(given) != folds:
        msg = f"scores has {len(given)} values; give one by each of the {folds} learners"
        raise ParameterError(msg)
    return [at(f"fold {k}", validation.score, score) for k, score in enumerate(given)]


def score_columns(scores: ArrayLike, folds: int) -> Floats:
    """Check the scores of many observations, a row each; return a contiguous row for each fold."""
    array = validation.array(scores, f"scores must be of shape (n, {folds})")
    if array.size == 0:
        array = array.reshape(0, folds)
    if array.ndim != 2 or array.shape[1] != folds:  # noqa: PLR2004 - rows and folds
        msg = f"scores must be of shape (n, {folds}), one column a fold, not {array.shape}"
        raise ParameterError(msg)
    return np.array([at(f"fold {k}", validation.scores, array[:, k]) for k in range(folds)])
