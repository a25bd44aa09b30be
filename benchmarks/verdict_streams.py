"""Streams with known true probabilities, on which verdicts are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from abers.backends import core
from abers.monitoring import CalibrationEProcess, VerdictSequence
from abers.monitoring.e_processes import LEARNS, PREDICTS, EProcessSteps
from abers.monitoring.forecast_groups import (
    NOT_FOUND,
    OVER_CONFIDENT,
    STATUSES,
    TOO_HIGH,
    TOO_LOW,
    TRUSTWORTHY,
    UNDER_CONFIDENT,
    ForecastGroups,
)
from benchmarks import verdict_reference as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abers.monitoring.forecast_groups import ForecastGroup

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Generator = np.random.Generator
    Draw = Callable[[Generator, int], "list[View]"]
    Feed = Callable[["Recorded", Floats], None]

ALPHA, TOLERANCE = 0.05, 1.25
EXACT = 1e-9  # sums of as many rounded terms differ by less, a label


class View(NamedTuple):
    """Forecasts, their true probabilities, and the verdicts that are right after all of them."""

    p: Floats
    truth: Floats
    right: frozenset[str]
    alpha: float = ALPHA


class Case(NamedTuple):
    """A kind of stream."""

    name: str
    labels: int
    draw: Draw
    feed: Feed
    right: str  # the status that is right at the end, in words
    early: int | None = None  # where a test at one fixed time has a power of 99 %


class Result(NamedTuple):
    """What one stream showed."""

    right: bool
    right_early: bool
    wrong: bool  # at any time
    first: float  # number of labels when it was right first; infinite if it never was


class Recorded(VerdictSequence):
    """A verdict sequence that compares every finding with the true probabilities of its block."""

    def __init__(self, view: View) -> None:
        self.rows, self.seen, self.wrong, self.first = view, 0, False, np.inf
        self.early: int | None = None
        self.right_early = False
        super().__init__("raw", TOLERANCE, view.alpha)
        self._begin()

    def _begin(self) -> None:
        """Begin a block: its sums, and those with the true probabilities in place of labels."""
        self.counted, self.truth = ForecastGroups(TOLERANCE), ForecastGroups(TOLERANCE)

    def add(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> list[int]:
        """Add rows in parts that end at each evaluation, and compare what each finds."""
        del skipped
        at, n = 0, len(forecasts)
        while at < n:
            more, blocks = self.next - self.labels, self.blocks
            part = slice(at, at + more)
            super().add(forecasts[part], labels[part], times[part])
            self.counted.add(forecasts[part], labels[part])
            truth = self.rows.truth[self.seen : self.seen + min(more, n - at)]
            self.truth.add(forecasts[part], truth)
            self.seen += len(truth)
            if len(truth) == more:
                self._compare(blocks)
            if self.blocks != blocks:
                self._begin()
            at += more
        return []

    def restart(self, time: int, began: int | None = None) -> None:
        """Start another block."""
        super().restart(time, began)
        self._begin()

    def _compare(self, blocks: int) -> None:
        groups = np.array(self.counted.groups())
        status, group, _ = core.find_groups(groups, core.verdict_level(self.alpha, blocks, 1))
        if STATUSES[status] != NOT_FOUND:
            self.wrong |= not is_true(self.truth.groups(), STATUSES[status], group)
        right = self.brief()[0] in self.rows.right
        if right:
            self.first = min(self.first, self.seen)
        if self.early is not None and self.seen <= self.early:
            self.right_early = right


def is_true(groups: Sequence[ForecastGroup], status: str, group: int) -> bool:
    """Return whether a claim is true of groups with true probabilities as labels."""
    slack = [EXACT * one.labels for one in groups]
    high = [one.observed < one.least - room for one, room in zip(groups, slack, strict=True)]
    low = [one.observed > one.most + room for one, room in zip(groups, slack, strict=True)]
    inside = [
        not one.labels or one.least + room < one.observed < one.most - room
        for one, room in zip(groups, slack, strict=True)
    ]
    return {
        NOT_FOUND: True,
        TRUSTWORTHY: all(inside[:3]),
        TOO_HIGH: high[group] or (group == 0 and high[1] and high[2]),
        TOO_LOW: low[group] or (group == 0 and low[1] and low[2]),
        OVER_CONFIDENT: (high[2] and not high[1]) or (low[1] and not low[2]),
        UNDER_CONFIDENT: (low[2] and not low[1]) or (high[1] and not high[2]),
    }[status]


def simulate(case: Case, seed: Sequence[int]) -> Result:
    """Run one stream."""
    rng = np.random.default_rng(seed)
    results = []
    for view in case.draw(rng, case.labels):
        sequence = Recorded(view)
        sequence.early = case.early
        case.feed(sequence, (rng.random(len(view.p)) < view.truth).astype(np.float64))
        right = sequence.verdict().status in view.right
        results.append(Result(right, sequence.right_early, sequence.wrong, sequence.first))
    return Result(
        all(one.right for one in results),
        all(one.right_early for one in results),
        any(one.wrong for one in results),
        max(one.first for one in results),
    )


# True probabilities


def off(p: Floats, factor: float) -> Floats:
    """Return probabilities with the odds of p divided by a factor."""
    return np.asarray(p / (p + (1.0 - p) * factor))


def flatter(p: Floats, slope: float, at: float) -> Floats:
    """Return probabilities with log odds that are flatter than those of p, around some log odds."""
    return np.asarray(special.expit(at + (special.logit(p) - at) / slope))


# How labels come


def at_once(sequence: Recorded, labels: Floats) -> None:
    """Pass all labels in order."""
    sequence.update(sequence.rows.p, labels, np.arange(len(labels)))


def late(sequence: Recorded, labels: Floats) -> None:
    """Pass labels through the buffer: those of 1 after 50 more forecasts, those of 0 after 1,000.

    The delays are exponential with these means. Observations that come out are passed in batches.
    """
    n = len(labels)
    rng = np.random.default_rng(n)
    when = np.arange(n) + rng.exponential(np.where(labels == 1.0, 50.0, 1_000.0))
    moments = np.concatenate((np.arange(n), when))
    order = np.argsort(moments, kind="stable")
    kinds = np.repeat(np.array([PREDICTS, LEARNS], np.uint8), n)[order]
    numbers = np.tile(np.arange(n), 2)[order]
    values = np.concatenate((sequence.rows.p, labels))[order]
    rows = np.full((2 * n, 2), np.nan)
    predicts = kinds == PREDICTS
    rows[:, 0] = sequence.rows.p[numbers]
    rows[~predicts, 1] = values[~predicts]
    buffer = core.ReorderBuffer(2, 0)
    for start in range(0, 2 * n, 1_000):
        part = slice(start, start + 1_000)
        columns = (np.ascontiguousarray(one[part]) for one in (kinds, numbers, numbers))
        _, times, _, skipped, released = buffer.run(*columns, rows[part])
        if len(times):
            forecasts, labelled = np.ascontiguousarray(released.T)
            sequence.update(forecasts, labelled, times, skipped)


def restarted(sequence: Recorded, labels: Floats) -> None:
    """Restart the block every 500 labels if its sums are two standard deviations off."""
    for start in range(0, len(labels), 500):
        end = min(start + 500, len(labels))
        sequence.update(sequence.rows.p[start:end], labels[start:end], np.arange(start, end))
        whole = sequence.groups.groups()[0]
        if (whole.observed - whole.expected) ** 2 > 4.0 * whole.squares:
            sequence.restart(end)


def with_alarms(sequence: Recorded, labels: Floats) -> None:
    """Restart the block at each alarm: of the test for a change beyond the tolerance."""
    p, n = sequence.rows.p, len(labels)
    numbers = np.repeat(np.arange(n), 2)
    kinds = np.tile(np.array([PREDICTS, LEARNS], np.uint8), n)
    values = np.stack((p, labels), axis=1).reshape(-1, 1)
    opened = CalibrationEProcess(average_run_length=100_000.0, cooldown=2_000.0).run(
        EProcessSteps(kinds, numbers, numbers, values)
    )
    start = 0
    for row in [*(one.step // 2 + 1 for one in opened if one.test == "change-tolerance"), n]:
        sequence.update(p[start:row], labels[start:row], np.arange(start, row))
        if row < n:
            sequence.restart(row - 1)
        start = row


# Cases


def _one(a: float, b: float, true: Callable[[Floats], Floats], *right: str) -> Draw:
    def draw(rng: Generator, n: int) -> list[View]:
        p = rng.beta(a, b, n)
        return [View(p, true(p), frozenset(right))]

    return draw


def _constant(level: float, truth: float, *right: str) -> Draw:
    return lambda _, n: [View(np.full(n, level), np.full(n, truth), frozenset(right))]


def _changing(*parts: tuple[int, float], right: str) -> Draw:
    """Draw parts of a stream, each with a number of labels and a factor of the odds."""

    def draw(rng: Generator, n: int) -> list[View]:
        p = rng.beta(2, 5, n)
        factors = np.repeat([factor for _, factor in parts], [size for size, _ in parts])
        return [View(p, np.asarray(p / (p + (1.0 - p) * factors)), frozenset({right}))]

    return draw


def _classes(slope: float, right: str) -> Draw:
    """Draw forecasts of three classes: those of the top label, and of each class."""

    def draw(rng: Generator, n: int) -> list[View]:
        truth = rng.dirichlet([1.0, 1.0, 1.0], n)
        powers = np.maximum(truth, 1e-12) ** slope
        p = powers / powers.sum(axis=1, keepdims=True)
        top = np.arange(n), p.argmax(axis=1)
        views = [View(p[top], truth[top], frozenset({right}), ALPHA / 2)]
        every = frozenset({TRUSTWORTHY, NOT_FOUND, OVER_CONFIDENT, TOO_HIGH, TOO_LOW})
        if right == TRUSTWORTHY:
            every = frozenset({TRUSTWORTHY})
        columns = (np.ascontiguousarray(one) for one in (*p.T, *truth.T))
        classes = [*columns]
        for of_class, true in zip(classes[:3], classes[3:], strict=True):
            views.append(View(of_class, true, every, ALPHA / 6))
        return views

    return draw


def _one_class(odds: float) -> Draw:
    """Draw forecasts of three classes; those of the first have odds that are so much too high."""

    def draw(rng: Generator, n: int) -> list[View]:
        truth = rng.dirichlet([1.0, 1.0, 1.0], n)
        p = truth.copy()
        p[:, 0] = off(truth[:, 0], 1.0 / odds)
        p[:, 1:] *= ((1.0 - p[:, 0]) / (1.0 - truth[:, 0]))[:, np.newaxis]
        top = np.arange(n), p.argmax(axis=1)
        views = [View(p[top], truth[top], frozenset(STATUSES), ALPHA / 2)]
        for k, right in enumerate(([TOO_HIGH], STATUSES, STATUSES)):
            forecasts, true = (np.ascontiguousarray(one[:, k]) for one in (p, truth))
            views.append(View(forecasts, true, frozenset(right), ALPHA / 6))
        return views

    return draw


def _needed(
    p: Floats, truth: Floats, claims: list[reference.Claim], alpha: float = reference.ALPHA
) -> tuple[int, int]:
    """Return the labels at which the reference has its power, at all times and at one."""
    model = reference.Model(p, truth)
    return (
        reference.labels_needed(model, claims, TOLERANCE, reference.mixture, alpha),
        reference.labels_needed(model, claims, TOLERANCE, reference.fixed, alpha),
    )


def powerful() -> list[Case]:
    """Return the streams with verdicts of a power that the reference computes."""
    common, rare = reference.quantiles(2, 5), reference.quantiles(2, 398)
    at = reference.cut(common)
    constant = np.full(11, 0.9)
    rows = [
        ("right", common, common, (2, 5), lambda p: p, reference.TRUSTWORTHY, TRUSTWORTHY),
        (
            "odds off by 1.5",
            common,
            off(common, 1.5),
            (2, 5),
            lambda p: off(p, 1.5),
            reference.TOO_HIGH,
            TOO_HIGH,
        ),
        (
            "over-confident by a slope of 3",
            common,
            flatter(common, 3.0, at),
            (2, 5),
            lambda p: flatter(p, 3.0, at),
            reference.OVER_CONFIDENT,
            OVER_CONFIDENT,
        ),
        (
            "rare events of 0.5 %, right",
            rare,
            rare,
            (2, 398),
            lambda p: p,
            reference.TRUSTWORTHY,
            TRUSTWORTHY,
        ),
        (
            "rare events, odds off by 1.6",
            rare,
            off(rare, 1.6),
            (2, 398),
            lambda p: off(p, 1.6),
            reference.TOO_HIGH,
            TOO_HIGH,
        ),
    ]
    cases = []
    for name, p, truth, (a, b), true, claims, right in rows:
        n, early = _needed(p, truth, claims)
        cases.append(Case(name, n, _one(a, b, true, right), at_once, right, early))
    for name, share, claims, right in (
        ("intervals of 90 % that cover 90 %", 0.9, reference.CONSTANT, TRUSTWORTHY),
        ("intervals of 90 % that cover 85 %", 0.85, reference.TOO_HIGH, TOO_HIGH),
    ):
        n, early = _needed(constant, np.full(11, share), claims)
        cases.append(Case(name, n, _constant(0.9, share, right), at_once, right, early))
    cases += [
        one._replace(name=f"{one.name}, labels late by their value", feed=late) for one in cases[:2]
    ]
    return cases


def others() -> list[Case]:
    """Return streams of other lengths."""
    at = reference.cut(reference.quantiles(2, 5))
    changes = [(20_000, 1.0), (10_000, 1.7), (30_000, 1.0)]
    classes = "three classes, log probabilities 1.7 times too far apart"
    one_class = "three classes, odds of one 1.7 times too high"
    rows: list[tuple[str, int, Draw, Feed, str]] = [
        ("right, 300 labels", 300, _one(2, 5, lambda p: p, NOT_FOUND), at_once, NOT_FOUND),
        (
            "odds off by 1.03",
            1_000_000,
            _one(2, 5, lambda p: off(p, 1.03), TRUSTWORTHY),
            at_once,
            TRUSTWORTHY,
        ),
        (
            "over-confident by a slope of 2",
            80_000,
            _one(2, 5, lambda p: flatter(p, 2.0, at), OVER_CONFIDENT, TOO_HIGH, TOO_LOW),
            at_once,
            "over-confident, or one half or bin",
        ),
        (
            "right, wrong by 1.7",
            30_000,
            _changing(*changes[:2], right=TOO_HIGH),
            with_alarms,
            TOO_HIGH,
        ),
        (
            "right, wrong by 1.7, right again",
            60_000,
            _changing(*changes, right=TRUSTWORTHY),
            with_alarms,
            TRUSTWORTHY,
        ),
        ("three classes, right", 20_000, _classes(1.0, TRUSTWORTHY), at_once, TRUSTWORTHY),
        (classes, 10_000, _classes(1.7, TOO_HIGH), at_once, f"top label {TOO_HIGH}"),
        (one_class, 10_000, _one_class(1.7), at_once, f"the class {TOO_HIGH}"),
    ]
    return [Case(*row) for row in rows]


def borderline() -> list[Case]:
    """Return streams on which claims are easily wrong: right, and odds off by the tolerance."""
    at = reference.cut(reference.quantiles(2, 5))
    none = NOT_FOUND
    truths: list[tuple[str, float, float, Callable[[Floats], Floats]]] = [
        ("right", 2, 5, lambda p: p),
        ("odds too high by exactly 1.25", 2, 5, lambda p: off(p, 1.25)),
        ("odds too low by exactly 1.25", 2, 5, lambda p: off(p, 0.8)),
        ("rare events of 0.5 %, right", 2, 398, lambda p: p),
        ("rare events, odds too high by exactly 1.25", 2, 398, lambda p: off(p, 1.25)),
        ("rare events, odds too low by exactly 1.25", 2, 398, lambda p: off(p, 0.8)),
        (
            "higher scores off by exactly 1.25",
            2,
            5,
            lambda p: np.where(special.logit(p) >= at, off(p, 1.25), p),
        ),
    ]
    cases = [Case(one[0], 50_000, _one(*one[1:], none), at_once, none) for one in truths]
    # As of intervals and quantiles, and of PIT values in the middle half.
    for level, factor in ((0.9, 1.25), (0.9, 0.8), (0.5, 1.25)):
        way = "too high" if factor > 1.0 else "too low"
        truth = float(off(np.array(level), factor))
        name = f"a level of {level:.0%}, odds {way} by exactly 1.25"
        cases.append(Case(name, 50_000, _constant(level, truth, none), at_once, none))
    for name, feed in (
        ("restarts where the sums are off", restarted),
        ("labels late by their value", late),
    ):
        cases += [
            one._replace(name=f"{one.name}, {name}", feed=feed, labels=20_000) for one in cases[:2]
        ]
    return cases
