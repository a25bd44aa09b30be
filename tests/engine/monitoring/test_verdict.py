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
COUNTS = "1,234 labels 1 came where 1,802 were expected"
IN_LABELS = "in 14,032 labels until 2013-06-01 00:00:00 UTC"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            (
                f"The raw scores are too high, since 2013-04-01 05:00:00 UTC: {COUNTS} (0.68 "
                f"times, at most 0.75; 4.1 points too high, at least 3.2), {IN_LABELS}."
            ),
        ),
        (
            {"where": "among higher scores (0.3 and above)", "counted": 7_000, "came": 0.987},
            (
                "The raw scores are too high among higher scores (0.3 and above), since 2013-04-01 "
                f"05:00:00 UTC: {COUNTS} (0.68 times, at most 0.75; 8.1 points too high, at least "
                "6.5), in 7,000 of 14,032 labels until 2013-06-01 00:00:00 UTC. Of the labels "
                "98.7% came in time."
            ),
        ),
        (
            {"status": "too low", "since": 0, "observed": 2_400, "confirmed": UNTIL + 3_600_000},
            (
                "The raw scores are too low, since event time 0: 2,400 labels 1 came where 1,802 "
                "were expected (1.33 times, at least 1.26; 4.3 points too low, at least 3.4), in "
                "14,032 labels from 2013-04-01 05:00:00 UTC until 2013-06-01 00:00:00 UTC. Last "
                "confirmed: 2013-06-01 01:00:00 UTC."
            ),
        ),
        (
            {"status": "trustworthy", "observed": 1_810, "established": 1.15},
            (
                "The raw scores are trustworthy within a factor of 1.25 in odds, since 2013-04-01 "
                "05:00:00 UTC: 1,810 labels 1 came where 1,802 were expected (1.00 times, 0.94 to "
                f"1.07 not excluded), {IN_LABELS}. A factor of 1.15 is established."
            ),
        ),
        (
            {"status": "no miscalibration found", "observed": 1_752},
            (
                "No miscalibration of the raw scores beyond a factor of 1.25 in odds found so far: "
                "1,752 labels 1 came where 1,802 were expected (0.97 times, 0.90 to 1.04 not "
                f"excluded), {IN_LABELS}. Up to 1.2 points too high on average (0.90 times) are "
                "not excluded."
            ),
        ),
        (
            {"status": "no miscalibration found", "expected": 0.0, "observed": 3},
            (
                "No miscalibration of the raw scores beyond a factor of 1.25 in odds found so far: "
                "3 labels 1 came where 0 were expected (0.02 points too low), in 14,032 labels "
                "until 2013-06-01 00:00:00 UTC. Up to 0.82 points too low on average are not "
                "excluded."
            ),
        ),
        (
            {"status": "no miscalibration found", "counted": 0, "labels": 0, "observed": 0},
            "No miscalibration of the raw scores found so far: no label is counted yet.",
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
        "The central 90 % intervals are too narrow, since 2013-04-01 05:00:00 UTC: 12,000 labels "
        "inside came where 12,629 were expected (0.950 times, at most 0.960; 4.5 points too few, "
        "at least 3.6)"
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
        where="among lower scores (below 0.5)",
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
    assert (verdict.status, verdict.where) == ("too low", "for scores from 0.1 to 0.2")
    assert verdict.expected == verdict.counted / 8


def test_event_times() -> None:
    """Milliseconds since 1973 are dates; other event times are numbers."""
    assert period(1, 2) == "from event time 1 until event time 2"


def test_a_forecast_of_next_to_nothing_has_a_sentence() -> None:
    """Where so few labels 1 are expected that their ratio overflows, only points are shown."""
    sequence = VerdictSequence("raw", 1.25)
    sequence.update(np.array([2e-311]), np.array([0.0]), np.array([0]))
    verdict = sequence.verdict()
    assert verdict.ratio.upper == math.inf
    assert "times" not in verdict.sentence
    assert "points" in verdict.sentence
