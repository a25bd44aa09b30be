"""The schemas that a schema imports, with those that they import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.schemas.schema_cache import UnusableSchemaError

if TYPE_CHECKING:
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

__all__ = ["imported"]

_MAX_SCHEMAS = 200
_SHOWN = 100  # characters of a name, in errors
_MAX_CHARACTERS = 4 << 20  # of a schema with all that it imports


def imported(schema: RegisteredSchema, registry: SchemaRegistry) -> dict[str, str]:
    """Return the texts of all schemas that a schema imports, by the names of the imports."""
    found: dict[str, str] = {}
    left = {one.name: one for one in schema.references}
    size = len(schema.schema)
    while left:
        if len(found) + len(left) > _MAX_SCHEMAS:
            msg = f"imports more than {_MAX_SCHEMAS} schemas"
            raise UnusableSchemaError(msg)
        name, one = left.popitem()
        part = registry.version(one.subject, one.version)
        if part is None:
            msg = f"imports {name[:_SHOWN]}, and there is no version {one.version} of "
            msg += one.subject[:_SHOWN]
            raise UnusableSchemaError(msg)
        found[name] = part.schema
        size += len(part.schema)
        if size > _MAX_CHARACTERS:
            msg = f"has more than {_MAX_CHARACTERS:,} characters with all that it imports"
            raise UnusableSchemaError(msg)
        left |= {one.name: one for one in part.references if one.name not in found}
    return found
