"""The saved form of calibrators of several classes."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.cases import OPTIONS

from abers import OneVsOne, OneVsRest, StateError, VennAbers
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Calibrator = OneVsRest | OneVsOne
KINDS: list[type[Calibrator]] = [OneVsRest, OneVsOne]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
CLASSES = [None, ("x", 1, False), (2**70, -1), ("ü", "\ud800", "")]
DIGEST = 16


def go_on(calibrator: Calibrator, *, n: int = 30, seed: int = 0, start: float = 0.0) -> list[Any]:
    """Feed a calibrator a stream, and tell all that it says."""
    rng = np.random.default_rng(seed)
    labels = calibrator.classes or ("x", 1, False)
    times = start + np.cumsum(rng.choice(np.array([0.0, 0.4, -0.3, 3.0]), n))
    dated = calibrator.max_age is not None or calibrator.half_life is not None
    answers: list[Any] = []
    for row, time in zip(rng.integers(0, 4, (n, len(labels))).tolist(), times, strict=True):
        scores = dict(zip(labels, map(float, row), strict=True))
        answers.append(calibrator.predict_one(scores))
        when = {"time": float(time)} if dated else {}
        calibrator.learn_one(scores, labels[int(rng.integers(len(labels)))], **when)
    return [*answers, calibrator.classes, len(calibrator), calibrator.to_bytes()]


@EVERY_KIND
@EVERY_RULE
@pytest.mark.parametrize("classes", CLASSES, ids=["open", "mixed", "whole", "text"])
def test_a_restored_calibrator_goes_on_bit_for_bit(
    kind: type[Calibrator], options: dict[str, Any], classes: Sequence[str | int] | None
) -> None:
    """A restored calibrator and one that never stopped are equal in everything."""
    calibrator = kind(classes, **options, max_classes=7)
    go_on(calibrator)
    restored = kind.from_bytes(calibrator.to_bytes())
    assert repr(restored) == repr(calibrator)
    assert restored.max_classes == 7
    assert list(map(type, restored.classes)) == list(map(type, calibrator.classes))
    assert go_on(restored, seed=1, start=20.0) == go_on(calibrator, seed=1, start=20.0)


@EVERY_KIND
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))],  # noqa: S301 - our own bytes
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_independent(
    kind: type[Calibrator], duplicate: Callable[[Calibrator], Calibrator]
) -> None:
    """A copy or an unpickled calibrator equals its original and lives a life of its own."""
    calibrator = kind(window=5)
    go_on(calibrator)
    before = calibrator.to_bytes()
    twin = duplicate(calibrator)
    assert twin.to_bytes() == before
    go_on(twin, seed=1)
    assert calibrator.to_bytes() == before


def saved(kind: type[Calibrator]) -> tuple[bytes, list[bytes]]:
    """Save a calibrator; return its magic and its pieces."""
    calibrator = kind(("a", "b"), window=9)
    go_on(calibrator)
    blob = calibrator.to_bytes()
    return blob[:8], unpack(memoryview(blob)[8:-DIGEST])


@EVERY_KIND
def test_damaged_bytes_are_refused(kind: type[Calibrator]) -> None:
    """Cut, changed or foreign bytes raise a StateError."""
    blob = kind(("a", "b")).to_bytes()
    other = OneVsOne if kind is OneVsRest else OneVsRest
    for bad in (
        b"",
        blob[:-1],
        blob[:40] + b"!" + blob[41:],
        VennAbers().to_bytes(),
        other().to_bytes(),
        blob[:7] + b"\x02" + blob[8:],
    ):
        with pytest.raises(StateError):
            kind.from_bytes(bad)


@EVERY_KIND
@pytest.mark.parametrize(
    ("piece", "forged"),
    [
        (0, b"[]"),
        (0, b"{"),
        (0, b'[true, 100, "a"]'),
        (0, b'[true, 100, "a", 1.5]'),
        (0, b'[true,100,"a","b"]'),
        (1, b"short"),
        (2, b"no calibrator"),
        (3, VennAbers(window=8).to_bytes()),
        (3, None),
    ],
)
def test_forged_pieces_are_refused(
    kind: type[Calibrator], piece: int, forged: bytes | None
) -> None:
    """Pieces that no calibrator could have written raise a StateError, though the seal is good."""
    magic, pieces = saved(kind)
    pieces[piece : piece + 1] = [] if forged is None else [forged]
    with pytest.raises(StateError):
        kind.from_bytes(seal(magic, pack(pieces)))


def test_packed_pieces_that_are_cut_short_are_refused() -> None:
    """A length that reaches beyond the end is an error, not a shorter piece."""
    packed = pack([b"one", b"", b"three"])
    assert unpack(memoryview(packed)) == [b"one", b"", b"three"]
    for cut in range(1, 8):
        with pytest.raises(StateError):
            unpack(memoryview(packed)[:-cut])


@EVERY_KIND
@EVERY_RULE
@pytest.mark.parametrize("classes", CLASSES[1:3], ids=["mixed", "whole"])
def test_predictions_leave_no_trace(
    kind: type[Calibrator], options: dict[str, Any], classes: Sequence[str | int]
) -> None:
    """Predictions, before the first label too, leave no trace."""
    calibrator, other = (kind(classes, **options, max_classes=7) for _ in range(2))
    scores, times = np.ones((2, len(calibrator.classes))), [5.0, 6.0]
    dated = calibrator.max_age is not None or calibrator.half_life is not None
    for _ in range(2):
        before = calibrator.to_bytes()
        calibrator.predict_many(scores, times=times if dated else None)
        assert calibrator.to_bytes() == before == other.to_bytes()
        go_on(calibrator)
        go_on(other)
