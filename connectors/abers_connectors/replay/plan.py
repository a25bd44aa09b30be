"""The plan of `abers replay`: the job and the pace that the options of the command ask for.

A replay reads a configuration, a file or a data set. An option beats the key of a configuration. A
replay of a configuration never changes the saved state of that configuration, nor the outputs that
belong to the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from abers.exceptions import ParameterError
from abers.stream.cells import BadRecordError
from abers.stream.times import TimeReader
from abers_connectors.config import model as configuration
from abers_connectors.config.sections import StateSection, dead_letters_beside
from abers_connectors.files.aliases import FileUse, is_same
from abers_connectors.replay.assumptions import assumptions, columns_found, lateness_of
from abers_connectors.replay.defaults import job_of_input
from abers_connectors.replay.file_checks import files_of, unreadable
from abers_connectors.replay.job import Job, job_of_config
from abers_connectors.replay.options import given, keys_of, report_format
from abers_connectors.replay.pace import Pace, parse_speed
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.ordered import part_of
from abers_connectors.sources.registry import is_read_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.config.value_types import Lateness
    from abers_connectors.replay.options import Period, ReplayOptions
    from abers_connectors.sources.base import Source

__all__ = ["ReplayPlan", "Said", "plan_replay", "require_table_alone"]


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
    job = _stateless_job(options) if options.configured else job_of_input(options)
    if options.compare is not None or not writes:
        job = job._replace(outputs={})
    elif options.configured:
        job = _apart_from_state(options, job)
    said = Said() if options.configured else _said(options, job)
    since, until = _ends_of_range(options)
    if since is not None or until is not None or options.models:
        job = job._replace(source=_within(job.source, since, until, options.models))
    if options.workers > 1:
        if is_read_once(job.source):
            msg = "--workers reads the stream again if a worker ends early; give a file, no pipe"
            raise ParameterError(msg)
        job = job._replace(workers=options.workers)
    pace = None if speed is None else Pace(speed)
    delay = None if options.configured else lateness_of(options)
    return ReplayPlan(job, pace, delay, said, _reference(options))


def _said(options: ReplayOptions, job: Job) -> Said:
    return Said(columns_found(options, job), [*assumptions(options, job)])


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
    if options.output is None or is_same(options.output, own.output.predictions):
        msg = f"{options.stream} keeps a state, to which its outputs belong; name another --output"
        raise ParameterError(msg)
    dead = {} if job.limit.stop else {"dead_letters": dead_letters_beside(options.output)}
    # `reads` protects the files that the configuration writes: this job must not write them.
    protected = [FileUse(use.name, use.path, reads=True) for use in files_of(own) if not use.reads]
    return job._replace(
        outputs={"predictions": options.output, **dead},
        others=(*job.others, *protected),
        beside=True,
    )
