"""What calibrators share with sets and a mixture of methods in one model of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

from abers.backends import core
from abers.calibration import sets
from abers.calibration.lane_mixture import ProbabilityMixture

if TYPE_CHECKING:
    from abers._core import ClassMixture, ClassProtection, FoldProtection, MethodMixture, Protection
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

    Protected: TypeAlias = Protection | FoldProtection | ClassProtection

__all__ = [
    "CLASS_METHODS",
    "FOLD_METHODS",
    "METHODS",
    "MethodNames",
    "ProtectedPool",
    "is_protected",
]

METHODS = (
    "raw",
    "venn_abers",
    "jumper",
    "platt",
    "stack_scores",
    "stack_all",
    "stack_2000",
    "stack_1000",
    "share",
    "share_16",
    "share_arrival",
)
"""Names of the methods of two classes, in the order of the core."""

FOLD_METHODS = tuple("cross_venn_abers" if name == "venn_abers" else name for name in METHODS)
"""Those of K scores."""

CLASS_METHODS = (
    "raw",
    "one_vs_rest",
    "stack_scores",
    "stack_all",
    "stack_1000",
    "stack_100",
    "share",
    "share_16",
    "product",
)
"""Those of several classes."""


def is_protected(model: object) -> TypeGuard[Protected]:
    """Return whether a model of the core is a protected calibrator."""
    return isinstance(model, core.Protection | core.FoldProtection | core.ClassProtection)


class MethodNames(ProbabilityMixture):
    """A mixin of what has a model of the core: its methods by name, and their mixture."""

    _model: Protected

    @property
    def experts(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        if isinstance(self._model, core.ClassProtection):
            return CLASS_METHODS
        return FOLD_METHODS if isinstance(self._model, core.FoldProtection) else METHODS

    @property
    def _mixture(self) -> MethodMixture | ClassMixture:  # type: ignore[override]
        return self._model.mixture


class ProtectedPool(MethodNames):
    """A mixin of calibrators: steps, which the model takes one by one or in runs."""

    def __len__(self) -> int:
        """Count the observations that the calibrator of the intervals holds."""
        return self._model.size

    def _expire(self, number: int) -> None:
        self._model.expire(number)

    def _ran(self, steps: Steps, scores: Floats, held: Integers | None) -> tuple[Floats, int]:
        """Run steps with a row of scores each; return rows of answers, and the steps taken."""
        out = np.empty((len(steps.kinds), self._model.forecast_width))
        done = self._model.run(
            steps.kinds,
            np.ascontiguousarray(scores),
            np.asarray(steps.labels, np.int64),
            steps.weights,
            steps.times,
            steps.numbers,
            out,
            held,
        )
        return out, done

    def _must_copy(self, steps: Steps) -> bool:
        return sets.may_overflow(self._model, steps)

    def _save(self) -> bytes:
        return self._model.save()
