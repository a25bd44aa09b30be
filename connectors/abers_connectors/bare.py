"""A bundled stream or a file, replayed without a configuration.

Governing rule: what has a suffix or a directory is a file, which brings its
scores, and whose task is told and never guessed; everything else is the name of
a bundled stream, which knows its task and needs a learner.
An option that belongs to the other kind is refused, not ignored; and a message
names the option of the command, not the key of a configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ConfigError, ParameterError, RecordError
from abers.learners.river import USUAL
from abers.stream.settings import LARGEST_TIME
from abers_connectors import config as configuration
from abers_connectors._paths import root
from abers_connectors._suggest import did_you_mean
from abers_connectors.delayed import Delayed
from abers_connectors.files.naming import kind_of
from abers_connectors.files.peek import first_fields
from abers_connectors.jobs import Job, job_of
from abers_connectors.river_streams import BundledStream

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Asked", "of_stream"]

_FIELDS = {"score": "score", "label": "label", "id": "id", "time": "time"}
_OPTIONS = {
    "task.kind": "--task",
    "calibrator.distributions": "--distributions",
    "learner.name": "--learner",
    "input.delay": "--delay",
    "output.predictions": "--output",
    "input.observations": "the input",
    "calibrator.window": "--window",
    "calibrator.max_age": "--max-age",
    "calibrator.half_life": "--half-life",
    **{f"input.fields.{one}": f"--{one}" for one in _FIELDS},
}
_KEY = re.compile("|".join(map(re.escape, _OPTIONS)))
_MOST = 2**31 - 1  # observations that can wait


class Asked(NamedTuple):
    """What is asked of a replay.

    Parameters
    ----------
    stream
        Name of a bundled stream, or path of a file.
    delay
        How many further observations come before a label.
    output
        Where predictions go.
    learner
        What scores a bundled stream, by default the usual learner of its task.
    columns
        Names of a file's columns, where they differ from the default.
    probabilities
        Whether the scores of a file are probabilities.
    task
        Of a file, "binary" or "regression"; a bundled stream has its own.
    distributions
        Whether the whole distributions of a regression are written.
    forgetting
        Of `config.Calibrator`: at most one of window, max_age, half_life.
    """

    stream: str
    delay: int
    output: str
    learner: str | None = None
    columns: Mapping[str, str] = {}
    probabilities: bool = False
    task: str | None = None
    distributions: bool = False
    forgetting: Mapping[str, Any] = {}


def of_stream(asked: Asked) -> Job:
    """Make a job of a bundled stream or a file of scores and labels.

    Parameters
    ----------
    asked
        What is asked.

    Returns
    -------
    Job
        It stops at the first bad record.

    Raises
    ------
    ParameterError
        If there is no such stream, or an option does not go with it.
    RecordError
        If it is a file without a record.
    MissingExtraError
        If it is a bundled stream and river is not installed.
    """
    path = Path(asked.stream)
    if path.suffix or len(path.parts) > 1:
        return _of_file(asked, path)
    return _of_bundled(asked)


def _of_bundled(asked: Asked) -> Job:
    source = BundledStream(asked.stream)
    of_files = {"probabilities": asked.probabilities, "task": asked.task is not None}
    for option in [*asked.columns, *(name for name, given in of_files.items() if given)]:
        msg = f"--{option} is for files; {asked.stream} is scored by its learner, leave it out"
        raise ParameterError(msg)
    flags = {
        "input.observations": "-",  # which the stream takes the place of
        "input.format": "jsonl",
        "task.scores": "any" if source.task == "regression" else "probability",
        "task.classes": source.classes,
        "learner.name": asked.learner or USUAL[source.task],
    }
    return _job(asked, source.task, flags)._replace(
        source=Delayed(source, count=asked.delay), others=()
    )


def _of_file(asked: Asked, path: Path) -> Job:
    _require_file(path, asked.stream)
    if asked.learner is not None:
        msg = f"--learner is for bundled streams; {asked.stream} brings its scores, leave it out"
        raise ParameterError(msg)
    if asked.task == "regression" and asked.probabilities:
        msg = "--probabilities is for labels 0 and 1; leave it out where they are numbers"
        raise ParameterError(msg)
    if asked.task == "multiclass":
        msg = "--task multiclass needs the classes and a column for each; write a configuration"
        raise ParameterError(msg)
    flags = {
        "input.observations": asked.stream,
        "task.scores": "probability" if asked.probabilities else "any",
        **{f"input.fields.{one}": path for one, path in _fields(asked, path).items()},
    }
    return _job(asked, asked.task or "binary", flags)


def _job(asked: Asked, task: str, flags: Mapping[str, Any]) -> Job:
    """Make the job of a configuration that says what is asked, and no state is kept."""
    distributions = "judged" if task == "regression" else "none"
    common = {
        "task.kind": task,
        "calibrator.distributions": "told" if asked.distributions else distributions,
        "input.delay": asked.delay,
        "output.predictions": asked.output,
        "output.on_bad_record": "stop",
        # A label comes after so many observations, however long that takes.
        "limits.label_wait": LARGEST_TIME,
        "limits.dedup_for": "7d",
        "limits.max_pending": min(max(1_000_000, asked.delay + 1), _MOST),
        **{f"calibrator.{name}": value for name, value in asked.forgetting.items()},
    }
    try:
        return job_of(configuration.load(flags={**common, **flags}, environ={}))
    except ConfigError as error:
        raise ParameterError("\n".join(map(_as_option, error.problems))) from None


def _as_option(problem: str) -> str:
    """Name options of the command in place of keys of a configuration."""
    return _KEY.sub(lambda key: _OPTIONS[key[0]], problem.removeprefix("command line: "))


def _require_file(path: Path, stream: str) -> None:
    if path.is_dir():
        msg = f"{stream} is a directory; name a CSV, JSON Lines or Parquet file in it"
        raise ParameterError(msg)
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else []
        msg = f"{stream}: no such file{did_you_mean(path.name, [one.name for one in beside])}"
        raise ParameterError(msg)
    kind_of(stream)


def _fields(asked: Asked, path: Path) -> dict[str, str]:
    """Name the fields: id and time are the number of the record if there are none of that name.

    A pipe cannot be looked into, so all of them are taken to be there.
    """
    wanted = _FIELDS | dict(asked.columns)
    if not path.is_file():
        return wanted
    there = first_fields(asked.stream)
    if there is None:
        msg = f"{asked.stream} holds no observation; it needs a record for each one"
        raise RecordError(msg)
    for one in {"id", "time"} - asked.columns.keys() - {*there}:
        wanted[one] = "row"
    if not there:  # whoever reads the record tells what is wrong with it
        return wanted
    for one, column in wanted.items():
        if (names := root(column)) and not {*names} & {*there}:
            msg = (
                f"{asked.stream} has no column {column}; its columns are {', '.join(there)}; "
                f"name the right one with --{one}{did_you_mean(column, there)}"
            )
            raise ParameterError(msg)
    return wanted
