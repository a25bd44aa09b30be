"""What a replay without a configuration found in its input, and what it assumes, in sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abers_connectors.config.value_types import Lateness
from abers_connectors.replay.defaults import columns_of
from abers_connectors.sources.registry import is_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.replay.job import Job
    from abers_connectors.replay.options import ReplayOptions

__all__ = ["assumptions", "lateness_of"]

_WORDS = {"label_time": "label time"}


def lateness_of(options: ReplayOptions) -> Lateness:
    """Return the delay of the labels: that of the options, or none if labels have times."""
    timed = not is_dataset(options.stream) and "label_time" in columns_of(options)
    return Lateness() if timed else options.lateness


def assumptions(options: ReplayOptions, job: Job) -> Iterator[str]:
    """Yield sentences about what was found in an input, and what is assumed of it."""
    if not is_dataset(options.stream):
        found = columns_of(options)
        columns = [f"{_WORDS.get(one, one)} = {_column(path)}" for one, path in found.items()]
        yield f"Columns: {', '.join(columns)}."
        if options.scores is None and job.settings.scores == "probability":
            yield "Scores lie in [0, 1] and are taken as probabilities; if not, add --scores any."
        if options.positive and _lacks_positives(job):
            named = " or ".join(map(repr, options.positive))
            yield f"No label among the first records is {named} (--positive): they all count as 0."
    if options.delay is None and (delay := lateness_of(options)) != Lateness():
        yield (
            f"Labels are assumed to come {delay}, and the results depend on it. Set --delay to "
            "a count or a duration, or compare: --delays 0,50,500,5000."
        )


def _lacks_positives(job: Job) -> bool:
    """Return whether a file that can be read again begins with labels, and none of them is 1."""
    if not Path(job.source.name).is_file():
        return False
    for batch in job.source.batches():
        if batch.bad:  # the run says what is wrong
            return False
        labels, values = batch.events.labels, batch.events.values
        if values is not None and labels.any():
            return not (values[labels] == 1).any()
    return False


def _column(path: str) -> str:
    return "row number" if path == "row" else path
