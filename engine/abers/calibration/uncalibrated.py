"""The scores as they are.

Governing rule: nothing is changed; observations are counted and forgotten as elsewhere.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from abers.calibration._baseline import Baseline

if TYPE_CHECKING:
    from abers.calibration._typing import Floats

__all__ = ["Uncalibrated"]


class Uncalibrated(Baseline):
    """No calibration: the score is the probability, whatever was learned.

    Parameters
    ----------
    window, max_age, half_life
        How to forget, as of `VennAbers`; of no effect but on `len`.

    Raises
    ------
    ParameterError
        If an option makes no sense, or more than one rule of forgetting is given.

    Notes
    -----
    **Guarantee.** None. **Scores** are probabilities, in [0, 1]; others are refused.

    Examples
    --------
    >>> from abers import Uncalibrated
    >>> Uncalibrated().predict_one(0.3)
    0.3
    """

    _magic = b"abersUC\x01"
    _lowest, _highest = 0.0, 1.0

    def _map(self, scores: Floats) -> Floats:
        return scores

    def _change(self) -> int:
        return sys.maxsize  # labels, after which the map changes
