"""Numbers and figures of one model at one moment, for a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring import consistency_bands
from abers_connectors.dashboard.time_figures import history_figures
from abers_connectors.replay.summary import finite
from abers_connectors.replay.verdict_text import need_sentences, verdict_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import Bands, Decomposition, Diagram, Evidence, Figure, TaskMonitor
    from abers.monitoring.base import BandMaker
    from abers.stream import Alarm
    from abers_connectors.dashboard.model_history import JoinedHistory
    from abers_connectors.replay.summary import Means

__all__ = ["ModelView"]


class ModelView(NamedTuple):
    """Numbers and figures of one model; they do not change with the stream.

    Means and mean width are those of `Summary`. The parts of the Brier score are by view, where
    there is a reliability diagram. Each alarm is behind the number of labels so far. The figures of
    the monitor come before those of its history.
    """

    labels: int
    raw: Means | None
    calibrated: Means | None
    mean_width: float | None
    brier: dict[str, Decomposition]
    tests: Sequence[Evidence]
    alarms: Sequence[tuple[int, Alarm]]
    figures: Sequence[Figure]
    verdicts: dict[str, str]  # sentences, by what they are about
    label_needs: Sequence[str]  # how many labels allow which statement, where few came

    @classmethod
    def of(
        cls, monitor: TaskMonitor, history: JoinedHistory, bands: BandMaker = consistency_bands
    ) -> ModelView:
        """Return the view of a monitor and its history."""
        brier: dict[str, Decomposition] = {}

        def noted(view: str, diagram: Diagram) -> Bands:
            brier[view] = diagram.decomposition()
            return bands(view, diagram)

        views, width, tests = monitor.views(), monitor.mean_width, monitor.tests
        figures = [*monitor.figures(noted), *history_figures(history, monitor)]
        return cls(
            labels=monitor.count,
            raw=finite(views.get("raw")),
            calibrated=finite(views["calibrated"]),
            mean_width=width if math.isfinite(width) else None,
            brier=brier,
            tests=tests,
            alarms=history.alarms,
            figures=figures,
            verdicts=verdict_sentences(monitor),
            label_needs=need_sentences(monitor),
        )
