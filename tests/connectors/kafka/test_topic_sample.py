"""`abers check --sample TOPIC`: decoded records, and the first mistake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.brokers import Message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker

    Invoke = Callable[..., Ran]

TIME = 1_700_000_000_000


@pytest.fixture
def names(broker: Broker, tmp_path: Path) -> tuple[str, str]:
    """Create topics of observations and labels, and a configuration of them."""
    observations, labels = broker.create("observations", 2), broker.create("labels", 2)
    (tmp_path / "abers.toml").write_text(
        f'[kafka]\nbootstrap_servers = "{broker.bootstrap}"\n'
        f'observations = "{observations}"\nlabels = "{labels}"\n'
        'predictions = "p"\n[input.fields]\nmodel = "record:key"\n'
    )
    return observations, labels


def written(n: int, **more: object) -> Message:
    """Write a record of a time."""
    value = json.dumps({"id": f"a{n}", "time": TIME + n, **more}).encode()
    return Message(value, b"fraud", n % 2, TIME + n)


def test_ten_records_of_each_input(names: tuple[str, str], broker: Broker, invoke: Invoke) -> None:
    """Records are shown by topic, partition and offset, in the order of time."""
    observations, labels = names
    broker.produce(observations, [written(n, score=0.25) for n in range(30)])
    broker.produce(labels, [written(n, label=1) for n in range(3)])
    ran = invoke("check", "abers.toml", "--sample", observations)
    assert ran.code == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines() if line.startswith("  [")]
    assert len(rows) == 10
    time = ["14", "Nov", "2023,", "22:13:20.003"]
    assert rows[3] == ["[1]@1", "a3", "fraud", *time, "0.25"]
    ran = invoke("check", "abers.toml", "--sample", labels)
    rows = [line.split() for line in ran.out.splitlines() if line.startswith("  [0]@1")]
    assert [(row[1:3], row[-1]) for row in rows] == [(["a2", "fraud"], "1")]


def test_the_first_mistake_is_reported(
    names: tuple[str, str], broker: Broker, invoke: Invoke
) -> None:
    """The first mistake is shown with its offset, its text and the reason."""
    observations, _ = names
    bad = written(1, scoer=0.5)
    broker.produce(observations, [written(0, score=0.5), Message(None, b"k", 0, TIME), bad])
    ran = invoke("check", "abers.toml", "--sample", observations)
    assert ran.code == 1
    assert (
        f'{observations}[1]@0: missing-field: the record has no "score" and no "label"' in ran.err
    )
    assert "scoer" in ran.err
    assert "  [0]@0 " in ran.out


def test_only_the_newest_are_looked_at(
    names: tuple[str, str], broker: Broker, invoke: Invoke
) -> None:
    """An old mistake in a long history is not shown."""
    observations, _ = names
    broker.produce(
        observations,
        [Message(b"{", b"k", 0, TIME), *(written(2 * n, score=0.5) for n in range(5_001))],
        linger_ms=20,
    )
    ran = invoke("check", "abers.toml", "--sample", observations)
    assert ran.code == 0, ran.err
    assert "  [0]@2 " in ran.out


def test_a_topic_that_is_not_there(names: tuple[str, str], invoke: Invoke) -> None:
    """A missing topic is reported."""
    del names
    ran = invoke("check", "abers.toml", "--sample", "nowhere")
    assert (ran.code, "there is no topic nowhere" in ran.err) == (1, True), ran.err
