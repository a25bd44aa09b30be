"""What a run found in its input that its reader may not expect, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["input_notes"]


def input_notes(records: int, unlabelled: int) -> Iterator[str]:
    """Yield sentences on records whose labels are not known yet, of so many in all.

    Examples
    --------
    >>> [*input_notes(60, 10)]
    ['10 rows have no label yet: they are predicted, but not scored.']
    >>> [*input_notes(60, 60)]
    ['No row has a label: see that the label column is the right one.']
    """
    if unlabelled and unlabelled == records:
        yield "No row has a label: see that the label column is the right one."
    elif unlabelled == 1:
        yield "1 row has no label yet: it is predicted, but not scored."
    elif unlabelled:
        yield f"{unlabelled:,} rows have no label yet: they are predicted, but not scored."
