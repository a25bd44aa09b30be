"""Protected class probabilities: calibration of several classes at a bounded price.

A mixture of methods gives the vector of probabilities: the raw one, one-vs-rest Venn-Abers
calibrators, and regressions that combine these. The core runs all of it.

A new class of a protected calibrator: what its calibrator knows about it. Earlier observations have
another class, and score 0 for the new class.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abers import validation
from abers.backends import core
from abers.base import Calibrator, Capabilities
from abers.calibration import sets
from abers.calibration._classes import Classes, ClassProbabilities, Label
from abers.calibration.intervals import MultiInterval, MultiIntervals
from abers.calibration.protected import ProtectedPool
from abers.exceptions import ParameterError
from abers.mathematics import Forgetting
from abers.serialization import pack, require, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers._core import CalibrationSet, ClassProtection
    from abers.arrays import Floats, Integers
    from abers.mathematics import Steps

__all__ = ["ProtectedMultiClass", "class_protection", "rest_of_new"]


def rest_of_new(held: CalibrationSet) -> CalibrationSet:
    """Return the one-vs-rest set of a new class, from that of any other class."""
    found = sets.empty(Forgetting.of(held))
    if held.window or held.lifetime:
        scores, labels, weights, times = sets.observations(held)
        order = np.lexsort((weights, times)) if held.lifetime else np.arange(len(scores))
        nothing = np.zeros_like(scores), np.zeros_like(labels)
        found.load_observations(*nothing, weights[order], times[order], held.late)
    elif held.size:
        total = np.array([held.total])
        found.load_groups(np.zeros(1), total, np.zeros(1, np.int64), held.size)
    return found


def class_protection(
    rule: Forgetting, classes: int, raw_weight: float = 0.25, **teaching: int
) -> ClassProtection:
    """Return a calibrator without labels; `teaching` is as in `protection`."""
    held = [sets.empty(rule) for _ in range(classes)]
    model: ClassProtection = core.ClassProtection(held, 0, raw_weight, **teaching)
    return model


class ProtectedMultiClass(
    ProtectedPool,
    ClassProbabilities,
    Calibrator[Any, Label, MultiInterval, MultiIntervals],
):
    """Calibrate a model of several classes that may drift, with late labels, at a bounded price.

    The vector of probabilities is a mixture of forecasts that are made when an observation is
    predicted, and never again: the raw vector; one-vs-rest calibrators, drawn to the raw vector
    where their intervals are wide; multinomial regressions that combine these, some of them with
    averages of late scores, labels and errors; fixed share over all of these, and their product.
    docs/protection.md has all of them.

    Parameters
    ----------
    classes
        All classes: strings, whole numbers or truth values; others are refused.
    window, max_age, half_life
        A rule of forgetting is that of the one-vs-rest calibrators, which make the intervals.
    raw_weight
        Weight of the raw vector in the mixture at first, between 0 and 1.
    max_classes
        The greatest number of classes; memory and time grow with that of the classes.

    Raises
    ------
    ParameterError
        If an option is invalid, more than one rule of forgetting is given, or the classes are not
        2 to `max_classes` different labels.

    Notes
    -----
    **Scores** are probabilities of the classes, which sum to 1 within .02; a class that is missing
    from a dict has score 0. The **raw vector** is each score clipped to [1e-6, 1 - 1e-6], divided
    by the sum of all of them.

    **Guarantee.** On any sequence of observations with numbers, with any delays, in any order, and
    labels lost or not: over the labels of awaited observations, the log loss of `p` exceeds that of
    the raw vector by at most C ln(1 / `raw_weight`) in total. C is `lanes`, the largest number of
    observations that ever awaited their labels together. The same holds against each other method,
    with its own weight. The intervals are those of `OneVsRest`, with their guarantee.

    Numbers, expiries, **weights** and the **order of teaching** are as in `ProtectedVennAbers`,
    where labels of two classes must have come, and delays must be alike for all classes that did.

    References
    ----------
    Those of `ProtectedVennAbers` and `OneVsRest`.

    Examples
    --------
    >>> from random import Random
    >>> from abers import ProtectedMultiClass
    >>> rng, calibrator = Random(1), ProtectedMultiClass(["cat", "dog", "owl"])
    >>> scores = {"cat": 0.8, "dog": 0.1, "owl": 0.1}
    >>> round(calibrator.predict_one(scores, number=0).p["cat"], 4)
    0.8
    >>> for number in range(1, 400):
    ...     p = calibrator.predict_one(scores, number=number).p
    ...     calibrator.learn_one(scores, rng.choice(["cat", "dog"]), number=number)
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
    _model: ClassProtection

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
        self._model = class_protection(self._forgetting, len(known), self._raw_weight)

    def _become(self, classes: Classes, raw_weight: float, rule: Forgetting) -> None:
        self._raw_weight = validation.fraction(raw_weight, "raw_weight")
        self._classes = classes
        self._forget_by(rule)

    # What it is

    @property
    def late(self) -> int:
        """Number of labels that came too old for the calibrator of the intervals."""
        with self._lock:
            return int(self._held[0].late)

    @property
    def _held(self) -> list[CalibrationSet]:
        return self._model.held

    def _options(self) -> list[str]:
        weight = [f"raw_weight={self._raw_weight!r}"] if self._raw_weight != 0.25 else []  # noqa: PLR2004
        return [f"{len(self._classes)} classes", *super()._options(), *weight]

    # Classes

    def add_class(self, label: Label) -> None:
        """Add a class, behind those that are known.

        For its calibrator earlier observations are of other classes, and have score 0. Observations
        that await labels expire, since their vectors lack the class.

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
            classes = Classes([*self.classes, label], self.max_classes)
            self._model.expire_all()
            self._model.grow(rest_of_new(self._held[0]))
            self._classes = classes

    # Steps

    def _predict(self, score: Floats, weight: int, time: float, number: int) -> MultiInterval:
        row, k = self._model.predict(score.tolist(), weight, time, number), len(self._classes)
        parts = row[:k], row[k : 2 * k], row[2 * k :]
        return MultiInterval(*(dict(zip(self.classes, part, strict=True)) for part in parts))

    def _learn(self, score: Floats, label: int, weight: int, time: float, number: int) -> bool:
        return self._model.learn(score.tolist(), label, weight, time, number)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[MultiIntervals, int]:
        rows, done = self._ran(steps, steps.scores.T, held)
        return MultiIntervals(*rows.reshape(len(rows), 3, -1).swapaxes(0, 1)), done

    # Saving

    def _save(self) -> bytes:
        text = json.dumps([self.max_classes, *self.classes]).encode()
        return pack([text, super()._save()])

    def _load(self, payload: memoryview) -> None:
        text, state = unpack(payload)
        most, *labels = json.loads(text)
        classes = Classes.known(labels, most, closed=True)
        model: ClassProtection = core.ClassProtection.load(bytes(state))
        held = model.held
        require(len(held) == len(classes), "calibrators")
        self._become(classes, model.raw_weight, Forgetting.of(held[0]))
        self._model = model
