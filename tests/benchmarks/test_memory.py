"""The memory that Compose file and unit give is what the formula of docs/deploy.md asks for."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest
from benchmarks.saved import BASE, MIB, formula
from tests.deploy.files import DEPLOY, read

from abers import ProtectedVennAbers
from abers_connectors.config.model import load

PAGE = DEPLOY.parent / "docs" / "deploy.md"

SHARDS = 2  # a process, as the files say
MODEL = 28_000  # bytes of a model with protected probabilities


def lane_bytes() -> int:
    """Return the bytes of a lane as the page says; there are as many as observations wait."""
    page = PAGE.read_text("utf-8")
    found = re.search(r"^\| a lane of a protected probability[^|]*\| (\d+),", page, re.MULTILINE)
    assert found is not None
    return int(found[1])


def needed() -> int:
    """Return the bytes of a process whose partitions are full, at most."""
    flags = tomllib.loads((DEPLOY / "abers.kafka.toml").read_text("utf-8"))
    settings = load(flags=flags, environ={"ABERS_KAFKA__GROUP_INSTANCE_ID": "a"}).settings()
    assert settings.window is not None  # without it labels are kept for ever
    assert settings.protected
    finished = settings.dedup_max_ids + settings.max_early
    one = formula(settings.window, settings.max_pending, finished, protected=True)
    room = 1 << (settings.max_pending - 1).bit_length()  # it doubles
    held = SHARDS * (one.held + MODEL + lane_bytes() * room)
    return BASE + 2 * held + one.making


@pytest.mark.parametrize("count", [1 << 16, (1 << 16) + 1])
def test_a_lane(count: int) -> None:
    """Once labels came, lanes take what the page says, in a room that doubles."""
    calibrator = ProtectedVennAbers()
    empty = sys.getsizeof(calibrator._model.mixture)  # noqa: SLF001 - C++ tells its size
    for number in range(count):
        calibrator.predict_one(0.5, number=number)
    for number in range(count):
        calibrator.learn_one(0.5, number % 2, number=number)
    taken = sys.getsizeof(calibrator._model.mixture) - empty  # noqa: SLF001 - likewise
    assert taken == pytest.approx(lane_bytes() * (1 << (count - 1).bit_length()), rel=0.01)


def test_two_full_partitions_fit() -> None:
    """The limit of the Compose file covers the peak of two full partitions, and little more."""
    limit = int(read(DEPLOY / "compose.yaml")["services"]["abers"]["mem_limit"][:-1]) << 20
    assert needed() <= limit < needed() + 512 * MIB


def test_the_unit() -> None:
    """A unit has the same limit, and a copy that is ended for want of memory ends no service."""
    unit = (DEPLOY / "abers@.service").read_text("utf-8").splitlines()
    assert "MemoryMax=4600M" in unit
    assert "OOMPolicy=continue" in unit
