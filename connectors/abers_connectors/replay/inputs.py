"""The sources that a configuration names.

A second input has labels only. Without one, the records of the first are observations with their
labels if there is a delay or a field of the label's time, and otherwise observations and labels as
they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.config.rules import format_of
from abers_connectors.config.value_types import Lateness
from abers_connectors.mapping import mapper
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from abers_connectors.config.model import Config
    from abers_connectors.sources.base import Source

__all__ = ["open_input", "open_inputs"]


def open_inputs(config: Config) -> Source:
    """Return all inputs as the one stream that a processor reads; they must not be topics."""
    first, second = config.input.observations, config.input.labels
    if first is None:
        raise ConfigError(["kafka: these are topics, not files; name a file with --from"])
    source = open_input(config, first)
    if config.labelled:
        delay = config.input.delay or Lateness()
        return DelayedLabels(source, count=delay.observations, span=delay.span)
    if second is None:
        return source
    return MergedSource([source, open_input(config, second)], config.limits.allowed_lateness)


def open_input(config: Config, name: str) -> Source:
    """Return the source of the second input if that has the name, otherwise of a first input."""
    second = name == config.input.labels
    kind = mapper.labels if second else mapper.labelled if config.labelled else mapper.mixed
    options = SourceOptions(
        fields=config.label_fields() if second else config.fields(),
        kind=kind,
        readers=config.reads(),
        format=None if format_of(name) else config.input.format,
        max_record_bytes=config.input.max_record_bytes,
        growing=config.state.path is not None,
    )
    return open_source(name, options)
