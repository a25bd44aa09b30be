"""What labels said of some predictions.

Governing rule: everything stands here as numbers, so a figure shows nothing that the JSON does not
have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from abers_connectors.summary import Means

__all__ = ["NOTHING", "Corp", "Findings", "Moment", "Outcomes", "Raised", "Rows", "Tested"]

Rows: TypeAlias = list[dict[str, float]]


class Moment(msgspec.Struct, frozen=True):
    """Mean scores of the predictions before a label.

    Parameters
    ----------
    labels
        How many labels had come.
    over
        How many predictions before that are meant.
    raw, calibrated, mean_width
        As of a `Summary`.
    """

    labels: int
    over: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float


class Outcomes(msgspec.Struct, frozen=True):
    """Predictions of numbers, and their labels, a row each.

    Parameters
    ----------
    first
        How many labels had come with the first of them.
    levels
        Of the quantiles.
    quantiles
        A list a row; null in JSON where one is infinite.
    scores, labels
        One a row.
    """

    first: int
    levels: tuple[float, ...]
    quantiles: list[list[float]]
    scores: list[float]
    labels: list[float]


class Corp(msgspec.Struct, frozen=True):
    """A reliability diagram.

    Parameters
    ----------
    blocks
        Lowest and highest forecast, share of labels 1, and labels of each block.
    band
        At some forecasts, between what the shares lie in nine of ten cases if forecasts are right.
    brier
        The parts of the Brier score: score, miscalibration, discrimination, uncertainty.
    """

    blocks: Rows
    band: Rows
    brier: dict[str, float]


class Tested(msgspec.Struct, frozen=True):
    """What a test has come to; see `abers.monitoring.Evidence`.

    Parameters
    ----------
    name, log_wealth, line, ringing, episodes, guarantee, skipped
        As there.
    since
        Event time at which the last episode opened; None before the first.
    """

    name: str
    log_wealth: float
    line: float
    ringing: bool
    episodes: int
    since: int | None
    guarantee: str
    skipped: int


class Raised(msgspec.Struct, frozen=True):
    """An alarm, and how many labels had come.

    Parameters
    ----------
    labels
        How many; a batch may have brought some more.
    number, time, log_wealth, sentence
        As of `abers.stream.Alarm`.
    """

    labels: int
    number: int
    time: int
    log_wealth: float
    sentence: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What labels said of some predictions.

    Parameters
    ----------
    labels
        How many came.
    raw, calibrated, mean_width
        As of a `Summary`.
    over_time
        Scores in the course of the stream, each over a tenth of it.
    reliability
        Of a binary task, by view: forecast, share and labels of each of ten bins.
    diagrams
        Of a binary task, by view: the CORP reliability diagram.
    tests
        What each test that bets against the predictions has come to.
    evidence
        Of a change, over time: labels so far, and natural logarithm of the evidence.
    alarms
        The last ones.
    intervals
        Of a regression: level, coverage and width of each central interval.
    pit
        Of a regression with whole distributions: labels by bin of the CDF at them.
    outcomes
        Of a regression: the last ones.
    """

    labels: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    over_time: list[Moment]
    reliability: dict[str, Rows] | None = None
    diagrams: dict[str, Corp] | None = None
    tests: list[Tested] = []
    evidence: Rows = []
    alarms: list[Raised] = []
    intervals: Rows | None = None
    pit: list[float] | None = None
    outcomes: Outcomes | None = None


NOTHING = Findings(labels=0, raw=None, calibrated=None, mean_width=None, over_time=[])
"""Of no prediction."""
