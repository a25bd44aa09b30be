"""Several classes, calibrated part by part: one against the rest, or each pair by itself.

From intervals of single classes, or of pairs of classes, to those of all classes. The first axis is
the class, and sums over it are taken in its order, so that one observation and many give the same
doubles.

One more calibration set, `_all`, learns every observation with score 0 and label 0 before any other
does. It counts, forgets, and refuses what cannot be learned; what it accepts, all others accept.

One-vs-rest: the set of a class learns the score of that class, and whether the label is that class.
The observations before a class was known have score 0 and label 0 for it; the set of `UNSEEN` holds
them.

One-vs-one: the set of classes i < j learns the share of i in the scores of both, from the
observations of the two. To forget with the stream, a pair gets the time of the stream: event times,
or the numbers of the observations for a window. An observation that is too old by that time is
ignored at once, and dropped when the pair learns again. The observations before a class was known
have score 0 for it; the pairs with `UNSEEN` hold them.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from abc import abstractmethod
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from abers.arrays import LIFETIME
from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration._classes import Classes, ClassLabels, Label, checked_label, mapping, table
from abers.calibration.intervals import MultiInterval, MultiIntervals, log_merge
from abers.mathematics import LEARN, PREDICT, Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from abers._core import CalibrationSet
    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = [
    "PKPD",
    "UNSEEN",
    "MultiClass",
    "OneVsOne",
    "OneVsRest",
    "Touched",
    "Triple",
    "normalised",
    "share",
]


def normalised(p: Floats) -> Floats:
    """Divide by the sum over the first axis."""
    shares: Floats = p / sum(p)  # `np.sum` adds in another order
    return shares


def share(a: Floats, b: Floats) -> Floats:
    """Return a / (a + b) of scores that are not negative; 1/2 where both are 0."""
    with np.errstate(over="ignore", invalid="ignore"):  # replaced below
        total = a + b
        parts = np.where(total > 0.0, a / total, 0.5)
    huge = np.isinf(total)
    parts[huge] = (a / 2)[huge] / (a / 2 + b / 2)[huge]
    return parts


class PKPD:
    """The pairwise coupling p_i = 1 / (sum over j of 1 / r_ij - (k - 2)) of k classes, n rows.

    References
    ----------
    Price, Knerr, Personnaz & Dreyfus (1995), Pairwise neural network classifiers with
    probabilistic outputs; Manokhin (2017), equation (1).
    """

    def __init__(self, k: int, n: int) -> None:
        self._sums = np.zeros((3, k, n))  # of 1 / r: merged, lower end, upper end

    def add(self, i: Integers, j: Integers, p0: Floats, p1: Floats) -> None:
        """Add pairs of classes i < j in their order: a row of intervals for class i each."""
        merged = log_merge(p0, p1)
        with np.errstate(divide="ignore"):  # an end at 0 makes that of the class 0
            of_i = 1.0 / np.array((merged, p0, p1))
            of_j = 1.0 / (1.0 - np.array((merged, p1, p0)))
        np.add.at(self._sums, (slice(None), j), of_j)  # one after the other, repeated classes too
        np.add.at(self._sums, (slice(None), i), of_i)

    def result(self) -> tuple[Floats, Floats, Floats]:
        """Return probabilities, lower ends and upper ends, of shape (k, n); vacuous if k is 1."""
        k = self._sums.shape[1]
        if k == 1:
            return np.ones_like(self._sums[0]), self._sums[1], np.ones_like(self._sums[2])
        p, low, high = 1.0 / (self._sums - (k - 2.0))
        return normalised(p), low, high


Triple: TypeAlias = "tuple[Floats, Floats, Floats]"
Touched: TypeAlias = "tuple[CalibrationSet, float, int]"
UNSEEN = -1  # the number of any class that has no number yet
_CLOCK = struct.Struct("<d")
_NOT_HELD = (
    "the observation is not there; remove only what was learned, with the scores, the label and "
    "the weight it had"
)


class MultiClass(ClassLabels, Calibrator[Any, "Label", MultiInterval, MultiIntervals]):
    """A calibrator of vectors of class scores, made of binary calibration sets.

    Arrays of scores have a column a class, in the order of `classes`, and need classes that are
    known. In `run`, labels are the numbers of classes; everywhere else they are classes.
    """

    capabilities = Capabilities(
        task="multiclass", score="classes", answer="classes", removal="single"
    )
    _lowest: float = math.nan  # a number is no score
    _smallest: ClassVar[float]  # score of a class that is accepted

    def __init__(
        self,
        classes: Iterable[Label] | None = None,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        max_classes: int = 100,
    ) -> None:
        known = Classes(classes, max_classes)
        super().__init__(window, max_age, half_life)
        self._hold(known, sets.empty(self._forgetting))

    def _hold(self, classes: Classes, everything: CalibrationSet) -> None:
        self._classes, self._all = classes, everything
        self._clock = -math.inf  # latest time of the parts, if not that of `_all`
        self._parts: dict[tuple[int, ...], CalibrationSet] = {}
        self._make_parts()

    def _make_parts(self) -> None:
        for number in range(len(self._classes)):
            self._grow(number)

    def _add(self, labels: Iterable[Label]) -> None:
        for each in labels:
            self._grow(len(self._classes))
            self._classes.add([each])

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return self._all.late

    def __len__(self) -> int:
        """Count the observations kept."""
        return self._all.size

    def __repr__(self) -> str:
        """Return the rule of forgetting and the numbers of observations and classes."""
        return f"{super().__repr__()[:-1]}, {len(self._classes)} classes>"

    # Methods of the two classes; arguments are checked, and `_all` has accepted them

    @abstractmethod
    def _part(self) -> CalibrationSet:
        """Return an empty set for `_parts`."""

    @abstractmethod
    def _grow(self, number: int) -> None:
        """Add the sets of the class of the next number to `_parts`."""

    @abstractmethod
    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        """Yield the sets that an observation of a class touches, each with its score and label."""

    @abstractmethod
    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        """Learn one observation."""

    @abstractmethod
    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        """Predict one observation; scores of unknown classes follow those of known classes."""

    @abstractmethod
    def _run(self, steps: Steps) -> Triple:
        """Run steps; return arrays of shape (number of classes, number of predictions)."""

    # The mathematics

    def _predict(
        self, score: dict[Label, float], weight: int, time: float, number: int
    ) -> MultiInterval:
        classes = (*self.classes, *self._classes.unknown(score))
        if not classes:
            return MultiInterval({}, {}, {})
        row = np.array([score.get(each, 0.0) for each in classes])
        answer = self._predict_row(row, weight, time)
        p, low, high = (dict(zip(classes, ends.tolist(), strict=True)) for ends in answer)
        return MultiInterval(p, low, high)

    def _learn(
        self, score: dict[Label, float], label: Label, weight: int, time: float, number: int
    ) -> bool:
        new = self._classes.unknown((*score, label))
        if not self._all.learn(0.0, 0, weight, time):
            return False
        self._add(new)
        self._learn_row(self._row(score), self._classes.numbers[label], weight, time)
        return True

    def _remove(self, score: dict[Label, float], label: Label, weight: int) -> bool:
        """Remove an observation from all sets it touched, or from none."""
        numbers = self._classes.numbers
        if any(each not in numbers for each in (*score, label)):
            return False
        touched = [(self._all, 0.0, 0), *self._touched(self._row(score), numbers[label])]
        for at, (part, own, number) in enumerate(touched):
            if not part.remove(own, number, weight):
                for other, back, was in touched[:at]:
                    other.learn(back, was, weight)
                return False
        return True

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MultiIntervals, int]:
        n = len(steps.kinds)
        zeros = np.zeros(n)
        everything = steps._replace(scores=zeros, labels=zeros.astype(np.uint8))
        *_, done = sets.pairs(self._all, everything, held)
        answers = np.full((3, n, len(self._classes)), np.nan)
        if done == n:
            answers[:, steps.kinds == PREDICT] = np.array(self._run(steps)).swapaxes(1, 2)
        return MultiIntervals(*answers), done

    def _must_copy(self, steps: Steps) -> bool:
        return sets.may_overflow(self._all, steps)

    def _not_held(self, score: Any, label: Any, weight: int) -> str:
        return _NOT_HELD

    def _row(self, checked: dict[Label, float]) -> Floats:
        return np.array([checked.get(each, 0.0) for each in self.classes])

    # The checks

    def _score(self, score: Any) -> dict[Label, float]:
        return mapping(score, self._smallest)

    def _scores(self, scores: ArrayLike) -> Floats:
        return table(scores, self._classes, self._smallest)

    def _label(self, label: object) -> Label:
        return checked_label(label)

    # Saving

    def _may_be(self, clock: float) -> bool:
        """Return whether the parts can have this clock; most have none, -infinity."""
        return clock == -math.inf

    def _save(self) -> bytes:
        classes = [self._classes.closed, self.max_classes, *self.classes]
        pieces = [json.dumps(classes).encode(), _CLOCK.pack(self._clock)]
        return pack([*pieces, *map(sets.sealed, (self._all, *self._parts.values()))])

    def _load(self, payload: memoryview) -> None:
        """Restore the classes and the set of each part."""
        classes, clock, everything, *parts = unpack(payload)
        closed, most, *labels = json.loads(classes)
        held = sets.unsealed(everything)
        self._forget_by(Forgetting.of(held))
        self._hold(Classes.known(labels, most, closed=closed), held)
        (self._clock,) = _CLOCK.unpack(clock)
        require(self._may_be(self._clock), "clock")
        for key, blob in zip(self._parts, parts, strict=True):
            part, empty = sets.unsealed(blob), self._parts[key]
            rules = ((one.window, one.lifetime, one.half_life) for one in (part, empty))
            require(len({*rules}) == 1, "rules of forgetting")
            self._parts[key] = part


class OneVsRest(MultiClass):
    """Calibrate the class scores of any model, each class against the rest.

    A `VennAbers` calibrator for each class learns the score of its class, with label 1 where the
    observation is of that class and 0 elsewhere. Its interval is the interval of the class; the
    merged probabilities (for log loss) are divided by their sum.

    Parameters
    ----------
    classes
        All classes: strings, integers or booleans. A score or label of another class is then an
        error. By default a class is known from its first score or label on.
    window, max_age, half_life
        How to forget, as in `VennAbers`; a window counts observations of all classes.
    max_classes
        Maximum number of classes; memory and time grow with the number known.

    Raises
    ------
    ParameterError
        If an option is invalid, or the classes are not 2 to `max_classes` different labels.

    Notes
    -----
    **Guarantee.** Under exchangeability, with a scorer fixed before the calibration data and equal
    weights, the interval of each single class is that of `VennAbers` and has its guarantee. The
    vector of probabilities has none.

    **Scores** are any finite numbers, which need not sum to one. A class that is missing from a
    dict has score 0: the model gave it no probability. If scores are margins, pass all classes.

    **Classes** come and go. One without a label, or with none in the window, is calibrated on label
    0 alone: its lower end is 0, and its upper end is 1 above all of its scores. A class keeps its
    column.

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 3, for the intervals; Zadrozny & Elkan (2002),
    Transforming classifier scores into accurate multiclass probability estimates, for
    one-against-all with normalisation.

    Examples
    --------
    >>> from abers import OneVsRest
    >>> calibrator = OneVsRest()
    >>> calibrator.learn_one({"cat": 0.7, "dog": 0.2, "owl": 0.1}, "cat")
    >>> calibrator.learn_one({"cat": 0.4, "dog": 0.5, "owl": 0.1}, "dog")
    >>> calibrator.predict_one({"cat": 0.8, "dog": 0.1, "owl": 0.1})
    MultiInterval('cat': 0.5333 [0.5, 1], 'dog': 0.2667 [0, 0.5], 'owl': 0.2 [0, 0.3333])
    """

    _magic: ClassVar[bytes] = b"abersOR\x01"
    _smallest: ClassVar[float] = -sys.float_info.max

    def _make_parts(self) -> None:
        if not self._classes.closed:
            self._parts[UNSEEN,] = self._part()
        super()._make_parts()

    def _part(self) -> CalibrationSet:
        return sets.empty(self._forgetting)

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        self._parts[number,] = self._part() if closed else sets.copied(self._parts[UNSEEN,])

    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        """Yield each set that learns an observation, with its score and its label there."""
        for i, score in enumerate(row.tolist()):
            yield self._parts[i,], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[UNSEEN,], 0.0, 0

    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        for part, score, label in self._touched(row, number):
            part.learn(score, label, weight, time)

    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        known = len(self._classes)
        keys = ((i if i < known else UNSEEN,) for i in range(len(row)))
        pairs = [
            self._parts[key].predict(score, weight, time)
            for key, score in zip(keys, row.tolist(), strict=True)
        ]
        return _answer(np.array(pairs).T)

    def _run(self, steps: Steps) -> Triple:
        predicted = steps.kinds == PREDICT
        ends = np.empty((2, len(self._classes), np.count_nonzero(predicted)))
        for i, scores in enumerate(steps.scores):
            own = steps._replace(scores=scores, labels=(steps.labels == i).astype(np.uint8))
            p0, p1, _ = sets.pairs(self._parts[i,], own)
            ends[:, i] = p0[predicted], p1[predicted]
        if not self._classes.closed:
            zeros = np.zeros(len(predicted))
            none = steps._replace(scores=zeros, labels=zeros.astype(np.uint8))
            sets.pairs(self._parts[UNSEEN,], none)
        return _answer(ends)


def _answer(ends: Floats) -> Triple:
    p0, p1 = ends
    return normalised(log_merge(p0, p1)), p0, p1


Ends = tuple["Floats", "Floats"]


class OneVsOne(MultiClass):
    """Calibrate the class scores of any model pair by pair, and couple the pairs.

    A `VennAbers` calibrator for each pair of classes learns the observations of the two, with the
    share of the first class in their scores, p_i / (p_i + p_j), or 1/2 if both are 0. A query is
    calibrated for each pair; the merged probabilities r_ij (for log loss) are coupled to
    p_i = 1 / (sum over j of 1 / r_ij - (k - 2)) and divided by their sum. The ends of the interval
    of a class are coupled likewise, and not divided. With one class there is no pair, and its
    interval is [0, 1].

    Parameters
    ----------
    classes, window, max_age, half_life
        As in `OneVsRest`.
    max_classes
        The greatest number of classes; a label touches a pair for each other class, a prediction
        all pairs.

    Raises
    ------
    ParameterError
        As in `OneVsRest`.

    Notes
    -----
    **Guarantee.** None: neither the vector of probabilities nor the coupled intervals carry the
    guarantee of the pairs, which holds for observations of the two classes only.

    **Scores** are finite and not negative; they need not sum to one. A class that is missing from a
    dict has score 0: the model gave it no probability.

    **Classes** come and go. A pair of classes that has no observation, or none in the window, is
    vacuous: (0, 1), merged 1/2. A class keeps its column.

    **Time.** A query before the newest time seen is answered as of the newest.

    **Weights.** With a half-life, keep the sum of the weights kept below 2**24: beyond, labels that
    come half-lives late could be too heavy for a pair after others accepted them.

    References
    ----------
    Manokhin (2017), Multi-class probabilistic classification using inductive and cross Venn-Abers
    predictors, equation (1); Price, Knerr, Personnaz & Dreyfus (1995), Pairwise neural network
    classifiers with probabilistic outputs.

    Examples
    --------
    >>> from abers import OneVsOne
    >>> calibrator = OneVsOne()
    >>> calibrator.learn_one({"cat": 0.7, "dog": 0.2, "owl": 0.1}, "cat")
    >>> calibrator.learn_one({"cat": 0.4, "dog": 0.5, "owl": 0.1}, "dog")
    >>> calibrator.predict_one({"cat": 0.8, "dog": 0.1, "owl": 0.1})
    MultiInterval('cat': 0.5 [0.3333, 1], 'dog': 0.25 [0, 0.5], 'owl': 0.25 [0, 0.5])
    """

    _magic: ClassVar[bytes] = b"abersOO\x01"
    _smallest: ClassVar[float] = 0.0

    @property
    def _reach(self) -> float:
        """Age at which the stream forgets, in its own time; infinite if it keeps all."""
        if self.window:
            return self.window - 0.5  # between the last number that stays and the first that goes
        return self.max_age or LIFETIME * (self.half_life or math.inf)

    def _part(self) -> CalibrationSet:
        if self.half_life or not math.isfinite(self._reach):
            return sets.empty(Forgetting(half_life=self.half_life))
        return sets.empty(Forgetting(max_age=self._reach))

    def _grow(self, number: int) -> None:
        closed = self._classes.closed
        for i in range(number):
            self._parts[i, number] = self._part() if closed else sets.copied(self._parts[i, UNSEEN])
        if not closed:
            self._parts[number, UNSEEN] = self._part()

    def _may_be(self, clock: float) -> bool:
        if clock == -math.inf:
            return True
        if self.window:  # it counts labels
            return 1.0 <= clock <= MAX_COUNT and clock.is_integer()
        return self._by_time and math.isfinite(clock)

    def _touched(self, row: Floats, number: int) -> Iterator[Touched]:
        others = np.delete(np.arange(len(row)), number)
        first, second = np.minimum(others, number), np.maximum(others, number)
        shares = share(row[first], row[second]).tolist()
        for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True):
            yield self._parts[i, j], score, int(i == number)
        if not self._classes.closed:
            yield self._parts[number, UNSEEN], float(share(row[[number]], np.zeros(1))[0]), 1

    def _learn_row(self, row: Floats, number: int, weight: int, time: float) -> None:
        if self.window:
            time = self._clock = max(self._clock, 0.0) + 1.0
        elif self._by_time:
            self._clock = max(self._clock, time)
        for part, score, label in self._touched(row, number):
            part.learn(score, label, weight, time)

    def _predict_row(self, row: Floats, weight: int, time: float) -> Triple:
        """Predict one observation by coupling the predictions of all pairs of classes."""
        now = max(self._clock, -math.inf if math.isnan(time) else time)
        when = now if now > -math.inf else math.nan
        first, second = np.triu_indices(len(row), 1)
        shares = share(row[first], row[second]).tolist()
        pairs = [
            self._pair(i, j).predict(score, weight, when)
            for i, j, score in zip(first.tolist(), second.tolist(), shares, strict=True)
        ]
        coupling = PKPD(len(row), 1)
        p0, p1 = np.array(pairs).reshape(-1, 2, 1).swapaxes(0, 1)
        coupling.add(first, second, p0, p1)
        p, low, high = coupling.result()
        return p[:, 0], low[:, 0], high[:, 0]

    def _pair(self, i: int, j: int) -> CalibrationSet:
        """Find the calibrator of a pair; one class or both may have no number yet."""
        known = len(self._classes)
        if j < known:
            return self._parts[i, j]
        return self._parts[i, UNSEEN] if i < known else self._part()

    def _run(self, steps: Steps) -> Triple:
        """Run the steps in the set of each pair, and couple the predictions."""
        learned = np.flatnonzero(steps.kinds == LEARN)
        predicted = np.flatnonzero(steps.kinds == PREDICT)
        k = len(self._classes)
        by_class = _split(learned, steps.labels[learned], k)
        coupling, timed = PKPD(k, len(predicted)), steps._replace(times=self._times(steps))

        def run(part: CalibrationSet, rows: Integers, scores: Floats, labels: NDArray[Any]) -> Ends:
            own = timed._replace(scores=timed.scores[0]).take(rows)
            own = own._replace(scores=scores, labels=labels.astype(np.uint8))
            return sets.pairs(part, own)[:2]

        for i, j in combinations(range(k), 2):
            rows = np.sort(np.concatenate((predicted, by_class[i], by_class[j])), kind="stable")
            scores = share(steps.scores[i, rows], steps.scores[j, rows])
            p0, p1 = run(self._parts[i, j], rows, scores, steps.labels[rows] == i)
            at = steps.kinds[rows] == PREDICT
            coupling.add(np.array([i]), np.array([j]), p0[np.newaxis, at], p1[np.newaxis, at])
        if not self._classes.closed:
            for i, rows in enumerate(by_class):
                scores = share(steps.scores[i, rows], np.zeros(len(rows)))
                run(self._parts[i, UNSEEN], rows, scores, np.ones(len(rows)))
        return coupling.result()

    def _times(self, steps: Steps) -> Floats | None:
        """Return the times for the pairs, and set the clock."""
        learns = steps.kinds == LEARN
        if not learns.size or not math.isfinite(self._reach):
            return None
        if self.window:
            counted: Floats = max(self._clock, 0.0) + np.cumsum(learns)
            if learns.any():
                self._clock = float(counted[-1])
            return counted
        times = np.asarray(-math.inf if steps.times is None else steps.times, np.float64)
        newest = np.maximum.accumulate(np.where(learns, times, -math.inf))
        newest = np.maximum(newest, self._clock)
        self._clock = float(newest[-1])
        # A query has the newest time; a label its own, so that one too late is never in sight.
        given = np.where(learns, times, np.maximum(times, newest))
        return np.where(given > -math.inf, given, 0.0)


def _split(rows: Integers, classes: Integers, k: int) -> list[Integers]:
    """Part rows by their classes, each part in order."""
    order = np.argsort(classes, kind="stable")
    ends = np.searchsorted(classes[order], np.arange(1, k))
    return np.split(rows[order], ends)
