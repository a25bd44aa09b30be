"""The saved form of a calibrator, `abers.serialization`."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import (
    GAPS,
    LABELS,
    OPTIONS,
    SCORES,
    WEIGHTS,
    aging,
    check,
    native_exists,
    stream,
    taught,
)

from abers import StateError, VennAbers

KINDS = OPTIONS | {
    "label_rates": {"label_rates": (0.5, 1.0)},
    "label_rates with window": {"window": 7, "label_rates": (1.0, 0.3)},
}
EVERY_RULE = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
DIGEST = 16

Event = tuple[float, int, float, float]
EVENTS = st.lists(st.tuples(SCORES, LABELS, WEIGHTS, GAPS), max_size=25)
UNIT_EVENTS = st.lists(st.tuples(SCORES, LABELS, st.just(1.0), GAPS), max_size=25)


def learned(options: dict[str, Any], events: list[Event]) -> VennAbers:
    """Learn events one at a time."""
    calibrator, now = VennAbers(**options), 0.0
    for score, label, weight, gap in events:
        now += gap
        when = {"time": now} if aging(options) else {}
        calibrator.learn_one(score, label, weight=weight, **when)
    return calibrator


def resealed(blob: bytes) -> bytes:
    """Return damaged bytes with the right checksum."""
    return blob[:-DIGEST] + blake2b(blob[:-DIGEST], digest_size=DIGEST).digest()


def go_on(calibrator: VennAbers, options: dict[str, Any]) -> tuple[list[float], list[float], bytes]:
    """Feed a calibrator more of its stream and tell all that it then says."""
    data = stream(options, 60, seed=9)
    times = None if data.times is None else data.times + 12.0
    p0, p1 = calibrator.prequential(
        data.scores, data.labels, delay=3, weights=data.weights, times=times
    )
    return p0.tolist(), p1.tolist(), calibrator.to_bytes()


# Round trips


@EVERY_RULE
@given(EVENTS | UNIT_EVENTS)
def test_round_trip(options: dict[str, Any], events: list[Event]) -> None:
    """What is restored has the bytes, the size, the late labels and the options of what was."""
    calibrator = learned(options, events)
    restored = VennAbers.from_bytes(calibrator.to_bytes())
    check(restored)
    assert restored.to_bytes() == calibrator.to_bytes()
    assert repr(restored) == repr(calibrator)
    assert restored.late == calibrator.late
    for score in (0.1, 0.3, 1e300):
        assert restored.predict_one(score) == calibrator.predict_one(score)


@EVERY_RULE
@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 200])
def test_a_restored_calibrator_goes_on_bit_for_bit(options: dict[str, Any], n: int) -> None:
    """A restored calibrator and one that never stopped are equal in everything."""
    calibrator = taught(options, n)
    restored = VennAbers.from_bytes(calibrator.to_bytes())
    assert go_on(restored, options) == go_on(calibrator, options)


@EVERY_RULE
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))],  # noqa: S301 - our own bytes
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_independent(options: dict[str, Any], duplicate: Any) -> None:  # noqa: ANN401
    """A copy or an unpickled calibrator equals its original and lives a life of its own."""
    calibrator = taught(options, 50)
    before = calibrator.to_bytes()
    twin = duplicate(calibrator)
    assert twin.to_bytes() == before
    go_on(twin, options)
    assert calibrator.to_bytes() == before


def test_a_subclass_is_restored_as_itself() -> None:
    """Restoring and copying keep the class."""

    class Named(VennAbers):
        pass

    assert type(Named.from_bytes(VennAbers(window=3).to_bytes())) is Named
    assert type(copy.copy(Named())) is Named


@pytest.mark.parametrize(
    "weights", [[2.0], [0.5, 0.5], [3.0, 1.0], [2.0**-30], [2.0**31, 2.0**31], [255.0], [256.0]]
)
def test_round_trip_of_weights(weights: list[float]) -> None:
    """Weights survive, whole or not, heavier or lighter than one a piece."""
    calibrator = VennAbers()
    calibrator.learn_many([0.5] * len(weights), [1] * len(weights), weights=weights)
    restored = VennAbers.from_bytes(calibrator.to_bytes())
    assert len(restored) == len(weights)
    assert restored.hull().weight.tolist() == [sum(weights)]


def test_late_labels_and_options_survive() -> None:
    """The number of late labels and the option of the calibrator are part of its bytes."""
    rules: list[dict[str, Any]] = [{"max_age": 5.0}, {"half_life": 0.1}]
    for options in rules:
        calibrator = VennAbers(**options)
        calibrator.learn_many([0.1, 0.2], [0, 1], times=[100.0, 0.0])
        restored = VennAbers.from_bytes(calibrator.to_bytes())
        assert restored.late == 1
        assert (restored.max_age, restored.half_life) == (calibrator.max_age, calibrator.half_life)


# Bytes are a function of what is held


@given(st.data(), EVENTS)
def test_equal_content_has_equal_bytes(data: st.DataObject, events: list[Event]) -> None:
    """Whatever was learned and removed in between, equal content has equal bytes."""
    plain = learned({}, events)
    winding = learned({}, data.draw(st.permutations(events)))
    detour = data.draw(EVENTS)
    for score, label, weight, _ in detour:
        winding.learn_one(score, label, weight=weight)
    winding = VennAbers.from_bytes(winding.to_bytes())
    for score, label, weight, _ in data.draw(st.permutations(detour)):
        winding.remove_one(score, label, weight=weight)
    assert winding.to_bytes() == plain.to_bytes()


@EVERY_RULE
def test_bytes_do_not_change_by_being_asked_for(options: dict[str, Any]) -> None:
    """Saving, predicting and restoring leave the bytes alone."""
    calibrator = taught(options, 40)
    first = calibrator.to_bytes()
    calibrator.predict_many([0.1, 0.5])
    calibrator.hull()
    VennAbers.from_bytes(first).learn_many([], [])
    assert calibrator.to_bytes() == first
    assert first.endswith(blake2b(first[:-DIGEST], digest_size=DIGEST).digest())
    assert calibrator.state_bytes() == first[8:-DIGEST]


def test_different_options_have_different_bytes() -> None:
    """Empty calibrators of different rules differ in their bytes."""
    options: list[dict[str, Any]] = [*OPTIONS.values(), {"window": 8}, {"max_age": 0.7}]
    assert len({VennAbers(**option).to_bytes() for option in options}) == len(options)


def test_unit_weights_are_small() -> None:
    """With unit weights and distinct scores an observation costs ten bytes."""
    calibrator = VennAbers()
    calibrator.learn_many(np.arange(1000) / 1000, np.arange(1000) % 2)
    assert len(calibrator.to_bytes()) < 10 * 1000 + 150


READING = """
import sys
from abers import VennAbers
from tests.engine.cases import OPTIONS, taught
from tests.engine.calibration.test_codec import go_on
for options, line in zip(OPTIONS.values(), sys.stdin, strict=True):
    restored = VennAbers.from_bytes(bytes.fromhex(line))
    assert restored.to_bytes() == taught(options, 70).to_bytes()
    print(go_on(restored, options))
"""


@pytest.mark.once
@pytest.mark.parametrize("reader", ["native", "reference"])
def test_the_other_backend_reads_the_bytes(reader: str) -> None:
    """Both backends write the same bytes, and what one wrote goes on in the other."""
    if not native_exists():
        pytest.skip("the native core is not built")
    calibrators = [taught(options, 70) for options in OPTIONS.values()]
    printed = subprocess.run(
        [sys.executable, "-c", READING],
        input="".join(f"{one.to_bytes().hex()}\n" for one in calibrators),
        env={**os.environ, "ABERS_BACKEND": reader},
        cwd=os.path.join(os.path.dirname(__file__), *[os.pardir] * 3),  # noqa: PTH118, PTH120
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = map(go_on, calibrators, OPTIONS.values())
    assert printed.splitlines() == [str(one) for one in expected]


# Damaged bytes


@pytest.mark.parametrize(
    "blob", [b"", b"abers", b"not a calibrator at all, but long enough", b"\0" * 99]
)
def test_other_bytes_are_refused(blob: bytes) -> None:
    """Bytes of something else are no saved calibrator."""
    with pytest.raises(StateError, match=r"not a saved VennAbers; .*restore"):
        VennAbers.from_bytes(blob)


def test_another_version_is_refused() -> None:
    """Bytes of a later format name that format, and what to do."""
    blob = VennAbers().to_bytes()
    with pytest.raises(StateError, match=r"format \[2\].*load it with the version"):
        VennAbers.from_bytes(resealed(blob[:7] + b"\x02" + blob[8:]))


@EVERY_RULE
def test_every_single_bit_counts(options: dict[str, Any]) -> None:
    """A blob with any one bit flipped is refused."""
    blob = taught(options, 6).to_bytes()
    for bit in range(len(blob) * 8):
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StateError):
            VennAbers.from_bytes(bytes(damaged))


@EVERY_RULE
def test_every_truncation_is_refused(options: dict[str, Any]) -> None:
    """A blob cut short anywhere is refused, with its checksum wrong or made right."""
    blob = taught(options, 6).to_bytes()
    for length in range(len(blob)):
        with pytest.raises(StateError):
            VennAbers.from_bytes(blob[:length])
        if length >= 8 + DIGEST:
            with pytest.raises(StateError):
                VennAbers.from_bytes(resealed(blob[:length]))


@st.composite
def damages(draw: st.DrawFn) -> bytes:
    """Draw a blob with bytes changed, taken out, put in or doubled, and a right checksum."""
    options = draw(st.sampled_from(list(OPTIONS.values())))
    blob = bytearray(learned(options, draw(EVENTS | UNIT_EVENTS)).to_bytes())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(8, max(len(blob) - DIGEST, 8)))
        until = at + draw(st.sampled_from((0, 1, 1, 2, 8, 16)))
        blob[at:until] = draw(
            st.one_of(
                st.binary(min_size=until - at, max_size=until - at),
                st.sampled_from(
                    (b"\xff" * 8, b"\0" * 8, b"\0" * 7 + b"\x80", b"\xff" * 7 + b"\x7f")
                ),
                st.binary(max_size=9),
                st.just(bytes(blob[at:until]) * 2),
            )
        )
    return resealed(bytes(blob))


@given(damages())
def test_damaged_bytes_are_refused_or_sound(blob: bytes) -> None:
    """Damage behind a right checksum gives a StateError or a calibrator that could be real."""
    try:
        restored = VennAbers.from_bytes(blob)
    except StateError as error:
        assert "restore them" in str(error) or "load it with" in str(error)  # noqa: PT017
        return
    check(restored)
    assert restored.to_bytes() == blob
    when = {"time": 1e9} if restored.max_age or restored.half_life else {}
    p0, p1 = restored.predict_one(0.3)
    assert 0.0 <= p0 <= p1 <= 1.0
    check(VennAbers.from_bytes(restored.to_bytes()))
    for time in ({"time": -1e9}, when) if when else ({},):
        try:
            restored.learn_one(0.3, 1, **time)
        except ValueError as error:
            assert "times" in str(error) or "weight" in str(error) or "time" in str(error)  # noqa: PT017
        check(restored)


@pytest.mark.parametrize("options", [*OPTIONS.values()], ids=OPTIONS)
@given(st.data())
def test_header_damage_is_refused_or_sound(options: dict[str, Any], data: st.DataObject) -> None:
    """Damage to the header alone, where the rule of forgetting stands, is never half believed."""
    blob = bytearray(taught(options, 12).to_bytes())
    at = data.draw(st.integers(8, 8 + 40))
    blob[at] = data.draw(st.integers(0, 255))
    try:
        restored = VennAbers.from_bytes(resealed(bytes(blob)))
    except StateError:
        return
    check(restored)
    assert restored.to_bytes() == resealed(bytes(blob))
