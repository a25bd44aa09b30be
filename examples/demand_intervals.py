"""Intervals of a demand forecast that keep covering when the model goes off.

Usage: python examples/demand_intervals.py [FIGURE.html]
(needs pip install "abers[files,plots]")

A model forecasts the demand for power, hour by hour, plus and minus 3.3 MW, which covered 90 % of
the labels last year. Half-way a new plant draws more power, and less evenly. Each label comes a day
late. docs/gallery/demand_intervals.md shows the output and the figure.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from abers.plotting import series
from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.plotting import Figure

    Floats = NDArray[np.float64]

HOUR, START = 3_600_000, 1_735_689_600_000  # milliseconds; the start of 2025
HOURS, NEW_PLANT, LATE = 3_000, 1_500, 24
LEVEL, MARGIN, LARGEST = 0.9, 3.3, 120.0  # MW; no demand is above the largest


def demand() -> tuple[Floats, Floats]:
    """Make up the forecast and the demand of each hour."""
    rng = np.random.default_rng(1)
    hour = np.arange(HOURS)
    forecast = 50 + 15 * np.sin(2 * np.pi * (hour - 9) / 24) + 5 * np.sin(2 * np.pi * hour / 168)
    new = hour >= NEW_PLANT
    noise = rng.normal(0, 1, HOURS) * np.where(new, 4.0, 2.0)
    return forecast, np.clip(forecast + np.where(new, 4.0, 0.0) + noise, 0, LARGEST)


def intervals(forecast: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the interval of each hour, made before its label was known."""
    hour = np.arange(HOURS)
    columns = {
        "id": [f"hour-{n}" for n in hour],
        "time": START + hour * HOUR,
        "score": forecast,
        "label": labels,
        "known": START + (hour + LATE) * HOUR,
    }
    events = Events.from_arrow(pa.table(columns), {"label_time": "known"})
    settings = Settings(
        task="regression", calibrator="protected", support=(0.0, LARGEST), coverage=LEVEL
    )
    served = Processor(settings).process_batch(events).predictions.columns
    return np.asarray(served["interval_low"]), np.asarray(served["interval_high"])


def figure(views: dict[str, NDArray[np.bool_]]) -> Figure:
    """Draw the coverage of the last 200 hours over time."""
    ends = np.arange(200, HOURS + 1, 20)
    over_time = {
        name: [float(covered[end - 200 : end].mean()) for end in ends]
        for name, covered in views.items()
    }
    title = "Share of labels inside their 90 % interval, over 200 hours"
    return series([*map(int, ends)], over_time, title=title, y_name="coverage")


def main() -> None:
    """Print coverage and width in parts of the stream, and draw the figure if it has a file."""
    forecast, labels = demand()
    ends = {
        "model": (forecast - MARGIN, forecast + MARGIN),
        "abers": intervals(forecast, labels),
    }
    covered = {name: (low <= labels) & (labels <= high) for name, (low, high) in ends.items()}
    print("      hours       inside their interval    median width, MW")
    print("                     model     abers        model    abers")
    for first, last in ((0, 500), (500, 1_500), (1_500, 1_600), (1_600, 2_000), (2_000, 3_000)):
        part = slice(first, last)
        shares = [f"{100 * one[part].mean():>8.0f} %" for one in covered.values()]
        widths = [f"{np.median((high - low)[part]):>9.1f}" for low, high in ends.values()]
        print(f"{first + 1:>5,} - {last:>5,}   {''.join([*shares, '    ', *widths])}")
    for path in sys.argv[1:]:
        figure(covered).write_html(path)


if __name__ == "__main__":
    main()
