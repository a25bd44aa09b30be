"""`abers run`, `check`, `inspect`, and completion, as a person meets them."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.connectors.conftest import COMMAND, in_a_line
from tests.connectors.processes import until

from abers import VennAbers
from abers.stream import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]
    Start = Callable[..., subprocess.Popen[bytes]]

CONFIG = """
[task]
scores = "probability"
[input]
observations = "in.jsonl"
[output]
predictions = "out.jsonl"
"""
MISTAKES = """
[calibrator]
windw = 100
[input]
observations = "in.jsonl"
delai = 5
[input.fields]
scoer = "p"
[output]
on_bad_record = "sotp"
[limits]
label_timeout = "7 days"
"""
FIVE = [
    'abers.toml: calibrator.windw: unknown key; did you mean "window"?',
    'abers.toml: input.delai: unknown key; did you mean "delay"?',
    'abers.toml: input.fields.scoer: unknown key; did you mean "score"?',
    (
        'abers.toml: limits.label_timeout: "7 days" is not a duration; write "250ms", "5s", "5m", '
        '"2h" or "7d", or a whole number of milliseconds'
    ),
    (
        'abers.toml: output.on_bad_record: "sotp" is not one of "dead-letter", "stop"; '
        'did you mean "stop"?'
    ),
]


def lines(count: int, every: int = 10**9) -> str:
    """Return observations and their labels, with a bad line after every so many."""
    found = []
    for n in range(count):
        time, score = 1000 * n, (n % 10 + 0.5) / 10
        found.append(json.dumps({"id": f"a{n}", "time": time, "score": score}))
        found.append(json.dumps({"id": f"a{n}", "time": time + 5, "label": int(n % 3 == 0)}))
        if n % every == 1:
            found.append("oops")
    return "\n".join(found) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a configuration and an input."""
    (tmp_path / "abers.toml").write_text(CONFIG)
    (tmp_path / "in.jsonl").write_text(lines(50, every=10))
    return tmp_path


def names(folder: Path) -> set[str]:
    """Name the files in a directory."""
    return {path.name for path in folder.iterdir()}


# abers run


def test_a_run_says_where_everything_went(invoke: Invoke, folder: Path) -> None:
    """Answers are on standard output; then outputs are named, and dead letters counted."""
    (folder / "abers.toml").write_text(CONFIG + 'outcomes = "met.csv"\n')
    ran = invoke("run", "abers.toml")
    assert ran.code == 0
    assert [line.split()[1] for line in ran.out.splitlines()[:3]] == [
        "Model",
        "Calibrated",
        "Pays",
    ]
    assert ran.err.endswith(
        "The predictions are in out.jsonl.\n"
        "The outcomes are in met.csv.\n"
        "5 dead letters are in out.jsonl.dead.jsonl: 5 bad-json.\n"
    )
    assert "Next:" not in ran.err


def test_a_run_as_json(invoke: Invoke, folder: Path) -> None:
    """The table and the counts are one object on standard output."""
    assert folder.exists()
    ran = invoke("run", "abers.toml", "--json")
    found = msgspec.json.decode(ran.out)
    assert (found["records"], found["observations"], found["labels"]) == (105, 50, 50)
    assert found["dead_letters"] == {"bad-json": 5}
    assert found["raw"]["brier"] > 0
    assert ran.err == ""


def test_all_mistakes_at_once(invoke: Invoke, folder: Path) -> None:
    """Five mistakes are five lines, each with what to write, whatever reads the configuration."""
    (folder / "abers.toml").write_text(MISTAKES)
    for command in ("run", "check", "replay"):
        ran = invoke(command, "abers.toml")
        assert (ran.code, ran.out) == (78, "")
        assert sorted(in_a_line(ran.err).splitlines()) == [f"error: {line}" for line in FIVE]
    assert names(folder) == {"abers.toml", "in.jsonl"}


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ("", 78, r"abers\.toml: input\.observations: .*missing"),
        ("[input]\nobservations = 'inn.jsonl'", 78, r"inn\.jsonl: no such file; did .* in\.jsonl"),
        ("[input", 78, r"abers\.toml: end of document: Expected"),
        (CONFIG.replace("out.", "no/out."), 78, r"output\.predictions: there is no directory no"),
        (CONFIG.replace("out.", "folder."), 78, r"folder\.jsonl is a directory; name a file in it"),
        ("[input]\nobservations = 'in.csv'", 78, r"no column score.*\[input\.fields\]"),
        (CONFIG + "on_bad_record = 'stop'", 1, r"; in\.jsonl line 5; write one JSON object"),
    ],
)
def test_a_mistake_of_a_configuration(
    invoke: Invoke, folder: Path, config: str, code: int, message: str
) -> None:
    """It is one sentence that says what, where and how to fix it, and nothing is written."""
    (folder / "folder.jsonl").mkdir()
    (folder / "in.csv").write_text("id,time,p\na,5,0.5\n")
    (folder / "abers.toml").write_text(config)
    before = names(folder)
    ran = invoke("run", "abers.toml")
    assert ran.code == code
    said = in_a_line(ran.err)
    assert re.search(rf"^error: .*{message}", said)
    assert all(line.startswith("error: ") for line in said.splitlines())
    assert names(folder) == before


def test_a_missing_configuration(invoke: Invoke, folder: Path) -> None:
    """The file with the closest name is suggested."""
    assert folder.exists()
    ran = invoke("run", "aber.toml")
    assert ran == (78, "", "error: aber.toml: no such file\n  did you mean abers.toml?\n")


def test_too_many_dead_letters(invoke: Invoke, folder: Path) -> None:
    """The run ends with a code of its own; the dead letters are there to be looked at."""
    (folder / "in.jsonl").write_text(lines(600, every=4))
    ran = invoke("run", "abers.toml")
    assert ran.code == 65
    message = r"error: 150 of 1,350 records are dead letters \(150 bad-json\), more than .* = 0.1"
    assert re.match(message, ran.err)
    assert len((folder / "out.jsonl.dead.jsonl").read_text().splitlines()) == 150
    assert names(folder) == {"abers.toml", "in.jsonl", "out.jsonl.dead.jsonl"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_with_its_label_is_a_dead_letter_once(
    invoke: Invoke, folder: Path, workers: int
) -> None:
    """The label of a row that has no features is no second dead letter, however long it waits."""
    pytest.importorskip("river")
    start, hour = 1_700_000_000_000, 3_600_000
    many = range(250)
    rows = [{"id": f"{n}", "time": start + n * hour, "score": 0.5, "label": n % 2} for n in many]
    rows += [{**row, "id": f"x{row['id']}", "x": {"a": 1.0}} for row in rows]
    rows.sort(key=itemgetter("time"))
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "abers.toml").write_text('[input]\nobservations = "in.jsonl"\ndelay = 9\n')
    asked = ("replay", "abers.toml", "-o", "out.jsonl", "--learner", "bayes")
    ran = invoke(*asked, "--workers", str(workers))
    assert ran.code == 0, ran.err
    found = (folder / "out.jsonl.dead.jsonl").read_text().splitlines()
    assert [json.loads(one)["reason"] for one in found] == ["bad-features"] * len(many)


def records_of(state: Path) -> int:
    """Return how many records a saved state has read; none if there is no state yet."""
    if not state.exists():
        return 0
    source = snapshot.read(state.read_bytes()).position["source"]
    return source.get("at", source)["records"] if source else 0


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nError: pay\u202e\u2066\x9b31m\x00\u2028"


def hostile(ids: str = "ab") -> str:
    """Return observations and labels whose ids, models and segments are an attack."""
    rows: list[dict[str, object]] = []
    for n, one in enumerate(ids):
        named = {"id": HOSTILE + one, "model": HOSTILE + one, "segment": HOSTILE}
        rows += [{**named, "time": 1000 + n, "score": 0.5}, {**named, "time": 1000 + n, "label": 1}]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("run abers.toml", 0),
        ("check abers.toml --sample in.jsonl", 1),
        ("inspect abers.state", 0),
        ("run stop.toml", 1),
        ("check bad.toml", 78),
        ("run other.toml", 78),
        ("check abers.toml --sample \x1b[2J", 78),
    ],
)
def test_what_others_wrote_is_escaped(
    invoke: Invoke, folder: Path, command: str, code: int
) -> None:
    """A name of a model or an id writes no escape sequence, line or direction of its own."""
    config = CONFIG + '[input.fields]\nsegment = "segment"\n'
    (folder / "in.jsonl").write_text(
        hostile() + json.dumps({"id": "c", "time": HOSTILE, "score": 0.5}) + "\n"
    )
    (folder / "abers.toml").write_text(config + '[state]\npath = "abers.state"\n')
    stop = config.replace("[output]\n", '[output]\non_bad_record = "stop"\n')
    (folder / "stop.toml").write_text(stop)
    (folder / "bad.toml").write_text(f"[input]\n{json.dumps(HOSTILE)} = 1\n")
    if command == "inspect abers.state" or "other" in command:
        assert invoke("run", "abers.toml").code == 0
    given = (folder / "abers.toml").read_text()
    (folder / "other.toml").write_text(given.replace("out.jsonl", r"out\u001b.jsonl"))
    ran = invoke(*command.split(" "))
    assert ran.code == code
    shown = ran.out + ran.err
    assert not [one for one in shown if not one.isprintable() and one != "\n"]
    assert "x1b" in shown or "u001b" in shown.lower()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_goes_on(start: Start, folder: Path, number: int, code: int) -> None:
    """Stopped by a signal it says so with its code; the next run leaves out and repeats nothing."""
    whole = lines(12_000)
    (folder / "in.jsonl").write_text(whole)
    config = CONFIG + '[state]\npath = "abers.state"\nsnapshot_every = 1\n'
    (folder / "abers.toml").write_text(config)
    process = start("run", "abers.toml")
    assert until(process, partial(records_of, folder / "abers.state"))
    process.send_signal(number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == code
    assert b"Traceback" not in err
    assert b"Calibrated" in start("run", "abers.toml").communicate(timeout=240)[0]
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert [row["id"] for row in rows] == [f"a{n}" for n in range(12_000)]


def test_a_last_line_without_its_end(start: Start, folder: Path) -> None:
    """A run that is to go on says what it leaves for the next one; any other reads it."""
    (folder / "in.jsonl").write_text(lines(5) + '{"id": "a9')
    for config, dead_letters in ((CONFIG + '[state]\npath = "abers.state"\n', 1), (CONFIG, 2)):
        (folder / "abers.toml").write_text(config)
        process = start("run", "abers.toml")
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0
        warned = b"Warning: in.jsonl: the last record has no end yet, and is left for the next run"
        assert (warned in err) == ("state" in config)
        assert len((folder / "out.jsonl.dead.jsonl").read_bytes().splitlines()) == dead_letters


def test_a_second_run_on_the_same_state(start: Start, folder: Path) -> None:
    """It stops at once and changes nothing; a run that was killed is in nobody's way."""
    config = CONFIG.replace('"in.jsonl"', '"-"\nformat = "jsonl"')
    (folder / "abers.toml").write_text(
        config + '[state]\npath = "abers.state"\nsnapshot_every = 1\n'
    )
    first = start("run", "abers.toml", stdin=subprocess.PIPE)
    assert first.stdin is not None
    first.stdin.write(lines(50).encode())
    first.stdin.flush()
    assert until(first, partial(records_of, folder / "abers.state"))
    before = (folder / "abers.state").read_bytes()
    second = start("run", "abers.toml", stdin=subprocess.DEVNULL)
    _, err = second.communicate(timeout=240)
    assert second.returncode == 78
    assert err == (
        b"error: abers.state: another run is using this state\n  wait for its end, or stop it\n"
    )
    assert first.poll() is None
    assert (folder / "abers.state").read_bytes() == before
    first.kill()
    first.communicate()
    third = start("run", "abers.toml", stdin=subprocess.PIPE)
    _, err = third.communicate(lines(60).encode(), timeout=240)
    assert third.returncode == 0, err
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert [row["id"] for row in rows] == [f"a{n}" for n in range(60)]
    assert ".abers.state.lock" not in names(folder)


@pytest.mark.parametrize("output", ["predictions", "outcomes", "dead_letters"])
def test_a_full_disk(start: Start, folder: Path, output: str) -> None:
    """Whatever cannot be written, the run fails in the words of the system, and names it."""
    (folder / "full.jsonl").symlink_to("/dev/full")
    config = CONFIG.replace('predictions = "out.jsonl"', f'{output} = "full.jsonl"')
    (folder / "abers.toml").write_text(config)
    process = start("run", "abers.toml")
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert err == b"error: full.jsonl: No space left on device\n"


def run_limited(folder: Path, command: str, kibibytes: int) -> subprocess.CompletedProcess[bytes]:
    """Run a command that may write no file longer than that."""
    script = f'ulimit -f {kibibytes}; exec "$0" {command}'
    limited = ["bash", "-c", script, str(COMMAND)]
    # Bytecode that is cut short would end every later import of its module with an EOFError.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        limited, cwd=folder, check=False, capture_output=True, timeout=240, env=env
    )


def test_a_disk_that_fills_up(folder: Path) -> None:
    """What was written of a file that does not fit is removed."""
    (folder / "in.jsonl").write_text(lines(3000))
    ran = run_limited(folder, "run abers.toml", 64)
    assert ran.returncode == 1
    assert ran.stderr == b"error: out.jsonl: File too large\n"
    assert names(folder) == {"abers.toml", "in.jsonl"}


@pytest.mark.parametrize(
    ("config", "command", "name"),
    [
        ('outcomes = "met.csv"\n', "run abers.toml", "met.csv"),
        ('outcomes = "met.jsonl.gz"\n', "run abers.toml", "met.jsonl.gz"),
        ('outcomes = "met.parquet"\n', "run abers.toml", "met.parquet"),
        ('outcomes = "met.jsonl"\n[state]\npath = "s"\n', "run abers.toml", "met.jsonl"),
        (
            'outcomes = "met.parquet"\n[state]\npath = "s"\n',
            "run abers.toml",
            "met.parquet/part-00000000.parquet",
        ),
        ('[state]\npath = "abers.state"\n', "run abers.toml", "abers.state"),
        ("", "replay abers.toml --report report.json", "report.json"),
        ("", "prometheus-rules -o rules.yml", "rules.yml"),
        ("", "run abers.toml > out.txt", "standard output"),
    ],
)
def test_each_file_that_fills_up(folder: Path, config: str, command: str, name: str) -> None:
    """Whichever file cannot be written to its end, the message names it."""
    (folder / "in.jsonl").write_text(lines(5000))
    (folder / "null.jsonl").symlink_to("/dev/null")
    output = "-" if name == "standard output" else "null.jsonl"
    (folder / "abers.toml").write_text(CONFIG.replace("out.jsonl", output) + config)
    ran = run_limited(folder, command, 4)
    assert ran.returncode == 1
    assert ran.stderr.decode().splitlines()[-1] == f"error: {name}: File too large"


def test_predictions_come_at_once(start: Start, folder: Path) -> None:
    """In a pipe an observation is answered before the next one is there."""
    config = '[input]\nobservations = "-"\nformat = "jsonl"\n'
    (folder / "abers.toml").write_text(config)
    process = start("run", "abers.toml", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for n in range(3):
        process.stdin.write(b'{"id": "a%d", "time": %d, "score": 0.5}\n' % (n, n))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == f"a{n}"
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (0, b"")
    assert b"There were no dead letters." in err


# abers check and inspect


def test_check_warns(invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that may be a mistake is a warning, not an error."""
    monkeypatch.delenv("ABERS_HTTP_TOKEN", raising=False)
    topics = '[kafka]\nbootstrap_servers = "a:1"\nobservations = "i"\npredictions = "o"\n'
    (folder / "abers.toml").write_text(f'{topics}[http]\nhost = "0.0.0.0"\n')
    ran = invoke("check", "abers.toml")
    assert (ran.code, ran.err.count("Warning: abers.toml: http.host: other machines can")) == (0, 1)


def test_check_says_what_is_meant(invoke: Invoke, folder: Path) -> None:
    """A configuration is shown in words, a bad record is a warning, and nothing is written."""
    ran = invoke("check", "abers.toml")
    assert ran.code == 0
    assert ran.err.startswith("Warning: abers.toml: input.observations: in.jsonl line 5: bad-json")
    assert "  Writes      predictions to out.jsonl; " in ran.out
    assert names(folder) == {"abers.toml", "in.jsonl"}


def test_check_shows_a_sample(invoke: Invoke, folder: Path) -> None:
    """Ten records as understood, and the first mistake with exit code 1."""
    ran = invoke("check", "abers.toml", "--sample", "in.jsonl")
    assert ran.code == 1
    assert ran.out.count("\n  line ") == 10
    assert re.match(r"error: in\.jsonl line 5: bad-json: ", ran.err)
    (folder / "good.jsonl").write_text(lines(1))
    ran = invoke("check", "abers.toml", "--sample", "good.jsonl")
    assert (ran.code, ran.err) == (0, "")


def test_inspect(invoke: Invoke, folder: Path) -> None:
    """What a state holds goes to standard output, in tables or as JSON."""
    (folder / "abers.toml").write_text(CONFIG + '[state]\npath = "abers.state"\n')
    assert invoke("run", "abers.toml").code == 0
    ran = invoke("inspect", "abers.state")
    assert (ran.code, ran.err) == (0, "")
    assert "labels kept" in ran.out
    found = msgspec.json.decode(invoke("inspect", "abers.state", "--json").out)
    assert found["position"]["source"]["records"] == 105
    assert [(one["model"], one["labels"]) for one in found["held"]] == [("default", 50)]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nothing", 2, "nothing: No such file or directory; name a file"),
        ("in.jsonl", 2, "in.jsonl: a file of records is no saved state; `abers replay in.jsonl`"),
        ("key.pem", 78, "key.pem: not a snapshot of a processor"),
        ("calibrator", 78, "calibrator: the file is a calibrator with 0 labels"),
        ("cut.state", 78, "cut.state: a snapshot of a processor has a wrong checksum"),
    ],
)
def test_what_cannot_be_inspected(
    invoke: Invoke, folder: Path, name: str, code: int, message: str
) -> None:
    """One sentence says what the file is not."""
    (folder / "abers.toml").write_text(CONFIG + '[state]\npath = "cut.state"\n')
    assert invoke("run", "abers.toml").code == 0
    (folder / "cut.state").write_bytes((folder / "cut.state").read_bytes()[:-1])
    (folder / "calibrator").write_bytes(VennAbers().to_bytes())
    (folder / "key.pem").write_text("a key")
    ran = invoke("inspect", name)
    assert (ran.code, ran.out) == (code, "")
    assert in_a_line(ran.err).startswith(f"error: {message}")


# Replay of a configuration


def test_a_month_from_two_files_in_one_command(invoke: Invoke, folder: Path) -> None:
    """Scores and labels in separate files are merged, joined and scored; a part can be chosen."""
    scores = [json.dumps({"id": f"a{n}", "time": 1000 * n, "score": 0.5}) for n in range(30)]
    (folder / "in.jsonl").write_text("\n".join(scores))
    labels = [f"a{n},{1000 * n + 1500},{n % 2}" for n in range(30)]
    with gzip.open(folder / "labels.csv.gz", "wt") as file:
        file.write("\n".join(["id,time,label", *labels]))
    config = CONFIG.replace("[output]", 'labels = "labels.csv.gz"\n[output]')
    (folder / "abers.toml").write_text(config)
    ran = invoke("replay", "abers.toml", "--until", "20000", "--speed", "1000x", "-o", "-")
    assert ran.code == 0
    held = [json.loads(line)["n_labels"] for line in ran.out.splitlines()]
    assert held == [0, 0, *range(1, 19)]
    assert "abers.toml: 20 predictions, 19 labels, " in ran.err
    assert "Next:" not in ran.err


def test_the_outputs_of_a_run_are_not_overwritten(invoke: Invoke, folder: Path) -> None:
    """Where a run keeps a state, its replay needs an output of its own."""
    (folder / "abers.toml").write_text(CONFIG + '[state]\npath = "abers.state"\n')
    assert invoke("run", "abers.toml").code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ran = invoke("replay", "abers.toml")
    assert ran.code == 2
    said = "abers.toml keeps a state, to which its outputs belong; name another --output"
    assert said in in_a_line(ran.err)
    assert invoke("replay", "abers.toml", "-o", "again.jsonl").code == 0
    assert (folder / "again.jsonl").read_bytes() == before["out.jsonl"]
    after = {name: (folder / name).read_bytes() for name in before}
    assert after == before


# Completion


def completed(start: Start, *words: str) -> list[str]:
    """Return what bash would be offered for the last word."""
    env = {"COMP_WORDS": " ".join(["abers", *words]), "COMP_CWORD": str(len(words))}
    out, _ = start(_ABERS_COMPLETE="complete_bash", **env).communicate(timeout=240)
    return out.decode().split()


def test_completion(start: Start) -> None:
    """The shell completes commands and options, and gets the script for it."""
    assert sorted(completed(start, "re")) == ["replay", "report"]
    assert completed(start, "replay", "--spe") == ["--speed"]
    out, _ = start(_ABERS_COMPLETE="source_bash").communicate(timeout=240)
    assert b"complete -o default -F _abers_completion abers" in out


def test_completion_can_be_installed(invoke: Invoke) -> None:
    """The options that install and show it are in the help."""
    shown = invoke("--help").out
    assert "--install-completion" in shown
    assert "--show-completion" in shown
