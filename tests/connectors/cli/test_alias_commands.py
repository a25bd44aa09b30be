"""Commands that are to write what they read, under another name: nothing is destroyed."""

from __future__ import annotations

import json
import os
from itertools import product
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

USAGE, CONFIGURATION = 2, 78
CONFIG = """
[input]
observations = "in.jsonl"
[output]
predictions = "{predictions}"
outcomes = "{outcomes}"
{dead}
[state]
path = "{state}"
"""
USUAL = {"predictions": "out.jsonl", "outcomes": "met.jsonl", "dead": "", "state": "abers.state"}
PROTECTED = ["in.jsonl", "abers.toml", "abers.state", "out.jsonl"]
ITSELF = {("state", "abers.state"), ("predictions", "out.jsonl")}
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "symbolic": lambda link, file: link.symlink_to(file.name),
    "hard": lambda link, file: os.link(file, link),
}


@pytest.fixture
def folder(tmp_path: Path, invoke: Invoke) -> Path:
    """Return a directory with a configuration, an input, and the state and outputs of a run."""
    records = [{"id": f"a{n}", "time": n, "score": 0.5} for n in range(20)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (tmp_path / "abers.toml").write_text(CONFIG.format(**USUAL))
    assert invoke("run", "abers.toml").code == 0
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Read all that is there, but what a test adds."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("output", "file"), sorted({*product(USUAL, PROTECTED)} - ITSELF))
def test_a_run_destroys_nothing(
    invoke: Invoke, folder: Path, output: str, file: str, link: str
) -> None:
    """An output that is another name of an input, the configuration or the state is refused."""
    alias = "alias.jsonl"
    LINKS[link](folder / alias, folder / file)
    given = f'dead_letters = "{alias}"' if output == "dead" else alias
    changed = CONFIG.format(**USUAL | {output: given})
    if file == "abers.toml":  # the name stays, whatever is in it
        (folder / file).write_text(changed)
        config = file
    else:
        (folder / "other.toml").write_text(changed)
        config = "other.toml"
    before = contents(folder)
    for command in ("check", "run"):
        ran = invoke(command, config)
        assert ran.code == CONFIGURATION
        assert "name another file" in ran.err
    assert contents(folder) == before


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("file", PROTECTED)
def test_a_replay_destroys_nothing(invoke: Invoke, folder: Path, file: str, link: str) -> None:
    """Neither its output nor its report may be another name of what the run has."""
    LINKS[link](folder / "alias.jsonl", folder / file)
    LINKS[link](folder / "alias.json", folder / file)
    before = contents(folder)
    for words in (("--output", "alias.jsonl"), ("--output", "new.jsonl", "--report", "alias.json")):
        ran = invoke("replay", "abers.toml", *words)
        assert ran.code in {USAGE, CONFIGURATION}
        assert "name another" in ran.err
    ran = invoke("report", "abers.toml", "--output", "alias.json")
    assert (ran.code in {USAGE, CONFIGURATION}, "name another" in ran.err) == (True, True), ran.err
    assert contents(folder) == before


@pytest.mark.parametrize("link", LINKS)
def test_a_replay_of_topics_destroys_nothing(invoke: Invoke, folder: Path, link: str) -> None:
    """Its output is not its configuration, which is known before a broker is asked."""
    (folder / "topics.toml").write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\napplication_id = "a"\nobservations = '
        '"o"\npredictions = "p"\n'
    )
    LINKS[link](folder / "alias.jsonl", folder / "topics.toml")
    before = contents(folder)
    ran = invoke("replay", "topics.toml", "--output", "alias.jsonl")
    assert (ran.code, "is the configuration already" in ran.err) == (USAGE, True), ran.err
    assert contents(folder) == before


@pytest.mark.parametrize("link", LINKS)
def test_a_replay_of_a_file_destroys_nothing(invoke: Invoke, folder: Path, link: str) -> None:
    """Its output and its report are not the file that it reads."""
    (folder / "bare.jsonl").write_text('{"score": 0.5, "label": 1}\n')
    LINKS[link](folder / "alias.jsonl", folder / "bare.jsonl")
    LINKS[link](folder / "alias.json", folder / "bare.jsonl")
    before = contents(folder)
    for words in (("--output", "alias.jsonl"), ("--report", "alias.json")):
        ran = invoke("replay", "bare.jsonl", *words)
        assert (ran.code, "name another" in ran.err) == (USAGE, True), ran.err
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["new.jsonl.dead.jsonl", ".new.state.lock"])
def test_a_link_that_nobody_named_is_not_written(invoke: Invoke, folder: Path, name: str) -> None:
    """In the place of the dead letters, or of a lock, a link may lead anywhere."""
    (folder / "theirs").write_text("kept")
    (folder / name).symlink_to("theirs")
    with (folder / "in.jsonl").open("a") as file:
        file.write("no JSON\n")
    changed = USUAL | {"predictions": "new.jsonl", "state": "new.state"}
    (folder / "abers.toml").write_text(CONFIG.format(**changed))
    ran = invoke("run", "abers.toml")
    assert ran.code == CONFIGURATION
    assert f'{name}" is a link in the place of a derived name\n  remove it' in ran.err
    assert (folder / "theirs").read_text() == "kept"
    assert not (folder / "new.jsonl").exists()


def test_an_input_among_the_parts_is_not_removed(invoke: Invoke, folder: Path) -> None:
    """A run begins with an empty directory of parts, in which no input may be."""
    (folder / "out.parquet").mkdir()
    part = folder / "out.parquet" / "part-00000000.parquet"
    part.write_bytes(b"an input")
    changed = CONFIG.format(**USUAL | {"predictions": "out.parquet", "state": "new.state"})
    changed = changed.replace("in.jsonl", "out.parquet/part-00000000.parquet")
    (folder / "abers.toml").write_text(changed)
    ran = invoke("run", "abers.toml")
    assert (ran.code, "as if it were a part of it" in ran.err) == (CONFIGURATION, True)
    assert part.read_bytes() == b"an input"


def test_outputs_that_are_no_files(invoke: Invoke, folder: Path) -> None:
    """Several may go to /dev/null, and one to standard output."""
    (folder / "abers.toml").write_text(CONFIG.format(**USUAL).split("[state]", maxsplit=1)[0])
    (folder / "null.jsonl").symlink_to("/dev/null")
    (folder / "void.jsonl").symlink_to("/dev/null")
    changed = (folder / "abers.toml").read_text().replace("out.jsonl", "null.jsonl")
    (folder / "abers.toml").write_text(changed.replace("met.jsonl", "void.jsonl"))
    ran = invoke("run", "abers.toml")
    assert ran.code == 0, ran.err
    (folder / "abers.toml").write_text(changed.replace('"null.jsonl"', '"-"'))
    ran = invoke("run", "abers.toml")
    assert (ran.code, len(ran.out.splitlines())) == (0, 20)


def test_rules_are_written_whole(invoke: Invoke, folder: Path) -> None:
    """The file of rules stands under its name or not at all, and a named link stays a link."""
    (folder / "link.yml").symlink_to("rules.yml")
    assert invoke("prometheus-rules", "--output", "link.yml").code == 0
    assert (folder / "rules.yml").read_text() == invoke("prometheus-rules").out
    assert (folder / "link.yml").is_symlink()
    assert invoke("prometheus-rules", "--output", "/dev/null").code == 0
    ran = invoke("prometheus-rules", "--output", "none/rules.yml")
    assert (ran.code, "there is no directory" in ran.err) == (USAGE, True)
