"""Deletion of the changelog records that no restore needs.

Records are deleted only if all machines share the snapshots, so that no process restores from older
snapshots, and only before the oldest intact snapshot. A failure costs nothing but disk space.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError, StateError
from abers.stream.snapshot import require_whole
from abers_connectors.kafka.connection import open_admin, to_client
from abers_connectors.runtime.checkpoint import snapshot_scope
from abers_connectors.runtime.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.runtime.application import Application

__all__ = ["ChangelogTrimmer"]

_log = logging.getLogger(__name__)


class ChangelogTrimmer:
    """Deletes changelog records that none of the shared snapshots of an application needs."""

    def __init__(
        self, application: Application, snapshots: SnapshotStore, settings: Mapping[str, Any]
    ) -> None:
        self._application, self._snapshots, self._settings = application, snapshots, settings

    def trim(self, number: int) -> None:
        """Trim the changelog of a task; it may wait for the brokers, but never raises."""
        try:
            offset = self.oldest(number)
            if offset:
                partition = to_client(self._application.changelog_partition(number))
                with open_admin(self._settings) as admin:
                    admin.delete_records({partition: offset})
        except (AbersError, OSError) as error:
            _log.warning(
                "changelog not trimmed: %s",
                error,
                extra={"topic": self._application.changelog, "partition": number},
            )

    def oldest(self, number: int) -> int:
        """Return the offset at which the oldest intact snapshot continues; 0 without a snapshot."""
        for name, blob in self._snapshots.newest(number, failed=_fail, oldest=True):
            offset = SnapshotStore.offset(name)
            scope = snapshot_scope(self._application.state_id, number, offset)
            try:
                require_whole(blob, self._application.key, scope)
            except StateError:
                continue
            return offset
        return 0


def _fail(sentence: str) -> None:
    """Stop the trimming if the snapshots cannot be listed."""
    raise OSError(sentence)
