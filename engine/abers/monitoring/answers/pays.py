"""What calibration saved: a change of log loss, and a range that is proven."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from abers.monitoring.confidence_sequence import ConfidenceSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.answers.sums import Losses

__all__ = ["RANGE", "Saved", "saved_of"]

RANGE = 6.0
"""Nats of the range in which what a label saves is counted."""
_ALPHA = 0.05
# Gains with a mean square of 0.03 have this sum after some 4,000 labels, when a saving of a
# hundredth of a nat is about to be found.
_TIGHTEST = 120.0


class Saved(Struct, frozen=True):
    """Log losses of raw and calibrated probabilities, and the loss that calibration saved.

    Attributes
    ----------
    raw, calibrated
        Mean log losses in nats; None if any loss is infinite.
    infinite_raw, infinite_calibrated
        Number of labels with an infinite loss.
    certain_raw, certain_calibrated
        Number of labels with raw, or calibrated, probabilities that have a 0 or a 1 where the
        others have not: what these could save at most, or at least, has no limit.
    saved, low, high
        1 - calibrated / raw; and the range of the mean expected saving, as a share of `raw`, and
        at most 1: no loss is below 0. None where a loss is infinite, or one end cannot be known.
    nats, nats_low, nats_high
        The same in nats a label.

    Notes
    -----
    **Guarantee.** The probability that the mean expected saving of a period is ever outside the
    range, however often you read it, is at most 5 %. "Expected" is given all forecasts up to
    its own, and the labels of all predictions before it. A mean that is above the raw loss that
    came counts as this, the most that can be saved. Nothing is clipped in the number itself.

    **Proof.** Let the raw forecast of label i give the probabilities r(k) to what can come, and the
    calibrated one s(k). Both are known before the label. So the saving d = log(s(k) / r(k)) takes
    known values; m is the smallest and M the largest; m <= 0 <= M, since both sum to 1. With C = 6
    nats let X = min(d, m + C). It lies in [m, m + C], a range that is known before the label and
    has a width of C at most; and X <= d, so E[X | past] <= E[d | past]. The confidence sequence for
    outcomes of these ranges says that with probability 1 - alpha / 2, for all n at once, the sum of
    X is at most b(V) above the sum of E[X | past], V being the sum of squares of X - g for a guess
    g in the range that is known before the label, here 0 moved into it. Hence

        sum of E[d | past] >= sum of E[X | past] >= sum of X - b(V).

    The upper end follows from Y = max(d, M - C) >= d, which lies in [M - C, M]. Both ends hold
    together with probability 1 - alpha. As X <= d <= Y, the range always contains the mean of d. A
    raw forecast of 0 or 1 has no M, so no upper end, and a calibrated one no m. Divided by the mean
    raw loss that came, both are shares: the event is the same, so is its probability.

    References
    ----------
    Choe & Ramdas (2024), Comparing sequential forecasters; Howard, Ramdas, McAuliffe & Sekhon
    (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.
    """

    raw: float | None
    calibrated: float | None
    infinite_raw: int
    infinite_calibrated: int
    certain_raw: int
    certain_calibrated: int
    saved: float | None
    low: float | None
    high: float | None
    nats: float | None
    nats_low: float | None
    nats_high: float | None


@cache
def _sequence() -> ConfidenceSequence:
    return ConfidenceSequence(_TIGHTEST, _ALPHA / 2, RANGE)


def saved_of(losses: Losses, labels: int) -> Saved:
    """Return what was saved over so many labels, at least one."""
    low, high = (_end(*one, labels) for one in ((-1.0, losses.low), (1.0, losses.high)))
    raw, calibrated = (
        None if infinite else finite / labels
        for finite, infinite in zip(losses.finite, losses.infinite, strict=True)
    )
    if raw is not None and high is not None:
        high = min(high, raw)
    nats = None if raw is None or calibrated is None else raw - calibrated
    saved, saved_low, saved_high = (
        None if raw is None or one is None or not raw > 0.0 else one / raw
        for one in (nats, low, high)
    )
    return Saved(
        raw=raw,
        calibrated=calibrated,
        infinite_raw=losses.infinite[0],
        infinite_calibrated=losses.infinite[1],
        certain_raw=int(losses.high[2]),
        certain_calibrated=int(losses.low[2]),
        saved=saved,
        low=saved_low,
        high=saved_high,
        nats=nats,
        nats_low=low,
        nats_high=high,
    )


def _end(sign: float, sums: Sequence[float], labels: int) -> float | None:
    """Return an end of the range of what was saved, in nats a label."""
    total, squares, open_ = sums
    return None if open_ else (total + sign * _sequence().boundary(squares, _ALPHA / 2)) / labels
