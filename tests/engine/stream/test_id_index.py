"""The native index of ids, which finds the models of labels that carry only the id."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.id_index import AMBIGUOUS, UNKNOWN, WAITS, NaiveIndex

from abers.backends import core
from abers.serialization import seal

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from abers._core import IdIndex

pytestmark = pytest.mark.native

KEY = bytes(range(16))
FOREVER = 1 << 53
SPAN = 320
"""Milliseconds: a part of time has 10."""
MANY = 1 << 30


class Event(NamedTuple):
    """An observation with its model, or a label with its offset."""

    id: str
    time: int
    model: int = 0
    offset: int = -1

    @property
    def is_label(self) -> bool:
        """Whether this is a label."""
        return self.offset >= 0


def index(span: int = SPAN, jump: int = FOREVER, max_ids: int = MANY, key: bytes = KEY) -> IdIndex:
    """Return an empty index."""
    made: IdIndex = core.IdIndex(key, span, jump, max_ids)
    return made


def take(one: IdIndex, events: Sequence[Event]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Return the results of the events, and the labels that go out: row, offset, result."""
    results = np.empty(len(events), np.int64)
    released = one.take(
        [event.id for event in events],
        np.array([event.is_label for event in events], np.uint8),
        np.array([event.model for event in events], np.uint32),
        np.array([event.time for event in events], np.int64),
        np.array([event.offset for event in events], np.int64),
        results,
    )
    return results.tolist(), released


def taken_out(one: IdIndex, events: Sequence[Event]) -> list[int]:
    """Take events, and return the offsets of labels that do not wait, or no longer."""
    results, released = take(one, events)
    pairs = zip(events, results, strict=True)
    now = [event.offset for event, result in pairs if event.is_label and result != WAITS]
    return [*now, *(offset for _, offset, _ in released)]


def events_of(rows: Iterable[tuple[bool, str, int, int]]) -> list[Event]:
    """Return events: whether it is a label, id, time since the one before, model."""
    events, time = [], 0
    for offset, (is_label, id_, step, model) in enumerate(rows):
        time += step
        events.append(Event(id_, time, offset=offset) if is_label else Event(id_, time, model))
    return events


STEPS = st.sampled_from([0, 10, SPAN // 2, SPAN // 2, SPAN - 10, SPAN + 10, -10])
JUMPS = st.sampled_from([FOREVER, FOREVER, 0, 20, 500])


def rows_of(ids: Sequence[str]) -> st.SearchStrategy[list[tuple[bool, str, int, int]]]:
    """Draw rows for `events_of`."""
    row = st.tuples(st.booleans(), st.sampled_from(ids), STEPS, st.integers(0, 2))
    return st.lists(row, min_size=12, max_size=60)  # short lists show little


ROWS = rows_of(["a", "ä", "an id of more than eight bytes"]) | rows_of("abcdef")


def test_a_label_gets_the_model_of_its_observation() -> None:
    """A label of a known id has its model, and one of another id waits."""
    one = index()
    rows = [Event("a", 5, 7), Event("b", 6, 8), Event("b", 9, offset=0), Event("c", 9, offset=1)]
    assert take(one, rows) == ([7, 8, 8, WAITS], [])
    assert (one.ids, one.waits(), one.models()) == (2, [1], [7, 8])


def test_an_early_label_goes_out_after_its_observation() -> None:
    """Labels that wait go out after the observation that they wait for, as they came."""
    one = index()
    early = [Event("b", 1, offset=3), Event("a", 1, offset=4), Event("a", 2, offset=9)]
    assert take(one, early)[0] == [WAITS] * 3
    released = [(1, 4, 6), (1, 9, 6)]
    assert take(one, [Event("c", 3, 5), Event("a", 3, 6)]) == ([5, 6], released)
    assert one.waits() == [3]


def test_an_id_of_two_models_is_ambiguous() -> None:
    """A label of an id that came with two models is ambiguous, and one that came twice is not."""
    one = index()
    rows = [Event("a", 1, 1), Event("a", 1, 2), Event("b", 1, 1), Event("b", 1, 1)]
    labels = [Event("a", 2, offset=0), Event("b", 2, offset=1)]
    assert take(one, [*rows, *labels])[0][4:] == [AMBIGUOUS, 1]


def test_a_label_expires_after_the_span() -> None:
    """A label without its observation goes out when the observations are the span later."""
    one = index()
    assert take(one, [Event("x", 0, 1), Event("a", 0, offset=0)])[0] == [1, WAITS]
    assert take(one, [Event("y", SPAN + 9, 1)])[1] == []
    assert take(one, [Event("z", SPAN + 10, 1)])[1] == [(0, 0, UNKNOWN)]


def test_an_observation_is_found_for_the_span() -> None:
    """A label that is later than its observation by more than the span does not find it."""
    one = index()
    late = [Event("a", SPAN + 9, offset=0), Event("a", SPAN + 10, offset=1)]
    assert take(one, [Event("a", 0, 1), *late])[0] == [1, 1, WAITS]


@given(ROWS, st.sampled_from([0, 1, 31, SPAN]), st.sampled_from([1, 2, 5, 40, MANY]))
def test_equals_the_plain_index(
    rows: list[tuple[bool, str, int, int]], span: int, most: int
) -> None:
    """Results and labels that go out are those of the definition, also with too many ids."""
    one, naive = index(span, max_ids=most), NaiveIndex(span, most)
    for event in events_of(rows):
        results, released = take(one, [event])
        if event.is_label:
            assert (results, released) == ([naive.label(event.id, event.time, event.offset)], [])
        else:
            wanted = naive.observe(event.id, event.model, event.time)
            assert [(offset, result) for _, offset, result in released] == wanted
        assert (one.ids, one.waits()) == (
            len(naive.arrivals),
            [each.offset for each in naive.waits],
        )


@given(ROWS, JUMPS, st.randoms(use_true_random=False))
def test_batches_show_nowhere(
    rows: list[tuple[bool, str, int, int]], jump: int, random: random.Random
) -> None:
    """Events taken in batches, with saves between, have the results of one batch."""
    events = events_of(rows)
    whole = index(jump=jump, max_ids=5)
    wanted, released = take(whole, events)
    one, start = index(jump=jump, max_ids=5), 0
    found: list[int] = []
    out: list[tuple[int, int, int]] = []
    while start < len(events):
        end = random.randint(start + 1, len(events))
        results, some = take(one, events[start:end])
        found += results
        out += [(row + start, offset, result) for row, offset, result in some]
        saved = one.save()
        one = index(jump=jump, max_ids=5)
        one.load(saved)
        assert one.save() == saved
        start = end
    assert (found, out, one.save()) == (wanted, released, whole.save())


@given(ROWS, JUMPS, st.sampled_from([3, 40, MANY]))
def test_the_merge_of_both_inputs_shows_nowhere(
    rows: list[tuple[bool, str, int, int]], jump: int, most: int
) -> None:
    """The state depends on the observations and labels, but not on how they were merged."""
    events = events_of(rows[:40])
    one, gone = index(jump=jump, max_ids=most), set[int]()
    for end, event in enumerate(events, 1):
        out = taken_out(one, [event])
        assert gone.isdisjoint(out)
        gone.update(out)
        for labels_first in (False, True):
            order = sorted(events[:end], key=lambda each: each.is_label is not labels_first)
            other = index(jump=jump, max_ids=most)
            assert sorted(taken_out(other, order)) == sorted(gone)
            assert other.save() == one.save()


def test_no_forgotten_id_comes_back() -> None:
    """An id stays forgotten however far the clock moves on, in steps or at once."""
    for step in (10, 70, 2_570, 25_600, 1 << 40):
        one = index()
        take(one, [Event(f"old {i}", 0, 1) for i in range(500)])
        for turn in range(1, 600):
            take(one, [Event("new", turn * step, 2)])
            if turn * step > 2 * SPAN + 10 and turn % 50 == 0:
                labels = [Event(f"old {i}", 0, offset=500 * turn + i) for i in range(500)]
                assert take(one, labels)[0] == [UNKNOWN] * 500


def test_a_wrong_time_forgets_nothing() -> None:
    """One observation far ahead, and one label, change nothing for the others."""
    one = index(jump=SPAN // 10)
    first = [Event(f"first {i}", i, 1) for i in range(3)]
    wrong = [Event("ahead", 1 << 50, 2), Event("no one", 1 << 50, offset=0)]
    labels = [Event("first 0", 9, offset=1), Event("ahead", 9, offset=2)]
    assert take(one, [*first, *wrong, *labels])[0] == [1, 1, 1, 2, WAITS, 1, 2]


def test_three_observations_move_the_clock_far() -> None:
    """Three ids that agree move the clock, and their early labels go out as they are stamped."""
    one = index(jump=SPAN // 10)
    take(one, [Event(f"first {i}", i, 1) for i in range(3)])
    labels = [Event(f"new {i}", 10**6 + i, offset=i) for i in range(3)]
    take(one, labels)
    out = [take(one, [Event(f"new {i}", 10**6, 2)])[1] for i in range(3)]
    assert out == [[], [], [(0, 0, 2), (0, 1, 2), (0, 2, 2)]]
    later = [Event("first 1", 10**6, offset=9), Event("new 0", 10**6, offset=10)]
    assert take(one, later)[0] == [1, 2]  # nobody knows when the first two ids came
    assert take(one, [Event("first 2", 10**6, offset=11)])[0] == [WAITS]


def test_the_number_of_ids_is_limited() -> None:
    """With more ids than the limit the oldest are forgotten, at most a 32nd of them too early."""
    one, most = index(span=10**6, max_ids=3_200), 3_200
    for start in range(0, 20_000, 500):
        take(one, [Event(str(i), start, 1) for i in range(start, start + 500)])
        assert one.ids <= most
    assert (one.ids >= most - 100, one.evicted) == (True, 20_000 - one.ids)
    newest = [Event(str(i), 20_000, offset=i) for i in range(20_000)][-most + 100 :]
    assert {*take(one, newest)[0]} == {1}


def test_an_id_takes_few_bytes() -> None:
    """An id takes at most 20 bytes, while ids come and while as many are forgotten."""
    one, n = index(), 200_000
    for start in range(0, n, 10_000):
        take(one, [Event(f"id {i}", 0, 3) for i in range(start, start + 10_000)])
    assert sys.getsizeof(one) / n < 20
    for start in range(n, 6 * n, 10_000):
        time = (start - n) * 2 * SPAN // n
        take(one, [Event(f"id {i}", time, 3) for i in range(start, start + 10_000)])
    assert sys.getsizeof(one) / one.ids < 20


def test_a_dropped_label_does_not_go_out() -> None:
    """The wait of a label ends when it is dropped, once or again."""
    one = index()
    take(one, [Event("a", 0, offset=4), Event("a", 0, offset=5)])
    one.drop(4)
    one.drop(4)
    assert take(one, [Event("a", 0, 1)])[1] == [(0, 5, 1)]


def test_hashes_are_the_same_everywhere() -> None:
    """An id is saved by its SipHash-1-3, which Python has too, with a key of zeros."""
    ids = ["", "a", "1234567", "12345678", "an id that has 27 bytes, ä!", "日本"]
    script = "import sys; print(*(hash(one.encode()) for one in sys.argv[1:]))"
    if sys.hash_info.algorithm != "siphash13":
        pytest.skip("this Python hashes in another way")
    ran = subprocess.run(
        [sys.executable, "-c", script, *ids[1:]],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    for id_, hash_ in zip(ids[1:], map(int, ran.stdout.split()), strict=True):
        one = index(key=bytes(16))
        take(one, [Event(id_, 0, 1)])
        assert (hash_ % 2**64).to_bytes(8, "little") in one.save(), id_


def test_damaged_bytes_are_refused() -> None:
    """Each changed byte, each shorter text and another key or span are refused."""
    one = index(jump=SPAN)
    take(one, events_of([(i % 3 == 0, f"{i % 7}", 40, i % 2) for i in range(40)]))
    saved = one.save()
    for at in range(len(saved)):
        for wrong in (saved[:at], saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1 :]):
            with pytest.raises(ValueError, match=r"kind or format|cut short|checksum"):
                index(jump=SPAN).load(wrong)
    for other in (index(jump=SPAN, key=bytes(16)), index(span=5 * SPAN, jump=SPAN)):
        with pytest.raises(ValueError, match="another"):
            other.load(saved)


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8), rows_of("abcdef"))
def test_wrong_content_under_a_right_seal_does_no_harm(
    at: int, wrong: bytes, rows: list[tuple[bool, str, int, int]]
) -> None:
    """Changed content is refused, or takes events and is saved as any other."""
    one = index(jump=SPAN, max_ids=20)
    take(one, events_of([(i % 3 == 0, f"{i % 7}", 40, i % 2) for i in range(40)]))
    saved = one.save()
    magic, payload = saved[:8], saved[8:-16]
    at %= len(payload)
    payload = payload[:at] + wrong + payload[at + len(wrong) :]
    other = index(jump=SPAN, max_ids=20)
    try:
        other.load(seal(magic, payload))
    except ValueError:
        return
    last = int.from_bytes(payload[24:32], "little", signed=True)
    events = [
        one._replace(offset=last + 1 + one.offset) if one.is_label else one
        for one in events_of(rows)
        if last < FOREVER
    ]
    take(other, events)
    again = index(jump=SPAN, max_ids=20)
    again.load(other.save())
    assert again.save() == other.save()


def test_events_that_cannot_be_taken_change_nothing() -> None:
    """Times out of range, offsets that do not ascend and ids without UTF-8 are refused."""
    one = index()
    take(one, [Event("a", 0, offset=4)])
    before = one.save()
    for wrong, why in (
        (Event("a", FOREVER + 1, 1), "a time is out of range"),
        (Event("a", 0, offset=4), "the offsets of labels must ascend"),
        (Event("a", 0, 0xFFFFFE), "too many models"),
        (Event("\ud800", 0, 1), "surrogates not allowed"),
    ):
        with pytest.raises(ValueError, match=why):
            take(one, [Event("b", 0, 1), wrong])
        assert one.save() == before
    numbers, flags = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="columns differ"):
        one.take([], flags, np.zeros(1, np.uint32), numbers, numbers, numbers.copy())
