"""The same replay with labels at several delays."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers_connectors.replay.options import lateness
from abers_connectors.replay.plan import plan_replay
from abers_connectors.replay.summary import summarize_run
from abers_connectors.sources.registry import is_read_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.config.value_types import Lateness
    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.replay.run import BaseRun
    from abers_connectors.replay.summary import Summary
    from abers_connectors.sources.base import Source

__all__ = ["replay_delays"]

_ONCE = "--delays reads the stream once for each delay; give a file, no pipe"


def replay_delays(
    options: ReplayOptions,
    delays: str,
    finish: Callable[[BaseRun, Source], None],
    say: Callable[[str], object] = lambda _: None,
) -> dict[Lateness, Summary]:
    """Return the summary of a replay at each delay, of delays with commas between them.

    `finish` iterates a run of a source to its end, and `say` takes a sentence about a worker that
    ends early. Nothing is written. A stream that can be read only once is a ParameterError.
    """
    if Path(options.stream).is_fifo():
        raise ParameterError(_ONCE)
    found: dict[Lateness, Summary] = {}
    for text in delays.split(","):
        one = lateness(text.strip(), "--delays")
        job = plan_replay(options._replace(delay=text.strip()), writes=False).job
        if is_read_once(job.source):
            raise ParameterError(_ONCE)
        started = perf_counter()
        with job.start(say=say) as running:
            finish(running, job.source)
        found[one] = summarize_run(running, running.events, perf_counter() - started)
    return found
