"""The record of an alarm, for a topic, a webhook and the summary of a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from abers.stream import Alarm

__all__ = ["AlarmRecord"]


class AlarmRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1):
    """An alarm; there is one for each incident.

    Parameters
    ----------
    model, view, test, episode, time
        Model, view ("raw" scores or "calibrated" predictions) and test, the number of the
        incident, and the event time, in milliseconds, of the observation that triggered the alarm.
    log_wealth, log_threshold
        Natural logarithms of the evidence, and of its threshold; None if infinite.
    message
        What happened, since when, by how much, and how often a false alarm is expected.
    fault, since, labels, outcome, promised, came
        What the predictions are, since when, and the labels since then; see `abers.stream.Alarm`.
    segment
        Of the model, if it has any.
    topic, partition, offset
        Of the record that triggered it, where there are topics.

    Examples
    --------
    >>> from abers.stream import Alarm
    >>> of = ("fraud", "", "raw", "change-tolerance")
    >>> alarm = Alarm(*of, 1, 1_700_000_000_000, math.inf, 13.8, "It changed.")
    >>> AlarmRecord.of(alarm).log_wealth
    """

    model: str
    view: str
    test: str
    episode: int
    time: int
    log_wealth: float | None
    log_threshold: float
    message: str
    fault: str = ""
    since: int | None = None
    labels: int = 0
    outcome: str = ""
    promised: float | None = None
    came: float | None = None
    segment: str = ""
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    @classmethod
    def of(
        cls,
        alarm: Alarm,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> Self:
        """Return the record of an alarm, triggered by a record of a topic, if there are any."""
        fields = msgspec.structs.asdict(alarm)
        if not math.isfinite(alarm.log_wealth):
            fields["log_wealth"] = None
        return cls(**fields, topic=topic, partition=partition, offset=offset)
