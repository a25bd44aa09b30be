"""Libraries that a service needs.

All of them are required before the first record, also the codecs: a topic that others compressed
cannot be read without theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.runtime.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config.model import Config

__all__ = ["missing_requirements"]

_CLIENT = ("kafka", "crc32c", "lz4.frame", "zstandard", "snappy")
_SERVER = ("starlette", "uvicorn", "prometheus_client")


def missing_requirements(config: Config) -> Iterator[str]:
    """Yield a dotted path and a sentence for each library that a service needs and lacks."""
    groups = {"kafka": _CLIENT} | ({"http": _SERVER} if config.http.enabled else {})
    for group, modules in groups.items():
        try:
            for module in modules:
                extra(module, f"a section [{group}]", group)
        except MissingExtraError as error:
            yield f"{group}: {error}"
    if config.state.path is not None:
        try:
            SnapshotStore(config.state.path, "abers")
        except (MissingExtraError, ParameterError) as error:
            yield f"state.path: {error}"
