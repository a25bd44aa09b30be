"""The contract of a source, as checks of any source that has bad records or none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from abers_connectors.sources.base import Batch, Source

Check: TypeAlias = "Callable[[Source], None]"


def contents(batches: list[Batch]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Return the events of batches, and the bad records with the number of events before them."""
    events: list[Any] = []
    bad = []
    for batch in batches:
        bad += [(len(events) + one.row, one[1:]) for one in batch.bad]
        events += batch.events
    return events, bad


def check_resumes(source: Source) -> None:
    """Require that a source continues from any position as if it had not stopped."""
    batches = list(source.batches())
    events, bad = contents(batches)
    assert len(batches) > 1
    for number, batch in enumerate(batches, start=1):
        before, bad_before = contents(batches[:number])
        position = json.loads(json.dumps(batch.position))
        after, bad_after = contents(list(source.batches(position)))
        assert before + after == events
        assert [one for _, one in bad_before + bad_after] == [one for _, one in bad]


def check_interruptions(source: Source) -> None:
    """Require the same of a source that is stopped after every batch."""
    whole, bad = contents(list(source.batches()))
    pieces = []
    position = None
    while (batch := next(source.batches(position), None)) is not None:
        pieces.append(batch)
        position = batch.position
    again, bad_again = contents(pieces)
    assert again == whole
    assert [one for _, one in bad_again] == [one for _, one in bad]


def check_origins(source: Source) -> None:
    """Require the id in the origin of an event, and a reason and an origin of bad records."""
    for batch in source.batches():
        for row in {0, len(batch.events) // 2, len(batch.events) - 1} if batch.events else ():
            assert batch.events[row].id in " ".join(batch.origin(row))
        rows = [one.row for one in batch.bad]
        assert rows == sorted(rows)
        for one in batch.bad:
            assert 0 <= one.row <= len(batch.events)
            assert one.reason
            assert one.detail
            assert one.origin.where
            assert one.origin.raw


def check_fraction(source: Source) -> None:
    """Require a share that is unknown, or grows beyond a half."""
    shares = [source.fraction() for _ in source.batches()]
    known = [share for share in shares if share is not None]
    assert known == sorted(known)
    assert all(0 <= share <= 1 for share in known)
    assert not known or known[-1] > 0.5


def check_sizes(source: Source) -> None:
    """Require batches that let a run report its progress."""
    assert max(len(batch.events) for batch in source.batches()) < 17_000


def check_closes(source: Source) -> None:
    """Require that an iterator can be closed early, also twice, and the source read again."""
    reading = cast("Generator[Batch]", source.batches())
    first = next(reading)
    reading.close()
    reading.close()
    assert contents([next(source.batches())]) == contents([first])


CHECKS: tuple[Check, ...] = (
    check_resumes,
    check_interruptions,
    check_origins,
    check_fraction,
    check_sizes,
    check_closes,
)


def check_source(source: Source) -> None:
    """Check the whole contract."""
    for check in CHECKS:
        check(source)
