"""Labels of `run`: those of predictions do not count, and classes go by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers import (
    BetaCalibration,
    CrossVennAbers,
    Isotonic,
    LabelError,
    OneVsOne,
    OneVsRest,
    Platt,
    ProtectedCrossVennAbers,
    ProtectedMultiClass,
    ProtectedVennAbers,
    Uncalibrated,
    VennAbers,
)
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.batch import IVAR, UnboundedIVAR, VennMulticalibration
from abers.calibration import DirectIsotonic, UncalibratedClasses
from abers.regression import IVAPR, ProtectedIVAPR

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.native

NAMES = ["cat", "dog", "owl"]
STEPS = np.array([LEARN, PREDICT, LEARN, PREDICT, EXPIRE])
NUMBERS = [0, 1, 2, 3, 1]
SCORES = np.array([0.1, 0.4, 0.6, 0.3, 0.5])
TABLE = np.column_stack((SCORES, (1.0 - SCORES) / 2, (1.0 - SCORES) / 2))
FOLDS = np.column_stack((SCORES, 1.0 - SCORES))
OF_CLASSES = [OneVsRest, OneVsOne, ProtectedMultiClass, UncalibratedClasses]
MADE: list[tuple[Callable[[], Any], Any, dict[str, Any]]] = [
    *((kind, SCORES, {}) for kind in (VennAbers, Isotonic, DirectIsotonic, Platt)),
    *((kind, SCORES, {}) for kind in (BetaCalibration, ProtectedVennAbers, Uncalibrated, IVAPR)),
    (lambda: ProtectedIVAPR((1.0, 3.0)), SCORES, {}),
    (lambda: IVAR(1.0, 3.0), SCORES, {}),
    (UnboundedIVAR, SCORES, {}),
    (lambda: VennMulticalibration(0.0, 1.0, 1), np.round(FOLDS), {}),
    (lambda: CrossVennAbers(2), FOLDS, {"folds": [0, 0, 1, 0, 0]}),
    (lambda: ProtectedCrossVennAbers(2), FOLDS, {"folds": [0, 0, 1, 0, 0]}),
    *((lambda kind=kind: kind(NAMES), TABLE, {}) for kind in OF_CLASSES),
]


@pytest.mark.parametrize("case", range(len(MADE)))
@pytest.mark.parametrize("ignored", [None, "unknown", np.nan, 7, [1]])
def test_labels_of_predictions_and_expiries_are_ignored(case: int, ignored: object) -> None:
    """Whatever stands there, answers and state are as with any label."""
    make, scores, columns = MADE[case]
    first, second = make(), make()
    labels = np.empty(5, object)
    labels[:] = [1, ignored, 1, ignored, ignored]
    expected = first.run(STEPS, scores, [1] * 5, numbers=NUMBERS, **columns)
    found = second.run(STEPS, scores, labels, numbers=NUMBERS, **columns)
    assert np.array_equal(np.array(found), np.array(expected), equal_nan=True)
    assert first.state_bytes() == second.state_bytes()


@pytest.mark.parametrize("kind", OF_CLASSES)
@pytest.mark.parametrize("labels", [["dog"] * 5, np.array(["dog"] * 5), [0, 0, None, 0, 0]])
def test_classes_go_by_their_numbers(kind: Callable[..., Any], labels: Any) -> None:  # noqa: ANN401
    """A name, or none, is an error that says how to find the number, and nothing is learned."""
    calibrator = kind(NAMES)
    before = calibrator.state_bytes()
    wrong = r"row (0: label 'dog'|2: label None) is not the number of a class, 0 to 2; run takes "
    with pytest.raises(LabelError, match=wrong + r"numbers.*calibrator\.classes\.index\(name\)"):
        calibrator.run(STEPS, TABLE, labels, numbers=NUMBERS)
    assert calibrator.state_bytes() == before
    number = calibrator.classes.index("dog")
    by_number, by_name = kind(NAMES), kind(NAMES)
    by_number.run([LEARN] * 5, TABLE, [number] * 5)
    by_name.learn_many(TABLE, ["dog"] * 5)
    assert by_number.state_bytes() == by_name.state_bytes()
