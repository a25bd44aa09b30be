"""The names of the engine for fields of records, and the type of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from abers.stream.fields import Fields, constant, root

__all__ = ["Fields", "Record", "constant", "root"]

Record: TypeAlias = Mapping[str, Any]
