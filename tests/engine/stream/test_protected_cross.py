"""Protected predictions of K scores in a stream: folds, expiries, journals and snapshots."""

from __future__ import annotations

import math
import random
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.engine.stream.cases import saved_calibrators

from abers import ProtectedCrossVennAbers
from abers.learners.river_adapters import make
from abers.monitoring import experts
from abers.stream import Events, Label, Observation, Outcome, Prediction, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Event

WAIT = 500
K = 3
SETTINGS = Settings(
    calibrator="cvap",
    folds=K,
    scores="probability",
    label_timeout=WAIT,
    max_jump=10**9,
    max_pending=12,
    tests=False,
)


def events(
    n: int,
    seed: int,
    models: str = "m",
    delays: Sequence[int] = (0, 5, 100, 300, 2 * WAIT),
    share: float = 0.8,
) -> list[Event]:
    """Return observations of one or K scores, whose labels come late, in any order, or never."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Event] = []
    for model in models:  # three events, so that the clock is known
        for time in (1, 2, 3):
            found.append(Observation(f"{time}", time, model=model, score=0.5))
            found.append(Label(f"{time}", time, model=model, value=1))
    for number in range(n):
        time, model = 20 * number + 1_000, rng.choice(models)
        several = [rng.random() for _ in range(K)]
        score = several if rng.random() < 0.5 else several[0]
        truth = median(row_of(score))
        truth = truth if number < n // 2 else 1.0 - truth  # the learners break half-way
        found.append(Observation(f"a{number}", time, model=model, score=score))
        if rng.random() < share:
            late = time + rng.choice(delays)
            found.append(Label(f"a{number}", late, model=model, value=int(rng.random() < truth)))
    return sorted(found, key=lambda event: (event.time, isinstance(event, Label)))


def row_of(score: Any) -> list[float]:  # noqa: ANN401 - a number or several
    """Return the K scores of an observation."""
    return score if isinstance(score, list) else [score] * K


def expected(stream: list[Event]) -> list[tuple[float, float, float]]:
    """Return the answers of a calibrator that is called for one event after the other."""
    calibrator = ProtectedCrossVennAbers(K)
    waiting: dict[str, tuple[int, int, list[float]]] = {}
    found: list[tuple[float, float, float]] = []
    for event in stream:
        for id_, (number, time, _) in [*waiting.items()]:
            if event.time - time > WAIT:
                calibrator.expire_one(number)
                del waiting[id_]
        if isinstance(event, Label):
            if event.id in waiting:
                number, _, row = waiting.pop(event.id)
                calibrator.learn_one(row, event.value, number=number, id=event.id)
            continue
        if len(waiting) == SETTINGS.max_pending:
            number, *_ = waiting.pop(next(iter(waiting)))
            calibrator.expire_one(number)
        waiting[event.id] = len(found), event.time, row_of(event.score)
        found.append((*calibrator.predict_one(row_of(event.score), number=len(found)),))
    return found


def issued(processor: Processor, stream: list[Event], size: int) -> list[Prediction]:
    """Process events in batches of a size, and return the predictions."""
    found = []
    for first in range(0, len(stream), size):
        found += processor.process_many(stream[first : first + size])
    return [one for one in found if isinstance(one, Prediction)]


def test_the_processor_numbers_and_expires() -> None:
    """Predictions are those of a calibrator that gets each observation, label, fold and expiry."""
    stream = events(200, 1)
    processor = Processor(SETTINGS)
    found = issued(processor, stream, 7)
    assert [(one.p0, one.p1, one.p) for one in found] == expected(stream)
    scores = [median(row_of(one.score)) for one in stream if isinstance(one, Observation)]
    assert [one.score for one in found] == scores
    assert processor.counters["expired"] > 10
    assert processor.counters["evicted"] > 10


@pytest.mark.parametrize("size", [1, 13, 10_000])
@pytest.mark.parametrize("options", [{}, {"window": 15}, {"half_life": 400}], ids=str)
def test_batches_snapshots_and_journals(size: int, options: dict[str, Any]) -> None:
    """Any batches, a restore after each, and the journal lead to the same state, to the byte."""
    stream, settings = events(60, 2, models="mn"), msgspec.structs.replace(SETTINGS, **options)
    whole, split, other = (Processor(settings) for _ in range(3))
    predictions = issued(whole, stream, 50)
    found = []
    for first in range(0, len(stream), size):
        outputs, entry = split.process_logged(Events.of(stream[first : first + size]))
        assert other.apply(entry).in_order() == outputs.in_order()
        found += [one for one in outputs.in_order() if isinstance(one, Prediction)]
        split = Processor.restore(split.snapshot(), settings)
    assert found == predictions
    assert whole.state_bytes() == split.state_bytes() == other.state_bytes()


def test_without_labels_the_answer_is_near_the_median() -> None:
    """Before the first label it is near the median score, of logits near that of probabilities."""
    (found,) = Processor(SETTINGS).process(Observation("a", 1, score=[0.9, 0.2, 0.7]))
    assert isinstance(found, Prediction)
    assert (found.p0, found.p1) == (0.0, 1.0)
    assert found.p == pytest.approx(0.7, abs=0.01)
    logits = Settings(calibrator="cvap", folds=2, scores="logit")
    (found,) = Processor(logits).process(Observation("a", 1, score=[0.0, math.log(3.0)]))
    assert isinstance(found, Prediction)
    assert found.p == pytest.approx(0.625, abs=0.01)


@pytest.mark.parametrize(
    ("options", "protected"),
    [
        ({}, False),
        ({"scores": "probability"}, True),
        ({"scores": "logit"}, True),
        ({"scores": "probability", "probability": "merged"}, False),
        ({"probability": "protected"}, True),
    ],
    ids=str,
)
def test_which_probability_is_predicted(options: dict[str, Any], protected: bool) -> None:  # noqa: FBT001
    """Scores that are probabilities or logits are protected, others where it is asked for."""
    settings = Settings(calibrator="cvap", max_jump=10**9, **options)
    assert settings.protected == protected
    processor = Processor(settings)
    for time in range(4):
        (found,) = processor.process(Observation(f"{time}", time, score=0.9))
        processor.process(Label(f"{time}", time, value=0))
    assert isinstance(found, Prediction)
    (saved,) = saved_calibrators(processor)
    assert (saved[:8] == b"abersPC\x01") == protected
    numbers = {number.name for number in processor.monitors[0].numbers_beside()}
    assert ("lanes" in numbers) == protected


def test_the_interval_is_that_of_the_merged_probability() -> None:
    """The two settings differ in the probability alone, and in the last digits of the ends."""
    stream = events(100, 5, delays=[0], share=1.0)
    merged = msgspec.structs.replace(SETTINGS, probability="merged")
    both = [Processor(one).process_many(stream) for one in (SETTINGS, merged)]
    differ = 0
    for one, other in zip(*both, strict=True):
        if not isinstance(one, Prediction | Outcome):
            assert one == other
            continue
        assert isinstance(other, Prediction | Outcome)
        assert (one.p0, one.p1) == pytest.approx((other.p0, other.p1), rel=1e-12, abs=1e-15)
        differ += one.p != other.p
        changed = msgspec.structs.replace(one, p=other.p, p0=other.p0, p1=other.p1)
        assert changed == other
    assert differ > 100


def test_outcomes_and_the_monitor() -> None:
    """Outcomes have the issued probability; the monitor reads the mixture, also when restored."""
    stream = events(300, 3)
    processor = Processor(SETTINGS)
    outputs = processor.process_many(stream)
    of = {one.id: one.p for one in outputs if isinstance(one, Prediction)}
    outcomes = [one for one in outputs if isinstance(one, Outcome)]
    assert all(one.p == of[one.id] for one in outcomes)
    outside = sum(not one.p0 <= one.p <= one.p1 for one in outcomes)
    assert outside > 0
    for one in (processor, Processor.restore(processor.snapshot(), SETTINGS)):
        (monitor,) = one.monitors
        numbers = {number.name: number.value for number in monitor.numbers_beside()}
        assert numbers["outside_interval"] == outside / len(outcomes)
        assert numbers["lanes"] == SETTINGS.max_pending
        assert numbers["price_nats"] == pytest.approx(SETTINGS.max_pending * math.log(4))
        found = experts(monitor.numbers_beside())
        assert found["protected"].loss < found["raw"].loss
        assert set(monitor.views()) == {"raw", "calibrated"}


def test_each_fold_has_a_copy_of_the_learner() -> None:
    """With a learner, what the copies say is protected against the median of it."""
    xs = [{"a": float(n % 5), "b": float(n % 3)} for n in range(40)]
    stream: list[Event] = []
    for n, x in enumerate(xs):
        stream += [Observation(f"a{n}", n, x=x), Label(f"a{n}", n, value=n % 5 > 2)]
    outputs = Processor(msgspec.structs.replace(SETTINGS, learner="logistic")).process_many(stream)
    copies, calibrator = [make("logistic") for _ in range(K)], ProtectedCrossVennAbers(K)
    for n, x in enumerate(xs):
        scores = [copy.score(x) for copy in copies]
        prediction = outputs[2 * n]
        assert isinstance(prediction, Prediction)
        assert prediction.p == calibrator.predict_one(scores, number=n).probability
        calibrator.learn_one(scores, n % 5 > 2, id=f"a{n}", number=n)
        for k, copy in enumerate(copies):
            if k != calibrator.fold_of(f"a{n}"):
                copy.learn(x, n % 5 > 2)
