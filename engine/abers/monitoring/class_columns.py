"""What a test of several classes takes of their probabilities; see `CalibrationEProcess`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.scored_rows import ClassForecasts

__all__ = ["class_bets", "class_outcomes"]

_LOSSES = 4  # columns of `_losses`


def class_bets(tables: Sequence[Floats], *, each: bool) -> Floats:
    """Return a row for each prediction: of each view the largest probability, and more.

    Parameters
    ----------
    tables
        Probabilities of all classes by view, a row a prediction.
    each
        Whether each class has verdicts, and so its own columns.

    Examples
    --------
    >>> class_bets([np.array([[0.5, 0.25, 0.25]])], each=False).tolist()
    [[0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    known = [np.clip(one, 0.0, 1.0) for one in tables]
    most = np.column_stack([one.max(axis=1) for one in known])
    nothing = np.zeros((len(most), _LOSSES))
    if not each:
        return np.hstack((most, nothing))
    return np.hstack((most, nothing, *known, nothing[:, :1]))


def class_outcomes(found: Sequence[ClassForecasts], *, each: bool) -> Floats:
    """Return a row for each label: of each view whether it is the first choice, and more.

    Examples
    --------
    >>> from abers.monitoring import ClassForecasts
    >>> found = ClassForecasts(np.array([[0.5, 0.25, 0.25]]), np.array([0]))
    >>> class_outcomes([found], each=False).tolist()
    [[1.0, 0.5, 0.5, 1.0, 1.0]]
    """
    true = np.column_stack([one.true for one in found])
    issued = [np.clip(one.table, 0.0, 1.0) for one in found]
    labels = found[0].labels
    losses = _losses(issued[0], issued[-1], labels)
    if not each:
        return np.hstack((true, losses))
    return np.hstack((true, losses, *issued, labels[:, np.newaxis].astype(np.float64)))


def _losses(raw: Floats, calibrated: Floats, labels: Integers) -> Floats:
    """Return what losses need of each row; see `CalibrationEProcess`."""
    rows = np.arange(len(labels))
    ratios = np.ones_like(calibrated)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        np.divide(calibrated, raw, out=ratios, where=(raw > 0.0) | (calibrated > 0.0))
    ends = (ratios.min(axis=1), ratios.max(axis=1))
    return np.column_stack((raw[rows, labels], calibrated[rows, labels], *ends))
