"""K scores and several classes of all keys in one native call, against the same key by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream.ordered import OrderedCalibrators

from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.stream import Settings
from abers.stream.calibrators import NativeCalibrators, SeparateCalibrators, calibrators_of
from abers.stream.tasks import make_task
from abers.stream.tasks.base import CalibrationSteps

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.native

KEYS, FOLDS = 5, 3
NAMES = ("a", "b", "c")
TASKS: dict[str, dict[str, Any]] = {
    "folds": {"calibrator": "cvap", "folds": FOLDS},
    "classes": {"task": "multiclass", "classes": NAMES},
}
RULES: list[dict[str, Any]] = [{}, {"window": 5}, {"max_age": 40}, {"half_life": 25}]


def steps(task: str, n: int, seed: int) -> tuple[NDArray[np.int64], CalibrationSteps]:
    """Draw steps of all keys: predictions, and their labels or expiries in any order."""
    rng = np.random.default_rng(seed)
    waiting: list[list[tuple[int, list[float], int]]] = [[] for _ in range(KEYS)]
    rows: list[tuple[int, int, list[float], int, int, int]] = []
    for now in range(n):
        key = int(rng.integers(KEYS))
        if not waiting[key] or rng.random() < 0.5:
            if task == "classes":
                score = rng.dirichlet(np.ones(len(NAMES))).tolist()
            else:
                score = [*rng.random(FOLDS).tolist(), float(rng.integers(FOLDS))]
            waiting[key].append((now, score, now))
            rows.append((key, PREDICT, score, 0, now, now))
        else:
            number, score, time = waiting[key].pop(int(rng.integers(len(waiting[key]))))
            kind = EXPIRE if rng.random() < 0.1 else LEARN
            rows.append((key, kind, score, int(rng.integers(2)), time, number))
    keys, kinds, scores, labels, times, numbers = zip(*rows, strict=True)
    columns: list[Any] = [np.array(kinds, np.uint8), np.array(scores), np.array(labels, float)]
    columns += [np.array(times), np.array(numbers)]
    return np.array(keys), CalibrationSteps(*columns)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_merged_calibrators_are_taught_in_order(task: str, rule: dict[str, Any]) -> None:
    """Answers and numbers of labels are those of plain Python, also after restores, to the bit."""
    settings = Settings(scores="probability", probability="merged", **TASKS[task], **rule)
    native, plain = calibrators_of(make_task(settings)), OrderedCalibrators(settings)
    assert isinstance(native, NativeCalibrators)
    native.add(KEYS)
    plain.add(KEYS)
    keys, every = steps(task, 800, 3)
    for first in range(0, 800, 200):
        part = slice(first, first + 200)
        batch, expected = (
            native.run(keys[part], every.take(part)),
            plain.run(keys[part], every.take(part)),
        )
        asked = every.kinds[part] == PREDICT
        assert batch.rows[asked].tolist() == expected.rows[asked].tolist()
        assert batch.n_labels.tolist() == expected.n_labels.tolist()
        saved = [bytes(one) for one in native.save()]
        native = calibrators_of(make_task(settings))
        native.load(saved)
        assert [bytes(one) for one in native.save()] == saved


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_all_keys_in_one_call(task: str, rule: dict[str, Any]) -> None:
    """Answers are those of single calibrators, also after a restore, and so are the mixtures."""
    made = make_task(Settings(scores="probability", **TASKS[task], **rule))
    native, plain = calibrators_of(made), SeparateCalibrators(made)
    assert isinstance(native, NativeCalibrators)
    for one in (native, plain):
        one.add(KEYS)
    keys, every = steps(task, 600, 1)
    for first in range(0, 600, 150):
        part = slice(first, first + 150)
        batch, expected = (one.run(keys[part], every.take(part)) for one in (native, plain))
        asked = every.kinds[part] == PREDICT
        assert batch.rows[asked].tolist() == expected.rows[asked].tolist()
        assert batch.n_labels.tolist() == expected.n_labels.tolist()
        saved = [bytes(one) for one in native.save()]
        native = calibrators_of(made)
        native.load(saved)
        assert [bytes(one) for one in native.save()] == saved
    for key in range(KEYS):
        mixtures = [one.mixture(key) for one in (native, plain)]
        tables = [one.expert_table().tolist() for one in mixtures if one is not None]
        assert len(tables) == 2
        np.testing.assert_array_equal(tables[0], tables[1])


@pytest.mark.parametrize("probability", ["merged", "protected"])
@pytest.mark.parametrize("task", TASKS)
def test_a_state_of_other_options(task: str, probability: str) -> None:
    """States of another number of folds or classes, and of another rule, are refused."""
    given = TASKS[task] | {"scores": "probability", "probability": probability}
    made = make_task(Settings(**given))
    native = calibrators_of(made)
    native.add(1)
    saved = [bytes(one) for one in native.save()]
    others: list[dict[str, Any]] = [{"window": 9}]
    others.append({"folds": 4} if task == "folds" else {"classes": (*NAMES, "d")})
    others += [{"raw_weight": 0.5}] * (probability == "protected")
    for other in others:
        with pytest.raises(ValueError, match="calibrator 0"):
            calibrators_of(make_task(Settings(**given | other))).load(saved)


@pytest.mark.parametrize("probability", ["merged", "protected"])
@pytest.mark.parametrize("task", TASKS)
def test_one_step_is_a_batch_of_one(task: str, probability: str) -> None:
    """Single steps give the rows of the batch, and the same state."""
    given = TASKS[task] | {"probability": probability}
    made = make_task(Settings(scores="probability", **given))
    single, batch = calibrators_of(made), calibrators_of(made)
    for one in (single, batch):
        one.add(KEYS)
    keys, every = steps(task, 200, 2)
    rows = batch.run(keys, every).rows
    assert every.numbers is not None
    for row, key in enumerate(keys.tolist()):
        kind = int(every.kinds[row])
        of = every.scores[row].tolist(), float(every.values[row])
        found, _ = single.step(key, kind, *of, 0, int(every.numbers[row]))
        if kind == PREDICT:
            assert [*found] == rows[row].tolist()
    assert [*map(bytes, single.save())] == [*map(bytes, batch.save())]
