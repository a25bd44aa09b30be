"""Exactly-once processing under faults: the long campaign, `make chaos`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.chaos.apart import attacked_apart
from tests.connectors.kafka.clients import CLIENTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_everything_happens_once_for_long(client: str, tmp_path: Path) -> None:
    """Workers are killed 22 times while a hundred thousand observations flow."""
    said = attacked_apart("long", tmp_path, client)
    assert "22 kills" in said
    assert "lost 0, duplicates 0, state equal True" in said


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_everything_happens_once_whatever_node_dies(client: str, tmp_path: Path) -> None:
    """One of three brokers is killed nine times, and workers too, while records flow."""
    said = attacked_apart("failover", tmp_path, client)
    assert "9 nodes killed" in said
    assert "lost 0, duplicates 0, state equal True" in said


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_everything_happens_once_whatever_is_predicted(client: str, tmp_path: Path) -> None:
    """Each other task, and a learner, survives the faults of the short campaign."""
    said = attacked_apart("tasks-long", tmp_path, client)
    assert said.count("5 kills") == said.count("lost 0, duplicates 0, state equal True") == 3


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_everything_happens_once_in_more_and_fewer_partitions(client: str, tmp_path: Path) -> None:
    """Routers, tasks and nodes are killed and paused, and tasks become 32 from 16, and then 8."""
    said = attacked_apart("elastic", tmp_path, client)
    assert "2 rescales killed and repeated" in said
    assert "lost 0, duplicates 0, state equal True" in said
