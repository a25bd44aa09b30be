"""The layout of the product: no import cycles, short modules, nouns, class names, and sizes."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.surface.budget import FILE, Size, budget, excesses, sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MOST_LINES = 600
# Modules whose names end in "ing" and are nouns.
NOUNS = {"coupling", "drawing", "encoding", "forgetting", "mapping", "monitoring", "plotting"}


class Module(NamedTuple):
    """A Python file of the product."""

    name: str
    path: Path
    is_package: bool
    text: str
    tree: ast.Module

    def __str__(self) -> str:
        """Return the path from the root of the checkout."""
        return str(self.path.relative_to(ROOT))


@cache
def product() -> dict[str, Module]:
    """Return all modules of both packages, by name."""
    found = {}
    for source in ("engine", "connectors"):
        for path in sorted((ROOT / source).rglob("*.py")):
            parts = path.relative_to(ROOT / source).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            text = path.read_text()
            found[name] = Module(name, path, is_package, text, ast.parse(text))
    return found


def imports(module: Module) -> Iterator[str]:
    """Yield the modules of the product that a module imports anywhere, also for types alone."""
    known = product()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                full = f"{node.module}.{one.name}"
                target = full if full in known else node.module
                if target in known:
                    yield target


def cycles(graph: dict[str, set[str]]) -> set[str]:
    """Return the nodes that reach themselves."""
    left = {node: set(targets) for node, targets in graph.items()}
    while True:  # what imports nothing that is left, or is imported by nothing, is in no cycle
        imported = {target for targets in left.values() for target in targets}
        out = {node for node, targets in left.items() if not targets or node not in imported}
        if not out:
            break
        left = {node: targets - out for node, targets in left.items() if node not in out}
    return {node for node in left if node in _reached(left, node)}


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the nodes that are reached from a node by one step or more."""
    reached: set[str] = set()
    todo = [*graph[start]]
    while todo:
        node = todo.pop()
        if node not in reached:
            reached.add(node)
            todo += graph[node]
    return reached


def test_cycles_are_found() -> None:
    """Nodes before, between and after cycles are in none."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"e", "f"}, "f": set()}
    assert cycles(graph) == {"b", "c", "e"}
    with pytest.raises(ValueError, match="cycle"):
        [*TopologicalSorter(graph).static_order()]


def test_no_import_cycles() -> None:
    """No module reaches itself by imports, those for types and inside functions included."""
    graph = {name: {*imports(one)} - {name} for name, one in product().items()}
    assert cycles(graph) == set()


def test_no_long_modules() -> None:
    """A module has at most 600 lines."""
    long = {str(one) for one in product().values() if len(one.text.splitlines()) > MOST_LINES}
    assert long == set()


def test_modules_are_nouns() -> None:
    """No module or package is named by a gerund."""
    stems = {str(one): one.name.rpartition(".")[2].lstrip("_") for one in product().values()}
    found = {path for path, stem in stems.items() if stem.endswith("ing") and stem not in NOUNS}
    assert found == set()


def test_private_names_stay_private() -> None:
    """Only modules called `workarounds` reach into private names of others."""
    found = {str(one) for one in product().values() if "noqa: SLF001" in one.text}
    outside = {path for path in found if not path.endswith("workarounds.py")}
    assert outside == set()


def test_class_names_are_unique() -> None:
    """No two classes of the product share a name."""
    where = defaultdict(list)
    for one in product().values():
        for node in ast.walk(one.tree):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(one))
    twice = {name: paths for name, paths in where.items() if len(paths) > 1}
    assert {name: twice[name] for name in twice} == {}


def test_packages_stay_within_their_budget() -> None:
    """No package has more files or lines than its row in budget.txt, and each has a row."""
    assert excesses(sizes(), budget(FILE.read_text())) == []


def test_excesses_say_what_to_do() -> None:
    """A package that is new, gone, or has more files or lines than its row is named."""
    allowed = budget("# package\nsame 2 100\nfiles 2 100\nlines 2 100\ngone 1 100\n")
    found = {"same": Size(2, 100), "files": Size(3, 90), "lines": Size(1, 101), "new": Size(1, 1)}
    assert excesses(found, allowed) == [
        "files has 3 files, and budget.txt allows 2; merge or delete, or raise its row",
        "gone is gone; delete its row in budget.txt",
        "lines has 101 lines, and budget.txt allows 100; merge or delete, or raise its row",
        "new has no row in budget.txt; add one, or put its modules into another package",
    ]
