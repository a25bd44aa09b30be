"""Verdicts on a stream, block after block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.backends import core
from abers.exceptions import ParameterError
from abers.monitoring.findings import STATUSES
from abers.monitoring.forecast_groups import ForecastGroups, checked_rows, tolerances
from abers.monitoring.label_need import label_needs
from abers.monitoring.level_sums import LevelSums
from abers.monitoring.verdict import WORDS, Verdict, verdict_of
from abers.saveable import CopiedWhole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import GroupVerdicts, LevelVerdicts
    from abers.arrays import Floats, Integers
    from abers.monitoring.label_need import LabelNeed
    from abers.monitoring.verdict import Words

__all__ = ["VerdictSequence"]


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
    core
        The verdicts in the core.

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

    **Guarantee.** The probability that a verdict is ever wrong, in any block and however often you
    read it, is at most `alpha`. *Trustworthy* means: over the labels of the block, the mean true
    probability of each main group is between the means of what its forecasts may stand for by the
    tolerance. *Too high* and *too low* mean that in the named range it is not; *over-confident* and
    *under-confident*, that the halves differ in it. All are statements about averages, even if
    forecasts and probabilities drift, not about single forecasts: forecasts that are too high as
    often as too low are trustworthy on average. The tests of `CalibrationEProcess` are statements
    about every forecast.

    The true probability of a label is that given all forecasts up to its own and the labels of all
    observations before it. So late labels that share an unforeseen shock count as miscalibration.
    Observations without a label are in no group, which is valid only if the lack of a label does
    not depend on its value.

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
        self.core = self._empty()

    def _empty(self) -> GroupVerdicts | LevelVerdicts:
        of, level = tolerances(self.tolerance), self.level
        empty: GroupVerdicts | LevelVerdicts = (
            core.GroupVerdicts(self.alpha, of)
            if level is None
            else core.LevelVerdicts(self.alpha, level, of)
        )
        return empty

    @property
    def groups(self) -> ForecastGroups | LevelSums:
        """Sums of the present block, as they are now."""
        sums: Any = self.core.sums
        if self.level is None:
            return ForecastGroups.of(sums, self.tolerance)
        return LevelSums(self.level, self.tolerance, sums)

    @property
    def labels(self) -> int:
        """Number of labels of the present block."""
        return int(self.core.labels)

    @property
    def skipped(self) -> int:
        """Number of observations of the present block without a label."""
        return int(self.core.skipped)

    @property
    def start(self) -> int:
        """Event time of the first label of the present block."""
        return int(self.core.start)

    @property
    def until(self) -> int:
        """The latest event time of any label; a verdict never ends before it began."""
        return int(self.core.until)

    @property
    def blocks(self) -> int:
        """Number of blocks, with the present one."""
        return int(self.core.blocks)

    @property
    def partitions(self) -> int:
        """Number of partitions that were combined."""
        return int(self.core.partitions)

    @property
    def open(self) -> bool:
        """Whether an incident is open."""
        return bool(self.core.open)

    @property
    def began(self) -> int | None:
        """Event time at which the fault of the open incident began, or None.

        The last alarm says when; without an alarm it is the first label of the block that is
        outside.
        """
        return int(self.core.began) if self.open else None

    @property
    def held(self) -> Verdict | None:
        """The verdict outside that is shown, unless the present block says more."""
        held = self.core.held
        return None if held is None else verdict_of(held, self.view, self.words)

    @property
    def next(self) -> int:
        """Number of labels at which the present block is evaluated next."""
        return int(self.core.next)

    def update(
        self,
        forecasts: Floats,
        labels: Floats,
        times: Integers,
        skipped: Integers | None = None,
    ) -> None:
        """Take labelled forecasts, in the order of the observations.

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
            time; None if all are 0.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is taken then.
        """
        issued, truth = checked_rows(forecasts, labels)
        if len(times) != len(issued) or (skipped is not None and len(skipped) != len(issued)):
            msg = f"{len(issued)} forecasts need as many event times and counts"
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
        when = np.ascontiguousarray(times, np.int64)
        turns: list[int] = self.core.add(forecasts, labels, when, skipped)
        return turns

    def restart(self, time: int, began: int | None = None) -> None:
        """Start another block, behind the observation of this event time: an alarm opened.

        Its fault began at an event time; at the same unless that is given.
        """
        self.core.restart(time, time if began is None else began)

    def verdict(self) -> Verdict:
        """Return the verdict that is shown now."""
        return verdict_of(self.core.verdict(), self.view, self.words)

    def label_needs(self) -> list[LabelNeed]:
        """Return about how many labels of the present block allow which statement: a guide."""
        return label_needs(self.groups, self.core.level)

    def brief(self) -> tuple[str, float]:
        """Return the status of the verdict, and the ratio of observed to expected outcomes.

        That takes a tenth of the time of `verdict`, which also computes ranges.
        """
        status, ratio = self.core.brief()
        # The same NaN each time, so that two summaries are equal.
        return STATUSES[status], math.nan if math.isnan(ratio) else ratio

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
        cores: list[Any] = [one.core for one in many]
        combined.core = cores[0].total(cores[1:])
        return combined

    def state(self) -> bytes:
        """Return the state in canonical form: what `load` takes."""
        return self.core.save()

    def load(self, state: bytes | memoryview) -> None:
        """Restore a state; a ValueError if it cannot be one.

        A block that was counted with another tolerance ends, and another begins.
        """
        self.core.load(bytes(state))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy the options and the state."""
        return {**vars(self), "core": self.state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore options and state."""
        vars(self).update(saved)
        self.core = self._empty()
        self.load(saved["core"])
