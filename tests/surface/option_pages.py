"""What is written from the declarations of options: the example, a table, and the help of flags.

`python -m tests.surface.option_pages --write` writes all of it.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from abers_connectors.config.layers import OF_SETTINGS, SECTIONS, options
from abers_connectors.config.values import written_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.option import Option

__all__ = ["EXAMPLE", "FLAGS", "PAGE", "example", "flags", "page"]

ROOT = Path(__file__).parents[2]
EXAMPLE, PAGE = ROOT / "deploy" / "abers.example.toml", ROOT / "docs" / "configuration.md"
FLAGS = ROOT / "connectors" / "abers_connectors" / "cli" / "flags.py"
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
FLAGS_HEADER = '''\
"""What the help says of flags that are options of a configuration: group, metavar and sentence.

`python -m tests.surface.option_pages --write` writes this from the declarations of the
options: they import the engine, and help imports nothing.
"""

# ruff: noqa: E501 - a sentence is a line

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLAGS"]

FLAGS: Mapping[str, tuple[str, str | None, str]] = {
'''
INTROS = {
    "learner": "With this section a river learner scores the features and learns from each label. "
    "Without it every observation contains its score."
}
# Sections that change what is run, and keys of topics in other sections, are only shown.
SHOWN = {"learner", "kafka", "kafka.security", "schema_registry", "http", "serve", "telemetry"}
SHOWN_KEYS = {"state.shared", "state.retain"}
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
    yield f"{'# ' if shown else ''}{name} = {written_value(one, value)}\n"


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


def flags() -> str:
    """Return the module with what the help says of each declared flag."""
    found = {one.flag: one for one in options().values() if one.flag}
    return FLAGS_HEADER + "".join(map(_flag, found.values())) + "}\n"


def _flag(one: Option) -> str:
    sentence = re.sub("`([^`]+)`", lambda key: options()[key[1]].flag or key[1], one.sentence)
    parts = (one.flag, one.group, one.metavar, sentence)
    flag, group, metavar, text = (part and _quoted(part) for part in parts)
    return f"    {flag}: (\n        {group},\n        {metavar},\n        {text},\n    ),\n"


def _quoted(text: str) -> str:
    return repr(text) if '"' in text else f'"{text}"'


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    EXAMPLE.write_text(example())
    PAGE.write_text(page())
    FLAGS.write_text(flags())
