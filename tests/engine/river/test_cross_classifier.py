"""K clones with a calibrator each: `abers.river.cross_classifier`.

The oracle is K learners and K calibrators in lists, each driven by hand.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from river import evaluate, metrics, preprocessing, stream
from tests.engine.river.streams import Events, Scripted, frame, phishing, scaled

from abers import (
    CrossInterval,
    CrossVennAbers,
    LabelError,
    ParameterError,
    ProtectedCrossVennAbers,
    ScoreError,
    VennAbers,
)
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


def merged() -> CrossVennAbersClassifier:
    """Make a model that predicts merged probabilities."""
    return CrossVennAbersClassifier(scaled(), FOLDS, calibrator=CrossVennAbers(FOLDS))


@pytest.mark.parametrize("delay", [0, 50])
def test_a_stream_with_ids_is_the_definition(delay: int) -> None:
    """Each fold learns its stored score, and the other K - 1 learners x: bit for bit by hand."""
    events = phishing(300)
    with_ids: Any = ((x, y, {"id": f"order-{i}"}) for i, (x, y) in enumerate(events))
    model = merged()
    metric = metrics.LogLoss()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=delay, step=1, yield_predictions=True
    )
    assert [step["Prediction"][True] for step in steps] == by_hand(events, delay)


def test_without_ids_folds_take_turns() -> None:
    """Without ids labels go around the folds, scored as they are learned."""
    state, model = ByHand(), merged()
    for number, (x, y) in enumerate(phishing(200)):
        scores = state.score(x)
        assert model.predict_proba_one(x)[True] == state.merge(scores)
        state.learn(x, y, scores, number % FOLDS)
        model.learn_one(x, y)


def test_mini_batches_go_around_the_folds() -> None:
    """Each row of a mini-batch is learned by the calibrator of its fold and the other learners."""
    state, model = ByHand(), merged()
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
    model = CrossVennAbersClassifier(scaled(), 2, calibrator=CrossVennAbers(2))
    for x, y in phishing(300):
        found = model.predict_proba_one(x)
        for label, (low, high) in model.predict_proba_one(x, with_interval=True).items():
            assert 0.0 <= low <= high <= 1.0
            assert low - 1e-12 <= found[label] <= high + 1e-12
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


# The protected default


def test_by_default_it_is_the_protected_calibrator() -> None:
    """With ids and a delay, it is K learners and a `ProtectedCrossVennAbers` by hand."""
    events = phishing(200)
    model = CrossVennAbersClassifier(scaled(), folds=FOLDS, window=40)
    learners = [scaled() for _ in range(FOLDS)]
    calibrator = ProtectedCrossVennAbers(FOLDS, window=40)
    waiting: dict[int, list[float]] = {}
    for i, x, y in stream.simulate_qa(events, None, 50):
        if y is None:
            waiting[i] = [one.predict_proba_one(x)[True] for one in learners]
            expected = calibrator.predict_one(waiting[i], number=i)
            assert model.predict_proba_one(x, id=f"order-{i}")[True] == expected.probability
            found = model.predict_proba_one(x, with_interval=True, id=f"order-{i}")
            assert found[True] == (expected.p0, expected.p1)
        else:
            fold = fold_of(f"order-{i}")
            calibrator.learn_one(waiting.pop(i), y, number=i, fold=fold)
            for k, learner in enumerate(learners):
                if k != fold:
                    learner.learn_one(x, y)
            model.learn_one(x, y, id=f"order-{i}")
    assert model.calibrator == calibrator


def test_the_loss_is_at_most_the_price_above_the_median() -> None:
    """Against an adversary, with lost and dropped labels: at most the price in nats."""
    rng = random.Random(3)  # noqa: S311 - no secret
    model = CrossVennAbersClassifier(Scripted(), folds=FOLDS, max_pending=20)
    waiting: dict[int, tuple[float, float]] = {}
    raw = ours = 0.0
    for i in range(600):
        p = rng.choice([0.1, 0.9])
        waiting[i] = p, model.predict_proba_one({"scores": {True: p}}, id=i)[True]
        waiting.pop(i - 20, None)  # dropped
        if i % 30 == 29:
            label = sum(one for _, one in waiting.values()) < len(waiting) / 2
            for id_, (score, served) in waiting.items():
                if rng.random() < 0.1:
                    model.expire_one(id_)
                    continue
                model.learn_one({"scores": {True: 0.5}}, label, id=id_)
                raw -= math.log(score if label else 1.0 - score)
                ours -= math.log(served if label else 1.0 - served)
            waiting.clear()
    losses = model.calibrator.expert_losses()
    assert (losses["raw"], losses["protected"]) == pytest.approx((raw, ours))
    assert model.calibrator.lanes <= 21
    assert ours - raw <= model.calibrator.price


def test_copies_and_clones() -> None:
    """A copy goes on with what waits; a clone has learned nothing, and has the calibrator given."""
    model = CrossVennAbersClassifier(scaled(), folds=2)
    for i, (x, _) in enumerate(phishing(30)):
        model.predict_proba_one(x, id=i)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - ours
        assert other.calibrator == model.calibrator
        other.learn_one(*phishing(1)[0], id=0)
        assert (other.calibrator.awaiting, model.calibrator.awaiting) == (29, 30)
    assert model.clone().calibrator == ProtectedCrossVennAbers(2)
    given = CrossVennAbersClassifier(scaled(), 2, calibrator=CrossVennAbers(2, window=5))
    given.learn_one(*phishing(1)[0])
    assert given.clone().calibrator == CrossVennAbers(2, window=5)


@pytest.mark.parametrize("given", [VennAbers(), CrossVennAbers, "cvap", 3])
def test_what_is_not_a_calibrator_of_folds(given: Any) -> None:  # noqa: ANN401 - anything
    """A calibrator of one score, a class and a name are refused."""
    with pytest.raises(ParameterError, match="must be a calibrator of K folds"):
        CrossVennAbersClassifier(Scripted(), calibrator=given)


def test_a_calibrator_with_other_options_beside_it() -> None:
    """Another number of folds is refused, and a rule of forgetting."""
    with pytest.raises(ParameterError, match="calibrator has 3 folds"):
        CrossVennAbersClassifier(Scripted(), 2, calibrator=CrossVennAbers(3))
    with pytest.raises(ParameterError, match="its own rule of forgetting"):
        CrossVennAbersClassifier(Scripted(), 2, window=5, calibrator=CrossVennAbers(2))
