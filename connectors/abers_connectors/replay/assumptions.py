"""What a replay without a configuration found in its input, and what it assumes, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import ParameterError
from abers_connectors.config.value_types import Lateness
from abers_connectors.replay.defaults import decimal_of, first_scores
from abers_connectors.replay.found_columns import (
    columns_of,
    is_by_id,
    is_mixed,
    label_columns_of,
    unused_label_of,
    values_of,
)
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.registry import is_dataset, is_rereadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.replay.job import Job
    from abers_connectors.replay.options import ReplayOptions

__all__ = ["assumptions", "columns_found", "lateness_of"]

_WORDS = {"label_time": "label time"}
_KINDS = {"probability": " (probabilities)", "logit": " (logits)", "percent": " (per cent)"}
_SHOWN = 5  # labels in a sentence


def lateness_of(options: ReplayOptions) -> Lateness:
    """Return the delay of the labels: that of the options, or none if labels have times."""
    if options.labels is not None:
        return Lateness()
    if is_dataset(options.stream):
        return options.lateness
    timed = "label_time" in columns_of(options) or is_mixed(options)
    return Lateness() if timed else options.lateness


def columns_found(options: ReplayOptions, job: Job) -> str | None:
    """Return which column is what; None of a data set."""
    if is_dataset(options.stream):
        return None
    found = columns_of(options)
    kind = _KINDS.get("percent" if options.percent else job.settings.scores, "")
    columns = [_column(one, path) for one, path in found.items()]
    columns[[*found].index("score")] += kind
    said = ", ".join(columns)
    if options.labels is None:
        return said
    second = label_columns_of(options, found)
    return f"{said}; {options.labels}: " + ", ".join(f"{one} = {at}" for one, at in second.items())


def assumptions(options: ReplayOptions, job: Job) -> Iterator[str]:
    """Yield sentences about what was found in an input, and what is assumed of it."""
    if not is_dataset(options.stream):
        if options.decimal is None and decimal_of(options) == ",":
            yield "Decimals follow a comma; if not, add --decimal ."
        ends = None if options.scores else _ends_of_scores(options, job)
        if ends is not None:
            low, high = (f"{end:g}" for end in ends)
            yield (
                f"Scores lie in [{low}, {high}], beyond [0, 1], and have no verdict of their own. "
                "Are they logits? Add --scores logit. Are they per cent? Add --scores percent."
            )
        if is_mixed(options):
            yield f"{options.stream} has labels in rows of their own, and is read in its order."
        if (unused := unused_label_of(options)) is not None:
            yield (
                f"Labels come from {options.labels}; column {unused} of {options.stream} is not "
                "read."
            )
        if is_by_id(options, columns_of(options)):
            yield (
                f"{options.labels} names no model: a label counts for each model that "
                "predicted its id."
            )
        if options.positive and _lacks_positives(options, job):
            yield _without_positives(options, columns_of(options))
    if options.delay is None and (delay := lateness_of(options)) != Lateness():
        of_file = "Name the columns of times in --time and --label-time, or set"
        yield (
            f"Labels are assumed to come {delay}, and the results depend on it. "
            f"{'Set' if is_dataset(options.stream) else of_file} --delay to a count or a duration, "
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
