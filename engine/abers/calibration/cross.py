"""The cross Venn-Abers predictor: K calibration sets, one for the scores of each learner.

The set of its fold learns an observation, and all sets predict it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abers import validation
from abers.backends import require_native
from abers.base import Capabilities
from abers.calibration import sets
from abers.calibration.cross_intervals import CrossInterval, CrossIntervals
from abers.calibration.fold_calibrator import FoldCalibrator
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.steps import PREDICT

if TYPE_CHECKING:
    from abers.arrays import Integers
    from abers.steps import Steps

__all__ = ["CrossVennAbers"]

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
        If an option is invalid.

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
