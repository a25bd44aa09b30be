"""Real streams of each kind, from which documents of models are made."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.pages.model_document import model_blocks, model_document
from abers.pages.model_findings import LatestOutcomes, ModelDetails
from abers.stream import Events, Label, Observation, Processor, Settings
from abers.stream.alarms import experts_at

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["STREAMS", "ExpertsPoint", "Streamed", "blocks_of", "document_of", "streamed"]

START, MINUTE, DELAY = 1_700_000_000_000, 60_000, 40
CLASSES = ("spruce", "lodgepole", "other")
QUANTILES = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)


class ExpertsPoint(NamedTuple):
    """Methods after so many labels, up to an event time."""

    labels: int
    time: int
    experts: Any


class Streamed(NamedTuple):
    """A processor at the end of a stream, with its predictions and labels by id."""

    processor: Processor
    predictions: list[Any]
    labels: dict[str, Any]


def streamed(
    settings: Settings,
    scores: list[Any],
    labels: list[Any],
    segments: str = "",
    lost: int = 17,
) -> Streamed:
    """Run a stream of labels that are late; every so many is lost."""
    events: list[Any] = []
    for k in range(len(scores) + DELAY):
        time = START + k * 10 * MINUTE
        if k < len(scores):
            segment = segments[k % len(segments)] if segments else ""
            events.append(Observation(f"{k}", time, "m", scores[k], segment=segment))
        if k >= DELAY and (not lost or k % lost):
            events.append(Label(f"{k - DELAY}", time, "m", labels[k - DELAY]))
    processor, predictions, came = Processor(settings), list[Any](), dict[str, Any]()
    for begin in range(0, len(events), 500):
        outputs = processor.process_batch(Events.of(events[begin : begin + 500]))
        predictions += [*outputs.predictions]
        came |= {one.id: one.label for one in outputs.outcomes or ()}
    return Streamed(processor, predictions, came)


def _drifting(n: int, seed: int = 1) -> tuple[list[float], list[int]]:
    """Return probabilities that are right at first, and then too high above 0.27."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 5.0, n)
    wrong = np.where(np.arange(n) < n // 5, 1.0, np.where(p > 0.27, 0.5, 1.3))
    odds = p / (1.0 - p) * wrong
    return p.tolist(), (rng.random(n) < odds / (1.0 + odds)).astype(int).tolist()


def _settings(**more: Any) -> Settings:  # noqa: ANN401 - settings
    return Settings(**{"scores": "probability", "label_timeout": 7 * 24 * 60 * MINUTE, **more})


def _two(n: int = 14_000, **more: Any) -> Streamed:  # noqa: ANN401 - settings
    return streamed(_settings(), *_drifting(n), **more)


def _folds() -> Streamed:
    scores, labels = _drifting(5_000)
    settings = _settings(calibrator="cvap", folds=3)
    return streamed(settings, [[one, one, one] for one in scores], labels)


def _three() -> Streamed:
    rng = np.random.default_rng(2)
    p = rng.dirichlet((3.0, 2.0, 1.0), 8_000)
    drawn = (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)
    sure = p**1.5 / (p**1.5).sum(axis=1, keepdims=True)
    settings = _settings(task="multiclass", classes=CLASSES)
    scores = [dict(zip(CLASSES, one, strict=True)) for one in sure.tolist()]
    return streamed(settings, scores, [CLASSES[k] for k in drawn])


def _numbers() -> Streamed:
    rng = np.random.default_rng(3)
    n = 8_000
    score = rng.normal(0.0, 1.0, n)
    labels = score + rng.normal(0.0, 1.0, n) * np.where(np.arange(n) < n // 2, 1.0, 1.4)
    grid = (*np.linspace(-6.0, 6.0, 49).tolist(),)
    settings = Settings(task="regression", quantiles=QUANTILES, grid=grid)
    return streamed(settings, score.tolist(), labels.tolist(), lost=0)


def _short(n: int) -> Streamed:
    return streamed(_settings(), *_drifting(n))


def _one_class() -> Streamed:
    scores, _ = _drifting(3_000)
    return streamed(_settings(), scores, [0] * len(scores))


def _margins() -> Streamed:
    scores, labels = _drifting(5_000)
    settings = Settings(label_timeout=7 * 24 * 60 * MINUTE)
    return streamed(settings, [10.0 * one - 3.0 for one in scores], labels)


def _as_it_is() -> Streamed:
    return streamed(_settings(calibrator="none"), *_drifting(4_000))


def _many_classes() -> Streamed:
    rng = np.random.default_rng(5)
    names = tuple(f"class {number}" for number in range(14))
    p = rng.dirichlet(np.ones(len(names)), 2_000)
    drawn = (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)
    scores = [dict(zip(names, one, strict=True)) for one in p.tolist()]
    settings = _settings(task="multiclass", classes=names)
    return streamed(settings, scores, [names[k] for k in drawn])


def _medians() -> Streamed:
    rng = np.random.default_rng(6)
    score = rng.normal(0.0, 1.0, 1_000)
    labels = score + rng.normal(0.0, 1.0, len(score))
    grid = (*np.linspace(-5.0, 5.0, 21).tolist(),)
    settings = Settings(task="regression", quantiles=(0.5,), grid=grid)
    return streamed(settings, score.tolist(), labels.tolist())


def _untested() -> Streamed:
    return streamed(_settings(tests=False), *_drifting(1_000))


def _recovered() -> Streamed:
    """Return a stream whose probabilities are wrong for a while, and then right for long."""
    rng = np.random.default_rng(4)
    n = 11_300
    p = rng.uniform(0.3, 0.7, n)
    wrong = (np.arange(n) > 3_000) & (np.arange(n) < 4_700)
    true = np.where(wrong, p - 0.25, p)
    return streamed(_settings(), p.tolist(), (rng.random(n) < true).astype(int).tolist())


def _row_numbers() -> Streamed:
    scores, labels = _drifting(3_000)
    processor = Processor(_settings(label_timeout=10_000))
    events = [
        one
        for k, (score, label) in enumerate(zip(scores, labels, strict=True))
        for one in (Observation(f"{k}", k, "m", score), Label(f"{k}", k, "m", label))
    ]
    outputs = processor.process_batch(Events.of(events))
    came = {one.id: one.label for one in outputs.outcomes or ()}
    return Streamed(processor, [*outputs.predictions], came)


_MADE: dict[str, Callable[[], Streamed]] = {
    "two": _two,
    "folds": _folds,
    "three": _three,
    "numbers": _numbers,
    "waiting": lambda: _short(120),
    "unlabelled": lambda: _two(300, lost=1),
    "just-begun": lambda: _short(300),
    "one-class": _one_class,
    "margins": _margins,
    "untested": _untested,
    "as-it-is": _as_it_is,
    "many-classes": _many_classes,
    "medians": _medians,
    "recovered": _recovered,
    "row-numbers": _row_numbers,
    "segments": lambda: _two(9_000, segments="st"),
}
STREAMS = (*_MADE,)


@cache
def of_kind(name: str) -> Streamed:
    """Return the stream of a kind, which is run once."""
    return _MADE[name]()


def _given(stream: Streamed, place: int = 0) -> dict[str, Any]:
    """Return what a page of a model takes, next to its monitor."""
    history, monitor = stream.processor.histories[place], stream.processor.monitors[place]
    _, mixed = history.now(monitor)
    given: dict[str, Any] = {
        "alarms": [*history.alarms],
        "experts_over_time": [
            ExpertsPoint(one.labels, one.time, experts_at(history.names, one)) for one in mixed
        ],
        "records": (("file", "stream.csv"),),
        "where": "predictions.parquet",
    }
    settings = stream.processor.settings
    if settings.task == "regression":
        given["outcomes"] = LatestOutcomes(history.last, settings.quantiles, " °C")
    return given


def _details(
    stream: Streamed, place: int, more: dict[str, Any]
) -> tuple[ModelDetails, dict[str, Any]]:
    """Return the details of a page, some of them replaced, and what else was given."""
    of = {name: one for name, one in more.items() if name in ModelDetails._fields}
    given = {name: one for name, one in more.items() if name not in of}
    return ModelDetails(**(_given(stream, place) | of)), given


def document_of(name: str, **more: Any) -> Any:  # noqa: ANN401 - as `model_document` takes them
    """Return the document of the first model of a stream."""
    stream = of_kind(name)
    details, given = _details(stream, 0, {"zone": "Europe/Berlin", **more})
    return model_document(stream.processor.monitors[0], details, title="stream.csv", **given)


def blocks_of(name: str, place: int, **more: Any) -> Any:  # noqa: ANN401 - as `model_blocks`
    """Return the blocks of a model of a stream."""
    stream = of_kind(name)
    details, given = _details(stream, place, more)
    return model_blocks(stream.processor.monitors[place], details, **given)
