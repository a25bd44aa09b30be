"""The defaults of a replay of a file or a data set, without a configuration.

A file has scores, and an option names its task. A data set knows its task and needs a learner. An
option that belongs to the other is refused, not ignored.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import ConfigError, ParameterError
from abers.learners.river_adapters import USUAL
from abers.stream.column_types import column
from abers.stream.settings import LARGEST_TIME, Settings
from abers_connectors.config import model as configuration
from abers_connectors.config.layers import OptionsError
from abers_connectors.config.variables import unused_variables
from abers_connectors.files.formats import scheme_of
from abers_connectors.replay.found_columns import (
    are_probabilities,
    columns_of,
    is_by_id,
    is_mixed,
    label_columns_of,
)
from abers_connectors.replay.job import Job, unchecked_job
from abers_connectors.replay.options import flag_of, given, keys_of
from abers_connectors.sources.arrivals import ArrivalLog
from abers_connectors.sources.csv_dialect import has_decimal_commas
from abers_connectors.sources.data_files import is_table
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.labels_by_id import labels_by_id
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.registry import SOURCES, is_dataset, is_rereadable
from abers_connectors.sources.river_datasets import RiverDataset
from abers_connectors.suggestions import no_such_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abers_connectors.replay.options import ReplayOptions

__all__ = ["decimal_of", "first_scores", "job_of_input"]

_USES = {"input.observations": "the input", "input.labels": "--labels"}
_MAX_PENDING = 2**31 - 1  # observations
_MAX_BYTES = Settings().max_bytes
_MAX_MODELS = 100_000  # a service has 1,000 by default, for it can have junk in their names
_ONE_MODEL = "const:default"  # where no column has the model: "model" may have something else
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
    for message in unused_variables(os.environ):
        warnings.warn(message, stacklevel=2)
    return _job_of_dataset(options) if is_dataset(options.stream) else _job_of_file(options)


def _job_of_dataset(options: ReplayOptions) -> Job:
    """Return the job of a river dataset; refuse options that are for files."""
    source = RiverDataset(options.stream)
    of_files = {
        **{flag_of(one)[2:]: column for one, column in options.columns.items()},
        "labels": options.labels,
        "delimiter": options.delimiter,
        "decimal": options.decimal,
        "scores": options.scores,
        "task": options.task,
        "positive": options.positive or None,
        "timezone": options.timezone,
    }
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
    delay = options.lateness
    delayed = DelayedLabels(source, count=delay.observations, span=delay.span, whole=True)
    return _job_without_state(options, source.task, flags)._replace(source=delayed, others=())


def _require_classes(options: ReplayOptions, columns: Mapping[str, str]) -> None:
    """Raise a ParameterError if columns of classes are for another task, or of one class."""
    if options.kind != "multiclass":
        msg = (
            f"--task {options.task} needs one column of scores, and --score names one for each "
            "class; leave --task out, or name one column"
        )
        raise ParameterError(msg)
    if len(columns) == 1:
        msg = (
            f"--score names only the class {next(iter(columns))}; name each class once, with its "
            "column: --score low=p_low,mid=p_mid,high=p_high"
        )
        raise ParameterError(msg)


def _job_of_file(options: ReplayOptions) -> Job:
    """Return the job of a file of scores; refuse options that do not apply."""
    _require_options_of_file(options)
    fields, mixed = columns_of(options), is_mixed(options)
    _require_one_delay(options, fields, mixed=mixed)
    flags = {
        "input.observations": options.stream,
        "input.decimal": decimal_of(options),
        **{f"input.fields.{one}": path for one, path in ({"model": _ONE_MODEL} | fields).items()},
        **({"input.delay": None} if "label_time" in fields or options.labels or mixed else {}),
    }
    if options.labels is not None:
        second = label_columns_of(options, fields)
        flags["input.fields.label_time"] = None  # the column is one of the second file
        flags |= {f"input.label_fields.{one}": column for one, column in second.items()}
    flags["task.scores"] = _kind_of_scores(options, flags)
    job = _job_without_state(options, options.kind, flags)
    if is_by_id(options, fields) and isinstance(job.source, MergedSource):
        return job._replace(source=labels_by_id(job.source))
    return job


def _require_options_of_file(options: ReplayOptions) -> None:
    """Raise a ParameterError for a file that is not there, and for options that are not for it."""
    for one in filter(None, (options.stream, options.labels)):
        _require_readable(one)
    if options.learner is not None:
        msg = f"--learner is for data sets; {options.stream} has its scores, leave it out"
        raise ParameterError(msg)
    if options.task == "regression" and options.scores not in {None, "any"}:
        msg = (
            f"--scores {options.scores} is for labels 0 and 1; leave it out where they are numbers"
        )
        raise ParameterError(msg)
    if options.kind == "multiclass" and not isinstance(options.score, dict):
        msg = (
            "--task multiclass needs a column of scores for each class; name them: abers replay "
            f"{options.stream} --score low=p_low,mid=p_mid,high=p_high"
        )
        raise ParameterError(msg)
    if isinstance(options.score, dict):
        _require_classes(options, options.score)


def _require_one_delay(options: ReplayOptions, fields: Mapping[str, Any], *, mixed: bool) -> None:
    """Raise a ParameterError for a delay of labels that have times of their own."""
    if options.delay is None:
        return
    if "label_time" in fields:  # the column was named
        msg = "--delay does not go with a column of label times; leave one of them out"
        raise ParameterError(msg)
    if options.labels is not None:
        msg = "--delay does not go with --labels; a label comes at the time of its row"
        raise ParameterError(msg)
    if mixed:
        msg = "--delay does not go with labels in rows of their own; leave it out"
        raise ParameterError(msg)


def _kind_of_scores(options: ReplayOptions, flags: Mapping[str, Any]) -> str:
    """Return the kind of the scores, as it was named or as the first ones are."""
    scores = keys_of(options).get("task.scores")
    if scores is not None or options.kind == "regression":
        return scores or "any"
    plain = options._replace(calibrator=None, probability=None)  # which may need probabilities
    sample = _job_without_state(plain, options.kind, {**flags, "task.scores": "any"})
    found = first_scores(options, sample)
    return "any" if found is None or not are_probabilities(found) else "probability"


def decimal_of(options: ReplayOptions) -> str:
    """Return what precedes decimals: as it was named, or as the first lines of a file show it."""
    if options.decimal is not None:
        return options.decimal
    files = [one for one in (options.stream, options.labels) if one and Path(one).is_file()]
    return "," if any(map(has_decimal_commas, files)) else "."


def first_scores(options: ReplayOptions, job: Job) -> NDArray[np.float64] | None:
    """Return the first scores of a file, a row of each class; None if they are not all numbers.

    Nothing is read in advance of what can be read only once.
    """
    source = job.source
    if not isinstance(source, ArrivalLog | DelayedLabels | MergedSource) or not is_rereadable(
        options.stream
    ):
        return None
    first = source.first()
    if first is None or first.bad or first.events.scores is None:
        return None
    scores = column(first.events.scores[~first.events.labels].tolist())
    if not len(scores):
        return None
    if scores.dtype.kind == "f":
        return scores[:, None]
    return np.array([[*one.values()] for one in scores.tolist()], float)


def _job_without_state(options: ReplayOptions, task: str, flags: Mapping[str, Any]) -> Job:
    """Return the job of the equivalent configuration, without a state."""
    distributions = "scored" if task == "regression" else "none"
    late = options.lateness.observations or 0
    common = {
        "task.kind": task,
        "calibrator.distributions": distributions,
        "input.delay": options.lateness,
        "output.predictions": options.output or "-",
        "output.on_bad_record": "stop",
        # A label comes after a number of observations, however long that takes.
        "limits.label_timeout": LARGEST_TIME,
        "limits.dedup_ttl": "7d",
        "limits.max_models": _MAX_MODELS,
        "limits.max_pending": min(max(1_000_000, late + 1), _MAX_PENDING),
        "limits.max_bytes": min(max(_MAX_BYTES, late * _PENDING_BYTES), LARGEST_TIME),
        **keys_of(options),
    }
    try:
        config = configuration.load(flags={**common, **flags}, environ={}, front="flag")
        job = unchecked_job(config)
        others = tuple(use._replace(name=_USES[use.name]) for use in job.others)
        job = job._replace(others=others)
        return job if options.output else job._replace(outputs={})
    except ConfigError as error:
        raise OptionsError(error.problems) from None


def _require_readable(name: str) -> None:
    """Raise a ParameterError if a file does not exist, or is of an unknown kind."""
    path = Path(name)
    if scheme_of(name) is None and not is_table(name) and not path.exists():
        msg = f"{name}: {no_such_file(path)}"
        raise ParameterError(msg)
    SOURCES.key(name)
