"""The base of calibrators that answer with an interval of one level, from IVAPR's set."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

import numpy as np

from abers import validation
from abers.arrays import ONE
from abers.backends import core
from abers.forgetting import Forgetting
from abers.mathematics import Many, One
from abers.regression import predictive_sets
from abers.regression.bounded_labels import BoundedCalibrator
from abers.serialization import pack, require, unpack

if TYPE_CHECKING:
    from abers._core import PredictiveSet

__all__ = ["EVERYWHERE", "LevelCalibrator"]

EVERYWHERE = (-np.inf, np.inf)
_LEVEL_STRUCT = struct.Struct("<d")

S = TypeVar("S")  # a score


class LevelCalibrator(BoundedCalibrator[S, One, Many], Generic[S, One, Many]):
    """A calibrator with one level, and a set of scores and numbers of weight 1."""

    _ends: tuple[float, float] = EVERYWHERE
    _ends_name: ClassVar[str] = "support"

    def __init__(
        self,
        level: float,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(window, max_age, half_life)
        self._level = float(validation.levels(level, "level"))
        rule = self._forgetting
        ages = (rule.max_age or 0.0, rule.half_life or 0.0)
        self._held = cast("PredictiveSet", core.PredictiveSet(rule.window or 0, *ages))

    @property
    def level(self) -> float:
        """The probability with which an interval is to cover the label."""
        return self._level

    def _options(self) -> list[str]:
        return [str(self._level), *super()._options()]

    def _save(self) -> bytes:
        held = predictive_sets.dump(self._held, EVERYWHERE, np.empty(0))
        return pack([_LEVEL_STRUCT.pack(self._level), held])

    def _load(self, payload: memoryview) -> None:
        packed_level, packed_set = unpack(payload)
        (level,) = _LEVEL_STRUCT.unpack(packed_level)
        held, header, grid = predictive_sets.load(packed_set)
        require((header.lo, header.hi) == EVERYWHERE, "support")
        require(not len(grid), "grid")
        weights = predictive_sets.rows(held)[2]
        require(held.total == held.size * ONE and not (weights % ONE).any(), "weights")
        self._forget_by(Forgetting.of(held))
        self._level, self._held = float(validation.levels(level, "level")), held
