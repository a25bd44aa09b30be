"""The all-time scores of one binary calibrator's predictions, raw beside calibrated.

Governing rule: as of `abers.monitoring.views`; here only rows are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from abers.calibration import log_merge
from abers.monitoring.scores import PrequentialScores
from abers.monitoring.views import Views

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Read: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]

__all__ = ["BinaryMonitor"]


class BinaryMonitor(Views):
    """Scores of the raw and of the merged probabilities, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.
    read
        Gives score, p0, p1 and their merge of rows; by default a row is score, p0 and p1.

    Attributes
    ----------
    raw, calibrated
        `PrequentialScores` of the two; `raw` is None where scores are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = BinaryMonitor(raw=True)
    >>> monitor.update(np.array([[0.9, 0.5, 1.0]]), np.array([1.0]))
    >>> monitor.mean_width, round(monitor.raw.brier, 4)
    (0.5, 0.01)
    """

    kind = PrequentialScores

    def __init__(self, *, raw: bool, read: Read | None = None) -> None:
        super().__init__(raw=raw)
        self._read = read or _read

    def update(self, rows: Floats, labels: Floats) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows
            Array of shape (n, 3), or what `read` reads.
        labels
            Array of shape (n,).
        """
        score, p0, p1, p = self._read(rows)
        self._judge(score, p, p1 - p0, labels)


def _read(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    score, p0, p1 = rows.T
    return score, p0, p1, log_merge(p0, p1)
