"""Replays of a dataset or a file without a configuration: options, columns, predictions."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from abers import ParameterError, RecordError, VennAbers
from abers_connectors.replay.found_columns import find_columns
from abers_connectors.replay.options import ReplayOptions
from abers_connectors.replay.plan import plan_replay

if TYPE_CHECKING:
    from abers_connectors.replay.job import Job

Rows = list[tuple[float, int]]
ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), st.integers(0, 1)),
    min_size=1,
    max_size=30,
)
CONTENT = "id,time,score,label,more\na,5,0.25,0,x\nb,6,0.75,1,y\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small file of scores, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text(CONTENT)
    return Path("scores.csv")


def job(
    stream: str = "scores.csv",
    delay: int = 0,
    **asked: Any,  # noqa: ANN401 - those of `ReplayOptions`
) -> Job:
    """Return the job of a stream whose predictions go to a file."""
    return plan_replay(ReplayOptions(stream, str(delay), "out.jsonl", **asked)).job


def predictions(given: Job) -> list[dict[str, Any]]:
    """Run a job, and return its predictions."""
    with given.start() as running:
        for _ in running.run():
            pass
    lines = Path(given.outputs["predictions"]).read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def test_variables_are_for_a_configuration(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of a key does nothing for a file, and a warning names the flag instead."""
    monkeypatch.setenv("ABERS_CALIBRATOR__WINDOW", "1")
    with pytest.warns(UserWarning, match="WINDOW: only a configuration reads it; here add --wi"):
        assert job(str(file)).settings.window is None


def test_a_name_is_a_bundled_stream() -> None:
    """A name without a suffix is a river dataset, scored by a learner."""
    given = plan_replay(ReplayOptions("Phishing", "50", "-", forgetting={"window": "7"})).job
    assert given.source.name == "Phishing"
    assert given.settings.learner == "logistic"
    assert given.settings.scores == "probability"
    assert given.settings.window == 7
    assert given.outputs == {"predictions": "-"}


@pytest.mark.parametrize(
    ("name", "task", "learner", "scores", "distributions"),
    [
        ("Bananas", "binary", "logistic", "probability", "none"),
        ("ImageSegments", "multiclass", "softmax", "probability", "none"),
        ("TrumpApproval", "regression", "linear", "any", "scored"),
    ],
)
def test_a_bundled_stream_knows_its_task(
    name: str, task: str, learner: str, scores: str, distributions: str
) -> None:
    """Task, classes and learner are those of the stream, and distributions are scored."""
    given = job(name).settings
    assert (given.task, given.learner, given.scores) == (task, learner, scores)
    assert given.distributions == distributions
    assert len(given.classes) == 7 * (task == "multiclass")
    assert job(name, learner="tree").settings.learner == "tree"


def test_distributions_are_written_on_request() -> None:
    """With the option each prediction has its whole distribution; without it quantiles."""
    given = job("ChickWeights", distributions=True)
    assert given.settings.distributions == "full"


def test_a_support_goes_into_the_settings() -> None:
    """The ends that the option names are those of the settings."""
    given = job("ChickWeights", calibrator="protected", support=("0", "400"))
    assert given.settings.support == (0.0, 400.0)
    assert given.settings.coverage is None


def test_a_coverage_goes_into_the_settings() -> None:
    """The level that the option names is that of the settings."""
    given = job("ChickWeights", calibrator="protected", support=("0", "400"), coverage="0.8")
    assert given.settings.coverage == 0.8


def test_labels_of_a_file_are_as_given(file: Path) -> None:
    """Labels 0 and 1 are classes, unless the task says that they are numbers."""
    assert job(file.name).settings.task == job(file.name, task="binary").settings.task == "binary"
    given = job(file.name, task="regression")
    assert (given.settings.task, given.settings.distributions) == ("regression", "scored")
    first, second = predictions(given)
    assert (first["mean"], second["mean"]) == (None, 0.0)
    assert second["quantiles"]["0.5"] == 0.0


@pytest.mark.parametrize(
    ("content", "declared", "scores"),
    [
        (CONTENT, None, "probability"),
        (CONTENT, "any", "any"),
        (CONTENT.replace("0.75", "1.5"), None, "any"),
        (CONTENT.replace("0.75", "nonsense"), None, "any"),
    ],
)
def test_a_path_is_a_file(file: Path, content: str, declared: str | None, scores: str) -> None:
    """A path is a file, whose scores are probabilities if they lie in [0, 1], unless declared."""
    file.write_text(content)
    given = job(file.name, scores=declared)
    assert given.source.name == "scores.csv"
    assert (given.settings.learner, given.settings.scores) == (None, scores)
    assert given.state is None
    assert given.limit.stop


@pytest.mark.parametrize("option", ["score", "label", "id", "time"])
def test_columns_do_not_go_with_a_bundled_stream(option: str) -> None:
    """An option for files is refused for a built-in dataset, not ignored."""
    with pytest.raises(ParameterError, match=f"--{option} is for files; Phishing is scored by"):
        job("Phishing", columns={option: "x"})


def test_a_declaration_does_not_go_with_a_bundled_stream() -> None:
    """The kind of the scores is refused too, since a learner's are probabilities."""
    with pytest.raises(ParameterError, match="--scores is for files"):
        job("Phishing", scores="probability")


@pytest.mark.parametrize(
    ("stream", "asked", "message"),
    [
        ("scroes.csv", {}, r"scroes\.csv: no such file; did you mean scores\.csv\?"),
        ("no/such/scores.csv", {}, r"^no/such/scores\.csv: no such file$"),
        ("./.", {}, "no such data set|is a directory"),
        ("../folder.csv", {}, "is a directory; name a CSV, JSON Lines or Parquet file in it"),
        ("scores.txt", {}, r"scores\.txt: unknown kind of file; abers knows \.csv"),
        ("phising", {}, r"Bananas, .*Phishing, .* mean Phishing\?"),
        ("scores.csv", {"learner": "tree"}, "--learner is for data sets"),
        ("Phishing", {"learner": "tre"}, r'--learner: tre: no such learner.*did you mean "tree"\?'),
        (
            "WaterFlow",
            {"learner": "logistic"},
            "--learner: logistic: no such .* forest, linear, tree",
        ),
        ("ImageSegments", {"learner": "logistic"}, "--learner: logistic knows two classes only"),
        ("Phishing", {"task": "binary"}, "--task is for files; Phishing is scored by its learner"),
        (
            "Phishing",
            {"distributions": True},
            '--distributions: applies only to the task "regression"',
        ),
        (
            "scores.csv",
            {"distributions": True},
            '--distributions: applies only to the task "regression"',
        ),
        ("Phishing", {"support": (0.0, 1.0)}, '--support: applies only to the task "regression"'),
        ("Phishing", {"coverage": "0.8"}, '--coverage: applies only to the task "regression"'),
        (
            "ChickWeights",
            {"coverage": "0.8", "forgetting": {"half_life": "1d"}},
            "--coverage: has no promise with unequal weights; forget by --window",
        ),
        (
            "scores.csv",
            {"task": "regression", "calibrator": "protected"},
            '--support: "protected" needs the ends of all labels',
        ),
        (
            "scores.csv",
            {"task": "multiclass"},
            "--task multiclass needs a column of scores for each",
        ),
        ("scores.csv", {"task": "regresion"}, '--task: .*did you mean "regression"'),
        (
            "scores.csv",
            {"task": "regression", "scores": "probability"},
            "--scores probability is for labels 0 and 1",
        ),
        ("Phishing", {"forgetting": {"window": 0}}, "^--window: 0 is too small"),
        ("scores.csv", {"forgetting": {"max_age": "5x"}}, '^--max-age: "5x" is not a duration'),
        (
            "scores.csv",
            {"forgetting": {"window": 5, "half_life": "5s"}},
            "^--half-life: cannot be combined with --window",
        ),
        ("scores.csv", {"output": "scores.csv"}, '^--output: "scores.csv" is the input already'),
        ("scores.csv", {"output": "out.txt"}, '^--output: "out.txt" has an unknown format'),
        ("Phishing", {"output": "out.txt"}, '^--output: "out.txt" has an unknown format'),
    ],
)
def test_mistakes(file: Path, stream: str, asked: dict[str, Any], message: str) -> None:
    """Each is reported in the words of the command, before anything is written."""
    Path("scores.txt").write_text("")
    Path("../folder.csv").mkdir(exist_ok=True)
    with pytest.raises(ParameterError, match=message):
        plan_replay(ReplayOptions(stream, "0", **{"output": "out.jsonl", **asked}))
    assert sorted(path.name for path in file.parent.iterdir()) == ["scores.csv", "scores.txt"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {},
            r"the file has no score column; .* columns id, scores, label; .* --score scores$",
        ),
        ({"score": "sorces"}, r"no column sorces; .* columns .* --score scores$"),
        ({"score": "scores", "id": "key"}, r"no column key; .* --score scores --id id$"),
        ({"score": "scores", "time": "when"}, r"no column when; .* --time COLUMN$"),
        ({"score": "scores", "label": "a.b"}, r"no column a\.b; .* --label label$"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_column_that_is_not_there(
    tmp_path: Path, columns: dict[str, str], message: str, suffix: str
) -> None:
    """The columns there are listed, and the option that names the right one."""
    content = {"csv": "id,scores,label\na,0.5,1\n", "jsonl": '{"id":"a","scores":0.5,"label":1}\n'}
    (tmp_path / f"f.{suffix}").write_text(content[suffix])
    with pytest.raises(ParameterError, match=message):
        job(str(tmp_path / f"f.{suffix}"), columns=columns)


@pytest.mark.parametrize("content", ["", "score,label\n", "score,label\n\n\n"])
def test_a_file_without_a_record(file: Path, content: str) -> None:
    """The message says what is missing."""
    file.write_text(content)
    with pytest.raises(RecordError, match=r"scores\.csv has no observation; it needs a row"):
        job()


def test_ids_and_times_default_to_the_record(file: Path) -> None:
    """Without such columns the number of the record is both, across blank lines."""
    file.write_text("score,label\n0.5,1\n\n0.6,0\n")
    found = predictions(job())
    assert [(one["id"], one["time"]) for one in found] == [("1", 1), ("2", 2)]


def test_columns_of_those_names_are_taken(file: Path) -> None:
    """Columns named id, time and model are used as such."""
    file.write_text("id,time,model,score,label\na,5,x,0.25,0\nb,6,y,0.75,1\nc,7,y,0.75,1\n")
    found = predictions(job())
    assert [(one["id"], one["time"], one["model"], one["n_labels"]) for one in found] == [
        ("a", 5, "x", 0),
        ("b", 6, "y", 0),
        ("c", 7, "y", 1),
    ]


@pytest.mark.parametrize(
    "header", ["ID,Time,MODEL,Prob,LABEL,Segment", "id,ts,Model_Name,p,y,segment"]
)
def test_all_columns_are_found_by_one_rule(file: Path, header: str) -> None:
    """Case does not matter in the name of any column, that of the model and segment included."""
    file.write_text(f"{header}\na,5,x,0.25,0,s\nb,6,y,0.75,1,t\n")
    found = predictions(job())
    assert [(one["id"], one["time"], one["model"], one["segment"]) for one in found] == [
        ("a", 5, "x", "s"),
        ("b", 6, "y", "t"),
    ]
    fields = ("id", "time", "model", "score", "label", "segment")
    names = dict(zip(fields, header.split(","), strict=True))
    assert find_columns(ReplayOptions("scores.csv")).fields == names
    said = plan_replay(ReplayOptions("scores.csv")).said.columns
    assert said is not None
    assert said.endswith(f"model = {names['model']}, segment = {names['segment']}")


def test_the_exact_name_wins(file: Path) -> None:
    """Of two columns whose names differ in case, the exact one is taken."""
    file.write_text("id,time,Model,model,Score,score,label\na,5,x,y,0.25,0.5,0\n")
    (found,) = predictions(job())
    assert (found["model"], found["score"]) == ("y", 0.5)


def test_two_columns_of_one_meaning_are_an_error(file: Path) -> None:
    """Without the exact name, the message names both."""
    file.write_text("id,time,Model,MODEL,score,label\na,5,x,y,0.25,0\n")
    with pytest.raises(ParameterError, match="columns Model and MODEL both may be the model; ren"):
        job()


def test_a_column_that_was_named_is_taken_once(file: Path) -> None:
    """A column that an option names is not also that of another field."""
    file.write_text("segment,time,score,label\na,5,0.25,0\n")
    (found,) = predictions(job(columns={"id": "segment"}))
    assert (found["id"], found.get("segment")) == ("a", None)


def test_a_column_of_models_may_be_the_segment(file: Path) -> None:
    """A column that an option names as the segment is not the model, too."""
    file.write_text("model,time,score,label\na,5,0.25,0\n")
    (found,) = predictions(job(columns={"segment": "model"}))
    assert (found["model"], found["segment"]) == ("default", "a")


@pytest.mark.usefixtures("file")
def test_a_model_in_the_path_is_found() -> None:
    """A folder of a data set names the column of the model in any case."""
    for model in "xy":
        folder = Path("data", f"Model={model}")
        folder.mkdir(parents=True)
        row = {"ID": [f"of {model}"], "Time": [5], "Prob": [0.5], "Label": [1]}
        parquet.write_table(pa.table(row), folder / "part.parquet")
    found = predictions(job("data"))
    assert {one["id"]: one["model"] for one in found} == {"of x": "x", "of y": "y"}


def test_columns_may_be_named(file: Path) -> None:
    """Any column can be the score, the label, the id or the time; a path leads into JSON."""
    file.write_text("key,when,p,y,id\nk,9,0.5,1,other\n")
    columns = {"id": "key", "time": "when", "score": "p", "label": "y"}
    (found,) = predictions(job(columns=columns))
    assert (found["id"], found["time"], found["score"]) == ("k", 9, 0.5)
    Path("deep.jsonl").write_text('{"a": {"score": 0.5}, "label": 1}\n')
    (found,) = predictions(job("deep.jsonl", columns={"score": "a.score"}))
    assert found["score"] == 0.5


def test_a_pipe_is_not_looked_into(file: Path) -> None:
    """All fields of a pipe must exist or be named, since it can be read only once."""
    os.mkfifo(file.with_name("pipe.csv"))
    given = job("pipe.csv", columns={"id": "row", "time": "row"})
    assert given.source.name == "pipe.csv"


def test_labels_wait_however_long_it_takes(file: Path) -> None:
    """A delay is a number of observations, so nothing expires in between."""
    year = 365 * 86_400_000
    file.write_text(
        "time,score,label\n" + "".join(f"{10**12 + n * year},0.5,1\n" for n in range(1, 9))
    )
    assert [one["n_labels"] for one in predictions(job(delay=3))] == [0, 0, 0, 0, 1, 2, 3, 4]


def test_as_many_wait_as_the_delay_says() -> None:
    """The limits of pending observations and of their bytes grow with the delay."""
    assert job("Phishing", delay=5).settings.max_bytes == 1 << 29
    waiting = job("Phishing", delay=5_000_000).settings
    assert (waiting.max_pending, waiting.max_bytes) == (5_000_001, 10**10)
    assert job("Phishing", delay=5_000_000_000).settings.max_pending == 2**31 - 1


def venn_abers(bag: Rows, score: float) -> tuple[float, float]:
    """Return p0 and p1 by the definition, in fractions."""
    weights: dict[float, int] = defaultdict(int)
    positives: dict[float, int] = defaultdict(int)
    for s, label in bag:
        weights[s] += 1
        positives[s] += label
    points = [(0, 0)]
    for s in sorted(weights):
        points.append((points[-1][0] + weights[s], points[-1][1] + positives[s]))
    before = sum(s < score for s in weights)
    until = sum(s <= score for s in weights)
    p0, p1 = (
        max(
            min(Fraction(y_c - y_a + y, w_c - w_a + 1) for w_c, y_c in points[until:])
            for w_a, y_a in points[: before + 1]
        )
        for y in (0, 1)
    )
    return float(p0), float(p1)


def naive(rows: Rows, delay: int, window: int | None) -> list[dict[str, Any]]:
    """Return the predictions of a naive loop."""
    bag: Rows = []
    records = []
    for i, (score, _) in enumerate(rows):
        p0, p1 = venn_abers(bag, score)
        p = p1 / (1.0 - p0 + p1)
        number = i + 1
        record = {"v": 1, "id": str(number), "time": number, "model": "default", "score": score}
        records.append(record | {"p0": p0, "p1": p1, "p": p, "n_labels": len(bag)})
        if i >= delay:
            bag = [*bag, rows[i - delay]][-(window or 0) :]
    return records


@given(ROWS, st.integers(0, 8), st.none() | st.integers(1, 5))
def test_equals_the_naive_loop(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, delay: int, window: int | None
) -> None:
    """Every field of every prediction, and their order, is that of the naive loop."""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "in.csv").write_text("score,label\n" + "".join(f"{s},{y}\n" for s, y in rows))
    forgetting = {} if window is None else {"window": str(window)}
    output = str(folder / "out.jsonl")
    asked = ReplayOptions(
        str(folder / "in.csv"), str(delay), output, forgetting=forgetting, scores="any"
    )
    found = predictions(plan_replay(asked).job)
    expected = naive(rows, delay, window)
    assert found == expected
    assert [list(one) for one in found] == [list(one) for one in expected]
    if window is None:
        scores, labels = np.array(rows, dtype=float).reshape(-1, 2).T
        p0, p1 = VennAbers().prequential(scores, labels, delay=delay)
        assert [(one["p0"], one["p1"]) for one in found] == list(zip(p0, p1, strict=True))


TIMED = """flight,Timestamp,settled_at,y_prob,target
a,2013-04-01 05:00:00,2013-04-01 05:00:00,0.25,fine
b,2013-04-01 06:00:00,2013-04-01 08:30:00,0.75,late
c,2013-04-01 07:00:00,2013-04-01 07:30:00,0.5,late
d,2013-04-01 08:00:00,2013-04-01 09:00:00,0.5,fine
e,2013-04-01 09:00:00,2013-04-01 09:00:00,0.5,fine
"""


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_label_times_of_a_file_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Columns are found by their usual names, and a label comes at its own time."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(TIMED)
    table = pyarrow.csv.read_csv("in.csv")
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, "in.parquet")
    if suffix == ".jsonl":
        lines = (json.dumps(row, default=str) for row in table.to_pylist())
        Path("in.jsonl").write_text("\n".join(lines))
    asked = ReplayOptions(
        f"in{suffix}", output="out.jsonl", positive=["late"], timezone="Europe/Berlin"
    )
    assert find_columns(asked).fields == {
        "score": "y_prob",
        "label": "target",
        "id": "row",
        "time": "Timestamp",
        "label_time": "settled_at",
    }
    found = predictions(plan_replay(asked).job)
    # The label of the third row comes first, and is taught after that of the second.
    assert [one["n_labels"] for one in found] == [0, 1, 1, 1, 4]
    assert found[0]["time"] == 1_364_785_200_000  # 05:00 of Berlin's summer is 03:00 of UTC


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_label_times_in_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Plain columns, which are read as columns, give the same as those read by row."""
    monkeypatch.chdir(tmp_path)
    rows = [("a", 5, 5, 0.25, 0), ("b", 6, 8, 0.75, 1), ("c", 7, 7, 0.5, 1), ("d", 8, 9, 0.5, 0)]
    names = ["id", "time", "label_time", "score", "label"]
    table = pyarrow.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, "in.parquet")
    elif suffix == ".csv":
        pyarrow.csv.write_csv(table, "in.csv")
    else:
        Path("in.jsonl").write_text("\n".join(map(json.dumps, table.to_pylist())))
    found = predictions(plan_replay(ReplayOptions(f"in{suffix}", output="out.jsonl")).job)
    assert [(one["id"], one["n_labels"]) for one in found] == [
        ("a", 0),
        ("b", 1),
        ("c", 1),
        ("d", 3),
    ]


def test_a_delay_beats_the_label_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delay is used in place of a column that was only found; with a named one it is an error."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(TIMED)
    asked = ReplayOptions("in.csv", "0", "out.jsonl", positive=["late"], timezone="UTC")
    assert [one["n_labels"] for one in predictions(plan_replay(asked).job)] == [0, 1, 2, 3, 4]
    named = asked._replace(columns={"label_time": "settled_at"})
    with pytest.raises(ParameterError, match="--delay does not go with a column of label times"):
        plan_replay(named)


def test_a_label_before_its_observation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that is known before its observation is a bad record, which says so."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("time,label_time,score,label\n5,5,0.5,1\n6,4,0.5,0\n")
    with pytest.raises(RecordError, match="line 3: label_time, the label's time, is 0"):
        predictions(plan_replay(ReplayOptions("in.csv", output="out.jsonl")).job)


def test_blanks_around_the_names_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header with blanks after its commas has the names without them."""
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("id, time, score, label\na, 5, 0.5, 1\nb, 6, .2, true\n")
    found = predictions(plan_replay(ReplayOptions("in.csv", "0", "out.jsonl")).job)
    assert [(one["id"], one["time"], one["score"]) for one in found] == [
        ("a", 5, 0.5),
        ("b", 6, 0.2),
    ]


def test_a_label_time_without_a_time(file: Path) -> None:
    """The only column of times is not that of labels: observations would have row numbers."""
    del file
    asked = ReplayOptions("scores.csv", columns={"label_time": "time"})
    with pytest.raises(ParameterError, match=r"--label-time time: scores\.csv has no other column"):
        plan_replay(asked)


def test_standard_input_needs_a_configuration() -> None:
    """The name for standard input is not taken for a file."""
    with pytest.raises(ParameterError, match="standard input needs a configuration"):
        plan_replay(ReplayOptions("-"))
