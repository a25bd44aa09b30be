"""Several classes: cost compared with as many binary calibrators and with venn-abers.

One-vs-rest is compared with its own binary calibrators run by themselves, which leaves the cost of
the classes. Probabilities are compared before anything is timed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from venn_abers.venn_abers import predict_proba_prefitted_va

from abers import OneVsOne, OneVsRest, VennAbers
from benchmarks.contenders import PACKAGE
from benchmarks.page import Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.page import Key
    from benchmarks.plan import Plan

    Floats = NDArray[np.float64]
    Labels = NDArray[np.int64]
    Kind = type[OneVsRest | OneVsOne]

K = 10
BINARY, REST, ONE = "one binary calibrator a class", "one-vs-rest", "one-vs-one"
AT_ONCE = "batch of classes"
KINDS: dict[str, Kind] = {REST: OneVsRest, ONE: OneVsOne}
TOLERANCE = 1e-9  # venn-abers couples ends that it has rounded on the way
_MOST = 10**5
_ROUNDS = 3  # a turn of one-vs-one takes seconds
_MICRO = 1e6


class Labelled(NamedTuple):
    """Scores of all classes, and labels that are drawn from them."""

    scores: Floats
    labels: Labels


def drawn(n: int, k: int) -> Labelled:
    """Draw a stream of k classes."""
    rng = np.random.default_rng(SEED)
    scores = rng.dirichlet(np.ones(k), n)
    beyond = scores.cumsum(axis=1) > rng.random((n, 1))
    return Labelled(scores, beyond.argmax(axis=1))


def multiclass(plan: Plan) -> Section:
    """Measure streams, pairs touched, and batches."""
    n = min(plan.large, _MOST)
    streams, values = _streams(n)
    batches, found = _batches(n)
    body = (
        f"{K} classes, {size(n)} observations, each predicted and then learned in one call; µs an"
        " observation. The first row is the binary calibrators of one-vs-rest, without it.\n\n"
        + streams
        + "Learning alone, µs for each pair of classes that a label touches (k - 1 of them):\n\n"
        + _touched(n)
        + "A batch of half as many learned, the other half predicted, compared with venn-abers"
        f" (their probabilities agree to {TOLERANCE:.0e}), in s:\n\n" + batches
    )
    return Section("Several classes", body, values | found)


def _streams(n: int) -> tuple[str, dict[Key, Spread]]:
    stream = drawn(n, K)

    def binary() -> None:
        for i, scores in enumerate(np.ascontiguousarray(stream.scores.T)):
            VennAbers().prequential(scores, stream.labels == i)

    calls: dict[str, Callable[[], object]] = {
        BINARY: binary,
        REST: lambda: OneVsRest(range(K)).prequential(*stream),
        ONE: lambda: OneVsOne(range(K)).prequential(*stream),
    }
    found = _per_observation(calls, n)
    rows = [
        [name, spread, f"{spread.median / found[BINARY].median:.2f}"]
        for name, spread in found.items()
    ]
    head = ["calibrator", "µs an observation", "times the first"]
    return table(head, rows), {("multi", name, n): spread for name, spread in found.items()}


def _touched(n: int) -> str:
    streams = {k: drawn(n // k, k) for k in (3, K, 3 * K)}
    calls = {f"k = {k}": partial(_learn, k, stream) for k, stream in streams.items()}
    found = in_turns(_ROUNDS, {name: partial(seconds, call) for name, call in calls.items()})
    rows = []
    for (k, stream), (name, spread) in zip(streams.items(), found.items(), strict=True):
        pairs = len(stream.labels) * (k - 1) / _MICRO
        rows.append([name, Spread(*(each / pairs for each in spread))])
    return table(["classes", "µs a pair touched"], rows)


def _learn(k: int, stream: Labelled) -> None:
    OneVsOne(range(k)).learn_many(*stream)


def _batches(n: int) -> tuple[str, dict[Key, Spread]]:
    scores, labels = drawn(n, K)
    half, rows = n // 2, []
    values: dict[Key, Spread] = {}
    for name, kind in KINDS.items():
        ours = partial(_ours, kind, scores, labels, half)
        theirs = partial(_theirs, name.replace("-", "_"), scores, labels, half)
        difference = float(np.abs(ours() - theirs()).max())
        if difference > TOLERANCE:
            msg = f"{name}: venn-abers differs by {difference}"
            raise ArithmeticError(msg)
        calls = {"abers": partial(seconds, ours), PACKAGE: partial(seconds, theirs)}
        found = in_turns(_ROUNDS, calls)
        rows.append([name, *found.values()])
        values[AT_ONCE, name, n], values[AT_ONCE, f"{PACKAGE}, {name}", n] = found.values()
    return table(["system", *calls], rows), values


def _ours(kind: Kind, scores: Floats, labels: Labels, half: int) -> Floats:
    calibrator = kind(range(K))
    calibrator.learn_many(scores[:half], labels[:half])
    return calibrator.predict_many(scores[half:])[0]


def _theirs(words: str, scores: Floats, labels: Labels, half: int) -> Floats:
    given = scores[:half], labels[:half], scores[half:]
    p: Floats = predict_proba_prefitted_va(*given, va_tpe=words)[0]
    return p


def _per_observation(calls: dict[str, Callable[[], object]], n: int) -> dict[str, Spread]:
    def measured(call: Callable[[], object]) -> float:
        return seconds(call) * _MICRO / n

    return in_turns(_ROUNDS, {name: partial(measured, call) for name, call in calls.items()})
