"""The figures of docs/paper.md, as SVG that can be read in grey, light or dark.

    python -m benchmarks.paper_figures

It draws a diagram with its tangents, the costs that docs/benchmarks.md has, what delay does to one
weight vector and to lanes, and a scorer that breaks.
"""

from __future__ import annotations

import math
import sys
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.broken import DELAY, above_raw
from benchmarks.paper_checks import Diagram, Found, contradicted, shared, tangents
from benchmarks.rivals import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Place = tuple[float, float]
    Line = Sequence[Place]

__all__ = ["costs", "main", "pictures"]

FOLDER = ROOT / "docs" / "images"
LABELS = [0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1]
QUERY = 8.5
WAITING, BLOCKS = 10, 40
ROUGH = 50  # observations between two points of a curve
_STYLE = """<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2933}
.paper{fill:#ffffff}.s{stroke:#1f2933;fill:none}.f{fill:#1f2933}.soft{stroke:#66727f;fill:none}
.band{fill:#e3e9f0}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#161b22}.s{stroke:#e6edf3}
.f{fill:#e6edf3}.soft{stroke:#8b98a7}.band{fill:#2a3441}}
</style>"""
_DASHES = "", "7 4", "2 3", "9 3 2 3"


class Axis(NamedTuple):
    """An axis: its words, its ends, and the marks with their texts."""

    label: str
    low: float
    high: float
    marks: Mapping[float, str]


class Panel(NamedTuple):
    """A pair of axes on a part of the paper."""

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float

    def at(self, place: Place) -> Place:
        """Return where a point lies on the paper."""
        across = (place[0] - self.x.low) / (self.x.high - self.x.low)
        up = (place[1] - self.y.low) / (self.y.high - self.y.low)
        return self.left + across * self.width, self.top + (1.0 - up) * self.height

    def frame(self) -> Iterable[str]:
        """Draw the axes."""
        right, low = self.left + self.width, self.top + self.height
        yield _path([(self.left, self.top), (self.left, low), (right, low)], "soft", 1.0)
        for value, words in self.x.marks.items():
            yield _text((self.at((value, 0.0))[0], low + 15), words, "middle", 11)
        for value, words in self.y.marks.items():
            place = self.at((self.x.low, value))
            yield _text((self.left - 6, place[1] + 4), words, "end", 11)
        yield _text((self.left + self.width / 2, low + 32), self.x.label, "middle", 12)
        yield _text((self.left - 30, self.top - 10), self.y.label, "start", 12)

    def line(self, points: Line, dash: str = "", width: float = 2.0, kind: str = "s") -> str:
        """Draw a line through points."""
        return _path([self.at(one) for one in points], kind, width, dash)

    def dots(self, points: Line, size: float = 3.0) -> str:
        """Draw dots."""
        places = (self.at(one) for one in points)
        return "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" class="f"/>' for x, y in places
        )

    def words(self, place: Place, words: str, anchor: str = "start") -> str:
        """Write at a point."""
        return _text(self.at(place), words, anchor, 12)


def _path(points: Line, kind: str, width: float, dash: str = "") -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{joined}" class="{kind}" stroke-width="{width}"{dashes}/>'


def _text(at: Place, words: str, anchor: str, size: int) -> str:
    place = f'x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"


def _page(title: str, width: int, height: int, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    paper = f'<rect width="{width}" height="{height}" rx="6" class="paper"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", _STYLE, paper, *parts, "</svg>", ""])


def _marks(*values: float) -> dict[float, str]:
    return {value: f"{value:,g}".replace("-", "\N{MINUS SIGN}") for value in values}


def diagram() -> str:
    """Draw the stored hull and both tangents of a query."""
    scores = np.arange(1, len(LABELS) + 1, dtype=np.float64)
    drawn = Diagram.of(scores, np.array(LABELS, np.int64))
    parts: list[str] = []
    for label, found in enumerate(tangents(drawn, QUERY)):
        x = Axis("observations", 0.0, 21.0, _marks(0, 5, 10, 15, 20))
        y = Axis("labels 1", 0.0, 10.0, _marks(0, 5, 10))
        panel = Panel(x, y, 50.0 + 355.0 * label, 34.0, 285.0, 190.0)
        parts += _tangent(panel, drawn, found, label)
    title = "The stored hull, and the tangents of a query with label 0 and with label 1"
    return _page(title, 720, 264, parts)


def _tangent(panel: Panel, drawn: Diagram, found: Found, label: int) -> Iterable[str]:
    points = [*zip(drawn.x.tolist(), drawn.y.tolist(), strict=True)]
    i = int(np.searchsorted(drawn.scores, QUERY))
    left = max(k for k in drawn.hull if k <= i)
    right = min(k for k in drawn.hull if k > i)
    low, high = (panel.at((points[k][0] + step, 0.0))[0] for k, step in ((left, 0), (right, 1)))
    size = f'width="{high - low:.1f}" height="{panel.height}"'
    yield f'<rect x="{low:.1f}" y="{panel.top}" {size} class="band"/>'
    yield from panel.frame()
    yield panel.line([points[k] for k in drawn.hull], width=1.2, kind="soft")
    yield panel.dots(points[: i + 1], 2.5)
    moved = [(x + 1, y + label) for x, y in points[i:]]
    yield "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.8" class="s" stroke-width="1.2"/>'
        for x, y in map(panel.at, moved)
    )
    a, c = found.ends
    ends = [points[a], (points[c][0] + 1, points[c][1] + label)]
    yield panel.line(ends, width=2.6)
    middle = (ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2
    divisor = math.gcd(found.rise, found.run)
    words = f"p{'₀₁'[label]} = {found.rise // divisor}/{found.run // divisor}"
    yield panel.words((middle[0] - 0.4, middle[1] + 1.9), words, "end")
    yield panel.words((points[left][0], 9.3), "L", "middle")
    yield panel.words((points[right][0] + 1, 9.3), "R", "middle")


def costs() -> dict[str, dict[int, float]]:
    """Read the microseconds an event of each contender from docs/benchmarks.md."""
    text = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    section = text.split("## Against the alternatives")[1]
    head, _, *rows = section[section.index("| µs") :].split("\n\n")[0].splitlines()
    sizes = [int("".join(filter(str.isdigit, cell))) for cell in head.split("|")[2:-1]]
    found = {}
    for row in rows:
        name, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        numbers = ["".join(cell.split("(")[0].split()) for cell in cells]
        known = zip(sizes, numbers, strict=True)
        found[name] = {n: float(cost) for n, cost in known if cost != "\N{EM DASH}"}
    return found


def cost() -> str:
    """Draw the costs against the number of labels, both logarithmic."""
    x = Axis("labels, powers of ten", 3.0, 6.0, _marks(3, 4, 5, 6))
    units = {0.0: "1 µs", 2.0: "100 µs", 4.0: "10 ms", 6.0: "1 s"}
    panel = Panel(x, Axis("time of a prediction and its label", -1.0, 6.5, units), 60, 34, 360, 215)
    parts = [*panel.frame()]
    lowest = -math.inf
    shown = {name: curve for name, curve in costs().items() if name != "abers reference"}
    ends = sorted(shown.items(), key=lambda item: [*item[1].values()][-1], reverse=True)
    for number, (name, curve) in enumerate(ends):
        points = [(math.log10(n), math.log10(one)) for n, one in curve.items()]
        parts += [panel.line(points, _DASHES[number % len(_DASHES)]), panel.dots(points)]
        place = panel.at(points[-1])
        lowest = max(place[1] + 4, lowest + 16)
        parts.append(_text((panel.left + panel.width + 12, lowest), name, "start", 12))
    return _page("Time of a prediction and its label, by the number of labels", 600, 289, parts)


def delay() -> str:
    """Draw the loss above raw against an adversary, of one weight vector and of lanes."""
    above = shared(WAITING, BLOCKS)
    lanes = contradicted(WAITING, BLOCKS)
    bound = WAITING * math.log(4.0)
    x = Axis(f"blocks of {WAITING} labels", 0.0, float(BLOCKS), _marks(0, 10, 20, 30, 40))
    y = Axis("log loss above raw, nats", -200.0, 250.0, _marks(-200, -100, 0, 100, 200))
    panel = Panel(x, y, 60, 34, 360, 200)
    curves = {"one weight vector": above, "lanes": lanes, "C ln 4": [bound] * BLOCKS}
    parts = [*panel.frame()]
    for dash, (name, values) in zip(_DASHES, curves.items(), strict=False):
        points = [(float(k + 1), float(value)) for k, value in enumerate(values)]
        parts.append(panel.line(points, dash))
        parts.append(
            _text((panel.left + panel.width + 10, panel.at(points[-1])[1] + 4), name, "start", 12)
        )
    return _page("Log loss above raw, where labels contradict the forecast", 580, 274, parts)


def broken() -> str:
    """Draw the loss above raw of a scorer that breaks and recovers."""
    x = Axis("observations", 0.0, 9_000.0, _marks(0, 3_000, 6_000, 9_000))
    y = Axis("log loss above raw, nats", -2_500.0, 500.0, _marks(-2_000, -1_000, 0))
    panel = Panel(x, y, 60, 34, 360, 200)
    parts = [*panel.frame()]
    for dash, (name, total) in zip(("7 4", ""), above_raw().items(), strict=True):
        points = [(float(n), float(total[n - 1])) for n in range(ROUGH, len(total) + 1, ROUGH)]
        parts.append(panel.line(points, dash))
        parts.append(
            _text((panel.left + panel.width + 10, panel.at(points[-1])[1] + 4), name, "start", 12)
        )
    title = f"A scorer that breaks at 3,000 and recovers at 6,000; labels are {DELAY} late"
    return _page(title, 580, 274, parts)


def pictures() -> dict[str, str]:
    """Return the figures by the names of their files."""
    made = {"diagram": diagram, "cost": cost, "delay": delay, "broken": broken}
    return {f"paper_{name}.svg": draw() for name, draw in made.items()}


def main() -> int:
    """Write the figures."""
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
