"""The part of the page of the streams about protected distributions.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Cases = Mapping[tuple[str, int], Mapping[str, Any]]  # by data and delay: answers

__all__ = ["PROTOCOL", "sentences", "tables"]

PROTOCOL = """\
- **Protected distributions** ([what they are](../protection.md#numbers)). With labels 0, 100 and
  1,000 late on Bike sharing; on the two others, which have 1,001 and 578 rows, 0, 10 and 100
  late. base is the normal distribution; protected is `ProtectedIVAPR` of its 50 quantiles. The CRPS
  of these tables is exact, that of base by 1,999 quantiles, with the mass beyond the support at its
  ends; the promise is against the 50 quantiles of the base, with a CRPS within .05 % of that of the
  base. Regret is the difference of two CRPS; the best method is chosen afterwards. The price is the
  bound on the regret to the base, a label. *Of points*: `ProtectedIVAPR` of the means alone; its
  base is the mean plus its last 1,000 residuals, and a cell is a CRPS against that. Covered is the
  share of labels in central intervals of 80 %, clipped to the support; in brackets that of the
  worst 500 labels in sequence. Chick weights is too short for that: there it is the share of all.
  tracked are the intervals of protected after a `CoverageTracker` with a slack of 100; the bound
  is on the distance of their share from 80 %. Width is a mean.
"""
_LEVEL = 0.8
_WINDOW = 500  # labels
_BASE, _PROTECTED, _TRACKED = "base", "protected", "tracked"


def sentences(cases: Cases) -> Iterator[str]:
    """Yield what follows: protected against base and IVAPR, and coverage."""
    if not cases:
        return
    n = len(cases)
    above = [_above(case, _PROTECTED, case["CRPS"][_BASE]) for case in cases.values()]
    better = _below([_above(case, _PROTECTED, case["CRPS"]["IVAPR"]) for case in cases.values()])
    yield (
        f"The CRPS of protected is below that of base in {_below(above)} of {n} cases"
        f"{_most(above)}; it is below that of IVAPR in {better}."
    )
    points = [_of_points(case)[_PROTECTED] for case in cases.values()]
    yield (
        f"Of points, the CRPS of protected is below that of base in {_below(points)} of {n} cases"
        f"{_most(points)}; the mean of all is {_percent(math.fsum(points) / n)} %."
    )
    regrets = [_above(case, _PROTECTED, _best(case)[1]) for case in cases.values()]
    yield (
        f"The CRPS of protected is below that of the best single method in {_below(regrets)} of {n}"
        f" cases{_most(regrets)}."
    )
    kept = (
        case["CRPS"][_PROTECTED] <= case["experts"][_BASE] + case["price"]
        for case in cases.values()
    )
    yield (
        f"The CRPS of protected exceeds that of base by at most the price in {sum(kept)} of {n} "
        "cases."
    )
    yield from _covered(cases)


def _covered(cases: Cases) -> Iterator[str]:
    """Yield what intervals cover, as given and as tracked."""
    given, tracked = _coverage(cases, _PROTECTED), _coverage(cases, _TRACKED)
    pairs = list(zip(given, tracked, strict=True))
    off = [tuple(abs(one["share"] - _LEVEL) for one in pair) for pair in pairs]
    bounds = [case["bound"] for case in cases.values()]
    within = sum(far <= bound for (_, far), bound in zip(off, bounds, strict=True))
    yield (
        f"The share of labels that tracked intervals cover is within its bound in {within} of "
        f"{len(cases)} cases. It is between {_ends(tracked)} (protected: between {_ends(given)}), "
        f"and nearer to 80 % than that of protected in {sum(far < near for near, far in off)}."
    )
    long = {key: case for key, case in cases.items() if case["labels"] > _WINDOW}
    worst, better = _worst(long, _PROTECTED), _worst(long, _TRACKED)
    if long:
        more = sum(one > other for one, other in zip(better, worst, strict=True))
        yield (
            f"Of the worst {_WINDOW} labels in sequence, tracked intervals cover more than those "
            f"of protected in {more} of {len(long)} cases; the least share is {min(better):.3f} "
            f"(protected: {min(worst):.3f})."
        )
    wider = [other["width"] / one["width"] for one, other in pairs]
    yield (
        f"Tracked intervals are {min(wider):.2f} to {max(wider):.2f} times as wide as those of "
        "protected."
    )


def _ends(rows: list[Mapping[str, float]]) -> str:
    shares = [one["share"] for one in rows]
    return f"{min(shares):.3f} and {max(shares):.3f}"


def _worst(cases: Cases, name: str) -> list[float]:
    return [one["worst"] for one in _coverage(cases, name)]


def _coverage(cases: Cases, name: str) -> list[Mapping[str, float]]:
    return [case["coverage"][name] for case in cases.values()]


def _above(case: Mapping[str, Any], name: str, other: float) -> float:
    """Return how far a CRPS is above another one, as a share of it."""
    return float(case["CRPS"][name] / other - 1.0)


def _of_points(case: Mapping[str, Any]) -> dict[str, float]:
    """Return how far the CRPS of each method of points is above that of their base."""
    losses = case["points"]
    return {name: loss / losses[_BASE] - 1.0 for name, loss in losses.items()}


def _percent(share: float) -> str:
    """Write a share of a CRPS in per cent."""
    return f"{100.0 * share:+.1f}"


def _below(shares: list[float]) -> int:
    return sum(one < 0.0 for one in shares)


def _most(shares: list[float]) -> str:
    """Write how far the worst case is above, if one is."""
    worst = max(shares)
    return f", and at most {100.0 * worst:.2g} % above it in the others" if worst > 0.0 else ""


def _best(case: Mapping[str, Any]) -> tuple[str, float]:
    """Return the name and the CRPS of the best method."""
    name = min(case["experts"], key=case["experts"].__getitem__)
    return name, case["experts"][name]


def tables(cases: Cases) -> Iterator[str]:
    """Yield three tables: CRPS with regrets, that of points, and coverage."""
    if not cases:
        return
    first = next(iter(cases.values()))
    yield "### Protected distributions\n"
    head = ["CRPS", *first["CRPS"], "regret to base", "best method", "regret to it", "price"]
    yield table(head, [_losses(key, case) for key, case in cases.items()])
    head = ["of points, % above base", *_of_points(first)]
    yield table(head, [_points(key, case) for key, case in cases.items()])
    widths = "width, protected", "width, tracked"
    head = ["covered (worst 500)", *first["coverage"], "bound", *widths]
    yield table(head, [_shares(key, case) for key, case in cases.items()])


def _losses(key: tuple[str, int], case: Mapping[str, Any]) -> list[str]:
    of, (expert, least) = case["CRPS"], _best(case)
    regrets = f"{of[_PROTECTED] - of[_BASE]:+.4f}", expert, f"{of[_PROTECTED] - least:+.4f}"
    return [_name(key), *(f"{one:.4f}" for one in of.values()), *regrets, f"{case['price']:.4f}"]


def _points(key: tuple[str, int], case: Mapping[str, Any]) -> list[str]:
    base = f"{case['points'][_BASE]:.4f}"
    above = {name: _percent(share) for name, share in _of_points(case).items()} | {_BASE: base}
    return [_name(key), *above.values()]


def _shares(key: tuple[str, int], case: Mapping[str, Any]) -> list[str]:
    rows = case["coverage"]
    cells = [f"{one['share']:.3f} ({one['worst']:.3f})" for one in rows.values()]
    widths = (f"{rows[name]['width']:.4g}" for name in (_PROTECTED, _TRACKED))
    return [_name(key), *cells, f"{case['bound']:.3f}", *widths]


def _name(key: tuple[str, int]) -> str:
    return f"{key[0]}, delay {key[1]:,}"
