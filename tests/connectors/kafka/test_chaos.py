"""Exactly-once processing under faults: the short campaign."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.chaos.apart import attacked_apart
from tests.connectors.kafka.clients import on_each_client, on_each_client_at_length

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.kafka
@on_each_client
def test_everything_happens_once_whatever_dies(client: str, tmp_path: Path) -> None:
    """Five workers are killed, one is paused, the broker dies, snapshots are damaged.

    Errors are raised now and then that no record causes, and no record is a dead letter for it.
    """
    said = attacked_apart("short", tmp_path, client)
    assert "5 kills" in said
    assert re.search(r"[1-9]\d* transient errors", said)
    assert "lost 0, duplicates 0, state equal True" in said


@pytest.mark.kafka
@pytest.mark.long
def test_everything_happens_once_whatever_is_predicted(tmp_path: Path) -> None:
    """Several classes, numbers and a learner: a killed worker continues correctly."""
    said = attacked_apart("tasks", tmp_path, "kafka-python")
    assert said.count("snapshots damaged") == 3
    assert said.count("3 kills") == said.count("lost 0, duplicates 0, state equal True") == 3


@pytest.mark.kafka
@on_each_client_at_length
def test_everything_happens_once_in_more_and_fewer_partitions(client: str, tmp_path: Path) -> None:
    """Routers and tasks are killed and paused, inputs grow, and tasks become more, then fewer."""
    said = attacked_apart("elastic-short", tmp_path, client)
    assert "3 kills, 1 pauses past the session, 2 rescales killed and repeated" in said
    assert "lost 0, duplicates 0, state equal True" in said
    assert "in a backlog by 0" in said
