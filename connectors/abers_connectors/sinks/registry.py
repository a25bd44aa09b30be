"""The registry of sinks, by name.

A sink is named by a path with a suffix (".jsonl", ".csv", ".parquet", the first two also with ".gz"
or ".zst"), by "-" for standard output, or by a URL with a registered scheme. A new sink is a
module and one line in `SINKS`; a user's package calls `SINKS.register`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from abers_connectors.files.formats import default_format
from abers_connectors.files.openers import Openers
from abers_connectors.sinks.base import SinkOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from abers_connectors.sinks.base import Sink

    SinkOpener: TypeAlias = Callable[[str, type[msgspec.Struct], SinkOptions], Sink]

__all__ = ["SINKS", "open_sink"]

SINKS: Openers[SinkOpener] = Openers(
    {
        "csv": "abers_connectors.sinks.text:open_text",
        "jsonl": "abers_connectors.sinks.text:open_text",
        "parquet": "abers_connectors.sinks.parquet:open_parquet",
    }
)


def open_sink(
    name: str,
    row_type: type[msgspec.Struct],
    options: SinkOptions = SinkOptions(),  # noqa: B008 - immutable
) -> Sink:
    """Open the sink of a name (a path, "-", or a URL) for rows of a type.

    A ParameterError is raised if the name is unknown, names Parquet as a stream, or the directory
    is missing; a StateError, if the output has less than the position says.
    """
    if options.format is None:
        options = replace(options, format=default_format(name))
    return SINKS.find(name, options.format)(name, row_type, options)
