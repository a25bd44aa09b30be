"""The check suite, `abers.checks`: every calibrator passes, and each check finds its fault."""

from __future__ import annotations

import inspect
import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import abers
from abers import VennAbers, registry
from abers.base import Calibrator, Capabilities
from abers.batch import (
    IVAR,
    ConformalInterval,
    SelfCalibratingInterval,
    UnboundedIVAR,
    VennMulticalibration,
)
from abers.checks import CHECKS, check_calibrator
from abers.exceptions import ParameterError, WeightError
from abers.regression import IVAPR

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abers.mathematics import Steps

CLASSES = ("a", "b", "c")
FOUND: dict[tuple[str, str], Callable[..., Any]] = {
    (task, name): registry.find(name, task)
    for task in ("binary", "multiclass", "regression")
    for name in registry.names(task)
}
MADE: dict[str, Callable[..., Any]] = {
    **{
        f"{task}-{name}": partial(make, CLASSES) if task == "multiclass" else make
        for (task, name), make in FOUND.items()
    },
    "regression-protected": partial(FOUND["regression", "protected"], (0.0, 1.0)),
    "ivapr-grid": partial(IVAPR, grid=[0.25, 0.5, 0.75]),
    "ivar": partial(IVAR, 0.0, 1.0),
    "self-calibrating": partial(SelfCalibratingInterval, 0.8),
    "conformal": partial(ConformalInterval, 0.8),
    "conformal-cqr": partial(ConformalInterval, 0.8, "cqr"),
    "unbounded-ivar": UnboundedIVAR,
    "multicalibration": partial(VennMulticalibration, 0.0, 1.0, 3),
}
WITHOUT_CORE = ("binary-beta", "binary-platt")
"""Calibrators whose map is fitted by NumPy alone: slowly, and alike on every build."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a calibrator: where its checks need not, or cannot, run."""
    if name in WITHOUT_CORE:
        return [pytest.mark.once]
    made: Any = MADE[name]
    capabilities = getattr(made, "func", made).capabilities
    native = capabilities.stateful or capabilities.answer == "folds"  # protected, or cross
    return [pytest.mark.native] if native else []


def test_every_calibrator_is_checked() -> None:
    """No public class with the contract of a calibrator is missing above."""
    packages = (abers.batch, abers.calibration, abers.regression)
    public = {getattr(package, name) for package in packages for name in package.__all__}
    calibrators = {one for one in public if isinstance(one, type) and issubclass(one, Calibrator)}
    concrete = {one for one in calibrators if not inspect.isabstract(one)}
    assert concrete == {getattr(make, "func", make) for make in MADE.values()}


class BaseRate(Calibrator[float, int, float, "NDArray[np.float64]"]):
    """A calibrator as a user writes one: the share of label 1, whatever the score."""

    capabilities = Capabilities(
        task="binary", answer="probability", weights=False, removal="any", forgetting=("window",)
    )

    def __init__(self, window: int | None = None) -> None:
        super().__init__(window)
        self.held: list[tuple[float, int]] = []

    def __len__(self) -> int:
        """Count the observations."""
        return len(self.held)

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:  # noqa: ARG002
        return (sum(label for _, label in self.held) + 1.0) / (len(self.held) + 2.0)

    def _learn(self, score: float, label: int, weight: int, time: float, number: int) -> bool:  # noqa: ARG002
        self.held = [*self.held, (score, label)][-(self.window or 1 << 60) :]
        return True

    def _remove(self, score: float, label: int, weight: int) -> bool:  # noqa: ARG002
        if (score, label) not in self.held:
            return False
        self.held.remove((score, label))
        return True

    def _save(self) -> bytes:
        return json.dumps([self.window, self.held]).encode()

    def _load(self, payload: memoryview) -> None:
        window, held = json.loads(bytes(payload))
        BaseRate.__init__(self, window)
        self.held = [(score, label) for score, label in held]


class Counted(Calibrator[float, int, float, "NDArray[np.float64]"]):
    """One whose predictions change its state: it counts what awaits a label."""

    capabilities = Capabilities(
        task="binary", answer="probability", weights=False, removal="none", forgetting=(),
        stateful=True,
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[int] = []
        self.learned = 0

    def __len__(self) -> int:
        """Count the labels."""
        return self.learned

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:  # noqa: ARG002
        if number >= 0 and number not in self.pending:
            self.pending.append(number)
        return 1.0 / (1.0 + len(self.pending) + self.learned)

    def _learn(self, score: float, label: int, weight: int, time: float, number: int) -> bool:  # noqa: ARG002
        self._expire(number)
        self.learned += 1
        return True

    def _expire(self, number: int) -> None:
        if number in self.pending:
            self.pending.remove(number)

    def _save(self) -> bytes:
        return json.dumps([self.learned, self.pending]).encode()

    def _load(self, payload: memoryview) -> None:
        Counted.__init__(self)
        self.learned, self.pending = json.loads(bytes(payload))


@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name, marks=marks(name)) for name, make in MADE.items()],
)
def test_registered_calibrators_pass(make: Callable[..., Any]) -> None:
    """Every calibrator of the registry, and the batch one that has the contract."""
    check_calibrator(make)


@pytest.mark.parametrize("make", [BaseRate, Counted])
def test_users_own_pass(make: Callable[..., Any]) -> None:
    """A calibrator that defines its mathematics and no more, stateless or stateful."""
    check_calibrator(make)


# A faulty calibrator for each check


class Undeclared(BaseRate):
    """Declares an answer that there is not."""

    capabilities = Capabilities(task="binary", answer="guess")  # type: ignore[arg-type]


class FalseWhenEmpty(BaseRate):
    """Is false as long as it holds nothing."""

    def __bool__(self) -> bool:
        """Return whether anything is kept."""
        return bool(self.held)


class AnyWindow(BaseRate):
    """Takes a window of 0."""

    def __init__(self, window: int | None = None) -> None:
        super().__init__(window or None)


class OutOfRange(BaseRate):
    """Predicts more than 1."""

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        return 2.0 * super()._predict(score, weight, time, number)


class Deaf(BaseRate):
    """Learns no more than five labels."""

    def _learn(self, score: float, label: int, weight: int, time: float, number: int) -> bool:
        return len(self.held) >= 5 or super()._learn(score, label, weight, time, number)


class SecretlyStateful(BaseRate):
    """Counts predictions, and does not say so."""

    asked = 0

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        self.asked += 1
        return super()._predict(score, weight, time, number)

    def _save(self) -> bytes:
        return super()._save() + b" " * self.asked


class Random(BaseRate):
    """Predicts at random."""

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:  # noqa: ARG002
        return float(np.random.default_rng().random())


class OtherBatches(BaseRate):
    """Runs a batch as if it knew no label of it."""

    def _take(self, steps: Steps, held: NDArray[np.int64] | None) -> Any:  # noqa: ANN401
        before = self._predict(0.0, 1, math.nan, -1)
        answers, done = super()._take(steps, held)
        return np.where(np.isnan(answers), answers, before), done


class Hasty(BaseRate):
    """Forgets at the beginning of each run what it saw before."""

    runs = 0

    def run(self, *columns: Any, **more: Any) -> Any:  # noqa: ANN401
        """Forget, then run."""
        self.held = []
        return super().run(*columns, **more)


class LearnsOnce(BaseRate):
    """Learns only the first observation of `learn_many`."""

    def _learn_all(self, steps: Steps, held: NDArray[np.int64] | None) -> Any:  # noqa: ANN401
        answers, _ = super()._take(steps.take(np.arange(1)), held)
        return answers, len(steps.kinds)


class Gullible(BaseRate):
    """Takes any label for 1."""

    def _label(self, label: object) -> int:  # noqa: ARG002
        return 1


class HalfWay(BaseRate):
    """Keeps the steps before the one that is refused."""

    def _undo(self, steps: Steps, done: int, saved: bytes | None) -> None:
        """Do nothing."""


class Weightless(BaseRate):
    """Declares weights, and ignores them."""

    capabilities = Capabilities(task="binary", answer="probability", forgetting=("window",))

    def _must_copy(self, steps: Steps) -> bool:
        if steps.total_weight() > 2.0**60:
            msg = "the total weight would be too large"
            raise WeightError(msg)
        return True


class Residue(BaseRate):
    """Removes no more than the last label."""

    def _remove(self, score: float, label: int, weight: int) -> bool:
        found = super()._remove(score, label, weight)
        if found:
            self.held.append((0.0, 1))
        return found


class LongMemory(BaseRate):
    """Holds one observation more than its window."""

    def _learn(self, score: float, label: int, weight: int, time: float, number: int) -> bool:  # noqa: ARG002
        self.held = [*self.held, (score, label)][-((self.window or 1 << 60) + 1) :]
        return True


class Timeless(BaseRate):
    """Declares that it forgets by age, and does not."""

    capabilities = Capabilities(
        task="binary", answer="probability", weights=False, forgetting=("max_age",)
    )

    def __init__(self, max_age: float | None = None) -> None:
        Calibrator.__init__(self, max_age=max_age)
        self.held = []

    def _save(self) -> bytes:
        return json.dumps([self.max_age, self.held]).encode()

    def _load(self, payload: memoryview) -> None:
        max_age, held = json.loads(bytes(payload))
        Timeless.__init__(self, max_age)
        self.held = [(score, label) for score, label in held]


class Expired(Counted):
    """Takes the expiry of any number for that of all."""

    def _expire(self, number: int) -> None:  # noqa: ARG002
        self.pending = []
        self.learned += 1


class Forgetful(BaseRate):
    """Predicts from what it does not save."""

    seen = 0

    def _learn(self, score: float, label: int, weight: int, time: float, number: int) -> bool:
        self.seen += 1
        return super()._learn(score, label, weight, time, number)

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        return super()._predict(score, weight, time, number) / (1.0 + self.seen)


FAULTY: dict[str, Callable[..., Any]] = {
    "check_capabilities": Undeclared,
    "check_empty": FalseWhenEmpty,
    "check_forgetting_options": AnyWindow,
    "check_valid_predictions": OutOfRange,
    "check_learning": Deaf,
    "check_predictions_change_nothing": SecretlyStateful,
    "check_deterministic": Random,
    "check_batches": OtherBatches,
    "check_splits": Hasty,
    "check_many": LearnsOnce,
    "check_refusals": Gullible,
    "check_all_or_nothing": HalfWay,
    "check_weights": Weightless,
    "check_removal": Residue,
    "check_window": LongMemory,
    "check_times": Timeless,
    "check_expiries": Expired,
    "check_saving": Forgetful,
}


def test_there_is_a_faulty_one_for_each_check() -> None:
    """Each check can fail, and none is forgotten here."""
    assert [*FAULTY] == [check.__name__ for check in CHECKS]


@pytest.mark.parametrize("name", FAULTY)
def test_each_check_finds_its_fault(name: str) -> None:
    """The check itself fails on the faulty one, and so does the suite, which names a check."""
    check = next(one for one in CHECKS if one.__name__ == name)
    with pytest.raises(AssertionError):
        check(FAULTY[name])
    with pytest.raises(AssertionError, match=r"^check_"):
        check_calibrator(FAULTY[name])


def test_errors_of_a_calibrator_name_the_check() -> None:
    """An error that the contract does not have is a failure of the check in which it came."""
    with pytest.raises(AssertionError, match="check_capabilities: TypeError"):
        check_calibrator(partial(FOUND["binary", "ivap"], unknown=1))


def test_numbers_and_expiries_reach_a_stateful_calibrator() -> None:
    """A batch gives each row its number; a label or an expiry ends the wait of that number."""
    calibrator = Counted()
    calibrator.run([0, 0, 0, 3, 1], [0.5] * 5, [0, 0, 0, 0, 1], numbers=[7, 8, 9, 8, 7])
    assert calibrator.pending == [9]
    assert calibrator.learned == 1
    calibrator.expire_one(9)
    assert calibrator.pending == []
    found = Counted().prequential([0.5] * 4, [0, 1, 0, 1], delay=2)
    assert found.tolist() == [1 / 2, 1 / 3, 1 / 4, 1 / 5]


def test_expiries_mean_nothing_to_others() -> None:
    """Rows of expiries have no prediction, and what is kept goes on."""
    held = np.empty(4, np.int64)
    p0, p1 = VennAbers().run([1, 3, 0, 3], [0.5] * 4, [1, 0, 0, 0], numbers=[0] * 4, held=held)
    assert held.tolist() == [1, 1, 1, 1]
    assert np.isnan(p0).tolist() == np.isnan(p1).tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0.5, 1.0], "numbers of type float64 must be whole numbers"),
        ([0, 2**64], "numbers of type object must be whole numbers"),
        ([0, None], "numbers of type object must be whole numbers"),
        ([0, -2], "row 1: number -2 must be between 0 and 9223372036854775807"),
        (np.array([2**63, 2**64 - 1], np.uint64), "row 0: number 9223372036854775808 must be"),
        ([0], "numbers has 1 rows, scores has 2"),
        ([[0, 1]], "numbers must be one-dimensional"),
    ],
)
def test_numbers_are_checked(numbers: Any, message: str) -> None:  # noqa: ANN401
    """Numbers of observations are whole, of 64 bits, not below -1, and one a row."""
    with pytest.raises(ParameterError, match=message):
        VennAbers().run([0, 0], [0.5, 0.5], [0, 0], numbers=numbers)
