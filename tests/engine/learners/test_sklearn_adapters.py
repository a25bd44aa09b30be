"""A classifier of scikit-learn as a learner: the same numbers as without abers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from abers import ParameterError
from abers.learners.sklearn_adapters import SklearnClassifier
from abers.stream import DeadLetter, Label, Observation, Processor

sklearn = pytest.importorskip("sklearn")
from sklearn.linear_model import SGDClassifier  # noqa: E402 - only where it is installed
from sklearn.naive_bayes import BernoulliNB, GaussianNB  # noqa: E402

ROWS = np.random.default_rng(5).normal(size=(60, 2))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0.3).astype(int)


@pytest.mark.parametrize(
    "classifier",
    [SGDClassifier(loss="log_loss", random_state=0), BernoulliNB()],
    ids=["sgd", "bayes"],
)
def test_it_scores_and_learns_as_the_classifier_alone(classifier: Any) -> None:  # noqa: ANN401
    """Scores are those of `predict_proba` after `partial_fit` of one row after another."""
    alone = sklearn.clone(classifier)
    learner = SklearnClassifier(classifier, ["b", "a"])
    for row, label in zip(ROWS, LABELS.tolist(), strict=True):
        x = {"a": row[0], "b": row[1], "another": "text"}
        if hasattr(alone, "classes_"):
            assert learner.score(x) == alone.predict_proba([row[::-1]])[0, 1]
        learner.learn(x, label)
        alone.partial_fit([row[::-1]], [label], classes=[0, 1])


def test_a_learner_that_saw_no_label_says_one_half() -> None:
    """Before the first label the probability is 1/2."""
    assert SklearnClassifier(GaussianNB(), ["a"]).score({"a": 1.0}) == 0.5


def test_a_classifier_that_is_fitted_scores_at_once() -> None:
    """A classifier that was fitted before keeps what it learned."""
    fitted = GaussianNB().fit(ROWS, LABELS)
    expected = fitted.predict_proba(ROWS[:1])[0, 1]
    assert SklearnClassifier(fitted, ["a", "b"]).score(dict(zip("ab", ROWS[0], strict=True))) == (
        expected
    )


@pytest.mark.parametrize(
    ("classifier", "method"), [(SGDClassifier(), "predict_proba"), (object(), "partial_fit")]
)
def test_another_model_is_refused(classifier: object, method: str) -> None:
    """A model that predicts no probabilities, or cannot learn row by row, is an error at once."""
    with pytest.raises(ParameterError, match=rf"has no {method}; choose .*loss='log_loss'"):
        SklearnClassifier(classifier, ["a"])


@pytest.mark.parametrize("x", [{"b": 1.0}, {"a": "text"}])
def test_features_that_cannot_be_used_are_a_dead_letter(x: dict[str, Any]) -> None:
    """A missing feature and one that must be a number reject the observation."""
    processor = Processor(learner=SklearnClassifier(GaussianNB().fit([[0.0], [1.0]], [0, 1]), "a"))
    (rejected,) = processor.process(Observation("1", 0, x=x))
    assert isinstance(rejected, DeadLetter)
    assert rejected.reason == "learner-failed"
    assert processor.process(Label("1", 1, value=1)) == []
