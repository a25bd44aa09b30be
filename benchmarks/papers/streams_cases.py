"""What methods lose on streams by a law of delays, and where the protected one wins and loses.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.papers.streams_worst import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Gaps = Mapping[str, float]  # by cell

__all__ = [
    "OURS",
    "RAW",
    "Case",
    "P",
    "columns",
    "compared",
    "gaps",
    "kept",
    "lost",
    "most_lost",
    "outside",
    "results",
    "won",
]

P, RAW = "protected", "raw"
OURS = P, "tracked"
"""Methods that are no rivals."""


_NATS, _PERCENT = 1e-4, 1e-2
_ROUND = 9.5  # units that are written without a decimal


class Case(NamedTuple):
    """The results of a scorer and a law of delays, by stream."""

    scorer: str  # empty if there is one
    law: str
    of: Mapping[str, Mapping[str, Any]]
    loss: str = "log"
    own: str = P
    base: str = RAW
    relative: bool = False  # gaps are shares of the loss of the base, and not nats

    @property
    def title(self) -> str:
        """Name the case."""
        return f"{self.scorer}, {self.law}" if self.scorer else self.law

    @property
    def names(self) -> list[str]:
        """List the methods that have this loss."""
        methods = next(iter(self.of.values()))["methods"]
        return [name for name, scores in methods.items() if self.loss in scores]

    @property
    def rivals(self) -> list[str]:
        """List the methods that are not ours."""
        return [name for name in self.names if name not in OURS]

    def score(self, data: str, name: str, score: str = "") -> float:
        """Return a score of a method on a stream, by default the loss."""
        return float(self.of[data]["methods"][name][score or self.loss])

    def scale(self, data: str) -> float:
        """Return what a loss on a stream is a share of."""
        return self.score(data, self.base) if self.relative else 1.0

    def mean(self, name: str, score: str = "") -> float:
        """Return the mean over streams."""
        found = [self.score(data, name, score) / self.scale(data) for data in self.of]
        return sum(found) / len(found)

    def fixed(self) -> str:
        """Name the best fixed rival."""
        return min(self.rivals, key=self.mean)

    def best(self, data: str) -> str:
        """Name the best rival on a stream."""
        return min(self.rivals, key=lambda name: self.score(data, name))

    def gap(self, data: str, loss: float) -> float:
        """Return how far our own loss on a stream is above another one."""
        return (self.score(data, self.own) - loss) / self.scale(data)

    def below(self, other: Callable[[str], str]) -> dict[str, float]:
        """Return the loss of our own less that of another method, by stream."""
        return {data: self.gap(data, self.score(data, other(data))) for data in self.of}

    def rank(self) -> int:
        """Return the place of our own by mean loss."""
        return 1 + sum(self.mean(name) < self.mean(self.own) for name in self.rivals)

    def better(self, data: str) -> str:
        """Name all rivals that did better on a stream."""
        own = self.score(data, self.own)
        return "; ".join(n for n in self.rivals if self.score(data, n) < own) or "none"

    def worst(self, data: str, name: str) -> float:
        """Return what a method loses to the base over its worst labels."""
        return self.score(data, name, "worst") / self.scale(data)

    def amount(self, gap: float) -> str:
        """Write a gap with its unit."""
        return f"{gap / _PERCENT:.1f} %" if self.relative else f"{gap:.3f} nats"

    def units(self, gap: float) -> str:
        """Write a gap in 10^-4 nats, or in per cent."""
        units = gap / (_PERCENT if self.relative else _NATS)
        return f"{units:+,.{0 if abs(units) > _ROUND else 1}f}" if gap else "0"


def gaps(found: Sequence[Case], other: Callable[[Case], Callable[[str], str]]) -> dict[str, float]:
    """Return the loss of our own less that of another method, by cell."""
    return {
        f"{data} {case.title}": gap
        for case in found
        for data, gap in case.below(other(case)).items()
    }


def won(of: Gaps) -> str:
    """Write in how many cells our own is below."""
    return f"{sum(gap < 0.0 for gap in of.values())} of {len(of)} cells"


def lost(of: Gaps, units: Callable[[float], str]) -> str:
    """Write in which cells it is not, and by how much."""
    above = {name: gap for name, gap in of.items() if gap >= 0.0}
    if not above:
        return ""
    return ", not in " + ", ".join(f"{name} ({units(gap)})" for name, gap in above.items())


def compared(found: Sequence[Case], own: str = "p", that: str = "") -> Iterator[str]:
    """Yield where our own is below the base, the best fixed rival, and every rival."""
    base, units = found[0].base, found[0].units
    above = gaps(found, lambda _: lambda _: base)
    yield f"{own} is below {that}{base} in {won(above)}{lost(above, units)}."
    fixed = gaps(found, lambda case: lambda _: case.fixed())
    yield f"{own} is below {that}the best fixed rival in {won(fixed)}{lost(fixed, units)}."
    best = won(gaps(found, lambda case: case.best))
    yield f"{own} is below {that}every rival, the best of each stream included, in {best}."


def counts(title: str, found: Sequence[Case]) -> list[str]:
    """Write in how many cells p is below the base, rivals and all of them, and within the price."""
    base = found[0].base
    others: list[Callable[[Case], Callable[[str], str]]] = [
        lambda _: lambda _: base,
        lambda case: lambda _: case.fixed(),
        lambda case: case.best,
    ]
    below = [sum(gap < 0.0 for gap in gaps(found, other).values()) for other in others]
    cells = sum(len(case.of) for case in found)
    return [title, *(f"{count} of {cells}" for count in (*below, _within(found)))]


def most_lost(found: Sequence[Case]) -> str:
    """Write what the worst labels cost, ours and those of the best fixed rivals."""
    pairs = {
        f"{data} {case.title}": [case.worst(data, name) for name in (case.own, case.fixed())]
        for case in found
        for data in case.of
    }
    cell, base, amount = max(pairs, key=pairs.__getitem__), found[0].base, found[0].amount
    theirs = max(other for _, other in pairs.values())
    fewer = sum(own < other for own, other in pairs.values())
    return (
        f"Over the worst {WINDOW} labels in sequence p loses less to {base} than the best fixed "
        f"rival in {fewer} of {len(pairs)} cells; p loses at most {amount(pairs[cell][0])} "
        f"({cell}), and the best fixed rivals {amount(theirs)}."
    )


def kept(found: Sequence[Case], own: str = "p", that: str = "") -> str:
    """Write where the price is a bound."""
    cells = sum(len(case.of) for case in found)
    base = f"{that}{found[0].base}"
    return f"{own} exceeds {base} by at most the price in {_within(found)} of {cells} cells."


def _within(found: Sequence[Case]) -> int:
    """Count the cells where the price is a bound."""
    return sum(
        case.score(data, case.own) <= case.of[data]["experts"][case.base] + case.of[data]["price"]
        for case in found
        for data in case.of
    )


def outside(found: Sequence[Case], what: str) -> str:
    """Write how many forecasts lie outside their intervals."""
    shares = [cell["outside"] for case in found for cell in case.of.values()]
    low, high = 100 * min(shares), 100 * max(shares)
    return f"In a cell, {low:.0f} % to {high:.0f} % of {what} lie outside their intervals."


def columns(base: str) -> list[str]:
    """Return the heads of `results`."""
    others = ["best fixed rival", "p - it", "best here", "p - it", "best method in p", "p - it"]
    return [base, "p", f"p - {base}", "price", *others, "loses to"]


def results(case: Case, data: str) -> list[str]:
    """Write what p and the best others lose on a stream, and all rivals that did better."""
    cell, fixed, best = case.of[data], case.fixed(), case.best(data)
    method = min(cell["experts"], key=cell["experts"].__getitem__)

    def above(name: str) -> str:
        return case.units(case.gap(data, case.score(data, name)))

    return [
        *(f"{case.score(data, name):.4f}" for name in (case.base, case.own)),
        above(case.base),
        f"{cell['price']:.4f}",
        *(fixed, above(fixed), best, above(best)),
        *(method, case.units(case.gap(data, cell["experts"][method]))),
        case.better(data),
    ]
