"""What `abers check` says: the meaning of a configuration, its files, and a sample."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.keys import KEY

from abers.exceptions import ConfigError
from abers_connectors.cli.config_check import check
from abers_connectors.config.model import load
from abers_connectors.preflight import run_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.cli.config_check import ConfigReport, Sample

START = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory."""
    monkeypatch.chdir(tmp_path)


def write(name: str, *records: object) -> None:
    """Write records, one a line; a text is a line as it is."""
    lines = (one if isinstance(one, str) else json.dumps(one) for one in records)
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def observation(number: int, **more: object) -> dict[str, object]:
    """Make an observation; a field that is None is left out."""
    record = {"id": f"a{number}", "time": START + number, "score": 0.5} | more
    return {name: value for name, value in record.items() if value is not None}


def label(number: int, **more: object) -> dict[str, object]:
    """Make the label of an observation."""
    return {"id": f"a{number}", "time": START + number + 1000, "label": 1} | more


def checked(sample: str | None = None, **flags: Any) -> ConfigReport:  # noqa: ANN401
    """Check a configuration of stream.jsonl and some keys; a double underscore is a dot."""
    Path("abers.toml").write_text('[input]\nobservations = "stream.jsonl"\n')
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return check("abers.toml", sample=sample, flags=named, environ={})


def sampled(*records: object, **flags: Any) -> Sample:  # noqa: ANN401
    """Check a sample of some records."""
    write("stream.jsonl", *records)
    sample = checked("stream.jsonl", **flags).sample
    assert sample is not None
    return sample


# What it means


def test_the_least() -> None:
    """A configuration of one key is shown with all its defaults."""
    write("stream.jsonl")
    assert checked().meaning == {
        "task": "the probability of label 1 (binary)",
        "scores": "any finite number, from the records",
        "calibrator": "ivap, keeps every label",
        "observations": "stream.jsonl, with labels among them",
        "fields": "id in id, time in time, model in model, score in score, label in label",
        "label 1": "1 or true; label 0 is 0 or false",
        "predictions": "standard output",
        "bad records": "abers.dead.jsonl; a ratio over 0.1 stops the run",
        "waiting": "7 days for a label or an observation; "
        "at most 1,000,000 observations and 100,000 labels of a model",
        "memory": "at most 536,870,912 bytes of all that waits and of finished ids",
        "late": "an event over 0 seconds behind the latest one of its model",
        "too far ahead": "an event over 5 minutes ahead of its record",
        "clocks": "one event alone advances the clock of its model by at most 1,008 minutes",
        "duplicates": "known for 7 days, among the last 1,000,000 finished ids of a model",
        "models": "at most 1,000, and as many segments in all",
        "lengths": "ids of at most 256 bytes; models, segments and classes of at most 256",
        "state": "is not saved",
        "monitoring": "on; alarms where odds are off by more than 1.25 times, with at least "
        "1,000,000 labels between false alarms on average",
    }
    assert checked().sample is None


@pytest.mark.parametrize(
    ("flags", "part", "words"),
    [
        ({"task__scores": "logit"}, "scores", "logits, from the records"),
        ({"calibrator__window": 1000}, "calibrator", "ivap, keeps the last 1,000 labels"),
        ({"calibrator__window": 1}, "calibrator", "ivap, keeps the last 1 label"),
        (
            {"limits__retire_after": "30d"},
            "models",
            (
                "at most 1,000, and as many segments in all; "
                "then those silent for over 30 days are removed"
            ),
        ),
        ({"calibrator__max_age": "36h"}, "calibrator", "ivap, forgets labels after 36 hours"),
        (
            {"calibrator__half_life": "1d"},
            "calibrator",
            "ivap, halves the weight of a label every 1 day",
        ),
        (
            {"input__delay": 50},
            "observations",
            "stream.jsonl, each with its label, which comes 50 observations late",
        ),
        (
            {"input__delay": "0s"},
            "observations",
            "stream.jsonl, each with its label, which comes 0 seconds late",
        ),
        (
            {"input__labels": "stream.csv"},
            "observations",
            "stream.jsonl, without labels",
        ),
        ({"input__labels": "stream.csv"}, "labels", "stream.csv, merged by event time"),
        (
            {"input__labels": "stream.csv", "input__label_fields__id": "txn"},
            "fields of labels",
            "id in txn, time in time, model in model, label in label",
        ),
        (
            {"input__fields": {"id": "row", "model": "const:fraud", "segment": "country"}},
            "fields",
            (
                "id is the record number, time in time, model always fraud, "
                "segment in country, score in score, label in label"
            ),
        ),
        (
            {"learner": {}, "input__fields": {"x": ["a", "b"], "passthrough": ["c", "d"]}},
            "fields",
            (
                "id in id, time in time, model in model, features in a b, label in label, "
                "passed through in c d"
            ),
        ),
        ({"learner": {}}, "scores", "any finite number, from the learner logistic"),
        ({"input__pos_label": ["fraud", 1]}, "label 1", "'fraud', 1; all else is 0"),
        ({"output__outcomes": "out.csv"}, "outcomes", "out.csv"),
        ({"output__on_bad_record": "stop"}, "bad records", "the first one stops the run"),
        (
            {"limits__dedup_ttl": "1h"},
            "duplicates",
            "known for 1 hour, among the last 1,000,000 finished ids of a model",
        ),
        ({"state__path": "abers.state"}, "state", "abers.state, every 100,000 records"),
        ({"monitoring__enabled": False}, "monitoring", "off"),
    ],
)
def test_meaning(flags: dict[str, Any], part: str, words: str) -> None:
    """Each part is shown in words."""
    pytest.importorskip("river")
    write("stream.jsonl")
    write("stream.csv", "id,time,label")
    assert checked(**flags).meaning[part] == words


# What would stop a run


def test_everything_that_is_not_there() -> None:
    """All files and directories that are missing are reported at once."""
    write("stream.csv")
    Path("directory.csv").mkdir()
    with pytest.raises(ConfigError) as raised:
        checked(
            "sample.csv",
            input__labels="directory.csv",
            output__predictions="no/p.csv",
            state__path="no/state",
        )
    assert raised.value.problems == (
        "abers.toml: input.observations: stream.jsonl: no such file",
        "abers.toml: input.labels: directory.csv is a directory; name a file in it",
        "abers.toml: output.predictions: there is no directory no; create it first",
        "abers.toml: output.dead_letters: there is no directory no; create it first",
        "abers.toml: state.path: there is no directory no; create it first",
        "sample: sample.csv: no such file",
    )


def test_outputs_that_are_directories() -> None:
    """Where a file is to be written there is no directory, but for Parquet in parts."""
    write("stream.jsonl")
    Path("there.parquet").mkdir()
    Path("there").mkdir()
    named = {"output__predictions": "there.parquet", "output__on_bad_record": "stop"}
    with pytest.raises(ConfigError) as raised:
        checked(**named)
    problem = "there.parquet is a directory; name a file in it"
    assert raised.value.problems == (f"abers.toml: output.predictions: {problem}",)
    assert checked(**named, state__path="abers.state").meaning["state"].startswith("abers.state")
    with pytest.raises(ConfigError, match=r"^abers\.toml: state\.path: there is a directory; name"):
        checked(**named, state__path="there")


def test_a_name_nearby() -> None:
    """The closest name in the directory is suggested for a file that is missing."""
    write("steram.jsonl")
    with pytest.raises(ConfigError, match=r"no such file; did you mean steram.jsonl\?"):
        checked()


def test_a_file_that_cannot_be_read() -> None:
    """Whatever keeps a file from being opened is reported before the run."""
    with pytest.raises(ConfigError, match=r"x.csv cannot be read \(File name too long\)"):
        checked(input__observations=f"{'x' * 300}.csv")


def test_standard_input_need_not_be_there() -> None:
    """Standard input and output are not files."""
    config = load(flags={"input.observations": "-", "input.format": "csv"}, environ={})
    assert list(run_problems(config)) == []


def test_libraries_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that would be needed is named, with the command that installs it."""
    write("stream.parquet")
    flags = {"input.observations": "stream.parquet", "learner.name": "tree"}
    config = load(flags=flags, environ={})
    for name in ("pyarrow", "river"):
        monkeypatch.setitem(sys.modules, name, None)
    first, second = run_problems(config)
    assert first.startswith("input.observations: Parquet needs pyarrow")
    assert second.startswith("learner: river's streams and learners need river")


@pytest.mark.parametrize("key", [None, ""])
def test_a_learner_with_a_state_needs_a_key(key: str | None) -> None:
    """A missing secret is reported before the run, which would not start without it."""
    flags = {"input.observations": "-", "input.format": "csv", "learner.name": "tree"}
    kept = load(flags=flags | {"state.path": "abers.state"}, environ={})
    environ = {} if key is None else {"ABERS_STATE_KEY": key}
    (problem,) = run_problems(kept, environ)
    assert problem == (
        "state.path: the saved state of a learner needs a secret key; set ABERS_STATE_KEY in the "
        "environment, or state.key_file (`abers state new-key` creates one), or remove state.path"
    )
    assert list(run_problems(kept, {"ABERS_STATE_KEY": KEY})) == []
    assert list(run_problems(load(flags=flags, environ={}), environ)) == []


def test_a_guessable_key_is_reported_before_the_run() -> None:
    """A key is checked, and not shown, whether a learner needs it or not."""
    plain = load(flags={"input.observations": "-", "input.format": "csv"}, environ={})
    (problem,) = run_problems(plain, {"ABERS_STATE_KEY": "hunter2"})
    assert problem.startswith("ABERS_STATE_KEY: the key must have 32 to 128 hexadecimal digits")
    assert "hunter2" not in problem


# Who reaches a service


def exposed(
    host: str,
    environ: dict[str, str],
    more: Mapping[str, object] = MappingProxyType({}),
    **http: Any,  # noqa: ANN401
) -> list[str]:
    """Return the warnings about a service that listens to a host."""
    topics = {"bootstrap_servers": "a:1", "observations": "i", "predictions": "o"}
    Path("abers.toml").write_text("")
    flags = {"kafka": topics, "http": {"host": host} | http, **more}
    return [*check("abers.toml", flags=flags, environ=environ).warnings]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "abers.internal"])  # noqa: S104
def test_a_page_that_everybody_can_open(host: str) -> None:
    """A live page without a token that other machines can reach is served with a warning."""
    (warning,) = exposed(host, {})
    assert warning == (
        f"abers.toml: http.host: other machines can reach {host}, and the live page has no token; "
        'set ABERS_HTTP_TOKEN in the environment, or write "127.0.0.1"'
    )
    assert exposed(host, {"ABERS_HTTP_TOKEN": "secret"}) == []
    assert exposed(host, {}, enabled=False) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost", "LOCALHOST"])
def test_a_page_of_this_machine(host: str) -> None:
    """A page that other machines cannot reach needs no token."""
    assert exposed(host, {}) == []


@pytest.mark.parametrize("token", ["", "two words", "pässword", "line\n"])
def test_a_token_that_cannot_be_used(token: str) -> None:
    """It stops a service before anything is served, with a sentence that does not show it."""
    with pytest.raises(ConfigError) as caught:
        exposed("127.0.0.1", {"ABERS_HTTP_TOKEN": token})
    assert str(caught.value).startswith("abers.toml: ABERS_HTTP_TOKEN: ")
    assert not token or token.strip() not in str(caught.value)
    assert exposed("127.0.0.1", {"ABERS_HTTP_TOKEN": token}, enabled=False) == []


# The sample


def test_records_as_understood() -> None:
    """Each record is one line: where it is, what it is, and what was read in it."""
    sample = sampled(
        observation(1, model="fraud", country="FR", amount=12.5),
        label(1, model="fraud"),
        observation(2, time="2023-11-14T23:13:20+01:00"),
        input__fields={"segment": "country", "passthrough": ["amount"]},
    )
    assert sample.lines == [
        (
            'stream.jsonl line 1: observation "a1" of model "fraud", 2023-11-14T22:13:20.001Z, '
            'segment "FR", score 0.5, passed through {"amount": 12.5}'
        ),
        'stream.jsonl line 2: label 1 for "a1" of model "fraud", 2023-11-14T22:13:21.001Z',
        (
            'stream.jsonl line 3: observation "a2" of model "default", 2023-11-14T22:13:20.000Z, '
            "score 0.5"
        ),
    ]
    assert (sample.records, sample.mistake) == (3, None)


def test_records_with_features() -> None:
    """Features are shown where a learner is to score them."""
    pytest.importorskip("river")
    (line,) = sampled(observation(1, score=None, x={"amount": 1}), learner={}).lines
    assert line.endswith(', features {"amount": 1}')


def test_records_that_carry_their_labels() -> None:
    """With a delay a record is an observation and its label, if that is known already."""
    sample = sampled(observation(1, label=True), observation(2), input__delay=5)
    assert [line.rpartition(", ")[2] for line in sample.lines] == ["label 1", "no label yet"]
    assert sample.mistake is None


def test_a_sample_of_the_second_input() -> None:
    """The file of labels is read as what it is."""
    write("stream.jsonl")
    write("labels.csv", "txn,time,label", f"a1,{START},1")
    flags = {"input__labels": "labels.csv", "input__label_fields__id": "txn"}
    sample = checked("labels.csv", **flags).sample
    assert sample is not None
    assert sample.lines == [
        'labels.csv line 2: label 1 for "a1" of model "default", 2023-11-14T22:13:20.000Z'
    ]


@pytest.mark.parametrize("content", ["", "id,time,model,score\n"])
def test_a_sample_without_records(content: str) -> None:
    """It is said that there was nothing to read."""
    write("stream.jsonl")
    Path("sample.csv").write_text(content)
    sample = checked("sample.csv").sample
    assert sample is not None
    assert (sample.lines, sample.mistake) == (["sample.csv holds no record"], None)


def test_ten_records() -> None:
    """Ten records are shown, however many there are."""
    sample = sampled(*map(observation, range(30)))
    assert len(sample.lines) == 10
    assert sample.records == 30


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("no json", "bad-json: "),
        (observation(3, time=1_700_000_000), "bad-time: time 1700000000 seems to be in seconds"),
        (observation(3, score=1.5), "bad-score: "),
    ],
)
def test_the_first_mistake(record: object, reason: str) -> None:
    """The first invalid record is reported, whether the reader or the processor finds it."""
    records = [*map(observation, range(12)), record, "no json either", observation(40)]
    sample = sampled(*records, task__scores="probability")
    assert sample.mistake is not None
    assert sample.mistake.startswith(f"stream.jsonl line 13: {reason}")
    assert "the record is '" in sample.mistake
    assert len(sample.lines) == 10


@pytest.mark.parametrize("wrong_first", [False, True])
def test_the_first_of_two_mistakes(*, wrong_first: bool) -> None:
    """The order of the records decides, not who found the mistake."""
    two = ["no json", observation(1, score=7)]
    sample = sampled(*(two if wrong_first else two[::-1]), task__scores="probability")
    assert sample.mistake is not None
    assert ("line 1: bad-json" if wrong_first else "line 1: bad-score") in sample.mistake


def test_a_long_record() -> None:
    """Of a long record only the beginning is shown."""
    mistake = sampled("x" * 1000).mistake
    assert mistake is not None
    assert len(mistake) < 500


def test_a_time_beyond_all_calendars() -> None:
    """A time that no calendar has is shown as a number."""
    (line,) = sampled(observation(1, time=-(10**14) + 1)).lines
    assert f"{-(10**14) + 1} ms" in line


def test_a_sample_that_cannot_be_read_on() -> None:
    """What stops the reading is the mistake, and the records before it are shown."""
    write("sample.jsonl", *map(observation, range(2_000)))
    write("stream.jsonl")
    packed = gzip.compress(Path("sample.jsonl").read_bytes(), mtime=0)
    Path("sample.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    sample = checked("sample.jsonl.gz").sample
    assert sample is not None
    assert len(sample.lines) == 10
    assert sample.mistake is not None
    assert sample.mistake.startswith("sample.jsonl.gz")


def test_a_sample_without_the_columns() -> None:
    """A file whose columns are called otherwise is the mistake itself."""
    write("stream.jsonl")
    write("sample.csv", "id,time,value", f"a1,{START},1")
    sample = checked("sample.csv").sample
    assert sample is not None
    assert sample.lines == []
    assert sample.mistake is not None
    assert sample.mistake.startswith("sample.csv")


def test_a_long_sample() -> None:
    """A mistake is looked for among about 10,000 records, not in years of history."""
    sample = sampled(*map(observation, range(30_000)), "no json")
    assert sample.mistake is None
    assert 10_000 <= sample.records < 20_000


# Secrets in files


def test_files_of_secrets_are_read_before_the_run() -> None:
    """A file that cannot be used stops the run, each with its key; no content is shown."""
    Path("good").write_text("open-sesame\n")
    Path("good").chmod(0o600)
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u"}
    service = {"kafka.security": security | {"password_file": "none"}, "state.path": "state"}
    with pytest.raises(ConfigError) as error:
        exposed("127.0.0.1", {}, token_file="none", more=service | {"state.key_file": "good"})  # noqa: S106
    assert error.value.problems == (
        "abers.toml: http.token_file: none cannot be read (No such file or directory)",
        (
            "abers.toml: kafka.security.password_file: none cannot be read (No such file or "
            "directory)"
        ),
        (
            "abers.toml: state.key_file: good: the key must have 32 to 128 hexadecimal digits, an "
            "even number of them; `abers state new-key` creates one"
        ),
    )
    service = {"kafka.security": security | {"password_file": "good"}}
    assert exposed("127.0.0.1", {}, token_file="good", more=service) == []  # noqa: S106


def test_a_file_that_everybody_can_read_is_a_warning() -> None:
    """The warning names each key and how to fix it."""
    for name, text in (("token", "a"), ("key", KEY)):
        Path(name).write_text(text)
    Path("token").chmod(0o644)
    Path("key").chmod(0o604)
    more = {"state.path": "state", "state.key_file": "key"}
    assert exposed("0.0.0.0", {}, token_file="token", more=more) == [  # noqa: S104, S106
        f"abers.toml: {key}: every user of this machine can read {name}; run: chmod o-r {name}"
        for key, name in (("state.key_file", "key"), ("http.token_file", "token"))
    ]
