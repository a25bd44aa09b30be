"""What a report says.

Governing rule: nothing here tells when, how fast, or on what machine it was found, so the same
replay gives the same report.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import abers
from abers.stream.settings import CALIBRATORS
from abers_connectors.report.finding import found
from abers_connectors.report.findings import NOTHING, Findings

if TYPE_CHECKING:
    from abers.stream.processor import Processor
    from abers_connectors.records import Source
    from abers_connectors.report.gathering import Gathered
    from abers_connectors.report.watching import Watching
    from abers_connectors.summary import Summary

__all__ = ["Ended", "OfModel", "Report", "reported"]

_SEVERAL = 2  # models


class Ended(NamedTuple):
    """What is known of a replay at its end.

    Parameters
    ----------
    title
        The words that named it.
    delay
        How many observations late the labels were, if that was the rule.
    source
        What was read.
    processor
        What predicted.
    summary
        What came of it.
    gathered
        What passed.
    watching
        The same by model and segment.
    """

    title: str
    delay: int | None
    source: Source
    processor: Processor
    summary: Summary
    gathered: Gathered
    watching: Watching


class OfModel(Findings, frozen=True, kw_only=True):
    """The findings of the predictions of one model and segment.

    Parameters
    ----------
    model, segment
        Which.
    """

    model: str
    segment: str


class Report(Findings, frozen=True, kw_only=True):
    """A report: the findings of all predictions together, and where they are from.

    Parameters
    ----------
    abers
        The version that made it.
    stream, inputs
        What was replayed, and the names of what was read.
    task, calibrator
        What was predicted, and by what.
    delay
        How many observations late the labels were, if that was the rule.
    settings
        Those of the processor.
    records, dead_letters, observations, waiting
        As of a `Summary`.
    counters
        All those of the processor.
    models
        Where there are several: each model and segment by itself, the one with most labels first.
    models_left_out
        How many others there are, as only so many are kept.
    """

    abers: str
    stream: str
    inputs: str
    task: str
    calibrator: str
    delay: int | None
    settings: dict[str, Any]
    records: int
    dead_letters: dict[str, int]
    observations: int
    waiting: tuple[int, int]
    counters: dict[str, int]
    models: list[OfModel] | msgspec.UnsetType = msgspec.UNSET
    models_left_out: int | msgspec.UnsetType = msgspec.UNSET


def reported(run: Ended) -> Report:
    """Put together what a report says.

    Parameters
    ----------
    run
        At its end.

    Returns
    -------
    Report
        Names of files are without their directories.
    """
    settings, summary, monitor = run.processor.settings, run.summary, run.processor.monitor
    findings = NOTHING if monitor is None else found(monitor, run.gathered, settings)
    return Report(
        abers=abers.__version__,
        stream=Path(run.title).name,
        inputs=" and ".join(Path(name).name for name in run.source.name.split(" and ")),
        task=settings.task,
        calibrator=settings.calibrator or CALIBRATORS[settings.task][0],
        delay=run.delay,
        settings=msgspec.to_builtins(settings),
        records=summary.records,
        dead_letters=summary.dead_letters,
        observations=summary.observations,
        waiting=summary.waiting,
        counters=run.processor.counters,
        **msgspec.structs.asdict(findings) | {"labels": summary.labels},
        **_of_models(run.watching),
    )


def _of_models(watching: Watching) -> dict[str, Any]:
    """Tell of each model, unless the only one is the whole."""
    if (count := len(watching.seen())) < _SEVERAL:
        return {}
    models = [
        OfModel(model=model, segment=segment, **msgspec.structs.asdict(one))
        for (model, segment), one in watching.kept().items()
    ]
    return {"models": models, "models_left_out": count - len(models)}
