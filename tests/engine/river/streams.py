"""Streams and learners for the tests of the wrappers."""

# ruff: noqa: ARG002 - learners that leave their arguments alone

from __future__ import annotations

from typing import Any

import pandas as pd
from river import datasets, linear_model, preprocessing
from river.base import Classifier, Regressor

__all__ = ["Noted", "Scripted", "Weightless", "frame", "phishing", "scaled"]

Events = list[tuple[dict[Any, Any], Any]]


def phishing(n: int) -> Events:
    """Take the first events of a stream of two classes."""
    return [*datasets.Phishing().take(n)]


def scaled() -> Any:  # noqa: ANN401 - a pipeline
    """Make a learner that changes with every label."""
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def frame(events: Events) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Make a mini-batch of events."""
    x, y = zip(*events, strict=True)
    return pd.DataFrame([*x]), pd.Series([*y])


class Scripted(Classifier, Regressor):
    """A model that returns the scores in x, and records what it learns."""

    def __init__(self) -> None:
        self.learned: list[tuple[dict[Any, Any], Any]] = []

    def predict_proba_one(self, x: dict[Any, Any], **_: object) -> dict[Any, float]:
        """Answer what x says."""
        found: dict[Any, float] = x["scores"]
        return found

    def predict_one(self, x: dict[Any, Any], **_: object) -> Any:  # noqa: ANN401 - as its bases
        """Answer what x says."""
        return x["scores"]

    def learn_one(self, x: dict[Any, Any], y: Any, **_: object) -> None:  # noqa: ANN401 - as its bases
        """Note it."""
        self.learned.append((x, y))


class Noted(Classifier):
    """A learner of two classes that takes a weight and a keyword, and notes both."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, object]] = []

    def predict_proba_one(  # type: ignore[override]  # as many of river's own have it
        self, x: dict[Any, Any], tone: object = None
    ) -> dict[Any, float]:
        """Answer 3/4."""
        self.notes.append(("predict", tone))
        return {False: 0.25, True: 0.75}

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:  # noqa: ANN401 - a label
        """Note the weight."""
        self.notes.append(("learn", w))


class Weightless(Classifier):
    """A learner that takes nothing but features and label."""

    def predict_proba_one(  # type: ignore[override]  # likewise
        self, x: dict[Any, Any]
    ) -> dict[Any, float]:
        """Answer 3/4."""
        return {False: 0.25, True: 0.75}

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:  # noqa: ANN401 - a label
        """Learn nothing."""
