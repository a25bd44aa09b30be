"""What `abers check` says: the meaning of a configuration, its files, and a sample."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.keys import KEY

from abers.exceptions import ConfigError
from abers.pages.text import Ink
from abers_connectors.cli.config_check import check, report_lines, sample_lines
from abers_connectors.config.layers import options
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


def words(report: ConfigReport) -> dict[str, list[str]]:
    """Return the lines of each part, with plain spaces."""
    lines = report.meaning.items()
    return {part: [str(one).replace("\u00a0", " ") for one in many] for part, many in lines}


def printed(report: ConfigReport, *, everything: bool = False, colour: bool = False) -> str:
    """Return what the command prints of a report on a terminal of 80 columns."""
    ink = Ink(80, colour=colour, unicode=True)
    return "\n".join(report_lines(report, "abers.toml", ink, everything=everything))


def test_the_least() -> None:
    """A configuration of one key is shown with what its defaults mean."""
    write("stream.jsonl")
    assert words(checked()) == {
        "Task": ["two classes; scores are any numbers"],
        "Reads": [
            "stream.jsonl; observations and labels mixed",
            "id id · time time · model model",
            "score score · label label (1, true)",
        ],
        "Writes": [
            (
                "predictions to standard output; unreadable records to abers.dead.jsonl; "
                "stops if over 10 % are unreadable; state not saved"
            )
        ],
        "Calibrates": ["ivap; all labels; p is merged from the interval"],
        "Waits": ["7 days for a label"],
        "Watches": [
            "alarm beyond 1.25 times the odds; 1,000,000 labels on average between false alarms"
        ],
    }
    assert checked().sample is None


def test_the_least_as_printed() -> None:
    """Each part is a line, or more; limits that have their default are counted."""
    write("stream.jsonl")
    assert printed(checked()).splitlines() == [
        "✓ abers.toml is valid",
        "",
        "  Task        two classes; scores are any numbers",
        "  Reads       stream.jsonl; observations and labels mixed",
        "                id id · time time · model model",
        "                score score · label label (1, true)",
        "  Writes      predictions to standard output; unreadable records to",
        "              abers.dead.jsonl; stops if over 10 % are unreadable; state not",
        "              saved",
        "  Calibrates  ivap; all labels; p is merged from the interval",
        "  Waits       7 days for a label",
        "  Watches     alarm beyond 1.25 times the odds; 1,000,000 labels on average",
        "              between false alarms",
        "  Limits      16 more, all default: abers check abers.toml --all",
    ]


def test_limits_that_differ_are_shown_and_all_when_asked() -> None:
    """A limit that was set is shown as a key, and with all of them each has its sentence."""
    write("stream.jsonl")
    changed = checked(limits__max_models=7, limits__retire_after="30d", calibrator__raw_weight=0.5)
    few = printed(changed).partition("  Limits      ")[2].splitlines()
    assert [one.strip() for one in few] == [
        "calibrator.raw_weight = 0.5",
        "limits.max_models = 7",
        'limits.retire_after = "30d"',
        "14 more, all default: abers check abers.toml --all",
    ]
    every = printed(changed, everything=True)
    for key, one in options().items():
        if key.startswith("limits.") and key != "limits.label_timeout":
            assert key in every
            assert one.sentence in " ".join(every.split())
    assert "limits.max_jump (not set)" in every
    assert "more, all default" not in every


def test_what_differs_is_not_grey() -> None:
    """Phrases about keys with their default are grey, and others are not."""
    write("stream.jsonl")
    text = printed(checked(limits__label_timeout="1d", calibrator__window=5), colour=True)
    assert "\x1b[90mtwo classes" in text
    assert " 1 day for a label\n" in text
    assert "the last 5 labels" in text
    assert "\x1b[90mthe last 5 labels" not in text


@pytest.mark.parametrize(
    ("flags", "part", "phrase"),
    [
        ({"task__scores": "logit"}, "Task", "raw scores are logits"),
        ({"calibrator__window": 1000}, "Calibrates", "ivap; the last 1,000 labels"),
        ({"calibrator__window": 1}, "Calibrates", "ivap; the last 1 label;"),
        ({"calibrator__max_age": "36h"}, "Calibrates", "ivap; labels of the last 36 hours"),
        (
            {"calibrator__half_life": "1d"},
            "Calibrates",
            "ivap; the weight of a label halves in 1 day",
        ),
        ({"task__scores": "probability"}, "Calibrates", "p is protected"),
        ({"input__delay": 50}, "Reads", "label label (1, true), 50 observations late"),
        ({"input__delay": "0s"}, "Reads", "label label (1, true), 0 seconds late"),
        ({"input__fields__label_time": "t"}, "Reads", "label label (1, true) at t"),
        ({"input__labels": "stream.csv"}, "Reads", "stream.jsonl; stream.csv for the labels"),
        (
            {"input__labels": "stream.csv", "input__label_fields__id": "txn"},
            "Reads",
            "id txn · time time · model model · label label (1, true)",
        ),
        (
            {"input__fields": {"id": "row", "model": "const:fraud", "segment": "country"}},
            "Reads",
            "id is the record number · time time · model always fraud · segment country",
        ),
        ({"input__timezone": "Europe/Berlin"}, "Reads", "time time (Europe/Berlin)"),
        (
            {"learner": {}, "input__fields": {"x": ["a", "b"], "passthrough": ["c", "d"]}},
            "Reads",
            "features a b · label label (1, true) · passed through c d",
        ),
        ({"learner": {}}, "Task", "scores are any numbers; made by the learner logistic"),
        ({"input__percent": True}, "Task", "read in per cent"),
        ({"input__pos_label": ["fraud", 1]}, "Reads", "label label (fraud, 1)"),
        ({"output__outcomes": "out.csv"}, "Writes", "outcomes to out.csv"),
        (
            {"output__on_bad_record": "stop"},
            "Writes",
            "the first unreadable record stops the run",
        ),
        ({"state__path": "abers.state"}, "Writes", "state to abers.state, every 100,000 records"),
        ({"monitoring__enabled": False}, "Watches", "nothing"),
        (
            {"task__kind": "multiclass", "task__classes": ["cat", "dog"]},
            "Task",
            "2 classes: cat, dog; scores are any numbers",
        ),
        (
            {"task__kind": "regression", "calibrator__distributions": "full"},
            "Task",
            "; the mean and the whole distribution; scores are any numbers",
        ),
    ],
)
def test_meaning(flags: dict[str, Any], part: str, phrase: str) -> None:
    """Each part is shown in words."""
    pytest.importorskip("river")
    write("stream.jsonl")
    write("stream.csv", "txn,id,time,label")
    assert phrase in f"{'; '.join(words(checked(**flags))[part])};"


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
    (line,) = words(checked(**named, state__path="abers.state"))["Writes"]
    assert "state to abers.state" in line
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


def problems_of(**flags: Any) -> list[str]:  # noqa: ANN401
    """Return what stops a run of a configuration."""
    with pytest.raises(ConfigError) as caught:
        checked(**flags)
    return list(caught.value.problems)


def test_columns_that_no_file_has() -> None:
    """Everything that both files lack is said at once, where it is named, with what they have."""
    write("first.csv", "key,when,prob", f"a1,{START},0.5")
    write("second.csv", "key,at,truth,models", f"a1,{START},1,m")
    files = {"input__observations": "first.csv", "input__labels": "second.csv"}
    assert problems_of(**files, input__fields__model="models") == [
        (
            "abers.toml: input.observations: first.csv has no column id, no column time and no "
            "column score or label; its columns are key, when, prob; name the right ones in "
            "[input.fields]"
        ),
        (
            "abers.toml: input.labels: second.csv has no column id, no column time and no column "
            "label; its columns are key, at, truth, models; name the right ones in "
            "[input.label_fields]"
        ),
    ]


@pytest.mark.parametrize(
    ("head", "mistake"),
    [
        ("id,time,scores,outcome", "no column score or label; .*; did you mean scores"),
        ("id,times,score,label", "no column time; .* in .input.fields.; did you mean times"),
        ("ids,times,score,label", ".*did you mean ids for id, times for time"),
        ("a1,1700000000000,0.5,1", ".*; is the first line a record"),
    ],
)
def test_columns_of_mixed_rows(head: str, mistake: str) -> None:
    """A file of observations and labels needs the columns that a run needs, too."""
    write("stream.csv", head, f"a1,{START},0.5,")
    (problem,) = problems_of(input__observations="stream.csv")
    assert re.match(f"abers.toml: input.observations: stream.csv has {mistake}", problem)


def test_columns_of_a_folder(tmp_path: Path) -> None:
    """The columns of a folder of Parquet files are compared too."""
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet  # noqa: PLC0415 - an extra

    Path("folder").mkdir()
    parquet.write_table(
        Table.from_pydict({"id": ["a"], "time": [1]}), tmp_path / "folder/a.parquet"
    )
    (problem,) = problems_of(input__observations="folder", input__delay=1)
    assert "folder has no column score and no column label; its columns are id, time" in problem


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("stream.csv", ["id,time,score,outcome", f"a1,{START},0.5,", f"a1,{START},,1"]),
        ("stream.jsonl", [observation(1), label(1) | {"label": None, "outcome": 1}]),
    ],
)
def test_first_records_that_cannot_be_read(name: str, lines: list[object]) -> None:
    """A bad record among the first ones is a warning: a run goes on without it."""
    write(name, *lines)
    report = checked(input__observations=name)
    (warning,) = report.warnings
    start, _, rest = warning.partition(": missing-field: ")
    place = f"{name} line {len(lines)}"
    assert start == f"abers.toml: input.observations: {place}"
    assert rest.startswith('the record has no "score" and no "label"; fill it in')
    write(name, *lines[:-1])
    assert not checked(input__observations=name).warnings


def test_a_file_that_is_no_text() -> None:
    """A file that a run cannot read at all is an error of the check, with its key."""
    Path("stream.csv").write_text("id,time,score", encoding="utf-16")
    (problem,) = problems_of(input__observations="stream.csv")
    assert problem.startswith("abers.toml: input.observations: stream.csv")
    assert "UTF-16" in problem


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


def test_what_a_server_lacks() -> None:
    """All that would stop `abers serve` is reported, and nothing of files."""
    flags = {"serve": {"learner": "gone.skops"}, "http.host": "192.0.2.1"}
    learner, tokens = run_problems(load(flags=flags, environ={}), {})
    assert learner == "serve.learner: gone.skops: no such file"
    assert "lacks ABERS_PREDICT_TOKEN, ABERS_LABEL_TOKEN, ABERS_HTTP_TOKEN; set" in tokens
    served = load(flags={"serve": {}, "learner.name": "tree"}, environ={})
    (key,) = run_problems(served, {})
    assert key.startswith("learner: the saved state of a learner needs a secret key; set")
    assert list(run_problems(served, {"ABERS_STATE_KEY": KEY})) == []


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


def table(*records: object, **flags: Any) -> list[str]:  # noqa: ANN401
    """Return the printed lines of a sample of some records."""
    write("stream.jsonl", *records)
    return shown(checked("stream.jsonl", **flags), "stream.jsonl")


def shown(report: ConfigReport, name: str, width: int = 100) -> list[str]:
    """Return the printed lines of the sample in a report."""
    assert report.sample is not None
    ink = Ink(width, colour=False, unicode=True)
    return [*sample_lines(report.sample, name, report.config, ink)]


def test_records_as_understood() -> None:
    """Each record is a row: where it is, what it is, and what was read in it."""
    assert table(
        observation(1, model="fraud", country="FR", n=1),
        label(1, model="fraud"),
        observation(2, time="2023-11-14T23:13:20+01:00"),
        input__fields={"segment": "country", "passthrough": ["n"]},
    ) == [
        "  row      id   model     segment   time (UTC)                  raw   label   passed through",  # noqa: E501
        '  line 1   a1   fraud     FR        14 Nov 2023, 22:13:20.001   0.5           {"n": 1}',
        "  line 2   a1   fraud               14 Nov 2023, 22:13:21.001             1",
        "  line 3   a2   default             14 Nov 2023, 22:13:20.000   0.5",
        "  all read, none unreadable",
    ]


def test_times_are_those_of_the_zone() -> None:
    """Times are shown in the zone of the input, with seconds only where there are some."""
    head, row, _ = table(
        observation(1, time="2023-11-15 05:15:00", id="b"),
        input__timezone="America/New_York",
        task__scores="probability",
    )
    assert head.split()[-3:] == ["(New", "York)", "raw"]
    assert row.endswith("15 Nov 2023, 05:15   0.500")


def test_records_with_features() -> None:
    """Features are shown where a learner is to score them."""
    pytest.importorskip("river")
    head, row, _ = table(observation(1, score=None, x={"amount": 1}), learner={})
    assert head.endswith("features")
    assert row.endswith('{"amount": 1}')


def test_scores_of_several_classes() -> None:
    """The scores of a record are shown by class."""
    _, row, _ = table(
        observation(1, score={"cat": 0.25, "dog": 0.75}),
        task__kind="multiclass",
        task__classes=["cat", "dog"],
    )
    assert row.endswith("cat=0.25 dog=0.75")


def test_records_that_carry_their_labels() -> None:
    """With a time of its label a record shows both, if the label is known already."""
    of_labels: dict[str, Any] = {"input__fields": {"label_time": "seen"}}
    head, *rows, _ = table(
        observation(1, time=START, label=True, seen=START + 60_000),
        observation(2, time=START),
        **of_labels,
    )
    assert head.split("   ")[-2:] == ["label", "known at"]
    assert [row.split()[-1] for row in rows] == ["22:14:20", "0.5"]
    assert rows[0].split()[-5] == "1"


def test_a_sample_of_the_second_input() -> None:
    """The file of labels is read as what it is."""
    write("stream.jsonl")
    write("labels.csv", "txn,time,label", f"a1,{START},1")
    flags = {"input__labels": "labels.csv", "input__label_fields__id": "txn"}
    assert shown(checked("labels.csv", **flags), "labels.csv") == [
        "  row      id   model     time (UTC)              label",
        "  line 2   a1   default   14 Nov 2023, 22:13:20       1",
        "  all read, none unreadable",
    ]


@pytest.mark.parametrize("content", ["", "id,time,model,score\n"])
def test_a_sample_without_records(content: str) -> None:
    """It is said that there was nothing to read."""
    write("stream.jsonl")
    Path("sample.csv").write_text(content)
    assert shown(checked("sample.csv"), "sample.csv") == ["  sample.csv has no record"]


def test_ten_records() -> None:
    """Ten records are shown, however many there are."""
    sample = sampled(*map(observation, range(30)))
    assert len(sample.rows) == 10
    assert sample.records == 30
    assert table(*map(observation, range(30)))[-1] == "  20 more records read, none unreadable"


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
    assert len(sample.rows) == 10


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
    _, row, _ = table(observation(1, time=-(10**14) + 1))
    assert f"event time {-(10**14) + 1:,}" in row


def test_a_sample_that_cannot_be_read_on() -> None:
    """What stops the reading is the mistake, and the records before it are shown."""
    write("sample.jsonl", *map(observation, range(2_000)))
    write("stream.jsonl")
    packed = gzip.compress(Path("sample.jsonl").read_bytes(), mtime=0)
    Path("sample.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    sample = checked("sample.jsonl.gz").sample
    assert sample is not None
    assert len(sample.rows) == 10
    assert sample.mistake is not None
    assert sample.mistake.startswith("sample.jsonl.gz")


def test_a_sample_without_the_columns() -> None:
    """A file whose columns are called otherwise is the mistake itself."""
    write("stream.jsonl")
    write("sample.csv", "id,time,value", f"a1,{START},1")
    sample = checked("sample.csv").sample
    assert sample is not None
    assert sample.rows == []
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
