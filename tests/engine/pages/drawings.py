"""Reads a figure: its elements, and the values of coordinates by the texts of its own axes."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree as ET

__all__ = ["Circle", "Drawing", "Points"]

Points = list[tuple[float, float]]

PATH_NUMBER = re.compile(r"-?[\d.]+")


class Circle(NamedTuple):
    """A dot: its centre, radius and title."""

    x: float
    y: float
    radius: float
    title: str


class Drawing:
    """The parts of an element ``<svg>``."""

    def __init__(self, svg: str) -> None:
        self.root = ET.fromstring(svg)  # noqa: S314 - made by this project
        self.label = self.root.attrib["aria-label"]
        _, _, self.width, self.height = map(float, self.root.attrib["viewBox"].split())

    def texts(self) -> list[str]:
        """Return all texts with plain spaces."""
        return [plain("".join(one.itertext())) for one in self.root.iter("text")]

    def circles(self, fill: str) -> list[Circle]:
        """Return the dots of a colour."""
        return [
            Circle(
                float(one.attrib["cx"]),
                float(one.attrib["cy"]),
                float(one.attrib["r"]),
                plain(one.findtext("title")),
            )
            for one in self.root.iter("circle")
            if one.attrib["fill"] == f"var(--{fill})"
        ]

    def rectangles(self, fill: str) -> list[tuple[float, float, float, float]]:
        """Return left, top, right and bottom of the rectangles of a colour."""
        found = []
        for one in self.root.iter("rect"):
            if one.attrib["fill"] == f"var(--{fill})":
                x, y, width, height = (
                    float(one.attrib[name]) for name in ("x", "y", "width", "height")
                )
                found.append((x, y, x + width, y + height))
        return found

    def paths(self, *, stroke: str = "", fill: str = "none") -> list[list[Points]]:
        """Return the paths of a colour, each as its subpaths of points."""
        return [
            [points(part) for part in one.attrib["d"].split("M")[1:]]
            for one in self.root.iter("path")
            if (stroke and one.attrib.get("stroke") == f"var(--{stroke})")
            or one.attrib["fill"] == f"var(--{fill})"
        ]

    def value_up(self, y: float) -> float:
        """Return the number at a height, by the texts on the left."""
        ticks = [
            (float(one.attrib["y"]) - 4, number(one.text or ""))
            for one in self.root.iter("text")
            if one.attrib.get("text-anchor") == "end" and re.search(r"^.?\d", one.text or "")
        ]
        return between(ticks, y)

    def place_along(self, values: dict[str, float], value: float) -> float:
        """Return the place of a value, by two texts below whose values are known."""
        ticks = [
            (values[plain(one.text)], float(one.attrib["x"]))
            for one in self.root.iter("text")
            if plain(one.text) in values and one.attrib.get("text-anchor") == "middle"
        ]
        return between(ticks, value)

    def coordinates(self) -> list[tuple[float, float]]:
        """Return the corners of all shapes."""
        found = [point for path in self.root.iter("path") for point in points(path.attrib["d"])]
        for one in self.root.iter("circle"):
            x, y, radius = (float(one.attrib[name]) for name in ("cx", "cy", "r"))
            found += [(x - radius, y - radius), (x + radius, y + radius)]
        for one in self.root.iter("rect"):
            x, y, width, height = (
                float(one.attrib[name]) for name in ("x", "y", "width", "height")
            )
            assert width >= 0
            assert height >= 0
            found += [(x, y), (x + width, y + height)]
        return found


def plain(text: str | None) -> str:
    """Return a text with plain spaces."""
    return (text or "").replace("\N{NO-BREAK SPACE}", " ")


def number(text: str) -> float:
    """Read the number at the beginning of a text."""
    return float(re.sub(r"[^\d.-]", "", text.replace("\N{MINUS SIGN}", "-")))


def points(path: str) -> list[tuple[float, float]]:
    """Return the points of a path of straight lines."""
    numbers = [float(one) for one in PATH_NUMBER.findall(path)]
    return [*zip(numbers[::2], numbers[1::2], strict=True)]


def between(ticks: list[tuple[float, float]], at: float) -> float:
    """Return the value on the straight line through the first and the last tick."""
    (x0, y0), (x1, y1) = ticks[0], ticks[-1]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
