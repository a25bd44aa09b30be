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
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

GOOD = "id,time,score,label\na,1700000000000,0.25,0\nb,1700000001000,0.75,1\n"


class Mistake(NamedTuple):
    """A file or a configuration, the words after it, and what the message must have."""

    content: str | bytes
    words: str
    value: str
    place: str
    remedy: str


REPLAYS = {
    "a misspelled file": Mistake(GOOD, "socres.csv", "socres.csv", "no such file", "scores.csv?"),
    "a misspelled data set": Mistake(GOOD, "Phising", "Phising", "data set", "mean Phishing?"),
    "a directory": Mistake(GOOD, ".", ". is a directory", "in it", "name a CSV"),
    "a spreadsheet": Mistake(
        GOOD, "sales.xlsx", "sales.xlsx", "kind of file", "save it as one of these\n"
    ),
    "an empty file": Mistake("", "", "no observation", "scores.csv", "a row for each, with"),
    "a single column": Mistake("score\n0.5\n", "", "column, score", "scores.csv", "of labels"),
    "a label without its time": Mistake(
        "time,score,label,label_time\n5,.5,1,\n", "", '"label_time"', "line 2", "fill it in"
    ),
    "semicolons": Mistake("score;label\n0.5;1\n", "", "score;label", "scores.csv", "with commas"),
    "UTF-16": Mistake(GOOD.encode("utf-16"), "", "UTF-16", "scores.csv", "write it in UTF-8"),
    "a missing column": Mistake("id,points\na,1\n", "", "id, points", "scores.csv", "--score"),
    "no line of names": Mistake(
        "0.5,1\n0.2,0\n", "", "0.5, 1", "scores.csv", "names of the columns"
    ),
    "no line of names, with ids": Mistake(
        GOOD.partition("\n")[2], "", "a, 1700000000000", "scores.csv", "is the first line a record?"
    ),
    "a rounded time": Mistake(
        "time,score,label\n1.77232E+12,.5,1\n",
        "",
        "1.77232E+12",
        "line 2",
        "write whole milliseconds",
    ),
    "NA among named labels": Mistake(
        "score,label\n.5,yes\n.2,no\n.3,NA\n", "--positive yes", "'NA'", "line 4", "leave it empty"
    ),
    "a misspelled column": Mistake(GOOD, "--label lable", "lable", "scores.csv", "mean label?"),
    "a short row": Mistake(GOOD + "c,1\n", "", "2 of", "scores.csv line 4", "complete the line"),
    "two columns of a name": Mistake("score,score\n1,2\n", "", "score", "scores.csv", "rename one"),
    "text labels": Mistake("score,label\n.5,late\n", "", "'late'", "line 2", "in --positive"),
    "numbers as labels": Mistake(
        "score,label\n.5,-4\n", "", "'-4'", "scores.csv line 2", "add --task regression"
    ),
    "a time without a zone": Mistake(
        "time,score,label\n2013-04-01 05:00:00,.5,1\n",
        "",
        "'2013-04-01 05:00:00'",
        "scores.csv line 2",
        "set --timezone",
    ),
    "a time in seconds": Mistake(
        "time,score,label\n1700000000,.5,1\n", "", "'1700000000'", "line 2", "write whole millisec"
    ),
    "a label before its observation": Mistake(
        "time,label_time,score,label\n1700000001000,1700000000000,.5,1\n",
        "",
        "1700000000000",
        "scores.csv line 2",
        "repair one of them",
    ),
    "a missing score": Mistake("score,label\nNaN,1\n", "", "'NaN'", "line 2", "drop the record"),
    "a comma before decimals": Mistake(
        'score,label\n"0,5",1\n', "", "'0,5'", "scores.csv line 2", "write a point"
    ),
    "percentages": Mistake(
        "score,label\n50,1\n", "--scores probability", "score 50.0", "line 2", "by 100"
    ),
    "no label that is positive": Mistake(
        GOOD, "--positive yes", "'yes'", "--positive", "count as 0. Labels found: 0, 1."
    ),
    "a positive label in other case": Mistake(
        "score,label\n.5,no\n.5,yes\n", "--positive Yes", "'Yes'", "--positive", "mean yes?"
    ),
    "an unknown zone": Mistake(
        GOOD, "--timezone Europe/Berln", "Europe/Berln", "--timezone", '"Europe/Berlin"'
    ),
    "a delay in words": Mistake(GOOD, "--delay 6hours", "6hours", "--delay", '"6h"'),
    "delays with semicolons": Mistake(GOOD, "--delays 0;50", "0;50", "--delays", "commas between"),
    "a misspelled calibrator": Mistake(
        GOOD, "--calibrator isotnic", "isotnic", "--calibrator", '"isotonic"?'
    ),
    "a misspelled comparison": Mistake(
        GOOD, "--compare ivap,plat", "'plat'", "--compare", "mean platt?"
    ),
    "a misspelled option": Mistake(GOOD, "--ouput x", "--ouput", "No such option", "--output"),
    "two rules of forgetting": Mistake(
        GOOD, "--window 5 --half-life 1d", "--window", "--half-life", "remove one"
    ),
    "a negative window": Mistake(GOOD, "--window -5", "-5", "--window", "at least 1"),
    "a coverage in percent": Mistake(
        GOOD, "--task regression --coverage 95", "95", "--coverage", "less than 1"
    ),
    "several classes": Mistake(
        GOOD, "--task multiclass", "multiclass", "--task", "write a configuration"
    ),
    "the input as output": Mistake(
        GOOD, "-o scores.csv", '"scores.csv"', "--output", "name another file"
    ),
    "an output of another kind": Mistake(
        GOOD, "-o out.xls", '"out.xls"', "--output", "end the name in .csv"
    ),
    "an output in no directory": Mistake(
        GOOD, "-o nowhere/out.csv", "nowhere/out.csv", "output", "create it first"
    ),
    "a report as PDF": Mistake(GOOD, "--report r.pdf", "r.pdf", "--report", ".html"),
}


@pytest.mark.parametrize("name", REPLAYS)
def test_replays(
    name: str, invoke: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay names the value, the place and the remedy, without a traceback."""
    mistake = REPLAYS[name]
    content = mistake.content
    data = content.encode() if isinstance(content, str) else content
    for file in ("scores.csv", "sales.xlsx"):
        (tmp_path / file).write_bytes(data)
    monkeypatch.setenv("COLUMNS", "300")
    words = mistake.words.split()
    own = bool(words) and not words[0].startswith("-")
    ran = invoke("replay", *([] if own else ["scores.csv"]), *words)
    assert (ran.code == 0) == (name == "no label that is positive")
    for part in mistake[2:]:
        assert part in ran.err
    assert "Traceback" not in ran.err


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
