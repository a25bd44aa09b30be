"""What goes through a replay: observations in, predictions out.

Governing rule: a prediction is a wire record of schema version 1, whose fields
and their order stand here and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Observation", "Prediction", "Scorer", "Sink", "Source"]


class Observation(NamedTuple):
    """One record of a historical stream, which knows its label already.

    Parameters
    ----------
    position
        Its line or row in the source, for messages.
    id, time
        What the source calls it, and its event time.
    label
        0 or 1; nothing may look at it before it is released.
    x
        What the scorer scores: the features, or the score itself where it came along.
    """

    position: int
    id: str
    time: float
    label: int
    x: Any


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction on the wire, encoded in this order.

    Parameters
    ----------
    v
        Version of the schema.
    id, time, score
        Those of the observation; the score is the one given at prediction time.
    model
        Key of the calibrator that answered.
    p0, p1, p
        The Venn-Abers interval and its log-loss merge.
    n
        Number of labels the calibrator held when it answered.
    """

    v: int = 1
    id: str
    time: float
    model: str = "default"
    score: float
    p0: float
    p1: float
    p: float
    n: int


class Source(Protocol):
    """A historical stream, read once from its beginning."""

    name: str

    def __iter__(self) -> Iterator[Observation]:
        """Give the observations in their order, or raise a RecordError."""
        ...

    def where(self, position: int) -> str:
        """Say in words where an observation stands, for messages."""
        ...

    def fraction(self) -> float | None:
        """Say how much has been read, from 0 to 1, or None if that cannot be known."""
        ...


class Scorer(Protocol):
    """What gives an observation its score, once, when it is predicted."""

    probabilities: bool
    """Whether the scores are declared probabilities of label 1."""

    def score(self, observation: Observation) -> float:
        """Score one observation, whose label is not yet known."""
        ...

    def learn(self, observation: Observation) -> None:
        """Learn one observation, whose label has arrived."""
        ...


class Sink(Protocol):
    """Where predictions go."""

    def write(self, prediction: Prediction) -> None:
        """Take one prediction."""
        ...
