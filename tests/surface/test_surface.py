"""The public surface: what docs/api_promise.md promises is what the files here record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pytest
from tests.surface.python_names import MODULES, described
from tests.surface.surface import PARTS, changes, recorded

from abers.base import Calibrator

API = Path(__file__).parents[2] / "docs" / "api"


class ExampleError(ValueError):
    """A class with every kind of member."""

    limit: ClassVar[int] = 3

    def __init__(self, a: int, *, b: str = "x") -> None:
        super().__init__(a, b)

    def __len__(self) -> int:
        """Count."""
        return self.limit

    @property
    def size(self) -> int:
        """Size."""
        return self.limit

    def method(self, one: int, two: object = len, *more: int, **rest: int) -> int:
        """Add."""
        return one + len(more) + len(rest) + bool(two)

    @classmethod
    def made(cls) -> ExampleError:
        """Make one."""
        return cls(1)

    def _hidden(self) -> None: ...


ExampleError.__module__ = "abers.example"


@pytest.mark.parametrize("part", PARTS)
def test_the_surface_is_the_recorded_one(part: str) -> None:
    """Names, parameters and defaults are those of the file, or the message says what to do."""
    found = changes(part, recorded(part).read_text("utf-8").splitlines(), PARTS[part]())
    assert not found, found


def test_a_class_is_described_by_its_public_members() -> None:
    """Each member has a line with its parameters and defaults, without types and private names."""
    assert [*described("abers.Example", ExampleError)] == [
        "abers.Example(a, *, b='x') extends ValueError",
        "abers.Example.__len__()",
        "abers.Example.limit",
        "abers.Example.made() [classmethod]",
        "abers.Example.method(one, two=<len>, *more, **rest)",
        "abers.Example.size",
    ]


def test_inherited_members_count() -> None:
    """A subclass of abers' own has the members of its base."""
    own = type("Own", (Calibrator,), {"__module__": "abers.own"})
    lines = [*described("abers.Own", own)]
    assert lines[0].endswith(" extends Calibrator")
    assert any(line.startswith("abers.Own.predict_one(score") for line in lines)


def test_a_change_is_shown_and_the_message_says_how_to_record_it() -> None:
    """A new default is a line less and a line more; where nothing changed there is no message."""
    found = changes("python", ["abers.f(a=1)", "abers.g()"], ["abers.f(a=2)", "abers.g()"])
    assert found.splitlines()[:3] == [
        "The public surface has changed (python):",
        "-abers.f(a=1)",
        "+abers.f(a=2)",
    ]
    assert "python -m tests.surface.surface --write" in found
    assert not changes("python", ["abers.g()"], ["abers.g()"])


def test_every_documented_module_is_recorded() -> None:
    """A page of docs/api documents a public module, or a module below a public package."""
    pages = "".join(page.read_text("utf-8") for page in API.glob("*.md"))
    documented = re.findall(r"^::: (\S+)", pages, re.MULTILINE)
    assert documented
    lazy = ("abers.river.", "abers.sklearn.")  # their packages import each name at its first use
    inner = {"abers.learners.learner"}  # its only name is one of the package
    assert {one for one in documented if not one.startswith(lazy)} - inner <= {*MODULES}
