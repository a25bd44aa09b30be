"""The saved form of a cross calibrator: its folds, each as it saves itself.

Governing rule: the number of folds and of labels learned, then each fold's own sealed bytes after
their length; folds that no cross calibrator could have together are refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from abers._saved import MOST
from abers._sealed import REMEDY
from abers.calibration import _folds
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import InputError, StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"abersCV\x01"
_HEADER = struct.Struct("<QQ")  # folds, labels learned
_LENGTH = struct.Struct("<Q")


def dump(calibrators: Sequence[VennAbers], learned: int) -> bytes:
    """Write out all folds, and the number of labels learned."""
    parts = [_HEADER.pack(len(calibrators), learned)]
    for calibrator in calibrators:
        blob = calibrator.to_bytes()
        parts += [_LENGTH.pack(len(blob)), blob]
    return b"".join(parts)


def load(payload: memoryview) -> tuple[list[VennAbers], int]:
    """Make the folds that `dump` wrote, or raise a StateError."""
    try:
        calibrators, learned = _parse(payload)
        _folds.count(len(calibrators))
    except (struct.error, InputError) as error:
        msg = f"saved cross calibrator is cut short or garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    rules = {(one.window, one.max_age, one.half_life) for one in calibrators}
    if len(rules) != 1 or not sum(map(len, calibrators)) <= learned <= MOST:
        msg = f"saved cross calibrator is inconsistent (folds); {REMEDY}"
        raise StateError(msg)
    return calibrators, learned


def _parse(payload: memoryview) -> tuple[list[VennAbers], int]:
    folds, learned = _HEADER.unpack_from(payload)
    at, calibrators = _HEADER.size, []
    for _ in range(folds):
        (length,) = _LENGTH.unpack_from(payload, at)
        at += _LENGTH.size
        calibrators.append(VennAbers.from_bytes(bytes(payload[at : at + length])))
        at += length
    if at != len(payload):
        msg = "bytes behind the last fold"
        raise struct.error(msg)
    return calibrators, learned
