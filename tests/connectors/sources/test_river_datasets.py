"""The data sets that river includes."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from river import datasets

from abers import ParameterError
from abers_connectors.sources.river_datasets import RiverDataset, river_datasets

if TYPE_CHECKING:
    from abers.stream import Event


def rows(source: RiverDataset, position: dict[str, int] | None = None) -> list[Event]:
    """Return the rows of a data set, or the rest of them."""
    return [event for batch in source.batches(position) for event in batch.events]


@pytest.mark.parametrize("name", sorted(river_datasets()))
def test_what_is_bundled_is_there(name: str) -> None:
    """Each data set has labels of its task, from installed files, numbered from 1."""
    source = RiverDataset(name)
    batches = list(source.batches())[:10]  # all are read, which closes the file
    found: list[Any] = [event for batch in batches for event in batch.events]
    awaited = np.concatenate([batch.events.awaited for batch in batches])
    count = min(1000, len(list(getattr(datasets, name)())))
    if source.task == "regression":
        assert awaited.dtype == np.float64
    else:
        classes = source.classes if source.task == "multiclass" else [0, 1]
        assert sorted({*awaited.tolist()}) == classes
    assert [one.time for one in found] == list(range(1, count + 1))
    assert [one.id for one in found] == [str(n) for n in range(1, count + 1)]
    kinds = {type(value) for one in found for value in one.x.values()}
    assert kinds <= {int, float}
    where = batches[-1].origin(len(batches[-1].events) - 1).where
    assert where == f"{name} observation {count}"


def test_there_are_streams_of_every_task() -> None:
    """There are data sets of each task."""
    tasks: dict[str, list[str]] = {}
    for name in sorted(river_datasets()):
        tasks.setdefault(RiverDataset(name).task, []).append(name)
    assert tasks == {
        "binary": ["Bananas", "Phishing", "Shuttle"],
        "multiclass": ["ImageSegments"],
        "regression": [
            "AirlinePassengers",
            "ChickWeights",
            "SP500Stocks",
            "TrumpApproval",
            "WaterFlow",
        ],
    }


def test_what_would_be_downloaded_is_not_offered() -> None:
    """Remote data sets and those with several labels are not in the list."""
    assert not {"CreditCard", "Elec2", "Bikes", "SolarFlare", "Yeast"} & set(river_datasets())


def test_moments_are_numbers() -> None:
    """A date becomes seconds; one without a time zone is the same on every machine."""
    first: list[Any] = [rows(RiverDataset(name))[0] for name in ("AirlinePassengers", "WaterFlow")]
    january_1949, march_2022 = -662_688_000.0, 1_647_770_400.0  # the second at 11:00 +01:00
    assert [one.x for one in first] == [{"month": january_1949}, {"Time": march_2022}]


def test_the_features_are_those_of_river() -> None:
    """Features and labels are unchanged."""
    batches = [batch.events for batch in RiverDataset("Phishing").batches()]
    found: list[Any] = []
    for events in batches:
        assert events.awaited is not None
        found += zip(events, events.awaited, strict=True)
    expected = [(x, int(y)) for x, y in datasets.Phishing()]
    assert [(event.x, label) for event, label in found] == expected


def test_reading_goes_on_after_a_batch() -> None:
    """A stream resumed from a position has the rest, with the same numbers and origins."""
    source = RiverDataset("Phishing")
    batches = list(islice(source.batches(), 3))
    whole = rows(RiverDataset("Phishing"))
    assert rows(RiverDataset("Phishing"), batches[1].position) == whole[200:]
    again = next(iter(RiverDataset("Phishing").batches(batches[1].position)))
    assert again.origin(7) == batches[2].origin(7)


def test_the_fraction_grows_to_one() -> None:
    """The share that has been read ends at 1."""
    source = RiverDataset("Phishing")
    assert source.fraction() == 0.0
    shares = [source.fraction() for _ in source.batches()]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_an_unknown_data_set() -> None:
    """The message names the data sets and the suffixes of files."""
    message = r"Phising: no such data set; .*Phishing, .* \.csv, .*did you mean Phishing\?"
    with pytest.raises(ParameterError, match=message):
        RiverDataset("Phising")


def test_river_is_imported_late() -> None:
    """Importing the module does not import river; opening a data set does."""
    program = (
        "import sys, abers_connectors.sources.river_datasets; sys.exit('river' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
