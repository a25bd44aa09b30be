"""Labels of several classes, and labels that are numbers, in a stream.

Whatever comes, in whatever batches, saved and restored in between or not, outputs
and counters are those of the naive processor, which applies one event at a time.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import (
    BAD_SCORES,
    FEATURES,
    SCORES,
    drawn,
    events,
    limited,
    plain,
    rowless,
)
from tests.engine.stream.naive_tasks import band_of, naive
from tests.engine.stream.replies import kinds, lab, obs, only, processor, refused

from abers import StateError
from abers.monitoring import RegressionMonitor
from abers.regression.scores import crps, pit_histogram
from abers.stream import Event, Output, Processor, Settings

CLASSES = ("cat", "7", "é")
CUTS = st.lists(st.integers(0, 40), max_size=5)

ROWS: Any = [
    {"cat": 0.5, "7": 0.25, "é": 0.25},
    {"cat": 0.1, "7": 0.8, "é": 0.1},
    {"é": 0.1, "cat": 0.8, "7": 0.1},
    {"cat": 1 / 3, "7": 1 / 3, "é": 1 / 3},
    {"cat": 0.5, "7": 0.5, "é": -0.0},
    {"cat": 0.5, "7": 0.5},
    {"cat": 1},
    {"cat": 0.335, "7": 0.335, "é": 0.335},
]
BAD_ROWS: Any = [
    *BAD_SCORES,
    0.5,
    [("cat", 1.0)],
    {"cat": 0.5, "owl": 0.5},
    {"cat": 0.5, 7: 0.5},
    {"cat": math.nan, "7": 0.5, "é": 0.5},
    {"cat": "0.5", "7": 0.5, "é": 0.0},
    {"cat": None, "7": 0.5, "é": 0.5},
    {"cat": 10**400},
    {"cat": 0.5, "7": 0.25, "é": 0.2},
    {"cat": 1.5, "7": -0.5, "é": 0.0},
    {"cat": 1e308, "7": 1e308, "é": 1e308},
    {},
]
NO_CLASSES: Any = [None, "", "dog", 8, 7.0, True, b"cat", [], {}, ["cat"], 10**5000, math.nan]
NO_NUMBERS: Any = [None, "1", math.nan, math.inf, -math.inf, 10**400, 1j, [], {}, [1.0]]


class Learner:
    """A learner whose scores depend on all it has learned, which fails where features say so."""

    def __init__(self) -> None:
        """Begin with nothing learned."""
        self.learned: list[Any] = []

    def score(self, x: dict[str, Any]) -> Any:  # noqa: ANN401
        """Return the score in the features, or one from the labels learned."""
        if x.get("fail") == "score":
            msg = "asked to fail at scoring"
            raise RuntimeError(msg)
        return x.get("give", self.answer(x.get("a", 0.0)))

    def learn(self, x: dict[str, Any], value: Any) -> None:  # noqa: ANN401
        """Remember the label."""
        if x.get("fail") == "learn":
            msg = "asked to fail at learning"
            raise RuntimeError(msg)
        self.learned.append(value)

    def answer(self, shift: float) -> Any:  # noqa: ANN401
        """Make a score."""
        raise NotImplementedError


class Classifier(Learner):
    """A learner of classes."""

    def answer(self, shift: float) -> dict[str, float]:
        """Return smoothed shares of the classes, the first of them shifted."""
        shares = [1.0 + self.learned.count(name) for name in CLASSES]
        shares[0] += shift
        return {name: one / sum(shares) for name, one in zip(CLASSES, shares, strict=True)}


class Regressor(Learner):
    """A learner of numbers."""

    def answer(self, shift: float) -> float:
        """Return the mean, shifted."""
        return (math.fsum(self.learned) + shift) / (len(self.learned) + 1)


NUMBERS = drawn(
    [*SCORES, -3.5, 17],
    [0, 1, 1.0, -0.0, 2.5, -7, 3.25, True, np.float32(0.5), 10**20],
    FEATURES,
    *({"score": value} for value in (*BAD_SCORES, {"cat": 1.0})),
    *({"value": value} for value in NO_NUMBERS),
)

TASKS: dict[str, Any] = {
    "multiclass": (
        limited(
            task=st.just("multiclass"),
            classes=st.just(CLASSES),
            calibrator=st.sampled_from((None, "one-vs-rest", "one-vs-one")),
            scores=st.sampled_from(("any", "probability", "probability", "logit")),
            raw_weight=st.sampled_from((0.25, 0.5)),
            unlabelled=st.sampled_from((None, "7", "é")),
        ),
        drawn(
            [*ROWS, *ROWS, {"cat": 2.0, "7": 0.5, "é": 3.0}, {"cat": -1.0, "7": 2.0, "é": 0.0}],
            ["cat", "cat", "7", "é", 7, np.int64(7)],
            [*FEATURES, {"give": {"cat": 0.5}}, {"give": {"owl": 1.0}}, {"give": math.inf}],
            *({"score": value} for value in BAD_ROWS),
            *({"value": value} for value in NO_CLASSES),
        ),
        Classifier,
    ),
    "regression": (
        limited(
            task=st.just("regression"),
            quantiles=st.sampled_from(((0.5,), (0.1, 0.5, 0.9), (0.05, 0.3, 0.7, 0.9999999))),
            grid=st.sampled_from(((), (), (-1.0, 0.0, 2.5))),
            scores=st.sampled_from(("any", "logit")),
        ),
        NUMBERS,
        Regressor,
    ),
    "distributions": (
        limited(
            task=st.just("regression"),
            distributions=st.sampled_from(("full", "scored")),
            quantiles=st.sampled_from(((0.5,), (0.1, 0.25, 0.75, 0.9))),
            grid=st.sampled_from(((), (), (-1.0, 0.0, 2.5))),
            support=st.sampled_from(((), (), (-7.0, 3.25))),
        ),
        NUMBERS,
        Regressor,
    ),
}


@st.composite
def lives(draw: st.DrawFn, name: str, size: int = 30) -> tuple[Settings, list[Event], list[int]]:
    """Draw settings of a task, events, and where batches of them end."""
    settings, some, _ = TASKS[name]
    return draw(settings), events(draw(st.lists(some, max_size=size))), draw(CUTS)


def batches(made: list[Event], cuts: list[int]) -> list[list[Event]]:
    """Cut events into batches."""
    return [made[a:b] for a, b in pairwise([0, *sorted(cuts), len(made)])]


def said(p: Processor, parts: list[list[Event]]) -> list[tuple[Any, ...]]:
    """Process batches, and return the outputs without the rows of dead letters."""
    return [rowless(output) for part in parts for output in p.process_many(part)]


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
def test_it_does_what_the_rules_say(data: st.DataObject, task: str, learns: bool) -> None:  # noqa: FBT001
    """Events in any batches give what the naive processor says of them one by one."""
    settings, made, cuts = data.draw(lives(task))
    learner = TASKS[task][2] if learns else None
    p = Processor(settings, learner=learner and learner())
    expected = naive(settings, learner and learner())
    for part in batches(made, cuts):
        found: list[Output] = p.process_many(part)
        assert list(map(plain, found)) == list(map(plain, expected.process_many(part)))
        assert p.counters == expected.counters
        assert p.clock == expected.clock


@pytest.mark.parametrize("learns", [False, True], ids=["scores", "learner"])
@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
def test_batches_make_no_difference(data: st.DataObject, task: str, learns: bool) -> None:  # noqa: FBT001
    """All at once, one by one and in any batches, outputs and state are the same."""
    settings, made, cuts = data.draw(lives(task))
    learner = TASKS[task][2] if learns else None
    whole, split, single = (Processor(settings, learner=learner and learner()) for _ in range(3))
    expected = said(whole, [made])
    assert said(split, batches(made, cuts)) == expected
    assert said(single, [[one] for one in made]) == expected
    assert whole.state_bytes() == split.state_bytes() == single.state_bytes()


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
def test_a_restored_one_goes_on(data: st.DataObject, task: str) -> None:
    """A restored processor does what the saved one does, with the same monitors."""
    settings, made, _ = data.draw(lives(task))
    middle = len(made) // 2
    p = Processor(settings)
    p.process_many(made[:middle])
    restored = Processor.restore(p.snapshot(), settings)
    assert said(restored, [made[middle:]]) == said(p, [made[middle:]])
    assert restored.state_bytes() == p.state_bytes()
    assert [one.state() for one in restored.monitors] == [one.state() for one in p.monitors]


# Single rules


def classes(**options: Any) -> Processor:  # noqa: ANN401
    """Make a processor of three classes."""
    return processor(task="multiclass", classes=CLASSES, **options)


def numbers(**options: Any) -> Processor:  # noqa: ANN401
    """Make a processor of labels that are numbers."""
    return processor(task="regression", quantiles=(0.1, 0.5, 0.9), **options)


@pytest.mark.parametrize("score", BAD_ROWS[:-2], ids=repr)
def test_scores_of_classes_that_are_none(score: Any) -> None:  # noqa: ANN401
    """Scores that are not probabilities of the classes are refused, alone and in a batch."""
    p = classes(scores="probability")
    assert refused(p, obs("a", score=score)) == "bad-score"
    said = p.process_many([obs("b", score=ROWS[0]), obs("c", score=score), obs("d", score=ROWS[1])])
    assert kinds(said) == ["MultiClassPrediction", "bad-score", "MultiClassPrediction"]


@pytest.mark.parametrize("score", [{"cat": 1e308, "7": 1e308, "é": 1e308}, {}], ids=["huge", "no"])
@pytest.mark.parametrize("calibrator", ["one-vs-rest", "one-vs-one"])
def test_any_scores_that_are_finite(score: Any, calibrator: str) -> None:  # noqa: ANN401
    """Scores that need not be probabilities may have any size, and may be left out."""
    p = classes(calibrator=calibrator)
    said = only(p.process(obs("a", score=score)))
    assert said.score == dict.fromkeys(CLASSES, 0.0) | score
    assert math.isclose(math.fsum(said.p.values()), 1.0)
    assert kinds(p.process(lab("a", value="cat"))) == ["MultiClassOutcome"]


def test_negative_scores() -> None:
    """Scores below 0 are for one-vs-rest; the share of a pair of classes cannot bear them."""
    score = {"cat": -1.0, "7": 2.0, "é": 0.0}
    assert kinds(classes().process(obs("a", score=score))) == ["MultiClassPrediction"]
    assert refused(classes(calibrator="one-vs-one"), obs("a", score=score)) == "bad-score"


def test_zero_has_no_sign() -> None:
    """A score or label of -0.0 is 0, however it comes."""
    for p, score, value in ((classes(), {**ROWS[1], "é": -0.0}, "é"), (numbers(), -0.0, -0.0)):
        other = Processor(p.settings)
        made: list[Event] = [obs("a", score=score), lab("a", value=value)]
        odd = obs("", score=score)  # a batch with something bad in it is looked at one by one
        said = p.process_many(made)
        assert repr(said) == repr(other.process_many([*made, odd])[:2])
        assert "-0.0" not in repr(said)


@pytest.mark.parametrize("value", NO_CLASSES, ids=lambda value: f"{type(value).__name__}")
def test_labels_that_are_no_classes(value: Any) -> None:  # noqa: ANN401
    """The label of another task is refused."""
    p = classes()
    p.process(obs("a", score=ROWS[0]))
    before = p.clock
    said = p.process_many([lab("b", value="cat"), lab("a", value=value)])
    assert kinds(said) == ["bad-label"]
    assert p.clock == before
    assert only(p.process(lab("a", value=7))).label == "7"


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: f"{type(value).__name__}")
def test_labels_that_are_no_numbers(value: Any) -> None:  # noqa: ANN401
    """The label of another task, and one that is not finite, are refused."""
    p = numbers()
    p.process(obs("a", score=1.0))
    assert kinds(p.process_many([lab("b", value=1.0), lab("a", value=value)])) == ["bad-label"]
    assert only(p.process(lab("a", value=3))).label == 3.0


@pytest.mark.parametrize("score", NO_NUMBERS, ids=lambda value: f"{type(value).__name__}")
def test_scores_that_are_no_numbers(score: Any) -> None:  # noqa: ANN401
    """A score that is no finite number is refused, alone and in a batch."""
    p = numbers()
    assert refused(p, obs("a", score=score)) == "bad-score"
    said = p.process_many([obs("b", score=1.0), obs("c", score=score)])
    assert kinds(said) == ["RegressionPrediction", "bad-score"]


def test_levels_have_names_of_their_own() -> None:
    """Each level is named in full: two that round alike are two."""
    levels = (0.05, 0.5, 0.9999999, 0.99999999)
    p = processor(task="regression", quantiles=levels)
    said = only(p.process(obs("a", score=1.0)))
    assert list(said.quantiles) == ["0.05", "0.5", "0.9999999", "0.99999999"]
    assert list(map(float, said.low)) == list(map(float, said.high)) == list(levels)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (classes, numbers, ["task", "classes", "quantiles"]),
        (numbers, processor, ["task", "quantiles"]),
        (classes, lambda: processor(task="multiclass", classes=("7", "cat", "é")), ["classes"]),
        (classes, lambda: classes(calibrator="one-vs-one"), ["calibrator"]),
        (numbers, lambda: numbers(grid=(0.0, 1.0)), ["grid"]),
        (numbers, lambda: numbers(distributions="scored"), ["distributions"]),
        (
            lambda: numbers(distributions="full"),
            lambda: numbers(distributions="full", support=(0.0, 1.0)),
            ["support"],
        ),
    ],
)
def test_another_task_is_refused_by_name(before: Any, after: Any, named: list[str]) -> None:  # noqa: ANN401
    """A snapshot is not restored for another task, nor for other classes, levels or thresholds."""
    with pytest.raises(StateError) as refusal:
        Processor.restore(before().snapshot(), after().settings)
    of_numbers = ("quantiles", "grid", "distributions", "support")
    names = ("task", "classes", *of_numbers, "calibrator", "scores")
    assert [name for name in names if f"{name} was" in str(refusal.value)] == named


# Distributions


def test_all_is_read_off_one_band() -> None:
    """Mean and quantiles are those of the distribution in the prediction."""
    p = numbers(distributions="full")
    for i in range(20):
        p.process_many([obs(f"a{i}", score=i % 7), lab(f"a{i}", value=i % 5)])
    said = only(p.process(obs("b", score=3.0)))
    band = band_of(said.cdf)
    assert said.mean == band.mean
    assert [*said.quantiles.values()] == band.quantile([0.1, 0.5, 0.9]).tolist()
    low, high = band.quantile_ends([0.1, 0.5, 0.9])
    assert ([*said.low.values()], [*said.high.values()]) == (low.tolist(), high.tolist())


def test_scored_and_not_full() -> None:
    """Where distributions are only scored, predictions have a mean, and no band."""
    full, scored = numbers(distributions="full"), numbers(distributions="scored")
    events: list[Event] = [lab("a", value=2.0), *(obs(name, score=1.0) for name in "ab")]
    for one, other in zip(full.process_many(events), scored.process_many(events), strict=True):
        without = msgspec.structs.replace(one, cdf=None) if hasattr(one, "cdf") else one
        assert plain(without) == plain(other)
    assert full.monitor is not None
    assert scored.monitor is not None
    assert full.monitor.views() == scored.monitor.views()


def test_nothing_held_is_nothing_said() -> None:
    """Before the first label there is no mean, and the CRPS is infinite: null on the wire."""
    p = numbers(distributions="full")
    said = only(p.process(obs("a", score=3.0)))
    outcome = only(p.process(lab("a", value=2.0)))
    wire = [json.loads(msgspec.json.encode(one)) for one in (said, outcome)]
    empty = {"thresholds": [], "lower": [0.0], "upper": [1.0], "support": [None, None]}
    assert (wire[0]["mean"], wire[0]["cdf"]) == (None, empty)
    assert (wire[1]["mean"], wire[1]["crps"]) == (None, None)
    assert p.monitor is not None
    assert p.monitor.views()["calibrated"]["crps_infinite"] == 1


def test_the_monitor_scores_what_was_predicted() -> None:
    """CRPS and PIT values are those of the distributions on the wire, however late labels are."""
    p = numbers(distributions="full", window=30)
    rng = np.random.default_rng(4)
    asked = [obs(f"a{i}", score=float(score)) for i, score in enumerate(rng.normal(size=80))]
    labels = [
        float(one.score + noise) for one, noise in zip(asked, rng.normal(size=80), strict=True)
    ]
    bands = []
    for i, one in enumerate(asked):
        bands += [band_of(only(p.process(one)).cdf)]
        if i >= 7:
            p.process(lab(f"a{i - 7}", value=labels[i - 7]))
    p.process_many([lab(f"a{i}", value=labels[i]) for i in range(73, 80)])
    losses = crps(bands, labels)
    monitor = p.monitor
    assert isinstance(monitor, RegressionMonitor)
    calibrated = monitor.views()["calibrated"]
    assert calibrated["crps"] == pytest.approx(losses[np.isfinite(losses)].mean())
    assert calibrated["crps_infinite"] == np.isinf(losses).sum() > 0
    distances = np.abs(np.array([one.score for one in asked]) - labels)
    assert monitor.views()["raw"]["crps"] == pytest.approx(distances[np.isfinite(losses)].mean())
    assert monitor.pit_histogram is not None
    assert monitor.pit_histogram.sum() == pytest.approx(80)
    drawn_ones = [
        band.pit(label, seed)
        for band, label in zip(bands, labels, strict=True)
        for seed in range(500)
    ]
    expected = pit_histogram(drawn_ones, bins=20) / 500
    assert monitor.pit_histogram == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize("monitors", [True, False])
def test_nothing_waits_without_end(monitors: bool) -> None:  # noqa: FBT001
    """A distribution is dropped with its label, also where it is not scored."""
    settings = Settings(task="regression", distributions="scored", monitors=monitors)
    p = Processor(settings, outcomes=False)
    p.process_many([obs(f"a{i}", i, score=1.0) for i in range(10)])
    p.process_many([lab(f"a{i}", i, value=1.0) for i in range(10)])
    waiting = p._state.calibration.pending  # noqa: SLF001
    assert waiting is not None
    assert len(waiting._by_slot) > 10  # noqa: SLF001
    assert not any(waiting._by_slot)  # noqa: SLF001


@pytest.mark.parametrize("value", [-0.001, 10.5, 1e300])
def test_labels_outside_the_support(value: float) -> None:
    """A label beyond the ends that were given is a bad record, alone and in a batch."""
    p = numbers(distributions="full", support=(0.0, 10.0))
    p.process_many([obs("a", score=1.0), obs("b", score=1.0)])
    dead_letter = only(p.process(lab("a", value=value)))
    assert dead_letter.reason == "bad-label"
    assert "outside the support (0.0, 10.0)" in dead_letter.detail
    said = p.process_many([lab("b", value=10), lab("a", value=value), lab("a", value=-0.0)])
    assert kinds(said) == ["RegressionOutcome", "bad-label", "RegressionOutcome"]
    assert only(p.process(obs("c", score=1.0))).cdf["support"] == [0.0, 10.0]
