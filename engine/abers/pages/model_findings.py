"""What the pages of a model are made of: its answers, alarms, methods and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from abers.monitoring import MultiClassMonitor, RegressionMonitor, formats
from abers.monitoring.formats import is_date

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.arrays import Floats
    from abers.monitoring import Expert, TaskMonitor
    from abers.monitoring.answers import Answers
    from abers.pages.blocks import State, Tone

__all__ = [
    "QUESTIONS",
    "ExpertsOverTime",
    "LatestOutcomes",
    "ModelDetails",
    "ModelFindings",
    "RaisedAlarm",
    "ReferenceShares",
    "Silence",
    "city",
    "state_of_status",
    "tone",
]

QUESTIONS = {
    "model": ("Model", "Is my model telling the truth?"),
    "calibrated": ("Calibrated", "Is what is served right?"),
    "pays": ("Pays", "Does calibration pay?"),
}
"""Name and question of each answer."""


class RaisedAlarm(Protocol):
    """An alarm, such as `abers.stream.Alarm`."""

    @property
    def view(self) -> str:
        """Return "raw" or "calibrated"."""

    @property
    def time(self) -> int:
        """Return the event time at which it was raised."""

    @property
    def fault(self) -> str:
        """Return what the view is, such as "too high"."""

    @property
    def since(self) -> int | None:
        """Return the event time at which the fault probably began."""

    @property
    def labels(self) -> int:
        """Return the number of labels since then."""

    @property
    def outcome(self) -> str:
        """Return what is counted, such as "labels 1"."""

    @property
    def promised(self) -> float | None:
        """Return the sum of the probabilities of these labels."""

    @property
    def came(self) -> float | None:
        """Return how many of them came."""


class ExpertsOverTime(Protocol):
    """Methods at a time, such as `abers_connectors.dashboard.observer.ExpertsAt`."""

    @property
    def labels(self) -> int:
        """Return the number of labels so far."""

    @property
    def time(self) -> int:
        """Return the largest event time so far."""

    @property
    def experts(self) -> Mapping[str, Expert]:
        """Return weight and loss of each."""


class LatestOutcomes(NamedTuple):
    """The latest labels that are numbers, with their predictions.

    Attributes
    ----------
    rows
        Array with a row for each: label, score, quantiles.
    levels
        Levels of the quantiles.
    unit
        Unit of the label, such as " °C".
    """

    rows: Floats
    levels: Sequence[float]
    unit: str = ""


class Silence(NamedTuple):
    """A time without labels.

    Attributes
    ----------
    milliseconds
        How long no label came.
    waiting
        Number of predictions that wait for their labels.
    oldest
        Event time of the oldest of these; or None.
    since
        Event time of the answers.
    """

    milliseconds: int
    waiting: int
    oldest: int | None
    since: int


class ReferenceShares(NamedTuple):
    """What was promised and came in a period that a reader compares with.

    Attributes
    ----------
    start, end
        Event times of the period, without its end.
    labels
        Number of labels of its predictions.
    promised, came
        Shares of these by view: of probabilities, of first choices, or of the main intervals.
    """

    start: int
    end: int
    labels: int
    promised: Mapping[str, float]
    came: Mapping[str, float]


class ModelDetails(NamedTuple):
    """What the blocks of a model show next to its monitor; each part may be missing.

    Attributes
    ----------
    alarms
        The last alarms, each behind the number of labels so far.
    experts_over_time
        Weights of the methods over time.
    outcomes
        The latest labels that are numbers, with their predictions.
    records
        What was read and how it was predicted, as names and values.
    where
        File in which a reader finds the predictions.
    silence
        A time without labels that goes on.
    reference
        A period that a reader compares with.
    among_labelled
        Whether `calibrator.label_rates` turns probabilities into those of observations with labels.
    """

    alarms: Sequence[tuple[int, RaisedAlarm]] = ()
    experts_over_time: Sequence[ExpertsOverTime] = ()
    outcomes: LatestOutcomes | None = None
    records: Sequence[tuple[str, str]] = ()
    where: str = "the file of predictions"
    silence: Silence | None = None
    reference: ReferenceShares | None = None
    among_labelled: bool = False


class ModelFindings(NamedTuple):
    """All that the pages of a model show.

    Attributes
    ----------
    monitor, answers, record
        Of the model; the record is that of the answers.
    zone
        IANA zone of the dates.
    prefix
        What the keys of all blocks begin with.
    details
        What else is shown.
    """

    monitor: TaskMonitor
    answers: Answers
    record: Mapping[str, Any]
    zone: str
    prefix: str
    details: ModelDetails

    @property
    def of_numbers(self) -> bool:
        """Whether labels are numbers."""
        return isinstance(self.monitor, RegressionMonitor)

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return isinstance(self.monitor, MultiClassMonitor)

    @property
    def came(self) -> str:
        """What labels did that a promise counts."""
        if self.of_numbers:
            return "inside"
        return "right" if self.several else "came"

    @property
    def served(self) -> str:
        """Name of the view that is served."""
        now = self.answers.now
        return "calibrated" if now is None else [*now.views][-1]

    @property
    def faults(self) -> tuple[str, str]:
        """What a promise is if less came, and if more came."""
        return ("too narrow", "too wide") if self.of_numbers else ("too high", "too low")

    @property
    def tolerance(self) -> float:
        """Ratio of odds within which promises are right."""
        return self.answers.tolerance

    def key(self, name: str) -> str:
        """Return the key of a block."""
        return f"{self.prefix}{name}"

    def latest(self) -> str:
        """Return which labels the answers are about."""
        now = self.answers.now
        if now is None:
            return ""
        dates = formats.period(now.start, now.until, self.zone)
        named = f", {city(self.zone)}" if is_date(now.until) else ""
        return f"Latest {formats.count(now.labels)} labels, {dates}{named}."


def city(zone: str) -> str:
    """Return the name of a zone in a sentence.

    Examples
    --------
    >>> city("America/New_York"), city("UTC")
    ('New York', 'UTC')
    """
    return zone.rpartition("/")[-1].replace("_", " ")


def tone(view: str) -> Tone:
    """Return the colour of a view."""
    return "raw" if view == "raw" else "calibrated"


def state_of_status(status: str) -> State:
    """Return the state that gives a row its sign.

    Examples
    --------
    >>> [state_of_status(one) for one in ("right", "too wide", "leans low", "undecided")]
    ['yes', 'no', 'partly', 'undecided']
    """
    if status == "right":
        return "yes"
    if status.startswith("too"):
        return "no"
    return "partly" if status.startswith("leans") else "undecided"
