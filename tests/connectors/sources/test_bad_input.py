"""Bad input through a whole run: it affects no other record, and is reported with its location.

Each record is a prediction, a learned label, a dead letter, or counted as ignored or pending;
none is lost, none counts twice, and none ends the run.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abers import RecordError
from abers_connectors.config.model import load
from abers_connectors.replay.job import job_of_config
from abers_connectors.replay.summary import Summary, summarize_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

NOW = 1_700_000_000_000
LIMITS: dict[str, object] = {"limits.max_models": 1, "input.max_record_bytes": 500}


def run(folder: Path, content: bytes, flags: Mapping[str, object]) -> Summary:
    """Run a file, and return what was found."""
    (folder / "in.jsonl").write_bytes(content)
    given = {
        "input.observations": str(folder / "in.jsonl"),
        "output.predictions": str(folder / "out.jsonl"),
        "output.max_dead_letter_ratio": 1.0,
        **flags,
    }
    with job_of_config(load(flags=given, environ={})).start() as running:
        for _ in running.run():
            pass
    return summarize_run(running, 0, 0.0)


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; none if there is no such file."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def observation(id_: object, **others: object) -> bytes:
    """Return the line of an observation."""
    return json.dumps({"id": id_, "time": NOW, "model": "m", "score": 0.5} | others).encode()


def label(id_: object, **others: object) -> bytes:
    """Return the line of a label."""
    return json.dumps({"id": id_, "time": NOW, "model": "m", "label": 1} | others).encode()


BAD = [
    (b'{"id": "x"', "bad-json", "write one JSON object a line"),
    (b"[1, 2]", "bad-record", "write one JSON object a line"),
    (b"NaN", "bad-json", "JSON has no NaN"),
    (b'{"time": 1, "score": 0.5}', "missing-field", 'has no "id"'),
    (b'{"id": "x", "score": 0.5}', "missing-field", 'has no "time"'),
    (b'{"id": "x", "time": 1}', "missing-field", 'no "score" and no "label"'),
    (observation("x", score="high"), "bad-score", "'high' is not a finite number"),
    (observation("x", score=[1]), "bad-score", "is not a finite number"),
    (observation("x", score=True), "bad-score", "is not a finite number"),
    (observation(1.5), "bad-id", "write a string or a whole number"),
    (observation("x", model={"a": 1}), "bad-model", "write a string or a whole number"),
    (observation("x", time="noon"), "bad-time", "RFC 3339 such as 2026-01-31T12:00:00Z"),
    (observation("x", time=1_700_000_000), "bad-time", "seems to be in seconds"),
    (observation("x", time=NOW * 1000), "bad-time", "seems to be in micro- or nanoseconds"),
    (observation("x", model="one-more"), "too-many-models", "raise limits.max_models"),
    (label("x", model="one-more"), "too-many-models", "raise limits.max_models"),
    (observation("x" * 257), "too-long", "takes 257 bytes, and limits.max_id_bytes = 256"),
    (label("x" * 258), "too-long", "takes 258 bytes, and limits.max_id_bytes = 256"),
    (observation("x", model="m" * 257), "too-long", "raise limits.max_name_bytes"),
    (label("x", label="cat"), "bad-label", "'cat' is not a label; write 0 or 1"),
    (label("x", label=0.25), "bad-label", "is not a label"),
    (observation("x", more="y" * 1000), "too-large", "input.max_record_bytes = 500"),
    (observation("x")[:-1] + b', "more": "\xff"}', "not-utf8", "0xff"),
    (b"\x00\x00\x00\x01\x07" + observation("x"), "schema-registry", "schema 263"),
]


@pytest.mark.parametrize(("line", "reason", "detail"), BAD)
def test_a_bad_record_is_a_dead_letter(
    tmp_path: Path, line: bytes, reason: str, detail: str
) -> None:
    """A bad record has a reason, a message, a location and its text; the others are unaffected."""
    around = [observation("a"), label("a"), observation("b"), label("b", label=0)]
    flags = LIMITS | {"output.outcomes": str(tmp_path / "met.jsonl")}
    summary = run(tmp_path, b"\n".join([*around[:2], line, *around[2:]]), flags)
    assert summary.dead_letters == {reason: 1}
    (dead_letter,) = rows(tmp_path / "out.jsonl.dead.jsonl")
    assert list(dead_letter) == ["v", "reason", "detail", "where", "raw"]
    assert dead_letter["reason"] == reason
    assert detail in dead_letter["detail"]
    assert dead_letter["where"] == f"{tmp_path}/in.jsonl line 3"
    shown = line.decode("utf-8", "backslashreplace")
    assert dead_letter["raw"] == shown or (
        reason == "too-large" and dead_letter["raw"].startswith(shown[:9])
    )
    with_bad = [(tmp_path / name).read_bytes() for name in ("out.jsonl", "met.jsonl")]
    run(tmp_path, b"\n".join(around), flags)
    assert [(tmp_path / name).read_bytes() for name in ("out.jsonl", "met.jsonl")] == with_bad


@pytest.mark.parametrize(("line", "reason", "detail"), BAD)
def test_a_bad_record_is_a_clear_stop(
    tmp_path: Path, line: bytes, reason: str, detail: str
) -> None:
    """With "stop", the error has location and message, and no file is left."""
    del reason
    content = b"\n".join([observation("a"), line, observation("b")])
    with pytest.raises(RecordError, match=r"in\.jsonl line 2: ") as error:
        run(tmp_path, content, LIMITS | {"output.on_bad_record": "stop"})
    assert detail in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_label_of_an_id_that_never_comes(tmp_path: Path) -> None:
    """An unmatched label is a dead letter that shows the label, as its record is no longer kept."""
    later = [observation(id_, time=NOW + 100 * (i + 1)) for i, id_ in enumerate("abc")]
    lines = [label("lost"), *later]
    run(tmp_path, b"\n".join(lines), {"limits.label_timeout": "50ms", "limits.max_jump": "1s"})
    (dead_letter,) = rows(tmp_path / "out.jsonl.dead.jsonl")
    assert (dead_letter["reason"], dead_letter["where"]) == (
        "unknown-id",
        "unmatched label (timed out)",
    )
    assert msgspec.json.decode(dead_letter["raw"])["id"] == "lost"


@pytest.mark.parametrize("reaction", ["dead-letter", "stop"])
def test_a_cut_file_is_a_clear_stop(tmp_path: Path, invoke: Invoke, reaction: str) -> None:
    """A truncated gzip file ends the run, as records may be missing; no file is left."""
    packed = gzip.compress(b"\n".join(observation(f"a{n}") for n in range(9000)))
    (tmp_path / "in.jsonl.gz").write_bytes(packed[:-1000])
    config = f'[input]\nobservations = "in.jsonl.gz"\n[output]\non_bad_record = "{reaction}"\n'
    (tmp_path / "abers.toml").write_text(config + 'predictions = "out.jsonl"\n')
    ran = invoke("run", "abers.toml")
    assert ran.code == 1
    assert "error: in.jsonl.gz after line " in ran.err
    assert "the compressed data is cut off or damaged" in ran.err
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl.gz", "abers.toml"}


IDS = st.sampled_from(["a", "b", "c"])
TIMES = st.sampled_from([NOW, NOW + 40, NOW + 100])
LINES = (
    st.builds(lambda id_, time: observation(id_, time=time), IDS, TIMES)
    | st.builds(lambda id_, time, value: label(id_, time=time, label=value), IDS, TIMES, IDS)
    | st.builds(lambda id_, time: label(id_, time=time), IDS, TIMES)
    | st.sampled_from([line for line, _, _ in BAD])
    | st.binary(max_size=20)
)


# The first line makes it a file of text: what is none ends the run; see files/test_text.py.
FIRST = observation("first") + b"\n"


@example(FIRST + b'{"id":"\\ud800","time":0,"score":0.5}', "dead-letter")
@example(b"\xef\xbb\xbf\r\n \n{}", "dead-letter")
@pytest.mark.filterwarnings("ignore:.* after a row of ")
@example(b"", "dead-letter")
@given(
    st.builds(
        b"%b%b%b".__mod__,
        st.tuples(
            st.sampled_from([b"", b"\n", b"\xef\xbb\xbf"]),
            st.just(FIRST),
            st.binary(max_size=300) | st.lists(LINES, max_size=20).map(b"\n".join),
        ),
    ),
    st.sampled_from(["dead-letter", "stop"]),
)
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes, reaction: str) -> None:
    """Whatever the bytes: records = predictions + labels learned + dead + ignored + waiting.

    Ignored are duplicates of either kind and labels that came after their observation was given
    up; waiting are labels whose observation has not come.
    """
    folder = tmp_path_factory.mktemp("any")
    flags = {
        "input.max_record_bytes": 150,
        "limits.label_timeout": 50,
        "limits.max_models": 2,
        "output.outcomes": str(folder / "met.jsonl"),
        "output.on_bad_record": reaction,
    }
    try:
        summary = run(folder, content, flags)
    except RecordError as error:
        assert reaction == "stop"
        assert ": " in str(error)  # noqa: PT017 - either a sentence or an account
        return
    counters = summary.counters
    ignored = sum(
        counters.get(name, 0)
        for name in ("duplicate_observations", "duplicate_labels", "late_labels")
    )
    dead = rows(folder / "out.jsonl.dead.jsonl")
    predicted, learned = len(rows(folder / "out.jsonl")), len(rows(folder / "met.jsonl"))
    assert summary.records == sum(bool(line.strip()) for line in _lines(content))
    assert summary.records == predicted + learned + len(dead) + ignored + summary.waiting[1]
    assert sum(summary.dead_letters.values()) == len(dead)
    assert (summary.observations, summary.labels) == (predicted, learned)


def _lines(content: bytes) -> list[bytes]:
    """Split bytes into lines as an editor would, without a byte order mark at the beginning."""
    return content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
