"""The cross Venn-Abers prediction of a batch.

Each fold is one calibration set, which learns all its observations and then predicts all queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.calibration.cross_intervals import CrossIntervals
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


__all__ = ["cvap"]


def cvap(
    scores: Sequence[ArrayLike], labels: Sequence[ArrayLike], queries: Sequence[ArrayLike]
) -> CrossIntervals:
    """Cross Venn-Abers prediction of a batch, by K calibration sets.

    Parameters
    ----------
    scores, labels
        K arrays each, of shape (n_k,): for fold k, the scores of its observations by the scorer
        that was trained without them, and their labels.
    queries
        K arrays of shape (m,): the scores of the test observations by each of the K scorers.

    Returns
    -------
    CrossIntervals
        Arrays of shape (m, K).

    Raises
    ------
    InputError
        If the numbers of arrays or of queries differ, or a value cannot be used.

    Notes
    -----
    **Guarantee.** None (see `CrossVennAbers`).

    References
    ----------
    Vovk, Petej & Fedorova (2015), section 4, Algorithms 1-6.

    Examples
    --------
    >>> from abers.batch import cvap
    >>> scores, labels = [[0.1, 0.35, 0.4, 0.8], [0.2, 0.6]], [[0, 0, 1, 1], [0, 1]]
    >>> found = cvap(scores, labels, [[0.5, 0.9], [0.4, 0.9]])
    >>> found.p0.tolist(), found.p1.tolist()
    ([[0.5, 0.0], [0.6666666666666666, 0.5]], [[1.0, 1.0], [1.0, 1.0]])
    >>> found.merged.round(4).tolist()
    [0.5858, 0.7101]
    """
    if not len(scores) == len(labels) == len(queries) > 0:
        msg = (
            f"scores has {len(scores)} arrays, labels {len(labels)}, queries {len(queries)}; "
            "give one of each per fold, and at least one"
        )
        raise ParameterError(msg)
    columns = [validation.at(f"fold {k}", validation.scores, one) for k, one in enumerate(queries)]
    rows = {len(column) for column in columns}
    if len(rows) > 1:
        msg = f"queries has {sorted(rows)} rows; each scorer must score every test observation"
        raise ParameterError(msg)
    p0, p1 = np.empty((2, len(columns), rows.pop()))
    for k, column in enumerate(columns):
        calibrator = VennAbers()
        validation.at(f"fold {k}", calibrator.learn_many, scores[k], labels[k])
        p0[k], p1[k] = calibrator.predict_many(column)
    return CrossIntervals(p0.T, p1.T)
