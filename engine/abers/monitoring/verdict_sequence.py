"""Verdicts on a stream, block after block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from abers.exceptions import ParameterError
from abers.monitoring.findings import WHOLE, find, find_in
from abers.monitoring.forecast_groups import ForecastGroups, checked_rows
from abers.monitoring.held_verdict import HeldVerdict, saved_time
from abers.monitoring.label_need import label_needs
from abers.monitoring.level_sums import LevelSums
from abers.monitoring.verdict import WORDS, Verdict, find_verdict
from abers.saveable import CopiedWhole
from abers.serialization import MAX_COUNT, count, require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats, Integers
    from abers.monitoring.findings import GroupFinding
    from abers.monitoring.label_need import LabelNeed
    from abers.monitoring.verdict import Words

__all__ = ["VerdictSequence"]

_GROWTH = 100  # a block is evaluated when it has grown by one part in so many,
_FEWEST = 10  # but by so many labels at least, so that young models cost little
_PATIENCE = 8  # a block in which only a half or a bin is outside grows by this factor
_MOST_COMBINATIONS = 500.0  # as a logarithm: levels stay above zero


class VerdictSequence(CopiedWhole):
    """Verdicts on the forecasts of one view: whether they can be trusted now, and how far.

    Parameters
    ----------
    view
        "raw" or "calibrated".
    tolerance
        Ratio of odds within which forecasts are right, at least 1; see `ForecastGroups`.
    alpha
        Bound on the probability that any verdict is ever wrong, between 0 and 1.
    words
        What sentences call the forecasts: those of two classes unless given.
    level
        The only forecast there is, if labels may be counted in part; see `LevelSums`.

    Attributes
    ----------
    groups, labels, skipped
        Of the present block: its sums, the number of its labels, and that of observations without.
    start, until
        Event times of its first and its last label.
    blocks
        Number of blocks, with the present one.
    open
        Whether an incident is open.
    held
        The verdict outside that is shown; None if there is none, or if later labels do not
        repeat it.
    partitions
        Number of partitions that were combined.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Notes
    -----
    Only the sums of the present block are kept. A verdict that forecasts are outside the tolerance
    starts another block, and so does `restart`, when an alarm opens. If only one half or bin is
    known to be outside, the block goes on until it is eight times as long: "too high among higher
    scores" may become "over-confident". A verdict outside is shown until one of these comes: the
    main groups of a block (all forecasts, the lower and the upper half) are inside; a later block
    is outside again; the same group of the present block has four times as many labels, and their
    mean is within the tolerance. The last says that the miscalibration is not seen any more, not
    that it is over: an incident is open until the main groups are inside.

    Block k has the level alpha / (k (k + 1)): three quarters for the main groups, one for ten bins
    of the score. It is evaluated when it has grown by 1 %, or by 10 labels if that is more, so
    results depend on counts and never on batches.

    **Guarantee.** The probability that a verdict is ever wrong, in any block and at whatever time
    one reads it, is at most `alpha`. *Trustworthy* means: over the labels of the block, the mean
    true probability of each main group is between the means of what its forecasts may stand for by
    the tolerance. *Too high* and *too low* mean that in the named range it is not; *over-confident*
    and *under-confident*, that the halves differ in it. All are statements about averages, also
    where forecasts and probabilities drift, and of no single forecast: forecasts that are too high
    as often as too low are trustworthy on average. The tests of `CalibrationEProcess` are
    statements about every forecast.

    The true probability of a label is that given all forecasts up to its own and the labels of all
    observations before it. So labels that are late and share a shock which nobody foresaw count as
    miscalibration. Observations without a label are in no group, which is valid only if being
    without a label does not depend on the label.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 20_000)
    >>> sequence = VerdictSequence("raw", 1.25)
    >>> sequence.update(p[:300], rng.random(300) < p[:300], np.arange(300))
    >>> sequence.verdict().status
    'no miscalibration found'
    >>> sequence.update(p, rng.random(20_000) < p, np.arange(300, 20_300))
    >>> sequence.verdict().status
    'trustworthy'
    >>> sequence.restart(20_299)  # an alarm opened
    >>> odds = p / (1 - p) / 2
    >>> labels = rng.random(20_000) < odds / (1 + odds)
    >>> sequence.update(p, labels, np.arange(20_300, 40_300))
    >>> verdict = sequence.verdict()
    >>> verdict.status, sequence.open
    ('too high', True)
    """

    groups: ForecastGroups | LevelSums

    def __init__(
        self,
        view: str,
        tolerance: float,
        alpha: float = 0.05,
        *,
        words: Words | None = None,
        level: float | None = None,
    ) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha {alpha!r} is not a probability between 0 and 1"
            raise ParameterError(msg)
        self.view, self.tolerance, self.alpha = view, tolerance, alpha
        self.words, self.level = words or WORDS[view], level
        self.partitions, self.blocks = 1, 1
        self.open = False
        self.held: HeldVerdict | None = None
        self._begin(0)

    def update(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> None:
        """Take forecasts whose labels came, in the order of the observations.

        Parameters
        ----------
        forecasts
            Array of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.
        times
            Array of shape (n,): event times, in milliseconds where they are dates.
        skipped
            Array of shape (n,): numbers of observations directly before each that got no label in
            time; all 0 if None.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is taken then.
        """
        issued, truth = checked_rows(forecasts, labels)
        if len(times) != len(issued) or (skipped is not None and len(skipped) != len(issued)):
            msg = f"{len(issued)} forecasts need as many event times and counts of skipped ones"
            raise ParameterError(msg)
        self.add(issued, truth, times, skipped)

    def add(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> list[int]:
        """Take columns that were checked; see `update`.

        Of a level they are how far each label is counted at least, and at most. Return the rows at
        which an incident opened or was over, in turn.
        """
        at, n, turns = 0, len(forecasts), []
        while at < n:
            end = min(at + self._next - self.labels, n)
            if not self.labels:
                self.start = int(times[at])
            self.groups.add(forecasts[at:end], labels[at:end])
            self.labels += end - at
            self.until = int(times[end - 1])
            if skipped is not None:
                self.skipped += int(skipped[at:end].sum())
            if self.labels == self._next:
                before = self.open
                self._evaluate()
                turns += [end - 1] * (self.open != before)
            at = end
        return turns

    def restart(self, time: int) -> None:
        """Start another block, behind the observation of this event time: an alarm opened."""
        self.open = True
        if self.labels:
            self.blocks += 1
            self._begin(time)

    def verdict(self) -> Verdict:
        """Return the verdict that is shown now."""
        finding = find_in(self.groups, self._level())
        return self.held.verdict if self.held and not self._renews(finding) else self._present()

    def label_needs(self) -> list[LabelNeed]:
        """Return about how many labels of the present block allow which statement: a guide."""
        return label_needs(self.groups, self._level())

    def brief(self) -> tuple[str, float]:
        """Return the status of the verdict, and the ratio of observed to expected outcomes.

        That takes a tenth of the time of `verdict`, which also computes what is not excluded.
        """
        groups = self.groups.groups()
        finding = find(groups, self._level())
        if self.held is not None and not self._renews(finding):
            return self.held.verdict.status, self.held.verdict.ratio.value
        one = groups[finding.group]
        return finding.status, one.observed / one.expected if one.expected else math.nan

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Combine the verdicts of different partitions of one model.

        Their present blocks are added up. The level is shared among all combinations of blocks
        that the partitions can be in, so the guarantee holds for the total if labels of different
        partitions do not depend on each other, given what was known when they were predicted. A
        verdict outside that is shown in a partition is shown, the last of them; its guarantee is
        that of one partition.
        """
        first = many[0]
        options: dict[str, Any] = {"words": first.words, "level": first.level}
        combined = cls(first.view, first.tolerance, first.alpha, **options)
        combined.partitions = sum(one.partitions for one in many)
        combined.blocks = 1 + sum(one.blocks - 1 for one in many)
        kind: Any = type(first.groups)
        combined.groups = kind.total(one.groups for one in many)
        combined.labels = sum(one.labels for one in many)
        combined.skipped = sum(one.skipped for one in many)
        combined._next = _next(combined.labels)
        begun = [one for one in many if one.labels] or many
        combined.start = min(one.start for one in begun)
        combined.until = max(one.until for one in begun)
        combined.open = any(one.open for one in many)
        held = [HeldVerdict(one.verdict(), one.held.finding) for one in many if one.held]
        combined.held = max(held, key=lambda one: one.verdict.until, default=None)
        return combined

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `load` takes."""
        counts = (self.skipped, self._next, self._limit, self._rank)
        block = (self.groups.state(), counts, self.start, self.until)
        held = self.held and self.held.state()
        return (self.partitions, self.blocks, self.open, held, block)

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one.

        A block that was counted with another tolerance ends, and another begins.
        """
        partitions, blocks, is_open, held, (groups, counts, start, until) = state
        skipped, following, limit, rank = counts
        self.partitions = whole(partitions, "partitions", 1, MAX_COUNT)
        self.blocks = whole(blocks, "blocks", 1, MAX_COUNT)
        require(type(is_open) is bool and (is_open or held is None), "incidents")
        self.open = is_open
        if held is not None:
            self.held = HeldVerdict.restore(held, self.words)
            require(self.held.finding.group < len(self.groups.groups()), "group")
        self.groups = type(self.groups).restore(groups)
        require(getattr(self.groups, "level", None) == self.level, "level")
        self.labels = self.groups.labels
        self.skipped = count(skipped, "observations without a label")
        self._next = count(following, "next evaluation")
        require(self.labels < self._next <= _next(self.labels), "next evaluation")
        self._limit = count(limit, "limit of a block")
        self._rank = whole(rank, "rank", 0, WHOLE - 1)
        require(bool(limit) == bool(rank), "limit of a block")
        require(not limit or (self.labels < limit and held is not None), "limit of a block")
        self.start, self.until = saved_time(start), saved_time(until)
        if self.groups.tolerance != self.tolerance:
            self.blocks += 1
            self._begin(self.until)

    def _begin(self, time: int) -> None:
        """Begin a block behind this event time."""
        self.groups = self._empty()
        self.labels = self.skipped = 0
        self._next, self._limit, self._rank = _next(0), 0, 0
        self.start = self.until = time

    def _empty(self) -> ForecastGroups | LevelSums:
        level, tolerance = self.level, self.tolerance
        return ForecastGroups(tolerance) if level is None else LevelSums(level, tolerance)

    def _evaluate(self) -> None:
        self._next = _next(self.labels)
        self._decide(find_in(self.groups, self._level()))

    def _decide(self, finding: GroupFinding) -> None:
        """Decide on the present block by what its groups show."""
        ends = 0 < self._limit <= self.labels or finding.rank == WHOLE
        if finding.outside:
            self._hold(finding, ends=ends)
        if ends:
            self.blocks += 1
            self._begin(self.until)
        elif finding.inside and not finding.outside:
            self.held, self.open, self._limit, self._rank = None, False, 0, 0
        elif self.held and not finding.outside and self.held.is_outgrown(self.groups):
            self.held, self._limit, self._rank = None, 0, 0

    def _hold(self, finding: GroupFinding, *, ends: bool) -> None:
        """Hold what the present block shows, unless the held verdict says more."""
        held = self.held
        agrees = held is not None and held.agrees(finding)
        if self._renews(finding) and (ends or finding.rank > self._rank or not agrees):
            self.held = HeldVerdict(self._present(), finding)
        elif held is not None and agrees:
            self.held = held.confirmed(self.until)
        self.open = True
        self._rank = max(self._rank, finding.rank)
        self._limit = self._limit or _PATIENCE * self.labels

    def _renews(self, finding: GroupFinding) -> bool:
        """Return whether the present block is outside, and the held verdict says no more."""
        if not finding.outside or finding.rank < self._rank:
            return False
        return self.held is None or self.held.gives_way(finding)

    def _level(self) -> float:
        """Return the level of the present block, or of this combination of those of partitions."""
        k, m = self.blocks, self.partitions
        # The number of combinations, a binomial coefficient, is beyond floats for many partitions.
        combinations = math.lgamma(k + m - 1) - math.lgamma(k) - math.lgamma(m)
        return self.alpha / (k * (k + 1)) * math.exp(-min(combinations, _MOST_COMBINATIONS))

    def _present(self) -> Verdict:
        """Return the verdict on the present block; it goes on with one of the same status."""
        verdict = find_verdict(
            self.groups,
            self._level(),
            view=self.view,
            words=self.words,
            since=self.start,
            start=self.start,
            until=self.until,
            skipped=self.skipped,
        )
        if self.held is None or self.held.verdict.status != verdict.status:
            return verdict
        return verdict._replace(since=self.held.verdict.since)


def _next(labels: int) -> int:
    """Return the number of labels at which a block is evaluated next."""
    return labels + max(_FEWEST, -(-labels // _GROWTH))
