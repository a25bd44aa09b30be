"""How large the calibration error is, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.blocks import Span, TextBlock
from abers.pages.model_findings import tone

if TYPE_CHECKING:
    from abers.monitoring.answers import Period
    from abers.pages.blocks import Words
    from abers.pages.model_findings import ModelFindings

__all__ = ["error_text"]


def error_text(found: ModelFindings) -> tuple[TextBlock, ...]:
    """Return between which ends the calibration error is, now and of the whole stream.

    Nothing before the first label, and of numbers. A window that is the whole stream has the ten
    tenths of that: its own were merged when hardly any prediction was known, perhaps into one, and
    gaps that cancel between tenths would not count.
    """
    now, whole = found.answers.now, found.answers.whole
    if now is None or whole is None:
        return ()
    same = now.labels == whole.labels
    if not (latest := _ranges(whole if same else now)):
        return ()
    of = " of the first choice" if found.several else ""
    words: Words = (f"The calibration error{of} is ", *latest, ".")
    if not same:
        words = (*words, " Whole stream: ", *_ranges(whole), ".")
    return (TextBlock(key=found.key("calibration-error"), words=words),)


def _ranges(period: Period) -> tuple[str | Span, ...]:
    """Return the range of each view, with its name if there are two."""
    said: list[str | Span] = []
    for view, found in period.views.items():
        if found.error is None:
            continue
        said += [", and "] if said else []
        said.append(found.error.ends)
        if len(period.views) > 1:
            said += [" (", Span(view, tone(view)), ")"]
    return (*said,)
