"""Replays of files as people have them: two files, several classes, semicolons, percentages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet
import pytest

from abers import ParameterError, RecordError
from abers_connectors.replay.found_columns import find_columns
from abers_connectors.replay.options import ReplayOptions
from abers_connectors.replay.plan import plan_replay
from abers_connectors.replay.summary import summarize_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.connectors.conftest import Ran

    Invoke = Any

OUT = "out.jsonl"
MINUTE = 60_000
START = 1_000_000_000_000


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def replayed(stream: str, **given: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Replay a stream, and return its predictions."""
    plan = plan_replay(ReplayOptions(stream, output=OUT, **given))
    with plan.job.start() as running:
        for _ in running.run():
            pass
    return [msgspec.json.decode(line) for line in Path(OUT).read_bytes().splitlines()]


def losses_of(stream: str, **given: Any) -> Sequence[str]:  # noqa: ANN401
    """Replay a stream, and return the sentences on what it loses."""
    with plan_replay(ReplayOptions(stream, **given)).job.start() as running:
        for _ in running.run():
            pass
        return summarize_run(running, running.events, 1.0).losses


def write_two(predictions: str, labels: str) -> None:
    """Write a file of predictions, and a file of labels; # is the minute of a time."""
    for name, text in (("p.csv", predictions), ("l.csv", labels)):
        lines = [
            ",".join(
                str(START + int(cell[1:]) * MINUTE) if cell.startswith("#") else cell
                for cell in line.split(",")
            )
            for line in text.splitlines()
        ]
        Path(name).write_text("\n".join(lines))


def test_labels_of_a_second_file_come_at_their_times() -> None:
    """A label is joined by the id that both files have, and known from the time of its row on."""
    write_two(
        "id,time,score\na,#1,.2\nb,#2,.7\nc,#6,.9\nd,#9,.4\n",
        "outcome,settled_at,ID\n1,#5,a\n0,#7,b\n",
    )
    found = replayed("p.csv", labels="l.csv")
    assert [(one["id"], one["n_labels"]) for one in found] == [
        ("a", 0),
        ("b", 0),
        ("c", 1),
        ("d", 2),
    ]


def test_newest_rows_first_and_labels_that_are_not_known() -> None:
    """Both files are sorted, and a row without a label yet is skipped."""
    write_two(
        "id,time,score\nd,#9,.4\nc,#6,.9\nb,#2,.7\na,#1,.2\n",
        "id,time,label\nc,#8,\nb,#7,0\na,#5,1\n",
    )
    with pytest.warns(UserWarning, match="sorted by time"):
        found = replayed("p.csv", labels="l.csv")
    assert [(one["id"], one["n_labels"]) for one in found] == [
        ("a", 0),
        ("b", 0),
        ("c", 1),
        ("d", 2),
    ]


def test_columns_of_both_files_may_be_named() -> None:
    """--id names the id of both; --label and --label-time name columns of the second file."""
    write_two("key,at,p\na,#1,.2\nb,#5,.2\n", "key,at,seen,what\na,#1,#3,yes\n")
    columns = {"id": "key", "time": "at", "score": "p", "label": "what", "label_time": "seen"}
    found = replayed("p.csv", labels="l.csv", columns=columns, positive=["yes"])
    assert [one["n_labels"] for one in found] == [0, 1]


def test_labels_of_other_observations() -> None:
    """If no label has the id of an observation, one sentence says so, and what to compare."""
    write_two("id,time,score\na,#1,.2\nb,#2,.4\n", "id,time,label\nx,#3,1\ny,#4,0\n")
    (said,) = losses_of("p.csv", labels="l.csv")
    assert said == (
        "None of 2 labels has the id and model of an observation: compare both in the inputs, "
        "and name their columns if others are meant"
    )
    write_two("id,time,score\na,#1,.2\nb,#2,.4\n", "id,time,label\nx,#3,1\na,#4,0\n")
    assert not losses_of("p.csv", labels="l.csv")


def test_a_column_of_labels_that_is_not_read() -> None:
    """With a second file of labels, a column of labels in the first is not read, and that is said.

    The command that an error ends in does not take it for a time.
    """
    write_two("id,time,score,label\na,#1,.2,1\n", "id,time,label\na,#3,0\n")
    said = "Labels come from l.csv; column label of p.csv is not read."
    assert said in plan_replay(ReplayOptions("p.csv", labels="l.csv")).said.notes
    write_two("id,score,label\na,.2,1\n", "id,label\na,0\n")
    with pytest.raises(ParameterError, match=r"--time COLUMN --label-time COLUMN$"):
        replayed("p.csv", labels="l.csv")


@pytest.mark.parametrize(
    ("predictions", "labels", "message"),
    [
        (
            "customer,time,score\na,#1,.2\n",
            "customer,time,label\na,#1,1\n",
            r"no id column that both have; p.csv has the columns .*; l.csv has .* --id customer$",
        ),
        (
            "id,time,score\na,#1,.2\n",
            "id,when,label\na,#1,1\n",
            r"l.csv has no label time column; .* --labels l.csv --label-time when$",
        ),
        (
            "id,time,score\na,#1,.2\n",
            "id,label\na,1\n",
            (
                r"no label time column; l.csv has the columns id, label; without times, put the "
                r"labels into a column of p.csv, and say how late they are: abers replay p.csv "
                r"--delay 50$"
            ),
        ),
        ("id,time,score\na,#1,.2\n", "id,time,y2\na,#1,1\n", r"l.csv has no label column; .*"),
        (
            "id,score\na,.2\n",
            "id,time,label\na,#1,1\n",
            r"p.csv has no time column; .* --delay 50$",
        ),
        (
            "customer,when,p\na,#1,.2\n",
            "customer,at,truth,x\na,#1,1,2\n",
            (
                r"p.csv and l.csv have no id column that both have, and p.csv has no time column, "
                r"and l.csv has no label time column; p.csv has .*; l.csv has .*; .*; name them: "
                r"abers replay p.csv --labels l.csv --id customer --time when --label-time COLUMN$"
            ),
        ),
        (
            "id,time,chance\na,#1,.2\n",
            "id,time,came\na,#1,1\n",
            (
                r"p.csv has no score column, and l.csv has no label column; p.csv has .*; l.csv "
                r"has .*; name them: abers replay p.csv --labels l.csv --score chance --label came$"
            ),
        ),
    ],
)
def test_two_files_that_do_not_fit(predictions: str, labels: str, message: str) -> None:
    """A column that a file lacks is an error that lists its columns, and the command to copy."""
    write_two(predictions, labels)
    with pytest.raises(ParameterError, match=message):
        plan_replay(ReplayOptions("p.csv", labels="l.csv"))


def test_labels_with_times_have_no_delay() -> None:
    """A delay of labels that have times is an error, not ignored."""
    write_two("id,time,score\na,#1,.2\n", "id,time,label\na,#1,1\n")
    with pytest.raises(ParameterError, match="--delay does not go with --labels"):
        plan_replay(ReplayOptions("p.csv", labels="l.csv", delay="5"))


def test_several_classes() -> None:
    """A column of scores for each class makes a task of these classes, with probabilities."""
    Path("m.csv").write_text(
        "p_low,p_mid,p_high,class\n.2,.3,.5,high\n.6,.3,.1,low\n.6,.3,.1,mid\n"
    )
    asked = ReplayOptions("m.csv", "0", columns={"score": "low=p_low, mid=p_mid,high=p_high"})
    plan = plan_replay(asked)
    settings = plan.job.settings
    assert (settings.task, settings.classes) == ("multiclass", ("low", "mid", "high"))
    assert settings.scores == "probability"
    assert plan.said.columns == (
        "scores low = p_low, mid = p_mid, high = p_high (probabilities), label = class, "
        "id = row number, time = row number"
    )
    found = replayed("m.csv", delay="0", columns=asked.columns)
    assert found[0]["score"] == {"low": 0.2, "mid": 0.3, "high": 0.5}
    assert [one["n_labels"] for one in found] == [0, 1, 2]


def test_scores_of_classes_that_are_no_probabilities() -> None:
    """Scores of classes that do not sum to 1 are any numbers."""
    Path("m.csv").write_text("a,b,label\n.9,.9,x\n")
    plan = plan_replay(ReplayOptions("m.csv", columns={"score": "x=a,y=b"}))
    assert plan.job.settings.scores == "any"


def test_classes_without_their_columns() -> None:
    """--task multiclass alone is an error that says how to write it."""
    Path("m.csv").write_text("a,b,label\n.9,.9,x\n")
    with pytest.raises(ParameterError, match="--score low=p_low,mid=p_mid,high=p_high"):
        plan_replay(ReplayOptions("m.csv", task="multiclass"))


def test_a_column_with_an_equals_sign_is_a_column() -> None:
    """One pair names no classes, so it is the name of a column."""
    Path("m.csv").write_text("p=1,label\n.9,1\n")
    found = find_columns(ReplayOptions("m.csv", columns={"score": "p=1"}))
    assert found.fields["score"] == "p=1"


MIXED = {
    "s.jsonl": (
        '{"id": "a", "time": 1, "score": 0.8}\n{"id": "b", "time": 2, "score": 0.3}\n'
        '{"id": "a", "time": 3, "label": 1}\n{"id": "c", "time": 4, "score": 0.6}\n'
        '{"id": "b", "time": 5, "label": 0}\n{"id": "d", "time": 6, "score": 0.9}\n'
    ),
    "s.csv": "id,time,score,label\na,1,.8,\nb,2,.3,\na,3,,1\nc,4,.6,\nb,5,,0\nd,6,.9,\n",
}


@pytest.mark.parametrize("name", MIXED)
def test_labels_in_rows_of_their_own(name: str) -> None:
    """Scores and labels in one file are read as they came, and a note says so."""
    Path(name).write_text(MIXED[name])
    found = replayed(name)
    assert [(one["id"], one["n_labels"]) for one in found] == [
        ("a", 0),
        ("b", 0),
        ("c", 1),
        ("d", 2),
    ]
    plan = plan_replay(ReplayOptions(name))
    assert plan.said.notes == [f"{name} has labels in rows of their own, and is read in its order."]
    assert plan.job.settings.scores == "probability"
    Path("s.toml").write_text(
        f"[task]\nscores = 'probability'\n[input]\nobservations = '{name}'\n"
        "[output]\npredictions = 'run.jsonl'\n"
    )
    assert replayed("s.toml") == found


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        (MIXED["s.csv"], {"delay": "5"}, "--delay does not go with labels in rows of their own"),
        ("time,score,label\n1,.8,\n2,,1\n", {}, "the file has no id column; .* --id COLUMN$"),
    ],
)
def test_mistakes_with_rows_of_labels(content: str, given: dict[str, Any], message: str) -> None:
    """Labels in rows of their own have no delay, and are joined by ids that the file must have."""
    Path("s.csv").write_text(content)
    with pytest.raises(ParameterError, match=message):
        plan_replay(ReplayOptions("s.csv", **given))


def _csv(id_: str, time: int, score: object = "", label: object = "") -> str:
    return f"{id_},{time},{score},{label}\n"


def _json(id_: str, time: int, **more: object) -> str:
    return f"{msgspec.json.encode({'id': id_, 'time': time, **more}).decode()}\n"


LOGS: dict[str, tuple[str, Callable[..., str]]] = {
    "log.csv": ("id,time,score,label\n", _csv),
    "log.jsonl": ("", _json),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_row_with_both_where_labels_have_rows(name: str) -> None:
    """After rows of either kind, one with a score and a label is bad, since its label is lost."""
    head, row = LOGS[name]
    of_scores = [row(f"{n}", n, score=0.5) for n in range(150)]
    of_labels = [row(f"{n}", n, label=1) for n in range(150)]
    log = [row for pair in zip(of_scores, of_labels, strict=True) for row in pair]
    Path(name).write_text(head + "".join([*log, row("both", 400, score=0.5, label=1)]))
    place = f"{name} line {len(log) + bool(head) + 1}"
    with pytest.raises(RecordError, match=f"{place}: .* labels have records of their own here;"):
        replayed(name)


@pytest.mark.parametrize("late", [150, 300])
@pytest.mark.parametrize("name", LOGS)
def test_labels_that_begin_after_many_rows(name: str, late: int) -> None:
    """However many observations come before the first label, labels have rows of their own."""
    head, row = LOGS[name]
    at = [(n, row(f"{n}", n, score=0.5)) for n in range(300)]
    at += [(n + late, row(f"{n}", n + late, label=n % 2)) for n in range(300)]
    Path(name).write_text(head + "".join(text for _, text in sorted(at, key=lambda one: one[0])))
    found = replayed(name)
    assert [one["n_labels"] for one in found] == [max(0, n - late) for n in range(300)]


def bytes_read() -> int:
    """Return how many bytes this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_the_first_label_is_looked_for_once() -> None:
    """A plan reads a file once for its columns and the first label, wherever that is."""
    observations = [f"a{n},{n},.5,\n" for n in range(200_000)]
    Path("in.csv").write_text("id,time,score,label\n" + "".join(observations) + "a0,200000,,1\n")
    before = bytes_read()
    (note,) = plan_replay(ReplayOptions("in.csv")).said.notes
    assert "labels in rows of their own" in note
    # Modules are loaded too, and the first rows are read for other reasons.
    assert bytes_read() - before < 2.5 * Path("in.csv").stat().st_size


def test_fields_that_begin_after_many_records() -> None:
    """A field of JSON is found where the first records lack it."""
    rows = [{"score": 0.5} | ({"label": n % 2} if n >= 120 else {}) for n in range(200)]
    Path("s.jsonl").write_text("".join(msgspec.json.encode(one).decode() + "\n" for one in rows))
    assert len(replayed("s.jsonl")) == 200
    with pytest.raises(ParameterError, match=r"no column y; .* the columns score, label"):
        replayed("s.jsonl", columns={"label": "y"})


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_words_for_no_value_in_a_log(name: str) -> None:
    """NaN is no score of a label, and neither NaN nor NA is a label of an observation."""
    ids, times = [*"aabb"], [1, 2, 3, 4]
    if name == "s.csv":
        rows = "a,1,.8,NA\na,2,,1\nb,3,.6,n/a\nb,4,,0\n"
        Path(name).write_text(f"id,time,score,label\n{rows}")
    else:
        columns = {"score": [0.8, math.nan, 0.6, math.nan], "label": [math.nan, 1.0, math.nan, 0.0]}
        pyarrow.parquet.write_table(pyarrow.table({"id": ids, "time": times} | columns), name)
    assert [(one["id"], one["n_labels"]) for one in replayed(name)] == [("a", 0), ("b", 1)]


ROWS = (".8,1", ",1", ".3,0")


def test_one_empty_score() -> None:
    """A row without a score, in a file whose other rows have a score and a label, is bad itself."""
    for first in ("", "id,"):
        rows = [f"{'abc'[at] + ',' if first else ''}{at},{one}\n" for at, one in enumerate(ROWS)]
        Path("s.csv").write_text(f"{first}time,score,label\n{''.join(rows)}")
        with pytest.raises(RecordError, match=r's\.csv line 3: the record has no "score"'):
            replayed("s.csv")


def test_an_empty_column_of_scores() -> None:
    """Rows without ids are no labels of others: the column of scores is what is missing."""
    Path("s.csv").write_text("time,score,label\n1,,1\n2,,0\n")
    with pytest.raises(RecordError, match=r's\.csv line 2: the record has no "score"'):
        replayed("s.csv")


TWO_MODELS = (
    "id,time,score,model\na,#1,.2,x\nb,#2,.7,y\nc,#6,.9,x\nc,#6,.4,y\nd,#9,.4,x\ne,#9,.6,y\n"
)


@pytest.mark.parametrize("asked", [{}, {"models": ["x"]}, {"workers": 2}])
def test_labels_without_the_model(asked: dict[str, Any]) -> None:
    """A label that names no model counts for each model that predicted its id, early or late."""
    labels = ["a,#3,0", "d,#4,1", "b,#5,1", "c,#7,1", "gone,#8,0", "e,#10,1"]
    of = {"a": "x", "b": "y", "c": "xy", "d": "x", "e": "y", "gone": "z"}
    write_two(TWO_MODELS, "id,time,label\n" + "".join(f"{one}\n" for one in labels))
    found = replayed("p.csv", labels="l.csv", **asked)
    named = [f"{one},{model}\n" for one in labels for model in of[one[: one.index(",")]]]
    write_two(TWO_MODELS, "id,time,label,model\n" + "".join(named))
    assert found == replayed("p.csv", labels="l.csv", **asked)
    assert max(one["n_labels"] for one in found) == 2


def test_labels_without_the_model_are_noted() -> None:
    """A note says for which models a label counts."""
    write_two(TWO_MODELS, "id,time,label\na,#3,0\n")
    plan = plan_replay(ReplayOptions("p.csv", labels="l.csv"))
    note = "l.csv names no model: a label counts for each model that predicted its id."
    assert note in plan.said.notes


def test_model_and_segment_may_be_named() -> None:
    """The columns of model and segment have options too."""
    Path("m.csv").write_text("carrier,place,score,label\nUA,x,.9,1\n")
    (found,) = replayed("m.csv", columns={"model": "carrier", "segment": "place"})
    assert (found["model"], found["segment"]) == ("UA", "x")


GERMAN = "Kunde;score;label\na;0,5;1\nb;0,25;0\n"


def test_semicolons_and_decimal_commas() -> None:
    """A file of a German spreadsheet is read as it is, and a note says what was seen."""
    Path("s.csv").write_text(GERMAN)
    assert [one["score"] for one in replayed("s.csv")] == [0.5, 0.25]
    notes = plan_replay(ReplayOptions("s.csv")).said.notes
    assert "Decimals follow a comma; if not, add --decimal ." in notes
    assert not any(
        one.startswith("Decimals")
        for one in plan_replay(ReplayOptions("s.csv", decimal=",")).said.notes
    )


@pytest.mark.parametrize("word", ["\t", "\\t", "tab"])
def test_a_delimiter_may_be_named(word: str) -> None:
    """A tab may be written in the ways that a shell passes on."""
    Path("s.csv").write_text("score\tlabel,y\n.5\t1\n")
    columns = {"label": "label,y"}
    (found,) = replayed("s.csv", delimiter=word, columns=columns)
    assert found["score"] == 0.5


@pytest.mark.parametrize("cells", [["36.5", "40"], ["36.5%", "40 %"]])
def test_percentages(cells: list[str]) -> None:
    """Percentages become probabilities once, as they are read."""
    Path("p.csv").write_text("score,label\n" + "".join(f"{one},1\n" for one in cells))
    plan = plan_replay(ReplayOptions("p.csv", scores="percent"))
    assert plan.job.settings.scores == "probability"
    assert plan.said.columns is not None
    assert plan.said.columns.startswith("score = score (per cent), ")
    assert [one["score"] for one in replayed("p.csv", scores="percent")] == [0.365, 0.4]


def test_percentages_of_classes() -> None:
    """Percentages of several classes become probabilities too."""
    Path("m.csv").write_text("a,b,label\n25,75,x\n")
    (found,) = replayed("m.csv", scores="percent", columns={"score": "x=a,y=b"})
    assert found["score"] == {"x": 0.25, "y": 0.75}


CONFIG = """
task.scores = "any"
input = {observations = "in.csv", delay = 1, timezone = "UTC"}
output.predictions = "none.jsonl"
calibrator.window = 5
"""


def test_a_flag_beats_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option that a configuration has a key for beats the environment, which beats it."""
    Path("in.csv").write_text(
        "id,time,score,y\na,2013-04-01 05:00:00,50,1\nb,2013-04-01 06:00:00,25,0\n"
    )
    Path("abers.toml").write_text(CONFIG)
    monkeypatch.setenv("ABERS_INPUT__DELAY", "7")
    found = replayed(
        "abers.toml",
        delay="0",
        timezone="Europe/Berlin",
        scores="percent",
        columns={"label": "y"},
        forgetting={"window": 9},
    )
    assert [(one["time"], one["n_labels"], one["score"]) for one in found] == [
        (1_364_785_200_000, 0, 0.5),
        (1_364_788_800_000, 1, 0.25),
    ]
    plan = plan_replay(ReplayOptions("abers.toml", columns={"label": "y"}, timezone="UTC"))
    assert plan.job.settings.window == 5


def test_a_flag_that_topics_have_no_use_for(invoke: Invoke) -> None:
    """An option beats a key of topics too, and is an error where the key would be one."""
    Path("k.toml").write_text(
        "[kafka]\nbootstrap_servers = 'h:1'\nobservations = 'o'\npredictions = 'p'\n"
    )
    ran: Ran = invoke("replay", "k.toml", "--delay", "5")
    assert (ran.code, ran.out) == (2, "")
    assert "--delay: applies only to files" in ran.err


def test_predictions_are_not_written_unasked(invoke: Invoke) -> None:
    """Standard output has the answers; with --output - it has the predictions alone."""
    Path("s.csv").write_text(GERMAN)
    ran: Ran = invoke("replay", "s.csv")
    assert '"score"' not in ran.out
    assert "Calibrated" in ran.out
    ran = invoke("replay", "s.csv", "--output", "-")
    assert [msgspec.json.decode(line)["score"] for line in ran.out.splitlines()] == [0.5, 0.25]


def test_notes_are_not_printed_before_an_error(invoke: Invoke) -> None:
    """An error stands alone: what is wrong, where, what to do, and nothing on columns."""
    Path("s.csv").write_text("score,label\n.5,1\nhigh,0\n")
    ran: Ran = invoke("replay", "s.csv")
    assert ran.err.splitlines() == [
        "error: score 'high' is not a finite number",
        "  s.csv line 3",
        "  drop the record or repair the model's output",
    ]
    assert ran.out == ""
