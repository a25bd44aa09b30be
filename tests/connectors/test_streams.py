"""From the words of the command line to a stream: its kind, and what does not go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abers import ParameterError
from abers_connectors.files import FileSource, GivenScores
from abers_connectors.river_streams import BundledStream, RiverLearner
from abers_connectors.streams import open_stream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the name of a small file of scores."""
    path = tmp_path / "scores.csv"
    path.write_text("score,label\n0.5,1\n")
    return str(path)


def test_a_name_is_a_bundled_stream() -> None:
    """A word without a suffix is one of river's streams, scored by a learner."""
    source, scorer = open_stream("Phishing")
    assert isinstance(source, BundledStream)
    assert isinstance(scorer, RiverLearner)
    assert scorer.probabilities


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_path_is_a_file(file: str, *, probabilities: bool) -> None:
    """A path is a file, whose scores are probabilities only if that is declared."""
    source, scorer = open_stream(file, probabilities=probabilities)
    assert isinstance(source, FileSource)
    assert isinstance(scorer, GivenScores)
    assert scorer.probabilities is probabilities


def test_a_file_that_is_missing(file: str) -> None:
    """The file with the closest name beside it is suggested."""
    with pytest.raises(ParameterError, match=r"scroes.csv: no such file; did you mean scores.csv"):
        open_stream(file.replace("scores", "scroes"))


def test_a_directory_that_is_missing() -> None:
    """A file in a directory that is not there is missing too."""
    with pytest.raises(ParameterError, match=r"^no/such/scores.csv: no such file$"):
        open_stream("no/such/scores.csv")


def test_a_directory_is_no_stream(tmp_path: Path) -> None:
    """A directory is refused with what to name instead."""
    with pytest.raises(ParameterError, match="is a directory; name a CSV or JSON Lines file"):
        open_stream(str(tmp_path))


def test_a_name_that_is_unknown() -> None:
    """The known streams are listed, and the closest suggested."""
    with pytest.raises(ParameterError, match=r"Bananas, Phishing, Shuttle.* mean Phishing\?"):
        open_stream("phising")


def test_a_learner_does_not_go_with_a_file(file: str) -> None:
    """An option of bundled streams is refused for a file, not ignored."""
    with pytest.raises(ParameterError, match="--learner is for bundled streams"):
        open_stream(file, learner_name="tree")


@pytest.mark.parametrize("column", ["score", "label", "id", "time"])
def test_columns_do_not_go_with_a_bundled_stream(column: str) -> None:
    """An option of files is refused for a bundled stream, not ignored."""
    with pytest.raises(ParameterError, match=f"--{column} is for files; Phishing is scored by"):
        open_stream("Phishing", columns={column: "x"})


def test_a_declaration_does_not_go_with_a_bundled_stream() -> None:
    """So is the declaration that scores are probabilities, which a learner's are anyway."""
    with pytest.raises(ParameterError, match="--probabilities is for files"):
        open_stream("Phishing", probabilities=True)
