"""The example of a configuration: every key there is, each with its real default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from abers_connectors._config_errors import keys_of
from abers_connectors.checking import check
from abers_connectors.config import Config, Input, Learner, load

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[2] / "deploy" / "abers.example.toml"
STREAM = Input(observations="-", format="jsonl")

LINE = re.compile(r"(?P<shown># )?(?P<line>(?P<key>\w+) = .+)")


def entries() -> Iterator[tuple[str, bool, str]]:
    """Give each key of the example: its path, whether it is only shown, and its line."""
    section = ""
    for line in EXAMPLE.read_text().splitlines():
        if heading := re.fullmatch(r"(?:# )?\[([\w.]+)\]", line):
            section = heading[1]
        elif entry := LINE.fullmatch(line):
            yield f"{section}.{entry['key']}", entry["shown"] is not None, entry["line"]


def keys() -> dict[str, object]:
    """Give each key of the models, with the value it has in a configuration like the example."""
    sections = {path[:-1] for path in keys_of(Config)}
    found: dict[str, object] = {}
    for path in keys_of(Config):
        at: Any = Config(input=STREAM, learner=Learner())
        for key in path:
            at = getattr(at, key)
        if path not in sections:
            found[".".join(path)] = at
    return found


def test_it_has_every_key() -> None:
    """The example has every key there is, and no other, in the order of the models."""
    assert [path for path, _, _ in entries()] == list(keys())


def test_it_has_the_defaults() -> None:
    """What is in force in the example is the default, and what is only shown has none."""
    assert load(EXAMPLE, environ={}) == Config(input=STREAM)
    shown = {path for path, only_shown, _ in entries() if only_shown}
    assert shown == {path for path, value in keys().items() if value is None}


@pytest.mark.parametrize(
    ("path", "line"), [(path, line) for path, shown, line in entries() if shown]
)
def test_what_it_shows_can_be_used(path: str, line: str) -> None:
    """A key that is only shown is right as it stands there."""
    section, _, key = path.rpartition(".")
    needed = {"input.labels": "labels.csv"} if section == "input.label_fields" else {}
    without = load(EXAMPLE, flags=needed, environ={})
    assert load(EXAMPLE, flags=needed | {path: tomllib.loads(line)[key]}, environ={}) != without


def test_it_is_accepted() -> None:
    """Nothing has to be made before the example runs."""
    assert check(str(EXAMPLE), environ={}).meaning["observations"].startswith("standard input")
