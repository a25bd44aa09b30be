"""The demonstration of the service, as `make demo-kafka` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DEMO = ROOT / "examples" / "kafka_demo" / "run.py"
PAGE = (ROOT / "docs" / "gallery" / "kafka.md").read_text("utf-8")


def shape(line: str) -> str:
    """Return a line without its numbers, which differ from run to run."""
    return re.sub(r"\d+(\.\d+)?", "0", line).strip()


@pytest.mark.kafka
@pytest.mark.parametrize("brokers", ["1", pytest.param("3", marks=pytest.mark.long)])
def test_it_ends_with_all_predictions_and_what_they_are_worth(brokers: str) -> None:
    """Each observation is predicted once, each late label is joined, and calibration helps."""
    words = [sys.executable, str(DEMO), "600", "600", "--brokers", brokers]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    *shown, summary = ran.stdout.splitlines()
    assert len(shown) == 25
    assert all(re.search(r"says \d\.\d{3}, calibrated \d\.\d{3} \(", line) for line in shown)
    assert summary.startswith("600 predictions, 600 outcomes; ")
    losses = re.search(r"of the model (\d\.\d+), calibrated (\d\.\d+);", summary)
    assert losses is not None
    assert float(losses[2]) < float(losses[1])
    on_page = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0].splitlines()
    assert {*map(shape, on_page)} == {*map(shape, ran.stdout.splitlines())}
