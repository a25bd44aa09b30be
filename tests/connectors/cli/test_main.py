"""The command as a person meets it: help, one sentence for each mistake, exit codes, signals."""

from __future__ import annotations

import gzip
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.connectors.conftest import in_a_line

import abers
from abers.stream.cells import FIELDS, LABEL_FIELDS
from abers_connectors.cli.flags import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]
    Start = Callable[..., subprocess.Popen[bytes]]

CSV = "id,score,label\na,0.25,0\nb,0.75,1\nc,0.5,true\n"
SMALL = "--window", "20"  # keeps the reference quick
ESCAPE = "\x1b"
COLOUR = re.compile(rf"{ESCAPE}\[[39]\d")
WITHOUT_RIVER = (
    "import sys; sys.modules['river'] = None; from abers_connectors.cli.main import main; main()"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a small file of scores where the command runs."""
    path = tmp_path / "scores.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """Write a file whose predictions overfill any pipe."""
    path = tmp_path / "long.csv"
    path.write_text("score,label\n" + "0.25,0\n0.75,1\n" * 2000)
    return path


# First contact


@pytest.mark.parametrize("words", [[], ["run"], ["check"], ["inspect"], ["replay"]])
def test_help_fits_a_terminal(invoke: Invoke, words: list[str]) -> None:
    """Help goes to standard output, no wider than 80 columns."""
    ran = invoke(*words, "--help")
    assert ran.code == 0
    assert ran.out.startswith("Usage: abers ")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_help_names_every_choice(invoke: Invoke) -> None:
    """The help of replay lists every learner, dataset and calibrator."""
    from abers.learners.river_adapters import LEARNERS, REGRESSORS  # noqa: PLC0415
    from abers.stream.settings import CALIBRATORS  # noqa: PLC0415
    from abers_connectors.sources.river_datasets import river_datasets  # noqa: PLC0415

    shown = invoke("replay", "--help").out
    calibrators = [name for names in CALIBRATORS.values() for name in names]
    known = [*LEARNERS, *REGRESSORS, *river_datasets(), *calibrators]
    assert [name for name in known if name not in shown] == []


def test_help_has_the_declared_sentences(invoke: Invoke) -> None:
    """The help of a flag that is also a key begins with the sentence that the key has."""
    from abers_connectors.config.layers import options  # noqa: PLC0415

    helps = [invoke(command, "--help").out for command in ("replay", "serve")]
    shown = " ".join(" ".join(helps).split()).replace("- ", "-")
    flags = [one for one in options().values() if one.flag]
    sentences = {one.flag: one.sentence.replace("`input.timezone`", "--timezone") for one in flags}
    assert [flag for flag, one in sentences.items() if one.replace("- ", "-") not in shown] == []


def test_help_groups_options(invoke: Invoke) -> None:
    """The help of replay has a section for each group of options, the general ones last."""
    shown = invoke("replay", "--help").out
    sections = re.findall(r"^(\w+):$", shown, re.MULTILINE)
    assert sections == ["Arguments", "Input", "Calibrator", "Time", "Output", "Options"]
    groups = dict(zip(sections, re.split(r"^\w+:$", shown, flags=re.MULTILINE)[1:], strict=True))
    for section, option in {
        "Input": "--score",
        "Calibrator": "--window",
        "Time": "--delay",
        "Output": "--report",
        "Options": "--help",
    }.items():
        assert re.search(rf"^  {option}\b", groups[section], re.MULTILINE)


def test_alone_shows_the_help(invoke: Invoke) -> None:
    """`abers` alone is incomplete: it shows the help and fails as a mistake of usage."""
    ran = invoke()
    assert ran.code == 2
    assert "replay" in ran.out + ran.err


def test_version_names_the_backend(invoke: Invoke) -> None:
    """`abers --version` tells the version and which implementation runs."""
    ran = invoke("--version")
    assert ran == (0, f"abers {abers.__version__} ({abers.backend()} backend)\n", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["replay"], 2, r"Missing argument 'STREAM'"),
        (["scores.csv"], 2, r"No such command 'scores.csv'. To replay it: abers replay scores.csv"),
        (["replay", "scores.csv", "--dely", "3"], 2, r"No such option: --dely.*--delay"),
        (
            ["replay", "scores.csv", "--delay", "-1"],
            2,
            r"--delay -1: write a number of observations",
        ),
        (["replay", "phishin"], 2, r"Bananas, .*Phishing, .*did you mean Phishing\?"),
        (["replay", "score.csv"], 2, r"score.csv: no such file; did you mean scores.csv\?"),
        (["replay", "scores.csv", "--score", "scor"], 2, r"no column scor;.* --score score$"),
        (["replay", "scores.csv", "--learner", "tree"], 2, r"--learner is for data sets"),
        (["replay", "scores.csv", "--calibrator", "ivpa"], 2, r"--calibrator: .*mean \"ivap\"\?"),
        (["replay", "scores.csv", "--calibrator", "ivapr"], 2, r"--calibrator: .*; use \"ivap\""),
        (
            ["replay", "scores.csv", "--calibrator", "beta", "--scores", "any"],
            2,
            r"needs probabilities; add --scores probability",
        ),
        (["replay", "scores.csv", "--window", "0"], 2, r"--window: 0 is too small; write"),
        (["replay", "Phishing", "--window", "0"], 2, r"--window: 0 is too small; write"),
        (["replay", "scores.csv", "--window", "5", "--max-age", "5"], 2, r"--max-age: .* --window"),
        (["replay", "scores.csv", "-o", "scores.csv"], 2, r"--output: .* is the input already"),
        (
            ["replay", "scores.csv", "--speed", "fast"],
            2,
            r"--speed 'fast' is not a speed; write 1x",
        ),
        (["replay", "scores.csv", "--since", "noon"], 2, r"--since: time 'noon' is not a time"),
        (["replay", "scores.csv", "--from", "x.csv"], 2, r"--from goes with a configuration"),
        (["replay", "a.toml", "--from", "score.csv"], 2, r"--from: .*; did you mean scores.csv\?"),
        (["report", "scores.csv", "-o", "a.pdf"], 2, r"--output a.pdf: name a file that ends in"),
        (["serve", "--data", "scores.csv"], 78, r"--data scores.csv: is not a folder; name"),
        (
            ["serve", "--port", "99999"],
            2,
            r"--port: '99999' is not a whole number from 0 to 65,535",
        ),
        (["replay", "scores.csv", "-o", "no/out.jsonl"], 2, r"no directory .*/no; create it first"),
        (["replay", "gone.csv"], 2, r"gone.csv: is a link to a missing file; remove it"),
        (["replay", "nan.csv"], 1, r"score 'nan' is not a finite number; nan.csv line 3; drop"),
        (["replay", "word.csv"], 1, r"score 'high' is not a finite number; word.csv line 2"),
        (["replay", "label.csv"], 1, r"'yes' is not a label; label.csv line 2; write 0"),
        (["replay", "short.csv"], 1, r"fields: 1 on the line, 2 in the header; short.csv line 2"),
        (["replay", "empty.csv"], 1, r"empty.csv has no observation; it needs a row"),
        (["replay", "header.csv"], 1, r"header.csv has no observation; it needs a row"),
        (["replay", "scores.csv", "--labels"], 2, r"requires an argument; see abers replay --help"),
        (["replay", "scores.csv", "--labels", "empty.csv"], 1, r"empty.csv has no label; it needs"),
        (
            ["replay", "empty.csv", "--labels", "scores.csv"],
            1,
            r"; .* row for each, with an id and",
        ),
        (["replay", "broken.parquet"], 1, r"broken.parquet after row 0: .*not a parquet file"),
        (["replay", "cut.jsonl.gz"], 1, r"cut.jsonl.gz after line \d+: .* cut off or damaged"),
        (["replay", "bad.jsonl"], 1, r"; bad.jsonl line 1; write one JSON object a line"),
    ],
)
def test_a_mistake_gives_one_sentence(
    invoke: Invoke, file: Path, words: list[str], code: int, message: str
) -> None:
    """It says what is wrong, where, and what to do, on standard error, with the exit code."""
    for name, content in {
        "nan.csv": "score,label\n0.5,1\nnan,1\n",
        "word.csv": "score,label\nhigh,1\n",
        "label.csv": "score,label\n0.5,yes\n",
        "short.csv": "score,label\n0.5\n",
        "empty.csv": "",
        "header.csv": "score,label\n",
        "broken.parquet": "no Parquet",
        "bad.jsonl": '{"score": 0.5, "label": 1',
        "a.toml": 'input.observations = "scores.csv"',
    }.items():
        file.with_name(name).write_text(content)
    file.with_name("gone.csv").symlink_to("nothing")
    lines = b'{"score": 0.5, "label": 1}\n' * 3000
    file.with_name("cut.jsonl.gz").write_bytes(gzip.compress(lines)[:-20])
    ran = invoke(*words)
    assert ran.code == code
    assert re.search(rf"^error: .*{message}", in_a_line(ran.err), re.MULTILINE)
    assert "Traceback" not in ran.err


def test_what_the_system_refuses(start: Start, file: Path) -> None:
    """An error of the operating system is shown in its words, with the file name."""
    process = start("replay", file.name, "--output", "x" * 300 + ".jsonl")
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert re.fullmatch(rb"error: .*x{300}\.jsonl.*: File name too long\n", err)


@pytest.mark.parametrize(
    ("words", "name"),
    [(["--help"], b""), (["replay", "scores.csv", "-o", "-", "--json"], b"standard output: ")],
)
def test_a_full_disk(start: Start, file: Path, words: list[str], name: bytes) -> None:
    """So is a disk without space, whatever was being written."""
    assert file.exists()
    with Path("/dev/full").open("wb") as full:
        process = start(*words, out=full.fileno())
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert err == b"error: " + name + b"No space left on device\n"


def test_a_mistake_leaves_no_file(invoke: Invoke, tmp_path: Path) -> None:
    """A replay that stops at a bad record writes nothing under the name of its output."""
    (tmp_path / "bad.csv").write_text("score,label\n0.5,1\nnan,1\n")
    assert invoke("replay", "bad.csv", "--output", "out.jsonl").code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_missing_river_names_the_remedy() -> None:
    """Without river a bundled stream cannot be had; the error says what to install."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIVER, "replay", "Phishing"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "pip install 'abers[river]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_file_needs_no_river(file: Path) -> None:
    """Without river files are replayed all the same."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIVER, "replay", file, "-o", "-"],
        check=False,
        capture_output=True,
    )
    assert ran.returncode == 0
    assert ran.stdout.count(b"\n") == 3


def test_a_backend_that_is_not_there(start: Start) -> None:
    """A backend that is asked for and cannot be had is one sentence too."""
    _, err = (process := start("--version", ABERS_BACKEND="quick")).communicate(timeout=240)
    assert process.returncode == 78
    assert err == b"error: ABERS_BACKEND='quick': unknown backend, use 'native' or 'reference'\n"


LACKING = (
    "streams, monitors, protection and cross calibration need the native core of abers, which "
    "ABERS_BACKEND=reference leaves out; unset it\n"
)


def test_version_says_what_the_reference_lacks(start: Start) -> None:
    """On the reference `abers --version` adds what cannot run, and the remedy."""
    out, err = start("--version", ABERS_BACKEND="reference").communicate(timeout=240)
    said = f"abers {abers.__version__} (reference backend)\n{LACKING}"
    assert (out.decode(), err) == (said, b"")


def test_no_stream_runs_on_the_reference(start: Start, file: Path, tmp_path: Path) -> None:
    """A replay on the reference ends with one sentence, and writes nothing."""
    output = tmp_path / "out.jsonl"
    process = start("replay", str(file), "-o", str(output), ABERS_BACKEND="reference")
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (1, b"")
    assert in_a_line(err.decode()) == f"error: {LACKING}"
    assert not output.exists()


def test_a_check_tells_of_a_missing_core(start: Start, tmp_path: Path) -> None:
    """`abers check` lists the core among all else that stops the run."""
    config = tmp_path / "abers.toml"
    config.write_text('[input]\nobservations = "nothing.jsonl"\n', encoding="utf-8")
    process = start("check", str(config), ABERS_BACKEND="reference")
    _, err = process.communicate(timeout=240)
    core, missing = in_a_line(err.decode()).splitlines(keepends=True)
    assert (process.returncode, core) == (78, f"error: {config}: {LACKING}")
    assert "nothing.jsonl: no such file" in missing


def test_messages_of_the_engine_name_flags_that_there_are() -> None:
    """The engine names the flags of fields, which are declared where it cannot look."""
    for fields in (FIELDS, LABEL_FIELDS):
        named = re.findall(r"--[a-z-]+", fields.flag)
        assert len(named) >= 3
        assert {*named} <= {*FLAGS}


@pytest.mark.parametrize("words", [["--help"], ["state", "--help"]])
def test_no_sentence_of_the_help_is_cut(
    invoke: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The list of commands has a whole sentence for each, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    _, _, commands = invoke(*words).out.partition("Commands:\n")
    of = [line for line in commands.splitlines() if line[2:3].strip()]
    assert len(of) >= 5
    assert "..." not in commands
    sentences = " ".join(commands.split())
    assert sentences.count(".") == len(of)
    assert sentences.endswith(".")


@pytest.mark.parametrize("words", [[], ["--help"], ["replay", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    """The command answers at once: neither numpy nor river nor rich is imported for the help."""
    program = (
        "import sys; from abers_connectors.cli.main import app; app(standalone_mode=False);"
        "print(*sys.modules, file=sys.stderr)"
    )
    if not words:
        program = "import sys, abers_connectors.cli.main; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in ran.stderr.split()}
    assert "typer" in loaded
    assert not loaded & {"abers", "msgspec", "numpy", "rich", "river", "scipy", "sortedcontainers"}


# What a replay gives


def test_predictions_to_standard_output(invoke: Invoke, file: Path) -> None:
    """Standard output holds the predictions and nothing else; the rest is on standard error."""
    ran = invoke("replay", file.name, "--output", "-")
    records = [msgspec.json.decode(line) for line in ran.out.splitlines()]
    assert [record["id"] for record in records] == ["a", "b", "c"]
    assert "Calibrated" in ran.err
    assert "The predictions went to standard output." in ran.err


def test_predictions_to_a_file(invoke: Invoke, file: Path) -> None:
    """With an output file standard output has the answers, and the end says where it is."""
    ran = invoke("replay", file.name, "--output", "out.jsonl", "--delay", "0")
    assert ran.code == 0
    assert re.search(r"^. Calibrated +WAITING +3 of 200 labels$", ran.out, re.MULTILINE)
    assert len(file.with_name("out.jsonl").read_text().splitlines()) == 3
    assert "The predictions are in out.jsonl" in ran.err
    assert re.search(r"^Next:   \S+ replay ", ran.err, re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        "--probability merged --label-rates 0.5 1 --window 5",
        "--calibrator protected --half-life 7d",
        "--task regression --calibrator protected --support -1 2 --coverage 0.8",
        "--model default --since 2000-01-01T00:00:00Z",
    ],
)
def test_what_to_try_next_has_the_same_options(invoke: Invoke, file: Path, words: str) -> None:
    """Each command that is named runs, and calibrates as before unless it compares."""
    file.write_text(file.read_text().replace("true", "1"))  # a number, too
    ran = invoke("replay", file.name, "--delay", "0", *words.split())
    assert ran.code == 0, ran.err
    named = [one.partition(" replay ")[2] for one in ran.err.splitlines() if " replay " in one]
    assert len(named) >= 2
    for one in named:
        assert "--compare" in one or all(word in one.split() for word in words.split())
        assert invoke("replay", *shlex.split(one)).code == 0


def test_json_beside_a_file(invoke: Invoke, file: Path) -> None:
    """With --json and an output file the table is one JSON object on standard output."""
    ran = invoke("replay", file.name, "--output", "out.jsonl", "--json", "--scores", "probability")
    summary = msgspec.json.decode(ran.out)
    assert (summary["observations"], summary["labels"]) == (3, 3)
    assert summary["raw"]["brier"] == pytest.approx((0.0625 + 0.0625 + 0.25) / 3)
    # Labels come 50 observations late, so the answers are near the scores.
    assert summary["calibrated"]["brier"] == pytest.approx(summary["raw"]["brier"], abs=1e-3)
    assert summary["events_per_second"] > 0
    assert ran.err == ""


def test_json_beside_predictions(invoke: Invoke, file: Path) -> None:
    """With --json and predictions on standard output the JSON table goes to standard error."""
    ran = invoke("replay", file.name, "--json", "--output", "-", "--scores", "any")
    assert ran.out.count("\n") == 3
    assert msgspec.json.decode(ran.err)["raw"] is None


def test_no_predictions_unless_asked(invoke: Invoke, file: Path) -> None:
    """Without an output what was found and the answers are printed, and no file is made."""
    before = sorted(file.parent.iterdir())
    ran = invoke("replay", file.name)
    assert ran.code == 0
    size, columns = ran.err.split(". ")[:2]
    assert size == "scores.csv: 3 observations"
    assert columns.startswith("score = score (probabilities), label = label, id = id, time = row")
    assert "Labels are assumed to come 50 observations late, and the results depend" in ran.err
    assert "Name the columns of times in --time and --label-time, or set --delay" in ran.err
    assert "Calibrated" in ran.out
    assert sorted(file.parent.iterdir()) == before


def test_predictions_to_a_device(invoke: Invoke, file: Path) -> None:
    """A device without a suffix takes JSON Lines, and stays a device."""
    ran = invoke("replay", file.name, "--output", "/dev/null")
    assert ran.code == 0
    assert Path("/dev/null").is_char_device()


def test_a_table_of_delays(invoke: Invoke, file: Path) -> None:
    """`--delays` replays once for each delay, and prints a row for each."""
    ran = invoke("replay", file.name, "--delays", "0,2,1m", "--json")
    found = msgspec.json.decode(ran.out)
    assert [*found] == ["0 observations late", "2 observations late", "1 minute late"]
    ran = invoke("replay", file.name, "--delays", "0,2,1m")
    assert [line.split()[:3] for line in ran.out.splitlines() if " late" in line] == [
        ["0", "observations", "late"],
        ["2", "observations", "late"],
        ["1", "minute", "late"],
    ]


def test_delays_of_a_configuration(invoke: Invoke, file: Path, tmp_path: Path) -> None:
    """Each delay replaces that of the configuration; its outputs and its state stay as they are."""
    file.rename(tmp_path / "s.csv")
    (tmp_path / "c.toml").write_text(
        "input = {observations = 's.csv', delay = 7, fields = {time = 'row'}}\n"
        "output.predictions = 'p.csv'\nstate.path = 'kept'\n"
    )
    ran = invoke("replay", "c.toml", "--delays", "0,2", "--json")
    assert ran.code == 0, ran.err
    assert [*msgspec.json.decode(ran.out)] == ["0 observations late", "2 observations late"]
    assert {one.name for one in tmp_path.iterdir()} == {"s.csv", "c.toml"}


def test_a_flag_that_does_not_fit_a_configuration(invoke: Invoke, tmp_path: Path) -> None:
    """A mistake of a flag is said as the flag is written, and one of the file as its key."""
    (tmp_path / "c.toml").write_text("input = {observations = 's.csv', percent = 5}\n")
    ran = invoke("replay", "c.toml", "--window", "0", "--support", "0", "1")
    assert ran.code == 78
    assert sorted(in_a_line(ran.err).splitlines()) == [
        'error: --support: applies only to the task "regression"; leave it out',
        "error: --window: 0 is too small; write at least 1",
        "error: c.toml: input.percent: 5 is not a boolean; write true or false, without quotes",
    ]


def test_options_reach_the_calibrator(invoke: Invoke, tmp_path: Path) -> None:
    """Delay and window decide how many labels are kept at each prediction."""
    (tmp_path / "scores.csv").write_text("score,label\n" + "0.5,1\n" * 6)
    ran = invoke("replay", "scores.csv", "-o", "-", "--delay", "1", "--window", "3")
    held = [msgspec.json.decode(line)["n_labels"] for line in ran.out.splitlines()]
    assert held == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("name", ["ivap", "isotonic"])
def test_a_chosen_calibrator(invoke: Invoke, tmp_path: Path, name: str) -> None:
    """`--calibrator` chooses the calibrator: an interval, or one probability."""
    (tmp_path / "scores.csv").write_text("score,label\n" + "0.25,0\n0.75,1\n" * 6)
    ran = invoke("replay", "scores.csv", "-o", "-", "--delay", "0", "--calibrator", name)
    last = msgspec.json.decode(ran.out.splitlines()[-1])
    assert (ran.code, last["p0"] < last["p1"]) == (0, name == "ivap")


def test_ages_are_in_the_unit_of_time(invoke: Invoke, tmp_path: Path) -> None:
    """A largest age in milliseconds goes with RFC 3339 times."""
    rows = [f"0.5,1,2026-01-01T00:00:0{second}Z\n" for second in range(5)]
    (tmp_path / "scores.csv").write_text("score,label,time\n" + "".join(rows))
    ran = invoke("replay", "scores.csv", "-o", "-", "--delay", "0", "--max-age", "1000")
    records = [msgspec.json.decode(line) for line in ran.out.splitlines()]
    assert records[0]["time"] == 1_767_225_600_000
    # The labels of the first two come before the clock is known.
    assert [record["p0"] for record in records] == [0.0, 0.0, 0.0, 0.5, 0.5]


def test_a_bundled_stream_again_gives_the_same_bytes(start: Start) -> None:
    """Two processes with other hashes write byte-identical predictions of a real stream."""
    runs = [
        start("replay", "Phishing", "-o", "-", *SMALL, PYTHONHASHSEED=seed) for seed in ("1", "2")
    ]
    first, second = [run.communicate(timeout=240)[0] for run in runs]
    assert first == second
    assert first.count(b"\n") == 1250


# On a terminal, in a pipe, under signals


def on_a_terminal(start: Start, *words: str, **env: str) -> str:
    """Return what the command shows on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    process = start(*words, out=theirs, err=theirs, COLUMNS="80", TERM="xterm", **env)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other side of a terminal is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def test_what_is_left_on_a_terminal(start: Start, long_file: Path) -> None:
    """On a terminal the answers have colours, and the bar is gone at the end."""
    words = "replay", long_file.name, "--output", "out.jsonl", *SMALL
    shown = on_a_terminal(start, *words)
    assert COLOUR.search(shown)
    assert "log loss" in shown.rpartition(f"{ESCAPE}[2K")[2]


def test_a_hostile_name_on_a_terminal(start: Start, tmp_path: Path) -> None:
    """What a file is called does not reach the terminal as it stands, next to the bar neither."""
    hostile = "\x1b]0;owned\x07\x1b[2J.csv"
    (tmp_path / hostile).write_text("score,label\n" + "0.25,0\n0.75,1\n" * 500)
    shown = on_a_terminal(start, "replay", hostile, "--output", "out.jsonl", *SMALL)
    assert "]0;owned" in shown
    assert f"{ESCAPE}]0;" not in shown
    assert f"{ESCAPE}[2J" not in shown
    assert "\x07" not in shown


def test_no_colour_when_asked(start: Start, long_file: Path) -> None:
    """NO_COLOR is respected: the same text without colours."""
    words = "replay", long_file.name, "--output", "out.jsonl", *SMALL
    shown = on_a_terminal(start, *words, NO_COLOR="1")
    assert "log loss" in shown
    assert not COLOUR.search(shown)


def test_no_bar_beside_predictions(start: Start, long_file: Path) -> None:
    """A bar would get between predictions on their way to the same terminal."""
    shown = on_a_terminal(start, "replay", long_file.name, "-o", "-", *SMALL)
    assert "observations" in shown
    assert f"{ESCAPE}[2K" not in shown


def test_no_escapes_in_a_pipe(start: Start, file: Path) -> None:
    """Where nobody watches there is neither bar nor escape sequence."""
    out, err = start("replay", file.name, "--output", "out.jsonl").communicate(timeout=240)
    assert ESCAPE.encode() not in out + err
    assert b"Calibrated" in out


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_gets_everything(start: Start, long_file: Path, unbuffered: str) -> None:
    """However little a pipe takes at a time, nothing is lost."""
    process = start("replay", long_file.name, "-o", "-", *SMALL, PYTHONUNBUFFERED=unbuffered)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    rest = process.stdout.read()
    assert (first + rest).count(b"\n") == 4000
    assert b"labels" in process.stderr.read()
    assert process.wait() == 0
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough(start: Start, long_file: Path, unbuffered: str) -> None:
    """When the reader of a pipe goes away, as `head` does, the command ends without an error."""
    process = start("replay", long_file.name, "-o", "-", *SMALL, PYTHONUNBUFFERED=unbuffered)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b'{"v":1,')
    process.stdout.close()
    assert b"Error" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141


def test_a_reader_that_has_enough_of_a_table(start: Start, tmp_path: Path) -> None:
    """A table that nobody reads ends the command silently and with the same code."""
    (tmp_path / "in.jsonl").write_text('{"id": "a", "time": 1, "score": 0.5}\n')
    (tmp_path / "abers.toml").write_text(
        '[input]\nobservations = "in.jsonl"\n[output]\npredictions = "out.jsonl"\n'
        '[state]\npath = "abers.state"\n'
    )
    assert b"Calibrated" in start("run", "abers.toml").communicate(timeout=240)[0]
    reader, writer = os.pipe()
    os.close(reader)
    process = start("inspect", "abers.state", out=writer)
    os.close(writer)
    assert process.communicate(timeout=240)[1] == b""
    assert process.returncode == 141


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_cleanly(start: Start, tmp_path: Path, number: int, code: int) -> None:
    """Stopped by a signal, the command leaves no file behind, whole or partial."""
    # Opening a pipe for writing waits for the reader: from then on the replay is under way.
    os.mkfifo(tmp_path / "endless.csv")
    words = "--id", "row", "--time", "row", "--output", "out.jsonl"
    process = start("replay", "endless.csv", *words)
    with (tmp_path / "endless.csv").open("w") as pipe:
        pipe.write("score,label\n0.5,1\n")
        pipe.flush()
        process.send_signal(number)
        out, err = process.communicate(timeout=240)
    assert process.returncode == code
    assert out == b""
    assert b"Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["endless.csv"]


AT_AN_IMPORT = """
import os, sys

def wait(event, arguments):
    if event == "import" and arguments[0] == os.environ["AT"]:
        os.write(1, b"importing")
        os.read(0, 1)

sys.addaudithook(wait)
"""


@pytest.mark.parametrize("module", ["typer", "abers", "numpy", "msgspec", "rich.console"])
def test_stopped_while_it_starts(tmp_path: Path, module: str) -> None:
    """Ctrl-C in the middle of an import ends with the usual code, and a word at most."""
    (tmp_path / "sitecustomize.py").write_text(AT_AN_IMPORT)  # Python runs it before all else
    (tmp_path / "in.csv").write_text("score,label\n0.5,1\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "abers_connectors", "replay", "in.csv"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "AT": module},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(9) == b"importing"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (130, b"")
    assert err in {b"", b"Stopped.\n"}  # nothing while the words of the command are understood


def test_a_group_without_its_command(invoke: Invoke) -> None:
    """The help of a group of commands is shown as it is, and the exit code is that of usage."""
    ran = invoke("state")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: ")
    assert ran.err.splitlines()[2].startswith("  List, verify, rebuild, reset and rescale")
