"""The saved form of a regression calibrator, `abers.regression.ivapr`."""

from __future__ import annotations

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
from tests.engine.cases import native_exists
from tests.engine.regression.test_ivapr import OPTIONS, taught

from abers import StateError, VennAbers
from abers.regression import IVAPR

EVERY_RULE = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
DIGEST = 16


def resealed(blob: bytes) -> bytes:
    """Return damaged bytes with the right checksum."""
    return blob[:-DIGEST] + blake2b(blob[:-DIGEST], digest_size=DIGEST).digest()


@EVERY_RULE
@pytest.mark.parametrize("n", [0, 1, 40])
def test_round_trip(options: dict[str, Any], n: int) -> None:
    """What is restored or unpickled has the bytes, the options and the answers of what was."""
    calibrator = taught({**options, "support": (-20.0, 20.0)}, n)
    for other in (
        IVAPR.from_bytes(calibrator.to_bytes()),
        pickle.loads(pickle.dumps(calibrator)),  # noqa: S301 - our own bytes
    ):
        assert other.to_bytes() == calibrator.to_bytes()
        assert repr(other) == repr(calibrator)
        assert other.late == calibrator.late
        for score in (-1.0, 0.25, 0.3, 9.0):
            assert other.predict_one(score) == calibrator.predict_one(score)


@EVERY_RULE
@given(st.data())
def test_damage_is_noticed(options: dict[str, Any], data: st.DataObject) -> None:
    """Any changed, missing or added byte is refused."""
    blob = taught(options, 12).to_bytes()
    at = data.draw(st.integers(0, len(blob) - 1))
    changed = bytes([blob[at] ^ data.draw(st.integers(1, 255))])
    for damaged in (blob[:at] + changed + blob[at + 1 :], blob[:at], blob + b"\0"):
        with pytest.raises(StateError):
            IVAPR.from_bytes(damaged)


@EVERY_RULE
@given(st.data())
def test_forged_state_is_refused_or_sound(options: dict[str, Any], data: st.DataObject) -> None:
    """Damage under a right checksum is refused, or is what some calibrator would have written."""
    blob = taught(options, 12).to_bytes()
    at = data.draw(st.integers(0, len(blob) - DIGEST - 1))
    changed = bytes([blob[at] ^ data.draw(st.integers(1, 255))])
    forged = resealed(blob[:at] + changed + blob[at + 1 :])
    try:
        calibrator = IVAPR.from_bytes(forged)
    except StateError:
        return
    calibrator._check()  # noqa: SLF001 - made for these tests
    assert calibrator.to_bytes() == forged
    predicted = calibrator.predict_one(0.4)
    assert (np.diff(predicted.cdf(predicted.thresholds)) >= 0.0).all()


def test_other_things_are_refused() -> None:
    """The bytes of a binary calibrator and those of a later version are not loaded."""
    with pytest.raises(StateError, match="not a saved IVAPR"):
        IVAPR.from_bytes(VennAbers().to_bytes())
    blob = IVAPR().to_bytes()
    with pytest.raises(StateError, match="reads format 1"):
        IVAPR.from_bytes(resealed(blob[:7] + b"\x02" + blob[8:]))


TEACHING = """
from tests.engine.regression.test_ivapr import OPTIONS, taught
for name, options in OPTIONS.items():
    calibrator = taught(options, 30)
    print(name, calibrator.to_bytes().hex(), calibrator.predict_one(0.3).to_dict())
"""


@pytest.mark.native
@pytest.mark.once
def test_backends_write_the_same_bytes() -> None:
    """What one backend has learned has the same bytes, and the same answers, on the other."""
    assert native_exists()
    native, other = (
        subprocess.run(
            [sys.executable, "-c", TEACHING],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "ABERS_BACKEND": backend},
        ).stdout.splitlines()
        for backend in ("native", "reference")
    )
    assert len(native) == len(OPTIONS)
    assert native == other
