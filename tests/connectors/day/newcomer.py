"""A newcomer who replays a CSV as a spreadsheet wrote it, and then learns what to change."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Newcomer", "replayed_csv"]

_ROWS = 3_000
_BEGIN = datetime(2026, 3, 28, 18)  # noqa: DTZ001 - the zone is an option
_STEP = timedelta(minutes=7)
_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00", "%Y-%m-%dT%H:%M:%SZ")


class Newcomer(NamedTuple):
    """What the newcomer saw: the exit codes and sentences of each attempt, and the predictions."""

    attempts: list[tuple[int, str]]
    rows: int


def replayed_csv(folder: Path) -> Newcomer:
    """Write a file with a byte order mark, semicolons and commas as decimals, and replay it.

    Its times are first those of the spreadsheet, `28.03.2026 18:07`, and then mixed, with offsets
    and without. The predictions must be those of the same numbers in a plain file.
    """
    folder.mkdir()
    rows = _rows()
    german = [one | {"time": f"{one['time']:%d.%m.%Y %H:%M}"} for one in rows]
    mixed = [
        one | {"time": one["time"].strftime(_FORMS[number % len(_FORMS)])}
        for number, one in enumerate(rows)
    ]
    plain = [one | {"time": one["time"].strftime("%Y-%m-%dT%H:%M:%SZ")} for one in rows]
    _spreadsheet(folder / "german.csv", german)
    _spreadsheet(folder / "mixed.csv", mixed)
    lines = [",".join(map(str, one.values())) for one in plain]
    (folder / "plain.csv").write_text("\n".join(["id,time,score,label", *lines]) + "\n")
    attempts = [
        _replay(folder, "german.csv"),
        _replay(folder, "mixed.csv"),
        _replay(folder, "mixed.csv", "--timezone", "UTC"),
    ]
    assert _replay(folder, "plain.csv")[0] == 0
    found, expected = (_predictions(folder / f"{name}.jsonl") for name in ("mixed", "plain"))
    assert found == expected
    assert len(found) == _ROWS
    return Newcomer(attempts, len(found))


def _rows() -> list[dict[str, Any]]:
    random = Random(7)  # noqa: S311 - not for secrets
    found = []
    for number in range(_ROWS):
        score = round(random.random(), 4)
        label = int(random.random() < score)
        time = _BEGIN + (number + 1) * _STEP
        found.append({"id": number, "time": time, "score": score, "label": label})
    return found


def _spreadsheet(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a file as a German spreadsheet does."""
    lines = ["id;time;score;label"]
    lines += [
        f"{one['id']};{one['time']};{str(one['score']).replace('.', ',')};{one['label']}"
        for one in rows
    ]
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig", newline="")


def _replay(folder: Path, name: str, *words: str) -> tuple[int, str]:
    """Replay a file, and return exit code and messages."""
    command = [sys.executable, "-m", "abers_connectors", "replay", name, *words]
    command += ["-o", name.replace(".csv", ".jsonl"), "-q"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


def _predictions(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
