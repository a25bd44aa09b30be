"""Alarms of `abers serve` at a webhook: each once, also behind a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.connectors.hooks import listening
from tests.connectors.serve.running import Running

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    from pathlib import Path

COUNT, TOGETHER = 3_000, 100
ROWS = [{"id": f"{n}", "score": 0.9, "time": n} for n in range(COUNT)]
LABELS = [{"id": f"{n}", "label": int(n < COUNT // 2), "time": n} for n in range(COUNT)]


def expected() -> list[bytes]:
    """Return the alarms of a processor in memory that takes the same events."""
    processor = Processor(Settings(scores="probability"))
    for at in range(0, COUNT, TOGETHER):
        numbers = range(at, at + TOGETHER)
        processor.process_many([Observation(f"{n}", n, score=0.9) for n in numbers])
        processor.process_many([Label(f"{n}", n, value=int(n < COUNT // 2)) for n in numbers])
    (history,) = processor.histories
    return [msgspec.json.encode(AlarmRecord.of(one)) for _, one in history.alarms]


@pytest.mark.once
def test_an_alarm_is_posted_once(tmp_path: Path) -> None:
    """A model that goes wrong raises its alarms at the webhook, and a restart repeats none."""
    with listening() as listener:
        config = tmp_path / "serve.toml"
        config.write_text(f"[task]\nscores = 'probability'\n[alerts]\nwebhook = '{listener.url}'\n")
        with Running(tmp_path / "state", str(config)) as running:
            for at in range(0, COUNT, TOGETHER):
                running.predict(*ROWS[at : at + TOGETHER])
                running.label(*LABELS[at : at + TOGETHER])
            assert running.terminate() == 0
        with Running(tmp_path / "state", str(config)) as again:
            assert again.terminate() == 0
        heard = [one.body for one in listener.heard.queue]
    assert heard == expected()
    assert heard
