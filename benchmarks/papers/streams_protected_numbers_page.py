"""The part of the page of the streams about protected distributions.

Every sentence is counted from the answers that are there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks.page import table
from benchmarks.papers.streams_cases import (
    OURS,
    Case,
    P,
    columns,
    compared,
    gaps,
    kept,
    lost,
    most_lost,
    results,
    won,
)
from benchmarks.papers.streams_rivals_intervals import CALIBRATION
from benchmarks.papers.streams_rivals_numbers import LEVEL
from benchmarks.papers.streams_steps import LAWS_OF_NUMBERS
from benchmarks.papers.streams_worst import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Answers = Mapping[tuple[str, str], Mapping[str, Any]]  # by data and law

__all__ = ["PROTOCOL", "cases", "sentences", "tables"]

PROTOCOL = f"""\
- **Protected distributions** ([what they are](../protection.md#numbers)). *late* is 100 on Bike
  sharing and 10 on the two others, which have 1,001 and 578 rows; *very late* is 1,000 and 100. *By
  label*, labels above the median of the stream are very late, and the delays of the others are
  geometric with a fifth of that as their mean, cut there. base is the normal distribution; it
  learns each label when it comes. p is `ProtectedIVAPR` of its 50 quantiles. All CRPS are exact,
  with the mass beyond the support at its ends. The promise is against the 50 quantiles of the base,
  with a CRPS within .1 % of that of the base; the price is its bound, a label. Differences are in
  per cent of the CRPS of base. *Of points*: `ProtectedIVAPR` of the means alone; its base is the
  mean plus its last 1,000 residuals.
- **Rivals of numbers** learn each label when it comes. residuals are the last 100, 300 or 1,000 on
  the mean of the base. EWMA normal has the mean and the variance of residuals, averaged at a rate
  of .02. crepes is the split conformal predictive system of the package of that name (Bostrom), of
  all labels, with residuals divided by the standard deviation of the base. Until ten labels came
  these are the base. IVAPR has all labels.
- **Rivals of intervals** of 80 %; until {CALIBRATION} labels came they have that of base. ACI is
  adaptive conformal inference (Gibbs & Candes 2021, equation 2, with their rate of .005 and last
  1,250 scores). SAOCP is strongly adaptive online conformal prediction (Bhatnagar, Wang, Xiong &
  Bai 2023, algorithm 1, with lifetimes from 8). Both are of absolute residuals. PID is conformal
  PID control (Angelopoulos, Candes & Tibshirani 2023) without a model of the scores: each end
  tracks its quantile at a rate of .1 times the range of the last 100 scores, and adds the sum x of
  its errors as K tan(x log(t) / (C t)). The authors choose K and C for each data set, so there are
  two settings, with K in units of the largest score for calibration: 10 and 5, as a configuration
  of theirs for electricity, with labels from 0 to 1, has them; and 1 and (1 - 1/log(T)) 2/pi for T
  labels, as the package conformalForecast has them. Neither allows for late labels. tracked are the
  intervals of p after a `CoverageTracker` with a slack of 100. All others have the central interval
  of their distribution. *Score* is the sum of the pinball losses of both ends, which is a tenth of
  the interval score; an empty interval is scored as the point in its middle. Covered is the share
  of labels in intervals; in brackets that of the worst {WINDOW} in sequence, or of all where there
  are fewer. The bound of tracked is on the distance of its share from 80 %. Width is a mean.
"""
_BASE, _TRACKED, _THAT = "base", "tracked", "that of "


def cases(answers: Answers) -> list[Case]:
    """Order answers by law."""
    found: dict[str, dict[str, Any]] = {law: {} for law in LAWS_OF_NUMBERS}
    for (data, law), cell in answers.items():
        found[law][data] = cell
    rest = {"loss": "CRPS", "base": _BASE, "relative": True}
    return [Case("", law, of, **rest) for law, of in found.items() if of]  # type: ignore[arg-type]


def _intervals(found: list[Case], own: str) -> list[Case]:
    return [case._replace(loss="score", own=own) for case in found]


def sentences(found: list[Case]) -> Iterator[str]:
    """Yield where p wins and where it loses, as a distribution and as an interval."""
    if not found:
        return
    yield from compared(found, "The CRPS of p", _THAT)
    yield most_lost(found)
    points = [_of_points(cell)[P] for case in found for cell in case.of.values()]
    yield (
        f"Of points, the CRPS of p is below that of base in {sum(one < 0.0 for one in points)} of "
        f"{len(points)} cells; the mean of all is {_percent(math.fsum(points) / len(points))} %."
    )
    yield kept(found, "The CRPS of p", _THAT)
    for name, own in ((P, "p"), (_TRACKED, "tracked")):
        yield from compared(_intervals(found, name), f"The interval score of {own}", _THAT)
    given = gaps(_intervals(found, _TRACKED), lambda _: lambda _: P)
    yield f"That of tracked is below that of p in {won(given)}{lost(given, found[0].units)}."
    yield from _covered(found)


def _covered(found: list[Case]) -> Iterator[str]:
    """Yield what intervals cover, as given and as tracked."""
    cells = [cell for case in found for cell in case.of.values()]
    given, tracked = ([cell["methods"][name] for cell in cells] for name in (P, _TRACKED))
    pairs = list(zip(given, tracked, strict=True))
    off = [tuple(abs(one["share"] - LEVEL) for one in pair) for pair in pairs]
    within = sum(far <= cell["bound"] for (_, far), cell in zip(off, cells, strict=True))
    yield (
        f"The share of labels that tracked intervals cover is within its bound in {within} of "
        f"{len(cells)} cells. It is between {_ends(tracked)} (p: between {_ends(given)}), "
        f"and nearer to 80 % than that of p in {sum(far < near for near, far in off)}."
    )
    long = [pair for pair, cell in zip(pairs, cells, strict=True) if cell["labels"] > WINDOW]
    if long:
        more = sum(other["least"] > one["least"] for one, other in long)
        worst, better = (min(pair[k]["least"] for pair in long) for k in (0, 1))
        yield (
            f"Of the worst {WINDOW} labels in sequence, tracked intervals cover more than those "
            f"of p in {more} of {len(long)} cells; the least share is {better:.3f} "
            f"(p: {worst:.3f})."
        )
    wider = [other["width"] / one["width"] for one, other in pairs]
    yield (
        f"Tracked intervals are {min(wider):.2f} to {max(wider):.2f} times as wide as those of p."
    )


def _ends(rows: list[Mapping[str, float]]) -> str:
    shares = [one["share"] for one in rows]
    return f"{min(shares):.3f} and {max(shares):.3f}"


def _of_points(cell: Mapping[str, Any]) -> dict[str, float]:
    """Return how far the CRPS of each method of points is above that of their base."""
    losses = cell["points"]
    return {name: loss / losses[_BASE] - 1.0 for name, loss in losses.items()}


def _percent(share: float) -> str:
    """Write a share of a loss in per cent."""
    return f"{100.0 * share:+.1f}" if share else "0"


def tables(found: list[Case]) -> Iterator[str]:
    """Yield a table of p and the best others, that of points, and for each law two of all."""
    if not found:
        return
    yield "## Protected distributions\n"
    cells = [(case, data) for case in found for data in case.of]
    rows = [[f"{data}, {case.title}", *results(case, data)] for case, data in cells]
    yield "### Protected distributions, by stream\n"
    yield table(["CRPS", *columns(_BASE)], rows)
    first = next(iter(found[0].of.values()))
    rows = [[f"{data}, {case.title}", *_points(case.of[data])] for case, data in cells]
    yield "### Protected distributions of points\n"
    yield table(["of points, % above base", *_of_points(first)], rows)
    head = ["score of 80 %", _BASE, "p", _TRACKED, "best fixed rival", "p - it", "tracked - it"]
    rows = [[f"{data}, {case.title}", *_scores(case, data)] for case, data in cells]
    yield "### Intervals of protected distributions\n"
    yield table([*head, "p loses to", "tracked loses to"], rows)
    for case in found:
        yield f"### Protected distributions, {case.title}\n"
        long = [data for data, cell in case.of.items() if cell["labels"] > WINDOW]
        worst = [f"worst {WINDOW}, %, {data}" for data in long]
        head = ["CRPS", *case.of, "mean, % above base", *worst]
        names = sorted(case.names, key=case.mean)
        yield table(head, [_method(case, name, long) for name in names])
        yield _interval_table(case._replace(loss="score"))


def _points(cell: Mapping[str, Any]) -> list[str]:
    above = {name: _percent(share) for name, share in _of_points(cell).items()}
    return [*(above | {_BASE: f"{cell['points'][_BASE]:.4f}"}).values()]


def _scores(case: Case, data: str) -> list[str]:
    """Write the scores of intervals on a stream, and all rivals that did better."""
    ours = [*_intervals([case], P), *_intervals([case], _TRACKED)]
    fixed, names = ours[0].fixed(), (_BASE, *OURS)
    scores = [f"{ours[0].score(data, name):#.4g}" for name in names]
    above = [one.units(one.gap(data, one.score(data, fixed))) for one in ours]
    return [*scores, fixed, *above, *(one.better(data) for one in ours)]


def _method(case: Case, name: str, long: list[str]) -> list[str]:
    """Write the CRPS of a method, and what its worst labels lose to base."""
    worst = [case.worst(data, name) for data in long]
    losses = [f"{case.score(data, name):#.4g}" for data in case.of]
    means = case.mean(name) - 1.0, *worst
    return [name, *losses, *map(_percent, means)]


def _interval_table(case: Case) -> str:
    """Write the scores of intervals, what they cover, and their width."""
    kinds = "score", "covered", "width"
    head = [f"{kind}, {data}" for kind in kinds for data in case.of]
    rows = [_interval(case, name) for name in sorted(case.names, key=case.mean)]
    bounds = ["bound of tracked", *[""] * (len(case.of) + 1)]
    bounds += [f"{cell['bound']:.3f}" for cell in case.of.values()] + [""] * len(case.of)
    return table(["80 %", "mean, % above base", *head], [*rows, bounds])


def _interval(case: Case, name: str) -> list[str]:
    rows = [cell["methods"][name] for cell in case.of.values()]
    mean = case.mean(name) - 1.0
    scores = [f"{one['score']:#.4g}" for one in rows]
    covered = [f"{one['share']:.3f} ({one['least']:.3f})" for one in rows]
    widths = [f"{one['width']:#.4g}" for one in rows]
    return [name, _percent(mean), *scores, *covered, *widths]
