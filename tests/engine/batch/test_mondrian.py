"""Mondrian calibration: `abers.batch.mondrian`."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import LABELS, OPTIONS, SCORES, stream
from tests.engine.validity import miscalibrated

from abers import (
    CrossVennAbers,
    InputError,
    LabelError,
    ParameterError,
    ScoreError,
    TimeError,
    VennAbers,
    VennInterval,
)
from abers.batch import Mondrian
from abers.calibration import DirectIsotonic


@given(st.lists(st.tuples(st.sampled_from(("a", "b", None, 3)), SCORES, LABELS), max_size=30))
def test_each_category_is_a_calibrator_of_its_own(rows: list[tuple[Any, float, int]]) -> None:
    """A category predicts what a calibrator would that learned only its observations."""
    calibrator: Mondrian[VennAbers] = Mondrian(VennAbers)
    apart: dict[Any, VennAbers] = {}
    for category, score, label in rows:
        calibrator.learn_one(category, score, label)
        apart.setdefault(category, VennAbers()).learn_one(score, label)
    assert calibrator.categories == tuple(apart)
    for category, own in apart.items():
        assert calibrator[category].state_bytes() == own.state_bytes()
        for _, score, _ in rows:
            assert calibrator.predict_one(category, score) == own.predict_one(score)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_learning_many_is_learning_each(options: dict[str, Any]) -> None:
    """Arrays are sorted by category, with weights and times and whatever rule of forgetting."""
    data = stream(options, 60)
    categories = [f"c{i % 7 % 3}" for i in range(60)]
    columns = {"weights": data.weights, **({} if data.times is None else {"times": data.times})}
    many, loop = Mondrian(partial(VennAbers, **options)), Mondrian(partial(VennAbers, **options))
    for part in (slice(0, 0), slice(0, 20), slice(20, 60)):
        given = {name: column[part] for name, column in columns.items()}
        many.learn_many(categories[part], data.scores[part], data.labels[part], **given)
    for i, category in enumerate(categories):
        one = {name[:-1]: float(column[i]) for name, column in columns.items()}
        loop.learn_one(category, float(data.scores[i]), int(data.labels[i]), **one)
    assert many.categories == loop.categories
    for name in many.categories:
        assert many[name].state_bytes() == loop[name].state_bytes()


def test_any_calibrator_can_be_kept() -> None:
    """A calibrator of several scores, or of one probability, works by category as well."""
    cross = Mondrian(partial(CrossVennAbers, 2))
    cross.learn_many(["x", "x"], [[0.1, 0.2], [0.3, 0.4]], [0, 1], ids=["i", "j"])
    assert len(cross["x"]) == 2
    direct = Mondrian(DirectIsotonic)
    direct.learn_one("x", 0.5, 1)
    assert (direct.predict_one("x", 0.1), direct.predict_one("y", 0.1)) == (1.0, 0.5)


def test_an_unknown_category_takes_up_nothing() -> None:
    """Predicting for a category that was never learned is predicting with an empty calibrator."""
    calibrator = Mondrian(VennAbers, max_categories=1)
    assert bool(calibrator)
    assert calibrator.predict_one("new", 0.3) == VennInterval(0.0, 1.0)
    assert len(calibrator) == 0


def test_the_number_of_categories_is_limited() -> None:
    """One category too many is refused, by one and by many; those known go on."""
    calibrator = Mondrian(VennAbers, max_categories=2)
    calibrator.learn_many(["a", "b"], [0.1, 0.2], [0, 1])
    with pytest.raises(ParameterError, match="category 'c' is one more than max_categories=2"):
        calibrator.learn_one("c", 0.3, 1)
    with pytest.raises(ParameterError, match="category 'c'"):
        calibrator.learn_many(["a", "c"], [0.1, 0.2], [0, 1])
    calibrator.learn_one("a", 0.3, 1)
    assert [len(calibrator[category]) for category in "abc"] == [2, 1, 0]


@pytest.mark.parametrize(
    ("categories", "scores", "labels", "columns", "error", "message"),
    [
        (["a", "b"], [0.1, float("nan")], [0, 1], {}, ScoreError, "category 'b': row 0: score nan"),
        (["a", "b"], [0.1, 0.2], [0, 2], {}, LabelError, "category 'b': row 0: label 2"),
        (["a", "b"], [0.1, 0.2], [0, 1], {"times": [1.0, 2.0]}, TimeError, "category 'a'"),
        (["a", "b"], [0.1], [0, 1], {}, ParameterError, "scores has shape"),
        (["a", "b"], [0.1, 0.2], 1, {}, ParameterError, "labels has shape"),
        (["a", ["b"]], [0.1, 0.2], [0, 1], {}, ParameterError, "not hashable"),
        (["a", float("nan")], [0.1, 0.2], [0, 1], {}, ParameterError, "does not equal itself"),
    ],
)
def test_a_bad_row_leaves_all_categories(  # noqa: PLR0913, PLR0917 - a column each
    categories: Any,  # noqa: ANN401
    scores: Any,  # noqa: ANN401
    labels: Any,  # noqa: ANN401
    columns: dict[str, Any],
    error: type[InputError],
    message: str,
) -> None:
    """A refused batch has taught no category anything, and made none."""
    calibrator = Mondrian(VennAbers)
    calibrator.learn_one("a", 0.5, 1)
    with pytest.raises(error, match=message):
        calibrator.learn_many(categories, scores, labels, **columns)
    with pytest.raises(ScoreError):
        calibrator.learn_one("z", float("nan"), 1)
    assert (calibrator.categories, len(calibrator["a"])) == (("a",), 1)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "3"])
def test_a_limit_is_a_count(most: Any) -> None:  # noqa: ANN401
    """At least one category is allowed."""
    with pytest.raises(ParameterError, match="max_categories"):
        Mondrian(VennAbers, most)


def test_is_pickled_and_copied() -> None:
    """A copy predicts the same and goes its own way."""
    calibrator = Mondrian(partial(VennAbers, window=5))
    calibrator.learn_one("a", 0.5, 1)
    for twin in (copy.deepcopy(calibrator), pickle.loads(pickle.dumps(calibrator))):  # noqa: S301
        twin.learn_one("a", 0.2, 0)
        twin.learn_one("b", 0.2, 0)
        assert (len(twin["a"]), twin["b"].window) == (2, 5)
    assert (len(calibrator["a"]), len(calibrator)) == (1, 1)


@pytest.mark.once
@pytest.mark.large(20_000, reference=4_000)
def test_is_calibrated_within_a_category(size: int) -> None:
    """p_Y is calibrated in each category; that of one calibrator for all is in neither."""
    rng = np.random.default_rng(8)
    scores = rng.integers(0, 5, (size, 11)) / 4
    groups = rng.integers(0, 2, scores.shape)
    labels = (rng.random(scores.shape) < np.where(groups, 0.9, 0.2 + 0.3 * scores)).astype(np.int64)
    apart, pooled = np.empty(size), np.empty(size)
    for i in range(size):
        calibrator, together = Mondrian(VennAbers), VennAbers()
        calibrator.learn_many(groups[i, :10].tolist(), scores[i, :10], labels[i, :10])
        together.learn_many(scores[i, :10], labels[i, :10])
        own = int(labels[i, 10])
        apart[i] = calibrator.predict_one(int(groups[i, 10]), scores[i, 10])[own]
        pooled[i] = together.predict_one(scores[i, 10])[own]
    for group in (0, 1):
        inside = groups[:, 10] == group
        assert miscalibrated(apart[inside], labels[inside, 10]) == []
        assert miscalibrated(pooled[inside], labels[inside, 10])
    assert miscalibrated(pooled, labels[:, 10]) == []
