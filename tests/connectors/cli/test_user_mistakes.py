"""Mistakes of first-time users: each message names the value, its place and the remedy.

A table for the command line, its files, its configuration, notebooks and wrappers.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from river.linear_model import LinearRegression, LogisticRegression
from sklearn import linear_model

import abers
from abers import plotting
from abers.exceptions import AbersError
from abers.river import VennAbersClassifier
from abers.sklearn import VennAbersCalibratedClassifier
from abers.stream import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.connectors.conftest import Ran

GOOD = "id,time,score,label\na,1700000000000,0.25,0\nb,1700000001000,0.75,1\n"


class Mistake(NamedTuple):
    """A file, the words after it, and the lines of the error; where the first begins."""

    content: str | bytes
    words: str
    lines: Sequence[str]


REPLAYS = {
    "a misspelled file": Mistake(
        GOOD, "socres.csv", ["socres.csv: no such file", "did you mean scores.csv?"]
    ),
    "a misspelled data set": Mistake(
        GOOD, "Phising", ["Phising: no such data set", "river includes AirlinePassengers, "]
    ),
    "a directory": Mistake(
        GOOD,
        ".",
        [". is a directory without Parquet file", "name a folder, a pattern or a URL of "],
    ),
    "a spreadsheet": Mistake(
        GOOD,
        "sales.xlsx",
        ["sales.xlsx: unknown kind of file", "abers knows .csv, ", "save it as one of these"],
    ),
    "an empty file": Mistake(
        "",
        "",
        ["scores.csv has no observation", "it needs a row for each, with a score and a label"],
    ),
    "a single column": Mistake(
        "score\n0.5\n",
        "",
        ["scores.csv has one column, score", "it needs one of scores and one of labels"],
    ),
    "a label without its time": Mistake(
        "time,score,label,label_time\n5,.5,1,\n",
        "",
        [
            'the record has a "label", but no "label_time"',
            "scores.csv line 2",
            'fill it in, or leave "label" empty until it is known',
        ],
    ),
    "two delimiters": Mistake(
        "score;label|y\n0.5;1\n",
        "",
        [
            "scores.csv: the names in the first line, 'score;label|y', are separated by semicolons",
            "name it in input.delimiter (--delimiter)",
        ],
    ),
    "the wrong delimiter": Mistake(
        GOOD,
        "--delimiter ;",
        [
            "scores.csv: the names in the first line, 'id,time,score,label', are separated by com",
            "name it in input.delimiter (--delimiter)",
        ],
    ),
    "a delimiter that is a word": Mistake(
        GOOD, "--delimiter semicolon", ['--delimiter semicolon: write one of ",", ";", "|", "tab"']
    ),
    "points among decimal commas": Mistake(
        "score;label\n0,5;1\n0.5;1\n",
        "--decimal ,",
        [
            "'0.5' has a point, where decimals follow a comma",
            "scores.csv line 3",
            "write 0,5, or no point",
        ],
    ),
    "UTF-16": Mistake(
        GOOD.encode("utf-16"),
        "",
        ["scores.csv is text in UTF-16 or UTF-32", "write it in UTF-8, as iconv does"],
    ),
    "a missing column": Mistake(
        "a,b\n1,0.5\n",
        "",
        [
            "the file has no score column",
            "scores.csv has the columns a, b",
            "name them: abers replay scores.csv --score b --label a",
        ],
    ),
    "no line of names": Mistake(
        "0.5,1\n0.2,0\n",
        "",
        [
            "the file has no score column",
            "scores.csv has the columns 0.5, 1",
            "is the first line a record? Then write the names of the columns above it",
        ],
    ),
    "a rounded time": Mistake(
        "time,score,label\n1.77232E+12,.5,1\n",
        "",
        ["time '1.77232E+12' ", "scores.csv line 2", "write whole milliseconds"],
    ),
    "NA among named labels": Mistake(
        "score,label\n.5,yes\n.2,no\n.3,NA\n",
        "--positive yes",
        ["'NA' ", "scores.csv line 4", "leave it empty"],
    ),
    "a misspelled column": Mistake(
        GOOD,
        "--label lable",
        [
            "scores.csv has no column lable",
            "scores.csv has the columns id, time, score, label",
            "name it: abers replay scores.csv --label label",
        ],
    ),
    "a short row": Mistake(
        GOOD + "c,1\n",
        "",
        ["fields: 2 on the line, 4 in the header", "scores.csv line 4", "complete the line, or"],
    ),
    "two columns of a name": Mistake(
        "score,score\n1,2\n",
        "",
        ["scores.csv: two columns have the name score", "rename one of them"],
    ),
    "text labels": Mistake(
        "score,label\n.5,late\n",
        "",
        [
            "'late' is not a label",
            "scores.csv line 2",
            "write 0 or 1, or false or true, or name the values that mean 1 in --positive",
        ],
    ),
    "numbers as labels": Mistake(
        "score,label\n.5,-4\n", "", ["'-4' is not a label", "scores.csv line 2", "write 0 or 1"]
    ),
    "a time without a zone": Mistake(
        "time,score,label\n2013-04-01 05:00:00,.5,1\n",
        "",
        [
            "time '2013-04-01 05:00:00' has no UTC offset",
            "scores.csv line 2",
            "name its zone, such as Europe/Berlin or UTC, with --timezone, or write whole ",
        ],
    ),
    "a time in seconds": Mistake(
        "time,score,label\n1700000000,.5,1\n",
        "",
        ["time '1700000000' ", "scores.csv line 2", "write whole milliseconds"],
    ),
    "a label before its observation": Mistake(
        "time,label_time,score,label\n1700000001000,1700000000000,.5,1\n",
        "",
        ["label_time, the label's time, is 1 second", "scores.csv line 2", "repair one of them"],
    ),
    "a missing score": Mistake(
        "score,label\nNaN,1\n",
        "",
        ["score 'NaN' is not a finite number", "scores.csv line 2", "drop the record"],
    ),
    "a comma before decimals": Mistake(
        'score,label\n"0,5",1\n.5,1\n',
        "",
        [
            "score '0,5' is not a finite number",
            "scores.csv line 2",
            "write a point before decimals, and no other, or add --decimal , for CSV",
        ],
    ),
    "percentages": Mistake(
        "score,label\n50,1\n",
        "--scores probability",
        [
            "score 50.0 is not a probability in [0, 1]",
            "scores.csv line 2",
            "is it a percentage? Add --scores percent",
            "is it another number, such as a margin? Add --scores any",
        ],
    ),
    "more than 100 per cent": Mistake(
        "score,label\n120,1\n",
        "--scores percent",
        ["score '120' is not a percentage from 0 to 100", "scores.csv line 2", "fix it"],
    ),
    "a positive label in other case": Mistake(
        "score,label\n.5,no\n.5,yes\n",
        "--positive Yes",
        [
            "no label among the first records of scores.csv is 'Yes' (--positive)",
            "did you mean yes?",
        ],
    ),
    "an unknown zone": Mistake(
        GOOD, "--timezone Europe/Berln", ['--timezone: "Europe/Berln" ', "write a name such as"]
    ),
    "a delay in words": Mistake(
        GOOD,
        "--delay 6hours",
        ['--delay 6hours: write a number of observations, or a duration such as "6h" or "7d"'],
    ),
    "delays with semicolons": Mistake(
        GOOD, "--delays 0;50", ["--delays 0;50: write a number of observations, or a duration"]
    ),
    "a misspelled calibrator": Mistake(
        GOOD,
        "--calibrator isotnic",
        ['--calibrator: "isotnic" is not one of ', 'did you mean "isotonic"?'],
    ),
    "a misspelled comparison": Mistake(
        GOOD,
        "--compare ivap,plat",
        ["--compare: 'plat' is not a calibrator ", "these are ", "did you mean platt?"],
    ),
    "a misspelled option": Mistake(
        GOOD,
        "--ouput x",
        [
            "No such option: --ouput",
            "did you mean --output?",
            "see abers replay --help",
        ],
    ),
    "an option that is like no other": Mistake(
        GOOD, "--tolerance 3", ["No such option: --tolerance", "see abers replay --help"]
    ),
    "two rules of forgetting": Mistake(
        GOOD,
        "--window 5 --half-life 1d",
        ["--half-life: cannot be combined with --window", "remove one of them"],
    ),
    "a negative window": Mistake(
        GOOD, "--window -5", ["--window: -5 is too small", "write at least 1"]
    ),
    "a coverage in percent": Mistake(
        GOOD,
        "--task regression --coverage 95",
        ["--coverage: 95 is too large", "write less than 1"],
    ),
    "several classes": Mistake(
        GOOD,
        "--task multiclass",
        [
            "--task multiclass needs a column of scores for each class",
            "name them: abers replay scores.csv --score low=p_low,mid=p_mid,high=p_high",
        ],
    ),
    "a second file in a replay": Mistake(
        GOOD, "scores.csv extra", ["Got unexpected extra argument(s) (extra)", "see abers replay "]
    ),
    "a per cent sign": Mistake(
        "score,label\n25 %,0\n", "", ["score '25 %' is in per cent", "scores.csv line 2", "add --s"]
    ),
    "a misspelled kind of scores": Mistake(
        GOOD,
        "--scores precent",
        ["--scores: 'precent' is not one of 'any', ", "did you mean 'percent'?", "see abers"],
    ),
    "a word for a number": Mistake(
        GOOD, "--window many", ['--window: "many" is not a whole number', "write one"]
    ),
    "a number that is too small": Mistake(
        GOOD, "--window -5", ["--window: -5 is too small", "write at least 1"]
    ),
    "a share in words": Mistake(
        GOOD, "--coverage half", ['--coverage: "half" is not a number', "write one"]
    ),
    "a share of one class": Mistake(
        GOOD,
        "--label-rates 0.5 --probability merged",
        [
            "--label-rates has 2 values, OF_0 OF_1",
            "write all before --probability",
            "see abers replay --help",
        ],
    ),
    "an option for a value": Mistake(
        GOOD,
        "--positive --quiet",
        ["--positive needs a value", "write it before --quiet", "see abers replay --help"],
    ),
    "one end": Mistake(
        GOOD,
        "--task regression --support 3",
        ["--support has 2 values, LOW HIGH", "write all", "see abers replay --help"],
    ),
    "rates of labels for a protected probability": Mistake(
        GOOD,
        "--label-rates 0.5 1",
        ["--label-rates: needs --probability merged: the protected probability is about observ"],
    ),
    "an end in words": Mistake(
        GOOD,
        "--support 0 high --task regression --calibrator protected",
        ['--support: [0, "high"] is not a list of finite numbers', "write numbers such as 0.1 0.5"],
    ),
    "no process": Mistake(
        GOOD, "--workers 0", ["--workers: '0' is not a whole number from 1 to 256", "write one"]
    ),
    "columns of classes for two classes": Mistake(
        "a,b,label\n.5,.5,x\n",
        "--score x=a,y=b --task binary",
        ["--task binary needs one column of scores", "leave --task out, or name one column"],
    ),
    "a class twice": Mistake(
        "a,b,label\n.5,.5,x\n",
        "--score x=a,x=b",
        ["--score names only the class x", "name each class once, with its column"],
    ),
    "no usual name, and a number first": Mistake(
        "ticket,chance,came\n17,.5,1\n18,.25,0\n",
        "",
        [
            "the file has no score column",
            "scores.csv has the columns ticket, chance, came",
            "name them: abers replay scores.csv --score chance --label came",
        ],
    ),
    "columns of classes without the classes": Mistake(
        "a,b,label\n.5,.5,x\n",
        "--score a,b",
        [
            "scores.csv has no column a,b",
            "scores.csv has the columns a, b, label",
            "are these the scores of several classes? Name the class of each: --score CLASS=a,",
        ],
    ),
    "a class without a column": Mistake(
        "a,label\n.5,x\n",
        "--score x=a,y=b",
        [
            "scores.csv has no column a, b",
            "scores.csv has the columns a, label",
            "name it: abers replay scores.csv --score ",
        ],
    ),
    "a label of no class": Mistake(
        "a,b,label\n.5,.5,z\n",
        "--score x=a,y=b",
        ["'z' is not ", "scores.csv line 2"],
    ),
    "a file of labels that is not there": Mistake(
        GOOD, "--labels lables.csv", ["lables.csv: no such file"]
    ),
    "labels as the scores again": Mistake(
        GOOD, "--labels scores.csv", ['--labels: "scores.csv" is ']
    ),
    "the input as output": Mistake(
        GOOD, "-o scores.csv", ['--output: "scores.csv" is the input already', "name another file"]
    ),
    "an output of another kind": Mistake(
        GOOD, "-o out.xls", ['--output: "out.xls" has an unknown format', "end the name in .csv"]
    ),
    "an output in no directory": Mistake(
        GOOD,
        "-o nowhere/out.csv",
        ["output nowhere/out.csv: there is no directory ", "create it first"],
    ),
    "a report as PDF": Mistake(
        GOOD, "--report r.pdf", ["--report r.pdf: name a file that ends in .html"]
    ),
}


@pytest.mark.parametrize("name", REPLAYS)
def test_replays(
    name: str, invoke: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error says what is wrong, where, and what to do, a line each, and nothing before it."""
    mistake = REPLAYS[name]
    content = mistake.content
    data = content.encode() if isinstance(content, str) else content
    for file in ("scores.csv", "sales.xlsx"):
        (tmp_path / file).write_bytes(data)
    monkeypatch.setenv("COLUMNS", "300")
    words = mistake.words.split()
    own = bool(words) and not words[0].startswith("-")
    ran = invoke("replay", *([] if own else ["scores.csv"]), *words)
    assert ran.code in {1, 2}
    assert ran.out == ""
    first, *rest = mistake.lines
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"error: {first}"), ran.err
    for line, expected in zip(lines[1:], rest, strict=False):
        assert line.startswith(f"  {expected}"), ran.err
    assert len(lines) >= len(mistake.lines)


def test_a_report_over_another_file(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """A report that would replace an input or an output is an error in the words of the command."""
    for name in ("scores.csv", "out.csv"):
        (tmp_path / name).write_text(GOOD)
    for name, use in (("scores", "the input"), ("out", "the file of predictions")):
        (tmp_path / f"{name}.json").symlink_to(f"{name}.csv")
        ran = invoke("replay", "scores.csv", "-o", "out.csv", "--report", f"{name}.json")
        assert ran.err.startswith(f'error: --report: "{name}.json" is {use} already')


def test_no_label_is_positive(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """Labels that are all 0 may be right, so a sentence names them."""
    (tmp_path / "scores.csv").write_text(GOOD)
    ran = invoke("replay", "scores.csv", "--positive", "yes")
    assert ran.code == 0
    assert "is 'yes' (--positive): they all count as 0. Labels found: 0, 1." in ran.err


@pytest.mark.parametrize("flags", ["--window -5", "--window many", "--max-age soon"])
def test_a_flag_over_a_configuration(
    invoke: Callable[..., Ran], tmp_path: Path, flags: str
) -> None:
    """A mistake in a flag is one of usage; the configuration is not to blame, unless it is too."""
    config, flag = tmp_path / "abers.toml", flags.split(maxsplit=1)[0]
    config.write_text('[input]\nobservations = "scores.csv"\ndelay = 1\n')
    (tmp_path / "scores.csv").write_text(GOOD)
    ran = invoke("replay", "abers.toml", "-o", "out.csv", *flags.split())
    assert ran.code == 2
    assert ran.err.startswith(f"error: {flag}: ")
    config.write_text(config.read_text() + "[limits]\nmax_pending = 0\n")
    ran = invoke("replay", "abers.toml", "-o", "out.csv", *flags.split())
    assert ran.code == 78
    assert "abers.toml: limits.max_pending: 0 is too small" in ran.err


CONFIGURATIONS = {
    "an unknown key": ("[input]\nobservation = 'x.csv'", "observation", "input.", "observations"),
    "a quoted number": ("calibrator.window = '9'", '"9"', "calibrator.window", "without quotes"),
    "a duration in words": (
        "limits.label_timeout = '7 days'",
        '"7 days"',
        "limits.label_timeout",
        '"7d"',
    ),
    "a broker without a port": (
        "kafka = {bootstrap_servers = 'kafka', observations = 'a', predictions = 'b'}",
        '"kafka"',
        "kafka.bootstrap_servers",
        "write host and port",
    ),
    "one topic for two": (
        "kafka = {bootstrap_servers = 'k:1', observations = 'a', predictions = 'a'}",
        '"a"',
        "kafka.predictions",
        "name another topic",
    ),
    "a label that is no label": (
        "input.unlabelled = 'genuin'",
        "'genuin'",
        "input.unlabelled",
        "write 0 or 1",
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(name: str, invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The check of a configuration names the value, the file and the key, and the remedy."""
    text, *parts = CONFIGURATIONS[name]
    (tmp_path / "abers.toml").write_text(text)
    ran = invoke("check", "abers.toml")
    assert ran.code == 78
    for part in ("abers.toml: ", *parts):
        assert part in ran.err


def _late_label() -> None:
    model = VennAbersClassifier(LogisticRegression())
    for x in ({"a": 1.0}, {"a": 2.0}):
        model.predict_proba_one(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": 1.0}, y=True)


def _monitor_back_in_time() -> None:
    watch = abers.monitor()
    watch.update(1, 0.5, time=5)
    watch.update(1, 0.5, time=3)


REGRESSOR: Any = LinearRegression()
CLASS: Any = LogisticRegression
FOREIGN: Any = linear_model.LogisticRegression()
X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
CALLS: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "a frame in the place of labels": (
        lambda: abers.report({"label": [0, 1], "prob": [0.5, 0.5]}),
        "table",
        "y is",
        "pass it in data",
    ),
    "a tolerance in words": (
        lambda: abers.report([0, 1], [0.5, 0.5], tolerance="1.25"),  # type: ignore[arg-type]
        "'1.25'",
        "tolerance",
        "1 or more",
    ),
    "columns of other lengths": (lambda: abers.report([0, 1], [0.5]), "1", "p has", "each"),
    "labels and forecasts swapped": (
        lambda: abers.report([0.2, 0.3], [0, 1]),
        "0.2",
        "row 0",
        "first argument",
    ),
    "both columns of predict_proba": (
        lambda: abers.report([0, 1], [[0.2, 0.8], [0.1, 0.9]]),
        "(2, 2)",
        "p must",
        "p[:, 1]",
    ),
    "percentages in a notebook": (
        lambda: abers.report([0, 1], [20, 80]),
        "20.0",
        "row 0",
        "divide percentages by 100",
    ),
    "a missing label": (
        lambda: abers.monitor().update([0, None], [0.2, 0.3]),
        "None",
        "row 1",
        "drop rows",
    ),
    "times as text": (
        lambda: abers.report([0, 1], [0.2, 0.3], ["1 May", "2 May"]),
        "'1 May'",
        "row 0",
        "pandas.to_datetime",
    ),
    "a report as PDF": (
        lambda: abers.report([0, 1], [0.2, 0.3]).save("a.pdf"),
        "'a.pdf'",
        "path",
        ".html",
    ),
    "a loop back in time": (_monitor_back_in_time, "time 3", "row 0", "in the order"),
    "a figure of three labels": (
        lambda: plotting.reliability([0, 2], [0.5, 0.5]),
        "label 2",
        "row 1",
        "map the positive class",
    ),
    "a score that is missing": (
        lambda: abers.VennAbers().predict_one(math.nan),
        "nan",
        "score",
        "drop the observation",
    ),
    "a calibrator that is misspelled": (
        lambda: Settings(calibrator="isotnic"),
        "'isotnic'",
        "calibrator",
        "'isotonic'?",
    ),
    "a regressor to classify": (
        lambda: VennAbersClassifier(REGRESSOR),
        "LinearRegression",
        "classifier=",
        "use VennAbersRegressor",
    ),
    "the class of a model": (
        lambda: VennAbersClassifier(CLASS),
        "LogisticRegression",
        "classifier=",
        "pass an instance",
    ),
    "a model of another library": (
        lambda: VennAbersClassifier(FOREIGN),
        "LogisticRegression()",
        "classifier=",
        "abers.sklearn.VennAbersCalibratedClassifier",
    ),
    "a late label without an id": (_late_label, "without id", "learn_one", "pass the same id="),
    "a number as an estimator": (
        lambda: VennAbersCalibratedClassifier(5).fit(X, Y),
        "5",
        "estimator=",
        "pass one",
    ),
    "weights of another length": (
        lambda: VennAbersCalibratedClassifier(FOREIGN).fit(X, Y, sample_weight=np.ones(3)),
        "(3,)",
        "sample_weight",
        "must be (20,)",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    """A call from a notebook, or of a wrapper, names the value, the argument or row, the remedy."""
    call, *parts = CALLS[name]
    with pytest.raises((AbersError, UserWarning)) as raised:
        call()
    for part in parts:
        assert part in str(raised.value)


def test_there_are_40_of_them() -> None:
    """The table has the 40 mistakes that first-time users make, and more."""
    assert len(REPLAYS) + len(CONFIGURATIONS) + len(CALLS) >= 40
