"""The machine of a run: a number means nothing without its machine and its versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from abers import backend
from benchmarks.page import table
from benchmarks.rivals import compiler
from benchmarks.timing import NOISE, digits

_PACKAGES = (
    "abers",
    "numpy",
    "scipy",
    "sortedcontainers",
    "venn-abers",
    "scikit-learn",
    "msgspec",
    "pyarrow",
)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _compiler() -> str:
    cxx = compiler()
    if cxx is None:
        return "none"
    shown = subprocess.check_output([cxx, "--version"], text=True)  # noqa: S603 - found by us
    return shown.splitlines()[0]


def _load() -> str:
    try:
        return ", ".join(f"{load:.1f}" for load in os.getloadavg())
    except OSError:
        return "unknown"


def description() -> str:
    """Describe processor, system, versions, and how noisy it was for a fixed piece of work."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    noise = NOISE.spread()
    rows = [
        ["processor", f"{_processor()}, {os.cpu_count()} cores"],
        ["system", f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"],
        ["Python", f"{platform.python_implementation()} {platform.python_version()}"],
        ["packages", packages],
        ["backend", backend()],
        ["C++ compiler at hand", _compiler()],
        ["load at the end, 1, 5 and 15 min", _load()],
        ["same work, median to best", f"{digits(noise.median)} times as long"],
        ["same work, worst to best", f"{digits(noise.high)} times as long"],
    ]
    return table(["what", "which"], rows)
