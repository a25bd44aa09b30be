"""Draws a band of predictive CDFs, for regression.md.

As of `make_pictures`; the isotonic fit at the query is taken from its definition,
the largest over the places before it of the smallest mean from there to a place after it.
"""  # noqa: INP001 - next to a script

from __future__ import annotations

import random
from typing import NamedTuple

from svg import P, Picture

__all__ = ["draw_band"]

LABELS = 40
QUERY = 6.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 700.0, 50.0, 300.0  # of the axes on the paper
LOW, HIGH = -2.0, 14.0  # of the labels


class Band(NamedTuple):
    """Both CDFs and their merge before the first threshold and from each one on."""

    thresholds: list[float]
    lower: list[float]
    upper: list[float]
    merged: list[float]


def observations() -> list[tuple[float, float]]:
    """Draw scores with labels; their spread grows with the score, in score order."""
    rng = random.Random(4)  # noqa: S311 - a picture
    scores = [rng.uniform(0.0, 10.0) for _ in range(LABELS)]
    return sorted((s, s + rng.gauss(0.0, 0.5 + s / 10.0)) for s in scores)


def fitted(above: list[int], at: int) -> float:
    """Fit the isotonic regression, and give its value at one place."""

    def mean(i: int, j: int) -> float:
        return sum(above[i : j + 1]) / (j - i + 1)

    ends = range(at, len(above))
    return max(min(mean(i, j) for j in ends) for i in range(at + 1))


def band() -> Band:
    """Add the query with either label at every threshold."""
    pairs = observations()
    at = sum(score < QUERY for score, _ in pairs)
    thresholds = sorted(label for _, label in pairs)
    lower, upper = [], []
    for t in (LOW - 100.0, *thresholds):
        above = [int(label > t) for _, label in pairs]
        p0, p1 = (fitted([*above[:at], own, *above[at:]], at) for own in (0, 1))
        lower.append(1.0 - p1)
        upper.append(1.0 - p0)
    merged = [u / (u + 1.0 - low) for low, u in zip(lower, upper, strict=True)]
    return Band(thresholds, lower, upper, merged)


def at(t: float, height: float) -> P:
    """Place of a label and a probability on the paper."""
    x = LEFT + (t - LOW) / (HIGH - LOW) * (RIGHT - LEFT)
    return P(x, BOTTOM - height * (BOTTOM - TOP))


def steps(thresholds: list[float], heights: list[float]) -> list[P]:
    """Go along a step function from one end of the axis to the other."""
    points = [at(LOW, heights[0])]
    for t, before, after in zip(thresholds, heights, heights[1:], strict=False):
        points += [at(t, before), at(t, after)]
    return [*points, at(HIGH, heights[-1])]


def draw_band() -> None:
    """Draw the band at one query, with its masses at infinity."""
    found = band()
    picture = Picture(720, 360, "A band of two predictive CDFs, and the CDF they are merged to")
    for tenths in range(0, 11, 2):
        left = at(LOW, tenths / 10)
        picture.line([left, at(HIGH, tenths / 10)], "band", 1)
        picture.text(P(left.x - 8, left.y + 4), f"{tenths / 10:g}", "soft", 12, "end")
    for t in range(int(LOW), int(HIGH) + 1, 2):
        picture.text(P(at(t, 0.0).x, BOTTOM + 20), f"{t}", "soft", 12)
    picture.text(P((LEFT + RIGHT) / 2, BOTTOM + 44), "label t")
    picture.text(P(LEFT - 8, TOP - 22), "probability of a label of at most t", "soft", 12, "start")
    lower, upper = (steps(found.thresholds, heights) for heights in (found.lower, found.upper))
    picture.area([*lower, *reversed(upper)], "hull")
    for points in (lower, upper):
        picture.line(points, "hull", 1)
    picture.line(steps(found.thresholds, found.merged), "hull", 3)
    left, right = at(LOW, found.merged[0]), at(HIGH, found.merged[-1])
    below, above = found.merged[0], 1.0 - found.merged[-1]
    picture.text(
        P(left.x + 6, left.y - 22), f"{below:.3f} is below all labels", "zero", 12, "start"
    )
    picture.text(P(right.x, right.y + 24), f"{above:.3f} is above all labels", "zero", 12, "end")
    picture.text(at(3.1, 0.42), "upper CDF", "hull", 13, "end")
    picture.text(at(8.6, 0.42), "lower CDF", "hull", 13, "start")
    picture.text(at(8.6, 0.32), "between them, bold: merged", "hull", 13, "start")
    picture.save("band.svg")
