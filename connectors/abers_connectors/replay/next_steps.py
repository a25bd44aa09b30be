"""Arguments of commands to try after a replay without a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.config.value_types import Lateness
from abers_connectors.replay.options import arguments

if TYPE_CHECKING:
    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.replay.plan import ReplayPlan

__all__ = ["next_steps"]

_COMPARED = {
    "binary": "ivap,platt,protected",
    "multiclass": "one-vs-rest,one-vs-one,protected",
}
_MOST = 3


def next_steps(options: ReplayOptions, plan: ReplayPlan) -> list[list[str]]:
    """Return the arguments of some commands that fit what was just replayed.

    Examples
    --------
    >>> from abers_connectors.replay.options import ReplayOptions
    >>> from abers_connectors.replay.plan import plan_replay
    >>> options = ReplayOptions("Phishing", delay="6h", report="a.html")
    >>> for arguments in next_steps(options, plan_replay(options)):
    ...     print(*arguments)
    Phishing --delay 6h --compare ivap,platt,protected
    Phishing --delay 6h --output predictions.jsonl
    """
    same = arguments(options)
    delayed = [*same, *([] if options.delay is None else ["--delay", options.delay])]
    steps = []
    if options.report is None:
        steps.append([*delayed, "--report", "report.html"])
    if options.delay is None and plan.delay != Lateness():
        steps.append([*same, "--delays", "0,50,500,5000"])
    if (task := plan.job.settings.task) in _COMPARED:
        steps.append([*delayed, "--compare", _COMPARED[task]])
    if options.output is None:
        steps.append([*delayed, "--output", "predictions.jsonl"])
    return steps[:_MOST]
