"""SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`((?:tests/)?[\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text())


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_the_test_exists(path: str, name: str) -> None:
    """A file is in the checkout, or next to the one named before it, and has the test."""
    files = [ROOT / path] if "/" in path else sorted(ROOT.glob(f"tests/**/{path}"))
    assert files
    assert all(one.is_file() for one in files)
    assert not name or any(f"def {name}(" in one.read_text() for one in files)
