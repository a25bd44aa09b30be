"""The memory that the deploy files give is what the formula of docs/operations.md asks for."""

from __future__ import annotations

import tomllib

import pytest
from benchmarks.saved import BASE, MIB, formula
from tests.deploy.files import DEPLOY, read

from abers_connectors.config import load

SHARDS = 2  # a process, as the files say
MODELS = 16_000  # bytes of a model

CONFIGURATIONS = {
    "kubernetes": read(DEPLOY / "kubernetes" / "configmap.yaml")["data"]["abers.toml"],
    "compose": (DEPLOY / "abers.kafka.toml").read_text("utf-8"),
}


def needed(configuration: str) -> tuple[int, int]:
    """Give the bytes that full shards of a configuration take at rest, and at most."""
    flags = tomllib.loads(configuration)
    settings = load(flags=flags, environ={"ABERS_KAFKA__INSTANCE": "a"}).settings()
    assert settings.window is not None  # without it labels are kept for ever
    shard = formula(settings.window, settings.max_pending, settings.dedup_max + settings.max_early)
    shards = SHARDS * (shard.held + MODELS)
    return BASE + shards, BASE + 2 * shards + shard.making


def given(what: str) -> tuple[int | None, int]:
    """Give the bytes that a file requests, if it can, and those to which it limits."""
    if what == "compose":
        return None, int(read(DEPLOY / "compose.yaml")["services"]["abers"]["mem_limit"][:-1]) << 30
    (container,) = read(DEPLOY / "kubernetes" / "statefulset.yaml")["spec"]["template"]["spec"][
        "containers"
    ]
    request, limit = (container["resources"][one]["memory"] for one in ("requests", "limits"))
    return int(request.removesuffix("Gi")) << 30, int(limit.removesuffix("Gi")) << 30


@pytest.mark.parametrize("what", ["kubernetes", "compose"])
def test_two_full_shards_fit(what: str) -> None:
    """What two full shards take at rest is requested, and what they take at most is the limit."""
    rest, most = needed(CONFIGURATIONS[what])
    request, limit = given(what)
    assert request is None or rest <= request
    assert most <= limit
    assert limit - most < 512 * MIB  # nor is it given away


def test_the_unit() -> None:
    """A unit has the same limit, and a copy that is ended for want of memory ends no service."""
    unit = (DEPLOY / "abers@.service").read_text("utf-8").splitlines()
    assert "MemoryMax=2G" in unit
    assert "OOMPolicy=continue" in unit
