"""Baselines whose map has parameters, fitted anew from time to time.

Governing rule: a fit starts from the last one, and the next is due after a fixed share of
the observations then held; so the parameters are a function of what was learned alone.
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from abers._saved import MOST, require
from abers._shown import shown
from abers.calibration import _checks
from abers.calibration._baseline import Baseline
from abers.exceptions import ParameterError, ScoreError

if TYPE_CHECKING:
    from abers.calibration._store import Groups, Store
    from abers.calibration._typing import Floats

__all__ = ["STEEPEST", "Refitted", "share"]

STEEPEST = 1.0 / np.finfo(float).eps
"""More than any parameter of a fitted curve; steeper ones leave what a double holds."""

_SCHEDULE = struct.Struct("<dQ")


class Refitted(Baseline):
    """A map of some parameters."""

    _first: tuple[float, ...]  # parameters of a map that has learned nothing

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        refit: float = 0.01,
    ) -> None:
        self._refit = share(refit)
        super().__init__(window, max_age, half_life)

    def _set(self, store: Store) -> None:
        super()._set(store)
        self._fitted: Floats = np.array(self._first)

    @property
    def refit(self) -> float:
        """Share of the observations held after which as many new labels make a fit due."""
        return self._refit

    @abstractmethod
    def _fit(self, groups: Groups) -> Floats:
        """Fit the parameters to groups, of which there is at least one, from those of now."""

    def _change(self) -> int:
        groups = self._store.groups()
        if len(groups.scores):
            self._fitted = self._fit(groups)
        return max(1, math.ceil(self._refit * len(self)))

    def _may_be(self, parameters: Floats) -> bool:
        """Tell whether parameters can have been fitted."""
        return bool((np.abs(parameters) < STEEPEST).all())

    def _saved(self) -> list[bytes]:
        schedule = _SCHEDULE.pack(self._refit, self._due)
        return [*super()._saved(), schedule, self._fitted.astype("<f8").tobytes()]

    def _restore(self, pieces: list[bytes]) -> None:
        store, schedule, fitted = pieces
        parameters = np.frombuffer(fitted, "<f8").astype(np.float64)
        refit, due = _SCHEDULE.unpack(schedule)
        require(parameters.shape == (len(self._first),) and self._may_be(parameters), "parameters")
        require(0 < due <= MOST, "labels to the next fit")
        self._refit = share(refit)
        super()._restore([store])
        self._due, self._fitted = due, parameters


def share(refit: float) -> float:
    """Check the share of what is held after which a fit is due."""
    try:
        checked = _checks.score(refit)
    except ScoreError:
        checked = math.nan
    if not 0.0 <= checked <= 1.0:
        msg = f"refit={shown(refit)} is not a share in [0, 1] of the observations held"
        raise ParameterError(msg)
    return checked
