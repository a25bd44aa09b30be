"""The parts of a saved state by name, `abers.stream.component`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.engine.stream.cases import stream
from tests.walkthroughs import example_monitor

import abers.stream.snapshot as saved
from abers import StateError, __version__
from abers.monitoring import MONITORS
from abers.serialization import seal
from abers.stream import Events, Outcome, Processor, Settings
from abers.stream.component import SavedComponent

if TYPE_CHECKING:
    from abers.stream import Event

SETTINGS = Settings(scores="probability", max_pending=20, label_timeout=2_000)
EVENTS: list[Event] = stream(400, every=20)
HALF = len(EVENTS) // 2


def fed(settings: Settings = SETTINGS) -> Processor:
    """Return a processor of the first half of the events."""
    processor = Processor(settings)
    processor.process_batch(Events.of(EVENTS[:HALF]))
    return processor


def with_parts(blob: bytes, **parts: SavedComponent | None) -> bytes:
    """Return a snapshot with other parts; None takes one out."""
    whole = saved.read(blob)
    for name, part in parts.items():
        whole.components.pop(name, None)
        if part is not None:
            whole.components[name] = part
    return seal(saved.MAGIC, msgspec.msgpack.encode(whole))


def part(version: int = 1, missing: str = "refuse") -> SavedComponent:
    """Return a part that this release does not know."""
    kind: Any = missing
    return SavedComponent(version, kind, msgspec.Raw(msgspec.msgpack.encode([1, 2])))


def numbers(processor: Processor) -> dict[str, dict[str, float]]:
    """Return all numbers of the monitors."""
    assert processor.monitor is not None
    return processor.monitor.views()


def test_every_part_has_its_name() -> None:
    """A snapshot has its parts by name; those that follow from the events alone are the state."""
    processor = fed()
    names = [*saved.read(processor.snapshot()).components]
    assert names == [
        *("counters", "keys", "clocks", "calibrators", "pending"),
        *("monitor.binary", "monitor.protection", "rows", "e_processes", "history"),
    ]
    state = msgspec.msgpack.decode(processor.state_bytes(), type=dict[str, SavedComponent])
    assert [*state] == [name for name in names if name != "history"]
    assert {one.missing for one in state.values()} == {"refuse", "empty"}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"monitors": False}, set()),
        ({"task": "regression", "distributions": "scored", "window": 9}, {"distributions"}),
        (
            {"task": "regression", "calibrator": "protected", "support": (-9.0, 9.0)}
            | {"distributions": "scored", "coverage": 0.8},
            {"distributions", "tracker"},
        ),
    ],
)
def test_parts_of_other_settings(options: dict[str, Any], more: set[str]) -> None:
    """Distributions, trackers and monitors are there where the settings ask for them."""
    settings = Settings(**options)
    names = {*saved.read(fed(settings).snapshot()).components}
    every = {"counters", "keys", "clocks", "calibrators", "pending", "rows"}
    assert every | more <= names
    assert {"distributions", "tracker"} & names == more
    assert ("e_processes" in names) == settings.monitors


def test_an_unknown_part() -> None:
    """A part that its writer marked "empty" is dropped, another is refused with the remedy."""
    blob = fed().snapshot()
    restored = Processor.restore(with_parts(blob, news=part(3, "empty")), SETTINGS)
    assert restored.snapshot() == blob
    with pytest.raises(StateError) as refusal:
        Processor.restore(with_parts(blob, news=part()), SETTINGS)
    assert str(refusal.value) == (
        f"the snapshot has 'news', which abers {__version__} does not know; load it with abers "
        f"{__version__}, which wrote it"
    )


@pytest.mark.parametrize("name", ["counters", "pending", "rows", "e_processes", "monitor.binary"])
def test_a_part_that_must_be_there(name: str) -> None:
    """A snapshot that lacks it is refused, with its name and the remedy."""
    with pytest.raises(StateError, match=rf"lacks '{name}', .* needs; load it with abers"):
        Processor.restore(with_parts(fed().snapshot(), **{name: None}), SETTINGS)


@pytest.mark.parametrize("version", [0, 2])
def test_a_part_of_another_version(version: int) -> None:
    """It is refused with both versions and the remedy."""
    blob = fed().snapshot()
    found = saved.read(blob).components["clocks"]
    found.version = version
    why = rf"'clocks' in version {version}, and abers \S+ reads version 1; load it with abers"
    with pytest.raises(StateError, match=why):
        Processor.restore(with_parts(blob, clocks=found), SETTINGS)


def test_a_part_that_may_be_missing() -> None:
    """Without its history a state is read, and its history begins empty."""
    processor = fed()
    restored = Processor.restore(with_parts(processor.snapshot(), history=None), SETTINGS)
    assert restored.state_bytes() == processor.state_bytes()
    assert [one.windowed.count for one in restored.histories] == [0] * len(restored.keys)


def shares(processor: Processor) -> list[float]:
    """Return the number of the example in all, and in each window, where it is known."""
    assert processor.monitor is not None
    found = [processor.monitor.views()["calibrated"]["label_share"]]
    for monitor, history in zip(processor.monitors, processor.histories, strict=True):
        windows = history.windowed.windows(monitor)
        found += [one.monitor.views()["calibrated"]["label_share"] for one in windows]
    return found


def settled(events: list[Event], processor: Processor) -> list[int]:
    """Process events, and return the labels that settle predictions."""
    outputs = processor.process_many(events)
    return [one.label for one in outputs if isinstance(one, Outcome)]


def test_a_monitor_that_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of CONTRIBUTING.md begins empty in a running state; all else is as it was."""
    old, settings = fed(), SETTINGS
    blob, before = old.snapshot(), numbers(old)["calibrated"]
    monkeypatch.setitem(MONITORS, "binary", [example_monitor()])
    new = Processor.restore(blob, settings)
    found = numbers(new)["calibrated"]
    assert math.isnan(found.pop("label_share"))
    assert found == before
    labels = settled(EVENTS[HALF:], new)
    assert numbers(new)["calibrated"]["label_share"] == sum(labels) / len(labels)
    assert all(0.0 <= one <= 1.0 for one in shares(new) if not math.isnan(one))
    again = Processor.restore(new.snapshot(), settings)
    assert again.snapshot() == new.snapshot()


def test_a_monitor_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a monitor of the writer knew is dropped; if it comes back, it begins empty."""
    monkeypatch.setitem(MONITORS, "binary", [example_monitor()])
    blob = fed().snapshot()
    monkeypatch.setitem(MONITORS, "binary", [])
    without = Processor.restore(blob, SETTINGS)
    assert without.snapshot() == fed().snapshot()
    monkeypatch.setitem(MONITORS, "binary", [example_monitor()])
    back = Processor.restore(without.snapshot(), SETTINGS)
    assert math.isnan(shares(back)[0])
    labels = settled(EVENTS[HALF:], back)
    assert shares(back)[0] == sum(labels) / len(labels)
    assert all(0.0 <= one <= 1.0 for one in shares(back) if not math.isnan(one))
