"""One step of a stream: a batch is decided, and then applied.

`decide` changes nothing, and reads every limit, clock and learner. `apply` changes the state in
place, and reads none of them. So what was decided once can be applied again, from a journal, and
gives the same state on any release and machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream.retirement import due, retire

if TYPE_CHECKING:
    from abers.stream.columns import Events
    from abers.stream.decided import Decided
    from abers.stream.joined_batch import JoinedBatch, Retired
    from abers.stream.outputs import Outputs
    from abers.stream.state import ProcessorState

__all__ = ["apply", "decide", "step"]


def decide(state: ProcessorState, events: Events) -> Decided:
    """Decide about a batch of observations that bring their scores; nothing changes."""
    gone = due(state.join, state.settings) if len(events) else []
    names = state.join.names.without({*gone})
    return state.join.validator.validate(events, names)._replace(retired=gone)


def apply(state: ProcessorState, decided: Decided) -> tuple[Outputs, Decided]:
    """Apply what is decided, and return the outputs, and the batch with what was issued."""
    retired = retire(state, decided.retired)
    joined = state.join.take(decided, retired.dead_letters)
    return _calibrated(state, joined, retired)


def step(state: ProcessorState, events: Events) -> tuple[Outputs, Decided]:
    """Decide about a batch and apply it.

    With a learner each event is joined before the next is decided, since a score depends on the
    labels before it. Calibrators and monitors go on once, behind the last event.
    """
    learners = state.join.learners
    if learners is None:
        return apply(state, decide(state, events))
    retired = retire(state, due(state.join, state.settings) if len(events) else [])
    joined = state.join.take_scored(events, learners, retired)
    return _calibrated(state, joined, retired)


def _calibrated(
    state: ProcessorState, joined: JoinedBatch, retired: Retired
) -> tuple[Outputs, Decided]:
    outputs, issued = state.calibrate(joined)
    return outputs._replace(retired=retired.names), joined.decided._replace(issued=issued)
