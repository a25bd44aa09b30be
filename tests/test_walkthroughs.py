"""The walk-throughs of CONTRIBUTING.md, done as they are written, in a copy of the product."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import abers
import abers_connectors
from abers import _core

ROOT = Path(__file__).parents[1]
SECTIONS = dict(
    re.findall(
        r"^### (.+?)\n(.+?)(?=^##|\Z)",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
BLOCK = re.compile(r"(?:`([\w./]+)`:\n\n)?^```(diff|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = re.compile(r"^\$ cp \S+ (\S+)$", re.MULTILINE)
WRAPPER = '#!/bin/sh\nexec "{python}" -S {words} "$@"\n'
COMMAND = "from abers_connectors.cli.main import main; main()"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the product, and put commands that run the copy on the path."""
    for package in (abers, abers_connectors):
        source = Path(package.__file__ or "").parent
        shutil.copytree(source, tmp_path / source.relative_to(ROOT))
    shutil.copy(_core.__file__, tmp_path / "engine" / "abers")
    for folder in ("tests", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "bin").mkdir()
    for name, words in (("python", ""), ("abers", f"-c '{COMMAND}'")):
        script = tmp_path / "bin" / name
        script.write_text(WRAPPER.format(python=sys.executable, words=words))
        script.chmod(0o755)
    # Without `site`, so that the editable install does not come first.
    installed = [entry for entry in sys.path if entry.endswith("site-packages")]
    paths = [tmp_path / "engine", tmp_path / "connectors", tmp_path, *installed]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def change(path: Path, diff: str) -> None:
    """Apply the lines of a diff; what it removes or keeps must stand in the file once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text()
    assert text.count(old) == 1, f"{path} does not have\n{old}"
    path.write_text(text.replace(old, new))


def run(console: str, folder: Path) -> None:
    """Run commands and compare what they print."""
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE):
        ran = subprocess.run(  # noqa: S602 - the commands of our own page
            command, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        printed = "".join(f"{line.rstrip()}\n" for line in (ran.stdout + ran.stderr).splitlines())
        assert ran.returncode == 0, f"{command}\n{printed}"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(expected, printed, flags)
        assert same, f"{command}\nexpected\n{expected}\nprinted\n{printed}"


@pytest.mark.native
@pytest.mark.parametrize("title", SECTIONS)
def test_walkthrough(title: str, checkout: Path) -> None:
    """A reader who does what the section says gets what it shows, in a new file and a registry."""
    written, path = {*COPIED.findall(SECTIONS[title])}, ""
    assert not any((checkout / one).exists() for one in written)
    for named, kind, text in BLOCK.findall(SECTIONS[title]):
        path = named or path
        if kind == "console":
            run(text, checkout)
        else:
            written.add(path)
            change(checkout / path, text)
    assert len(written) == 2


def test_sections() -> None:
    """There are three walk-throughs, on a page that is read at once."""
    assert len(SECTIONS) == 3
    assert (ROOT / "CONTRIBUTING.md").stat().st_size <= 6_000
