"""What is written from the declarations of options: the example, and a table of the documentation.

`python -m tests.surface.option_pages --write` writes both.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers_connectors.config.options import OF_SETTINGS, SECTIONS, options
from abers_connectors.config.units import short_duration
from abers_connectors.config.value_types import read_span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Option

__all__ = ["EXAMPLE", "PAGE", "example", "page"]

ROOT = Path(__file__).parents[2]
EXAMPLE, PAGE = ROOT / "deploy" / "abers.example.toml", ROOT / "docs" / "configuration.md"
FIRST, LAST = "<!-- written by tests.surface.option_pages -->\n", "<!-- end -->\n"
WIDTH = 110
HEADER = """\
# A configuration of abers with every key: its meaning and its default.
#
# As it is, it reads JSON Lines from standard input and writes predictions to standard output:
#     abers run abers.example.toml < stream.jsonl > predictions.jsonl
#
# Required are only input.observations (and input.format, if its name does not show it), or instead
# the section [kafka]; everything else is optional. A line that begins with "#" and a key shows
# a key without a default, or, in sections for [kafka], its default. The environment overrides this
# file (ABERS_INPUT__DELAY=100 is input.delay), and a command-line flag overrides both.
# `abers check FILE` shows what abers understands, or all mistakes.
#
# Durations are written "250ms", "5s", "5m", "2h" or "7d", or as integer milliseconds. They are in
# event time, the time in the records; only those in [kafka] are in wall-clock time. Relative paths
# are relative to the working directory.
"""
INTROS = {
    "learner": "With this section a river learner scores the features and learns from each label. "
    "Without it every observation contains its score."
}
# Sections that change what is run, and keys of topics in other sections, are only shown.
SHOWN = {"learner", "kafka", "kafka.security", "schema_registry", "http", "serve", "telemetry"}
SHOWN_KEYS = {"state.shared", "state.retain"}
_LONG = 10_000  # whole numbers with separators
IN_FORCE = {"input.observations", "input.format"}  # though they have no default


def example() -> str:
    """Return the example of a configuration, with every key."""
    return HEADER + "".join(f"\n{_section(path)}" for path in SECTIONS)


def _section(path: str) -> str:
    kind = SECTIONS[path]
    intro = INTROS.get(path, "") if kind is None else kind.intro
    mark = "# " if path in SHOWN else ""
    keys = [one for key, one in options().items() if key.rpartition(".")[0] == path]
    return "".join(
        [*_comment(intro), f"{mark}[{path}]\n", *(line for one in keys for line in _lines(one))]
    )


def _comment(text: str) -> Iterator[str]:
    yield from (f"# {line}\n" for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False))


def _lines(one: Option) -> Iterator[str]:
    yield from _comment(f"{one.sentence} {one.more}".strip())
    section, _, name = one.key.rpartition(".")
    unset = not isinstance(one.default, bool | int | float | str | tuple) or one.default == ""
    shown = section in SHOWN or one.key in SHOWN_KEYS or (unset and one.key not in IN_FORCE)
    value = one.example if unset else one.default
    yield f"{'# ' if shown else ''}{name} = {_toml(one, value)}\n"


def _toml(one: Option, value: Any) -> str:  # noqa: ANN401 - of any option
    """Return a value as TOML has it."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{name} = {json.dumps(inner)}" for name, inner in value.items()) + "}"
        )
    if type(value) is not int:
        return json.dumps(value)
    is_span = one.unit == "ms" or one.read is read_span
    return (
        f'"{short_duration(value)}"' if is_span else f"{value:_}" if value >= _LONG else str(value)
    )


def table() -> str:
    """Return the table of keys that are settings or flags."""
    rows = ["| key | `Settings` | flag | meaning |", "|---|---|---|---|"]
    for key, one in options().items():
        setting = f"`{OF_SETTINGS[key]}`" if key in OF_SETTINGS else ""
        flag = f"`{one.flag}`" if one.flag else ""
        if setting or flag:
            rows.append(f"| `{key}` | {setting} | {flag} | {one.sentence} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """Return the page of the documentation with the table of now."""
    before, _, rest = PAGE.read_text().partition(FIRST)
    return before + FIRST + table() + LAST + rest.partition(LAST)[2]


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    EXAMPLE.write_text(example())
    PAGE.write_text(page())
