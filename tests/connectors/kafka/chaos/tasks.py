"""The tasks of an application under attack, and their records."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

__all__ = ["BINARY", "TASKS", "Task"]

CLASSES = ("cat", "dog", "owl")


class Task(NamedTuple):
    """A task.

    Parameters
    ----------
    sections
        Sections of the configuration that define it.
    asked
        Draws the content of an observation: a score, scores or features.
    answered
        Draws the label of that.
    bad
        Content of an observation that is refused, with the reason.
    """

    sections: dict[str, dict[str, Any]]
    asked: Callable[[Random], dict[str, Any]]
    answered: Callable[[Random, dict[str, Any]], int | float | str]
    bad: Sequence[tuple[str, dict[str, Any]]]


def _score(random: Random) -> dict[str, Any]:
    return {"score": round(random.random(), 6)}


def _scores(random: Random) -> dict[str, Any]:
    return {"score": {name: round(random.random(), 6) for name in CLASSES}}


def _features(random: Random) -> dict[str, Any]:
    return {"x": {"a": round(random.gauss(0, 1), 6), "b": round(random.random(), 6)}}


def _of_score(random: Random, brought: dict[str, Any]) -> int:
    return int(random.random() < brought["score"])


def _class(random: Random, brought: dict[str, Any]) -> str:
    return random.choices(CLASSES, [*brought["score"].values()])[0]


def _number(random: Random, brought: dict[str, Any]) -> float:
    score: float = brought["score"]
    return round(score + random.gauss(0, 0.2), 6)


def _of_features(random: Random, brought: dict[str, Any]) -> int:
    return int(random.random() < 1 / (1 + math.exp(-2 * brought["x"]["a"])))


_TEXT = ("bad-score", {"score": "x"})

BINARY = Task(
    {"task": {"scores": "probability"}, "calibrator": {"window": 200}},
    _score,
    _of_score,
    [_TEXT, ("bad-score", {"score": 2})],
)
TASKS = {
    "binary": BINARY,
    "multiclass": Task(
        {"task": {"kind": "multiclass", "classes": CLASSES}, "calibrator": {"window": 200}},
        _scores,
        _class,
        [_TEXT, ("bad-score", {"score": {"cow": 1.0}})],
    ),
    "regression": Task(
        {"task": {"kind": "regression"}, "calibrator": {"window": 200}},
        _score,
        _number,
        [_TEXT],
    ),
    "learner": Task(
        {"learner": {"name": "logistic"}, "calibrator": {"window": 200}},
        _features,
        _of_features,
        [("bad-features", {"x": "x"}), ("bad-features", {"x": 2})],
    ),
}
"""By name; "learner" needs ABERS_STATE_KEY."""
