"""What a replay read and how it predicted, as names and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers import registry
from abers.calibration.label_rates import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["replay_records"]

_SHOWN = (
    *("classes", "quantiles", "coverage", "folds", "label_rates", "scores"),
    *("window", "max_age", "half_life", "learner"),
)


def replay_records(facts: Mapping[str, Any], *, support: bool) -> tuple[tuple[str, str], ...]:
    """Return the settings and the counts of a replay.

    Parameters
    ----------
    facts
        As of `FinishedReplay.facts`.
    support
        Whether scores depend on the support of the labels, which is then named.
    """
    return (*_settings(facts, support=support), *_counts(facts))


def _settings(facts: Mapping[str, Any], *, support: bool) -> Iterator[tuple[str, str]]:
    known = {
        "stream": facts["stream"],
        "read from": facts["inputs"],
        "task": facts["task"],
        "calibrator": facts["calibrator"],
        **{name.replace("_", " "): facts["settings"][name] for name in _SHOWN},
    }
    able = registry.capabilities(facts["calibrator"], facts["task"])
    for name, belongs in (
        ("folds", able.score == "folds"),
        ("quantiles", facts["task"] == "regression"),
        ("label rates", tuple(facts["settings"]["label_rates"]) != ALL),
    ):
        if not belongs:
            del known[name]
    if support:
        known["support"] = facts["settings"]["support"] or "from the smallest to the largest label"
    if facts["delay"] is not None:
        known["labels"] = facts["delay"]
    for name, value in known.items():
        if value not in (None, [], ()):
            yield name, _text(value)


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _counts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all counts but those that are 0; records are always counted."""
    yield "records", f"{facts['records']:,}"
    unreadable = {f"unreadable: {reason}": count for reason, count in facts["dead_letters"].items()}
    waiting = dict(zip(("observations", "labels"), facts["waiting"], strict=True))
    still = {f"{name} still waiting": count for name, count in waiting.items()}
    for name, count in {**_of_events(facts["counters"]), **unreadable, **still}.items():
        yield name, f"{count:,}"


def _of_events(counters: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of events, under other names than those of settings."""
    names = {"labels": "labels learned"}
    return {
        names.get(name, name.replace("_", " ")): count for name, count in counters.items() if count
    }
