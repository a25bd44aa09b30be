"""What `abers check` says: what a configuration means, and how a sample is understood.

Governing rule: whatever would stop a run before its first record is told here,
all at once, and nothing is written.
"""

from __future__ import annotations

import os
import stat
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ConfigError, MissingExtraError, ParameterError, RecordError
from abers.learners.river import require_river
from abers.stream import Label, Processor
from abers_connectors._config_checks import format_of
from abers_connectors._config_moments import moment
from abers_connectors._config_types import shown
from abers_connectors._config_words import described
from abers_connectors._suggest import did_you_mean
from abers_connectors.config import load
from abers_connectors.files.aliases import Use, clashes
from abers_connectors.files.naming import STANDARD
from abers_connectors.http.token import TOKEN, token_problem
from abers_connectors.inputs import open_part
from abers_connectors.kafka.requirements import lacking
from abers_connectors.state_key import KEYLESS, NAME, state_key
from abers_connectors.statefile import StateFile, orphaned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.stream import DeadLetter, Event
    from abers.stream.settings import Settings
    from abers_connectors.config import Config, Security
    from abers_connectors.records import Batch, Origin, Source

__all__ = ["Report", "Sample", "check", "hindrances", "refuse_hindered", "sampled", "uses_of"]

_SHOWN = 10  # records
_READ = 10_000  # records that are looked at for a mistake; a sample may be years of history
_LONG = 200  # characters of a record


class Sample(NamedTuple):
    """Some records as they are understood.

    Parameters
    ----------
    lines
        The first few that can be used, each in words.
    records
        How many were looked at.
    mistake
        Where and why the first one that cannot be used is that; None if all can.
    """

    lines: list[str]
    records: int
    mistake: str | None


class Report(NamedTuple):
    """What is to be said of a configuration without mistakes.

    Parameters
    ----------
    meaning
        What it says, in words, by part.
    sample
        The sample, if there is one.
    findings
        What may be wrong with the topics, a sentence each; None if no broker was asked.
    warnings
        What is allowed and may be a mistake, a sentence each.
    """

    meaning: dict[str, str]
    sample: Sample | None
    findings: list[str] | None = None
    warnings: Sequence[str] = ()


def check(
    path: str,
    *,
    sample: str | None = None,
    connect: bool = False,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Report:
    """Look at a configuration, at the files or topics it names, and at a sample of records.

    Parameters
    ----------
    path, flags, environ
        As of `config.load`.
    sample
        A file, or topic, whose records are looked at as if it were the first input, or the second
        if it is that one.
    connect
        Whether to ask the brokers for the topics.

    Returns
    -------
    Report
        What was understood.

    Raises
    ------
    BrokerError
        If the brokers do not answer.
    ConfigError
        If anything would stop a run before its first record.
    """
    config = load(path, flags=flags, environ=environ)
    found = [f"{path}: {line}" for line in hindrances(config, environ, path)]
    if sample is not None and config.kafka is None and (problem := _unreadable(sample)):
        found.append(f"sample: {problem}")
    if found:
        raise ConfigError(found)
    asked = _asked(path, config, environ) if connect else None
    warnings = [f"{path}: {line}" for line in _exposed(config, environ)]
    if sample is None:
        return Report(described(config), None, asked, warnings)
    some = sampled(_part(config, sample, environ), config.settings())
    return Report(described(config), some, asked, warnings)


def _exposed(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Warn of a live page that everybody can open who reaches this machine."""
    http = config.http
    if config.kafka is None or not http.enabled or TOKEN in environ or _is_local(http.host):
        return
    yield (
        f"http.host: {http.host} is reached from other machines, and the live page asks for no "
        f"token; put one into the environment as {TOKEN}, or write {shown('127.0.0.1')}"
    )


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _part(config: Config, sample: str, environ: Mapping[str, str]) -> Source:
    if config.kafka is None:
        return open_part(config, sample)
    from abers_connectors.kafka.sampling import TopicSample  # noqa: PLC0415 - only with topics

    return TopicSample(config, sample, environ)


def _asked(path: str, config: Config, environ: Mapping[str, str]) -> list[str]:
    from abers_connectors.kafka import topics  # noqa: PLC0415 - only where brokers are asked

    found = topics.check(config, environ)
    told = [f"{path}: {one}" for one in found]
    if any(one.fatal for one in found):
        raise ConfigError(told)
    return told


def refuse_hindered(config: Config, name: str) -> None:
    """Refuse, with a ConfigError that has all of it, what would stop a run before its first record.

    Parameters
    ----------
    config
        The configuration.
    name
        Of its file.
    """
    if found := [f"{name}: {line}" for line in hindrances(config, name=name)]:
        raise ConfigError(found)


def hindrances(
    config: Config, environ: Mapping[str, str] = os.environ, name: str | None = None
) -> Iterator[str]:
    """Find what would stop a run before its first record.

    Parameters
    ----------
    config
        The configuration.
    environ
        Where the secret of a learner's state is looked for.
    name
        The file of the configuration, if it has one.

    Yields
    ------
    str
        A dotted path, and what is wrong.
    """
    if config.kafka is None:
        yield from _hindered_files(config)
        uses = [] if name is None else [Use("the configuration", name, reads=True)]
        yield from (f"{key}: {problem}" for key, problem in clashes([*uses, *uses_of(config)]))
    else:
        yield from _hindered_service(config, config.kafka.security, environ)
    if config.learner is not None:
        try:
            require_river()
        except MissingExtraError as error:
            yield f"learner: {error}"
        if config.state.path is not None and not environ.get(NAME):
            yield f"state.path: {KEYLESS}"
    try:
        state_key(environ)
    except ConfigError as error:
        yield str(error)


def _hindered_files(config: Config) -> Iterator[str]:
    given, output = config.input, config.output
    for key, path in (("observations", given.observations), ("labels", given.labels)):
        if path is not None and (problem := _unreadable(path) or _unopenable(config, path)):
            yield f"input.{key}: {problem}"
    outputs = {
        "output.predictions": output.predictions,
        "output.outcomes": output.outcomes,
        "output.dead_letters": output.dead_letters_path,
        "state.path": config.state.path,
    }
    for key, path in outputs.items():
        if path is not None and (
            problem := _unwritable(path, resumed=config.state.path is not None)
        ):
            yield f"{key}: {problem}"
    state = outputs.pop("state.path")
    if state is not None and not Path(state).exists() and (problem := orphaned(outputs)):
        yield f"state.path: {state}: {problem}"


def uses_of(config: Config) -> Iterator[Use]:
    """Name the files that a run reads and writes.

    Parameters
    ----------
    config
        Its configuration.

    Yields
    ------
    Use
        Each input, output, and what the state takes.
    """
    given, output = config.input, config.output
    for key, path in (("observations", given.observations), ("labels", given.labels)):
        if path is not None:
            yield Use(f"input.{key}", path, reads=True)
    yield Use("output.predictions", output.predictions)
    if output.outcomes is not None:
        yield Use("output.outcomes", output.outcomes)
    derived = output.dead_letters is None
    yield Use("output.dead_letters", output.dead_letters_path, derived=derived)
    if config.state.path is not None:
        yield from StateFile(config.state.path, {}).uses()


def _hindered_service(
    config: Config, security: Security, environ: Mapping[str, str]
) -> Iterator[str]:
    yield from lacking(config)
    if config.http.enabled and (problem := token_problem(environ)):
        yield problem
    for key in ("cafile", "certfile", "keyfile"):
        path = getattr(security, key)
        if path is not None and (problem := _unreadable(path)):
            yield f"kafka.security.{key}: {problem}"
    if security.by_password and not environ.get("ABERS_KAFKA_PASSWORD"):
        told = "put the password of this user into the environment as ABERS_KAFKA_PASSWORD"
        yield f"kafka.security.username: {told}"


def _unreadable(path: str) -> str | None:
    file = Path(path)
    if path == STANDARD:
        return None
    try:
        if stat.S_ISREG(file.stat().st_mode):  # a pipe would wait for its other end
            file.open("rb").close()
    except FileNotFoundError:
        beside = file.parent.iterdir() if file.parent.is_dir() else []
        return f"{path}: no such file{did_you_mean(file.name, [one.name for one in beside])}"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return f"{path} is a directory; name a file in it" if file.is_dir() else None


def _unwritable(path: str, *, resumed: bool) -> str | None:
    file = Path(path)
    if not file.parent.is_dir():  # that of "-" is the working one
        return f"there is no directory {file.parent}; make it first"
    if file.is_dir() and not (resumed and format_of(path) == "parquet"):  # which is one, of parts
        return f"{path} is a directory; name a file in it"
    return None


def _unopenable(config: Config, path: str) -> str | None:
    try:
        open_part(config, path)
    except MissingExtraError as error:
        return str(error)
    return None


def sampled(source: Source, settings: Settings) -> Sample:
    """Read some records, and see what a processor makes of them.

    Parameters
    ----------
    source
        Of events, or of labelled observations.
    settings
        Those of the processor.

    Returns
    -------
    Sample
        The first records, and the first mistake among the first 10,000.
    """
    lines: list[str] = []
    records, mistake = 0, None
    processor = Processor(settings, outcomes=False)
    try:
        for batch in source.batches():
            dead = _dead(batch, processor)
            right = (row for row in range(len(batch.events)) if row not in dead)
            lines += [_line(batch, row) for row in islice(right, _SHOWN - len(lines))]
            records += batch.records
            mistake = mistake or _first_mistake(batch, dead)
            if records >= _READ or (mistake and len(lines) == _SHOWN):
                break
    except (RecordError, ParameterError) as error:
        mistake = mistake or str(error)
    return Sample(lines, records, mistake)


def _dead(batch: Batch, processor: Processor) -> dict[int, DeadLetter]:
    """Feed a processor, and give its dead letters by row."""
    dead = processor.take(batch.events).dead_letters() if batch.events else []
    return {one.row: one for one in dead if one.row is not None}


def _first_mistake(batch: Batch, dead: Mapping[int, DeadLetter]) -> str | None:
    bad, row = batch.bad[0] if batch.bad else None, min(dead, default=None)
    # A bad record stands before the event of the same row.
    if bad is not None and (row is None or bad.row <= row):
        return _mistake(bad.origin, bad.reason, bad.detail)
    if row is not None:
        return _mistake(batch.origin(row), dead[row].reason, dead[row].detail)
    return None


def _mistake(origin: Origin, reason: str, detail: str) -> str:
    raw = origin.raw if len(origin.raw) <= _LONG else f"{origin.raw[:_LONG]}…"
    return f"{origin.where}: {reason}: {detail}; the record is {raw!r}"


def _line(batch: Batch, row: int) -> str:
    awaited = batch.events.awaited
    told = "" if awaited is None else f", label {awaited[row]}"
    return f"{batch.origin(row).where}: {_worded(batch.events[row])}{told}"


def _worded(event: Event) -> str:
    name = f"{shown(event.id)} of model {shown(event.model)}, {moment(event.time)}"
    if isinstance(event, Label):
        return f"label {event.value} for {name}"
    given = {
        "segment": event.segment or None,
        "score": event.score,
        "features": event.x,
        "passed through": event.extra,
    }
    told = (f"{what} {shown(value)}" for what, value in given.items() if value is not None)
    return ", ".join([f"observation {name}", *told])
