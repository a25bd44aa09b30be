"""The defaults of a replay of a file or a data set, without a configuration.

A file has scores, and an option names its task. A data set knows its task and needs a learner. An
option that belongs to the other is refused, not ignored. Messages name the options of the command,
not the keys of a configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.column_names import REQUIRED, USUAL_NAMES, usual_column
from abers.exceptions import ConfigError, ParameterError, RecordError
from abers.learners.river_adapters import USUAL
from abers.stream.fields import root
from abers.stream.settings import LARGEST_TIME, Settings
from abers_connectors.config import model as configuration
from abers_connectors.files.formats import scheme_of
from abers_connectors.mapping.needed_columns import column_meant
from abers_connectors.replay.job import Job, unchecked_job
from abers_connectors.replay.options import given
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.data_files import is_table
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.registry import SOURCES, is_dataset, is_rereadable, open_source
from abers_connectors.sources.river_datasets import RiverDataset
from abers_connectors.suggestions import no_such_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.sources.base import Source

__all__ = ["as_option", "columns_of", "job_of_input"]

_OPTIONS = {
    'set task.kind = "regression"': "add --task regression",
    'set task.scores = "probability"': "add --scores probability",
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
    "input.pos_label": "--positive",
    "input.timezone": "--timezone",
    **{f"input.fields.{one}": f"--{one.replace('_', '-')}" for one in (*REQUIRED, "label_time")},
    "[input.fields]": "--score, --label, --id or --time",
    ", or name the format in input.format": "",
}
_KEY = re.compile("|".join(map(re.escape, sorted(_OPTIONS, key=len, reverse=True))))
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical lines"}
_MAX_PENDING = 2**31 - 1  # observations
_MAX_BYTES = Settings().max_bytes
_MAX_MODELS = 100_000  # a service has 1,000 by default, for it can have junk in their names
_PENDING_BYTES = 2_000  # that an observation may count while it waits


def job_of_input(options: ReplayOptions) -> Job:
    """Return the job of a data set, or of a file or URL of scores and labels.

    It stops at the first bad record. A missing input, and an option that does not apply to it, is
    a ParameterError; a file without a record a RecordError.
    """
    if options.from_ is not None:
        msg = f"--from goes with a configuration; {options.stream} is read itself, leave it out"
        raise ParameterError(msg)
    if Path(options.stream).is_dir() and not is_table(options.stream):
        msg = f"{options.stream} is a directory; name a CSV, JSON Lines or Parquet file in it"
        raise ParameterError(msg)
    return _job_of_dataset(options) if is_dataset(options.stream) else _job_of_file(options)


def _job_of_dataset(options: ReplayOptions) -> Job:
    """Return the job of a river dataset; refuse options that are for files."""
    source = RiverDataset(options.stream)
    of_files = {
        **options.columns,
        "scores": options.scores,
        "task": options.task,
        "positive": options.positive or None,
        "timezone": options.timezone,
    }
    for option in given(of_files):
        name = option.replace("_", "-")
        msg = f"--{name} is for files; {options.stream} is scored by its learner, leave it out"
        raise ParameterError(msg)
    flags = {
        "input.observations": "-",  # replaced by the data set
        "input.format": "jsonl",
        "task.scores": "any" if source.task == "regression" else "probability",
        "task.classes": source.classes,
        "learner.name": options.learner or USUAL[source.task],
    }
    delay = options.lateness
    delayed = DelayedLabels(source, count=delay.observations, span=delay.span)
    return _job_without_state(options, source.task, flags)._replace(source=delayed, others=())


def _job_of_file(options: ReplayOptions) -> Job:
    """Return the job of a file of scores; refuse options that do not apply."""
    if scheme_of(options.stream) is None and not is_table(options.stream):
        _require_file(options.stream)
    try:
        SOURCES.key(options.stream)
    except ParameterError as error:
        raise ParameterError(as_option(str(error))) from None
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
    fields = columns_of(options)
    timed = "label_time" in fields
    if timed and options.delay is not None:  # the column was named
        msg = "--delay does not go with a column of label times; leave one of them out"
        raise ParameterError(msg)
    flags = {
        "input.observations": options.stream,
        "input.pos_label": options.positive,
        "input.timezone": options.timezone,
        **{f"input.fields.{one}": path for one, path in fields.items()},
        **({"input.delay": None} if timed else {}),
    }
    task = options.task or "binary"
    scores = options.scores
    if scores is None and task == "binary":
        plain = options._replace(calibrator=None, probability=None)  # which may need probabilities
        sample = _job_without_state(plain, task, {**flags, "task.scores": "any"})
        scores = "probability" if _are_probabilities(sample.source) else None
    return _job_without_state(options, task, {**flags, "task.scores": scores or "any"})


def _are_probabilities(source: Source) -> bool:
    """Return whether the scores of the first batch of a file lie in [0, 1].

    Nothing is read in advance of what can be read only once.
    """
    if not isinstance(source, DelayedLabels) or not is_rereadable(source.name):
        return False
    first = source.first()
    scores = None if first is None or first.bad else first.events.scores
    if scores is None or scores.dtype.kind != "f":
        return False
    return bool(((scores >= 0.0) & (scores <= 1.0)).all())


def _job_without_state(options: ReplayOptions, task: str, flags: Mapping[str, Any]) -> Job:
    """Return the job of the equivalent configuration, without a state."""
    distributions = "scored" if task == "regression" else "none"
    late = options.lateness.observations or 0
    common = {
        "task.kind": task,
        "calibrator.distributions": "full" if options.distributions else distributions,
        "calibrator.kind": options.calibrator,
        "calibrator.probability": options.probability,
        "calibrator.support": options.support or (),
        "calibrator.coverage": options.coverage,
        "input.delay": options.lateness,
        "output.predictions": options.output or "-",
        "output.on_bad_record": "stop",
        # A label comes after a number of observations, however long that takes.
        "limits.label_timeout": LARGEST_TIME,
        "limits.dedup_ttl": "7d",
        "limits.max_models": _MAX_MODELS,
        "limits.max_pending": min(max(1_000_000, late + 1), _MAX_PENDING),
        "limits.max_bytes": min(max(_MAX_BYTES, late * _PENDING_BYTES), LARGEST_TIME),
        **{f"calibrator.{one}": _span(text) for one, text in given(options.forgetting).items()},
    }
    try:
        job = unchecked_job(configuration.load(flags={**common, **flags}, environ={}))
        return job if options.output else job._replace(outputs={})
    except ConfigError as error:
        raise ParameterError("\n".join(map(as_option, error.problems))) from None


def _span(text: int | str) -> int | str:
    """Return a plain number, which is in milliseconds, as an integer."""
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def as_option(problem: str) -> str:
    """Replace the keys of a configuration by options of the command."""
    return _KEY.sub(lambda key: _OPTIONS[key[0]], problem.removeprefix("command line: "))


def _require_file(name: str) -> None:
    path = Path(name)
    if not path.exists():
        msg = f"{name}: {no_such_file(path)}"
        raise ParameterError(msg)


def columns_of(options: ReplayOptions) -> dict[str, str]:
    """Return the column of each field of a file, as it was named or by its usual names.

    Model and segment are there if the file has them. A missing id or time is the number of the
    record. All columns are taken to exist where the first record cannot be read in advance, as in a
    pipe.
    """
    named = given(options.columns)
    wanted = {one: USUAL_NAMES[one][0] for one in REQUIRED} | named
    source = open_source(options.stream, SourceOptions())
    if not isinstance(source, HasFields) or not is_rereadable(options.stream):
        return wanted
    known = source.first_fields()
    if known is None:
        needs = "a row for each, with a score and a label"
        msg = f"{options.stream} holds no observation; it needs {needs}"
        raise RecordError(msg)
    unnamed = [one for one in known if one not in {*named.values()}]
    for one in (one for one in USUAL_NAMES if one not in named):
        if column := usual_column(one, unnamed):
            wanted[one] = column
        elif one in {"id", "time"} and Path(options.stream).is_file():
            wanted[one] = "row"  # which means nothing where there are many files
    if "label_time" not in named and (wanted["time"] == "row" or options.delay is not None):
        wanted.pop("label_time", None)  # it means nothing with row numbers, and a delay beats it
    _require_commas(known, options.stream)
    if not known:  # the run says what is wrong with the record
        return wanted
    for one, column in wanted.items():
        _require_column(one, column, known, options.stream)
    return wanted


def _require_commas(known: Sequence[str], stream: str) -> None:
    """Refuse a file with one column, a line of names with other characters between them."""
    for separator, name in _SEPARATORS.items():
        if len(known) == 1 and separator in known[0]:
            msg = f"{stream}: {name} separate its columns, {known[0]!r}; write commas instead"
            raise ParameterError(msg)


def _require_column(field: str, column: str, known: Sequence[str], stream: str) -> None:
    names = root(column)
    if names and not {*names} & {*known}:
        if len(known) == 1:
            msg = f"{stream} has one column, {known[0]}; it needs one of scores and one of labels"
            raise ParameterError(msg)
        option = f"--{field.replace('_', '-')}"
        msg = (
            f"{stream} has no column {column}; its columns are {', '.join(known)}; "
            f"name the right one with {option}{column_meant(column, known)}"
        )
        raise ParameterError(msg)
