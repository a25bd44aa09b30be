"""Verdicts in numbers and in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from abers.backends import core
from abers.monitoring import ForecastGroups, Verdict, VerdictSequence
from abers.monitoring.verdict import WORDS, Words, period

START, UNTIL = 1_364_792_400_000, 1_370_044_800_000  # 2013-04-01 05:00, 2013-06-01
VERDICT = Verdict(
    status="too high",
    view="raw",
    words=WORDS["raw"],
    where="",
    since=START,
    start=START,
    until=UNTIL,
    confirmed=UNTIL,
    labels=14_032,
    came=1.0,
    counted=14_032,
    observed=1_234,
    expected=1_802.3,
    margin=112.0,
    tolerance=1.25,
    established=None,
)
SHARES = "promised 12.8 %, came 8.79 %"
IN_LABELS = "in 14,032 labels until 2013-06-01 00:00:00 UTC"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            (
                f"The raw scores are too high, since 2013-04-01 05:00:00 UTC: {SHARES}: 4.1 "
                f"points too high (range 3.2 to 4.9), {IN_LABELS}."
            ),
        ),
        (
            {"where": "for p ≥ 0.3", "counted": 7_000, "came": 0.987},
            (
                "The raw scores are too high for p ≥ 0.3, since 2013-04-01 05:00:00 UTC: promised "
                "25.7 %, came 17.6 %: 8.1 points too high (range 6.5 to 9.8), in 7,000 of 14,032 "
                "labels until 2013-06-01 00:00:00 UTC. 98.7 % of the labels came in time."
            ),
        ),
        (
            {"status": "too low", "since": 0, "observed": 2_400, "confirmed": UNTIL + 3_600_000},
            (
                "The raw scores are too low, since event time 0: promised 12.8 %, came 17.1 %: 4.3 "
                "points too low (range 3.4 to 5.1), in 14,032 labels from 2013-04-01 05:00:00 UTC "
                "until 2013-06-01 00:00:00 UTC. Still so on 2013-06-01 01:00:00 UTC."
            ),
        ),
        (
            {"status": "trustworthy", "observed": 1_810, "established": 1.15},
            (
                "The raw scores are right within the tolerance, since 2013-04-01 05:00:00 UTC: "
                "promised 12.8 %, came 12.9 %: range −0.8 to +0.9 points, "
                f"{IN_LABELS}. Also within 1.15 times the odds."
            ),
        ),
        (
            {"status": "no miscalibration found", "observed": 1_752},
            (
                "No fault of the raw scores beyond the tolerance found: promised 12.8 %, came "
                f"12.5 %: range −1.2 to +0.5 points, {IN_LABELS}. Up to 1.2 points too high is "
                "possible."
            ),
        ),
        (
            {"status": "no miscalibration found", "expected": 0.0, "observed": 3},
            (
                "No fault of the raw scores beyond the tolerance found: promised 0 %, came "
                f"0.0214 %: range +0.00 to +0.82 points, {IN_LABELS}. Up to 0.82 points too low is "
                "possible."
            ),
        ),
        (
            {"status": "no miscalibration found", "counted": 0, "labels": 0, "observed": 0},
            "No fault of the raw scores found: no label is counted yet.",
        ),
    ],
)
def test_sentences(changes: dict[str, Any], sentence: str) -> None:
    """A verdict is a sentence with sizes, rounded to what is known and to the cautious side."""
    assert VERDICT._replace(**changes).sentence == sentence


def test_sizes() -> None:
    """Ratio and difference have the margin on both sides, within what is possible."""
    assert VERDICT.ratio == pytest.approx([n / 1_802.3 for n in (1_234, 1_122, 1_346)])
    differences = [(n - 1_802.3) / 14_032 for n in (1_234, 1_122, 1_346)]
    assert VERDICT.difference == pytest.approx(differences)
    few = VERDICT._replace(counted=100, observed=40, expected=50.0)
    assert few.ratio == pytest.approx((0.8, 0.0, 2.0))
    assert all(math.isnan(one) for one in few._replace(expected=0.0).ratio)
    assert all(math.isnan(one) for one in few._replace(counted=0).difference)


@pytest.mark.parametrize(
    ("status", "outside"),
    [("too low", True), ("over-confident", True), ("trustworthy", False)],
)
def test_outside(status: str, *, outside: bool) -> None:
    """Only miscalibration beyond the tolerance is outside."""
    assert VERDICT._replace(status=status).outside is outside


def test_words_of_intervals() -> None:
    """Intervals that cover too little are too narrow, by so many points."""
    words = Words(
        "central 90 % intervals",
        *("labels inside", "too narrow", "too wide", "points too few", "points too many"),
    )
    narrow = VERDICT._replace(words=words, observed=12_000, expected=12_628.8)
    assert narrow.sentence.startswith(
        "The central 90 % intervals are too narrow, since 2013-04-01 05:00:00 UTC: promised 90 %, "
        "came 85.5 % (labels inside): 4.5 points too few (range 3.6 to 5.3)"
    )


def test_numbers_of_a_verdict() -> None:
    """A verdict has the sums of the group that decides, its margin, and the share that came."""
    p, y = np.tile([0.25, 0.25, 0.75, 0.75], 4_000), np.tile([0.0, 1.0, 0.0, 1.0], 4_000)
    sequence = VerdictSequence("calibrated", 1.25)
    n = 0
    while (verdict := sequence.held) is None:
        part, n = slice(n, sequence.next), sequence.next
        times = np.arange(part.start, part.stop)
        sequence.update(p[part], y[part], times + 5, np.full(len(times), 3))
    groups = ForecastGroups(1.25)
    groups.update(p[:n], y[:n])
    lower = groups.groups()[1]
    assert verdict == Verdict(
        status="too low",
        view="calibrated",
        words=WORDS["calibrated"],
        where="for p < 0.5",
        since=5,
        start=5,
        until=n + 4,
        confirmed=n + 4,
        labels=n,
        came=0.25,
        counted=int(lower.labels),
        observed=int(lower.observed),
        expected=lower.expected,
        margin=core.margin(lower.squares, 1, 0.025),
        tolerance=1.25,
        established=verdict.established,
    )


def test_a_bin_is_named() -> None:
    """A verdict about a bin names its range."""
    rng = np.random.default_rng(1)
    p = np.tile([0.125] + [0.25] * 15 + [0.75] * 24, 400)
    truth = np.where(p < 0.2, 0.5, p)
    sequence = VerdictSequence("raw", 1.25)
    sequence.update(p, (rng.random(len(p)) < truth).astype(float), np.arange(len(p)))
    verdict = sequence.held
    assert verdict is not None
    assert (verdict.status, verdict.where) == ("too low", "for p from 0.1 to 0.2")
    assert verdict.expected == verdict.counted / 8


def test_event_times() -> None:
    """Milliseconds since 1973 are dates; other event times are numbers."""
    assert period(1, 2) == "from event time 1 until event time 2"


def test_a_forecast_of_next_to_nothing_has_a_sentence() -> None:
    """Where so few ones are expected that their ratio overflows, only points are shown."""
    sequence = VerdictSequence("raw", 1.25)
    sequence.update(np.array([2e-311]), np.array([0.0]), np.array([0]))
    verdict = sequence.verdict()
    assert verdict.ratio.upper == math.inf
    assert "times" not in verdict.sentence
    assert "points" in verdict.sentence
