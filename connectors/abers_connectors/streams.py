"""From the words of the command line to a source and its scorer.

Governing rule: what has a suffix or a directory is a file, which brings its
scores; everything else is the name of a bundled stream, which needs a learner.
An option that belongs to the other kind is refused, not ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors._suggest import did_you_mean
from abers_connectors.files import FileSource, GivenScores
from abers_connectors.river_streams import BundledStream, learner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.records import Scorer, Source

__all__ = ["open_stream"]


def open_stream(
    stream: str,
    *,
    learner_name: str | None = None,
    columns: Mapping[str, str] | None = None,
    probabilities: bool = False,
) -> tuple[Source, Scorer]:
    """Find a stream, and what scores it.

    Parameters
    ----------
    stream
        Name of a bundled stream, or path of a file.
    learner_name
        What scores a bundled stream, by default a logistic regression.
    columns
        Names of a file's columns, where they differ from the default.
    probabilities
        Whether the scores of a file are declared probabilities.

    Returns
    -------
    Source, Scorer
        The stream and its scorer.

    Raises
    ------
    ParameterError
        If there is no such stream, or an option does not go with it.
    MissingExtraError
        If it is a bundled stream and river is not installed.
    """
    path = Path(stream)
    if path.suffix or len(path.parts) > 1:
        _require_file(path, stream)
        if learner_name is not None:
            msg = f"--learner is for bundled streams; {stream} brings its scores, leave it out"
            raise ParameterError(msg)
        source = FileSource(stream, columns or {}, probabilities=probabilities)
        return source, GivenScores(probabilities=probabilities)
    bundled = BundledStream(stream)
    for option in [*(columns or ()), *(["probabilities"] if probabilities else ())]:
        msg = f"--{option} is for files; {stream} is scored by its learner, leave it out"
        raise ParameterError(msg)
    return bundled, learner(learner_name or "logistic")


def _require_file(path: Path, stream: str) -> None:
    if path.is_dir():
        msg = f"{stream} is a directory; name a CSV or JSON Lines file in it"
        raise ParameterError(msg)
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else []
        msg = f"{stream}: no such file{did_you_mean(path.name, [one.name for one in beside])}"
        raise ParameterError(msg)
