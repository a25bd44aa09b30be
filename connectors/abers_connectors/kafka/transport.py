"""What the service asks of a Kafka client.

Governing rule: nothing outside this protocol is used, so that another client
can take the place of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Record"]


class Record(Protocol):
    """A record as it was read; `timestamp` is in milliseconds, -1 if there is none."""

    @property
    def topic(self) -> str: ...  # noqa: D102 - named as in Kafka
    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102
    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> bytes | None: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...  # noqa: D102
