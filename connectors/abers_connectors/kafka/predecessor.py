"""The group of an application that is taken over, watched in a thread of its own.

A mark among the offsets of a group says who has taken over its application. The brokers accept the
mark only while the group has no members, and every process searches for it after it has joined.
So once the mark is there, and no transaction is open, the offsets of the group are final.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafka import OffsetAndMetadata, errors

from abers.exceptions import AbersError, BrokerError, ConfigError, StateError
from abers_connectors.kafka.client_errors import retried, translated_errors
from abers_connectors.kafka.connection import (
    TIMEOUT,
    new_consumer,
    open_admin,
    to_client,
)
from abers_connectors.kafka.group_members import group_members
from abers_connectors.kafka.topic_watch import BrokerWatch
from abers_connectors.runtime.take_over import PredecessorView
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.runtime.application import Application

__all__ = ["WatchedGroup", "require_not_taken_over"]

_log = logging.getLogger(__name__)

_INTERVAL = 0.5  # seconds between two questions
_PATIENCE = 10.0  # seconds for an answer
_HAS_MEMBERS = (
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.UnknownMemberIdError,
)
_MARK = "abers: taken over by "  # and the application id, as metadata of an offset


class WatchedGroup(BrokerWatch):
    """A `runtime.take_over.Predecessor`.

    The mark is an offset of `mark_topic`. This application needs permission to read that topic and
    the group, and the other application to describe the topic.
    """

    def __init__(
        self,
        application: Application,
        application_id: str,
        mark_topic: str,
        settings: Mapping[str, Any],
    ) -> None:
        self.id = application_id
        self._application, self._settings = application, settings
        self._mark_at = TopicPartition(mark_topic, 0)
        self._view: PredecessorView | None = None
        self._error: AbersError | None = None
        self._wanted = False
        super().__init__("predecessor", _INTERVAL, _PATIENCE)

    def view(self, *, fresh: bool = False) -> PredecessorView:
        """Return what is known of the application; with `fresh`, ask the brokers."""
        if fresh or self._view is None:
            self._ask_now()
        error = self._error
        if error is not None and (fresh or self._view is None or isinstance(error, ConfigError)):
            raise error
        if self._view is None:
            msg = f"the brokers have not answered what group {self.id} has committed"
            raise BrokerError(msg)
        return self._view

    def take_over(self, *, ready: bool) -> None:
        """Set whether to make the offsets final, once the group has no members."""
        self._wanted = ready

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, AbersError):
            _log.warning("group %s cannot be watched now", self.id, exc_info=error)
        else:
            if str(error) != str(self._error):
                _log.warning("group %s cannot be watched now: %s", self.id, error)
            self._error = error
        self._answered.set()

    def _ask(self) -> None:
        with open_admin(self._settings) as admin:
            while not self._closed:
                with translated_errors(f"watching group {self.id}"), self._permitted():
                    self._view, self._error = self._seen(admin), None
                self._answered.set()
                self._pause()

    @contextmanager
    def _permitted(self) -> Iterator[None]:
        """Name the permissions that a take-over needs if one of them is missing."""
        try:
            yield
        except errors.AuthorizationError as error:
            msg = (
                f"--take-over: a permission is missing ({type(error).__name__}); allow READ on "
                f"group {self.id} and on topic {self._mark_at.topic}"
            )
            raise ConfigError([msg]) from error

    def _seen(self, admin: Any) -> PredecessorView:  # noqa: ANN401 - untyped
        if self._view is not None and self._view.final:
            return self._view
        found = _offsets(admin, self.id)
        running = bool(group_members(admin, self.id))
        taken_by = _successor(found)
        if taken_by == self._application.id:
            return PredecessorView(
                self._final_offsets(found), running=running, final=True, taken_by=taken_by
            )
        if self._wanted and taken_by is None and not running:
            self._mark(admin)
        return PredecessorView(_committed(found), running=running, taken_by=taken_by)

    def _mark(self, admin: Any) -> None:  # noqa: ANN401 - untyped
        """Mark the group, unless it has members again; the next answer shows which is true."""
        mark = OffsetAndMetadata(0, f"{_MARK}{self._application.id}", None)
        said = admin.alter_group_offsets(self.id, {to_client(self._mark_at): mark})
        for error in said.values():
            if error not in {errors.NoError, *_HAS_MEMBERS}:
                raise error

    def _final_offsets(self, found: Mapping[Any, Any]) -> dict[TopicPartition, int]:
        """Return the offsets once no transaction on them is open."""
        consumer = new_consumer(self._settings, group_id=self.id)
        try:
            offsets = {one: consumer.committed(to_client(one)) for one in _committed(found)}
        finally:
            consumer.close(autocommit=False)
        return {one: offset for one, offset in offsets.items() if offset is not None}


def require_not_taken_over(group: str, settings: Mapping[str, Any]) -> None:
    """Raise a StateError if another application has taken over that of a group."""
    with open_admin(settings) as admin:
        found = _offsets(admin, group)
    if (by := _successor(found)) is not None:
        msg = (
            f"{group} was taken over by {by}, which publishes from where {group} has stopped; "
            f"leave {group} stopped, or take over from {by} by `abers run CONFIG --take-over {by}` "
            "with another kafka.application_id"
        )
        raise StateError(msg)


def _offsets(admin: Any, group: str) -> Mapping[Any, Any]:  # noqa: ANN401 - untyped
    """Return all offsets of a group, as the client has them."""
    found: Mapping[Any, Any] = retried(lambda: admin.list_group_offsets(group)[group], TIMEOUT)
    return found


def _successor(offsets: Mapping[Any, Any]) -> str | None:
    """Return the application by which a group is marked, or None."""
    metadata = (one.metadata or "" for one in offsets.values())
    return next((one.removeprefix(_MARK) for one in metadata if one.startswith(_MARK)), None)


def _committed(offsets: Mapping[Any, Any]) -> dict[TopicPartition, int]:
    """Return the committed offsets, without marks."""
    return {
        TopicPartition(*partition): one.offset
        for partition, one in offsets.items()
        if one.offset >= 0 and not (one.metadata or "").startswith(_MARK)
    }
