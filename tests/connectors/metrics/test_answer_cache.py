"""Answers in the metrics, made again only of models whose labels came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers.monitoring import answer_numbers
from abers_connectors.metrics.service_metrics import AnswerCache, LabelCache, registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from prometheus_client.core import Sample

FLAGS = {"task.scores": "probability", "monitoring.grace_period": 1}


def take(task: Served, status: Status, *rows: tuple[str, str, float, int]) -> None:
    """Let a service take scores of models, each with its label."""
    for number, (name, model, score, label) in enumerate(rows):
        event = {"id": name, "time": number, "model": model}
        values = [json.dumps(event | one) for one in ({"score": score}, {"label": label})]
        status.batch_committed(task, task.take(*(Read(one.encode()) for one in values)))
    status.update_evidence([task])


def scraped(cache: AnswerCache, status: Status) -> dict[str, list[Sample]]:
    """Return the samples of each model."""
    found: dict[str, list[Sample]] = {}
    for metric in cache.metrics(status.view().answer_sums, LabelCache({"process": "0"})):
        for one in metric.samples:
            found.setdefault(one.labels["model"], []).append(one)
    return found


def test_samples_are_made_once_while_nothing_comes() -> None:
    """Models without new labels keep their samples; the others have those of their answers."""
    status, task, cache = Status(60.0), Served(flags=FLAGS), AnswerCache()
    take(task, status, *((f"{k}{m}", m, 0.2 + 0.2 * k, k % 2) for k in range(4) for m in "ab"))
    first = scraped(cache, status)
    assert [*first] == ["a", "b"]
    for (model, _), monitor in zip(task.processor.keys, task.processor.monitors, strict=False):
        answers = monitor.answers()
        assert answers is not None
        numbers = {
            (one.metric, one.view, *one.labels.values(), one.value)
            for one in answer_numbers(answers)
        }
        assert numbers == {
            (
                one.name,
                one.labels.get("view", ""),
                *(
                    one.labels[name]
                    for name in ("question", "state", "group", "period")
                    if name in one.labels
                ),
                one.value,
            )
            for one in first[model]
        }
    take(task, status, ("later", "b", 0.5, 1))
    second = scraped(cache, status)
    assert all(one is other for one, other in zip(first["a"], second["a"], strict=True))
    labels = [one.value for one in second["b"] if one.name == "abers_now_labels"]
    assert labels == [1.0 + one.value for one in first["b"] if one.name == "abers_now_labels"]


def test_a_model_that_is_gone_has_no_answer() -> None:
    """Nothing of a model that no partition has any more is kept or yielded."""
    status, task, cache = Status(60.0), Served(flags=FLAGS), AnswerCache()
    take(task, status, ("1", "a", 0.5, 1))
    assert [*scraped(cache, status)] == ["a"]
    status.assign([("in", 0)])
    assert not scraped(cache, status)


def test_without_tests_there_is_no_answer() -> None:
    """A service without tests has no series of answers."""
    status, task = Status(60.0), Served(flags=FLAGS | {"monitoring.tests": False})
    take(task, status, ("1", "a", 0.5, 1))
    names = {one.name for one in registry_of(status).collect()}
    assert not {name for name in names if "answer" in name or "now_" in name}


def test_a_scrape_has_the_state_of_each_question() -> None:
    """Of each model and question the six states add up to 1."""
    status, task = Status(60.0), Served(flags=FLAGS)
    take(task, status, *((f"{k}", "a", 0.2 * k, k % 2) for k in range(5)))
    (metric,) = (one for one in registry_of(status).collect() if one.name == "abers_answer")
    total: dict[str, float] = {}
    for sample in metric.samples:
        question = sample.labels["question"]
        total[question] = total.get(question, 0.0) + sample.value
    assert total == {"model": 1.0, "calibrated": 1.0, "pays": 1.0}
    assert len(metric.samples) == 18
