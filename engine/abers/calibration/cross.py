"""The cross Venn-Abers predictor: K calibrators, each for the scores of a learner without its fold.

Governing rule: K `VennAbers` side by side, a column of scores each; an observation is learned by
the one of its fold and predicted by all, and nothing else is added to what they do by themselves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers._sealed import seal, unseal
from abers.calibration import _checks, _columns, _cross_codec, _folds
from abers.calibration._forgetting import Forgetting
from abers.calibration._steps import interleaved
from abers.calibration.cross_interval import CrossInterval
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import ParameterError, WeightError
from abers.reference import LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from abers.calibration._typing import Bytes, Floats, Integers

__all__ = ["CrossVennAbers"]


class _Given(NamedTuple):
    """What may come with scores and labels, as it came."""

    folds: ArrayLike | None
    ids: Iterable[str | int] | None
    weights: ArrayLike | None
    times: ArrayLike | None


class CrossVennAbers:
    """Calibrate the scores of K learners, each trained without its fold, on all observations.

    The cross Venn-Abers predictor (CVAP) as a stream. An observation is scored by K learners and
    its fold is decided by its id. At label time the calibrator of that fold learns the score by
    *its* learner, and the K - 1 other learners may be trained on the observation: so every label
    is used for training and for calibration, and no calibrator sees a score of a learner that
    knew the label.

    At most one of `window`, `max_age` and `half_life` may be given; with none, everything is
    kept.

    Parameters
    ----------
    folds
        Number K of folds, at least 2.
    window
        Keep only the last `window` learned observations of each fold.
    max_age, half_life
        As `VennAbers` has them, each fold by the times that it has learned.

    Raises
    ------
    ParameterError
        If an option makes no sense.

    Notes
    -----
    **Guarantee.** None. Each fold's pair by itself carries the guarantee of `VennAbers` if its
    scorer is fixed; the K together do not, and neither does a merge of them.

    **Folds.** The fold of an id is blake2b of its text (8 bytes, little-endian) modulo K.
    Without an id it is the number of labels learned so far modulo K.

    **Time.** Each fold answers a query without a time as of the newest time it has learned.

    **Threads** may share it: every call is atomic.

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
    >>> round(calibrator.predict_one((0.5, 0.4)).log, 4)
    0.5858
    """

    def __init__(
        self,
        folds: int = 5,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        k = _folds.count(folds)
        self._set([VennAbers(window, max_age, half_life) for _ in range(k)], 0)

    def _set(self, calibrators: list[VennAbers], learned: int) -> None:
        self._calibrators = calibrators
        self._learned = learned  # labels, less those removed
        self._lock = threading.RLock()

    @property
    def folds(self) -> int:
        """Number K of folds."""
        return len(self._calibrators)

    @property
    def window(self) -> int | None:
        """Number of observations kept at most in each fold, None without a window."""
        return self._calibrators[0].window

    @property
    def max_age(self) -> float | None:
        """Greatest age of an observation, None without one."""
        return self._calibrators[0].max_age

    @property
    def half_life(self) -> float | None:
        """Time in which a weight halves, None if weights stay."""
        return self._calibrators[0].half_life

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned by their fold."""
        return sum(calibrator.late for calibrator in self._calibrators)

    def __len__(self) -> int:
        """Count the observations held."""
        return sum(map(len, self._calibrators))

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the folds, the rule of forgetting and the number of observations."""
        names = ("folds", "window", "max_age", "half_life")
        given = [f"{n}={value}" for n in names if (value := getattr(self, n)) is not None]
        return f"<CrossVennAbers({', '.join(given)}) of {len(self)} observations>"

    def fold_of(self, id: str | int | None = None) -> int:  # noqa: A002 - the word of `learn_one`
        """Fold of an id; without one, the fold of the next label that comes without.

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
        >>> calibrator = CrossVennAbers(folds=5)
        >>> calibrator.fold_of("order-17"), calibrator.fold_of("order-18"), calibrator.fold_of()
        (1, 3, 0)
        """
        return self._learned % self.folds if id is None else _folds.of_id(id, self.folds)

    # One at a time

    def predict_one(
        self, scores: Sequence[float], time: float | None = None, weight: float = 1.0
    ) -> CrossInterval:
        """Predict the probability of label 1 from the scores of one observation.

        Parameters
        ----------
        scores
            K scores, one by each fold's learner.
        time, weight
            As `VennAbers.predict_one` has them.

        Returns
        -------
        CrossInterval
            A pair (p0, p1) of each fold.

        Raises
        ------
        ParameterError
            If there are not K scores.
        ScoreError, TimeError, WeightError
            If an argument cannot be used.
        """
        row = _columns.row(scores, self.folds)
        with self._lock:
            pairs = [c.predict_one(s, time, weight) for c, s in zip(self._calibrators, row)]  # noqa: B905 - as long
        p0, p1 = zip(*pairs)  # noqa: B905 - pairs
        return CrossInterval(p0, p1)

    def learn_one(  # noqa: PLR0913 - three ways to name a fold and its weight and time
        self,
        scores: Sequence[float],
        label: int,
        *,
        fold: int | None = None,
        id: str | int | None = None,  # noqa: A002 - the field's word
        weight: float = 1.0,
        time: float | None = None,
    ) -> None:
        """Learn one labelled observation, in its fold.

        Parameters
        ----------
        scores
            The K scores with which the observation was predicted; that of its fold is learned.
        label
            0 or 1 (False or True).
        fold
            Number of the fold, from 0 to K - 1.
        id
            The id, which decides the fold. Without it and `fold`, labels take turns.
        weight, time
            As `VennAbers.learn_one` has them.

        Raises
        ------
        ParameterError
            If there are not K scores, or the fold is unknown.
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        row = _columns.row(scores, self.folds)
        given = _folds.one(fold, id, self.folds)
        with self._lock:
            k = self._learned % self.folds if given is None else given
            self._calibrators[k].learn_one(row[k], label, weight=weight, time=time)
            self._learned += 1

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

        Parameters
        ----------
        scores, label, weight
            As they were learned.
        fold, id
            One of them must be given: the turn of an observation without id is forgotten.

        Raises
        ------
        NotHeldError
            If no such weight is held in that fold.
        ForgettingError
            If the calibrators forget by themselves.
        ParameterError, ScoreError, LabelError, WeightError
            If an argument cannot be used.
        """
        row = _columns.row(scores, self.folds)
        k = _folds.one(fold, id, self.folds)
        if k is None:
            msg = "an observation can be removed only from its fold; give fold or id"
            raise ParameterError(msg)
        with self._lock:
            self._calibrators[k].remove_one(row[k], label, weight=weight)
            self._learned -= 1

    # Many at a time

    def predict_many(
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Predict for the scores of n observations; as `predict_one` for each.

        Parameters
        ----------
        scores
            Array of shape (n, K).
        weights, times
            Arrays of shape (n,), as in `VennAbers.predict_many`.

        Returns
        -------
        p0, p1
            Two arrays of shape (n, K), to be merged by `cross_log_merge` or `cross_brier_merge`.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one of the first such fold.
        """
        columns = _columns.columns(scores, self.folds)
        p0, p1 = np.empty((2, *columns.shape))
        with self._lock:
            for k, calibrator in enumerate(self._calibrators):
                p0[k], p1[k] = calibrator.predict_many(columns[k], weights=weights, times=times)
        return p0.T, p1.T

    def learn_many(  # noqa: PLR0913 - a column each
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        folds: ArrayLike | None = None,
        ids: Iterable[str | int] | None = None,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn n observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        scores
            Array of shape (n, K).
        labels
            Array of shape (n,).
        folds, ids
            At most one of them, of length n; without, labels take turns.
        weights, times
            Arrays of shape (n,), as in `VennAbers.learn_many`.

        Raises
        ------
        InputError
            If a row cannot be used.
        """
        columns = _columns.columns(scores, self.folds)
        n = columns.shape[1]
        each_once = np.arange(n, dtype=np.int64), np.full(n, LEARN, np.uint8)
        self._run(columns, labels, each_once, _Given(folds, ids, weights, times))

    def prequential(  # noqa: PLR0913 - a column each
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        delay: int = 0,
        folds: ArrayLike | None = None,
        ids: Iterable[str | int] | None = None,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> tuple[Floats, Floats]:
        """Predict, then learn, through a whole stream in one call.

        Parameters
        ----------
        scores, labels, folds, ids, weights, times
            In stream order, as `learn_many` has them.
        delay
            The label of an observation is learned after `delay` later observations have been
            predicted; those still out at the end are learned then.

        Returns
        -------
        p0, p1
            Two arrays of shape (n, K).

        Raises
        ------
        InputError
            If a row cannot be used; nothing is learned then.

        Examples
        --------
        >>> scores = [[0.1, 0.2], [0.7, 0.6], [0.4, 0.3]]
        >>> p0, p1 = CrossVennAbers(folds=2).prequential(scores, [0, 1, 1])
        >>> p0.tolist(), p1.tolist()
        ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
        """
        columns = _columns.columns(scores, self.folds)
        stream = interleaved(columns.shape[1], delay)
        return self._run(columns, labels, stream, _Given(folds, ids, weights, times))

    def run(  # noqa: PLR0913 - a column each
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike,
        folds: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        held: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Run predictions and labels in any order, as `VennAbers.run`.

        Parameters
        ----------
        steps
            Array of shape (n,): 0 predicts, 1 learns.
        scores
            Array of shape (n, K).
        labels, folds
            Arrays of shape (n,); those of a prediction are ignored, but must be a label and a
            fold.
        weights, times
            Arrays of shape (n,), as in `learn_many`.
        held
            An int64 array of shape (n,) to be filled with the number of observations held
            after each step.

        Returns
        -------
        p0, p1
            Two arrays of shape (n, K), NaN where nothing was predicted.

        Raises
        ------
        InputError
            If a row cannot be used; the message names it, and nothing is learned then.

        Examples
        --------
        >>> scores = [[0.1, 0.2], [0.7, 0.6]]
        >>> p0, p1 = CrossVennAbers(folds=2).run([1, 0], scores, [0, 0], [1, 0])
        >>> p0.tolist(), p1.tolist()
        ([[nan, nan], [0.0, 0.0]], [[nan, nan], [1.0, 1.0]])
        """
        columns = _columns.columns(scores, self.folds)
        n = columns.shape[1]
        kinds = _checks.steps(steps, n)
        if (kinds == REMOVE).any():
            msg = f"row {np.argmax(kinds == REMOVE)}: remove observations with remove_one"
            raise ParameterError(msg)
        if held is not None and (held.dtype != np.int64 or held.shape != (n,)):
            msg = f"held is {held.dtype} of shape {held.shape}, not int64 of shape ({n},)"
            raise ParameterError(msg)
        given = _Given(folds, None, weights, times)
        return self._run(columns, labels, (np.arange(n), kinds), given, held)

    def _run(
        self,
        columns: Floats,
        labels: ArrayLike,
        stream: tuple[Integers, Bytes],
        given: _Given,
        held: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """Take the rows and kinds of a stream: all folds predict, its own learns."""
        n = columns.shape[1]
        rows, kinds = stream
        told = _checks.labels(labels, n)
        heavy = None if given.weights is None else _columns.weights(given.weights, n)
        forgetting = Forgetting(self.window, self.max_age, self.half_life)
        when = forgetting.times(given.times, n, required=True)
        p0, p1 = np.full((2, *columns.shape), np.nan)
        sizes = np.zeros(len(kinds), np.int64)
        with self._lock:
            of = _folds.many(given.folds, given.ids, self.folds, n, self._learned)
            saved = self._saved_if_full(n if heavy is None else float(heavy.sum()))
            try:
                for k, calibrator in enumerate(self._calibrators):
                    mine = (kinds == PREDICT) | (of[rows] == k)
                    row, steps = rows[mine], kinds[mine]
                    before, after = len(calibrator), np.empty(len(row), np.int64)
                    q0, q1 = calibrator.run(
                        steps,
                        columns[k][row],
                        told[row],
                        weights=None if heavy is None else heavy[row],
                        times=None if when is None else when[row],
                        held=after,
                    )
                    asked = steps == PREDICT
                    p0[k, row[asked]], p1[k, row[asked]] = q0[asked], q1[asked]
                    sizes += np.concatenate(([before], after))[np.cumsum(mine)]
            except WeightError as error:
                self._calibrators = self._calibrators if saved is None else saved
                msg = f"fold {k}: {error} (counted within the fold)"
                raise WeightError(msg) from None
            self._learned += int((kinds != PREDICT).sum())
        if held is not None:
            held[:] = sizes
        return p0.T, p1.T

    def _saved_if_full(self, added: float) -> list[VennAbers] | None:
        """Copy all folds if so much more weight might be too much for one."""
        held = [calibrator._held for calibrator in self._calibrators]  # noqa: SLF001 - its kin
        if all(one.total + added * ONE < one.limit / 2 for one in held):
            return None
        return [VennAbers.from_bytes(calibrator.to_bytes()) for calibrator in self._calibrators]

    # Saving

    def state_bytes(self) -> bytes:
        """Give what is remembered in canonical form: equal for those that answer alike.

        Returns
        -------
        bytes
            The payload of `to_bytes`, without version and checksum.
        """
        with self._lock:
            return _cross_codec.dump(self._calibrators, self._learned)

    def to_bytes(self) -> bytes:
        """Save all folds: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        return seal(_cross_codec.MAGIC, self.state_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> CrossVennAbers:
        """Restore what goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        CrossVennAbers
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged or of an unknown version.
        """
        payload = unseal(_cross_codec.MAGIC, bytes(blob), "a saved cross calibrator")
        restored = cls.__new__(cls)
        restored._set(*_cross_codec.load(payload))  # noqa: SLF001 - of the same class
        return restored

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)
