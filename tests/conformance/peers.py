"""How other packages are asked, so that tests need not know.

A peer is asked by the class that its own documentation names for scores that are at
hand already; for MAPIE that one is in a private module, and its error message sends users there.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mapie import _venn_abers as mapie
from numpy.typing import ArrayLike, NDArray
from venn_abers import venn_abers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType

Floats = NDArray[np.float64]

VENN_ABERS, MAPIE = venn_abers, mapie
EVERY_PEER = pytest.mark.parametrize("peer", [VENN_ABERS, MAPIE], ids=["venn-abers", "MAPIE"])


def quiet() -> AbstractContextManager[Any]:
    """Ignore that peers divide 0 by 0, which some of them count on."""
    return warnings.catch_warnings(action="ignore", category=RuntimeWarning)


def two_columns(scores: ArrayLike) -> Floats:
    """Write scores as probabilities of both classes; peers read the second column."""
    one = np.asarray(scores, float)
    return np.column_stack([1.0 - one, one])


def ends(
    peer: ModuleType,
    scores: ArrayLike,
    labels: ArrayLike,
    queries: ArrayLike,
    precision: int | None = None,
) -> Floats:
    """Ask a peer for p0 and p1, a row a query."""
    calibrator = peer.VennAbers()
    with quiet():
        calibrator.fit(two_columns(scores), np.asarray(labels, float), precision=precision)
        found: Floats = calibrator.predict_proba(two_columns(queries))[1]
    return found


def coupled(
    peer: ModuleType, scores: Floats, labels: ArrayLike, queries: Floats, kind: str
) -> Floats:
    """Ask a peer for the probabilities of several classes, `one_vs_one` or `one_vs_all`."""
    with quiet():
        found: Floats = peer.predict_proba_prefitted_va(
            scores, np.asarray(labels), queries, va_tpe=kind
        )[0]
    return found


def means(scores: ArrayLike, labels: ArrayLike, queries: ArrayLike) -> Floats:
    """Ask venn-abers for the intervals of means, a row a query."""
    calibrator = VENN_ABERS.VennAbers(setting="regression")
    with quiet():
        calibrator.fit(p_cal=np.asarray(scores, float), y_cal=np.asarray(labels, float))
        found: Floats = calibrator.predict_proba(p_test=np.asarray(queries, float))[1]
    return found


def unbounded_means(scores: ArrayLike, labels: ArrayLike, queries: ArrayLike, m: int = 1) -> Floats:
    """Ask venn-abers for the intervals of means without bounds, a row a query.

    As its own class for cross-validated regression does: each end from labels that are clipped
    for it.
    """
    y = np.asarray(labels, float)
    ordered, k = np.sort(y), len(y)
    low = np.clip(y, ordered[m - 1], ordered[k - m - 1])
    high = np.clip(y, ordered[m], ordered[k - m])
    ends = [means(scores, end, queries) for end in (low, high)]
    return np.column_stack([ends[0][:, 0], ends[1][:, 1]])
