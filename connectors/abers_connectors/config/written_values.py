"""Values of options as a configuration has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from abers_connectors.config.units import short_duration
from abers_connectors.config.value_types import Lateness, read_span

if TYPE_CHECKING:
    from abers.stream.option import Option

__all__ = ["written_value"]

_LONG = 10_000  # whole numbers with separators


def written_value(option: Option, value: Any) -> str:  # noqa: ANN401 - of any option
    """Return a value that was read, as TOML has it.

    >>> from abers_connectors.config.options import option
    >>> written_value(option("limits.label_timeout"), 604_800_000)
    '"7d"'
    """
    if isinstance(value, dict):
        pairs = (f"{name} = {json.dumps(inner)}" for name, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Lateness):
        value = value.observations if value.span is None else short_duration(value.span)
    if type(value) is not int:
        return json.dumps(value, ensure_ascii=False)
    if option.unit == "ms" or option.read is read_span:
        return f'"{short_duration(value)}"'
    return f"{value:_}" if value >= _LONG else str(value)
