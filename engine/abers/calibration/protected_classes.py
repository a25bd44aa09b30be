"""Protected class probabilities: calibration of several classes at a bounded price.

A mixture of experts gives the vector of probabilities: the raw one, and one-vs-rest and one-vs-one
Venn-Abers calibrators. The calibration sets of the core and the mixture run a batch one after the
other, in columns.
"""

from __future__ import annotations

import json
import math
import struct
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abers.arrays import EXPIRE, LEARN, ONE, PREDICT
from abers.backends import core
from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration._class_probabilities import ClassProbabilities
from abers.calibration._classes import Classes, Label
from abers.calibration.class_experts import one_vs_one, one_vs_rest, pair_count, vectors
from abers.calibration.class_growth import pair_with_new, rest_of_new
from abers.calibration.intervals import MultiInterval, MultiIntervals
from abers.calibration.lane_mixture import PIECES, ProbabilityMixture, first_weight
from abers.calibration.mixture_steps import HALF_LIVES, rules, set_steps
from abers.exceptions import ParameterError
from abers.forgetting import Forgetting
from abers.serialization import MAX_COUNT, pack, require, unpack
from abers.steps import NO_NUMBER, one_step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers._core import CalibrationSet, ClassAggregation
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["ProtectedMultiClass"]

_HEADER = struct.Struct("<dqqqq")


class ProtectedMultiClass(
    ClassProbabilities,
    ProbabilityMixture,
    Calibrator[Any, Label, MultiInterval, MultiIntervals],
):
    """Calibrate a model of several classes that may drift, with late labels, at a bounded price.

    The vector of probabilities is a mixture of forecasts that are made when an observation is
    predicted, and never again: the raw vector; one-vs-rest calibrators of all observations and with
    half-lives of 300 and 3,000 predictions, and a one-vs-one calibrator, drawn to the raw vector
    where their intervals are wide; and fixed share over these. Online Platt scaling and the
    composite jumper, which `ProtectedVennAbers` has, are maps of the log odds of one label, so they
    are left out here.

    Parameters
    ----------
    classes
        All classes: strings, whole numbers or truth values; others are refused.
    window, max_age, half_life
        A rule of forgetting is that of the calibrators of all observations; one-vs-rest returns
        the intervals. A window counts the labels of a pair in one-vs-one.
    raw_weight
        Weight of the raw vector in the mixture at first, between 0 and 1.
    max_classes
        The greatest number of classes; memory and time grow with its square.

    Raises
    ------
    ParameterError
        If an option makes no sense, more than one rule of forgetting is given, or the classes are
        not 2 to `max_classes` different labels.

    Notes
    -----
    **Scores** are probabilities of the classes, which sum to 1 within .02; a class that is missing
    from a dict has score 0. The **raw vector** is each score clipped to [1e-6, 1 - 1e-6], divided
    by the sum of all of them.

    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the log loss of `p` exceeds that of
    the raw vector by at most C ln(1 / `raw_weight`) in total. C is `lanes`, the largest number of
    observations that ever awaited their labels together. The same holds against each other expert,
    with its own weight. The intervals are those of `OneVsRest`, with their guarantee.

    Numbers, expiries and **weights** are as in `ProtectedVennAbers`.

    References
    ----------
    Those of `ProtectedVennAbers`, `OneVsRest` and `OneVsOne`.

    Examples
    --------
    >>> from abers import ProtectedMultiClass
    >>> calibrator = ProtectedMultiClass(["cat", "dog", "owl"])
    >>> scores = {"cat": 0.8, "dog": 0.1, "owl": 0.1}
    >>> round(calibrator.predict_one(scores, number=0).p["cat"], 4)
    0.8
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one(scores, number=number).p
    ...     calibrator.learn_one(scores, "cat" if number % 2 else "dog", number=number)
    >>> round(p["cat"], 1), round(p["dog"], 1), calibrator.lanes
    (0.5, 0.5, 2)
    """

    capabilities = Capabilities(
        task="multiclass",
        score="class probabilities",
        answer="classes",
        removal="none",
        stateful=True,
        options=("raw_weight",),
    )
    _magic: ClassVar[bytes] = b"abersPM\x01"
    _lowest: float = math.nan  # a number is no score

    def __init__(
        self,
        classes: Iterable[Label],
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        raw_weight: float = 0.25,
        max_classes: int = 100,
    ) -> None:
        if classes is None:
            msg = "classes=None must be a list of labels"
            raise ParameterError(msg)
        known = Classes(classes, max_classes)
        super().__init__(window, max_age, half_life)
        self._become(known, raw_weight, self._forgetting)
        k = len(known)
        self._rests: list[list[CalibrationSet]] = [
            [sets.empty(rule) for _ in range(k)] for rule in rules(self._forgetting)
        ]
        self._pairs: list[CalibrationSet] = [
            sets.empty(self._forgetting) for _ in range(pair_count(k))
        ]

    def _become(self, classes: Classes, raw_weight: float, rule: Forgetting) -> None:
        self._raw_weight = first_weight(raw_weight, "raw_weight")
        self._classes = classes
        self._forget_by(rule)
        self._mixture: ClassAggregation = core.ClassAggregation(
            len(classes), len(self.experts) - 2, self._raw_weight
        )

    # What it is

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the experts, in order."""
        rates = [f"half_life_{one}" for one in HALF_LIVES]
        return ("raw", "one_vs_rest", *rates, "one_vs_one", "fixed_share")

    @property
    def late(self) -> int:
        """Number of labels that came too old for the calibrator of the intervals."""
        with self._lock:
            return int(self._held[0].late)

    def __len__(self) -> int:
        """Count the observations that the calibrator of the intervals holds."""
        return int(self._held[0].size)

    @property
    def _held(self) -> list[CalibrationSet]:
        return self._rests[0]

    def _options(self) -> list[str]:
        weight = [f"raw_weight={self._raw_weight!r}"] if self._raw_weight != 0.25 else []  # noqa: PLR2004
        return [f"{len(self._classes)} classes", *super()._options(), *weight]

    # Classes

    def add_class(self, label: Label) -> None:
        """Add a class, behind those that are known.

        For the experts earlier observations are of other classes, and have score 0 for the new
        class. Observations that await labels expire, since their vectors lack the class.

        Parameters
        ----------
        label
            The class: a string, a whole number or a truth value.

        Raises
        ------
        LabelError
            If it is no label.
        ParameterError
            If it is known, or there are `max_classes` already.

        Examples
        --------
        >>> from abers import ProtectedMultiClass
        >>> calibrator = ProtectedMultiClass(["cat", "dog"])
        >>> calibrator.learn_one({"cat": 0.6, "dog": 0.4}, "dog")
        >>> calibrator.add_class("owl")
        >>> calibrator.predict_one({"cat": 0.5, "dog": 0.2, "owl": 0.3}).p["owl"] > 0.2
        True
        """
        with self._lock:
            classes, old = Classes([*self.classes, label], self.max_classes), self._mixture
            pairs = iter(self._pairs)
            ends = [pair_with_new(one) for one in self._rests[0]]
            grown = [[*islice(pairs, len(ends) - 1 - i), end] for i, end in enumerate(ends)]
            self._pairs = [*chain.from_iterable(grown)]
            for part in self._rests:
                part.append(rest_of_new(part[0]))
            self._become(classes, self._raw_weight, self._forgetting)
            self._mixture.take_over(old)

    # One step

    def _predict(self, score: Floats, weight: int, time: float, number: int) -> MultiInterval:
        answers, _ = self._take(one_step(PREDICT, score, 0, weight, time, number), None)
        p, low, high = (
            dict(zip(self.classes, column[0].tolist(), strict=True)) for column in answers
        )
        return MultiInterval(p, low, high)

    def _learn(self, score: Floats, label: int, weight: int, time: float, number: int) -> bool:
        steps = one_step(LEARN, score, label, weight, time, number)
        saved = self._save() if self._must_copy(steps) else None
        _, done = self._take(steps, None)
        if done < 1:
            self._undo(steps, done, saved)
        return done == 1

    def _expire(self, number: int) -> None:
        score = np.ones(len(self._classes))
        self._take(one_step(EXPIRE, score, 0, ONE, math.nan, number), None)

    # Batches

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MultiIntervals, int]:
        n, k = len(steps.kinds), len(self._classes)
        numbers = np.full(n, NO_NUMBER) if steps.numbers is None else steps.numbers
        of_sets = set_steps(self._mixture, steps, numbers)
        own, rows = of_sets.own, of_sets.rows
        at = rows[own.kinds == PREDICT]
        raw = vectors(steps.scores)
        given = np.full((n, len(self.experts) - 1, k), np.nan)
        given[:, 0] = raw.T
        answers = np.full((3, n, k), np.nan)
        sizes, before = np.empty(len(rows), np.int64), len(self)
        for expert, part in enumerate(self._rests):
            timed = own._replace(times=of_sets.times(expert))
            found = one_vs_rest(part, timed, raw[:, at], sizes if part is self._held else None)
            if found.done < len(rows):
                return MultiIntervals(*answers), int(rows[found.done])
            given[at, 1 + expert] = found.p.T
            if part is self._held:
                answers[1:, at] = found.low.T, found.high.T
        coupled, done = one_vs_one(self._pairs, own, raw[:, at])
        if done < len(rows):
            return MultiIntervals(*answers), int(rows[done])
        given[at, -1] = coupled.T
        self._mixture.run(steps.kinds, numbers, steps.labels, given, answers[0])
        if held is not None:
            held[:] = of_sets.sizes(before, sizes)
        answers[:, steps.kinds != PREDICT] = np.nan
        return MultiIntervals(*answers), n

    def _must_copy(self, steps: Steps) -> bool:
        held = (*(part[0] for part in self._rests), *self._pairs)
        return any(sets.may_overflow(one, steps) for one in held)

    # Saving

    def _save(self) -> bytes:
        mixture = self._mixture
        counts = (mixture.moment, mixture.labels, mixture.taught, mixture.lane_count)
        pieces = [json.dumps([self.max_classes, *self.classes]).encode()]
        pieces += [
            _HEADER.pack(self._raw_weight, *counts),
            *mixture.pieces(),
        ]
        every = [one for part in (*self._rests, self._pairs) for one in part]
        return pack([*pieces, *map(sets.sealed, every)])

    def _load(self, payload: memoryview) -> None:
        text, header, *pieces = unpack(payload)
        most, *labels = json.loads(text)
        weight, moment, counted, taught, lanes = _HEADER.unpack(header)
        sound = 0 <= counted <= taught <= MAX_COUNT and 0 <= lanes <= moment <= MAX_COUNT
        require(sound and counted <= moment, "counts")
        classes = Classes.known(labels, most, closed=True)
        k = len(classes)
        held = [sets.unsealed(piece) for piece in pieces[PIECES:]]
        rests = 1 + len(HALF_LIVES)
        require(len(held) == k * rests + pair_count(k), "calibrators")
        self._rests = [held[k * part : k * (part + 1)] for part in range(rests)]
        self._pairs = held[k * rests :]
        own = Forgetting.of(held[0])
        every = [*rules(own), own]
        for part, rule in zip([*self._rests, self._pairs], every, strict=True):
            same = all(str(Forgetting.of(one)) == str(rule) for one in part)
            require(same, "rules of forgetting")
        for part in self._rests:
            require(len({(one.size, one.total, one.late) for one in part}) == 1, "calibrators")
        self._become(classes, weight, own)
        self._mixture.load_pieces(pieces[:PIECES], moment, counted, taught, lanes)
