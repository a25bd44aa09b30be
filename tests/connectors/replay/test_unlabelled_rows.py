"""Rows whose labels are not known yet: predicted, counted and named, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.connectors.sources.lakes import local_catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

START, MINUTE = 1_772_323_200_000, 60_000
ROWS, KNOWN = 60, 50
SENTENCE = "10 rows have no label yet: they are predicted, but not scored."
CONFIG = """
[input]
observations = "s.csv"
{labels}
[input.fields]
score = "prob"
{fields}
[output]
predictions = "o.jsonl"
"""


def history(known: int = KNOWN, rows: int = ROWS) -> list[dict[str, Any]]:
    """Return rows of two models, of which only the first ones have labels."""
    return [
        {
            "id": f"a{i}",
            "time": START + MINUTE * i,
            "prob": i / rows,
            "model": f"m{i % 2}",
            "label": i % 3 % 2 if i < known else None,
            "label_time": START + MINUTE * i + 5000 if i < known else None,
        }
        for i in range(rows)
    ]


def write(path: str, rows: list[dict[str, Any]]) -> str:
    """Write rows in the format of a name."""
    file = Path(path)
    if path == "delta":
        deltalake.write_deltalake(path, pa.Table.from_pylist(rows))
    elif path == "folder":
        file.mkdir()
        for n, part in enumerate((rows[:30], rows[30:])):
            pq.write_table(pa.Table.from_pylist(part), file / f"{n}.parquet")
    elif file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif file.suffix == ".csv":
        lines = [[*rows[0]], *([*row.values()] for row in rows)]
        cells = [",".join("" if one is None else str(one) for one in line) for line in lines]
        file.write_text("\n".join(cells) + "\n")
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def predicted(path: str = "o.jsonl") -> list[str]:
    """Return the ids of predictions."""
    return [json.loads(line)["id"] for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet", "folder", "delta"])
@pytest.mark.parametrize("words", [(), ("--delay", "3")])
def test_rows_without_labels_are_predicted(
    invoke: Invoke, name: str, words: tuple[str, ...]
) -> None:
    """The newest rows of a history have no label, and the summary says how many."""
    ran = invoke("replay", write(name, history()), *words, "-o", "o.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert predicted() == [f"a{i}" for i in range(ROWS)]
    summary = json.loads(ran.out)
    assert (summary["unlabelled"], summary["labels"]) == (ROWS - KNOWN, KNOWN)
    assert summary["waiting"] == [0, 0]
    assert summary["notes"] == [SENTENCE]


@pytest.mark.parametrize("words", [(), ("--delay", "3")])
def test_rows_of_iceberg_without_labels_are_predicted(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The newest rows of an Iceberg table have no label, whether a file has any label or none."""
    rows = history()
    schema = pa.Table.from_pylist(rows).schema
    with local_catalog(tmp_path, monkeypatch) as catalog:
        table = catalog.create_table("risk.history", schema)
        for part in (rows[:30], rows[30:KNOWN], rows[KNOWN:]):
            table.append(pa.Table.from_pylist(part, schema))
        name = "iceberg://local/risk.history"
        ran = invoke("replay", name, *words, "-o", "o.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert predicted() == [f"a{i}" for i in range(ROWS)]
    summary = json.loads(ran.out)
    assert (summary["unlabelled"], summary["labels"]) == (ROWS - KNOWN, KNOWN)
    assert summary["waiting"] == [0, 0]
    assert summary["notes"] == [SENTENCE]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--workers", "2"),
        ("--compare", "ivap,none"),
        ("--report", "r.json"),
    ],
)
def test_the_sentence_is_shown(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Every kind of replay counts the rows that wait."""
    ran = invoke("replay", write("s.csv", history()), *words)
    assert ran.code == 0, ran.err
    assert SENTENCE in ran.err
    if "r.json" in words:
        assert json.loads(Path("r.json").read_text())["notes"] == [SENTENCE]


def test_several_delays_count_them_too(invoke: Invoke) -> None:
    """A replay at several delays says the sentence once."""
    rows = [{k: v for k, v in row.items() if k != "label_time"} for row in history()]
    ran = invoke("replay", write("s.csv", rows), "--delays", "0,5")
    assert ran.code == 0, ran.err
    assert ran.err.count(SENTENCE) == 1


@pytest.mark.parametrize(
    ("labels", "fields"), [("delay = 3", ""), ("", 'label_time = "label_time"')]
)
def test_a_configuration_lets_them_wait(invoke: Invoke, labels: str, fields: str) -> None:
    """Rows without labels are no dead letters of a configuration."""
    write("s.csv", history())
    Path("c.toml").write_text(CONFIG.format(labels=labels, fields=fields))
    ran = invoke("run", "c.toml", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert (len(predicted()), summary["dead_letters"]) == (ROWS, {})
    assert summary["unlabelled"] == ROWS - KNOWN


def test_without_any_label_the_column_is_in_doubt(invoke: Invoke) -> None:
    """A file whose label column is empty is predicted, and the summary names the column."""
    ran = invoke("replay", write("s.csv", history(known=0)), "-o", "o.jsonl")
    assert ran.code == 0, ran.err
    assert len(predicted()) == ROWS
    assert "No row has a label: see that the label column is the right one." in ran.err


def test_a_label_without_its_time_is_named(invoke: Invoke) -> None:
    """The message names the row and both columns."""
    rows = history()
    rows[7]["label_time"] = None
    ran = invoke("replay", write("s.csv", rows))
    assert ran.code != 0
    assert ran.err.splitlines() == [
        'error: the record has a "label", but no "label_time"',
        "  s.csv line 9",
        '  fill it in, or leave "label" empty until it is known',
    ]


def test_a_row_that_comes_again_with_its_label(invoke: Invoke) -> None:
    """A row that is appended again once its label is known is not predicted twice, but learned."""
    rows = [{k: v for k, v in row.items() if k != "label_time"} for row in history()]
    write("s.csv", rows)
    config = CONFIG.format(labels="delay = 0", fields="") + '[state]\npath = "state"\n'
    Path("c.toml").write_text(config)
    assert invoke("run", "c.toml").code == 0
    later = [{**row, "label": 1, "time": START + MINUTE * (ROWS + n)} for n, row in enumerate(rows)]
    with Path("s.csv").open("a") as file:
        file.writelines(",".join(map(str, row.values())) + "\n" for row in later[KNOWN:])
    ran = invoke("run", "c.toml", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert predicted() == [f"a{i}" for i in range(ROWS)]
    assert (summary["labels"], summary["waiting"]) == (ROWS, [0, 0])
    assert summary["counters"]["duplicate_observations"] == ROWS - KNOWN


def one_without_label() -> None:
    """Write a history of one model, in two forms, with a row without a label in the middle."""
    rows = history(known=400, rows=400)
    rows[300]["label"] = rows[300]["label_time"] = None
    rows = [row | {"model": "m"} for row in rows]
    write("s.csv", rows)
    kept = ("id", "time", "prob", "model")
    write("p.csv", [{name: row[name] for name in kept} for row in rows])
    known = [
        {"id": row["id"], "time": row["label_time"], "label": row["label"], "model": "m"}
        for row in rows
        if row["label"] is not None
    ]
    write("l.csv", known)


@pytest.mark.parametrize(
    "words",
    [
        ("s.csv", "--delay", "3"),
        ("s.csv", "--delay", "1h"),
        ("s.csv",),
        ("p.csv", "--labels", "l.csv"),
        ("p.csv", "--labels", "l.csv", "--workers", "2"),
    ],
)
def test_a_row_without_a_label_keeps_none_from_counting(
    invoke: Invoke, words: tuple[str, ...]
) -> None:
    """All labels count in the answers, also those of rows behind one that never gets a label."""
    one_without_label()
    ran = invoke("replay", *words, "--json", "-o", "o.jsonl")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["answers"]["now"]["last_row"] == 400
    assert (summary["counters"]["expired"], summary["waiting"]) == (1, [0, 0])
    assert not any("count in no answer" in note for note in summary["notes"])


def test_labels_that_wait_for_rows_without_a_label_are_counted(invoke: Invoke) -> None:
    """With a state a label may still come: answers stop at such a row, and a note counts.

    The last three labels wait for later rows: their delay has not passed.
    """
    one_without_label()
    config = CONFIG.format(labels="delay = 3", fields='model = "model"')
    Path("c.toml").write_text(config + '[state]\npath = "state"\n')
    ran = invoke("run", "c.toml", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["answers"]["now"]["last_row"] == 300
    notes = json.loads(ran.out)["notes"]
    assert notes[0] == "1 row has no label yet: it is predicted, but not scored."
    assert notes[1].startswith("96 labels count in no answer, as they wait for those of all earl")


def test_the_sample_of_a_check_says_so(invoke: Invoke) -> None:
    """The sample of `abers check` shows which rows have no label yet."""
    write("s.csv", history(known=1))
    Path("c.toml").write_text(CONFIG.format(labels="delay = 3", fields=""))
    ran = invoke("check", "c.toml", "--sample", "s.csv")
    assert ran.code == 0, ran.err
    first, second, *_ = (line for line in ran.out.splitlines() if line.startswith("  line "))
    assert (first[:9], second[:9]) == ("  line 2 ", "  line 3 ")
    assert first.endswith(" 0")
    assert len(second) < len(first)


@pytest.mark.parametrize("known", [0, 50])
def test_rows_without_labels_are_no_loss_of_predictions(invoke: Invoke, known: int) -> None:
    """A file in which nearly no row has a label gets one sentence, and no advice on timeouts."""
    ran = invoke("replay", write("s.csv", history(known, 1_200)), "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert len(summary["notes"]) == 1
    assert "label" in summary["notes"][0]
    assert summary["losses"] == []


@pytest.mark.filterwarnings("ignore:.* are sorted by time")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("words", [(), ("--workers", "2"), ("--until", str(START + 10**9))])
def test_records_of_labels_without_one_are_counted(
    invoke: Invoke, ending: str, step: int, words: tuple[str, ...]
) -> None:
    """Records of a second file that have no label are counted in a sentence, sorted or not."""
    rows = history()
    observations = [{one: row[one] for one in ("id", "time", "prob", "model")} for row in rows]
    labels = [{one: row[one] for one in ("id", "time", "model", "label")} for row in rows]
    files = write(f"s{ending}", observations), write(f"l{ending}", labels[::step])
    ran = invoke("replay", files[0], "--labels", files[1], *words, "-o", "o.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert predicted() == [f"a{i}" for i in range(ROWS)]
    summary = json.loads(ran.out)
    assert (summary["records"], summary["labels"]) == (2 * ROWS, KNOWN)
    assert summary["counters"]["labels_in"] == KNOWN
    assert "10 records of labels have no label yet, and are left out." in summary["notes"]
