"""Data of each figure, as the tests and the gallery draw them."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abers.pages.figures.data import (
        GapData,
        IntervalsData,
        OverTimeData,
        ReliabilityData,
        SharesData,
        SparkData,
    )

DAY = 86_400_000.0
START = datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1_000


def over_time(windows: int = 25, *, days: float = 334, zone: str | None = None) -> OverTimeData:
    """Return a model that promises too much, by rows of 2,000 or by times if there is a zone."""
    chance = random.Random(1)  # noqa: S311 - a sample
    step = days * DAY / max(1, windows)
    x = [START + step * (one + 0.5) if zone else 2_000.0 * (one + 1) for one in range(windows)]
    came = [0.33 + 0.12 * math.sin(one / 4) + chance.gauss(0, 0.04) for one in range(windows)]
    return {
        "x": x,
        "zone": zone,
        "ends": (START, START + days * DAY) if zone else (1, 2_000 * (windows + 1)),
        "labels": [963 - one for one in range(windows)],
        "came": came,
        "low": [one - 0.04 for one in came],
        "high": [one + 0.04 for one in came],
        "raw": [one * 0.7 + 0.19 for one in came],
        "calibrated": [one * 0.7 + 0.11 for one in came],
        "alarms": x[1:2],
        "now": x[max(0, windows - 3)] if x else None,
        "reference": None,
        "open": True,
        "missing": 0,
    }


def spark(windows: int = 25) -> SparkData:
    """Return gaps below the tolerance."""
    data = over_time(windows)
    gaps = [100 * ((c or 0) - (r or 0)) for c, r in zip(data["came"], data["raw"], strict=True)]
    return {
        "which": "raw",
        "x": data["x"],
        "y": gaps,
        "tolerance": (-4.8, 5.1),
        "alarms": data["alarms"],
        "now": data["now"],
        "missing": 0,
    }


def saved(windows: int = 25) -> SparkData:
    """Return what is saved: no tolerance, calibrated."""
    data = spark(windows)
    data["which"], data["tolerance"], data["alarms"] = "calibrated", None, []
    data["y"] = [5 + 4 * math.sin(one) for one in range(windows)]
    return data


def gap(value: float, low: float, high: float) -> GapData:
    """Return a gap on a scale from -21 to 21 points."""
    return {
        "which": "raw",
        "gap": value,
        "low": low,
        "high": high,
        "tolerance": (-4.8, 5.1),
        "limit": 21,
        "missing": 0,
    }


def reliability() -> ReliabilityData:
    """Return groups that came less than promised at higher probabilities."""
    promised = [0.066, 0.145, 0.24, 0.345, 0.49]
    came = [0.105, 0.155, 0.216, 0.253, 0.344]
    half = [0.04, 0.035, 0.064, 0.115, 0.146]
    return {
        "which": "calibrated",
        "names": ["below 0.1", "0.1 to 0.2", "0.2 to 0.3", "0.3 to 0.4", "0.4 and above"],
        "promised": promised,
        "came": came,
        "low": [c - h for c, h in zip(came, half, strict=True)],
        "high": [c + h for c, h in zip(came, half, strict=True)],
        "cases": [1_340, 2_100, 836, 368, 279],
        "tolerance": 1.25,
        "isotonic_x": [0.01, 0.03, 0.09, 0.15, 0.22, 0.26, 0.38, 0.5, 0.54, 0.6, 0.63, 0.86],
        "isotonic_y": [0.02, 0.1, 0.13, 0.17, 0.2, 0.25, 0.28, 0.36, 0.43, 0.57, 0.68, 0.68],
        "tenths": [1_340, 2_100, 836, 368, 185, 62, 21, 8, 3, 0],
        "missing": 0,
    }


def intervals(labels: int = 60, *, zone: str | None = "UTC") -> IntervalsData:
    """Return temperatures of days with their intervals."""
    chance = random.Random(2)  # noqa: S311 - a sample
    middle = [45 + 15 * math.sin(one / 9) for one in range(labels)]
    start = START + 200 * DAY
    return {
        "x": [start + DAY * one if zone else 1.0 + one for one in range(labels)],
        "zone": zone,
        "unit": "\N{NO-BREAK SPACE}°C",
        "label": [one + chance.gauss(0, 9) for one in middle],
        "bands": [
            {
                "level": level,
                "low": [one - wide for one in middle],
                "high": [one + wide for one in middle],
            }
            for level, wide in ((50, 5.5), (80, 10.5), (95, 15.5))
        ],
        "missing": 0,
    }


METHODS = [
    "raw",
    "all labels",
    "latest 1,000",
    "latest 4,000",
    "level",
    "slope",
    "stack",
    "switching",
]


def shares(windows: int = 40) -> SharesData:
    """Return methods of which the last gains weight."""
    rows = []
    for one in range(windows):
        trend = min(one, 900) / 90
        weights = [math.exp(math.sin(one / 9 + 2 * m) + m * trend) for m in range(8)]
        rows.append([weight / sum(weights) for weight in weights])
    return {
        "x": [START + 8 * DAY * one for one in range(windows)],
        "zone": "UTC",
        "names": METHODS,
        "shares": [[row[m] for row in rows] for m in range(len(METHODS))],
        "missing": 0,
    }
