"""The machine of a run: a number means nothing without its machine and its versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from abers import backend
from benchmarks.page import table
from benchmarks.rivals import compiler
from benchmarks.timing import NOISE, digits

_PACKAGES = (
    *("abers", "numpy", "scipy", "sortedcontainers", "msgspec", "pyarrow"),
    *("venn-abers", "scikit-learn", "river", "crepes", "isodistrreg"),
    *("kafka-python", "confluent-kafka", "uvicorn"),
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


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def load() -> float:
    """Return the load of the last minute; 0 where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def machine() -> dict[str, str]:
    """Describe processor, system and versions."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(map(_package, _PACKAGES)),
        "backend": backend(),
        "C++ compiler": _compiler(),
    }


def description() -> str:
    """Describe the machine, and how noisy it was for a fixed piece of work."""
    noise = NOISE.spread()
    rows = [
        *machine().items(),
        ("load of the last minute", f"{load():.1f}"),
        ("same work, median to best", f"{digits(noise.median / noise.low)} times as long"),
        ("same work, worst to best", f"{digits(noise.high / noise.low)} times as long"),
    ]
    return table(["what", "which"], rows)
