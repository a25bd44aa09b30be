"""Verdicts on the parts of predictions, such as each of several classes, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring.findings import TRUSTWORTHY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.verdict import Verdict

__all__ = ["VerdictParts", "verdict_parts"]

_MOST = 5  # parts that a sentence names


class VerdictParts(NamedTuple):
    """Verdicts on all parts of one kind, such as the classes, in one view.

    Attributes
    ----------
    view
        "raw" or "calibrated".
    subject
        What the forecasts are, a plural.
    parts
        What the parts are, a plural.
    verdicts
        The verdict on each part.
    """

    view: str
    subject: str
    parts: str
    verdicts: Sequence[Verdict]

    @property
    def name(self) -> str:
        """Name among all verdicts of a model."""
        return f"{self.subject}, {self.parts}"

    @property
    def outside(self) -> list[Verdict]:
        """Verdicts that a part is outside the tolerance, the largest difference first."""
        found = [one for one in self.verdicts if one.outside]
        return sorted(found, key=lambda one: -abs(one.difference.value))

    @property
    def trustworthy(self) -> int:
        """Number of parts that are trustworthy."""
        return sum(one.status == TRUSTWORTHY for one in self.verdicts)

    @property
    def sentence(self) -> str:
        """How many parts are right, off and undecided, and which are off."""
        outside = self.outside
        undecided = len(self.verdicts) - len(outside) - self.trustworthy
        counts = (
            f"{self.parts.capitalize()} of the {self.subject}: {self.trustworthy} right, "
            f"{len(outside) or 'none'} off, {undecided} undecided"
        )
        if not outside:
            return f"{counts}."
        named = [f"{one.words.part} {one.claim}: {one.sizes}" for one in outside[:_MOST]]
        if len(outside) > _MOST:
            named.append(f"{len(outside) - _MOST} more")
        return f"{counts}: {'; '.join(named)}."


def verdict_parts(verdicts: Sequence[Verdict]) -> list[VerdictParts]:
    """Return verdicts on parts by their view, subject and kind, in the order of the first."""
    found: dict[tuple[str, str, str], list[Verdict]] = {}
    for one in verdicts:
        found.setdefault((one.view, one.words.subject, one.words.parts), []).append(one)
    return [VerdictParts(*key, many) for key, many in found.items()]
