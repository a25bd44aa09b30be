"""K clones with a calibrator each: `abers.river.cross_classifier`.

The oracle is K learners and K calibrators in lists, each driven by hand.
"""

from __future__ import annotations

import pickle
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from river import evaluate, metrics, preprocessing, stream
from tests.engine.river.streams import Events, Scripted, frame, phishing, scaled

from abers import CrossInterval, LabelError, ParameterError, ScoreError, VennAbers
from abers.river import CrossVennAbersClassifier

FOLDS = 3


class ByHand:
    """K learners, each trained without its fold, and a calibrator of each fold."""

    def __init__(self) -> None:
        self.learners = [scaled() for _ in range(FOLDS)]
        self.calibrators = [VennAbers() for _ in range(FOLDS)]

    def score(self, x: dict[Any, Any]) -> list[float]:
        """Score by all."""
        return [learner.predict_proba_one(x)[True] for learner in self.learners]

    def merge(self, scores: list[float]) -> float:
        """Calibrate each score in its fold, and merge."""
        pairs = [c.predict_one(s) for c, s in zip(self.calibrators, scores, strict=True)]
        p0, p1 = zip(*pairs, strict=True)
        return CrossInterval(p0, p1).merged

    def learn(self, x: dict[Any, Any], y: object, scores: list[float], fold: int) -> None:
        """Calibrate the fold by its own score, and train all other learners."""
        self.calibrators[fold].learn_one(scores[fold], int(bool(y)))
        for k in range(FOLDS):
            if k != fold:
                self.learners[k].learn_one(x, y)


def fold_of(id_: str) -> int:
    """Decide the fold by the id, as the definition says."""
    digest = blake2b(id_.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % FOLDS


def by_hand(events: Events, delay: int) -> list[float]:
    """Run a stream with ids by the definition."""
    state, waiting, merged = ByHand(), {}, {}
    for i, x, y in stream.simulate_qa(events, None, delay):
        if y is None:
            waiting[i] = state.score(x)
            merged[i] = state.merge(waiting[i])
        else:
            state.learn(x, y, waiting.pop(i), fold_of(f"order-{i}"))
    return [merged[i] for i in range(len(events))]


@pytest.mark.parametrize("delay", [0, 50])
def test_a_stream_with_ids_is_the_definition(delay: int) -> None:
    """Each fold learns its stored score, and the other K - 1 learners x: bit for bit by hand."""
    events = phishing(300)
    with_ids: Any = ((x, y, {"id": f"order-{i}"}) for i, (x, y) in enumerate(events))
    model = CrossVennAbersClassifier(scaled(), folds=FOLDS)
    metric = metrics.LogLoss()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=delay, step=1, yield_predictions=True
    )
    assert [step["Prediction"][True] for step in steps] == by_hand(events, delay)


def test_without_ids_folds_take_turns() -> None:
    """Without ids labels go around the folds, scored as they are learned."""
    state, model = ByHand(), CrossVennAbersClassifier(scaled(), folds=FOLDS)
    for number, (x, y) in enumerate(phishing(200)):
        scores = state.score(x)
        assert model.predict_proba_one(x)[True] == state.merge(scores)
        state.learn(x, y, scores, number % FOLDS)
        model.learn_one(x, y)


def test_mini_batches_go_around_the_folds() -> None:
    """Each row of a mini-batch is learned by the calibrator of its fold and the other learners."""
    state, model = ByHand(), CrossVennAbersClassifier(scaled(), folds=FOLDS)
    for start in range(0, 60, 10):
        X, y = frame(phishing(60)[start : start + 10])  # noqa: N806 - river's name
        w = np.linspace(1.0, 2.0, 10)
        columns = [each.predict_proba_many(X)[True].to_numpy() for each in state.learners]
        rows = np.column_stack(columns).tolist()
        assert model.predict_proba_many(X)[True].tolist() == [state.merge(row) for row in rows]
        folds = (start + np.arange(10)) % FOLDS
        for row, fold, label, weight in zip(rows, folds, y, w, strict=True):
            state.calibrators[fold].learn_one(row[fold], int(label), weight=weight)
        for k in range(FOLDS):
            mine = folds != k
            state.learners[k].learn_many(X[mine], y[mine], w=(y * 0 + w)[mine])
        model.learn_many(X, y, w=y * 0 + w)


def test_a_mini_batch_of_one_row_leaves_its_fold_alone() -> None:
    """A learner whose rows are none is not called with an empty batch."""
    model = CrossVennAbersClassifier(preprocessing.StandardScaler() | scaled(), folds=2)
    for event in phishing(4):
        model.learn_many(*frame([event]))
    assert model.predict_proba_many(frame(phishing(1))[0]).shape == (1, 2)


def test_the_wrapped_classifier_is_a_pattern_only() -> None:
    """The classifier handed in is cloned, and never trained itself."""
    learner = scaled()
    before = pickle.dumps(learner)
    model = CrossVennAbersClassifier(learner, folds=2)
    for x, y in phishing(20):
        model.learn_one(x, y)
    assert pickle.dumps(learner) == before
    assert len(model.learners) == 2


def test_ends_that_cross_are_shown_in_order() -> None:
    """The interval of each label is in order, and the merge lies inside."""
    model = CrossVennAbersClassifier(scaled(), folds=2)
    for x, y in phishing(300):
        merged = model.predict_proba_one(x)
        for label, (low, high) in model.predict_proba_one(x, with_interval=True).items():
            assert 0.0 <= low <= high <= 1.0
            assert low - 1e-12 <= merged[label] <= high + 1e-12
        model.learn_one(x, y)


def test_an_id_that_does_not_wait_is_trained_without_its_fold() -> None:
    """A label whose id is unknown is learned by the other K - 1 learners, and no calibrator."""
    model = CrossVennAbersClassifier(Scripted(), folds=FOLDS)
    model.learn_one({"scores": {True: 0.5}}, 1, id="order-7")
    learned = [len(learner.learned) for learner in model.learners]
    assert learned == [int(k != fold_of("order-7")) for k in range(FOLDS)]
    assert model.unmatched == 1
    vacuous = model.predict_proba_one({"scores": {True: 0.5}}, with_interval=True)
    assert vacuous == {False: (0.0, 1.0), True: (0.0, 1.0)}


def test_bad_input_changes_nothing() -> None:
    """A third label, a score of NaN or an id of another type leaves all as it was."""
    model = CrossVennAbersClassifier(Scripted(), folds=2)
    x = {"scores": {True: 0.5}}
    model.predict_proba_one(x, id=1)
    before = pickle.dumps(model)
    with pytest.raises(LabelError):
        model.learn_one(x, "spam", id=1)
    with pytest.raises(ScoreError):
        model.learn_one({"scores": {True: float("nan")}}, 1)
    with pytest.raises(ParameterError, match="id"):
        model.learn_one(x, 1, id=2.5)
    with pytest.raises(ParameterError, match="id"):
        model.predict_proba_one(x, id=2.5)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("folds", [0, 1, 2.5, True])
def test_a_number_of_folds_that_is_none(folds: Any) -> None:  # noqa: ANN401 - any value
    """At least two folds, a whole number."""
    with pytest.raises(ParameterError, match="folds="):
        CrossVennAbersClassifier(Scripted(), folds=folds)
