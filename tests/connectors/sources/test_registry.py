"""The registry of sources: names, and a source that a user's package adds."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from tests.connectors.sources.contract import check_source
from tests.connectors.sources.memory import MemorySource

from abers import ParameterError
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import SOURCES, is_dataset, open_source

if TYPE_CHECKING:
    from pathlib import Path

ADDED = """
from abers_connectors.mapping import columns_of
from abers_connectors.sources.base import Origin, batch_of

ROWS = [{"id": f"a{n}", "time": n, "score": n / 500, "label": n % 2} for n in range(500)]


class CountSource:
    # The numbers 0 to 499 as scores, at "count://anything".
    def __init__(self, name, options):
        self.name, self._schema = name, options.schema()

    def batches(self, position=None):
        start = position["records"] if position else 0
        for first in range(start, len(ROWS), 100):
            rows = ROWS[first : first + 100]
            numbers = range(first + 1, first + len(rows) + 1)
            reading = self._schema.read(columns_of(rows, self._schema.reads), numbers)
            origin = lambda row, first=first: self._origin(first + row)
            yield batch_of(reading, range(len(rows)), {}, origin, {"records": numbers[-1]})

    def fraction(self):
        return None

    def _origin(self, number):
        return Origin(f"{self.name} record {number}", str(ROWS[number]))
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the module of a source, and register it for a test."""
    (tmp_path / "count_source.py").write_text(ADDED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(SOURCES, "_openers", dict(SOURCES._openers))  # noqa: SLF001 - undone
    SOURCES.register("count", "count_source:CountSource")
    return tmp_path


@pytest.mark.usefixtures("added")
def test_a_source_of_a_scheme_keeps_the_contract() -> None:
    """A module and one line make a source that a URL names."""
    check_source(open_source("count://here", SourceOptions()))


def test_a_replay_of_a_source_of_a_scheme(added: Path) -> None:
    """The command replays the URL, with defaults and with a configuration."""
    program = """
        import sys
        from abers_connectors.sources.registry import SOURCES
        from abers_connectors.cli.main import main
        SOURCES.register("count", "count_source:CountSource")
        main()
        """
    (added / "run.py").write_text(textwrap.dedent(program))
    (added / "abers.toml").write_text(
        '[input]\nobservations = "count://here"\ndelay = 5\n[output]\npredictions = "p.jsonl"\n'
    )
    for words in (["replay", "count://here", "--output", "q.jsonl"], ["run", "abers.toml"]):
        ran = subprocess.run(
            [sys.executable, "run.py", *words],
            cwd=added,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    assert len((added / "p.jsonl").read_text().splitlines()) == 500
    assert len((added / "q.jsonl").read_text().splitlines()) == 500


def test_a_source_of_a_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suffix that is registered is known, compressed too."""
    monkeypatch.setattr(SOURCES, "_openers", dict(SOURCES._openers))  # noqa: SLF001 - undone
    SOURCES.register(".avro", lambda name, _options: MemorySource([], name=name))
    assert open_source("scores.avro", SourceOptions()).name == "scores.avro"
    with pytest.raises(
        ParameterError, match=r"scores\.xml: unknown kind .*, and file://, .*, \.avro; save it"
    ):
        open_source("scores.xml", SourceOptions())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores.txt", r"scores\.txt: unknown kind of file; abers knows \.csv, \.tsv"),
        ("redis://scores", r"unknown URL scheme redis; registered schemes: file://, s3://"),
        ("-", r"-: unknown kind of file"),
        ("scores.parquet.gz", r"a Parquet file is read from its end"),
    ],
)
def test_names_that_are_unknown(name: str, message: str) -> None:
    """A name without a source is refused before anything is opened."""
    with pytest.raises(ParameterError, match=message):
        open_source(name, SourceOptions())


@pytest.mark.parametrize("name", ["Phishing", "scores"])
def test_a_plain_word_names_a_data_set(name: str) -> None:
    """A name without suffix, directory and scheme is that of a data set."""
    assert is_dataset(name)


@pytest.mark.parametrize("name", ["a.csv", "data/scores", "-", ".", "redis://scores"])
def test_other_names_are_no_data_sets(name: str) -> None:
    """Paths, standard input and URLs do not name data sets."""
    assert not is_dataset(name)
