"""From the names that the golden files have to those of now.

`names.json` has, all from old to new and empty where nothing changed:

- `fields`: by kind of table, names of fields. A dotted path is of a nested record; what is not
  named goes with the record that it is in, and a kind "a.b" has the names of "a" too. Null is a
  field that is no longer there;
- `counters`: the counters in their order, of which a changelog has only the numbers;
- `values`: by kind of table, by old field, the values that have other names;
- `digested`: by kind of table, by field, from the values of now to those of before, for fields of
  which the golden files have only digests;
- `units`: by kind of table, by old field, what its values are divided by;
- `metrics`: names of families, without the `_total` or `_bucket` of their samples;
- `config`: dotted keys; of these `values` and `units` are of the kind "config";
- `before`: by dotted keys, what was done before there was the key, if another thing is done now;
- `options`: of the command, each becomes a list of words;
- `codes`: reasons of dead letters and other values from a fixed set, wherever one stands;
- `texts`: pairs of a regular expression and its replacement, for sentences meant for people.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["Names"]

PROSE = {"detail", "sentence", "guarantee"}
"""Fields, by their old names, that hold sentences."""
CODED = {"reason", "dead_reasons", "refused_reasons", "sink", "test", "name"}
"""Fields, by their old names, that hold codes."""


def _last(path: str) -> str:
    return path.rpartition(".")[2]


class Names:
    """A map of names."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known
        self.codes: dict[str, str] = known.get("codes", {})
        spoken = PROSE | CODED
        fields = [pair for one in known.get("fields", {}).values() for pair in one.items()]
        self.spoken = spoken | {_last(new) for old, new in fields if new and _last(old) in spoken}
        """Fields, by old and new names, of which all values are kept."""

    @classmethod
    def read(cls) -> Names:
        """Read the map that is checked in."""
        return cls(json.loads(Path(__file__).with_name("names.json").read_text("utf-8")))

    def of(self, scope: str, kind: str) -> dict[str, Any]:
        """Return what a scope has for a kind, and for those that it is part of."""
        if scope == "fields" and kind == "config":
            return dict(self.known.get("config", {}))
        head = kind.rpartition(".")[0]
        above = self.of(scope, head) if head else {}
        mine: dict[str, Any] = self.known.get(scope, {}).get(kind, {})
        return above | mine

    def path(self, names: dict[str, Any], path: str) -> str | None:
        """Rename a dotted path; None if there is none now."""
        if path in names:
            renamed: str | None = names[path]
            return renamed
        head, dot, tail = path.rpartition(".")
        above = self.path(names, head) if dot else ""
        return None if above is None else f"{above}{dot}{self.codes.get(tail, tail)}"

    def table(self, table: dict[str, Any], now: str = "") -> dict[str, Any]:
        """Rename the columns of a table, which keep their order; `now` is its kind of now."""
        kind, names = table["kind"], self.of("fields", table["kind"])
        columns, now = {}, now or table["kind"]
        for old, column in table["columns"].items():
            if (new := self.path(names, old)) is not None:
                columns[new] = self._column(kind, old, f"{now}.{new}", column)
        shapes = [[new for old in one if (new := self.path(names, old))] for one in table["shapes"]]
        return table | {"kind": now, "shapes": shapes, "columns": columns}

    def _column(self, kind: str, path: str, now: str, column: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(column, list):
            return [self._column(kind, path, now, one) for one in column]
        if isinstance(column, dict):
            return self.table(column, now) if "kind" in column else column
        if isinstance(column, str):
            column = self.of("values", kind).get(path, {}).get(column, column)
            if _last(path) in CODED:
                return self.codes.get(column, column)
            return self.text(column) if _last(path) in PROSE else column
        divisor = self.of("units", kind).get(path)
        return column if divisor is None or column is None else column / divisor

    def text(self, text: str) -> str:
        """Rewrite a sentence."""
        for pattern, new in self.known.get("texts", []):
            text = re.sub(pattern, new, text)
        return text

    def metric(self, line: str) -> str:
        """Rename the metric of a line of the exposition format."""
        for old, new in self.known.get("metrics", {}).items():
            suffix = "(?=(?:_total|_bucket|_sum|_count|_info)?[ {])"
            line, found = re.subn(rf"^(# (?:HELP|TYPE) )?{old}{suffix}", rf"\g<1>{new}", line)
            if found:
                break
        for old, new in self.codes.items():
            line = line.replace(f'"{old}"', f'"{new}"')
        return self.text(line) if line.startswith("# HELP") else line

    def config(self, config: dict[str, Any]) -> dict[str, Any]:
        """Rename the dotted keys of a configuration."""
        table = self.table({"kind": "config", "shapes": [], "columns": config})
        return dict(table["columns"])

    def words(self, words: list[str]) -> list[str]:
        """Rename the options of a command."""
        options = self.known.get("options", {})
        return [new for old in words for new in options.get(old, [old])]
