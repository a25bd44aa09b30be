"""The outputs of every kind, as they were before names changed, and how they are made.

`files` is written once, and never again: the cases of `cases.json` have the old names. `names.json`
says what they are called now, and the tests compare what that makes of the old files with what the
code says; what is new since then is left out. Those of `more.json` came later, and have the names
of then. To see what differs, write everything undigested from two checkouts, and compare the
folders:

    python -m tests.golden.outputs --whole FOLDER
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from csv import DictReader
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden import product, tables
from tests.golden.streams import START, lines, stream, tabulated
from tests.golden.tables import NAMES, compact, compacted, flat, rounded, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden.names import Names

__all__ = [
    "FILES",
    "NAMES",
    "cases",
    "life",
    "outputs",
    "renamed",
    "replay",
    "resumed",
    "service",
    "text",
]

FILES = Path(__file__).with_name("files")
_FITTED = {"platt", "beta"}  # by numpy, whose last bit depends on the processor


def cases(of: str) -> dict[str, dict[str, Any]]:
    """Return the cases of a kind, with the configuration in the names of now."""
    found: dict[str, dict[str, Any]] = {}
    for file, before in (("cases.json", NAMES.known["before"]), ("more.json", {})):
        these = json.loads((FILES / file).read_text("utf-8")).get(of, {})
        for one in these.values():
            one["config"] = before | NAMES.config(one["config"])
        found |= these
    return found


# Processors


def life(case: dict[str, Any], batch: int, then: str = "") -> dict[str, Any]:
    """Let a processor live; half-way it is restarted, or redone, or neither."""
    made = stream(*case["stream"])
    one = product.Life(case["config"], made, learner=case["stream"][0] == "features")
    half = len(made) // 2 // batch * batch if then else len(made)
    one.take(batch, 0, half)
    if then == "restart":
        one.restart()
    elif then == "redo":
        one.redo()
    one.take(batch, half)
    said = one.said()
    tables = {
        "prediction": said.predictions,
        "outcome": said.outcomes,
        "dead_letter": said.dead_letters,
        "alarm": said.alarms,
        "settled": said.settled,
        "counters": [said.counters],
        "summary": [said.summary],
    }
    if case["config"].get("calibrator.kind") in _FITTED:
        tables = {kind: [*map(rounded, rows)] for kind, rows in tables.items()}
    plural = {kind: f"{kind}s" for kind in ("prediction", "outcome", "dead_letter", "alarm")}
    return {"order": compact(said.order)} | {
        plural.get(kind, kind): table(kind, rows) for kind, rows in tables.items()
    }


# The service


def records(case: dict[str, Any]) -> list[product.Record]:
    """Make the records of topics; labels of regressions have their own."""
    made = []
    for offset, line in enumerate(lines(stream(*case["stream"]))):
        two = case.get("topics", 1) > 1 and b'"label": ' in line
        key = None if offset % 211 == 50 else b"k%d" % (offset % 7)
        value = None if offset % 101 == 30 else line  # tombstones
        headers = [("trace", b"%d" % offset)] if offset % 3 == 0 else []
        topic = "labels" if two else "scores"
        made.append(product.Record(value, offset, key, headers, START + 1_300 * offset, topic))
    return made


def service(case: dict[str, Any], *, restart: bool) -> dict[str, Any]:
    """Serve topics."""
    served = product.served(case["config"], records(case), restart=restart)
    sinks = [*dict.fromkeys(one["sink"] for one in served.outgoing)]
    return {
        "order": compact([one["sink"] for one in served.outgoing]),
        **{
            sink: table(f"topic.{sink}", [one for one in served.outgoing if one["sink"] == sink])
            for sink in sinks
        },
        "changelog": table("changelog", served.changelog),
        "metrics": served.metrics,
    }


# Files


def replay(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run commands over a file of half-malformed lines."""
    made = stream(*case["stream"])
    if case.get("bare"):
        (folder / "in.csv").write_bytes(tabulated(made))
    else:
        (folder / "in.jsonl").write_bytes(b"".join(line + b"\n" for line in lines(made)))
        _write_inputs(case, folder)
    found: dict[str, Any] = {}
    for name, words in case["commands"].items():
        ran = product.command(folder, *NAMES.words(words))
        fitted = not _FITTED.isdisjoint(",".join(words).split(","))
        stdout = _said(ran.stdout, rounded if fitted else None)
        found[name] = {"code": ran.code, "stdout": stdout, "stderr": _said(ran.stderr)}
    found |= _tables(folder)
    for path in sorted(folder.glob("predictions.csv")):
        found[path.name] = table("prediction", [*DictReader(path.read_text("utf-8").splitlines())])
    for path in sorted(folder.glob("*.json")):
        found[path.name] = table("report", [product.plain(path.read_bytes())])
    return found


def resumed(case: dict[str, Any], folder: Path, parts: int) -> dict[str, Any]:
    """Run over a file that grows, with a state, and return what is in the outputs."""
    made = lines(stream(*case["stream"]))
    _write_inputs(case, folder)
    size = -(-len(made) // parts)
    for part in (made[at : at + size] for at in range(0, len(made), size)):
        with (folder / "in.jsonl").open("ab") as file:
            file.write(b"".join(line + b"\n" for line in part))
        ran = product.command(folder, *NAMES.words(case["resume"]))
        assert ran.code == 0, ran.stderr
    return _tables(folder)


def _tables(folder: Path) -> dict[str, Any]:
    """Read the JSON lines that were written."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name != "in.jsonl":
            rows = [product.plain(line) for line in path.read_bytes().splitlines()]
            kind = "outcome" if "outcomes" in path.name else "prediction"
            found[path.name] = table("dead_line" if "dead" in path.name else kind, rows)
    return found


def _write_inputs(case: dict[str, Any], folder: Path) -> None:
    for name, more in {"abers.toml": {}, **case.get("variants", {})}.items():
        _config(folder / name, case["config"] | NAMES.config(more))


def _config(path: Path, config: dict[str, Any]) -> None:
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items()))


def _said(text: str, change: Callable[[Any], Any] | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return what was printed, without the speed and the widths of columns."""
    if text.startswith("{"):
        found = _slow(json.loads(text))
        found = found if change is None else change(found)
        several = all(isinstance(one, dict) for one in found.values())
        return table(
            "printed", [{"of": k, **one} for k, one in found.items()] if several else [found]
        )
    rows = (re.sub("─+", "─", " ".join(line.split())) for line in text.splitlines())
    return [row for row in rows if row and not row.endswith("events a second")]


def _slow(found: dict[str, Any]) -> dict[str, Any]:
    """Take out how fast it was."""
    kept = {name: one for name, one in found.items() if "per_second" not in name}
    return {name: _slow(one) if isinstance(one, dict) else one for name, one in kept.items()}


# All of them


def defaults(case: dict[str, Any]) -> dict[str, Any]:
    """Return all keys of a configuration with their values, by their names."""
    found = dict(sorted(flat(product.defaults(case["config"])).items()))
    return {"kind": "config", "shapes": [], "columns": found}


def outputs() -> dict[str, dict[str, Any]]:
    """Make all outputs, by the name of their file."""
    found = {
        f"processor-{name}": life(one, one.get("batch", 64))
        for name, one in cases("processors").items()
    }
    for name, case in cases("services").items():
        found[f"service-{name}"] = service(case, restart=False)
    for name, case in cases("replays").items():
        with tempfile.TemporaryDirectory() as folder:
            found[f"replay-{name}"] = replay(case, Path(folder))
    return found | {f"config-{name}": defaults(one) for name, one in cases("defaults").items()}


def renamed(old: Any, names: Names = NAMES) -> Any:  # noqa: ANN401 - JSON
    """Put a golden file through the map of names."""
    if isinstance(old, list):
        return [renamed(one, names) for one in old]
    if isinstance(old, str):
        return names.text(old)
    if not isinstance(old, dict) or "digests" in old:
        return old
    if "kind" in old:
        return names.table(old)
    return {
        name: [*map(names.metric, one)] if name == "metrics" else renamed(one, names)
        for name, one in old.items()
    }


def text(value: Any, depth: int = 0) -> str:  # noqa: ANN401 - JSON
    """Write a file: a line for each column."""
    if not isinstance(value, dict) or not value or "digests" in value:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    pad = "\n" + " " * depth
    parts = (f"{pad} {json.dumps(name)}: {text(one, depth + 1)}" for name, one in value.items())
    return "{" + ",".join(parts) + pad + "}" + "\n" * (depth == 0)


def main() -> None:
    """Write the files, or all that they digest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write files that are not there")
    parser.add_argument("--whole", metavar="FOLDER", type=Path, help="write them undigested")
    given = parser.parse_args()
    folder = FILES if given.write else given.whole
    if folder is None:
        parser.error("give --write or --whole")
    if given.whole:
        tables.digested = False
        folder.mkdir(parents=True, exist_ok=True)
    for name, one in outputs().items():
        path = folder / f"{name}.json"
        if given.whole or not path.exists():  # those that are there keep the old names
            path.write_text(text(compacted(one)), "utf-8")
    if given.write:
        sums = {one.name: sha256(one.read_bytes()).hexdigest() for one in sorted(FILES.iterdir())}
        sums.pop("sha256.json", None)
        (FILES / "sha256.json").write_text(json.dumps(sums, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
