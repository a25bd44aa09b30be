"""From the words of `abers replay` to a job.

Governing rule: a configuration says everything itself, so the options that say
how a bare file or a bundled stream is to be read do not go with it; a replay
leaves the state of a configuration alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ParameterError
from abers_connectors import config as configuration
from abers_connectors import values
from abers_connectors.between import Between
from abers_connectors.jobs import Job, of_config, of_stream
from abers_connectors.pace import Pace, speed
from abers_connectors.records import BadRecordError
from abers_connectors.running import at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers.stream import Event

__all__ = ["Plan", "Words", "planned"]

_DELAY = 50


class Words(NamedTuple):
    """The words of the command, None where nothing was said."""

    stream: str
    delay: int | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}
    probabilities: bool = False
    forgetting: Mapping[str, int | str | None] = {}
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    speed: str = "max"


class Plan(NamedTuple):
    """A job, and what is shown of it."""

    job: Job
    output: str
    title: str
    delay: int | None
    pace: Callable[[Sequence[Event]], Iterable[Sequence[Event]]]
    bundled_or_file: bool


def planned(words: Words) -> Plan:
    """Make a plan.

    Parameters
    ----------
    words
        Those of the command.

    Returns
    -------
    Plan
        What is to be done.

    Raises
    ------
    ParameterError
        If the words do not go together.
    ConfigError
        If there are mistakes in a configuration.
    """
    configured = Path(words.stream).suffix == ".toml"
    job, output = _of_config(words) if configured else _of_words(words)
    delay = None if configured else (_DELAY if words.delay is None else words.delay)
    since, until = _time("since", words.since), _time("until", words.until)
    if since is not None or until is not None:
        job = job._replace(source=Between(job.source, since, until))
    multiple = speed(words.speed)
    pace = at_once if multiple is None else Pace(multiple)
    return Plan(job, output, words.stream, delay, pace, not configured)


def _of_words(words: Words) -> tuple[Job, str]:
    if words.from_ is not None:
        msg = f"--from goes with a configuration; {words.stream} is read itself, leave it out"
        raise ParameterError(msg)
    output = words.output or "-"
    job = of_stream(
        words.stream,
        delay=_DELAY if words.delay is None else words.delay,
        output=output,
        learner=words.learner,
        columns=_said(words.columns),
        probabilities=words.probabilities,
        forgetting=_said(words.forgetting),
    )
    return job, output


def _of_config(words: Words) -> tuple[Job, str]:
    misplaced = {
        "delay": words.delay,
        "learner": words.learner,
        "probabilities": words.probabilities or None,
        **words.columns,
        **words.forgetting,
    }
    for name in _said(misplaced):
        option = name.replace("_", "-")
        msg = f"--{option} does not go with a configuration; write it into {words.stream}"
        raise ParameterError(msg)
    flags = _said({"input.observations": words.from_, "output.predictions": words.output})
    loaded = configuration.load(words.stream, flags=flags)
    return of_config(loaded)._replace(state=None), loaded.output.predictions


def _said(words: Mapping[str, Any]) -> dict[str, Any]:
    return {name: word for name, word in words.items() if word is not None}


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else values.time(values.number_or_text(text))
    except BadRecordError as error:
        msg = f"--{option} {text}: {error}"
        raise ParameterError(msg) from None
