"""From the words of `abers replay` to a job.

Governing rule: a configuration says everything itself, so the options that say
how a bare file or a bundled stream is to be read do not go with it; a replay
leaves the state of a configuration alone, and the outputs that belong to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ParameterError
from abers_connectors import config as configuration
from abers_connectors import values
from abers_connectors._config_checks import dead_letters_beside
from abers_connectors._config_layers import Layers
from abers_connectors.bare import Asked, of_stream
from abers_connectors.between import Between
from abers_connectors.checking import uses_of
from abers_connectors.delayed import Delayed
from abers_connectors.files.aliases import Use, is_same
from abers_connectors.jobs import Job, of_config
from abers_connectors.pace import Pace, speed
from abers_connectors.records import BadRecordError
from abers_connectors.report import require_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.records import Source

__all__ = ["Plan", "Words", "has_topics", "planned", "require_in_file"]

_DELAY = 50


class Words(NamedTuple):
    """The words of the command, None where nothing was said."""

    stream: str
    delay: int | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}
    probabilities: bool = False
    task: str | None = None
    distributions: bool = False
    forgetting: Mapping[str, int | str | None] = {}
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    speed: str = "max"
    compare: str | None = None
    report: str | None = None
    live: bool = False
    save_state: str | None = None


class Plan(NamedTuple):
    """What is to be done.

    Parameters
    ----------
    job
        What is run.
    pace
        How fast; None is as fast as can be.
    delay
        How many observations late the labels are, if that is the rule.
    configured
        Whether a configuration was named.
    """

    job: Job
    pace: Pace | None
    delay: int | None
    configured: bool


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
    if words.save_state is not None:
        msg = "--save-state goes with a configuration that has topics, in [kafka]"
        raise ParameterError(msg)
    since, until = _time("since", words.since), _time("until", words.until)
    if since is not None and until is not None and since >= until:
        msg = "--until is not after --since, so nothing is left; give a later one"
        raise ParameterError(msg)
    rest = {
        "output": words.output,
        "speed": words.speed != "max" or None,
        "report": words.report,
        "live": words.live or None,
    }
    for option, given in rest.items():
        if words.compare is not None and given is not None:
            msg = f"--{option} does not go with --compare, which writes only its table"
            raise ParameterError(msg)
    if words.report is not None:
        require_name(words.report)
    multiple = speed(words.speed)
    configured = Path(words.stream).suffix == ".toml"
    delay = None if configured else (_DELAY if words.delay is None else words.delay)
    job = _of_words(words, delay) if delay is not None else _of_config(words)
    if since is not None or until is not None:
        job = job._replace(source=_part(job.source, since, until))
    pace = None if multiple is None else Pace(multiple)
    return Plan(job, pace, delay, configured)


def _part(source: Source, since: int | None, until: int | None) -> Source:
    """Give a part of history; where labels are late, with the labels of just its observations."""
    if isinstance(source, Delayed):
        return source.part(since, until)
    return Between(source, since, until)


def _of_words(words: Words, delay: int) -> Job:
    if words.from_ is not None:
        msg = f"--from goes with a configuration; {words.stream} is read itself, leave it out"
        raise ParameterError(msg)
    asked = Asked(
        words.stream,
        delay,
        words.output or "-",
        words.learner,
        _said(words.columns),
        words.probabilities,
        words.task,
        words.distributions,
        {name: _span(word) for name, word in _said(words.forgetting).items()},
    )
    return of_stream(asked)


def has_topics(words: Words) -> bool:
    """Say whether a configuration is named that reads topics."""
    if Path(words.stream).suffix != ".toml":
        return False
    return "kafka" in Layers.read(words.stream, os.environ, {}).values


def require_in_file(words: Words) -> None:
    """Refuse, with a ParameterError, options that say what a configuration says itself."""
    misplaced = {
        "delay": words.delay,
        "learner": words.learner,
        "probabilities": words.probabilities or None,
        "task": words.task,
        "distributions": words.distributions or None,
        **words.columns,
        **words.forgetting,
    }
    for name in _said(misplaced):
        option = name.replace("_", "-")
        msg = f"--{option} does not go with a configuration; write it into {words.stream}"
        raise ParameterError(msg)


def _of_config(words: Words) -> Job:
    require_in_file(words)
    flags = _said({"input.observations": words.from_, "output.predictions": words.output})
    config = configuration.load(words.stream, flags=flags)
    job = of_config(config.model_copy(update={"state": configuration.State()}), words.stream)
    if config.state.path is None:
        return job
    theirs = configuration.load(words.stream)
    if words.output is None or is_same(words.output, theirs.output.predictions):
        msg = f"{words.stream} keeps a state, to which its outputs belong; name another --output"
        raise ParameterError(msg)
    dead = {} if job.tolerance.stop else {"dead_letters": dead_letters_beside(words.output)}
    kept = [Use(use.name, use.path, reads=True) for use in uses_of(theirs) if not use.reads]
    return job._replace(
        outputs={"predictions": words.output, **dead}, others=(*job.others, *kept), beside=True
    )


def _said(words: Mapping[str, Any]) -> dict[str, Any]:
    return {name: word for name, word in words.items() if word is not None}


def _span(word: int | str) -> int | str:
    """Take a plain number as what it is: milliseconds."""
    return int(word) if isinstance(word, str) and word.isdecimal() else word


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else values.time(values.number_or_text(text))
    except BadRecordError as error:
        msg = f"--{option}: {error}"
        raise ParameterError(msg) from None
