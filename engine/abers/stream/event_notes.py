"""What a journal entry has of plain events, noted while they are processed one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.stream.events import Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.events import Event
    from abers.stream.tasks.base import PredictionRows

__all__ = ["EventNotes"]


class EventNotes:
    """The columns of a journal entry, an event at a time; see `abers.stream.JournalEntry`."""

    def __init__(self) -> None:
        self.labels = bytearray()
        self.ids: list[str] = []
        self.times: list[int] = []
        self.models: list[int] = []
        self.keys: list[int] = []
        self.scores: list[float] = []
        self.values: list[float] = []
        self.predictions: list[float] = []
        self.n_labels: list[int] = []

    def add(self, event: Event, model: int, key: int, given: Any) -> None:  # noqa: ANN401 - a score or a label
        """Note a valid event, before it is processed."""
        self.ids.append(event.id)
        self.times.append(event.time)
        self.models.append(model)
        if type(event) is Observation:
            self.labels.append(0)
            self.keys.append(key)
            self.scores += given
        else:
            self.labels.append(1)
            self.values.append(given)

    def predicted(self, row: Sequence[float], n_labels: int) -> None:
        """Note a prediction."""
        self.predictions += row
        self.n_labels.append(n_labels)

    def predicted_rows(self, issued: PredictionRows) -> None:
        """Note the predictions of a batch."""
        for row, n_labels in zip(issued.rows.tolist(), issued.n_labels.tolist(), strict=True):
            self.predicted(row, n_labels)
