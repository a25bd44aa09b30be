"""The history of a model, `abers.stream.alarms`: bounded, even, and kept over restarts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abers.exceptions import StateError
from abers.monitoring import BinaryMonitor
from abers.stream import Events, Label, Observation, Processor, Settings, make_task
from abers.stream.alarms import ModelHistory, experts_at

BINARY = Settings(scores="probability")
NUMBERS = Settings(task="regression")
START = 1_700_000_000_000


def stream(count: int, first: int = 0, *, scale: float = 1.0) -> list[Observation | Label]:
    """Return observations a minute apart, each with its label."""
    events: list[Observation | Label] = []
    for n in range(first, first + count):
        score = ((n * 37) % 100) / 100
        value = int(((n * 61) % 100) / 100 < score) * scale
        events.append(Observation(f"i{n}", START + 60_000 * n, score=score))
        events.append(Label(f"i{n}", START + 60_000 * n + 5, value=value))
    return events


def run(processor: Processor, events: list[Observation | Label], batch: int) -> ModelHistory:
    """Process events in batches, and return the history of the only model."""
    for at in range(0, len(events), batch):
        processor.process_batch(Events.of(events[at : at + batch]))
    (history,) = processor.histories
    return history


@pytest.mark.simulation
@settings(max_examples=20)
@given(batch=st.integers(1, 300), count=st.integers(1, 400))
def test_windows_do_not_depend_on_batches(batch: int, count: int) -> None:
    """Windows are the same however events are batched, and each has its first and last time."""
    found = run(Processor(BINARY), stream(count), batch)
    assert found.windowed.state() == run(Processor(BINARY), stream(count), 2).windowed.state()
    processor = Processor(BINARY)
    history = run(processor, stream(count), batch)
    for window in history.windowed.windows(processor.monitors[0]):
        first = window.end - window.labels
        assert window.first == START + 60_000 * first
        assert window.last == START + 60_000 * (window.end - 1)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", [BINARY, NUMBERS])
def test_a_restart_keeps_it(kind: Settings) -> None:
    """A processor that was restored half-way has the history of one that never stopped."""
    events = stream(3_000)
    whole = Processor(kind)
    run(whole, events, 50)
    first = Processor(kind)
    run(first, events[:3_000], 50)
    second = Processor.restore(first.snapshot(), kind)
    history = run(second, events[3_000:], 50)
    assert history.save() == whole.histories[0].save()
    assert len(history.windowed.windows(second.monitors[0])) > 32


@pytest.mark.simulation
def test_the_past_is_kept_as_well_as_the_present() -> None:
    """Of a long stream there are points of evidence and experts, evenly far apart, to its end."""
    processor = Processor(BINARY)
    history = run(processor, stream(6_000), 40)
    evidence, mixed = history.now(processor.monitors[0])
    for points, most in ((evidence, 64), (mixed, 32)):
        ends = [one.labels for one in points]
        assert most // 2 < len(ends) <= most + 1
        assert ends[-1] == 6_000
        gaps = np.diff([0, *ends])[:-1]
        assert gaps.max() <= 1.5 * gaps.min()  # the batches do not end where windows do
    last = experts_at(history.names, mixed[-1])
    assert last == processor.monitors[0].others[0].experts()  # type: ignore[attr-defined] # of it


def test_reset_and_switched_off() -> None:
    """A model that is reset has an empty history, and without monitors there is none."""
    processor = Processor(BINARY)
    run(processor, stream(100), 50)
    processor.reset_model("default")
    assert processor.histories[0].windowed.count == 0
    silent = Processor(Settings(monitors=False))
    silent.process_batch(Events.of(stream(3)))
    assert not silent.histories


def test_a_model_that_is_reset_counts_anew() -> None:
    """Scores and windows of a model have only the labels since it was reset."""
    processor = Processor(BINARY)
    run(processor, stream(100), 50)
    processor.reset_model("default")
    history = run(processor, stream(120, first=100), 50)
    monitor = processor.monitors[0]
    assert isinstance(monitor, BinaryMonitor)
    assert (monitor.count, monitor.calibrated.count, history.windowed.count) == (120, 120, 120)
    assert [one.labels for one in history.windowed.windows(monitor)] == [40, 40, 40]


def test_the_last_labels_of_a_regression() -> None:
    """The last 60 labels are kept in their order, with their scores and quantiles."""
    history = run(Processor(NUMBERS), stream(150, scale=10.0), 32)
    labels = [one.value for one in stream(150, scale=10.0) if isinstance(one, Label)]
    assert history.last[:, 0].tolist() == labels[-60:]
    assert history.last.shape == (60, 2 + len(NUMBERS.quantiles))


@pytest.mark.parametrize("field", ["evidence", "experts", "windows", "last"])
def test_what_cannot_be_a_history(field: str) -> None:
    """Points out of order, experts without values and broken rows are refused."""
    processor = Processor(BINARY)
    saved = run(processor, stream(300), 50).save()
    if field == "evidence":
        saved.evidence.reverse()
    elif field == "experts":
        saved.experts[0] = saved.experts[0]._replace(values=b"12")
    elif field == "windows":
        saved.windows = (-1, *saved.windows[1:])
    else:
        saved.last = b"12345678"
    empty = ModelHistory(make_task(BINARY))
    with pytest.raises(ValueError, match=r"histor|experts|last labels"):
        empty.load(saved, ["binary", "protection"])


def test_a_snapshot_with_a_spoilt_history_is_refused() -> None:
    """A snapshot with too many histories is inconsistent."""
    processor = Processor(BINARY)
    history = run(processor, stream(100), 50)
    processor.histories.append(history)  # type: ignore[attr-defined] # a list
    with pytest.raises(StateError, match="histories"):
        Processor.restore(processor.snapshot(), BINARY)
