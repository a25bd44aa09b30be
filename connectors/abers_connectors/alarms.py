"""Alarms as they are written: to a topic, to a web hook, and in the summary of a run.

Governing rule: an alarm says by itself what rang, when, how sure that is, and which record brought
it about.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from abers.stream import Alarm

__all__ = ["AlarmRecord"]


class AlarmRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1):
    """An alarm; there is one for each episode.

    Parameters
    ----------
    model, test, number, time
        What rang: the test of a model, its how manieth episode, and the event time of the
        observation at which it rang, in milliseconds.
    log_wealth, line
        Natural logarithms of the evidence, and of that at which it rings; None if it is infinite.
    sentence
        What happened, and how often it would without a reason.
    segment
        Of the model, if it has any.
    topic, partition, offset
        Of the record that brought it about, where there are topics.

    Examples
    --------
    >>> from abers.stream import Alarm
    >>> alarm = Alarm("fraud", "", "change", 1, 1_700_000_000_000, math.inf, 13.8, "It changed.")
    >>> AlarmRecord.of(alarm).log_wealth
    """

    model: str
    test: str
    number: int
    time: int
    log_wealth: float | None
    line: float
    sentence: str
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
        """Write an alarm, brought about by a record."""
        return cls(
            alarm.model,
            alarm.test,
            alarm.number,
            alarm.time,
            alarm.log_wealth if math.isfinite(alarm.log_wealth) else None,
            alarm.line,
            alarm.sentence,
            alarm.segment,
            topic,
            partition,
            offset,
        )
