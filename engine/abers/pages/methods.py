"""Names and phrases of the methods that p mixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CROSS", "MIXTURE", "Method", "methods_of"]

MIXTURE = "protected"
"""What losses call the mixture itself."""

CROSS = "cross_venn_abers"
"""The method that makes the interval of folds."""


class Method(NamedTuple):
    """A method: its name, and what it does in one phrase."""

    name: str
    phrase: str


_MIXTURE = Method("calibrated", "the mean of all by weight: what is served")
_UNCHANGED = Method("unchanged", "the raw probability as it is")
_SWITCHING = Method("switching", "nine fixed corrections, among which it may switch at any time")
_BEST = Method("best of late", "follows the method that was best lately")
_STEADY = Method("steady best", "as “best of late”, where a label counts a sixteenth")
_ALL = "methods and averages of scores, labels and errors in a formula"
_TWO_CLASSES = {
    "raw": _UNCHANGED,
    "venn_abers": Method("all labels", "Venn–Abers over all labels so far"),
    CROSS: Method("all labels", "cross Venn–Abers over all labels so far"),
    "jumper": _SWITCHING,
    "platt": Method("recent line", "one slope and one shift; half counts after 300 labels"),
    "stack_scores": Method(
        "scores combined", "methods and averages of scores in a formula that learns"
    ),
    "stack_all": Method("all combined, everything", f"{_ALL} that never forgets"),
    "stack_2000": Method("all combined, 2,000", f"{_ALL} with 2,000 labels"),
    "stack_1000": Method("all combined, 1,000", f"{_ALL} with 1,000 labels"),
    "share": _BEST,
    "share_16": _STEADY,
    "share_arrival": Method("first to know", "as “best of late”, but learns labels as they come"),
}
_CLASSES = {
    "raw": Method("unchanged", "the raw probabilities as they are"),
    "one_vs_rest": Method("all labels", "Venn–Abers of each class against all others"),
    "stack_scores": Method("scores combined", "both before in a formula that learns"),
    "stack_all": Method("all combined, everything", f"{_ALL} that never forgets"),
    "stack_1000": Method("all combined, 1,000", f"{_ALL} with 1,000 labels"),
    "stack_100": Method("all combined, 100", f"{_ALL} with 100 labels"),
    "share": _BEST,
    "share_16": _STEADY,
    "product": Method("product", "the product of all, each to the power of its weight"),
}
_LINE = "a line through the score and the errors before it"
_NUMBERS = {
    "base": Method("unchanged", "the distribution of the model"),
    "recalibrated": Method(
        "recalibrated", "that of the model, corrected by how often labels were below"
    ),
    "ivapr": Method("many labels", "inductive Venn–Abers regression over the labels kept"),
    "ivapr_1000": Method(
        "last thousand", "inductive Venn–Abers regression over the latest 1,000 labels"
    ),
    "residuals_100": Method("last 100 errors", "the score plus its latest 100 errors"),
    "residuals_300": Method("last 300 errors", "the score plus its latest 300 errors"),
    "gaussian": Method("normal errors", "the score plus recent errors as a normal distribution"),
    "line_gaussian": Method("line, normal", f"{_LINE}, with its errors as a normal distribution"),
    "line_residuals": Method("line, last 300", f"{_LINE}, plus its latest 300 errors"),
    "share": _BEST,
    "share_4": Method("steady best", "as “best of late”, where a label counts a quarter"),
}


def methods_of(experts: Iterable[str]) -> dict[str, Method]:
    """Return the names and phrases of the experts of a mixture; unknown ones have their own name.

    Examples
    --------
    >>> [one.name for one in methods_of(["raw", "jumper", "venn_abers", "mine"]).values()]
    ['unchanged', 'switching', 'all labels', 'mine']
    """
    names = [*experts]
    known = max(
        (_TWO_CLASSES, _CLASSES, _NUMBERS), key=lambda table: sum(n in table for n in names)
    )
    found = known | {MIXTURE: _MIXTURE}
    return {name: found.get(name, Method(name, "")) for name in names}
