"""Learners inside a processor, `abers.stream.join`."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.engine.stream.cases import CIRCLE, DEEP, Scorer
from tests.engine.stream.replies import kinds, lab, obs, only, refused

from abers.stream import DeadLetter, Label, Observation, Outcome, Prediction, Processor, Settings


def test_learner_scores_the_features() -> None:
    """With a learner the features are scored, whatever score comes with them."""
    p = Processor(learner=Scorer())
    said = only(p.process(obs("a", score=0.123, x={"a": 1.0})))
    assert said.score == Scorer().score({"a": 1.0})


@pytest.mark.parametrize("x", [None, [], "x", [("a", 1)]])
def test_bad_features(x: Any) -> None:  # noqa: ANN401
    """With a learner, features that are no dictionary are refused."""
    assert refused(Processor(learner=Scorer()), obs("a", score=0.5, x=x)) == "bad-features"


def test_learner_learns_before_the_next_prediction() -> None:
    """A label teaches the learner the features that were predicted."""
    p, expected = Processor(learner=Scorer()), Scorer()
    p.process(obs("a", x={"a": 1.0}))
    p.process(lab("a", value=1))
    expected.learn({"a": 1.0}, 1)
    assert only(p.process(obs("b", x={"a": 0.5}))).score == expected.score({"a": 0.5})


@pytest.mark.parametrize("x", [{"fail": "score"}, {"give": math.nan}, {"give": "high"}])
def test_learner_that_cannot_score(x: dict[str, Any]) -> None:
    """An observation that the learner cannot score is refused."""
    p = Processor(Settings(max_models=1), learner=Scorer())
    reason = "learner-failed" if "fail" in x else "bad-score"
    assert refused(p, obs("a", 7, x=x)) == reason
    assert refused(p, obs("", 7, x=x)) == "bad-id"  # the learner is asked last
    assert kinds(p.process(obs("a", 8, model="n", segment="s", x={}))) == ["Prediction"]


def test_learner_probability() -> None:
    """A learner's score outside [0, 1] is refused where scores are probabilities."""
    p = Processor(Settings(scores="probability"), learner=Scorer())
    assert kinds(p.process(obs("a", x={"give": 1.5}))) == ["bad-score"]
    assert kinds(p.process(obs("a", x={"give": 1}))) == ["Prediction"]


def test_learner_that_cannot_learn() -> None:
    """A label that the learner cannot learn is settled, with a dead letter next to its outcome."""
    p = Processor(learner=Scorer())
    p.process(obs("a", x={"fail": "learn-1"}))
    label = lab("a", value=1)
    z, settled, dead_letter = p.process_many([obs("z", x={"a": 1.0}), label])
    assert isinstance(z, Prediction)
    assert isinstance(settled, Outcome)
    assert isinstance(dead_letter, DeadLetter)
    assert (dead_letter.reason, dead_letter.event, dead_letter.row) == ("learner-failed", label, 1)
    said = only(p.process(obs("b", x={"a": 1.0})))
    assert (said.n_labels, said.score) == (
        1,
        z.score,
    )  # the calibrator learned, the learner did not
    assert p.process(lab("a", value=0)) == []
    assert p.counters["duplicate_labels"] == 1
    assert (p.counters["labels"], p.counters["dead:learner-failed"]) == (1, 1)


def test_learner_that_cannot_learn_an_early_label() -> None:
    """So it is for a label that waited; the row is that of the observation."""
    p = Processor(learner=Scorer(), outcomes=False)
    p.process(lab("a", 3, value=1))
    said, dead_letter = p.process_many([obs("z", x=[]), obs("a", 5, x={"fail": "learn-1"})])[1:]
    assert isinstance(said, Prediction)
    assert isinstance(dead_letter, DeadLetter)
    assert (dead_letter.reason, dead_letter.row) == ("learner-failed", 1)
    assert dead_letter.event == lab("a", 3, value=1)
    assert p.counters["labels"] == 1


def test_duplicate_teaches_nothing() -> None:
    """A label teaches the learner the features of the observation that was predicted."""
    p, expected = Processor(learner=Scorer()), Scorer()
    p.process_many([obs("a", x={"a": 1.0}), obs("a", x={"fail": "learn"}), lab("a", value=1)])
    expected.learn({"a": 1.0}, 1)
    assert p.counters["dead:learner-failed"] == 0
    assert only(p.process(obs("b", x={"a": 0.5}))).score == expected.score({"a": 0.5})


@pytest.mark.parametrize(
    "value",
    [10**30, object(), 1j, DEEP, CIRCLE],
    ids=["large", "object", "complex", "deep", "circle"],
)
def test_features_that_cannot_be_saved(value: Any) -> None:  # noqa: ANN401
    """Features that would stop every snapshot while they wait are refused."""
    p = Processor(learner=Scorer())
    said = p.process_many([obs("a", x={}), obs("b", x={"b": value}), obs("c", x={})])
    assert kinds(said) == ["Prediction", "bad-features", "Prediction"]
    assert p.state_bytes()


def test_a_learner_is_kept_from_the_first_prediction_on() -> None:
    """A model's learner is made when its first observation comes in, not anew for each score."""
    pytest.importorskip("river")
    p = Processor(Settings(learner="logistic"))
    learning = p._state.join.learners  # noqa: SLF001 - it cannot be seen otherwise
    assert learning is not None
    p.process(Observation("a", 0, x={"a": 1.0}))
    kept = learning.by_model["default"]
    p.process_many([Observation("b", 0, x={"a": 2.0}), Label("a", 1, value=1)])
    assert learning.by_model == {"default": kept}
