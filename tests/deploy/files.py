"""What lies in deploy/, read for the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

__all__ = ["DEPLOY", "documents", "linted", "promtool", "read"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: Path) -> list[Any]:
    """Return the documents of a YAML file."""
    return [*YAML(typ="safe").load_all(path.read_text())]


def read(path: Path) -> Any:  # noqa: ANN401 - anything YAML holds
    """Return the one document of a YAML file."""
    (only,) = documents(path)
    return only


def linted(tool: str, *words: object) -> None:
    """Let a linter of the environment look; what it finds fails the test."""
    command = [str(Path(sys.executable).with_name(tool)), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def promtool(*words: object) -> None:
    """Run promtool, which must find nothing."""
    command = ["promtool", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
