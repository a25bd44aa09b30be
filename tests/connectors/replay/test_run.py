"""A run: every record is accounted for, in order, and outputs and state agree."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.connectors.sources.memory import MemorySource

from abers import RecordError
from abers.exceptions import DeadLettersError
from abers.stream import Events, Label, Observation, Prediction, Processor, Settings
from abers.stream.outputs import DeadLetterRecord
from abers_connectors.replay.run import DeadLetterLimit, Run
from abers_connectors.replay.state_file import StateFile
from abers_connectors.sinks.base import MemorySink
from abers_connectors.sources.base import BadRecord, Batch, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from abers.stream import Event
    from abers_connectors.sources.base import Position

BAD = "bad"


class Records:
    """A source of events and of bad records."""

    name = "records"

    def __init__(self, records: Sequence[Event | str], size: int = 5000) -> None:
        self._records, self._size = records, size

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Return the records after a position."""
        start = position["records"] if position else 0
        for first in range(start, len(self._records), self._size):
            part = self._records[first : first + self._size]
            numbers = range(first + 1, first + 1 + len(part))
            events = [one for one in part if not isinstance(one, str)]
            places = [n for n, one in zip(numbers, part, strict=True) if not isinstance(one, str)]
            bad = [
                BadRecord(
                    sum(place < n for place in places), BAD, "it is bad", Origin(f"line {n}", one)
                )
                for n, one in zip(numbers, part, strict=True)
                if isinstance(one, str)
            ]
            yield Batch(
                Events.of(events),
                bad,
                {"records": first + len(part)},
                len(part),
                partial(self._origin, places),
            )

    def _origin(self, places: Sequence[int], row: int) -> Origin:
        return Origin(f"line {places[row]}", "an event")

    def fraction(self) -> None:
        """Return None: the size is unknown."""


def sinks() -> dict[str, MemorySink]:
    """Return a sink for each output."""
    return {name: MemorySink() for name in ("predictions", "outcomes", "dead_letters")}


def ran(
    records: Sequence[Event | str],
    size: int = 5000,
    **options: Any,  # noqa: ANN401 - those of `Run`
) -> tuple[Run, dict[str, list[Any]]]:
    """Run some records to the end."""
    written = sinks()
    processor = Processor(Settings(label_timeout=10, max_jump=2**53))
    with Run(Records(records, size), processor, written, **options) as run:
        counts = list(run.run())
    assert counts == sorted(counts)
    return run, {name: [*sink.rows] for name, sink in written.items()}


EVENTS = st.builds(
    Observation, st.sampled_from(["", "a", "b", "c"]), st.integers(0, 50), score=st.just(0.5)
) | st.builds(
    Label, st.sampled_from(["", "a", "b", "c"]), st.integers(0, 50), value=st.integers(0, 2)
)
RECORDS = st.lists(EVENTS | st.just("no record"), max_size=25)
WAITED: list[Event | str] = [
    Label("a", 0, value=1),
    Label("b", 30, value=1),
    "no record",
    Label("", 30, value=1),
]


@example(WAITED, 2)
@given(RECORDS, st.integers(1, 6))
def test_every_record_is_accounted_for(records: list[Event | str], size: int) -> None:
    """Records = predictions + labels learned + dead letters + ignored + labels still waiting."""
    run, written = ran(records, size)
    counters = run.processor.counters
    ignored = sum(
        counters[name] for name in ("duplicate_observations", "duplicate_labels", "late_labels")
    )
    dead, waiting = run.dead.total(), run.processor.waiting[1]
    assert run.records == len(records)
    assert run.records == (
        len(written["predictions"]) + len(written["outcomes"]) + dead + ignored + waiting
    )
    assert counters["labels"] == len(written["outcomes"])
    assert len(written["dead_letters"]) == dead


@example(WAITED, 3)
@given(RECORDS, st.integers(1, 6))
def test_batches_make_no_difference(records: list[Event | str], size: int) -> None:
    """However the records are batched, every output has the same rows in the same order."""
    assert ran(records, size)[1] == ran(records)[1]


def test_dead_letters_stand_in_the_order_of_the_records() -> None:
    """Dead letters of source and processor have their origins, in the order of the records."""
    records: list[Event | str] = [
        Label("unknown", 0, value=1),
        Observation("", 1, score=0.5),
        "no record",
        Observation("a", 20, score=0.5),
        Label("b", 21, value=7),
        "neither",
    ]
    run, written = ran(records)
    assert [(one.reason, one.where) for one in written["dead_letters"]] == [
        ("bad-id", "line 2"),
        ("bad", "line 3"),
        ("unknown-id", "unmatched label (timed out)"),
        ("bad-label", "line 5"),
        ("bad", "line 6"),
    ]
    assert '"id":"unknown"' in written["dead_letters"][2].raw
    assert run.dead == {"bad": 2, "bad-id": 1, "unknown-id": 1, "bad-label": 1}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["no record", Observation("", 1, score=0.5)], "line 1: it is bad"),
        ([Observation("a", 0, score=0.5), Observation("", 1, score=0.5), "no"], "line 2: id ''"),
        ([Label("b", 0, value=1), Observation("a", 99, score=0.5)], r"\(timed out\): no obs"),
    ],
)
def test_the_first_bad_record_stops(records: list[Event | str], message: str) -> None:
    """A run can stop at the first bad record, and names its place."""
    with pytest.raises(RecordError, match=message):
        ran(records, limit=DeadLetterLimit(stop=True))


def good(count: int) -> list[Event | str]:
    """Return observations."""
    return [Observation(str(n), n, score=0.5) for n in range(count)]


def test_too_many_dead_letters() -> None:
    """From 1,000 records on a larger ratio stops the run, with reasons and a remedy."""
    records = ["no record"] * 101 + good(898) + [Observation("", 0, score=0.5)]
    message = r"102 of 1,000 records are dead letters \(101 bad, 1 bad-id\).* = 0.101 allows; look"
    with pytest.raises(DeadLettersError, match=message):
        ran(records, limit=DeadLetterLimit(ratio=0.101))
    ran(records, limit=DeadLetterLimit(ratio=0.102))
    ran(records[:999], limit=DeadLetterLimit(ratio=0.101))


def test_nothing_but_dead_letters() -> None:
    """A run that predicts nothing for dead letters fails, unless all may be dead letters."""
    records: list[Event | str] = ["no record", Observation("", 0, score=0.5)]
    message = r"2 of 2 records are dead letters \(1 bad, 1 bad-id\), and nothing was predicted;"
    with pytest.raises(DeadLettersError, match=message):
        ran(records, limit=DeadLetterLimit(ratio=0.99))
    ran(records, limit=DeadLetterLimit(ratio=1.0))
    ran([*records, *good(1)], limit=DeadLetterLimit(ratio=0.1))


class Watched(MemorySink):
    """A sink that records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = ""
        self.commits: list[int] = []

    def commit(self) -> Position:
        """Record the number of rows."""
        self.commits.append(len(self.rows))
        return super().commit()

    def close(self) -> None:
        """Record the call."""
        self.ended = "closed"

    def discard(self) -> None:
        """Record the call."""
        self.ended = "discarded"


@pytest.mark.parametrize(
    ("error", "predictions", "dead"),
    [
        (None, "closed", "closed"),
        (KeyboardInterrupt, "discarded", "discarded"),
        (DeadLettersError, "discarded", "closed"),
    ],
)
def test_how_sinks_end(error: type[BaseException] | None, predictions: str, dead: str) -> None:
    """Sinks are closed, or discarded after an error; too many dead letters are kept."""
    written = {"predictions": Watched(), "dead_letters": Watched()}
    run = Run(MemorySource([]), Processor(), written)
    with nullcontext() if error is None else pytest.raises(error), run:
        if error is not None:
            raise error
    assert [one.ended for one in written.values()] == [predictions, dead]


def test_nothing_is_held_back_where_somebody_reads() -> None:
    """A live sink is committed after each batch and each paced part."""
    live, file = Watched(), Watched()
    written = {"predictions": live, "dead_letters": file}
    run = Run(
        Records(good(5), 3),
        Processor(),
        written,
        live=["predictions"],
        pace=lambda e: [e[:2], e[2:]],
    )
    seen = [(count, len(live.rows)) for count in run.run()]
    assert seen == [(3, 3), (5, 5)]
    assert sorted({*live.commits}) == [2, 3, 5]
    assert file.commits == []


def test_a_pace_changes_no_output() -> None:
    """Processed in small parts, a batch gives the same rows, and origins stay right."""
    records: list[Event | str] = [*good(3), Observation("", 9, score=0.5), "no record"]
    records += [*good(2), Label("1", 9, value=1)]

    def one_by_one(events: Events) -> Iterator[Events]:
        for row in range(len(events)):
            yield events[row : row + 1]

    _, slow = ran(records, pace=one_by_one)
    assert slow == ran(records)[1]
    assert [one.where for one in slow["dead_letters"]] == ["line 4", "line 5"]


def test_an_output_that_nobody_wants() -> None:
    """Without a sink for outcomes or dead letters they are counted and not written."""
    predictions = MemorySink()
    records: list[Event | str] = [*good(1), "no record", Label("0", 5, value=1)]
    run = Run(Records(records), Processor(), {"predictions": predictions})
    assert list(run.run()) == [3]
    assert [type(one) for one in predictions.rows] == [Prediction]
    assert run.dead == {"bad": 1}


@given(RECORDS, st.integers(1, 4), st.integers(1, 9), st.integers(0, 12))
def test_a_run_goes_on_where_a_state_was_saved(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[Event | str],
    size: int,
    every: int,
    stop: int,
) -> None:
    """A run that was killed after any batch and restarted writes the same outputs."""
    folder = tmp_path_factory.mktemp("state")
    file = StateFile(str(folder / "abers.state"), {})
    settings = Settings(label_timeout=10, max_jump=2**53)
    whole, written = ran(records, size, state=StateFile(str(folder / "whole.state"), {}))

    first = sinks()
    run = Run(Records(records, size), Processor(settings), first, state=file, every=every)
    for number, _ in enumerate(run.run()):
        if number == stop:
            break
    processor = file.load(settings, outcomes=True)
    ends = (processor.position or {}).get("sinks", {})
    second = {name: MemorySink(ends.get(name), sink.rows) for name, sink in first.items()}
    run = Run(Records(records, size), processor, second, state=file, every=every)
    for _ in run.run():
        pass
    assert {name: sink.rows for name, sink in second.items()} == written
    assert run.processor.state_bytes() == whole.processor.state_bytes()
    assert file.load(settings, outcomes=True).state_bytes() == whole.processor.state_bytes()


def test_states_are_saved_every_so_often_and_at_the_end(tmp_path: Path) -> None:
    """The state is saved every so many records, and at the end."""
    file = StateFile(str(tmp_path / "abers.state"), {})
    run = Run(Records(good(25), 4), Processor(), {"predictions": MemorySink()}, state=file, every=8)
    saved = []
    for count in run.run():
        position = file.load(Settings(), outcomes=True).position
        saved.append((count, position and position["source"]["records"]))
    assert saved == [(4, None), (8, 8), (12, 8), (16, 16), (20, 16), (24, 24), (25, 24)]
    position = file.load(Settings(), outcomes=True).position
    assert position["source"] == {"records": 25}
    assert position["sinks"] == {"predictions": {"rows": 25}}


def test_the_state_is_saved_after_the_outputs(tmp_path: Path) -> None:
    """If an output cannot be made durable, the old state stays."""

    class Full(MemorySink):
        def commit(self) -> Position:
            raise OSError(28, "No space left on device")

    path = tmp_path / "abers.state"
    run = Run(
        Records(good(3)), Processor(), {"predictions": Full()}, state=StateFile(str(path), {})
    )
    with pytest.raises(OSError, match="No space"):
        list(run.run())
    assert not path.exists()


def test_rows_of_dead_letters_have_the_fields_of_the_wire() -> None:
    """A dead letter has reason, detail, location and text."""
    _, written = ran(["no record"])
    assert written["dead_letters"] == [
        DeadLetterRecord("bad", "it is bad", "line 1", raw="no record")
    ]


def test_a_sink_that_cannot_be_closed() -> None:
    """A sink that fails to close is discarded, and so are those that are still open."""

    class Full(Watched):
        def close(self) -> None:
            raise OSError(28, "No space left on device")

    written = {"predictions": Watched(), "outcomes": Full(), "dead_letters": Watched()}
    with pytest.raises(OSError, match="No space"), Run(MemorySource([]), Processor(), written):
        pass
    assert [one.ended for one in written.values()] == ["closed", "discarded", "discarded"]


def test_an_unexpected_error_names_the_records() -> None:
    """Its traceback says between which records it came, or after how many were read."""
    settings = Settings(calibrator="tests.connectors.replay.failing:FailingCalibrator")
    events: list[Event | str] = [Observation(f"{n}", n, "m", 0.5) for n in range(10)]
    with pytest.raises(ZeroDivisionError) as found:
        [*Run(Records(events, 4), Processor(settings), {}).run()]
    assert found.value.__notes__ == ["abers failed between line 1 and line 4"]

    class Broken(Records):
        def batches(self, position: Position | None = None) -> Iterator[Batch]:
            yield next(super().batches(position))
            raise KeyError

    with pytest.raises(KeyError) as broken:
        [*Run(Broken(events, 4), Processor(), {}).run()]
    assert broken.value.__notes__ == ["abers failed on records, 4 records after it began"]
