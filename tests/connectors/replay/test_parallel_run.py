"""A run of several workers: the results of one process, and none is lost with a worker."""

from __future__ import annotations

import os
import random
import re
import signal
from multiprocessing import active_children
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.replay.test_run import Records, sinks

from abers import RecordError
from abers.exceptions import DeadLettersError, WorkerError
from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.replay.run import BaseRun, DeadLetterLimit, Run
from abers_connectors.replay.summary import summarize_run
from abers_connectors.replay.workers import ParallelRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.stream import Event
    from abers_connectors.sources.base import Batch, Position

SETTINGS = Settings(
    label_timeout=400, scores="probability", max_jump=2**53, grace_period=5, cooldown=10
)


def history(size: int, models: int = 7, seed: int = 1) -> list[Event | str]:
    """Return a history of several models, in which some records are bad in some way."""
    draw = random.Random(seed)  # noqa: S311 - not a secret
    records: list[Event | str] = []
    for time in range(size):
        model = f"model {draw.randrange(models)}"
        score = draw.random()
        records.append(Observation(f"a{time}", time, model, score))
        kind = draw.randrange(20)
        if kind == 0:
            records.append("no record")
        if kind == 1:
            records.append(Label("unknown", time, model, 1))
        if kind == 2:
            records.append(Observation("", time, model, score))
        if kind > 3:
            late = max(0, time - draw.randrange(300))
            records.append(Label(f"a{late}", time, f"model {draw.randrange(models)}", 1))
            records.append(Label(f"a{time}", time, model, int(draw.random() < score**3)))
    return records


def finish(run: BaseRun) -> BaseRun:
    """Iterate a run to its end."""
    with run:
        for _ in run.run():
            pass
    return run


def results(run: BaseRun, written: dict[str, Any]) -> list[Any]:
    """Return all that a run found and wrote."""
    summary = summarize_run(run, run.events, 1.0)
    return [
        {name: [*sink.rows] for name, sink in written.items()},
        run.records,
        run.dead,
        run.alarms,
        # Sums over models have another order, and so perhaps another last digit.
        rounded({name: getattr(summary, name) for name in summary.__struct_fields__}),
    ]


def rounded(found: Any) -> Any:  # noqa: ANN401 - anything a summary holds
    """Return what a summary holds with numbers of twelve digits, without what the workers did."""
    if isinstance(found, dict):
        return {name: rounded(one) for name, one in found.items() if name != "workers"}
    if isinstance(found, list | tuple):
        return [rounded(one) for one in found]
    return float(f"{found:.12g}") if isinstance(found, float) else found


def alone(records: list[Event | str]) -> list[Any]:
    """Return the results of one process."""
    written = sinks()
    return results(finish(Run(Records(records, 500), Processor(SETTINGS), written)), written)


def shared(
    source: Any,  # noqa: ANN401 - any source
    count: int = 2,
    settings: Settings = SETTINGS,
    **options: Any,  # noqa: ANN401 - those of a run
) -> tuple[ParallelRun, dict[str, Any]]:
    """Return a run of several workers, and its sinks."""
    written = sinks()
    run = ParallelRun(source, settings, written, count, outcomes=True, **options)
    run.at_once = 1_000
    return run, written


class Killing(Records):
    """Records of which some batches, by number, kill a worker before they are read."""

    def __init__(self, records: list[Event | str], kills: dict[int, int]) -> None:
        super().__init__(records, 500)
        self.kills, self.read, self.killed = kills, 0, list[int]()

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches."""
        for number, batch in enumerate(super().batches(position)):
            self.read += 1
            if self.kills.get(number, 0) > 0:
                self.kills[number] -= 1
                self.kill()
            yield batch

    def kill(self) -> None:
        """Kill the youngest worker, and wait for its end."""
        worker = max(active_children(), key=lambda one: one.pid or 0)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join()
        self.killed.append(worker.pid or 0)


@pytest.mark.parametrize("count", [2, 3])
def test_the_results_are_those_of_one_process(count: int) -> None:
    """Outputs, dead letters and alarms are equal to the bit for any number of workers."""
    records = history(3_000)
    run, written = shared(Records(records, 500), count)
    found = results(finish(run), written)
    assert found == alone(records)
    assert found[3], "no alarm was raised, so their order was not tested"
    assert [one.restarts for one in run.workers] == [0] * count
    assert sum(one.models for one in run.workers) == 7
    assert sum(one.events for one in run.workers) == sum(not isinstance(r, str) for r in records)
    assert not active_children()


def test_learners_learn_the_same() -> None:
    """Each model has its own learner in a worker, whose state comes back at the end."""
    settings = Settings(scores="probability", learner="logistic")
    records: list[Event | str] = []
    for time in range(300):
        x, model = {"a": (time % 7) / 7}, f"model {time % 3}"
        records += [
            Observation(f"a{time}", time, model, x=x),
            Label(f"a{time}", time, model, int(time % 7 > 3)),
        ]
    written = sinks()
    one = finish(Run(Records(records), Processor(settings), written))
    run, others = shared(Records(records), settings=settings)
    assert results(finish(run), others) == results(one, written)


@pytest.mark.parametrize("kills", [{0: 1}, {5: 1}, {9: 1, 10: 1}], ids=str)
def test_the_shard_of_a_worker_that_is_killed_is_done_again(kills: dict[int, int]) -> None:
    """Wherever a worker is killed, it is named, and the results are those of one process."""
    records, said = history(3_000), list[str]()
    source = Killing(records, kills)
    run, written = shared(source, say=said.append)
    assert results(finish(run), written) == alone(records)
    assert len(said) == len(source.killed) == sum(one.restarts for one in run.workers)
    # Two that are dead at once are found in any order.
    named = [int(re.findall(r"of 2 \(process (\d+), 'model ", sentence)[0]) for sentence in said]
    assert sorted(named) == sorted(source.killed)
    for sentence in said:
        assert "was ended by SIGKILL, perhaps for lack of memory; its shard is done" in sentence
    assert not active_children()


def test_a_worker_killed_at_the_end_is_done_again() -> None:
    """A worker that dies after its last batch does its shard again, for its state is needed."""
    records = history(1_500)

    class AtEnd(Killing):
        def batches(self, position: Position | None = None) -> Iterator[Batch]:
            yield from super().batches(position)
            if not self.killed:
                self.kill()

    run, written = shared(AtEnd(records, {}))
    assert results(finish(run), written) == alone(records)
    assert sum(one.restarts for one in run.workers) == 1


def test_a_shard_that_always_ends_its_worker_ends_the_run() -> None:
    """The third end of the workers of a shard is an error, and nothing is left running."""
    run, _ = shared(Killing(history(3_000), {9: 9}))
    with pytest.raises(WorkerError, match=r"worker 2 of 2 .* as did two before it; give it more"):
        finish(run)
    assert not active_children()


def test_a_stream_that_changes_meanwhile_is_an_error() -> None:
    """A worker's shard is not done again from other events than before."""
    records = history(3_000)
    source = Killing(records, {9: 1})
    kill: Callable[[], None] = source.kill

    def changed() -> None:
        kill()
        del records[:40]

    source.kill = changed  # type: ignore[method-assign]
    with pytest.raises(RecordError, match="the input is not what it was when the replay began"):
        finish(shared(source)[0])


def test_limits_of_models_hold_over_all_workers() -> None:
    """More models than allowed are an error: which are refused would depend on the workers."""
    settings = Settings(max_models=5, label_timeout=400)
    run, _ = shared(Records(history(400)), settings=settings)
    with pytest.raises(RecordError, match=r"7 models and segments, more than limits.max_models = "):
        finish(run)


def test_workers_name_options_as_their_user_writes_them() -> None:
    """A dead letter names the option of a command, or says that it is one of a configuration."""
    settings, records = Settings(max_id_bytes=3), [Observation("abcd", 5, score=0.5)]
    for front, words in (("toml", "raise limits.max_id_bytes"), ("flag", " in a configuration; ")):
        run, written = shared(Records(records), settings=settings, front=front)
        finish(run)
        (dead,) = written["dead_letters"].rows
        assert words in dead.detail
        assert [one.front for one in run.processors] == [front] * 2


def test_too_many_dead_letters_end_the_run() -> None:
    """The limit of dead letters counts those of all workers, and the first one may stop the run."""
    records = history(3_000)
    with pytest.raises(DeadLettersError, match="of 1,"):
        finish(shared(Records(records, 500), limit=DeadLetterLimit(ratio=0.0))[0])
    with pytest.raises(DeadLettersError, match="nothing was predicted"):
        finish(shared(Records(["no record"]), limit=DeadLetterLimit(ratio=0.5))[0])
    stops = DeadLetterLimit(stop=True)
    with pytest.raises(RecordError) as one:
        finish(Run(Records(records, 500), Processor(SETTINGS), sinks(), limit=stops))
    with pytest.raises(RecordError, match=f"^{re.escape(str(one.value))}$"):
        finish(shared(Records(records, 500), limit=stops)[0])


def test_an_error_of_a_worker_is_raised_here() -> None:
    """What a calibrator raises in a worker ends the run, without another try."""
    settings = Settings(calibrator="tests.connectors.replay.failing:FailingCalibrator")
    source = Killing(history(100), {})
    with pytest.raises(ZeroDivisionError, match="asked to fail") as found:
        finish(shared(source, settings=settings)[0])
    (note,) = found.value.__notes__
    assert note.startswith("abers failed between ")
    assert source.read == 1
    assert not active_children()


def test_nothing_runs_on_without_the_parent() -> None:
    """Workers whose run is never begun end with it."""
    run, _ = shared(Records([]))
    assert len(active_children()) == 2
    with run:
        pass
    assert not active_children()
