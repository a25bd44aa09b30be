"""Shortening the changelog to what a restore still needs.

Governing rule: only where the snapshots are declared shared between machines,
so that nobody restores from older ones, is a record of the changelog deleted,
and only before the oldest snapshot that is kept and whole. What fails here costs
nothing but room.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError, StateError
from abers.stream.snapshot import require_whole
from abers_connectors.kafka.client_settings import reaching
from abers_connectors.kafka.home import snapshot_of
from abers_connectors.kafka.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.kafka.home import Home

__all__ = ["Trimming"]

_PATIENCE = 10_000  # ms for an answer

_log = logging.getLogger(__name__)


class Trimming:
    """Deletes what no kept snapshot needs.

    Parameters
    ----------
    home
        Of which application.
    snapshots
        Its snapshots, shared between all machines.
    settings
        Of the client: brokers and security.
    """

    def __init__(self, home: Home, snapshots: Snapshots, settings: Mapping[str, Any]) -> None:
        self._home, self._snapshots, self._settings = home, snapshots, settings

    def trim(self, number: int) -> None:
        """Shorten the changelog of a shard; it never raises, but may wait for the brokers."""
        try:
            offset = self.oldest(number)
            if offset:
                self._delete(number, offset)
        except (AbersError, OSError) as error:
            _log.warning(
                "the changelog is not shortened: %s",
                error,
                extra={"topic": self._home.changelog, "partition": number},
            )

    def oldest(self, number: int) -> int:
        """Return the offset at which the oldest whole snapshot goes on; 0 if there is none."""
        for name, blob in self._snapshots.newest(number, failed=_give_up, oldest=True):
            offset = Snapshots.offset(name)
            try:
                require_whole(blob, self._home.key, snapshot_of(self._home.app, number, offset))
            except StateError:
                continue
            return offset
        return 0

    def _delete(self, number: int, offset: int) -> None:
        from kafka import KafkaAdminClient, TopicPartition  # noqa: PLC0415 - an extra

        with (
            reaching(self._settings),
            KafkaAdminClient(
                **self._settings, bootstrap_timeout_ms=_PATIENCE, request_timeout_ms=_PATIENCE
            ) as admin,
        ):
            admin.delete_records({TopicPartition(*self._home.log(number)): offset})


def _give_up(sentence: str) -> None:
    """Leave the changelog alone where it is not known which snapshots there are."""
    raise OSError(sentence)
