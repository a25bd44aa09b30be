"""The accounts of a day: of the state, of the metrics, and of the topics, each on its own."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tests.connectors.day.application import OUTPUTS

from abers.stream import accounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka.consumer.fetcher import ConsumerRecord
    from prometheus_client.samples import Sample
    from tests.connectors.day.application import DayApplication

__all__ = ["Books", "require_books"]

# What the state calls it, and the samples whose sum it is: name and labels.
_EVENTS, _ENDED = "abers_events_total", "abers_predictions_ended_total"
_NAMES: dict[str, tuple[str, dict[str, str]]] = {
    "predictions": (_EVENTS, {"input": "observations", "result": "predicted"}),
    "duplicate_observations": (_EVENTS, {"input": "observations", "result": "duplicate"}),
    "learned": (_EVENTS, {"input": "labels", "result": "learned"}),
    "duplicate_labels": (_EVENTS, {"input": "labels", "result": "duplicate"}),
    "late_labels": (_EVENTS, {"input": "labels", "result": "late"}),
    "dead_letters": (_EVENTS, {"result": "dead-letter"}),
    "expired": (_ENDED, {"result": "expired"}),
    "evicted": (_ENDED, {"result": "evicted"}),
    "retired": (_ENDED, {"result": "retired"}),
    "assumed": (_ENDED, {"result": "assumed"}),
    "tombstones": ("abers_tombstones_total", {}),
    "records": ("abers_records_total", {"stage": "tasks"}),
}
_WAITING = {
    "waiting_observations": "abers_pending_observations",
    "waiting_labels": "abers_early_labels",
}


class Books:
    """What the metrics say since the processes were started, all together."""

    def __init__(self, samples: Mapping[str, Iterable[Sample]]) -> None:
        self._samples = [one for some in samples.values() for one in some]

    def total(self, name: str, **labels: str) -> int:
        """Return a sum of samples."""
        return round(
            sum(
                one.value
                for one in self._samples
                if one.name == name and labels.items() <= one.labels.items()
            )
        )

    def by(self, name: str, label: str) -> Counter[str]:
        """Return the sums of samples by a label, without zeros."""
        found: Counter[str] = Counter()
        for one in self._samples:
            if one.name == name and one.value:
                found[one.labels[label]] += round(one.value)
        return found


def require_books(  # noqa: PLR0913, PLR0917 - of a day
    application: DayApplication,
    books: Books,
    before: Mapping[str, int],
    ends: Mapping[tuple[str, int], int],
    after: Mapping[str, int],
    routed: Sequence[ConsumerRecord],
    by_model: Mapping[str, int],
) -> None:
    """Assert that metrics, state and topics say the same, and that the accounts close.

    Parameters
    ----------
    application
        The application, which has read all.
    books
        The metrics of its processes, which were started when the tasks were rescaled.
    before, ends
        The accounts, and the ends of the outputs, when the tasks were rescaled.
    after
        The accounts at the end.
    routed
        What was routed since.
    by_model
        Labels of each model, as the live pages list them.
    """
    for one in (before, after):
        assert accounts.unbalanced(one) == []
    by_metrics = {key: books.total(name, **labels) for key, (name, labels) in _NAMES.items()}
    by_state = {key: after[key] - before[key] for key in _NAMES}
    assert by_metrics == by_state
    assert {key: books.total(name) for key, name in _WAITING.items()} == {
        key: after[key] for key in _WAITING
    }
    dead = books.by("abers_dead_letters_total", "reason")
    undecodable = dead.total() - by_metrics["dead_letters"]
    events = books.total(_EVENTS) + after["waiting_labels"] - before["waiting_labels"]
    assert by_metrics["records"] == events + undecodable + by_metrics["tombstones"]
    assert by_metrics["records"] == len(routed)
    written = {key: _since(application, key, ends) for key in OUTPUTS}
    assert books.total("abers_predictions_total") == len(written["predictions"])
    assert books.total("abers_outcomes_total") == len(written["outcomes"])
    assert dead == Counter(json.loads(one.value)["reason"] for one in written["dead_letters"])
    outcomes = application.broker.consume(application.topics["outcomes"])
    of_topics = Counter(json.loads(one.value)["model"] for one in outcomes)
    assert of_topics == {model: count for model, count in by_model.items() if count}


def _since(
    application: DayApplication, key: str, ends: Mapping[tuple[str, int], int]
) -> list[ConsumerRecord]:
    """Return the records of an output from these ends on."""
    topic = application.topics[key]
    return [
        one for one in application.broker.consume(topic) if one.offset >= ends[topic, one.partition]
    ]
