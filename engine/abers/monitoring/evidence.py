"""Evidence of sequential tests, and the incidents during which they were active."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from abers.monitoring.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TESTS", "Evidence", "Incident", "evidence_numbers", "strongest"]

_LN10 = math.log(10.0)
_ACTIVE = Measure("alarm_active", "", "boolean", "Whether an incident is open.")
_EVIDENCE_MEASURE = Measure(
    "evidence_log10", "", "powers of ten", "Evidence against the predictions."
)
_THRESHOLD = Measure(
    "evidence_threshold_log10", "", "powers of ten", "The evidence at which a test is active."
)
_STATUSES: tuple[Literal["active", "triggered", "quiet"], ...] = ("active", "triggered", "quiet")
TESTS = (_ACTIVE, _EVIDENCE_MEASURE, _THRESHOLD)
"""Numbers of each test, with its view and its name as labels."""


class Incident(NamedTuple):
    """A time during which a test was active.

    Attributes
    ----------
    number
        1 for the first incident of the test.
    first, last
        Event times of the first and the last observation at which the evidence reached its
        threshold.
    log_wealth
        Natural logarithm of the evidence at the last of them.
    """

    number: int
    first: int
    last: int
    log_wealth: float


class Evidence(NamedTuple):
    """Evidence of a test.

    Attributes
    ----------
    name
        Name of the test, unique among those of a view.
    view
        What is tested: the "raw" scores, or the "calibrated" predictions, which are served.
    log_wealth
        Natural logarithm of the evidence now; infinite after an infinite factor.
    log_threshold
        Natural logarithm of the evidence at which the test becomes active.
    active
        Whether an incident is open.
    status
        "quiet" before the first incident, "active" during an incident, else "triggered". A test
        since the beginning stays triggered: it says that something was wrong, not that something
        is wrong now. It may be restarted, and is not active then.
    incidents
        Number of incidents.
    last
        Last incident; None before the first.
    guarantee
        What the test guarantees, in one sentence.
    skipped
        Number of observations left out because no label came in time.
    """

    name: str
    view: str
    log_wealth: float
    log_threshold: float
    active: bool
    status: Literal["quiet", "active", "triggered"]
    incidents: int
    last: Incident | None
    guarantee: str
    skipped: int


def strongest(many: Sequence[Sequence[Evidence]]) -> tuple[Evidence, ...]:
    """Combine the tests of different calibrators.

    Parameters
    ----------
    many
        Tests of each calibrator, of the same views and names in the same order; or none.

    Returns
    -------
    tuple
        Of each name the largest evidence, whether any test is active, the number of all incidents,
        and the most recent incident. Each guarantee holds for each calibrator by itself.
    """
    some = [tests for tests in many if tests]
    return tuple(map(_combined, zip(*some, strict=True))) if some else ()


def _combined(tests: Sequence[Evidence]) -> Evidence:
    if len(tests) == 1:
        return tests[0]
    most = max(tests, key=lambda one: one.log_wealth)
    incidents = [one.last for one in tests if one.last is not None]
    found = {one.status for one in tests}
    return most._replace(
        active=any(one.active for one in tests),
        status=next(one for one in _STATUSES if one in found),
        incidents=sum(one.incidents for one in tests),
        last=max(incidents, key=lambda one: one.last) if incidents else None,
        guarantee=f"Of each of {len(tests)} calibrators by itself: {most.guarantee}",
        skipped=sum(one.skipped for one in tests),
    )


def evidence_numbers(tests: Sequence[Evidence]) -> list[Number]:
    """Return the numbers of `TESTS` for each test, for the summary of a monitor."""
    return [
        Number(measure, value, one.view, labels={"test": one.name})
        for one in tests
        for measure, value in (
            (_ACTIVE, one.active),
            (_EVIDENCE_MEASURE, one.log_wealth / _LN10),
            (_THRESHOLD, one.log_threshold / _LN10),
        )
    ]
