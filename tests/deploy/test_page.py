"""The pages for operators: every exit code, every reason of a dead letter, every file."""

from __future__ import annotations

import re

from tests.deploy.files import DEPLOY

from abers.stream.join import REASONS
from abers_connectors import errors

PAGE = "\n".join(
    (DEPLOY.parent / "docs" / name).read_text() for name in ("operations.md", "deploy.md")
)
SOURCES = [
    *(DEPLOY.parent / "connectors" / "abers_connectors").rglob("*.py"),
    *(DEPLOY.parent / "engine" / "abers" / "stream").rglob("*.py"),
]


def section(title: str) -> str:
    """Return a section of the page."""
    return PAGE.partition(f"# {title}\n")[2].partition("\n#")[0]


def test_exit_codes() -> None:
    """The page has every exit code, and what to do about it."""
    codes = {
        errors.FAILURE,
        errors.USAGE,
        errors.DATA,
        errors.UNAVAILABLE,
        errors.CONFIG,
    }
    documented = re.findall(r"^\| ([\d, ]+) \|", section("Exit codes"), re.MULTILINE)
    assert {int(code) for row in documented for code in row.split(",")} == codes | {0, 130, 143}


def test_reasons() -> None:
    """The page has every reason of a dead letter, and no other."""
    others = "output-too-large|bad-id|bad-model|internal-error"
    raised = re.compile(rf'BadRecordError\(\s*"([\w-]+)"|"({others})"')
    known = {one or other for file in SOURCES for one, other in raised.findall(file.read_text())}
    documented = re.findall(r"^\| (`.+?`) \|", section("Dead letters"), re.MULTILINE)
    named = {reason for row in documented for reason in re.findall(r"`([\w-]+)`", row)}
    assert named == known | {*REASONS}


def test_files() -> None:
    """What the pages name in deploy/ is there, and all that is there is named."""
    named = {name.rstrip("/") for name in re.findall(r"deploy/([\w.@/]+)", PAGE)}
    there = {one.name for one in DEPLOY.iterdir() if one.name != "__pycache__"}
    own = {"abers.example.toml", "Dockerfile.dockerignore"}  # parts of what is named
    assert {name.split("/")[0] for name in named} == there - own
