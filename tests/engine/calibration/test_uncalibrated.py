"""No calibration, `abers.calibration.uncalibrated`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abers import InputError, ParameterError, ScoreError, StateError, Uncalibrated, WeightError
from abers.calibration import UncalibratedClasses
from abers.checks import check_calibrator
from abers.mathematics import LEARN, PREDICT
from abers.serialization import MAX_COUNT, pack, seal

if TYPE_CHECKING:
    from collections.abc import Callable

CLASSES = ["cat", "dog", "owl"]
KINDS: dict[str, Callable[[], Any]] = {
    "two": Uncalibrated,
    "several": partial(UncalibratedClasses, CLASSES),
}
EVERY_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@EVERY_KIND
def test_contract(make: Callable[[], Any]) -> None:
    """The contract of calibrators holds."""
    check_calibrator(make)


def test_scores_stay() -> None:
    """The scores are the probabilities, whatever was learned."""
    calibrator = Uncalibrated()
    calibrator.learn_many([0.9] * 9, [0] * 9)
    assert calibrator.predict_many([0.0, 0.3, 1.0]).tolist() == [0.0, 0.3, 1.0]
    assert len(calibrator) == 9


def test_scores_of_classes_stay() -> None:
    """The scores are the probabilities and both ends, also where they sum to 1 only about."""
    calibrator = UncalibratedClasses(CLASSES)
    calibrator.learn_one({"cat": 1.0}, "dog")
    found = calibrator.predict_one({"cat": 0.7, "owl": 0.31})
    assert found.p == found.low == found.high == {"cat": 0.7, "dog": 0.0, "owl": 0.31}
    table = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
    answers = calibrator.run([PREDICT, LEARN], table, [0, 2])
    for one in answers:
        assert one[0].tolist() == table[0]
        assert np.isnan(one[1]).all()
    assert len(calibrator) == 2


@EVERY_KIND
def test_memory_is_constant(make: Callable[[], Any]) -> None:
    """The state has as many bytes after thousands of labels as after none."""
    calibrator = make()
    before = len(calibrator.to_bytes())
    scores = [0.5] * 5_000 if make is Uncalibrated else [[0.2, 0.3, 0.5]] * 5_000
    labels: list[Any] = [1] * 5_000 if make is Uncalibrated else ["dog"] * 5_000
    calibrator.learn_many(scores, labels)
    assert len(calibrator) == 5_000
    assert len(calibrator.to_bytes()) == before


@pytest.mark.parametrize("bad", [-0.1, 1.0000001, 7])
def test_scores_that_are_no_probabilities_are_refused(bad: float) -> None:
    """Others than probabilities are refused one at a time and in arrays, and change nothing."""
    calibrator = Uncalibrated()
    with pytest.raises(ScoreError, match=r"^score .* is not a probability"):
        calibrator.predict_one(bad)
    with pytest.raises(ScoreError, match=r"^score .* is not a probability"):
        calibrator.learn_one(bad, 1)
    with pytest.raises(ScoreError, match=r"^row 1: score .* is not a probability"):
        calibrator.predict_many([0.5, bad])
    assert len(calibrator) == 0


@pytest.mark.parametrize("score", [{"cat": 0.5}, {"cat": 1.5, "dog": -0.5}, {"fox": 1.0}])
def test_scores_that_do_not_sum_to_1_are_refused(score: dict[str, float]) -> None:
    """Scores of several classes are probabilities of known ones that sum to about 1."""
    calibrator = UncalibratedClasses(CLASSES)
    with pytest.raises(InputError):
        calibrator.predict_one(score)
    assert len(calibrator) == 0


@pytest.mark.parametrize("classes", [None, [], ["a"], ["a", "a"]])
def test_bad_classes(classes: Any) -> None:  # noqa: ANN401 - anything may come
    """There are two classes or more, all different."""
    with pytest.raises(ParameterError, match="classes="):
        UncalibratedClasses(classes)


def test_labels_are_counted_as_far_as_counts_go() -> None:
    """A label beyond the largest count is refused with its row, and changes nothing."""
    full = pack([MAX_COUNT.to_bytes(8, "little")])
    calibrator = Uncalibrated.from_bytes(
        seal(b"abersUC\x01", pack([(MAX_COUNT - 1).to_bytes(8, "little")]))
    )
    before = calibrator.to_bytes()
    with pytest.raises(WeightError, match="row 1"):
        calibrator.learn_many([0.5, 0.5], [0, 1])
    assert calibrator.to_bytes() == before
    calibrator.learn_one(0.5, 1)
    assert calibrator.state_bytes() == full
    with pytest.raises(WeightError):
        calibrator.learn_one(0.5, 1)
    assert calibrator.state_bytes() == full


@EVERY_KIND
def test_damaged_bytes_are_refused(make: Callable[[], Any]) -> None:
    """Cut or foreign bytes raise a StateError."""
    blob = make().to_bytes()
    for bad in (b"", blob[:-1], blob[:9] + b"!" + blob[10:]):
        with pytest.raises(StateError):
            type(make()).from_bytes(bad)
