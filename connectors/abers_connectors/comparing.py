"""Several calibrators on one stream.

Governing rule: each is run through the whole stream by itself, exactly as it
would be alone, and nothing is written.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import typer

from abers.exceptions import ParameterError
from abers.stream.settings import CALIBRATORS
from abers_connectors import terminal
from abers_connectors._suggest import did_you_mean
from abers_connectors.summary import summarised

if TYPE_CHECKING:
    from abers.stream import Settings
    from abers_connectors.jobs import Job
    from abers_connectors.summary import Summary

__all__ = ["compare", "contestants"]


def contestants(words: str, settings: Settings) -> list[Settings]:
    """Read the names of calibrators.

    Parameters
    ----------
    words
        Names with commas between them.
    settings
        Of the stream.

    Returns
    -------
    list of Settings
        The same with each calibrator.

    Raises
    ------
    ParameterError
        If one is unknown, stands twice, or does not go with the stream.
    """
    names = [name.strip() for name in words.split(",")]
    known = CALIBRATORS[settings.task]
    for row, name in enumerate(names):
        if name not in known:
            msg = f"--compare: {name!r} is no calibrator of a {settings.task} task; "
            msg += f"these are {', '.join(known)}{did_you_mean(name, known)}"
            raise ParameterError(msg)
        if name in names[:row]:
            msg = f"--compare: {name} stands there twice; name it once"
            raise ParameterError(msg)
    try:
        return [msgspec.structs.replace(settings, calibrator=name) for name in names]
    except ParameterError as error:
        msg = f"--compare: {error}"
        raise ParameterError(msg) from None


def compare(job: Job, words: str, title: str, *, as_json: bool) -> None:
    """Run calibrators through the stream of a job, and print one table of their scores.

    Parameters
    ----------
    job
        What is read, and how.
    words
        Names of the calibrators, as in `contestants`.
    title
        What the table is about.
    as_json
        Whether it is printed as JSON, to standard output.

    Raises
    ------
    ParameterError
        As `contestants`, or if the stream can be read only once.
    """
    if job.source.name == "standard input" or Path(job.source.name).is_fifo():
        msg = "--compare reads the stream once for each calibrator; give a file, no pipe"
        raise ParameterError(msg)
    found = {str(one.calibrator): _alone(job, one) for one in contestants(words, job.settings)}
    if as_json:
        typer.echo(msgspec.json.encode(found))
    else:
        terminal.show_comparison(found, title)


def _alone(job: Job, settings: Settings) -> Summary:
    alone = job._replace(settings=settings, outputs={}, state=None)
    started = perf_counter()
    with alone.start() as running, terminal.watching(job.source, hidden=False) as watched:
        for _ in watched(running.run()):
            pass
    counters = running.processor.counters
    events = counters["observations"] + counters["labels_in"]
    return summarised(running, events, perf_counter() - started)
