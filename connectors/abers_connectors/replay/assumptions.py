"""What a replay without a configuration found in its input, and what it assumes, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.stream.fields import Fields
from abers_connectors.config.value_types import Lateness
from abers_connectors.replay.defaults import columns_of
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.registry import is_dataset, is_rereadable, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.replay.job import Job
    from abers_connectors.replay.options import ReplayOptions

__all__ = ["assumptions", "lateness_of"]

_WORDS = {"label_time": "label time"}
_SHOWN = 5  # labels in a sentence


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
        elif options.scores is None and (ends := _ends_of_scores(options, job)) is not None:
            low, high = (f"{end:g}" for end in ends)
            yield (
                f"Scores lie in [{low}, {high}], beyond [0, 1], and have no verdict of their own. "
                "Are they logits? Add --scores logit. Are they per cent? Divide them by 100."
            )
        if options.positive and _lacks_positives(job):
            yield _without_positives(options, found)
    if options.delay is None and (delay := lateness_of(options)) != Lateness():
        of_file = "Name the columns of times in --time and --label-time, or set"
        yield (
            f"Labels are assumed to come {delay}, and the results depend on it. "
            f"{'Set' if is_dataset(options.stream) else of_file} --delay to a count or a duration, "
            "or compare: --delays 0,50,500,5000."
        )


def _ends_of_scores(options: ReplayOptions, job: Job) -> tuple[float, float] | None:
    """Return the least and the largest of the first scores of a file of two classes, if known."""
    if job.settings.task != "binary" or not is_rereadable(options.stream):
        return None
    first = job.source.first() if isinstance(job.source, DelayedLabels) else None
    if first is None or first.bad:  # the run says what is wrong
        return None
    scores = first.events.scores
    if scores is None or scores.dtype.kind != "f" or not len(scores):
        return None
    return float(scores.min()), float(scores.max())


def _lacks_positives(job: Job) -> bool:
    """Return whether a file that can be read again begins with labels, and none of them is 1."""
    if not isinstance(job.source, DelayedLabels) or not is_rereadable(job.source.name):
        return False
    first = job.source.first()
    if first is None or first.bad or first.events.awaited is None:  # the run says what is wrong
        return False
    known = [one for one in first.events.awaited.tolist() if one is not None]
    return bool(known) and 1 not in known


def _without_positives(options: ReplayOptions, columns: Mapping[str, str]) -> str:
    """Return the sentence on labels that are all 0; those in another case are a ParameterError."""
    named = " or ".join(map(repr, options.positive))
    words = _label_words(options.stream, columns)
    given = {one.casefold() for one in options.positive}
    if meant := next((word for word in words if word.casefold() in given), None):
        msg = (
            f"no label among the first records of {options.stream} is {named} (--positive); "
            f"did you mean {meant}?"
        )
        raise ParameterError(msg)
    sentence = f"No label among the first records is {named} (--positive): they all count as 0."
    return f"{sentence} Labels found: {', '.join(words[:_SHOWN])}." if words else sentence


def _label_words(stream: str, columns: Mapping[str, str]) -> list[str]:
    """Return the different labels of the first records of a file, as they are written there."""
    label = columns["label"]
    fields = Fields(id="row", time="row", score=columns["score"], passthrough=(label,))
    first = next(open_source(stream, SourceOptions(fields)).batches(), None)
    extra = () if first is None or first.events.extra is None else first.events.extra
    return sorted({str(one[label]) for one in extra if one})


def _column(path: str) -> str:
    return "row number" if path == "row" else path
