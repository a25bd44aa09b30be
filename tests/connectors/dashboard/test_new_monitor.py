"""A monitor that is registered appears wherever numbers and figures are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.reads import turning
from tests.connectors.kafka.works import Served
from tests.engine.monitoring.label_monitor import Labels

from abers.monitoring import MONITORS
from abers.pages.html import fragment
from abers_connectors.cli import main
from abers_connectors.dashboard.feed import LiveBlocks
from abers_connectors.dashboard.observer import Observer
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from pathlib import Path

N = 120


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a new monitor with one line."""
    monkeypatch.setitem(MONITORS, "binary", [Labels])


def test_terminal_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both kinds of report and the comparison have its numbers, the terminal with -v."""
    lines = (json.dumps({"id": f"{n}", "score": n / N, "label": n % 2}) for n in range(N))
    (tmp_path / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = ["replay", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]
    for report in ("report.json", "report.html"):
        main.app([*command, "-v", "--report", str(tmp_path / report)], standalone_mode=False)
        words = capsys.readouterr().out
        assert "mean label" in words
        assert "0.5000" in words
    numbers = json.loads((tmp_path / "report.json").read_text())
    assert numbers["calibrated"]["label_mean"] == 0.5
    assert numbers["calibrated"]["label_count"] == N
    assert numbers["over_time"][-1]["calibrated"]["label_mean"] == pytest.approx(0.5, abs=0.1)
    assert "figures" not in numbers
    page = (tmp_path / "report.html").read_text()
    assert all(words in page for words in ("mean label", "How many, and how much."))
    main.app([*command[:2], "--compare", "ivap"], standalone_mode=False)
    assert f" {N} " in capsys.readouterr().out


def test_live_page_and_metrics() -> None:
    """The live page has its numbers, and each has a gauge."""
    status, shard, observer = Status(60.0), Served(), Observer()
    work = shard.take(*turning())
    status.batch_committed(shard, work)
    status.update_evidence([shard])
    assert work.outputs is not None
    observer.hold({0: shard.processor})
    observer.take(shard.processor, work.outputs)
    (key,) = shard.processor.keys
    blocks = LiveBlocks(observer, "UTC")(key)
    assert blocks is not None
    assert "mean label" in "".join(map(fragment, blocks)).casefold()
    text = exposition(registry_of(status), "")[0].decode()
    (monitor,) = shard.processor.monitors
    mean, count = monitor.numbers_beside()
    of_model = f'{{application="abers",model="{key[0]}",process="0"}}'
    assert f"abers_label_mean{of_model} {mean.value}\n" in text
    assert f"abers_label_count{of_model} {count.value:.1f}\n" in text
    assert "# HELP abers_label_mean Mean of the labels.\n" in text
    status.assign([])
    assert "abers_label_mean" not in exposition(registry_of(status), "")[0].decode()


def test_segments_are_added_up() -> None:
    """The gauges of a model are of all its segments, in all partitions."""
    status, shards = Status(60.0), [Served(0), Served(1)]
    for shard in shards:
        shard.take(*turning())
    status.update_evidence(shards)
    one, both = shards[0].processor.monitors[0].numbers_beside(), status.view().numbers["m"]
    assert both[1].value == 2 * one[1].value
