"""What comes out is what came out before names changed, but for the names."""

from __future__ import annotations

import difflib
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from examples.extending.labels import LabelShare
from tests.golden.outputs import (
    FILES,
    cases,
    defaults,
    life,
    renamed,
    replay,
    resumed,
    service,
    text,
)
from tests.golden.tables import compacted, named

from abers.monitoring import MONITORS

if TYPE_CHECKING:
    from pathlib import Path

SUMS = FILES / "sha256.json"
PROCESSORS, SERVICES = cases("processors"), cases("services")
REPLAYS, DEFAULTS = cases("replays"), cases("defaults")
SINGLY = ("binary-bytes", "cross", "multiclass-one-vs-rest", "regression-told")
"""Streams of which the events are taken one by one, too."""
WHOLE = 1_000_000
"""More events than a stream has."""


def golden(name: str) -> Any:  # noqa: ANN401 - JSON
    """Read a golden file, in the names of now."""
    return renamed(json.loads((FILES / f"{name}.json").read_text("utf-8")))


def require_same(found: Any, name: str, *parts: str) -> None:  # noqa: ANN401 - JSON
    """Compare outputs, or the given parts of them, byte by byte; show the lines that differ.

    What the golden file does not name is not compared.
    """
    old = golden(name)
    found = compacted(named(found, old))
    for part in parts:
        require_text(text(old[part]), text(found[part]), f"{name}: {part}")
    if not parts:
        require_text(text(old), text(found), name)


def require_text(old: str, new: str, what: str) -> None:
    """Compare two texts."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "golden", "now", lineterm="", n=0
    )
    assert old == new, f"{what}\n" + "\n".join(line[:2_000] for line in lines)


def test_golden_files_are_as_they_were() -> None:
    """Whatever is renamed in the checkout, the golden files keep the old names."""
    sums = json.loads(SUMS.read_text("utf-8"))
    names = {path.name for path in FILES.iterdir()} - {SUMS.name}
    assert {name: sha256((FILES / name).read_bytes()).hexdigest() for name in names} == sums


def test_every_output_has_a_file() -> None:
    """There is a file for each case, and none besides."""
    groups = {"processor": PROCESSORS, "service": SERVICES, "replay": REPLAYS, "config": DEFAULTS}
    named = {f"{group}-{name}.json" for group, known in groups.items() for name in known}
    assert named | {"cases.json", "more.json", SUMS.name} == {path.name for path in FILES.iterdir()}


@pytest.mark.parametrize("name", PROCESSORS)
def test_processors(name: str) -> None:
    """Predictions, outcomes, dead letters, alarms and counters are the same."""
    require_same(life(PROCESSORS[name], PROCESSORS[name].get("batch", 64)), f"processor-{name}")


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "batch"),
    [
        pytest.param(name, batch, marks=[pytest.mark.long] * (batch != 7 and name not in SINGLY))
        for name, one in PROCESSORS.items()
        if "batch" not in one
        for batch in ((1, 7, WHOLE) if name in SINGLY else (7, WHOLE))
    ],
)
def test_processors_in_other_batches(name: str, batch: int) -> None:
    """The size of batches makes no difference."""
    require_same(life(PROCESSORS[name], batch), f"processor-{name}")


@pytest.mark.once
@pytest.mark.parametrize("then", ["restart", "redo"])
@pytest.mark.parametrize("name", PROCESSORS)
def test_processors_that_are_restarted(name: str, then: str) -> None:
    """A restart half-way, from a snapshot or from the journal, makes no difference."""
    batch = PROCESSORS[name].get("batch", 40)
    require_same(life(PROCESSORS[name], batch, then), f"processor-{name}")


@pytest.mark.once
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", SERVICES)
def test_services(name: str, restart: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """What goes to topics, the changelog and the metrics are the same, restarted or not."""
    require_same(service(SERVICES[name], restart=restart), f"service-{name}")


@pytest.mark.once
@pytest.mark.parametrize("name", REPLAYS)
def test_replays(name: str, tmp_path: Path) -> None:
    """Files, reports, summaries and tables of commands are the same."""
    require_same(replay(REPLAYS[name], tmp_path), f"replay-{name}")


@pytest.mark.once
@pytest.mark.parametrize("name", [name for name, one in REPLAYS.items() if "resume" in one])
def test_runs_that_are_resumed(name: str, tmp_path: Path) -> None:
    """A run that is stopped and goes on writes the files that a replay writes."""
    found = resumed(REPLAYS[name], tmp_path, parts=3)
    require_same(found, f"replay-{name}", *found)


@pytest.mark.once
@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    """Every key of a configuration is there, with the default that it had; in any order."""
    old = golden(f"config-{name}")
    found = named(defaults(DEFAULTS[name]), old)
    require_text(text(dict(sorted(old["columns"].items()))), text(found["columns"]), name)


@pytest.mark.once
def test_a_new_monitor_breaks_no_golden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the example of CONTRIBUTING.md the outputs are the same, but for its own number."""
    monkeypatch.setitem(MONITORS, "binary", [LabelShare])
    found = life(PROCESSORS["binary-ivap"], 64, "restart")
    assert "calibrated.label_share" in found["summary"]["columns"]
    require_same(found, "processor-binary-ivap")
    served = service(SERVICES["protected"], restart=True)
    assert any(line.startswith("abers_label_share") for line in served["metrics"])
    require_same(served, "service-protected")
    require_same(replay(REPLAYS["cross"], tmp_path), "replay-cross")
