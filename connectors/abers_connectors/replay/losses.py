"""What a stream loses: one table of the kinds, each with its remedy.

A kind is worth a sentence above its share, which is that of its alert in deploy/rules.yml. The
numbers are those of `abers.stream.accounts`, or differences of them.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from abers.stream.option import Ref, said
from abers.stream.settings import setting_options
from abers_connectors.config.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.stream import Settings
    from abers.stream.option import Front

__all__ = ["LOSSES", "Loss", "loss_sentences"]

LEAST = 1_000
"""The fewest records, events or predictions for which a share is shown."""
_ROUND = (
    86_400_000,
    3_600_000,
    60_000,
    1_000,
)  # in ms: a delay is shown in the largest unit that it has two of

_LABELS = ("labels",)
_ENDED = ("learned", "assumed", "expired", "evicted", "retired")
_CONSIDERED = ("learned", "late_labels")


class Loss(NamedTuple):
    """A kind of loss: `lost` of `whole`, both sums of named numbers, is too much above a share.

    In the sentence {lost}, {kept}, {whole} and {share} are numbers, {timeout} is
    `limits.label_timeout`, and {delay} says how late labels are, if that is known. Other names are
    those of settings.
    """

    name: str
    alert: str
    lost: tuple[str, ...]
    whole: tuple[str, ...]
    share: float
    sentence: str

    def tells(self, of: Mapping[str, int]) -> bool:
        """Return whether there is enough for a share to say something."""
        return _sum(of, self.whole) >= LEAST

    def text(
        self, of: Mapping[str, int], settings: Settings, delays: Sequence[int], front: Front
    ) -> str | None:
        """Return the sentence if more than the share is lost, for a front end; None if not."""
        lost, whole = _sum(of, self.lost), _sum(of, self.whole)
        if lost <= self.share * whole:
            return None
        return self.sentence.format(
            lost=f"{lost:,}",
            kept=f"{whole - lost:,}",
            whole=f"{whole:,}",
            share=f"{100 * lost / whole:.0f} %",
            timeout=duration(settings.label_timeout),
            delay=f"; the median delay of the others is {_rounded(delays)}" if delays else "",
            **{name: said((Ref(one),), front) for name, one in setting_options().items()},
        )


LOSSES = (
    Loss(
        "dead letters",
        "AbersDeadLetters",
        ("undecodable", "dead_letters"),
        ("records",),  # of topics: the summary of a run over files has its dead letters
        0.01,
        "{lost} of {whole} records cannot be used ({share}): see the dead letters for the reasons, "
        "and fix the writer or [input]",
    ),
    Loss(
        "late labels",
        "AbersLateLabels",
        ("late_labels",),
        _CONSIDERED,
        0.05,
        "{kept} of {whole} labels came within {timeout}{delay}: set {label_timeout} to more "
        "than the delay, or late labels are not learned",
    ),
    Loss(
        "expired predictions",
        "AbersExpiredPredictions",
        ("expired",),
        _ENDED,
        0.9,
        "{lost} of {whole} predictions had no label within {timeout} ({share}): if labels take "
        "longer, set {label_timeout}; if only one class is ever labelled, set "
        "{unlabelled}",
    ),
    Loss(
        "evicted predictions",
        "AbersEvictedPredictions",
        ("evicted",),
        _ENDED,
        0.01,
        "{lost} of {whole} predictions were dropped before their label ({share}), for want of "
        "room: set {max_pending}, or {max_bytes}, to more than what waits within "
        "{timeout}",
    ),
    Loss(
        "duplicate observations",
        "AbersDuplicateObservations",
        ("duplicate_observations",),
        ("observations",),
        0.1,
        "{lost} of {whole} observations had an id that was there before, and were not predicted "
        "({share}): see that ids are unique, and that the writer sends each record once",
    ),
    Loss(
        "duplicate labels",
        "AbersDuplicateLabels",
        ("duplicate_labels",),
        _LABELS,
        0.1,
        "{lost} of {whole} labels had an id with a label already, and were not learned ({share}): "
        "see that ids are unique, and that the writer sends each record once",
    ),
    Loss(
        "evicted labels",
        "AbersEvictedLabels",
        ("evicted_labels",),
        _LABELS,
        0.01,
        "{lost} of {whole} labels were dropped before their observation came ({share}), for want "
        "of room: set {max_early}, or {max_bytes}, to more",
    ),
    Loss(
        "labels without observation",
        "AbersLabelsWithoutObservation",
        ("unknown_labels",),
        _LABELS,
        0.2,
        "{lost} of {whole} labels met no observation within {timeout} ({share}): see that id and "
        "model of both agree, and that both have the same key",
    ),
    Loss(
        "retired predictions",
        "AbersRetiredPredictions",
        ("retired",),
        _ENDED,
        0.01,
        "{lost} of {whole} predictions were dropped with their models ({share}): set "
        "{max_models}, or {retire_after}, to more",
    ),
)
"""All kinds."""


def loss_sentences(
    of: Mapping[str, int], settings: Settings, delays: Sequence[int], front: Front
) -> Iterator[str]:
    """Yield the sentence of each kind that loses too much; of a run that met no label, only that.

    `of` are numbers of accounts, and `delays` those of late labels, in milliseconds. Options are
    named as in the front end.
    """
    if sentence := _unmatched(of):
        yield sentence
        return
    for one in LOSSES:
        if one.tells(of) and (sentence := one.text(of, settings, delays, front)):
            yield sentence


def _unmatched(of: Mapping[str, int]) -> str | None:
    """Return a sentence if there are observations and labels, and no label has an observation."""
    waiting, labels = _sum(of, ("waiting_labels",)), _sum(of, _LABELS)
    without = waiting + _sum(of, ("unknown_labels", "evicted_labels"))
    if not waiting or without != labels or not _sum(of, ("predictions",)):
        return None
    return (
        f"None of {labels:,} labels has the id and model of an observation: compare both in the "
        "inputs, and name their columns if others are meant"
    )


def _sum(of: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(of.get(name, 0) for name in names)


def _rounded(delays: Sequence[int]) -> str:
    """Write the median of delays, to a whole unit if there are two or more of it."""
    middle = int(median(delays))
    unit = next((one for one in _ROUND if abs(middle) >= 2 * one), 1)
    return duration(round(middle / unit) * unit)
