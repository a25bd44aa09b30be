"""What kinds of prediction the processor makes, and what it asks of a calibrator.

Governing rule: the processor moves rows of floats and knows nothing of their
meaning; a task says how many floats a score and an answer take, checks what
comes in, and words what goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from abers._saved import require
from abers.monitoring.evidence import Bettor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Struct
    from numpy.typing import NDArray

    from abers.monitoring import Evidence
    from abers.monitoring.settling import Opened
    from abers.monitoring.settling import Steps as BetSteps
    from abers.stream.columns import Column, Events, Rows
    from abers.stream.facts import Facts

    Floats = NDArray[np.float64]

__all__ = ["Answers", "Calibrator", "KeyBets", "Monitor", "Settled", "Steps", "Task", "alike"]

Restored = TypeVar("Restored")
_OPTIONS = (
    *("window", "max_age", "half_life", "folds", "classes", "max_classes", "refit"),
    *("thresholds", "support"),
)


class Steps(NamedTuple):
    """Interleaved steps of one calibrator, a row a step.

    Attributes
    ----------
    kinds
        0 predicts, 1 learns.
    scores
        Array of shape (n, width of a score).
    values
        What is learned, as the task's `value` gave it; 0 where something is predicted.
    times
        Event times of the observations, in milliseconds.
    """

    kinds: NDArray[np.uint8]
    scores: Floats
    values: Floats
    times: NDArray[np.int64]


class Answers(NamedTuple):
    """What is said, a row a step or a prediction.

    Attributes
    ----------
    rows
        Array of shape (n, width of an answer), or (n, width of score and answer).
    held
        How many labels the calibrator held.
    bands
        Predictive distributions, as objects; None but in a task that has them.
    """

    rows: Floats
    held: NDArray[np.int64]
    bands: Column | None = None


class Settled(NamedTuple):
    """Predictions whose labels came, a row each.

    Attributes
    ----------
    events
        Observations or labels: whichever came last, both have the id and the model.
    segments
        Segments of the observations, as objects.
    told, times
        Event times of the labels, and of the observations.
    rows
        Array of shape (n, width of score and answer): the predictions as they were issued; those
        of predictive distributions are followed by the columns of `waiting.judged`.
    values
        The labels, as the task's `value` gave them.
    """

    events: Events
    segments: Column
    told: NDArray[np.int64]
    times: NDArray[np.int64]
    rows: Floats
    values: Floats


class Calibrator(Protocol):
    """What the processor asks of a calibrator, whatever it calibrates."""

    def run(self, steps: Steps) -> Answers:
        """Predict and learn in order; what is said where something is learned means nothing."""
        ...

    def __len__(self) -> int:
        """Count the labels that are held."""
        ...

    def to_bytes(self) -> bytes:
        """Give the state in canonical form, which `Task.calibrator` takes."""
        ...


class KeyBets(Bettor, Protocol):
    """What bets against the predictions of one calibrator."""

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Numbers of the observations that are not done with, or wait for such, ascending."""
        ...

    @property
    def first(self) -> int:
        """The first of these; the largest number there is if none waits."""
        ...

    def run(self, steps: BetSteps, /) -> list[Opened]:
        """Bet and settle in order; the episodes that open."""
        ...

    def state(self) -> tuple[Any, ...] | None:
        """Give what is remembered, in numbers, lists and bytes; None of nothing."""
        ...

    def load(self, state: Sequence[Any] | None, /) -> None:
        """Remember what gave this state."""
        ...


class Monitor(Protocol):
    """What judges predictions by their labels."""

    bets: Sequence[Bettor]

    @property
    def tests(self) -> Sequence[Evidence]:
        """What the tests by betting have come to; none if there are none."""
        ...

    @property
    def mean_width(self) -> float:
        """Mean width of the intervals; NaN before the first label."""
        ...

    def views(self) -> dict[str, dict[str, float]]:
        """Give mean scores by name: of the view "calibrated", and of "raw" if that is judged."""
        ...

    @classmethod
    def total(cls, many: Sequence[Self], /) -> Self:
        """Add up monitors of different calibrators, at least one."""
        ...

    def update(self, rows: Floats, labels: Floats, /) -> None:
        """Judge predictions whose labels have come, in their order; rows are as in `Settled`."""
        ...

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered, in numbers, lists and tuples."""
        ...


class Task(Protocol):
    """One kind of prediction.

    Attributes
    ----------
    score_width, answer_width
        How many floats a score and an answer take.
    distributions
        Whether an answer is a predictive distribution too.
    """

    score_width: int
    answer_width: int
    distributions: bool

    @property
    def prediction(self) -> type[Struct]:
        """The type of its predictions."""
        ...

    @property
    def outcome(self) -> type[Struct]:
        """The type of its outcomes."""
        ...

    def score(self, given: object, id_: str) -> float | Sequence[float]:
        """Check the score of an observation with this id, and make a row, or raise a ScoreError."""
        ...

    def value(self, given: object) -> float:
        """Check a label, and make a number of it, or raise a LabelError."""
        ...

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Do what `score` and `value` do for all of a batch; None if anything is unusual.

        Labels have scores 0, observations have the value 0.
        """
        ...

    def label(self, value: float) -> Any:  # noqa: ANN401 - whatever the task's labels are
        """Undo `value`."""
        ...

    def lesson(self, value: float, id_: str) -> tuple[Any, ...]:
        """Give what a learner is told of a label, after the features: the label, and more."""
        ...

    def are_scores(self, rows: Floats) -> bool:
        """Tell whether rows can be what `score` gave."""
        ...

    def are_answers(self, rows: Floats) -> bool:
        """Tell whether rows can be what a calibrator answered."""
        ...

    def are_values(self, values: Floats) -> bool:
        """Tell whether numbers can be what `value` gave."""
        ...

    def calibrator(self, state: bytes | None = None) -> Calibrator:
        """Make an empty calibrator, or the one that gave these bytes; a ValueError if none did."""
        ...

    def monitor(self, state: Sequence[Any] | None = None) -> Monitor:
        """Make a monitor that has seen nothing, or the one that gave this state.

        A ValueError says that none did.
        """
        ...

    def facts(self, rows: Floats, values: Floats) -> Facts:
        """Tell what labels say of predictions; rows and values are as in `Settled`."""
        ...

    def bets(self) -> KeyBets:
        """Make bets against predictions."""
        ...

    def stakes(self, said: Floats, settled: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Give what the bets are told.

        Parameters
        ----------
        said
            Predictions as they are issued, a row each: score and answer.
        settled, values
            Predictions whose labels came, and the labels, as in `Settled`.

        Returns
        -------
        staked, learned
            Arrays with a row for each prediction, and for each label.
        """
        ...

    def predictions(self, events: Events, answers: Answers) -> Rows[Any]:
        """Word predictions of observations, a row each: score and answer."""
        ...

    def outcomes(self, settled: Settled) -> Rows[Any]:
        """Word outcomes."""
        ...


def alike(restored: Restored, made: object) -> Restored:
    """Give a calibrator that was restored, if it has the options of one that was made."""
    for name in _OPTIONS:
        require(_option(restored, name) == _option(made, name), f"{name} of a calibrator")
    return restored


def _option(calibrator: object, name: str) -> Any:  # noqa: ANN401 - whatever it is
    value = getattr(calibrator, name, None)
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else value
