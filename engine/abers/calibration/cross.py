"""The cross Venn-Abers predictor: K calibration sets, one for the scores of each learner.

The set of its fold learns an observation, and all sets predict it.

The K folds of a cross calibrator: which one an observation belongs to, and its K scores. The id
decides the fold, by blake2b, so the fold is known before the label and is the same on every
machine. Without ids, labels go to the folds in turn.
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.backends import require_native
from abers.base import NO_TIME, Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration.intervals import CrossInterval, CrossIntervals
from abers.exceptions import NotHeldError, ParameterError, WeightError
from abers.mathematics import LEARN, NO_NUMBER, PREDICT, Forgetting, Many, One
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.validation import at, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = [
    "CrossVennAbers",
    "FoldCalibrator",
    "fold_of",
    "fold_of_id",
    "fold_of_rows",
    "score_columns",
    "score_row",
]

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


class FoldCalibrator(Calibrator["Sequence[float]", int, One, Many], Generic[One, Many]):
    """A calibrator of the scores of K learners, each trained without its fold."""

    _own_columns = ("folds", "ids")
    _lowest: float = math.nan  # a number is no score

    @property
    @abstractmethod
    def folds(self) -> int:
        """Number K of folds."""

    @property
    @abstractmethod
    def _taught(self) -> int:
        """Number of labels learned, less those removed."""

    def _options(self) -> list[str]:
        return [f"folds={self.folds}", *super()._options()]

    def fold_of(self, id: str | int | None = None) -> int:  # noqa: A002 - the word of `learn_one`
        """Return the fold of an id, or of the next label without an id.

        Parameters
        ----------
        id
            A string or a whole number, which is taken as its decimal digits.

        Returns
        -------
        int
            From 0 to K - 1: the learner that must not be trained on this observation.

        Raises
        ------
        ParameterError
            If the id is of another type.

        Examples
        --------
        >>> from abers import CrossVennAbers
        >>> calibrator = CrossVennAbers(folds=5)
        >>> calibrator.fold_of("order-17"), calibrator.fold_of("order-18"), calibrator.fold_of()
        (1, 3, 0)
        """
        return self._taught % self.folds if id is None else fold_of_id(id, self.folds)

    def learn_one(
        self,
        scores: Sequence[float],
        label: int,
        *,
        number: float | None = None,
        fold: int | None = None,
        id: str | int | None = None,  # noqa: A002 - the field's word
        weight: float = 1.0,
        time: float | None = None,
    ) -> None:
        """Learn one labelled observation in its fold; of its K scores that of the fold is learned.

        The number of the `fold`, from 0 to K - 1, or the `id` decides. Without them the folds take
        turns. Everything else is as in `abers.base.Calibrator.learn_one`.
        """
        row, named, units = self._score(scores), self._label(label), self._weight(weight)
        given = fold_of(fold, id, self.folds)
        timed = self._by_time or time is not None
        when = self._forgetting.time(time) if timed else NO_TIME
        of = NO_NUMBER if number is None else validation.observation(number)
        with self._lock:
            k = self._taught % self.folds if given is None else given
            learned = self._learn_in(k, row, named, units, when, of)
        if not learned:
            raise WeightError(self._overflow())

    def remove_one(
        self,
        scores: Sequence[float],
        label: int,
        *,
        fold: int | None = None,
        id: str | int | None = None,  # noqa: A002 - the field's word
        weight: float = 1.0,
    ) -> None:
        """Undo one `learn_one` with the same arguments, exactly.

        `fold` or `id` must be given, since the turn of an observation is not stored. Everything
        else is as in `abers.base.Calibrator.remove_one`.
        """
        self._require_removal()
        row, named, units = self._score(scores), self._label(label), self._weight(weight)
        k = fold_of(fold, id, self.folds)
        if k is None:
            msg = "an observation can be removed only from its fold; give fold or id"
            raise ParameterError(msg)
        with self._lock:
            removed = self._remove_from(k, row[k], named, units)
        if not removed:
            raise NotHeldError(self._not_held(row[k], named, units))

    # The mathematics

    def _score(self, score: object) -> list[float]:
        return score_row(score, self.folds)

    def _scores(self, scores: ArrayLike) -> Floats:
        return score_columns(scores, self.folds)

    def _extra(self, columns: dict[str, Any], length: int) -> Integers | None:
        """Return the fold of each row; None if labels take turns."""
        folds, ids = columns.pop("folds", None), columns.pop("ids", None)
        super()._extra(columns, length)
        return fold_of_rows(folds, ids, self.folds, length)

    @abstractmethod
    def _learn_in(
        self, fold: int, scores: list[float], label: int, weight: int, time: float, number: int
    ) -> bool:
        """Learn an observation in its fold; return False if the total weight would be too large."""

    def _remove_from(self, fold: int, score: float, label: int, weight: int) -> bool:
        """Undo `_learn_in`; return False if that weight is not there."""
        raise NotImplementedError

    def _learn(self, score: list[float], label: int, weight: int, time: float, number: int) -> bool:
        raise NotImplementedError  # `learn_one` needs the fold

    # Batches

    def _folds_of(self, steps: Steps) -> Integers:
        """Return the fold of each step; labels without one take turns."""
        turns = (self._taught + np.cumsum(steps.kinds == LEARN) - 1) % self.folds
        folds: Integers = turns if steps.extra is None else steps.extra
        return folds

    def _refuse(self, fold: int, row: int) -> WeightError:
        msg = f"fold {fold}: row {row}: {self._overflow()} (within the fold)"
        return WeightError(msg)


_HEADER = struct.Struct("<QQ")  # folds, labels learned


class CrossVennAbers(FoldCalibrator[CrossInterval, CrossIntervals]):
    """Calibrate the scores of K learners, each trained without its fold, on all observations.

    The cross Venn-Abers predictor (CVAP) as a stream. An observation is scored by K learners and
    its fold is decided by its id. At label time the calibrator of that fold learns the score by
    *its* learner, and the K - 1 other learners may be trained on the observation: so every label
    is used for training and for calibration, and no calibrator sees a score of a learner that
    knew the label.

    Parameters
    ----------
    folds
        Number K of folds, at least 2.
    window
        Keep only the last `window` learned observations of each fold.
    max_age, half_life
        As in `VennAbers`, each fold by the times that it has learned.

    Raises
    ------
    ParameterError
        If there are fewer than 2 folds, or the rule of forgetting is invalid, as in `VennAbers`.

    Notes
    -----
    **Guarantee.** None. Each fold's pair by itself carries the guarantee of `VennAbers` if its
    scorer is fixed; the K together do not, and neither does a merge of them.

    **Folds.** The fold of an id is blake2b of its text (8 bytes, little-endian) modulo K.
    Without an id it is the number of labels learned so far modulo K.

    **Time.** Each fold answers a query without a time as of the newest time it has learned.

    References
    ----------
    Vovk, Petej & Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity, section 4.

    Examples
    --------
    >>> from abers import CrossVennAbers
    >>> calibrator = CrossVennAbers(folds=2)
    >>> for scores, label in [((0.1, 0.2), 0), ((0.7, 0.6), 1), ((0.4, 0.3), 1), ((0.2, 0.1), 0)]:
    ...     calibrator.learn_one(scores, label)
    >>> calibrator.predict_one((0.5, 0.4))
    CrossInterval(p0=(0.5, 0.0), p1=(1.0, 1.0))
    >>> round(calibrator.predict_one((0.5, 0.4)).merged, 4)
    0.5858
    """

    capabilities = Capabilities(
        task="binary", score="folds", answer="folds", removal="single", columns=("folds", "ids")
    )
    _magic: ClassVar[bytes] = b"abersCV\x01"

    def __init__(
        self,
        folds: int = 5,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        require_native()  # the merge needs it
        super().__init__(window, max_age, half_life)
        count = validation.count(folds, "folds", 2)
        self._sets = [sets.empty(self._forgetting) for _ in range(count)]
        self._count = 0  # labels learned, less those removed

    @property
    def folds(self) -> int:
        """Number K of folds."""
        return len(self._sets)

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned by their fold."""
        return sum(held.late for held in self._sets)

    def __len__(self) -> int:
        """Count the observations kept."""
        return sum(held.size for held in self._sets)

    @property
    def _taught(self) -> int:
        return self._count

    # The mathematics

    def _predict(self, score: list[float], weight: int, time: float, number: int) -> CrossInterval:
        pairs = [held.predict(s, weight, time) for held, s in zip(self._sets, score, strict=True)]
        p0, p1 = zip(*pairs, strict=True)
        return CrossInterval(p0, p1)

    def _learn_in(
        self, fold: int, scores: list[float], label: int, weight: int, time: float, number: int
    ) -> bool:
        del number
        learned: bool = self._sets[fold].learn(scores[fold], label, weight, time)
        self._count += learned
        return learned

    def _remove_from(self, fold: int, score: float, label: int, weight: int) -> bool:
        removed: bool = self._sets[fold].remove(score, label, weight)
        self._count -= removed
        return removed

    def _take(self, steps: Steps, held: Integers | None) -> tuple[CrossIntervals, int]:
        """Run steps: all folds predict, and that of an observation learns."""
        n, predicts = len(steps.kinds), steps.kinds == PREDICT
        folds = self._folds_of(steps)
        p0, p1 = np.full((2, self.folds, n), np.nan)
        sizes = np.zeros(n, np.int64)
        for k, one in enumerate(self._sets):
            mine = predicts | (folds == k)
            rows = np.flatnonzero(mine)
            after = np.empty(len(rows) + 1, np.int64)
            after[0] = one.size
            part = steps._replace(scores=steps.scores[k]).take(rows)
            p0[k, rows], p1[k, rows], done = sets.pairs(one, part, after[1:])
            if done < len(rows):
                raise self._refuse(k, part.row(done))
            sizes += after[np.cumsum(mine)]
        self._count += n - int(np.count_nonzero(predicts))
        if held is not None:
            held[:] = sizes
        return CrossIntervals(p0.T, p1.T), n

    def _must_copy(self, steps: Steps) -> bool:
        return any(sets.may_overflow(held, steps) for held in self._sets)

    # Saving

    def _save(self) -> bytes:
        return _HEADER.pack(self.folds, self._count) + pack(map(sets.sealed, self._sets))

    def _load(self, payload: memoryview) -> None:
        folds, learned = _HEADER.unpack_from(payload)
        held = [sets.unsealed(one) for one in unpack(payload[_HEADER.size :])]
        rules = {(one.window, one.lifetime, one.half_life) for one in held}
        require(folds == len(held) > 1 and len(rules) == 1, "folds")
        require(sum(one.size for one in held) <= learned <= MAX_COUNT, "folds")
        self._sets, self._count = held, learned
        self._forget_by(Forgetting.of(held[0]))
