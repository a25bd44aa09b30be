"""The memory that the deploy files give is what the formula of docs/operations.md asks for."""

from __future__ import annotations

import tomllib

import pytest
from benchmarks.saved import BASE, MIB, formula
from tests.deploy.files import DEPLOY, read

from abers_connectors.config.model import load

SHARDS = 2  # a process, as the files say
MODELS = 16_000  # bytes of a model

CONFIGURATIONS = {
    "kubernetes": read(DEPLOY / "kubernetes" / "configmap.yaml")["data"]["abers.toml"],
    "compose": (DEPLOY / "abers.kafka.toml").read_text("utf-8"),
}


def needed(configuration: str) -> tuple[int, int]:
    """Return the bytes of full partitions of a configuration, at rest and at most."""
    flags = tomllib.loads(configuration)
    settings = load(flags=flags, environ={"ABERS_KAFKA__GROUP_INSTANCE_ID": "a"}).settings()
    assert settings.window is not None  # without it labels are kept for ever
    task = formula(
        settings.window, settings.max_pending, settings.dedup_max_ids + settings.max_early
    )
    tasks = SHARDS * (task.held + MODELS)
    return BASE + tasks, BASE + 2 * tasks + task.making


def given(what: str) -> tuple[int | None, int]:
    """Return the bytes that a file requests, if it can, and those to which it limits."""
    if what == "compose":
        return None, int(read(DEPLOY / "compose.yaml")["services"]["abers"]["mem_limit"][:-1]) << 30
    (container,) = read(DEPLOY / "kubernetes" / "statefulset.yaml")["spec"]["template"]["spec"][
        "containers"
    ]
    request, limit = (container["resources"][one]["memory"] for one in ("requests", "limits"))
    return int(request.removesuffix("Gi")) << 30, int(limit.removesuffix("Gi")) << 30


@pytest.mark.parametrize("what", ["kubernetes", "compose"])
def test_two_full_shards_fit(what: str) -> None:
    """The request covers two full partitions at rest, and the limit covers their peak."""
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
