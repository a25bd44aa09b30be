"""The memory that Compose file and unit give is what the formula of docs/deploy.md asks for."""

from __future__ import annotations

import tomllib

from benchmarks.saved import BASE, MIB, formula
from tests.deploy.files import DEPLOY, read

from abers_connectors.config.model import load

SHARDS = 2  # a process, as the files say
MODEL = 28_000  # bytes of a model with protected probabilities
LANE = 130  # bytes of each of its lanes, of which there are as many as observations wait


def needed() -> int:
    """Return the bytes of a process whose partitions are full, at most."""
    flags = tomllib.loads((DEPLOY / "abers.kafka.toml").read_text("utf-8"))
    settings = load(flags=flags, environ={"ABERS_KAFKA__GROUP_INSTANCE_ID": "a"}).settings()
    assert settings.window is not None  # without it labels are kept for ever
    assert settings.protected
    finished = settings.dedup_max_ids + settings.max_early
    one = formula(settings.window, settings.max_pending, finished, protected=True)
    held = SHARDS * (one.held + MODEL + LANE * settings.max_pending)
    return BASE + 2 * held + one.making


def test_two_full_partitions_fit() -> None:
    """The limit of the Compose file covers the peak of two full partitions, and little more."""
    limit = int(read(DEPLOY / "compose.yaml")["services"]["abers"]["mem_limit"][:-1]) << 20
    assert needed() <= limit < needed() + 512 * MIB


def test_the_unit() -> None:
    """A unit has the same limit, and a copy that is ended for want of memory ends no service."""
    unit = (DEPLOY / "abers@.service").read_text("utf-8").splitlines()
    assert "MemoryMax=4600M" in unit
    assert "OOMPolicy=continue" in unit
