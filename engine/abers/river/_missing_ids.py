"""The warning about labels that come late and without an id.

Without an id, `learn_one` scores the features with the model as it is by then. If labels come late,
the calibrator so learns scores that were never predicted.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

from abers.exceptions import MissingIdWarning

__all__ = ["MissingIdCheck"]

_Row: TypeAlias = dict[Any, Any]  # features
_MOST = 100  # predictions to compare with; the first late label comes for one of the oldest
_MESSAGE = (
    "a label came without id, and not for the last prediction: the calibrator learns the score of "
    "the features as the model scores them now, not the score that was predicted; pass the same "
    "id=… to the prediction and to learn_one (river's progressive_val_score passes {'id': i} as "
    "the third item of an event)"
)


class MissingIdCheck:
    """Predictions without an id since the last label, and whether the warning was issued.

    It warns once, at a label for features that were predicted, but not last. In a loop that
    predicts and learns each observation the features are those of the last prediction. Behind
    a transformer that learns, the features of a label differ from those of its prediction, so late
    labels may pass unnoticed. Copies and pickles leave the predictions out.
    """

    def __init__(self) -> None:
        self._first: list[_Row] = []
        self._last: _Row | None = None
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the predictions, which so have no effect on a saved wrapper."""
        return {"_first": [], "_last": None, "_warned": self._warned}

    def predicted(self, x: _Row) -> None:
        """Remember the features of a prediction without an id."""
        if self._warned or x is self._last:
            return
        if len(self._first) < _MOST:
            self._first.append(x)
        self._last = x

    def learned(self, x: _Row) -> None:
        """Warn if a label without an id is for an earlier prediction, and forget them all."""
        first, last = self._first, self._last
        if last is None:
            return
        self._first, self._last = [], None
        if not _same(x, last) and any(_same(x, each) for each in first):
            self._warned = True
            warnings.warn(_MESSAGE, MissingIdWarning, stacklevel=3)


def _same(x: _Row, other: _Row) -> bool:
    try:
        return x is other or bool(x == other)
    except ValueError:  # an array among the features, which has no truth value
        return False
