"""The sources that a configuration names.

A second input has labels only. Without one, the records of the first are observations with their
labels if there is a delay or a field of the label's time, and otherwise observations and labels as
they came, unless that is newest first. Labelled observations, and each of two inputs, are in the
order of time, or are sorted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError
from abers_connectors.config.rules import format_of
from abers_connectors.config.value_types import Lateness
from abers_connectors.sources.arrivals import ArrivalLog
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.ordered import Bounds, OrderedSource
from abers_connectors.sources.registry import is_read_once, open_source
from abers_connectors.sources.sort_commands import sort_remedy

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream.fields import Fields
    from abers.stream.schema_columns import Kind
    from abers_connectors.config.model import Config
    from abers_connectors.sources.base import Source
    from abers_connectors.sources.ordered import Counted

__all__ = ["open_input", "open_inputs"]


def open_inputs(config: Config) -> Source:
    """Return all inputs as the stream that a processor reads; they must not be topics."""
    if config.serve is not None:
        raise ConfigError(["serve: this is a server without inputs; run `abers serve` with it"])
    first, second = config.input.observations, config.input.labels
    if first is None:
        raise ConfigError(["kafka: these are topics, not files; name a file with --from"])
    if config.labelled:
        delay = config.input.delay or Lateness()
        ordered = _ordered(config, first)
        whole = config.state.path is None  # rows that follow may bring the labels of others
        return DelayedLabels(ordered, count=delay.observations, span=delay.span, whole=whole)
    if second is not None:
        return MergedSource([_ordered(config, first), _ordered(config, second)])
    source = open_input(config, first)
    return ArrivalLog(source, _remedy(config, source, config.fields()), **_limits(config, source))


def _ordered(config: Config, name: str) -> OrderedSource:
    """Return an input in the order of time; what is read once is not read ahead."""
    source, second = open_input(config, name), name == config.input.labels
    fields = config.label_fields() if second else config.fields()
    limits = _limits(config, source)
    counted: Counted = "labels" if second else "observations"
    return OrderedSource(source, _remedy(config, source, fields), counted=counted, **limits)


def _remedy(config: Config, source: Source, fields: Fields) -> Callable[[str], str]:
    return partial(sort_remedy, source, fields.time, config.input.format)


def _limits(config: Config, source: Source) -> dict[str, Any]:
    """Return how far a row may be behind, and what is kept to sort; nothing if it is read once."""
    bounds = Bounds(0, 0) if is_read_once(source) else Bounds()
    return {"lateness": config.settings().allowed_lateness, "bounds": bounds}


def open_input(config: Config, name: str) -> Source:
    """Return the source of the second input if that has the name, otherwise of a first input."""
    second = name == config.input.labels
    kind: Kind = "labels" if second else "labelled" if config.labelled else "mixed"
    options = SourceOptions(
        fields=config.label_fields() if second else config.fields(),
        kind=kind,
        readers=config.reads(),
        format=None if format_of(name) else config.input.format,
        max_record_bytes=config.input.max_record_bytes,
        growing=config.state.path is not None,
        delimiter=config.input.delimiter,
        decimal=config.input.decimal,
    )
    return open_source(name, options)
