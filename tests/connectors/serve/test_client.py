"""The client of examples/serving: it repeats requests until they are answered."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest
from tests.conftest import ROOT
from tests.connectors.serve.running import Running

if TYPE_CHECKING:
    from pathlib import Path

sys.path.append(str(ROOT / "examples" / "serving"))
from serve_client import ServeClient


def test_a_client_across_a_restart(tmp_path: Path) -> None:
    """A client whose server ends gets its answer from the next server at this address."""
    with Running(tmp_path / "state") as first:
        client, port = ServeClient(first.address.geturl()), str(first.address.port)
        made = client.predict([{"id": "a", "score": 0.5}])
        first.process.kill()
        first.ended()
    found: list[object] = []
    asking = threading.Thread(
        target=lambda: found.extend(client.predict([{"id": "a", "score": 0.5}]))
    )
    asking.start()
    with Running(tmp_path / "state", port=port):
        asking.join(60)
        assert found == made
        assert client.label([{"id": "a", "label": 1}]) == [{"id": "a", "status": "learned"}]
        with pytest.raises(RuntimeError, match="/v1/predict: 413: 10,001 rows are too many"):
            client.predict([{"id": "x"}] * 10_001)
