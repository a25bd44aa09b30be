"""The size of each package, in budget.txt: `python -m tests.surface.budget --write` writes it.

A package may have as many files and lines as its row says. Lines are rounded up to the next
hundred, so that a small change needs no row.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

__all__ = ["FILE", "Size", "budget", "excesses", "sizes"]

ROOT = Path(__file__).parents[2]
FILE = ROOT / "budget.txt"
SUFFIXES = {".py", ".hpp", ".cpp"}
ROUND = 100
HEAD = """\
# Files and lines of Python and C++ that each package may have, its subpackages not included. More
# fails tests/test_layout.py: merge or delete, or raise the row in a line that is reviewed.
# `python -m tests.surface.budget --write` writes this anew.
"""


class Size(NamedTuple):
    """How many files and lines a package has, or may have."""

    files: int
    lines: int


def sizes(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each package of the product, by dotted name."""
    found: dict[str, list[int]] = defaultdict(list)
    for source in (root / "engine", root / "connectors"):
        for path in sorted(source.rglob("*")):
            if path.suffix in SUFFIXES:
                package = ".".join(path.relative_to(source).parts[:-1])
                found[package].append(len(path.read_text().splitlines()))
    return {package: Size(len(lines), sum(lines)) for package, lines in sorted(found.items())}


def budget(text: str) -> dict[str, Size]:
    """Return the rows of the file, by package."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {package: Size(int(files), int(lines)) for package, files, lines in rows}


def excesses(found: dict[str, Size], allowed: dict[str, Size]) -> list[str]:
    """Return a sentence for each package without a row, or larger than its row, or gone."""
    said = [
        f"{package} has no row in budget.txt; add one, or put its modules into another package"
        for package in found.keys() - allowed
    ]
    said += [
        f"{package} is gone; delete its row in budget.txt" for package in allowed.keys() - found
    ]
    for package in found.keys() & allowed:
        for what, has, may in zip(Size._fields, found[package], allowed[package], strict=True):
            if has > may:
                said.append(
                    f"{package} has {has:,} {what}, and budget.txt allows {may:,}; merge or delete,"
                    " or raise its row"
                )
    return sorted(said)


def main() -> None:
    """Write the file."""
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.surface.budget --write")
    rows = [
        f"{package:32}{size.files:6}{-(-size.lines // ROUND) * ROUND:8}\n"
        for package, size in sizes().items()
    ]
    FILE.write_text(HEAD + "".join(rows))


if __name__ == "__main__":
    main()
