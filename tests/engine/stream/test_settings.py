"""Settings of a processor, `abers.stream.settings`."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from abers import ParameterError
from abers.stream import Processor, Settings

SPANS = (
    "label_timeout",
    "allowed_lateness",
    "max_clock_skew",
    "max_jump",
    "dedup_ttl",
    "retire_after",
)
NUMBERS = ("max_pending", "max_early", "max_models", "max_id_bytes", "max_name_bytes")
FORGETTING = ("window", "max_age", "half_life")
WHOLE = {"task": "regression", "distributions": "scored"}
NO_NUMBERS = (-1, 1.0, "1", True, float("nan"), 10**30)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", [*SPANS, "dedup_max_ids", *NUMBERS, *FORGETTING])
def test_limits_are_whole_numbers(name: str, value: Any) -> None:  # noqa: ANN401
    """A limit that is not a whole number in range is refused by name and value."""
    with pytest.raises(ParameterError, match=name) as refusal:
        Settings(**{name: value})
    assert repr(value) in str(refusal.value)


@pytest.mark.parametrize("name", [*NUMBERS, *FORGETTING])
def test_limits_of_at_least_one(name: str) -> None:
    """These limits are at least 1."""
    with pytest.raises(ParameterError, match=name):
        Settings(**{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*SPANS, "dedup_max_ids"])
def test_limits_of_nothing(name: str) -> None:
    """Spans of time and the memory may be 0."""
    assert Processor(Settings(**{name: 0})).clock is None  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORGETTING)
@pytest.mark.parametrize("other", FORGETTING)
def test_ways_to_forget_exclude_each_other(name: str, other: str) -> None:
    """At most one of window, greatest age and half-life is set."""
    options: dict[str, Any] = {name: 5, other: 5}
    if name == other:
        assert Settings(**options)
        return
    with pytest.raises(
        ParameterError, match=f"{name}: cannot be combined with|{other}: cannot be combined with"
    ):
        Settings(**options)


@pytest.mark.parametrize("value", [0.99, 0, -1.0, math.inf, math.nan, "1.25", None, True])
def test_a_tolerance_is_a_ratio_of_odds(value: Any) -> None:  # noqa: ANN401
    """A tolerance is a finite number of at least 1; a whole one is a float, as in a snapshot."""
    with pytest.raises(ParameterError, match="tolerance: "):
        Settings(tolerance=value)
    assert type(Settings(tolerance=2).tolerance) is float


@pytest.mark.parametrize("name", FORGETTING)
def test_no_calibrator_forgets_nothing(name: str) -> None:
    """A rule of forgetting is refused for "none", which holds nothing."""
    with pytest.raises(ParameterError, match=f"{name}: is not for 'none'; leave it out"):
        Settings(calibrator="none", scores="probability", **{name: 5})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "views"),
    [
        ({}, ("calibrated",)),
        ({"scores": "logit"}, ("raw", "calibrated")),
        ({"scores": "logit", "task": "regression"}, ("calibrated",)),
        ({"scores": "probability"}, ("raw", "calibrated")),
        ({"scores": "probability", "calibrator": "platt"}, ("raw", "calibrated")),
        ({"scores": "probability", "calibrator": "none"}, ("raw",)),
        ({"task": "regression"}, ("calibrated",)),
    ],
)
def test_views_that_are_tested(options: dict[str, Any], views: tuple[str, ...]) -> None:
    """Scores that are probabilities are tested next to what is served, unless that is the same."""
    assert Settings(**options).views == views


def test_settings_are_written_and_read() -> None:
    """Settings survive the way into a snapshot and back."""
    settings = Settings(window=5, scores="logit", dedup_ttl=7, learner="logistic")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(settings), type=Settings) == settings


def test_unknown_settings_are_refused() -> None:
    """A saved setting that this version does not know is refused, never dropped."""
    with pytest.raises(msgspec.ValidationError, match="new"):
        msgspec.convert({"new": 1}, Settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"task": "ordinal"},
            "task: 'ordinal' is not one of 'binary', 'multiclass', 'regression'",
        ),
        ({"scores": "probabilities"}, "'any', 'probability', 'logit'; did you mean 'probability'"),
        ({"scores": ["any"]}, "scores: .*any.* is not one of"),
        ({"scores": None}, "scores: None is not one of"),
        ({"task": "multiclass"}, "classes: must be two or more different classes"),
        ({"task": "multiclass", "classes": ("a",)}, "two or more"),
        ({"task": "multiclass", "classes": ("a", "b", "a")}, "different"),
        ({"task": "multiclass", "classes": (1, 2)}, r"classes\[0\]: 1 is not a string"),
        ({"task": "multiclass", "classes": "ab"}, r"classes: 'ab' is not a list; write \['ab'\]"),
        ({"task": "multiclass", "classes": ("a", "\ud800")}, "is not UTF-8"),
        ({"task": "multiclass", "classes": None}, "classes: None is not a list"),
        (
            {"task": "multiclass", "classes": ("a", "é" * 129)},
            "has 258 bytes; shorten it, or raise max_name_bytes=256",
        ),
        ({"classes": ("a", "b")}, "classes: applies only to the task 'multiclass'; leave it out"),
        ({"task": "multiclass", "classes": ("a", "b"), "calibrator": "ivap"}, "one-vs-rest"),
        ({"calibrator": "ivapr"}, "does not support the task 'binary'; use 'ivap' or"),
        ({"calibrator": "beta"}, "needs probabilities; set scores='probability'"),
        (
            {"task": "regression", "scores": "probability"},
            "scores: must be 'any' or 'logit' for the task",
        ),
        ({"task": "regression", "quantiles": ()}, "is not an ascending list between 0 and 1"),
        (
            {"task": "regression", "quantiles": (0.5, 0.5)},
            "is not an ascending list between 0 and 1",
        ),
        (
            {"task": "regression", "quantiles": (0.0, 0.5)},
            "is not an ascending list between 0 and 1",
        ),
        ({"task": "regression", "quantiles": (float("nan"),)}, "is not a list of finite numbers"),
        ({"task": "regression", "quantiles": ("0.5",)}, "is not a list of finite numbers"),
        ({"task": "regression", "quantiles": 0.5}, "is not a list of finite numbers"),
        ({"task": "regression", "grid": (1.0, 0.0)}, "is not an ascending list of numbers"),
        ({"task": "regression", "grid": (0.0, float("inf"))}, "list of finite numbers"),
        ({"task": "regression", "grid": (0, 10**400)}, "is not a list of finite numbers"),
        ({"task": "regression", "grid": (False, True)}, "is not a list of finite numbers"),
        ({"distributions": "full"}, "applies only to the task 'regression'"),
        (
            {"task": "regression", "distributions": True},
            "distributions: True is not one of 'none', 'scored', 'full'",
        ),
        (
            {"task": "regression", "support": (0.0, 1.0)},
            "support: needs distributions='scored' or 'full'",
        ),
        ({**WHOLE, "support": (1.0,)}, "is not two numbers in ascending order"),
        ({**WHOLE, "support": (0.0, 1.0, 2.0)}, "is not two numbers in ascending order"),
        ({**WHOLE, "support": (1.0, 0.0)}, "is not two numbers in ascending order"),
        ({**WHOLE, "support": (1.0, 1.0)}, "is not two numbers in ascending order"),
        ({**WHOLE, "support": (0.0, float("inf"))}, "is not a list of finite numbers"),
        ({**WHOLE, "support": (float("nan"), 1.0)}, "is not a list of finite numbers"),
        ({**WHOLE, "support": "01"}, "is not a list of finite numbers"),
        ({**WHOLE, "support": (0.0, 1.0), "grid": (0.5, 2.0)}, "does not contain grid; widen it"),
    ],
    ids=repr,
)
def test_tasks_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    """Options that do not belong to a task, or are not the right list, are refused by name."""
    with pytest.raises(ParameterError, match=message):
        Settings(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"task": "multiclass", "classes": ["a", "b"]},
        {"task": "regression", "quantiles": [0.5], "grid": [1, 2]},
        {"task": "regression", "grid": np.array([1.0, 2.5])},
        {**WHOLE, "support": [0, 4], "grid": [0, 4]},
    ],
    ids=str,
)
def test_any_list_will_do(options: dict[str, Any]) -> None:
    """A list or an array is kept as a snapshot gives it back, so the same settings restore it."""
    settings = Settings(**options)
    restored = Processor.restore(Processor(settings).snapshot(), Settings(**options))
    assert restored.settings == settings


def test_all_mistakes_are_found_at_once() -> None:
    """An error names each setting that is wrong, and those that do not fit together."""
    with pytest.raises(ParameterError) as refusal:
        Settings(task="regression", folds=1, window=5, half_life=5, quantiles=(0.5, 0.1))
    assert str(refusal.value).splitlines() == [
        "folds: 1 is too small; write at least 2",
        "quantiles: (0.5, 0.1) is not an ascending list between 0 and 1",
        "half_life: cannot be combined with window; remove one of them",
    ]
