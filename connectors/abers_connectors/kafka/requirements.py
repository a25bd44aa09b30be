"""What must be installed for a service.

Governing rule: a library is asked for before the first record, also one that is
needed only for some records: a topic that others compressed cannot be read
without their codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.kafka.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config import Config

__all__ = ["lacking"]

_CLIENT = ("kafka", "crc32c", "lz4.frame", "zstandard", "snappy")
_SERVER = ("starlette", "uvicorn", "prometheus_client")


def lacking(config: Config) -> Iterator[str]:
    """Find what a service needs and is not installed.

    Parameters
    ----------
    config
        Of a service.

    Yields
    ------
    str
        A dotted path, and what is missing for it.
    """
    groups = {"kafka": _CLIENT} | ({"http": _SERVER} if config.http.enabled else {})
    for group, modules in groups.items():
        try:
            for module in modules:
                extra(module, f"a section [{group}]", group)
        except MissingExtraError as error:
            yield f"{group}: {error}"
    if config.state.path is not None:
        try:
            Snapshots(config.state.path, "abers")
        except (MissingExtraError, ParameterError) as error:
            yield f"state.path: {error}"
