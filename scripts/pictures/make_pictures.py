"""Draws the pictures of the pages into docs/images: `python scripts/pictures/make_pictures.py`.

What a picture shows is computed from the labels on the page, by a scan of its own
that knows nothing of the core.
"""  # noqa: INP001 - a script

from __future__ import annotations

from itertools import accumulate, pairwise

from band import draw_band
from life import draw_life
from svg import P, Picture, Plot, slope

# The worked example, in score order, and the longer one of the page: scores 1 to 20.
SMALL = [(0.1, 0), (0.35, 0), (0.4, 1), (0.8, 1)]
LONG = [0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1]
QUERY = 8  # the query of the longer example comes after this many observations
FOUND = ["this end: searched on the stored hull", "this end: within the block"]
BUCKET = 5  # groups in a bucket of the pictures; the real ones hold many more


def diagram(labels: list[int]) -> list[P]:
    """Sum up labels in score order."""
    return [P(x, y) for x, y in enumerate(accumulate(labels, initial=0))]


def lower_hull(points: list[P]) -> list[P]:
    """List the vertices of the lower hull: the scan of Graham."""
    hull: list[P] = []
    for p in points:
        while len(hull) > 1 and slope(*hull[-2:]) >= slope(hull[-1], p):
            hull.pop()
        hull.append(p)
    return hull


def with_query(points: list[P], before: int, label: int) -> list[P]:
    """Put a query into a diagram after the first `before` observations; the others move."""
    return [*points[: before + 1], *(P(x + 1, y + label) for x, y in points[before:])]


def edge_over(hull: list[P], x: float) -> tuple[P, P]:
    """Find the edge that covers a place: the block there."""
    return next((a, b) for a, b in pairwise(hull) if a.x <= x < b.x)


def draw_diagram() -> None:
    """Draw the worked example: diagram, hull, blocks."""
    points = diagram([label for _, label in SMALL])
    hull = lower_hull(points)
    picture = Picture(720, 300, "A cumulative sum diagram of four observations and its lower hull")
    plot = Plot(picture, P(70, 235), P(130, 90), P(4, 2))
    plot.line(hull, "hull", 3.5)
    plot.dots(points, "ink")
    plot.dots(hull, "hull", 5)
    plot.line([P(3, 0), P(3, 2)], "zero", 1.5, "dashed")
    plot.text(P(3, 2), 0, -8, "query .5", "zero")
    for j, (score, label) in enumerate(SMALL):
        plot.text(P(j + 0.5, 0), 0, 26, f"score {score:g}".replace("0.", "."))
        plot.text(P(j + 0.5, 0), 0, 44, f"label {label}", "soft")
    for j, p in enumerate(points):
        name = f"P{'₀₁₂₃₄'[j]} = ({p.x:.0f}, {p.y:.0f})"
        plot.text(p, (6, 0, -6, -10, -10)[j], -10, name)
    plot.text(P(1, 0), 0, -40, "block of value 0/2 = 0", "hull")
    plot.text(P(3.4, 1), 14, 0, "block of value 2/2 = 1", "hull")
    picture.save("diagram.svg")


def draw_query() -> None:
    """Draw the worked example with the query, with either label."""
    points = diagram([label for _, label in SMALL])
    picture = Picture(720, 300, "The query with label 0 and with label 1: the two tangents")
    for label, left, colour in ((0, 30, "zero"), (1, 390, "one")):
        plot = Plot(picture, P(left, 258), P(56, 62), P(5, 3))
        extended = with_query(points, 3, label)
        a, b = edge_over(lower_hull(extended), 3)
        plot.line(lower_hull(extended), "hull", 2)
        for old, new in zip(points[3:], extended[4:], strict=True):
            picture.arrow(plot.at(old), plot.near(new, -6, 5 * label), "soft")
        plot.line([a, b], colour, 4.5)
        plot.dots(points[:4], "ink")
        plot.dots(points[4:], "soft", hollow=True)
        plot.dots(extended[4:], colour, 5)
        plot.text(P(2.35, 3), 0, -14, f"if its label were {label}", colour)
        middle = P((a.x + b.x) / 2, (a.y + b.y) / 2)
        plot.text(middle, -10, -16, f"p{'₀₁'[label]} = {slope(a, b)}", colour)
        for j, p in enumerate(points[:4]):
            plot.text(p, -6 if p.y else 0, -9 if p.y else 19, f"P{'₀₁₂₃'[j]}", "soft")
        plot.text(extended[4], 6, 18, f"P₃ + (1, {label})", colour)
        plot.text(extended[5], -10, -12 + 8 * label, f"P₄ + (1, {label})", colour)
    picture.save("query.svg")


def draw_label() -> None:
    """Draw what one label changes in the longer example, and where the tangent's ends are."""
    points = diagram(LONG)
    hull = lower_hull(points)
    block = edge_over(hull, QUERY)
    picture = Picture(720, 620, "What one label changes: its block and a neighbour")
    for label, bottom, colour in ((0, 275, "zero"), (1, 585, "one")):
        plot = Plot(picture, P(36, bottom), P(29.5, 23), P(21, 10))
        extended = with_query(points, QUERY, label)
        after = lower_hull(extended)
        moved = [P(x + (x > QUERY), y + label * (x > QUERY)) for x, y in hull]
        a, b = edge_over(after, QUERY)
        plot.band(block[0].x, block[1].x + 1)
        plot.text(P(block[0].x, 10), 8, 18, f"the block of 8.5, fitted {slope(*block)}", "soft")
        plot.line(moved, "soft", 1.5, "dashed")
        plot.line(after, "hull", 2.5)
        for edge in (e for e in pairwise(after) if e not in set(pairwise(moved))):
            plot.line(list(edge), colour, 3)
        plot.dots(extended, "ink", 2.5)
        picture.arrow(plot.at(extended[QUERY]), plot.at(extended[QUERY + 1]), colour, 2)
        plot.dots([p for p in moved if p not in after], "soft", 5, hollow=True)
        plot.dots([a, b], colour, 5.5)
        plot.values(after)
        words = f"learned at 8.5 with label {label}: p{'₀₁'[label]} = {slope(a, b)}"
        plot.text(P(0, 10), 75, -10, words, colour)
        plot.text(a, 10, 19 if label == 0 else 15, FOUND[label], colour)
        plot.text(b, *((12, 24) if label == 0 else (-10, -10)), FOUND[1 - label], colour)
    picture.save("label.svg")


def draw_tree() -> None:
    """Draw the longer example in four buckets, with the bridges and the tree that holds them."""
    points = diagram(LONG)
    starts = range(0, len(LONG), BUCKET)
    buckets = [points[s + 1 : s + 1 + BUCKET] for s in starts]
    buckets[0].insert(0, points[0])  # the sentinel's
    picture = Picture(720, 530, "Four buckets, their hulls, and the three bridges that join them")
    plot = Plot(picture, P(40, 250), P(31, 22), P(20, 9.5))
    for k, start in enumerate(starts):
        if k % 2 == 0:
            plot.band(start + (0.5 if k else 0), start + BUCKET + 0.5)
    for bucket in buckets:
        plot.line(lower_hull(bucket), "soft", 5)
    halves = [buckets[0] + buckets[1], buckets[2] + buckets[3]]
    crossings = [
        (halves[0], BUCKET, "one"),
        (halves[1], 3 * BUCKET, "one"),
        (points, 2 * BUCKET, "zero"),
    ]
    ends = [edge_over(lower_hull(part), x + 0.5) for part, x, _ in crossings]
    for (_, _, colour), edge in zip(crossings, ends, strict=True):
        plot.line(list(edge), colour, 3)
    plot.dots(points, "ink", 2.5)
    for (_, _, colour), edge in zip(crossings, ends, strict=True):
        plot.dots(list(edge), colour, 5)
        plot.values(list(edge), colour)
    draw_nodes(picture, plot, ends)
    picture.save("tree.svg")


def draw_nodes(picture: Picture, plot: Plot, ends: list[tuple[P, P]]) -> None:
    """Draw the tree below its diagram."""
    centres = [plot.at(P(k * BUCKET + 3, 0)).x for k in range(4)]
    joints = [P((centres[0] + centres[1]) / 2, 385), P((centres[2] + centres[3]) / 2, 385)]
    root = P((joints[0].x + joints[1].x) / 2, 315)
    for joint, (left, right) in zip(joints, (centres[:2], centres[2:]), strict=True):
        picture.line([root, joint], "soft")
        picture.line([joint, P(left, 455)], "soft")
        picture.line([joint, P(right, 455)], "soft")
    for at, edge, colour in zip((*joints, root), ends, ("one", "one", "zero"), strict=True):
        picture.box(P(at.x - 82, at.y - 17), P(164, 34), "paper", colour, radius=17)
        words = f"bridge from {edge[0].x:.0f} to {edge[1].x:.0f}"
        picture.text(P(at.x, at.y + 5), words, colour)
    for k, x in enumerate(centres):
        picture.box(P(x - 62, 440), P(124, 54), "band", "soft", radius=6)
        first = k * BUCKET + 1
        picture.text(P(x, 462), f"bucket {'ABCD'[k]}")
        picture.text(P(x, 482), f"scores {first} to {first + BUCKET - 1}", "soft")
    picture.text(P(360, 518), "each real bucket holds many more groups than five", "soft", 12)


def draw_slopes() -> None:
    """Draw what slopes prove: that a bridge still holds, that a piece need not be opened."""
    picture = Picture(720, 320, "What the slopes next to a vertex prove")
    picture.text(P(180, 28), "Is this still the bridge?", bold=True)
    points = diagram(LONG)
    u, v = edge_over(lower_hull(points), QUERY)
    left, right = lower_hull(points[:11]), lower_hull(points[11:])
    unit = P(22, 34)

    def at(p: P) -> P:
        return P(p.x * unit.x - 40, 268 - p.y * unit.y)

    i, j = left.index(u), right.index(v)
    for edge, colour, dash in (
        (left[i - 1 : i + 1], "hull", "solid"),
        (left[i : i + 2], "soft", "dashed"),
        (right[j - 1 : j + 1], "soft", "dashed"),
        (right[j : j + 2], "hull", "solid"),
    ):
        picture.line([at(p) for p in edge], colour, 2.5, dash)
        middle = P((at(edge[0]).x + at(edge[1]).x) / 2, (at(edge[0]).y + at(edge[1]).y) / 2)
        picture.text(P(middle.x - 8, middle.y - 9), str(slope(*edge)), colour)
        for p in edge:
            picture.dot(at(p), colour, 3.5)
    picture.line([at(u), at(v)], "zero", 4)
    for p, name in ((u, "u"), (v, "v")):
        picture.dot(at(p), "zero", 5.5)
        picture.text(P(at(p).x + 2, at(p).y + 21), name, "zero", 14, bold=True)
    before = max(slope(*left[i - 1 : i + 1]), slope(*right[j - 1 : j + 1]))
    after = min(slope(*left[i : i + 2]), slope(*right[j : j + 2]))
    picture.text(P((at(u).x + at(v).x) / 2 + 20, 204), f"{slope(u, v)}", "zero", bold=True)
    picture.text(P(180, 304), f"Yes: {before} < {slope(u, v)} < {after}")
    draw_piece(picture)
    picture.save("slopes.svg")


def draw_piece(picture: Picture) -> None:
    """Draw a piece that is known from one of its vertices (a sketch: no data)."""
    picture.line([P(360, 20), P(360, 300)], "soft", 1)
    picture.text(P(540, 28), "Must this piece be opened?", bold=True)
    begin, end, top = P(420, 120), P(660, 74), P(535, 140)

    def tangent(x: float) -> P:
        return P(x, 255 - (x - 390) * 0.28)

    picture.box(P(begin.x, 50), P(end.x - begin.x, 220), "band")
    picture.line([tangent(385), tangent(700)], "zero", 3)
    hull = [P(420, 76), P(455, 118), P(490, 134), top, P(590, 120), P(635, 88), P(660, 52)]
    picture.line(hull, "soft", 2, "dotted")
    picture.line([P(begin.x, top.y - (top.x - begin.x) * 0.03), top], "hull", 2, "dashed")
    picture.line([top, P(end.x, top.y - (end.x - top.x) * 0.36)], "hull", 2, "dashed")
    picture.dot(top, "hull", 5.5)
    picture.text(P(top.x + 6, top.y + 22), "vertex stored in a node", "hull")
    picture.text(P(540, 66), "its points, unseen", "soft", 12)
    picture.text(P(470, 256), "tangent", "zero")
    picture.text(P(540, 304), "No: the slopes keep its hull above the line")


def draw_bucket() -> None:
    """Draw bucket B of the longer example as it lies in memory."""
    points = diagram(LONG)
    start, inside = points[BUCKET], points[BUCKET + 1 : 2 * BUCKET + 1]
    hull = [inside.index(p) for p in lower_hull(inside)]
    columns = [
        ("scores", [f"{p.x:.0f}" for p in inside], 34, "ink"),
        ("x, relative", [f"{p.x - start.x:.0f}" for p in inside], 26, "hull"),
        ("y, relative", [f"{p.y - start.y:.0f}" for p in inside], 26, "one"),
        ("vertices", [str(i) for i in hull], 20, "zero"),
    ]
    picture = Picture(720, 150, "One bucket is one block of memory")
    x = 42.0
    for name, cells, width, colour in columns:
        picture.text(P(x, 42), name, colour, 13, "start")
        for cell in [*cells, *[""] * (len(inside) + 1 - len(cells))]:
            picture.box(P(x, 54), P(width, 34), "band" if cell else "paper", "soft")
            picture.text(P(x + width / 2, 76), cell, colour)
            x += width
    picture.text(P(360, 122), "bucket B, one block of memory; blank cells are room to grow", "soft")
    picture.save("bucket.svg")


def main() -> None:
    """Draw all of them."""
    draw_diagram()
    draw_query()
    draw_label()
    draw_tree()
    draw_slopes()
    draw_bucket()
    draw_life()
    draw_band()


if __name__ == "__main__":
    main()
