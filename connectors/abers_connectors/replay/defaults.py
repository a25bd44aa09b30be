"""The defaults of a replay of a file or a data set, without a configuration.

A file has scores, and an option names its task. A data set knows its task and needs a learner. An
option that belongs to the other is refused, not ignored. Messages name the options of the command,
not the keys of a configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError, ParameterError, RecordError
from abers.learners.river_adapters import USUAL
from abers.stream.settings import LARGEST_TIME
from abers_connectors.config import model as configuration
from abers_connectors.files.formats import scheme_of
from abers_connectors.mapping.fields import root
from abers_connectors.replay.job import Job, unchecked_job
from abers_connectors.replay.options import given
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.registry import SOURCES, is_dataset, open_source
from abers_connectors.sources.river_datasets import RiverDataset
from abers_connectors.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.replay.options import ReplayOptions

__all__ = ["job_of_input"]

_DEFAULT_FIELDS = {"score": "score", "label": "label", "id": "id", "time": "time"}
_OPTIONS = {
    "task.kind": "--task",
    "calibrator.distributions": "--distributions",
    "learner.name": "--learner",
    "input.delay": "--delay",
    "output.predictions": "--output",
    "input.observations": "the input",
    "calibrator.kind": "--calibrator",
    "calibrator.probability": "--probability",
    "calibrator.support": "--support",
    "calibrator.coverage": "--coverage",
    "task.scores": "--scores",
    "calibrator.window": "--window",
    "calibrator.max_age": "--max-age",
    "calibrator.half_life": "--half-life",
    **{f"input.fields.{one}": f"--{one}" for one in _DEFAULT_FIELDS},
}
_KEY = re.compile("|".join(map(re.escape, _OPTIONS)))
_MAX_PENDING = 2**31 - 1  # observations


def job_of_input(options: ReplayOptions) -> Job:
    """Return the job of a data set, or of a file or URL of scores and labels.

    It stops at the first bad record. A missing input, and an option that does not apply to it, is
    a ParameterError; a file without a record a RecordError.
    """
    if options.from_ is not None:
        msg = f"--from goes with a configuration; {options.stream} is read itself, leave it out"
        raise ParameterError(msg)
    return _job_of_dataset(options) if is_dataset(options.stream) else _job_of_file(options)


def _job_of_dataset(options: ReplayOptions) -> Job:
    """Return the job of a river dataset; refuse options that are for files."""
    source = RiverDataset(options.stream)
    of_files = {**options.columns, "scores": options.scores, "task": options.task}
    for option in given(of_files):
        msg = f"--{option} is for files; {options.stream} is scored by its learner, leave it out"
        raise ParameterError(msg)
    flags = {
        "input.observations": "-",  # replaced by the data set
        "input.format": "jsonl",
        "task.scores": "any" if source.task == "regression" else "probability",
        "task.classes": source.classes,
        "learner.name": options.learner or USUAL[source.task],
    }
    return _job_without_state(options, source.task, flags)._replace(
        source=DelayedLabels(source, count=options.label_delay), others=()
    )


def _job_of_file(options: ReplayOptions) -> Job:
    """Return the job of a file of scores; refuse options that do not apply."""
    if scheme_of(options.stream) is None:
        _require_file(options.stream)
    SOURCES.key(options.stream)
    if options.learner is not None:
        msg = f"--learner is for data sets; {options.stream} has its scores, leave it out"
        raise ParameterError(msg)
    if options.task == "regression" and options.scores not in {None, "any"}:
        msg = (
            f"--scores {options.scores} is for labels 0 and 1; leave it out where they are numbers"
        )
        raise ParameterError(msg)
    if options.task == "multiclass":
        msg = "--task multiclass needs the classes and a column for each; write a configuration"
        raise ParameterError(msg)
    flags = {
        "input.observations": options.stream,
        "task.scores": options.scores or "any",
        **{f"input.fields.{one}": path for one, path in _fields(options).items()},
    }
    return _job_without_state(options, options.task or "binary", flags)


def _job_without_state(options: ReplayOptions, task: str, flags: Mapping[str, Any]) -> Job:
    """Return the job of the equivalent configuration, without a state."""
    distributions = "scored" if task == "regression" else "none"
    common = {
        "task.kind": task,
        "calibrator.distributions": "full" if options.distributions else distributions,
        "calibrator.kind": options.calibrator,
        "calibrator.probability": options.probability,
        "calibrator.support": options.support or (),
        "calibrator.coverage": options.coverage,
        "input.delay": options.label_delay,
        "output.predictions": options.output or "-",
        "output.on_bad_record": "stop",
        # A label comes after a number of observations, however long that takes.
        "limits.label_timeout": LARGEST_TIME,
        "limits.dedup_ttl": "7d",
        "limits.max_pending": min(max(1_000_000, options.label_delay + 1), _MAX_PENDING),
        **{f"calibrator.{one}": _span(text) for one, text in given(options.forgetting).items()},
    }
    try:
        return unchecked_job(configuration.load(flags={**common, **flags}, environ={}))
    except ConfigError as error:
        raise ParameterError("\n".join(map(_as_option, error.problems))) from None


def _span(text: int | str) -> int | str:
    """Return a plain number, which is in milliseconds, as an integer."""
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def _as_option(problem: str) -> str:
    """Replace the keys of a configuration by options of the command."""
    return _KEY.sub(lambda key: _OPTIONS[key[0]], problem.removeprefix("command line: "))


def _require_file(name: str) -> None:
    path = Path(name)
    if path.is_dir():
        msg = f"{name} is a directory; name a CSV, JSON Lines or Parquet file in it"
        raise ParameterError(msg)
    if not path.exists():
        siblings = path.parent.iterdir() if path.parent.is_dir() else []
        msg = f"{name}: no such file{did_you_mean(path.name, [one.name for one in siblings])}"
        raise ParameterError(msg)


def _fields(options: ReplayOptions) -> dict[str, str]:
    """Return the paths of the fields; a missing id or time is the number of the record.

    All fields are taken to exist where the first record cannot be read in advance, as in a pipe.
    """
    columns = given(options.columns)
    wanted = _DEFAULT_FIELDS | columns
    source = open_source(options.stream, SourceOptions())
    if not isinstance(source, HasFields) or not Path(options.stream).is_file():
        return wanted
    known = source.first_fields()
    if known is None:
        msg = f"{options.stream} holds no observation; it needs a record for each one"
        raise RecordError(msg)
    for one in {"id", "time"} - columns.keys() - {*known}:
        wanted[one] = "row"
    if not known:  # the run says what is wrong with the record
        return wanted
    for one, column in wanted.items():
        if (names := root(column)) and not {*names} & {*known}:
            msg = (
                f"{options.stream} has no column {column}; its columns are {', '.join(known)}; "
                f"name the right one with --{one}{did_you_mean(column, known)}"
            )
            raise ParameterError(msg)
    return wanted
