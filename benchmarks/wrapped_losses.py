"""Log loss of a river learner on real streams: alone, and wrapped with either calibrator.

Usage: python -m benchmarks.wrapped_losses [FOLDER]

The streams are Phishing and Bananas of river, and Elec2 if FOLDER has it. The learner is a logistic
regression of standardised features. All observations have ids, and their labels come late.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from river import datasets, evaluate, linear_model, metrics, preprocessing

from abers import VennAbers
from abers.river import VennAbersClassifier
from benchmarks.papers.streams_data import two

if TYPE_CHECKING:
    from collections.abc import Iterable

    Events = list[tuple[dict[Any, Any], bool]]

DELAYS = (0, 100, 1_000)


def write(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def streams(folder: str | None) -> Iterable[tuple[str, Events]]:
    """Yield names and events."""
    for kind in (datasets.Phishing, datasets.Bananas):
        make: Any = kind  # river does not type it
        yield kind.__name__, [*make()]
    if folder is not None:
        x, y = two(Path(folder), "Elec2")
        rows = map(dict, map(enumerate, x.tolist()))
        yield "Elec2", [*zip(rows, (y == 1).tolist(), strict=True)]


def learner() -> Any:  # noqa: ANN401 - a pipeline
    """Make a learner."""
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def log_loss(model: Any, events: Events, delay: int, *, ids: bool = True) -> float:  # noqa: ANN401
    """Return the mean log loss of the probabilities as they were served."""
    stream: Any = ((x, y, {"id": i} if ids else {}) for i, (x, y) in enumerate(events))
    metric: Any = metrics.LogLoss()  # type: ignore[no-untyped-call]  # of river
    evaluate.progressive_val_score(stream, model, metric, delay=delay)
    found: float = metric.get()
    return found


def main(folder: str | None = None) -> None:
    """Print a row a stream and delay."""
    write(f"{'stream':10}{'events':>8}{'delay':>7}{'raw':>9}{'merged':>9}{'protected':>11}")
    for name, events in streams(folder):
        for delay in DELAYS:
            raw = log_loss(learner(), events, delay, ids=False)
            merged = VennAbersClassifier(learner(), calibrator=VennAbers())
            losses = [log_loss(merged, events, delay)]
            losses.append(log_loss(VennAbersClassifier(learner()), events, delay))
            write(
                f"{name:10}{len(events):>8,}{delay:>7,}{raw:>9.4f}"
                f"{losses[0]:>9.4f}{losses[1]:>11.4f}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
