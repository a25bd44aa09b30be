"""Comparison of several calibrators, or of several delays of labels, on one stream.

Each calibrator processes the whole stream exactly as it would alone, and nothing is written. A
calibrator of several folds keeps as many labels as the others: its folds share the window. Only
those with names that begin with "protected" make protected probabilities. Rates of labels are for
those that take them; the others predict what labels that come say.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from abers import registry
from abers.calibration.sets import ALL
from abers.exceptions import ParameterError
from abers.stream.settings import CALIBRATORS
from abers.suggestions import did_you_mean
from abers_connectors.replay.options import lateness
from abers_connectors.replay.plan import plan_replay
from abers_connectors.replay.summary import summarize_run
from abers_connectors.sources.registry import is_read_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream import Settings
    from abers_connectors.config.values import Lateness
    from abers_connectors.replay.job import Job
    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.replay.run import BaseRun
    from abers_connectors.replay.summary import Summary
    from abers_connectors.sources.base import Source

__all__ = ["compare", "contestants", "replay_delays", "windows"]


def contestants(names: str, settings: Settings) -> list[Settings]:
    """Return the settings with each of the named calibrators, or raise a ParameterError."""
    named = [name.strip() for name in names.split(",")]
    known = CALIBRATORS[settings.task]
    for row, name in enumerate(named):
        if name not in known and not registry.is_path(name):
            msg = f"--compare: {name!r} is not a calibrator of a {settings.task} task; "
            msg += f"these are {', '.join(known)}{did_you_mean(name, known)}"
            raise ParameterError(msg)
        if name in named[:row]:
            msg = f"--compare: {name} is named twice; name it once"
            raise ParameterError(msg)
    try:
        return [_settings(settings, name) for name in named]
    except ParameterError as error:
        msg = f"--compare: {error}"
        raise ParameterError(msg) from None


def _settings(settings: Settings, name: str) -> Settings:
    window = settings.window
    if window is not None and registry.capabilities(name, settings.task).score == "folds":
        window = max(1, window // settings.folds)
    if name == registry.NONE:  # which holds nothing
        settings = msgspec.structs.replace(settings, max_age=None, half_life=None)
        window = None
    probability = "merged" if name in registry.protected_forms(settings.task) else None
    coverage = settings.coverage if name in {"ivapr", "protected"} else None
    takes_rates = "label_rates" in registry.capabilities(name, settings.task).options
    return msgspec.structs.replace(
        settings,
        calibrator=name,
        probability=probability,
        window=window,
        coverage=coverage,
        label_rates=settings.label_rates if takes_rates else ALL,
    )


def windows(names: str, settings: Settings) -> list[str]:
    """Return a sentence for each calibrator with a window that is split among folds."""
    return [
        f"{one.calibrator} keeps the last {one.window:,} labels of each of {one.folds} folds, "
        f"together {one.window * one.folds:,}."
        for one in contestants(names, settings)
        if one.window is not None and one.window != settings.window
    ]


def compare(
    job: Job,
    names: str,
    finish: Callable[[BaseRun], None],
    done: Callable[[str, Summary], None] = lambda _name, _summary: None,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Summary]:
    """Return the summary of a job with each calibrator, of names with commas between them.

    `finish` iterates a run to its end, `done` takes its calibrator and summary, and `say` takes a
    sentence about a worker that ends early. An unknown name, or a stream that can be read only
    once, is a ParameterError.
    """
    if is_read_once(job.source):
        msg = "--compare reads the stream once for each calibrator; give a file, no pipe"
        raise ParameterError(msg)
    found: dict[str, Summary] = {}
    for one in contestants(names, job.settings):
        name = str(one.calibrator)
        found[name] = _summary(job._replace(settings=one, outputs={}, state=None), finish, say)
        done(name, found[name])
    return found


def _summary(job: Job, finish: Callable[[BaseRun], None], say: Callable[[str], object]) -> Summary:
    started = perf_counter()
    with job.start(say=say) as running:
        finish(running)
    return summarize_run(running, running.events, perf_counter() - started)


_ONCE = "--delays reads the stream once for each delay; give a file, no pipe"


def replay_delays(
    options: ReplayOptions,
    delays: str,
    finish: Callable[[BaseRun, Source], None],
    say: Callable[[str], object] = lambda _: None,
) -> dict[Lateness, Summary]:
    """Return the summary of a replay at each delay, of delays with commas between them.

    `finish` iterates a run of a source to its end, and `say` takes a sentence about a worker that
    ends early. Nothing is written. A stream that can be read only once is a ParameterError.
    """
    if Path(options.stream).is_fifo():
        raise ParameterError(_ONCE)
    found: dict[Lateness, Summary] = {}
    for text in delays.split(","):
        one = lateness(text.strip(), "--delays")
        job = plan_replay(options._replace(delay=text.strip()), writes=False).job
        if is_read_once(job.source):
            raise ParameterError(_ONCE)
        started = perf_counter()
        with job.start(say=say) as running:
            finish(running, job.source)
        found[one] = summarize_run(running, running.events, perf_counter() - started)
    return found
