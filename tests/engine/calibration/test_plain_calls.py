"""Calls of one observation that the core answers by itself: the same answers, errors and faces."""

from __future__ import annotations

import inspect
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.cases import WORKED

from abers import TimeError, VennAbers, VennInterval, WeightError
from abers.base import Calibrator

if TYPE_CHECKING:
    from collections.abc import Callable


class Percent(float):
    """A float that says another number of itself."""

    def __float__(self) -> float:
        """Return a hundredth."""
        return self.real / 100


class Level(int):
    """An int that is not an int itself."""


SCORES: list[Any] = [
    0.36, -0.0, 0.0, 5e-324, 1.797e308, -1.797e308, float("inf"), float("-inf"), float("nan"),
    np.float64(0.36), np.float64("nan"), np.float32(0.36), np.int64(1), np.True_,
    1, True, 10**400, Decimal("0.36"), Decimal("sNaN"), Fraction(1, 3), Percent(36.0),
    "0.36", None, 1j, [0.36], np.array([0.36]),
]  # fmt: skip
LABELS: list[Any] = [
    0, 1, True, False, 1.0, np.int64(1), np.False_, Level(1),
    2, -1, 2**80, -(2**80), 0.5, float("nan"), "1", None, [1],
]  # fmt: skip


def worked() -> VennAbers:
    """Learn the worked example."""
    calibrator = VennAbers()
    calibrator.learn_many(*WORKED)
    return calibrator


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
    """Return the answer and its type, or the error and its words."""
    try:
        found = call(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - it is compared
        return type(error), str(error)
    return type(found), found


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_every_score_gets_what_the_base_class_says(score: object) -> None:
    """Whatever is given as a score, answer or error are those of the checks of all calibrators."""
    calibrator = worked()
    expected = outcome(Calibrator.predict_one, calibrator, score)
    assert outcome(calibrator.predict_one, score) == expected
    assert outcome(VennAbers.predict_one, calibrator, score) == expected
    assert outcome(calibrator.predict_one, score=score) == expected


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("label", LABELS, ids=repr)
def test_every_label_gets_what_the_base_class_says(score: object, label: object) -> None:
    """What is learned of any label, and the error, are those of the checks of all calibrators."""
    ours, general = worked(), worked()
    expected = outcome(Calibrator.learn_one, general, score, label)
    assert outcome(ours.learn_one, score, label) == expected
    assert ours.state_bytes() == general.state_bytes()
    assert (expected[0] is type(None)) == (len(ours) == len(WORKED[0]) + 1)


OPTIONS: list[dict[str, Any]] = [
    {"time": 1.0}, {"time": None}, {"weight": 2.0}, {"weight": 1}, {"weight": 0.0}, {"weight": "1"},
    {"number": 3}, {"number": -1}, {"weight": 0.25, "number": None},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_options_get_what_the_base_class_says(options: dict[str, Any]) -> None:
    """A call with options has the answer, the effect and the error that all calibrators have."""
    ours, general = worked(), worked()
    expected = outcome(Calibrator.predict_one, general, 0.36, **options)
    assert outcome(ours.predict_one, 0.36, **options) == expected
    expected = outcome(Calibrator.learn_one, general, 0.36, 1, **options)
    assert outcome(ours.learn_one, 0.36, 1, **options) == expected
    assert ours.state_bytes() == general.state_bytes()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("predict_one", ()),
        ("predict_one", (0.1, None, 1.0, 5)),
        ("learn_one", ()),
        ("learn_one", (0.1,)),
        ("learn_one", (0.1, 1, 1.0)),
    ],
)
def test_a_wrong_number_of_arguments_is_a_type_error(name: str, arguments: tuple[Any, ...]) -> None:
    """Too few and too many arguments are refused as by any Python method, and change nothing."""
    calibrator = worked()
    with pytest.raises(TypeError, match=rf"VennAbers\.{name}\(\)"):
        getattr(calibrator, name)(*arguments)
    assert calibrator == worked()


def test_a_calibrator_with_ages_wants_times() -> None:
    """A calibrator that forgets by time refuses a plain label in the words of all of them."""
    ours, general = VennAbers(max_age=1.0), VennAbers(max_age=1.0)
    kind, words = outcome(Calibrator.learn_one, general, 0.36, 1)
    assert kind is TimeError
    assert outcome(ours.learn_one, 0.36, 1) == (kind, words)
    assert len(ours) == 0


def test_what_is_too_heavy_is_refused() -> None:
    """A plain label that would make the total weight too large is refused, and not learned."""
    calibrator = VennAbers()
    for _ in range(2):
        calibrator.learn_one(0.5, 1, weight=2.0**32 - 0.25)
    before = calibrator.state_bytes()
    with pytest.raises(WeightError, match="would pass"):
        calibrator.learn_one(0.5, 1)
    assert calibrator.state_bytes() == before


def test_a_window_moves_with_plain_labels() -> None:
    """A window of plain labels holds the last of them."""
    sliding, last = VennAbers(window=2), VennAbers(window=2)
    for score, label in [(0.2, 1), (0.4, 0), (0.6, 1)]:
        sliding.learn_one(score, label)
    last.learn_many([0.4, 0.6], [0, 1])
    assert sliding == last


def test_methods_have_the_faces_of_the_base_class() -> None:
    """Signature, name and documentation are there, and a method can be pickled with its object."""
    for name in ("predict_one", "learn_one"):
        ours, general = getattr(VennAbers, name), getattr(Calibrator, name)
        assert [*inspect.signature(ours).parameters] == [*inspect.signature(general).parameters]
        assert ours.__qualname__ == f"VennAbers.{name}"
        assert ours.__doc__.startswith(("Predict", "Learn"))
    predict = pickle.loads(pickle.dumps(worked().predict_one))  # noqa: S301 - our own
    assert predict(0.5) == VennInterval(0.5, 1.0)


def test_a_subclass_goes_its_own_way() -> None:
    """A subclass that overrides a call reaches that of `VennAbers` by `super`."""

    class Halved(VennAbers):
        def predict_one(
            self,
            score: float,
            time: float | None = None,
            weight: float = 1.0,
            *,
            number: float | None = None,
        ) -> VennInterval:
            return super().predict_one(score / 2, time, weight, number=number)

    calibrator = Halved()
    for score, label in zip(*WORKED, strict=True):
        calibrator.learn_one(score, label)
    assert calibrator.predict_one(1.0) == worked().predict_one(0.5) == VennInterval(0.5, 1.0)
