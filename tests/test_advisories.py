"""`scripts/advisories`: pinned and oldest allowed versions, matched with advisories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PINNED = re.findall(r"^starlette==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]


def matched(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script on a folder of advisories."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "advisories", folder],
        capture_output=True,
        text=True,
        check=False,
    )


def advisory(events: list[dict[str, str]], **more: object) -> dict[str, Any]:
    """Return an advisory about starlette with one range."""
    return {
        "id": "PYSEC-1",
        "aliases": ["CVE-1"],
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "Starlette"},
                "ranges": [{"type": "ECOSYSTEM", "events": events}],
            }
        ],
        **more,
    }


@pytest.mark.parametrize(
    ("events", "affected"),
    [
        ([{"introduced": "0"}], True),
        ([{"introduced": "0"}, {"fixed": PINNED}], False),
        ([{"introduced": "0"}, {"fixed": f"{PINNED}.1"}], True),
        ([{"introduced": "0"}, {"last_affected": PINNED}], True),
        ([{"introduced": "0"}, {"last_affected": "1.0"}], False),
        ([{"introduced": "0"}, {"fixed": "0.9"}, {"introduced": "1.2"}, {"fixed": "99"}], True),
        ([{"introduced": "1.2"}, {"fixed": "99"}, {"introduced": "0"}, {"fixed": "0.9"}], True),
        ([{"introduced": f"{PINNED}.1"}], False),
    ],
)
def test_a_range_that_has_the_pinned_version(
    tmp_path: Path, events: list[dict[str, str]], *, affected: bool
) -> None:
    """A version is affected from an introduction to before its fix, in any order of the events."""
    (tmp_path / "one.json").write_text(json.dumps(advisory(events)))
    ran = matched(tmp_path)
    assert (f"starlette {PINNED} (constraints.txt" in ran.stdout) == affected, ran.stderr
    assert "PYSEC-1 CVE-1" in ran.stdout or not affected
    assert ran.returncode in ((1,) if affected else (0, 1))


def test_a_version_that_is_listed(tmp_path: Path) -> None:
    """A version is affected if it is listed, with or without a range; YAML is read too."""
    (tmp_path / "one.yaml").write_text(
        "id: PYSEC-2\naffected:\n- package:\n    ecosystem: PyPI\n    name: starlette\n"
        f'  versions: ["{PINNED}"]\n'
    )
    ran = matched(tmp_path)
    assert ran.returncode == 1
    assert ran.stdout.startswith(f"starlette {PINNED} (constraints.txt, run.txt, serving.txt)")


def test_the_oldest_allowed_version(tmp_path: Path) -> None:
    """The lower bounds of pyproject.toml are matched like what is pinned."""
    (tmp_path / "one.json").write_text(
        json.dumps(advisory([{"introduced": "0"}, {"fixed": "1.9"}]))
    )
    ran = matched(tmp_path)
    assert ran.stdout.startswith("starlette 1.3.1 (oldest): PYSEC-1 CVE-1\n")
    assert ran.returncode == 1


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(advisory([{"introduced": "0"}], withdrawn="2026-01-01T00:00:00Z")),
        json.dumps(advisory([{"introduced": "0"}])).replace("PyPI", "npm"),
        json.dumps(advisory([{"introduced": "0"}])).replace("Starlette", "another"),
        '{"name": "starlette"}',
    ],
)
def test_what_affects_nothing(tmp_path: Path, text: str) -> None:
    """Withdrawn advisories, other registries, other packages and other files count for nothing."""
    (tmp_path / "one.json").write_text(text)
    ran = matched(tmp_path)
    assert ran.stdout.endswith("0 versions affected\n")
    assert ran.returncode == 0


def test_no_folder(tmp_path: Path) -> None:
    """Without a folder the script says how it is used."""
    ran = matched(tmp_path / "missing")
    assert "Usage: scripts/advisories FOLDER" in ran.stderr
    assert ran.returncode == 1
