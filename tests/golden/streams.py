"""Streams of records in which everything happens that a processor knows.

A record is a mapping as a producer would write it: an observation has a score, a label has a label.
All is random by a seed, and times are those of the events.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

__all__ = ["CLASSES", "START", "lines", "stream", "tabulated"]

START = 1_700_000_000_000
CLASSES = ("cat", "dog", "owl")
_STEP = 2_000  # milliseconds between observations
_MODELS = ("m", "m", "m", "m", "m", "n", "m", "n", "é")
_BURST = range(200, 280)  # observations so close that some are given up
_DRIFT = 190  # from here on the scores of a model mean the contrary


def stream(kind: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Make a stream of a kind: binary, folds, features, multiclass or regression."""
    rng = np.random.default_rng(seed)
    made: list[tuple[float, dict[str, Any]]] = []
    for i in range(n):
        time = START + _STEP * i if i not in _BURST else START + _STEP * _BURST.start + i
        model, segment = _MODELS[i % len(_MODELS)], ("", "", "s")[int(rng.integers(3))]
        of = {"id": f"id-{i}", "time": time, "model": model}
        given, label = _pair(rng, kind, drifted=i >= _DRIFT and model == "m")
        seen = {**of, **given, "segment": segment}
        if i % 10 == 0:
            seen["note"] = f"note {i}"
        made.append((time, seen))
        delay = int(rng.exponential(30_000.0)) - 2_000
        told = {**of, "time": time + delay, "label": label}
        if i in _BURST:
            delay += 60_000
            told["time"] = time + delay
        if i % 17 != 3:  # these labels are lost
            made.append((time + delay, told))
        made += [(time + 1, one) for one in _wrong(i, of, given, label)]
        if i % 31 == 7:  # both come again, the label another one
            made.append((time + 9_000, seen))
            made.append((time + 90_000, told))
            made.append((time + 95_000, {**told, "label": _other(label)}))
        if i % 53 == 11:  # after the observation was given up
            made.append((time + 400_000, {**told, "id": f"late-{i}", "time": time + 400_000}))
            made.append((time, {**seen, "id": f"late-{i}"}))
    return [one for _, one in sorted(made, key=lambda pair: pair[0])]


def _pair(rng: np.random.Generator, kind: str, *, drifted: bool) -> tuple[dict[str, Any], Any]:
    """Draw what an observation has, and its label."""
    if kind == "multiclass":
        parts = rng.multinomial(14, [0.5, 0.3, 0.2]) if rng.random() < 0.5 else [2, 10, 2]
        score = {name: int(part) / 14 for name, part in zip(CLASSES, parts, strict=True)}
        picked = CLASSES[int(rng.choice(3, p=np.array(parts) / 14))]
        return {"score": score}, CLASSES[0] if drifted else picked
    if kind == "regression":
        mean = round(float(rng.normal(50.0, 10.0)), 1)
        return {"score": mean}, round(mean + float(rng.normal(15.0 if drifted else 0.0, 4.0)), 2)
    chance = float(np.round(rng.random(), int(rng.integers(1, 4))))
    label = int(rng.random() < chance**2)
    label = 1 - label if drifted else label
    if kind == "folds" and rng.integers(2):
        return {"score": [round(chance * (8 + k) / 12, 4) for k in range(5)]}, label
    if kind == "features":
        return {"x": {"a": chance} | ({"fail": True} if rng.integers(40) == 0 else {})}, label
    return {"score": chance}, label


def _other(label: Any) -> Any:  # noqa: ANN401 - of any task
    if isinstance(label, str):
        return CLASSES[CLASSES.index(label) - 1]
    return 1 - label if isinstance(label, int) else label + 1.0


def _wrong(i: int, of: dict[str, Any], given: dict[str, Any], label: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Make records that cannot be used, or hardly; each kind twice or so in a stream."""
    new = {**of, "id": f"bad-{i}"}
    kinds: dict[int, dict[str, Any]] = {
        5: {**new, "score": math.nan},
        12: {**new, "score": None},
        20: {**new, "score": "high"},
        27: {**new, **given, "time": None},
        33: {**new, **given, "time": of["time"] * 1_000_000},
        40: {**new, **given, "id": "long-" + "é" * 40},
        46: {**new, **given, "id": ""},
        54: {**new, "label": "maybe"},
        61: {**new, "label": None},
        68: {**new, **given, "model": f"other-{i}"},
        75: {**new, **given, "time": of["time"] + 200_000},
        82: {**new, **given, "time": of["time"] + 900_000},
        83: {**new, **given, "time": of["time"] + 900_000, "recorded": of["time"]},
        89: {**new, "label": label},
        96: {**new, **given, "model": "a long name of a model, which is too long"},
        103: {**new, **given, "segment": "t" * 50},
        110: {**new, **given, "time": of["time"] - 300_000},
    }
    return [kinds[i % 113]] if i % 113 in kinds else []


def lines(records: list[dict[str, Any]]) -> list[bytes]:
    """Write records as lines of JSON, with some among them that are none."""
    found: list[bytes] = []
    for i, record in enumerate(records):
        line = json.dumps(record, ensure_ascii=i % 2 == 0).encode()
        found.append(line)
        if i % 97 == 13:  # each kind comes once or twice
            odd = (line[: len(line) // 2], b"no JSON", b"\xff\xfe", b"[]", b"", b"{}", b"{" * 99)
            found.append(odd[i // 97 % len(odd)])
    return found


def tabulated(records: list[dict[str, Any]]) -> bytes:
    """Write observations as CSV, each with the first of its labels."""
    labels: dict[str, Any] = {}
    for one in records:
        if "label" in one:
            labels.setdefault(one["id"], one["label"])
    columns = ("id", "time", "score")
    rows = [
        [*(one[name] for name in columns), labels[one["id"]]]
        for one in records
        if "label" not in one and one["id"] in labels and one["id"].startswith("id-")
    ]
    header = ",".join((*columns, "label"))
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""]).encode()
