"""`scripts/licences`: an SPDX licence for each component of the container."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "licences"
MIT = {"license": {"id": "MIT"}}
TEXT = {"license": {"name": "License :: OSI Approved :: BSD License"}}


def checked(path: Path, *components: dict[str, Any]) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the script on components; return its exit code, errors and the components after it."""
    path.write_text(json.dumps({"components": components}))
    ran = subprocess.run(
        [sys.executable, SCRIPT, path], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stderr, json.loads(path.read_text())["components"]


@pytest.mark.parametrize("given", [[MIT], [TEXT, MIT], [{"expression": "MIT OR 0BSD"}]])
def test_one_licence(tmp_path: Path, given: list[dict[str, Any]]) -> None:
    """The SPDX licence of the metadata stays, without their other texts."""
    code, errors, (component,) = checked(tmp_path / "x", {"name": "any", "licenses": given})
    assert (code, errors) == (0, "")
    assert component["licenses"] == given[-1:]


def test_a_licence_of_the_table(tmp_path: Path) -> None:
    """A package whose metadata have no SPDX licence gets that of its licence file."""
    code, _, components = checked(
        tmp_path / "x", {"name": "protobuf"}, {"name": "lz4", "licenses": [TEXT]}
    )
    assert code == 0
    assert [one["licenses"] for one in components] == [[{"expression": "BSD-3-Clause"}]] * 2


@pytest.mark.parametrize("given", [[], [TEXT], [MIT, {"license": {"id": "0BSD"}}]])
def test_no_licence(tmp_path: Path, given: list[dict[str, Any]]) -> None:
    """A component without an SPDX licence, or with several, fails by name; the file stays."""
    component = {"name": "any", "licenses": given}
    code, errors, components = checked(
        tmp_path / "x", {"name": "fine", "licenses": [MIT]}, component
    )
    assert code == 1
    assert "no SPDX licence, or several: any; read" in errors
    assert components[1] == component
