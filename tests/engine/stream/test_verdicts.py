"""Verdicts on a stream: on raw scores and on what is served, through the processor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.monitoring import TaskMonitor, VerdictSequence
from abers.stream import Events, Label, Observation, Processor, Settings

N = 6_000
FEW = 300


def stream(odds: float, n: int = N, seed: int = 1, model: str = "m") -> Events:
    """Return observations, each followed by its label; odds are those of the scores, times so."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(2.0, 5.0, n)
    true = odds * scores / (1.0 - scores + odds * scores)
    labels = (rng.random(n) < true).astype(int)
    events: list[Observation | Label] = []
    for i, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        time = 1_700_000_000_000 + 60_000 * i
        events += [Observation(f"{i}", time, model, score), Label(f"{i}", time + 1, model, label)]
    return Events.of(events)


def monitor_of(processor: Processor) -> TaskMonitor:
    """Return the monitor of a processor that has one."""
    assert processor.monitor is not None
    return processor.monitor


def settings(**given: object) -> Settings:
    """Return settings of a stream of probabilities, tested from the first label on."""
    return Settings(scores="probability", grace_period=0, **given)  # type: ignore[arg-type]


@pytest.mark.simulation
def test_the_model_and_what_is_served() -> None:
    """Scores with twice the odds are too high; what is served is not; calibration saved."""
    processor = Processor(settings())
    processor.process_batch(stream(0.5))
    raw, served = monitor_of(processor).verdicts
    assert (raw.view, raw.status) == ("raw", "too high")
    assert raw.ratio.upper < 1.0
    assert raw.sentence.startswith("The raw scores are too high, since 2023-11-14 22:13:20 UTC: ")
    assert (served.view, served.outside) == ("calibrated", False)
    losses = monitor_of(processor).losses
    assert losses is not None
    assert losses.difference.lower > 0.0
    assert losses.sentence.startswith("Calibration saved")


def test_logits_say_probabilities() -> None:
    """Logits are scored and tested as the probabilities that they say."""
    given = stream(0.5, FEW)
    assert given.scores is not None
    found = []
    for kind in ("probability", "logit"):
        processor = Processor(Settings(scores=kind, calibrator="ivap", grace_period=0))
        if kind == "logit":
            p = np.where(given.labels, 0.5, given.scores)  # a label has none
            given = replace(given, scores=np.log(p) - np.log1p(-p))
        processor.process_batch(given)
        found.append((monitor_of(processor).views()["raw"], monitor_of(processor).verdicts[0]))
    (numbers, verdict), (of_logits, its_verdict) = found
    assert of_logits == pytest.approx(numbers, rel=1e-9)
    assert its_verdict.view == "raw"
    assert its_verdict.ratio == pytest.approx(verdict.ratio, rel=1e-9)


@pytest.mark.once
@pytest.mark.parametrize("odds", [0.5, 1.0])
def test_metrics_say_what_the_verdicts_say(odds: float) -> None:
    """The numbers of the summary are those of the verdicts, by view."""
    processor = Processor(settings())
    processor.process_batch(stream(odds, 900))
    monitor = monitor_of(processor)
    numbers = {(one.name, one.view): one.value for one in monitor.summary()}
    for verdict in monitor.verdicts:
        assert numbers["verdict_outside", verdict.view] == verdict.outside
        assert numbers["verdict_trustworthy", verdict.view] == (verdict.status == "trustworthy")
        assert numbers["verdict_observed_ratio", verdict.view] == verdict.ratio.value
    assert monitor.losses is not None
    assert numbers["calibration_saved_nats", ""] == monitor.losses.difference.value


@pytest.mark.simulation
def test_a_model_without_a_calibrator() -> None:
    """With "none" there is one verdict, on the scores, and nothing to compare."""
    processor = Processor(settings(calibrator="none"))
    processor.process_batch(stream(1.0))
    (verdict,) = monitor_of(processor).verdicts
    assert (verdict.view, verdict.outside) == ("raw", False)
    assert monitor_of(processor).losses is None


@pytest.mark.simulation
def test_an_alarm_starts_another_block() -> None:
    """An alarm ends a block of the verdicts; they are on the labels behind it."""
    processor = Processor(settings(average_run_length=1_000))
    outputs = processor.process_batch(stream(0.4))
    assert outputs.alarms
    (process,) = monitor_of(processor).e_processes
    raw, _ = process.verdicts
    assert raw.blocks > 1
    assert raw.open
    assert raw.labels < N


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6), at=st.integers(0, 5))
def test_batches_and_restarts_change_nothing(sizes: list[int], at: int) -> None:
    """Verdicts are the same however a stream is split, and after a restart."""
    events = stream(0.5, FEW)
    whole = Processor(settings())
    whole.process_batch(events)
    parts, begin = Processor(settings()), 0
    for number, size in enumerate([*sizes, len(events)]):
        parts.process_batch(events[begin : begin + size])
        begin += size
        if number == at:
            parts = Processor.restore(parts.snapshot(), settings())
    assert monitor_of(parts).verdicts == monitor_of(whole).verdicts
    assert parts.state_bytes() == whole.state_bytes()


def test_labels_that_do_not_come() -> None:
    """A verdict says which share of the labels came in time."""
    processor = Processor(settings(label_timeout=60_000))
    events = stream(1.0, 200)
    kept = [event for event in events if type(event) is not Label or int(event.id) % 4]
    processor.process_batch(Events.of(kept))
    for verdict in monitor_of(processor).verdicts:
        assert verdict.came == pytest.approx(0.75, abs=0.01)
        assert "of the labels" in verdict.sentence.lower()


@pytest.mark.simulation
def test_models_have_verdicts_of_their_own_and_together() -> None:
    """The total of models is the verdict on all their labels."""
    processor = Processor(settings())
    processor.process_batch(stream(1.0, 2_000, model="a"))
    processor.process_batch(stream(1.0, 2_000, seed=2, model="b"))
    each = [one.verdicts[0].labels for one in processor.monitors]
    assert monitor_of(processor).verdicts[0].labels == sum(each)
    assert isinstance(processor.monitors[0].e_processes[0].verdicts[0], VerdictSequence)


def test_no_verdicts_without_tests() -> None:
    """Where tests are switched off there are no verdicts."""
    processor = Processor(settings(tests=False))
    processor.process_batch(stream(1.0, 20))
    assert monitor_of(processor).verdicts == []
    assert monitor_of(processor).losses is None


CLASSES = ("a", "b", "c")


def classes_stream(factor: float, n: int, seed: int = 1) -> Events:
    """Return observations of three classes, and labels; the odds of "b" are those scored, so off.

    The others share what is left as scored.
    """
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet([3.0, 3.0, 3.0], n)
    b = scores[:, 1] * factor / (1.0 - scores[:, 1] + scores[:, 1] * factor)
    true = scores * ((1.0 - b) / (1.0 - scores[:, 1]))[:, np.newaxis]
    true[:, 1] = b
    labels = (rng.random((n, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    events: list[Observation | Label] = []
    for i, (row, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        given = dict(zip(CLASSES, row, strict=True))
        events += [Observation(f"{i}", 2 * i, "m", given)]
        events += [Label(f"{i}", 2 * i + 1, "m", CLASSES[label])]
    return Events.of(events)


def class_settings(**given: object) -> Settings:
    """Return settings of a stream of probabilities of three classes."""
    return settings(task="multiclass", classes=CLASSES, **given)


@pytest.mark.simulation
def test_each_class_has_a_verdict() -> None:
    """If one class is too rare, the parts of the raw scores name it; each has its own counts."""
    n = 6_000
    events = classes_stream(0.4, n)
    processor = Processor(class_settings(average_run_length=2_000_000_000))
    processor.process_batch(events)
    raw, served = monitor_of(processor).verdict_parts
    assert (raw.view, raw.name) == ("raw", "raw scores, classes")
    assert [one.words.part for one in raw.verdicts] == [*CLASSES]
    worst = raw.outside[0]
    assert (worst.words.part, worst.status) == ("b", "too high")
    assert "b too high" in raw.sentence
    assert not served.outside
    numbers = {(one.name, one.view): one.value for one in monitor_of(processor).summary()}
    assert numbers["verdict_parts_outside", "raw"] == len(raw.outside)
    assert numbers["verdict_parts_trustworthy", "calibrated"] == served.trustworthy


def test_classes_are_counted_by_their_labels() -> None:
    """Observed and expected of a class are its labels and the sum of its probabilities."""
    events, n = classes_stream(1.0, 40), 40
    processor = Processor(class_settings())
    processor.process_batch(events)
    raw, _ = monitor_of(processor).verdict_parts
    scores = [one.score for one in events if type(one) is Observation]
    labels = [one.value for one in events if type(one) is Label]
    for name, one in zip(CLASSES, raw.verdicts, strict=True):
        assert one.counted == n
        assert one.observed == labels.count(name)
        assert one.expected == pytest.approx(sum(score[name] for score in scores))


def test_needs_of_classes_are_those_of_the_top_class() -> None:
    """How many labels are needed is said of the main verdict on what is served, not of a class."""
    processor = Processor(class_settings())
    processor.process_batch(classes_stream(1.0, 40))
    monitor = monitor_of(processor)
    assert [*monitor.label_needs] == [monitor.verdicts[-1].words.subject]


@given(sizes=st.lists(st.integers(1, 90), min_size=1, max_size=6), at=st.integers(0, 5))
def test_verdicts_of_classes_need_no_batches(sizes: list[int], at: int) -> None:
    """They are the same however a stream is split, and after a restart amid waiting labels."""
    given_events = classes_stream(0.5, 60)
    labels: list[Observation | Label] = [one for one in given_events if type(one) is Label]
    late: list[Observation | Label] = [one for one in given_events if type(one) is Observation]
    events = Events.of([*late, *labels[1:], labels[0]])
    whole = Processor(class_settings())
    whole.process_batch(events)
    parts, begin = Processor(class_settings()), 0
    for number, size in enumerate([*sizes, len(events)]):
        parts.process_batch(events[begin : begin + size])
        begin += size
        if number == at:
            parts = Processor.restore(parts.snapshot(), class_settings())
    assert monitor_of(parts).verdict_parts == monitor_of(whole).verdict_parts
    assert parts.state_bytes() == whole.state_bytes()


def test_too_many_classes_have_no_verdicts_of_their_own() -> None:
    """Beyond 100 classes only the top class has a verdict, so that memory stays small."""
    for n, parts in ((100, 2), (101, 0)):
        names = tuple(map(str, range(n)))
        processor = Processor(settings(task="multiclass", classes=names, calibrator="one-vs-rest"))
        score = dict.fromkeys(names, 1.0 / n)
        events: list[Observation | Label] = [Observation("1", 1, "m", score)]
        events.append(Label("1", 2, "m", "0"))
        processor.process_batch(Events.of(events))
        assert len(monitor_of(processor).verdicts) == 2
        assert len(monitor_of(processor).verdict_parts) == parts
