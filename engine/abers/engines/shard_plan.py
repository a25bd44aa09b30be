"""Which models are processed together: shards of about as many rows, that split few files."""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import RecordError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.engines.history_files import FileContent, HistoryFile

__all__ = ["ShardPlan", "plan_shards"]


class ShardPlan(NamedTuple):
    """The files and shards of a history.

    Attributes
    ----------
    files
        Files with rows, in the order of their times, with the shard of each of their models.
    rows
        Number of rows of each shard.
    split
        Numbers of the files of several shards.
    """

    files: list[tuple[HistoryFile, dict[str, int]]]
    rows: list[int]
    split: frozenset[int]


def plan_shards(contents: Mapping[HistoryFile, FileContent], most: int) -> ShardPlan:
    """Return a plan of at most so many shards.

    Models with files of their own stay together as long as that is balanced, since their
    files need not be split then.

    Raises
    ------
    RecordError
        If files differ in a column, or a model goes back in time from one to the next.
    """
    _require_equal_types(contents)
    files = sorted(
        (one for one in contents if contents[one].models),
        key=lambda one: (_first_time(contents[one]), one.path),
    )
    _require_order(files, contents)
    rows: Counter[str] = Counter()
    for file in files:
        rows.update({model: one.rows for model, one in contents[file].models.items()})
    groups = _groups([contents[file] for file in files])
    share = sum(rows.values()) / most
    units = []
    for group in groups:
        whole = sum(rows[model] for model in group) <= share
        units += [group] if whole else [[model] for model in group]
    shards = _balanced(units, rows, most)
    placed = [(file, {model: shards[model] for model in contents[file].models}) for file in files]
    split = (number for number, (_, own) in enumerate(placed) if len({*own.values()}) > 1)
    sizes = Counter(dict.fromkeys(shards.values(), 0))
    for model, count in rows.items():
        sizes[shards[model]] += count
    return ShardPlan(placed, [sizes[shard] for shard in sorted(sizes)], frozenset(split))


def _first_time(content: FileContent) -> int:
    return min((one.first for one in content.models.values() if one.first is not None), default=0)


def _require_equal_types(contents: Mapping[HistoryFile, FileContent]) -> None:
    first: HistoryFile | None = None
    for file, content in contents.items():
        first = first or file
        for name in {**content.types, **contents[first].types}:
            here, there = content.types.get(name), contents[first].types.get(name)
            if here != there:
                msg = f"column {name} is {here or 'missing'} in {file.path}, but "
                msg += f"{there or 'missing'} in {first.path}; write both with the same columns"
                raise RecordError(msg)


def _require_order(
    files: Sequence[HistoryFile], contents: Mapping[HistoryFile, FileContent]
) -> None:
    latest: dict[str, tuple[int, HistoryFile]] = {}
    for file in files:
        for model, one in contents[file].models.items():
            if one.first is None or one.last is None:
                continue
            if model in latest and one.first < latest[model][0]:
                time, other = latest[model]
                msg = f"{file.path}: model {model!r} begins at {one.first}, before its end at "
                msg += f"{time} in {other.path}; write the rows in files that follow each other in "
                msg += "time"
                raise RecordError(msg)
            latest[model] = (one.last, file)


def _groups(contents: Sequence[FileContent]) -> list[list[str]]:
    """Return models in groups: those that are in a file together are in one."""
    parents: dict[str, str] = {}

    def root(model: str) -> str:
        parents.setdefault(model, model)
        while parents[model] != model:
            parents[model] = model = parents[parents[model]]
        return model

    for content in contents:
        first, *others = content.models
        for model in others or [first]:
            parents[root(model)] = root(first)
    groups = defaultdict(list)
    for model in parents:
        groups[root(model)].append(model)
    return [*groups.values()]


def _balanced(units: Sequence[list[str]], rows: Mapping[str, int], most: int) -> dict[str, int]:
    """Return a shard for each model: the next largest unit goes to the smallest shard."""
    sizes = [(sum(rows[model] for model in unit), unit) for unit in units]
    sizes.sort(key=lambda one: (-one[0], one[1]))
    shards = [(0, number) for number in range(min(most, len(units)))]
    heapify(shards)
    found: dict[str, int] = {}
    for size, unit in sizes:
        filled, number = shards[0]
        found.update(dict.fromkeys(unit, number))
        heapreplace(shards, (filled + size, number))
    return found
