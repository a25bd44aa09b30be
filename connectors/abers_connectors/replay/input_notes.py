"""What a run found in its input that its reader may not expect, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import BinaryMonitor, label_doubts, score_doubts
from abers.stream.option import SET, Phrase, Ref, said
from abers.stream.settings import setting_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.monitoring import TaskMonitor
    from abers.stream import Settings
    from abers.stream.option import Front

__all__ = ["column_notes", "unlabelled_notes"]

_SCORES = setting_options()["scores"]
_REMEDY = (
    *(
        "Are they probabilities? Then ",
        SET,
        Ref(_SCORES, "probability"),
        ". Are they logits? Then ",
    ),
    *(SET, Ref(_SCORES, "logit"), ". Are they per cent? Then "),
    Phrase("set input.percent = true", "divide them by 100", "add --scores percent"),
    ".",
)


def unlabelled_notes(records: int, unlabelled: int, waiting: int) -> Iterator[str]:
    """Yield sentences on records without labels so far, of so many records.

    So many labels wait for those of earlier records.

    Examples
    --------
    >>> [*unlabelled_notes(60, 10, 0)]
    ['10 rows have no label yet: they are predicted, but not scored.']
    >>> [*unlabelled_notes(60, 60, 0)]
    ['No row has a label: see that the label column is the right one.']
    """
    if unlabelled and unlabelled == records:
        yield "No row has a label: see that the label column is the right one."
    elif unlabelled == 1:
        yield "1 row has no label yet: it is predicted, but not scored."
    elif unlabelled:
        yield f"{unlabelled:,} rows have no label yet: they are predicted, but not scored."
    if unlabelled and waiting:
        yield (
            f"{waiting:,} labels count in no answer, as they wait for those of all earlier rows. "
            "Set limits.label_timeout to the longest time that a label takes."
        )


def column_notes(monitor: TaskMonitor, settings: Settings, front: Front) -> Iterator[str]:
    """Yield sentences on labels and scores that may not be what they seem.

    Scores that may be any numbers have no verdict, and a sentence says how they get one.
    """
    if isinstance(monitor, BinaryMonitor):
        yield from label_doubts(monitor.calibrated)
        yield from () if monitor.raw is None else score_doubts(monitor.raw)
    if monitor.count and settings.task != "regression" and not settings.has_raw_view:
        yield "The raw scores have no verdict, since they may be any numbers."
        yield said(_REMEDY, front)
