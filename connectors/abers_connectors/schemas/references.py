"""The schemas that a schema imports, with those that they import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.schemas.schema_cache import UnusableSchemaError

if TYPE_CHECKING:
    from abers_connectors.schemas.registry_client import RegisteredSchema, SchemaRegistry

__all__ = ["imported"]

_MAX_SCHEMAS = 200


def imported(schema: RegisteredSchema, registry: SchemaRegistry) -> dict[str, str]:
    """Return the texts of all schemas that a schema imports, by the names of the imports."""
    found: dict[str, str] = {}
    left = [*schema.references]
    while left:
        one = left.pop()
        if one.name in found:
            continue
        part = registry.version(one.subject, one.version)
        if part is None:
            msg = f"imports {one.name}, and there is no version {one.version} of {one.subject}"
            raise UnusableSchemaError(msg)
        found[one.name] = part.schema
        left += part.references
        if len(found) > _MAX_SCHEMAS:
            msg = f"imports more than {_MAX_SCHEMAS} schemas"
            raise UnusableSchemaError(msg)
    return found
