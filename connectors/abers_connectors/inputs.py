"""From a configuration to the sources it names.

Governing rule: a second input brings nothing but labels; without one the records
of the first are observations with their labels if there is a delay, and
otherwise observations and labels as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors import fields
from abers_connectors._config_checks import format_of
from abers_connectors.delayed import Delayed
from abers_connectors.files import reading
from abers_connectors.merge import Merged

if TYPE_CHECKING:
    from abers_connectors.config import Config
    from abers_connectors.records import Source

__all__ = ["open_part", "open_source"]


def open_source(config: Config) -> Source:
    """Open all inputs as the one stream that a processor is fed.

    Parameters
    ----------
    config
        Which they are, and how they are read.

    Returns
    -------
    Source
        Of observations and labels.

    Raises
    ------
    ConfigError
        If the inputs are topics.
    MissingExtraError
        If a format needs a library that is not installed.
    """
    first, second = config.input.observations, config.input.labels
    if first is None:
        raise ConfigError(["kafka: these are topics, not files; name a file with --from"])
    if (delay := config.input.delay) is not None:
        source = _open(config, first, fields.labelled)
        return Delayed(source, count=delay.observations, span=delay.span)
    events = _open(config, first, fields.mixed)
    if second is None:
        return events
    return Merged([events, _open(config, second, fields.labels)], config.limits.lateness)


def open_part(config: Config, path: str) -> Source:
    """Open one file as if it were the first input, or as the second input if it is that.

    Parameters
    ----------
    config
        How it is read.
    path
        The file.

    Returns
    -------
    Source
        Of its records, each label with its observation if there is a delay.
    """
    if path == config.input.labels:
        return _open(config, path, fields.labels)
    if config.input.delay is not None:
        return _open(config, path, fields.labelled)
    return _open(config, path, fields.mixed)


def _open(config: Config, path: str, kind: fields.Kind) -> Source:
    return reading.open_source(
        path,
        kind,
        config.label_fields() if path == config.input.labels else config.fields(),
        config.reads(),
        format=None if format_of(path) else config.input.format,
        max_record_bytes=config.input.max_record_bytes,
        growing=config.state.path is not None,
    )
