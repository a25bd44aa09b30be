"""The results of runs, a line of JSON a section: the pages are made of them.

A section that is measured anew replaces its line, so a whole measurement can be made in parts. Each
line has its date, its machine and its load, since times of different runs do not compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchmarks.page import Key, Section
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    Value = tuple[str, str, int, float, float, float]


class Run(msgspec.Struct, frozen=True):
    """When, where and for how long a section was measured."""

    date: str
    seconds: float
    load: tuple[float, float]  # of a minute, before and after
    work: tuple[float, float, float]  # milliseconds of equal work: median, best and worst
    machine: dict[str, str]


class Result(msgspec.Struct, frozen=True):
    """What a section measured."""

    name: str
    run: Run
    title: str
    values: list[tuple[str, str, int, float, float, float]]
    body: str

    @classmethod
    def of(cls, name: str, section: Section, run: Run) -> Result:
        """Take the text and the figures of a section."""
        values: list[Value] = [(*key, *spread) for key, spread in section.values.items()]
        return cls(name, run, section.title, values, section.body)

    @property
    def section(self) -> Section:
        """The section as it was measured."""
        values: dict[Key, Spread] = {
            (quantity, name, n): Spread(*spread) for quantity, name, n, *spread in self.values
        }
        return Section(self.title, self.body, values)


def read(path: Path, names: Iterable[str]) -> dict[str, Result]:
    """Read the results of the sections of these names, in their order; a new file has none."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    found = {one.name: one for one in (msgspec.json.decode(line, type=Result) for line in lines)}
    return {name: found[name] for name in names if name in found}


def keep(path: Path, names: Sequence[str], result: Result) -> None:
    """Put a result in the place of the one before; sections without these names are dropped."""
    results = read(path, names) | {result.name: result}
    lines = [msgspec.json.encode(results[name]) for name in names if name in results]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(b"".join(line + b"\n" for line in lines))
    fresh.replace(path)


def values_of(results: Iterable[Result]) -> dict[Key, Spread]:
    """Return the figures of all sections."""
    return {key: spread for one in results for key, spread in one.section.values.items()}
