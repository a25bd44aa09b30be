"""The plan of `abers replay`: what is asked for, found or assumed, and what to try next.

The defaults of a replay of a file or a data set, without a configuration. A file has scores, and an
option names its task. A data set knows its task and needs a learner. An option that belongs to the
other is refused, not ignored.

A replay reads a configuration, a file or a data set. An option beats the key of a configuration. A
replay of a configuration never changes the saved state of that configuration, nor the outputs that
belong to the state.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from abers.exceptions import ConfigError, ParameterError
from abers.learners.river_adapters import USUAL
from abers.stream.cells import BadRecordError, column
from abers.stream.settings import LARGEST_TIME, Settings
from abers.stream.times import TimeReader
from abers_connectors.config import model as configuration
from abers_connectors.config.layers import OptionsError, unused_variables
from abers_connectors.config.sections import StateSection, dead_letters_beside
from abers_connectors.config.values import Lateness
from abers_connectors.files import STANDARD, FileUse, is_same, scheme_of
from abers_connectors.regular_files import no_such_file
from abers_connectors.replay.found_columns import are_probabilities, find_columns, values_of
from abers_connectors.replay.job import Job, files_of, job_of_config, unchecked_job, unreadable
from abers_connectors.replay.options import (
    arguments,
    flag_of,
    given,
    keys_of,
    report_format,
)
from abers_connectors.replay.run import Pace, parse_speed
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.line_formats import has_decimal_commas
from abers_connectors.sources.merge import MergedSource, labels_by_id
from abers_connectors.sources.ordered import ArrivalLog, part_of
from abers_connectors.sources.registry import SOURCES, is_dataset, is_read_once, is_rereadable
from abers_connectors.sources.river_datasets import RiverDataset
from abers_connectors.sources.table_files import is_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers_connectors.replay.found_columns import FoundColumns
    from abers_connectors.replay.options import Period, ReplayOptions
    from abers_connectors.sources.base import Source

__all__ = [
    "ReplayPlan",
    "Said",
    "job_of_input",
    "next_steps",
    "plan_replay",
    "require_table_alone",
]

_USES = {"input.observations": "the input", "input.labels": "--labels"}
_MAX_PENDING = 2**31 - 1  # observations
_MAX_BYTES = Settings().max_bytes
_MAX_MODELS = 100_000  # a service has 1,000 by default, for it can have junk in their names
_ONE_MODEL = "const:default"  # where no column has the model: "model" may have something else
_PENDING_BYTES = 2_000  # that an observation may count while it waits


def job_of_input(options: ReplayOptions) -> tuple[Job, FoundColumns | None]:
    """Return the job of a data set, or of a file or URL of scores and labels, and its columns.

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
    if is_dataset(options.stream):
        return _job_of_dataset(options), None
    _require_options_of_file(options)
    found = find_columns(options)
    return _job_of_file(options, found), found


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


def _job_of_file(options: ReplayOptions, found: FoundColumns) -> Job:
    """Return the job of a file of scores; refuse a delay that does not apply."""
    fields, mixed = found.fields, found.mixed
    _require_one_delay(options, fields, mixed=mixed)
    flags = {
        "input.observations": options.stream,
        "input.decimal": decimal_of(options),
        **{f"input.fields.{one}": path for one, path in ({"model": _ONE_MODEL} | fields).items()},
        **({"input.delay": None} if "label_time" in fields or options.labels or mixed else {}),
    }
    if options.labels is not None:
        flags["input.fields.label_time"] = None  # the column is one of the second file
        second = found.label_fields.items()
        flags |= {f"input.label_fields.{one}": column for one, column in second}
    flags["task.scores"] = _kind_of_scores(options, flags)
    job = _job_without_state(options, options.kind, flags)
    if found.by_id and isinstance(job.source, MergedSource):
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
    if name == STANDARD:
        msg = 'standard input needs a configuration: input.observations = "-" for abers run'
        raise ParameterError(msg)
    if scheme_of(name) is None and not is_table(name) and not path.exists():
        msg = f"{name}: {no_such_file(path)}"
        raise ParameterError(msg)
    SOURCES.key(name)


_WORDS = {"label_time": "label time"}
_KINDS = {"probability": " (probabilities)", "logit": " (logits)", "percent": " (per cent)"}
_SHOWN = 5  # labels in a sentence


def _lateness(options: ReplayOptions, found: FoundColumns | None) -> Lateness:
    """Return the delay of the labels: that of the options, or none if labels have times."""
    timed = found is not None and ("label_time" in found.fields or found.mixed)
    return Lateness() if timed or options.labels is not None else options.lateness


def _said_of_columns(options: ReplayOptions, job: Job, found: FoundColumns) -> str:
    """Return which column is what."""
    kind = _KINDS.get("percent" if options.percent else job.settings.scores, "")
    columns = [_column(one, path) for one, path in found.fields.items()]
    columns[[*found.fields].index("score")] += kind
    said = ", ".join(columns)
    if options.labels is None:
        return said
    second = (f"{one} = {column}" for one, column in found.label_fields.items())
    return f"{said}; {options.labels}: " + ", ".join(second)


def _assumptions(options: ReplayOptions, job: Job, found: FoundColumns | None) -> Iterator[str]:
    """Yield sentences about what was found in an input, and what is assumed of it."""
    if found is not None:
        if options.decimal is None and decimal_of(options) == ",":
            yield "Decimals follow a comma; if not, add --decimal ."
        ends = None if options.scores else _ends_of_scores(options, job)
        if ends is not None:
            low, high = (f"{end:g}" for end in ends)
            yield (
                f"Scores lie in [{low}, {high}], beyond [0, 1], and have no verdict of their own. "
                "Are they logits? Add --scores logit. Are they per cent? Add --scores percent."
            )
        if found.mixed:
            yield f"{options.stream} has labels in rows of their own, and is read in its order."
        if (unused := found.unused_label) is not None:
            yield (
                f"Labels come from {options.labels}; column {unused} of {options.stream} is not "
                "read."
            )
        if found.by_id:
            yield (
                f"{options.labels} names no model: a label counts for each model that "
                "predicted its id."
            )
        if options.positive and _lacks_positives(options, job):
            yield _without_positives(options, found.fields)
    if options.delay is None and (delay := _lateness(options, found)) != Lateness():
        of_file = "Name the columns of times in --time and --label-time, or set"
        yield (
            f"Labels are assumed to come {delay}, and the results depend on it. "
            f"{'Set' if found is None else of_file} --delay to a count or a duration, "
            "or compare: --delays 0,50,500,5000."
        )


def _ends_of_scores(options: ReplayOptions, job: Job) -> tuple[float, float] | None:
    """Return the least and the largest of the first scores beyond [0, 1], of two classes."""
    if job.settings.task != "binary" or job.settings.scores == "probability":
        return None
    scores = first_scores(options, job)
    return None if scores is None else (float(np.min(scores)), float(np.max(scores)))


def _lacks_positives(options: ReplayOptions, job: Job) -> bool:
    """Return whether a file that can be read again begins with labels, and none of them is 1."""
    if not isinstance(job.source, DelayedLabels) or not is_rereadable(options.stream):
        return False
    first = job.source.first()
    if first is None or first.bad or first.events.awaited is None:  # the run says what is wrong
        return False
    known = [one for one in first.events.awaited.tolist() if one is not None]
    return bool(known) and 1 not in known


def _without_positives(options: ReplayOptions, columns: Mapping[str, Any]) -> str:
    """Return the sentence on labels that are all 0; those in another case are a ParameterError."""
    named = " or ".join(map(repr, options.positive))
    label = columns["label"]
    words = sorted({str(one) for one in values_of(options, [label])[label]})
    given = {one.casefold() for one in options.positive}
    if meant := next((word for word in words if word.casefold() in given), None):
        msg = (
            f"no label among the first records of {options.stream} is {named} (--positive); "
            f"did you mean {meant}?"
        )
        raise ParameterError(msg)
    sentence = f"No label among the first records is {named} (--positive): they all count as 0."
    return f"{sentence} Labels found: {', '.join(words[:_SHOWN])}." if words else sentence


def _column(field: str, path: Any) -> str:  # noqa: ANN401 - of a field
    if isinstance(path, dict):
        return "scores " + ", ".join(f"{name} = {column}" for name, column in path.items())
    return f"{_WORDS.get(field, field)} = {'row number' if path == 'row' else path}"


_COMPARED = {
    "binary": "ivap,platt,protected",
    "multiclass": "one-vs-rest,one-vs-one,protected",
}
_MOST = 3


def next_steps(options: ReplayOptions, plan: ReplayPlan) -> list[list[str]]:
    """Return the arguments of some commands that fit what was just replayed.

    Examples
    --------
    >>> from abers_connectors.replay.options import ReplayOptions
    >>> from abers_connectors.replay.plan import plan_replay
    >>> options = ReplayOptions("Phishing", delay="6h", report="a.html")
    >>> for arguments in next_steps(options, plan_replay(options)):
    ...     print(*arguments)
    Phishing --delay 6h --compare ivap,platt,protected
    Phishing --delay 6h --output predictions.jsonl
    >>> for arguments in next_steps(options._replace(probability="merged"), plan_replay(options)):
    ...     print(*arguments)
    Phishing --delay 6h --compare ivap,platt,protected
    Phishing --probability merged --delay 6h --output predictions.jsonl
    """
    same = arguments(options)
    delay = [] if options.delay is None else ["--delay", options.delay]
    delayed = [*same, *delay]
    steps = []
    if options.report is None:
        steps.append([*delayed, "--report", "report.html"])
    if options.delay is None and plan.delay != Lateness():
        steps.append([*same, "--delays", "0,50,500,5000"])
    if (task := plan.job.settings.task) in _COMPARED:
        steps.append([*arguments(_compared(options)), *delay, "--compare", _COMPARED[task]])
    if options.output is None:
        steps.append([*delayed, "--output", "predictions.jsonl"])
    return steps[:_MOST]


def _compared(options: ReplayOptions) -> ReplayOptions:
    """Return options without those that choose a calibrator, which a comparison does itself."""
    return options._replace(calibrator=None, probability=None, coverage=None)


class Said(NamedTuple):
    """What is said of an input: which column is what, and sentences on what is assumed."""

    columns: str | None = None
    notes: Sequence[str] = ()


class ReplayPlan(NamedTuple):
    """The plan of a replay."""

    job: Job
    pace: Pace | None  # None for as fast as possible
    delay: Lateness | None  # of the labels; None if a configuration sets it
    said: Said = Said()
    reference: Period | None = None  # to draw next to the whole stream


def plan_replay(options: ReplayOptions, *, writes: bool = True) -> ReplayPlan:
    """Return the plan of a replay; raise a ParameterError if options contradict each other.

    A comparison, and a replay that writes nothing, has no outputs.
    """
    if options.save_state is not None:
        msg = "--save-state goes with a configuration that has topics, in [kafka]"
        raise ParameterError(msg)
    if options.compare is not None:
        require_table_alone("compare", options)
    if options.workers > 1:
        _require_alone(options)
    if options.report is not None:
        report_format(options.report)  # raises for an unknown one
    speed = parse_speed(options.speed)
    job, found = (_stateless_job(options), None) if options.configured else job_of_input(options)
    if options.compare is not None or not writes:
        job = job._replace(outputs={})
    elif options.configured:
        job = _apart_from_state(options, job)
    said = Said() if options.configured else _said(options, job, found)
    since, until = _ends_of_range(options)
    if since is not None or until is not None or options.models:
        job = job._replace(source=_within(job.source, since, until, options.models))
    if options.workers > 1:
        if is_read_once(job.source):
            msg = "--workers reads the stream again if a worker ends early; give a file, no pipe"
            raise ParameterError(msg)
        job = job._replace(workers=options.workers)
    pace = None if speed is None else Pace(speed)
    delay = None if options.configured else _lateness(options, found)
    return ReplayPlan(job, pace, delay, said, _reference(options))


def _said(options: ReplayOptions, job: Job, found: FoundColumns | None) -> Said:
    columns = None if found is None else _said_of_columns(options, job, found)
    return Said(columns, [*_assumptions(options, job, found)])


def _ends_of_range(options: ReplayOptions) -> tuple[int | None, int | None]:
    """Return the times of --since and --until; raise a ParameterError if the range is empty."""
    since, until = _time(options, "since", options.since), _time(options, "until", options.until)
    if since is not None and until is not None and since >= until:
        msg = "--until is not after --since, so nothing is left; give a later one"
        raise ParameterError(msg)
    return since, until


def _reference(options: ReplayOptions) -> Period | None:
    """Return the times of --reference; raise a ParameterError if they are no period."""
    if options.reference is None:
        return None
    first, dots, end = options.reference.partition("..")
    if not dots:
        example = "2024-01-01T00:00:00Z..2024-02-01T00:00:00Z"
        msg = f"--reference {options.reference}: write START..END, such as {example}"
        raise ParameterError(msg)
    times = _time(options, "reference", first), _time(options, "reference", end)
    if times[0] is None or times[1] is None or times[0] >= times[1]:
        msg = f"--reference {options.reference}: the end is not after the start; give a later one"
        raise ParameterError(msg)
    if options.report is None and not options.live:
        msg = "--reference is drawn in a report or a live page; add --report FILE or --live"
        raise ParameterError(msg)
    return times[0], times[1]


def _time(options: ReplayOptions, option: str, text: str | None) -> int | None:
    """Return a time, which without an offset is in the zone of --timezone."""
    try:
        zone = None if options.timezone is None else ZoneInfo(options.timezone)
        return None if text is None else TimeReader(zone).one(text)
    except BadRecordError as error:
        msg = f"--{option}: {error.said('flag')}"
        raise ParameterError(msg) from None


def require_table_alone(table: str, options: ReplayOptions) -> None:
    """Raise a ParameterError for options that do not go with --compare or --delays."""
    excluded = {
        "output": options.output,
        "speed": options.speed != "max" or None,
        "report": options.report if table == "delays" else None,
        "live": options.live or None,
        "coverage": options.coverage if table == "compare" else None,
        "compare": options.compare if table == "delays" else None,
        "delay": options.delay if table == "delays" else None,
    }
    for option in given(excluded):
        msg = f"--{option} does not go with --{table}, which writes only its table"
        raise ParameterError(msg)
    named = {"calibrator": options.calibrator, "probability": options.probability}
    for option in given(named if table == "compare" else {}):
        msg = f"--{option} does not go with --compare, which names the calibrators itself"
        raise ParameterError(msg)


def _require_alone(options: ReplayOptions) -> None:
    """Raise a ParameterError for options that need all events in one process, one after another."""
    excluded = {
        "speed": options.speed != "max" or None,
        "live": options.live or None,
        "reference": options.reference,
    }
    for option in given(excluded):
        msg = f"--{option} does not go with --workers: no process has all models; leave one out"
        raise ParameterError(msg)


def _within(source: Source, since: int | None, until: int | None, models: Sequence[str]) -> Source:
    """Return the events of a source in a time range, and of some models, as a source."""
    if isinstance(source, DelayedLabels):  # which keeps the labels of the range's observations
        return source.part(since, until, models)
    return part_of(source, since, until, models)


def _stateless_job(options: ReplayOptions) -> Job:
    """Return the job of a configuration, without its state."""
    if options.from_ is not None and (problem := unreadable(options.from_)):
        msg = f"--from: {problem}"
        raise ParameterError(msg)
    flags = given({"input.observations": options.from_, "output.predictions": options.output})
    given_flags = {**keys_of(options), **flags}
    config = configuration.load(options.stream, flags=given_flags, front="flag")
    stateless = msgspec.structs.replace(config, state=StateSection())
    return job_of_config(stateless, options.stream)


def _apart_from_state(options: ReplayOptions, job: Job) -> Job:
    """Return a job with outputs apart from the files that belong to a state, if there is one."""
    own = configuration.load(options.stream)  # without the flags, so with its own outputs
    if own.state.path is None:
        return job
    named, first = options.output, own.output.predictions
    folders = [one for one in (first, own.output.outcomes) if one is not None]  # those of Parquet
    if (
        named is None
        or is_same(named, first)
        or any(is_same(str(Path(named).parent), one) for one in folders)
    ):
        msg = f"{options.stream} keeps a state, to which its outputs belong; name another --output"
        raise ParameterError(msg)
    dead = {} if job.limit.stop else {"dead_letters": dead_letters_beside(named)}
    # `reads` protects the files that the configuration writes: this job must not write them.
    protected = [FileUse(use.name, use.path, reads=True) for use in files_of(own) if not use.reads]
    return job._replace(
        outputs={"predictions": named, **dead},
        others=(*job.others, *protected),
        beside=True,
    )
