"""The tutorials, done as they are written: each command prints what its page shows.

`test_examples.py` runs the Python of the page on river, as that of all pages.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
MARK = "<<end of a command>>"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout with what the tutorials need, and put its commands on the path."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def follow(page: str, folder: Path) -> None:
    """Run all commands of a page in one shell, and compare what each prints."""
    steps = COMMAND.findall("".join(CONSOLE.findall(page)))
    lines = [f"{command}\necho '{MARK}' $?" for command, _ in steps]
    script = "\n".join(["exec 2>&1", "trap 'kill $(jobs -p)' EXIT", *lines])
    ran = subprocess.run(
        ["/bin/bash", "-m", "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    printed = re.split(rf"^{MARK} (\d+)\n", ran.stdout, flags=re.MULTILINE)
    assert len(printed) > 2 * len(steps), ran.stdout
    for (command, expected), output, code in zip(steps, printed[::2], printed[1::2], strict=False):
        assert code == "0", f"{command}\n{output}"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(expected, output, flags)
        assert same, f"{command}\nexpected\n{expected}\nprinted\n{output}"


@pytest.mark.native
def test_a_csv_of_scores(folder: Path) -> None:
    """A reader who types the commands gets verdict, report and calibrated probabilities."""
    follow((ROOT / "docs" / "tutorial_csv.md").read_text(), folder)
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.kafka
def test_a_kafka_topic(folder: Path) -> None:
    """A reader with a broker gets predictions and a verdict; only the port differs."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    config = folder / "examples" / "kafka_demo" / "abers.toml"
    config.write_text(config.read_text().replace("9092", port))
    page = (ROOT / "docs" / "tutorial_kafka.md").read_text()
    follow(page.replace("9092", port), folder)


@pytest.mark.parametrize("name", ["csv", "river", "kafka"])
def test_each_ends_in_a_verdict_and_is_found(name: str) -> None:
    """Each tutorial ends in a verdict, and README, the first page and the navigation name it."""
    file = f"tutorial_{name}.md"
    end = (ROOT / "docs" / file).read_text().rstrip().rsplit("\n\n", 2)
    assert end[1].startswith("**The verdict**")
    for page in ("README.md", "docs/index.md", "mkdocs.yml"):
        assert file in (ROOT / page).read_text()


@pytest.mark.native
def test_datasets(folder: Path) -> None:
    """The commands of the page on datasets read what its example writes."""
    follow((ROOT / "docs" / "datasets.md").read_text(), folder)
