"""Threads that share a calibrator, and what runs next to a call on arrays."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.cases import check, stream

from abers import CrossVennAbers, NotHeldError, VennAbers
from abers.arrays import LEARN, PREDICT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS = 6


@pytest.fixture
def _often() -> Iterator[None]:
    """Let threads take turns a thousand times as often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


def together(work: Callable[[int], None]) -> None:
    """Run `work(0)`, `work(1)`, … at the same time, and raise what any of them raises."""
    gate = threading.Barrier(THREADS)

    def started(i: int) -> None:
        gate.wait()
        work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(started, i) for i in range(THREADS)]:
            done.result()


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("options", [{}, {"max_age": 1e6}, {"half_life": 1e3}])
def test_shared_learning_equals_sequential(options: dict[str, Any]) -> None:
    """Threads that learn, one at a time and in batches, leave what one thread would have left."""
    data = stream(options, 60 * THREADS)
    shared, alone = VennAbers(**options), VennAbers(**options)

    def learn(i: int) -> None:
        for j in range(i, 30 * THREADS, THREADS):
            when = {} if data.times is None else {"time": float(data.times[j])}
            shared.learn_one(float(data.scores[j]), int(data.labels[j]), **when)
            shared.predict_one(0.5)
        rest = slice(30 * THREADS + i, None, THREADS)
        times = None if data.times is None else data.times[rest]
        shared.learn_many(data.scores[rest], data.labels[rest], times=times)

    together(learn)
    alone.learn_many(data.scores, data.labels, times=data.times)
    check(shared)
    assert shared.state_bytes() == alone.state_bytes()
    assert shared.late == alone.late == 0


@pytest.mark.usefixtures("_often")
def test_shared_removing_takes_back_what_was_learned() -> None:
    """Threads that learn and remove at once leave only what was not removed."""
    shared = VennAbers()
    shared.learn_many([0.25, 0.5, 0.75], [0, 1, 1])
    before = shared.state_bytes()

    def learn_and_remove(i: int) -> None:
        for j in range(100):
            score, label = j % 7 / 8, (i + j) % 2
            shared.learn_one(score, label)
            shared.hull()
            shared.remove_one(score, label)

    together(learn_and_remove)
    check(shared)
    assert shared.state_bytes() == before


@pytest.mark.usefixtures("_often")
def test_refused_batches_are_undone_as_a_whole() -> None:
    """No other thread ever sees a batch that is refused half-way."""
    shared = VennAbers()
    shared.learn_many([0.25, 0.75], [0, 1])
    expected = shared.predict_one(0.5)

    def look_or_fail(i: int) -> None:
        for _ in range(100):
            if i % 2:
                assert shared.predict_one(0.5) == expected
                assert len(shared.hull().value) == 2
            else:
                with pytest.raises(NotHeldError):
                    shared.run([1, 1, 2], [0.5, 0.5, 0.9], [1, 0, 1])

    together(look_or_fail)
    assert shared.predict_one(0.5) == expected


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("options", [{"window": 50}, {"max_age": 1.0}, {"half_life": 0.1}])
def test_shared_calibrators_that_forget_stay_sound(options: dict[str, Any]) -> None:
    """Whatever the order of threads, a calibrator that forgets keeps its invariants and limits."""
    data = stream(options, 60)
    shared = VennAbers(**options)

    def work(i: int) -> None:
        for _ in range(5):
            shared.prequential(
                data.scores, data.labels, delay=i, weights=data.weights, times=data.times
            )
            assert VennAbers.from_bytes(shared.to_bytes()).window == shared.window

    together(work)
    check(shared)
    assert 0 < len(shared) <= (shared.window or 60 * 5 * THREADS)


@pytest.mark.large(200_000)
@pytest.mark.native  # plain Python holds the interpreter lock
def test_a_call_on_arrays_releases_the_interpreter_lock(size: int) -> None:
    """While the core runs through arrays, another thread runs Python.

    Threads hardly ever take turns here unless one lets go, so this thread can find the other one
    in the middle of its call only if the call lets go.
    """
    rng = np.random.default_rng(0)
    scores = np.repeat(rng.random(size), 2)
    labels = np.repeat(rng.integers(0, 2, size).astype(np.uint8), 2)
    steps = np.tile(np.array([PREDICT, LEARN], np.uint8), size)
    p0, p1 = np.empty(2 * size), np.empty(2 * size)
    core = VennAbers()._held  # noqa: SLF001 - numpy's own calls around it let go as well
    begun, ended, seen = threading.Event(), threading.Event(), 0

    def work() -> None:
        begun.set()
        core.run(steps, scores, labels, None, None, p0, p1)
        ended.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e3)
    try:
        worker = threading.Thread(target=work)
        worker.start()
        begun.wait()
        while not ended.is_set() and seen < 1000:
            seen += 1
    finally:
        sys.setswitchinterval(interval)
    worker.join()
    assert seen == 1000
    assert (p0[::2] <= p1[::2]).all()


@pytest.mark.native
@pytest.mark.usefixtures("_often")
def test_shared_folds_equal_sequential_ones() -> None:
    """Threads that share a cross calibrator leave what one thread would have left."""
    data = stream({}, 40 * THREADS)
    scores = np.column_stack([data.scores, data.scores[::-1]])
    ids = [f"id-{i}" for i in range(len(scores))]
    shared, alone = CrossVennAbers(2), CrossVennAbers(2)

    def learn(i: int) -> None:
        for j in range(i, 20 * THREADS, THREADS):
            shared.learn_one(scores[j].tolist(), int(data.labels[j]), id=ids[j])
            shared.predict_one([0.5, 0.5])
        rest = slice(20 * THREADS + i, None, THREADS)
        shared.learn_many(scores[rest], data.labels[rest], ids=ids[rest])

    together(learn)
    alone.learn_many(scores, data.labels, ids=ids)
    assert shared.state_bytes() == alone.state_bytes()
