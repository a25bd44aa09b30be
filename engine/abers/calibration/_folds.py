"""Which of K folds an observation belongs to.

Governing rule: the id decides, by blake2b, so that the fold is known before the label is and the
same on every machine; without ids labels go around the folds in turn.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from abers._arrays import unmasked
from abers._shown import shown
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    from abers.calibration._typing import Integers

_DIGEST = 8  # bytes of blake2b that are read as a number, little-endian


def count(folds: object) -> int:
    """Check a number of folds."""
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:  # noqa: PLR2004
        msg = f"folds={shown(folds)} is not a whole number of at least 2 folds"
        raise ParameterError(msg)
    return int(folds)


def of_id(id_: object, folds: int) -> int:
    """Fold of an id: blake2b of its text in UTF-8, modulo K."""
    if isinstance(id_, bool) or not isinstance(id_, str | int | np.integer):
        msg = f"id {shown(id_)} is neither a string nor a whole number; give it as a string"
        raise ParameterError(msg)
    digest = blake2b(str(id_).encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
    return int.from_bytes(digest, "little") % folds


def one(fold: object, id_: object, folds: int) -> int | None:
    """Fold of an observation, by number or by id; None where neither is given."""
    if fold is not None and id_ is not None:
        msg = "fold and id exclude each other; the id decides the fold"
        raise ParameterError(msg)
    if id_ is not None:
        return of_id(id_, folds)
    return None if fold is None else number(fold, folds)


def number(fold: object, folds: int) -> int:
    """Check the number of a fold."""
    if isinstance(fold, bool) or not isinstance(fold, int | np.integer) or not 0 <= fold < folds:
        msg = f"fold {shown(fold)} is unknown; the folds are 0 to {folds - 1}"
        raise ParameterError(msg)
    return int(fold)


def many(
    numbers: ArrayLike | None, ids: Iterable[object] | None, folds: int, rows: int, learned: int
) -> Integers:
    """Fold of each row: by number, by id, or in turn after `learned` labels."""
    if numbers is not None and ids is not None:
        msg = "folds and ids exclude each other; the ids decide the folds"
        raise ParameterError(msg)
    if numbers is None and ids is None:
        return (learned + np.arange(rows, dtype=np.int64)) % folds
    given = list(ids) if ids is not None else np.asarray(unmasked(numbers)).tolist()
    if len(given) != rows:
        what = "folds" if ids is None else "ids"
        msg = f"{what} has {len(given)} rows, scores has {rows}; give one of each per row"
        raise ParameterError(msg)
    check = number if ids is None else of_id
    return np.array([_in_row(i, check, value, folds) for i, value in enumerate(given)], np.int64)


def _in_row(row: int, check: Callable[[object, int], int], value: object, folds: int) -> int:
    try:
        return check(value, folds)
    except ParameterError as error:
        msg = f"row {row}: {error}"
        raise ParameterError(msg) from None
