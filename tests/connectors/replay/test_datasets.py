"""`abers replay` of data sets: the same predictions wherever the files are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from tests.connectors.sources.lakes import START, history, write_parts
from typer.testing import CliRunner

from abers_connectors.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

deltalake: Any = pytest.importorskip("deltalake")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Return the URL of a bucket on a server of S3, which the environment leads to."""
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ALLOW_HTTP": "true",
        }.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3").mkdir("lake")
        yield "s3://lake"
    server.stop()


def replay(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    """Replay a stream; return its predictions."""
    out = tmp_path / "out.jsonl"
    result = CliRunner().invoke(app, ["replay", *words, "-o", str(out), "--delay", "5"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_everywhere_the_same(tmp_path: Path, bucket: str) -> None:
    """A file, a folder, Hive partitions and a bucket give the same predictions."""
    table = history(200)
    pq.write_table(table, tmp_path / "one.parquet")
    expected = replay(tmp_path, str(tmp_path / "one.parquet"))
    assert len(expected) == 200
    parts = write_parts(tmp_path / "parts", [table.slice(0, 70), table.slice(70)])
    pq.write_to_dataset(table, tmp_path / "hive", partition_cols=["model"])
    fsspec.filesystem("s3").put(str(tmp_path / "hive"), f"{bucket}/hive", recursive=True)
    deltalake.write_deltalake(f"{bucket}/delta", table, partition_by=["model"])
    for name in (
        parts,
        f"{parts}/*.parquet",
        str(tmp_path / "hive"),
        f"{bucket}/hive",
        f"{bucket}/hive/model=*/*.parquet",
        f"{bucket}/delta",
    ):
        assert replay(tmp_path, name) == expected


def test_models_and_times(tmp_path: Path, bucket: str) -> None:
    """`--model`, `--since` and `--until` give the part of the file, wherever it is."""
    table = history(200)
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_to_dataset(table, tmp_path / "hive", partition_cols=["model"])
    fsspec.filesystem("s3").put(str(tmp_path / "hive"), f"{bucket}/part", recursive=True)
    words = ["--model", "m1", "--model", "m2", "--since", str(START + 20_000)]
    words += ["--until", str(START + 150_000)]
    expected = replay(tmp_path, str(tmp_path / "one.parquet"), *words)
    assert [one["id"] for one in expected] == [f"a{n}" for n in range(20, 150) if n % 3]
    for name in (str(tmp_path / "hive"), f"{bucket}/part"):
        assert replay(tmp_path, name, *words) == expected


@pytest.mark.parametrize("words", [("--model", "m7"), ("--since", str(START + 10**9))])
def test_a_part_without_observations(tmp_path: Path, words: tuple[str, str]) -> None:
    """A replay of no observation names every option that chooses them, as any may be at fault."""
    pq.write_table(history(20), tmp_path / "one.parquet")
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "one.parquet"), *words])
    assert "No observation fits --model, --since and --until." in result.output


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["id", "score", "label"], "the file has no time column"),
        (["time", "score", "label"], "the file has no id column"),
    ],
)
def test_columns_that_files_need(tmp_path: Path, columns: list[str], message: str) -> None:
    """Row numbers mean nothing among many files, so ids and times are columns."""
    name = write_parts(tmp_path / "parts", [history().select(columns)] * 2)
    result = CliRunner().invoke(app, ["replay", name])
    assert result.exit_code == 2
    assert message in result.output


def test_a_bucket_that_is_not_there(bucket: str) -> None:
    """A missing bucket, and a folder without files, are errors in one sentence."""
    for name in (f"{bucket}/nothing", "s3://no-such-bucket/history"):
        result = CliRunner().invoke(app, ["replay", name])
        assert result.exit_code in {1, 2}
        assert name in result.output
        assert "Traceback" not in result.output


def test_models_of_topics(tmp_path: Path) -> None:
    """`--model` is for files; a service of topics has all models, and is not silently cut."""
    config = tmp_path / "service.toml"
    config.write_text(
        '[kafka]\nbootstrap_servers = "localhost:1"\napplication_id = "a"\n'
        'observations = "o"\nlabels = "l"\npredictions = "p"\n'
    )
    result = CliRunner().invoke(app, ["replay", str(config), "--model", "m"])
    assert result.exit_code != 0
    assert "--model goes with files" in result.output


def test_a_file_of_labels_beside(tmp_path: Path) -> None:
    """A configuration merges a data set of observations with one of labels."""
    table = history(50)
    observed, labels = table.drop_columns("label"), table.drop_columns("score")
    late = labels.set_column(1, "time", pa.array([START + 1000 * (n + 5) for n in range(50)]))
    write_parts(tmp_path / "scores", [observed.slice(0, 20), observed.slice(20)])
    write_parts(tmp_path / "labels", [late.slice(0, 30), late.slice(30)])
    config = tmp_path / "month.toml"
    config.write_text(
        f'[input]\nobservations = "{tmp_path}/scores"\nlabels = "{tmp_path}/labels"\n'
        f'[output]\npredictions = "{tmp_path}/out.jsonl"\n'
    )
    result = CliRunner().invoke(app, ["replay", str(config), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output.splitlines()[-1])["labels"] == 50
