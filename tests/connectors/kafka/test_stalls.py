"""A service whose interpreter is locked, on a real broker."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.connectors.kafka import locked
from tests.connectors.kafka.applications import Served
from tests.connectors.kafka.brokers import PATIENCE, Message
from tests.connectors.kafka.clients import CLIENTS, on_each_client

from abers_connectors.errors import UNAVAILABLE

if TYPE_CHECKING:
    from tests.connectors.kafka.brokers import Broker

STALL = 8  # seconds


@on_each_client
def test_a_learner_that_locks_the_interpreter(client: str, broker: Broker, tmp_path: Path) -> None:
    """The service ends with 75 soon after its stall timeout, and the last line says why."""

    def start(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(locked.__file__)), *words]
        env = os.environ | {"ABERS_STATE_KEY": secrets.token_hex(32)}
        return subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE)

    served = Served(broker, tmp_path, start)
    chosen = "\n".join(f'kafka.{key} = "{value}"' for key, value in CLIENTS[client].items())
    served.configure(f"""{chosen}
    kafka.stall_timeout = "{STALL}s"
    kafka.transaction_timeout = "{STALL // 2}s"
    learner.name = "river.locked.Locked"
    """)
    with served.run() as process:
        try:
            seen = {"id": "a", "time": 1_700_000_000_000, "x": {"amount": 3.0}}
            label = {"id": "a", "time": 1_700_000_000_001, "label": 1}
            began = time.monotonic()
            for name, one in ("observations", seen), ("labels", label):
                broker.produce(served.topics[name], [Message(json.dumps(one).encode(), b"k")])
            said = process.communicate(timeout=PATIENCE)[1].decode()
            assert time.monotonic() - began >= STALL
        finally:
            process.kill()
    assert process.returncode == UNAVAILABLE, said
    last = json.loads(said.splitlines()[-1])
    assert last["level"] == "critical"
    assert last["message"].startswith(
        f"the loop has not moved for {STALL} s (kafka.stall_timeout) while processing "
    )
    assert any(f"{served.topics[name]}[" in last["message"] for name in ("observations", "labels"))
