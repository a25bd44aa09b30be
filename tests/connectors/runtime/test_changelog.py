"""Encoded changelog records, damaged ones and those of released formats."""

from __future__ import annotations

import json
import random
import resource
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka import released
from tests.engine.damage import damaged
from tests.engine.stream.damage import require_unchanged_or_broken

from abers import ParameterError, StateError
from abers.serialization import seal
from abers.stream import Events, JournalEntry, Observation, Processor
from abers.stream.join import LATER_COUNTERS
from abers_connectors.runtime import task as changelog
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.task import MAGIC, Assembler, ChangelogRecord, StreamTask, encode

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = released.batches()
AROUND = len(encode(BATCHES[0])[0]) - len(msgspec.msgpack.encode(BATCHES[0]))
BYTES = st.binary(max_size=40)
ENTRIES = st.builds(
    JournalEntry,
    **dict.fromkeys(("settings", "labels", "times", "models", "keys", "scores"), BYTES),
    **dict.fromkeys(("values", "predictions", "n_labels", "extra"), BYTES),
    rejected=st.lists(st.tuples(st.integers(0, 9), st.text(max_size=4)), max_size=3),
    ids=st.lists(st.text(max_size=9), max_size=5),
    new_models=st.lists(st.text(max_size=4), max_size=3),
    new_keys=st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=3),
    features=st.none()
    | st.lists(st.dictionaries(st.text(max_size=3), st.floats() | st.text(max_size=3)), max_size=2),
    counters=st.lists(st.integers(0, 2**62), max_size=30),
    retired=st.lists(st.integers(0, 2**40), max_size=3),
)


@st.composite
def lives(draw: st.DrawFn) -> list[ChangelogRecord]:
    """Draw consistent records of consecutive transactions."""
    first, made = draw(st.integers(0, 2**40)), []
    for number in range(first, first + draw(st.integers(1, 4))):
        entry = draw(st.none() | ENTRIES)
        kept = 0 if entry is None else len(entry.labels)
        lost = draw(st.lists(st.text(max_size=5), max_size=3))
        rows = sorted(draw(st.permutations(range(kept + len(lost))))[: len(lost)])
        inputs = draw(st.binary(min_size=kept + len(lost), max_size=kept + len(lost)))
        made.append(
            ChangelogRecord(
                draw(st.text(max_size=9)),
                number,
                (draw(st.integers(0, 2**60)), draw(st.integers(-1, 2**60))),
                bytes(one % 2 for one in inputs),
                draw(st.binary(min_size=8 * len(inputs), max_size=8 * len(inputs))),
                list(zip(rows, lost, strict=True)),
                entry,
            )
        )
    return made


def read(records: list[bytes], number: int | None = None) -> list[ChangelogRecord]:
    """Decode a changelog."""
    assembler = Assembler(number)
    return [one for one in map(assembler.add, records) if one is not None]


@given(lives(), st.integers(AROUND + 1, AROUND + 300))
def test_what_is_written_is_read(made: list[ChangelogRecord], limit: int) -> None:
    """Every record is decoded as it was encoded, from values no larger than the limit."""
    records = [record for one in made for record in encode(one, limit)]
    assert max(map(len, records)) <= limit
    for number in (None, made[0].number):
        found = read(records, number)
        # NaN is not equal to itself; its bytes are.
        assert list(map(msgspec.msgpack.encode, found)) == list(map(msgspec.msgpack.encode, made))


def test_one_part_if_it_fits() -> None:
    """A batch is one part as long as it fits, to the byte, and two beyond."""
    whole = len(encode(BATCHES[0])[0])
    assert [len(encode(BATCHES[0], whole - cut)) for cut in (-1, 0, 1)] == [1, 1, 2]


def test_a_large_batch_is_below_the_limit_of_clients() -> None:
    """A batch of more than a mebibyte is encoded in parts of half of one."""
    events = [Observation(f"{i:0256x}", i, score=0.5) for i in range(4_000)]
    _, entry = Processor().process_logged(Events.of(events))
    applied = ChangelogRecord("1", 7, (4_000, -1), bytes(4_000), bytes(32_000), [], entry)
    records = encode(applied)
    assert len(records) == 3
    assert max(map(len, records)) == 512 * 1024
    assert read(records) == [applied]


def test_a_limit_that_is_too_small() -> None:
    """A limit that leaves no byte for content is an error."""
    with pytest.raises(ParameterError, match="is too small"):
        encode(BATCHES[0], AROUND)


# Gaps


def parts(*limits: int) -> list[list[bytes]]:
    """Encode some batches, each in parts of so many bytes of content."""
    return [encode(one, AROUND + n) for one, n in zip(BATCHES, limits, strict=False)]


@pytest.mark.parametrize(
    ("order", "came", "due"),
    [
        ([(0, 0), (0, 1), (0, 2), (2, 0)], "1 of 1 of batch 2", "part 1 of batch 1"),
        ([(0, 0), (0, 2)], "3 of 3 of batch 0", "part 2 of batch 0"),
        ([(0, 1)], "2 of 3 of batch 0", "part 1 of batch any"),
        ([(0, 0), (0, 0)], "1 of 3 of batch 0", "part 2 of batch 0"),
        ([(0, 0), (1, 0)], "1 of 2 of batch 1", "part 2 of batch 0"),
        ([(1, 0), (1, 1), (1, 0)], "1 of 2 of batch 1", "part 1 of batch 2"),
        ([(0, 0), (3, 1)], "2 of 9 of batch 0", "part 2 of batch 0"),
    ],
)
def test_gaps(order: list[tuple[int, int]], came: str, due: str) -> None:
    """A record that does not come next is an error that names it and the expected one."""
    whole = len(msgspec.msgpack.encode(BATCHES[0]))
    made = parts(-(-whole // 3), 4_000, 9_000)
    made[1] = encode(BATCHES[1], AROUND + len(msgspec.msgpack.encode(BATCHES[1])) - 1)
    made.append(encode(BATCHES[0], AROUND + -(-whole // 9)))
    records = [made[batch][part] for batch, part in order]
    assert read(records[:-1]) is not None
    with pytest.raises(StateError, match=f"part {came} came instead of {due}"):
        read(records)


def test_another_beginning() -> None:
    """A changelog that begins after the expected batch is an error."""
    with pytest.raises(
        StateError, match="part 1 of 1 of batch 1 came instead of part 1 of batch 0"
    ):
        read(encode(BATCHES[1]), 0)
    assert read(encode(BATCHES[1]), 1) == [BATCHES[1]]


# Damage

RECORDS = [record for one in BATCHES[:3] for record in encode(one, 2_000)]


@given(st.data())
def test_flipped_bits_and_cut_ends(data: st.DataObject) -> None:
    """Every changed, missing or added byte is detected."""
    which = data.draw(st.integers(0, len(RECORDS) - 1))
    record = RECORDS[which]
    at = data.draw(st.integers(0, len(record) - 1))
    flipped = bytes([record[at] ^ data.draw(st.integers(1, 255))])
    kind = data.draw(st.sampled_from(("flip", "cut", "add")))
    damaged = {
        "flip": record[:at] + flipped + record[at + 1 :],
        "cut": record[:at],
        "add": record + data.draw(st.binary(min_size=1, max_size=9)),
    }[kind]
    with pytest.raises(StateError):
        read([*RECORDS[:which], damaged])


@given(st.binary(max_size=300))
def test_garbage(value: bytes) -> None:
    """Bytes that are not a record are an error."""
    with pytest.raises(StateError, match=r"not a record of a changelog|format|checksum|no key"):
        read([value])
    with pytest.raises(StateError):
        read([MAGIC + value])


@given(
    st.binary(max_size=40)
    | st.builds(
        lambda head, claim, rest: head + claim.to_bytes(4, "big") + rest,
        st.sampled_from([b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\x97\xa0\x00\x92\x00\x00\xc6"]),
        st.integers(2**20, 2**32 - 1),
        st.binary(max_size=9),
    ),
    st.integers(0, 3),
    st.integers(0, 2**32 - 1),
)
def test_sealed_nonsense(content: bytes, k: int, m: int) -> None:
    """Nonsense with a good seal is an error or an incomplete record, and takes no memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for value in (content, changelog._PART_HEADER.pack(0, k, m) + content):
        try:
            assert Assembler().add(seal(MAGIC, value)) is None
        except StateError as error:
            assert "changelog" in str(error)  # noqa: PT017 - it may also wait
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 5},
        {"next_offsets": (-2, 0)},
        {"next_offsets": (0, 2**63)},
        {"inputs": b"\2" + BATCHES[0].inputs[1:]},
        {"inputs": BATCHES[0].inputs[1:]},
        {"offsets": BATCHES[0].offsets[1:]},
        {"dead": []},
        {"dead": [(3, "tombstone"), (3, "tombstone")]},
        {"dead": [(-1, "tombstone")]},
        {"dead": [(len(BATCHES[0].inputs), "tombstone")]},
        {"entry": None},
    ],
    ids=str,
)
def test_inconsistent_columns(wrong: dict[str, Any]) -> None:
    """Columns that do not fit together are an error, though the seal is good."""
    payload = msgspec.msgpack.encode(msgspec.structs.replace(BATCHES[0], **wrong))
    with pytest.raises(StateError, match="batch 0 of the changelog is damaged"):
        read([seal(MAGIC, changelog._PART_HEADER.pack(0, 0, 1) + payload)])


@pytest.mark.parametrize("times", [200, pytest.param(20_000, marks=pytest.mark.long)])
def test_damaged_content(times: int) -> None:
    """Wrong content with a right checksum is an error when it is decoded, or when it is applied."""
    refused = 0
    for number in range(times):
        rng = random.Random(number)  # noqa: S311 - no secret
        plain = damaged(msgspec.msgpack.decode(msgspec.msgpack.encode(BATCHES[0])), rng)
        record = changelog._PART_HEADER.pack(0, 0, 1) + msgspec.msgpack.encode(plain)
        task = StreamTask(Processor(released.SETTINGS), Checkpoint("app", 0, 0, 0, (0, 0)))
        before = task.processor.state_bytes()
        try:
            (applied,) = read([seal(MAGIC, record)])
            task.apply(applied)
        except StateError:
            require_unchanged_or_broken(task.processor, before)
            refused += 1
    assert 0 < refused < times


def test_a_part_of_none() -> None:
    """Part 1 of 0 is an error, though its content is complete."""
    record = changelog._PART_HEADER.pack(0, 0, 0) + msgspec.msgpack.encode(BATCHES[0])
    with pytest.raises(StateError, match="part 1 of 0"):
        read([seal(MAGIC, record)])


def test_unknown_format() -> None:
    """A record of another format is an error that names both versions and the remedy."""
    record = MAGIC[:-1] + b"\3" + RECORDS[0][len(MAGIC) :]
    with pytest.raises(StateError, match=r"format \[3\].*reads format 1.*version of abers"):
        read([record])


# Formats that were released


@pytest.mark.parametrize("path", sorted(released.FOLDER.glob("*.bin")), ids=lambda path: path.name)
def test_golden(path: Path) -> None:
    """A changelog of every released format leads to the state of the release."""
    expected = json.loads(path.with_suffix(".json").read_text())
    found = released.lived(released.frames(path.read_bytes()))
    expected["counters"] |= dict.fromkeys(LATER_COUNTERS, 0)  # newer than the file
    if path != released.present():  # other formats may write the state otherwise
        found["state"] = expected["state"]
    assert found == expected


def test_golden_is_what_is_written() -> None:
    """The present format is encoded as it was when it was released."""
    records = [record for one in BATCHES for record in encode(one, released.LIMIT)]
    assert list(released.frames(released.present().read_bytes())) == records
