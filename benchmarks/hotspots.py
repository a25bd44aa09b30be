"""Where the native core spends its time: a profile of `prequential` by function.

The core's own source is built again with the names of functions, also inlined ones, and profiled.
This needs perf, addr2line, CMake and a compiler; without them the section reports that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.page import Section, size, table
from benchmarks.rivals import ROOT, compiler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.plan import Plan

_BUILD = ROOT / "build" / "benchmarks" / "profile"
_TOOLS = ("perf", "addr2line", "cmake")
_HERTZ, _REPEATS, _SHOWN = 1_999, 40, 20
_LAST = 500  # characters shown of what a tool that failed said
_SAMPLE = re.compile(r"^\s*(?P<time>[\d.]+):\s+(?P<at>[0-9a-f]+) .*\((?P<object>[^()]*)\)$")
_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",  # no Release: its symbols are stripped
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O3 -g -DNDEBUG",
    f"-DPython_EXECUTABLE={sys.executable}",
)


def _path() -> str:
    """Search the environment's own tools first: its CMake is there."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def _tool(name: str) -> str | None:
    return shutil.which(name, path=_path())


def _call(name: str, *words: str, given: str | None = None) -> str:
    """Run a tool from the checkout; what it prints."""
    command = [_tool(name) or name, *words]
    done = subprocess.run(  # noqa: S603 - tools found by us
        command, cwd=ROOT, check=True, capture_output=True, text=True, input=given
    )
    return done.stdout


def _build() -> Path:
    _call("cmake", "-S", str(ROOT), "-B", str(_BUILD), *_OPTIONS)
    _call("cmake", "--build", str(_BUILD))
    return next(_BUILD.glob("_core*.so"))


def _record(core: Path, n: int, events: int) -> tuple[int, list[tuple[int, str]]]:
    """Profile `profiled` in a process of its own: where the core lay, and the samples."""
    with TemporaryDirectory() as folder:
        data = str(Path(folder) / "perf.data")
        perf = ("record", "-q", "-k", "CLOCK_MONOTONIC", "-F", str(_HERTZ), "-o", data, "--")
        stream = (str(core), str(n), str(events), str(_REPEATS))
        printed = _call("perf", *perf, sys.executable, "-m", "benchmarks.profiled", *stream)
        text = _call("perf", "script", "-i", data, "-F", "time,ip,sym,dso", "--ns")
    base, *lines = printed.splitlines()
    spans = [tuple(map(float, line.split())) for line in lines]
    return int(base, 16), list(_samples(text, spans))


def _samples(text: str, spans: list[tuple[float, ...]]) -> Iterator[tuple[int, str]]:
    """Address and object of each sample while the stream ran."""
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found and any(first <= float(found["time"]) <= last for first, last in spans):
            yield int(found["at"], 16), found["object"]


def _functions(core: Path, addresses: Iterable[int]) -> dict[int, str]:
    """Name the innermost function of the core's own source at each address."""
    wanted = [f"0x{address:x}" for address in addresses]
    answer = _call("addr2line", "-e", str(core), "-a", "-f", "-i", "-C", given="\n".join(wanted))
    names: dict[int, str] = {}
    for chunk in re.split(r"^(?=0x[0-9a-f]+$)", answer, flags=re.MULTILINE)[1:]:
        address, *frames = chunk.splitlines()
        ours = (
            _short(name)
            for name, place in zip(frames[::2], frames[1::2], strict=True)
            if f"{os.sep}_core{os.sep}" in place
        )
        names[int(address, 16)] = next(ours, "binding and others")
    return names


def _short(name: str) -> str:
    """Leave only class and function of a demangled name."""
    plain = re.sub(r"\(anonymous namespace\)::|abers::", "", name)
    while (without := re.sub(r"<[^<>]*>|\([^()]*\)", "", plain)) != plain:
        plain = without
    return plain.replace(" const", "").split(" ")[-1]


def _owner(path: str) -> str:
    """Name what is not ours by its shared object."""
    if "kernel" in path:
        return "the system's kernel"
    return re.sub(r"[-.](so|cpython|\d).*", "", Path(path).name)


def _tally(core: Path, n: int, events: int) -> Counter[str]:
    base, sampled = _record(core, n, events)
    inside = Counter(at - base for at, path in sampled if path == str(core))
    names = _functions(core, inside)
    tally = Counter(_owner(path) for _, path in sampled if path != str(core))
    for address, count in inside.items():
        tally[names[address]] += count
    return tally


def _shares(tally: Counter[str], shown: int) -> list[tuple[str, str]]:
    """Write the largest shares, and the rest in one row."""
    total, largest = sum(tally.values()), tally.most_common(shown)
    rest = total - sum(count for _, count in largest)
    return [(name, f"{count / total:.1%}") for name, count in [*largest, ("all others", rest)]]


def profile(plan: Plan) -> Section:
    """Profile predict + learn through `prequential`."""
    title = "Where the time goes"
    missing = [name for name in _TOOLS if _tool(name) is None]
    if missing or compiler() is None:
        return Section(title, f"Not profiled: {', '.join(missing or ['no compiler'])} missing.", {})
    events = min(plan.most, plan.large)
    try:
        tally = _tally(_build(), plan.large, events)
    except subprocess.CalledProcessError as error:  # such as perf without permission
        return Section(title, f"Not profiled: {error}\n\n{error.stderr[-_LAST:]}", {})
    classes: Counter[str] = Counter()
    for name, count in tally.items():
        classes[name.partition("::")[0]] += count
    body = (
        f"`perf record` of `prequential` over {size(events)} events at n = {size(plan.large)},"
        f" {_REPEATS} times: {size(tally.total())} samples by the innermost function of the core,"
        " whether inlined or not; what it calls of the standard library is counted as its own. The"
        " build is that of the package plus `-g`, less link-time optimisation.\n\n"
        + table(["function", "share"], _shares(tally, _SHOWN))
        + table(["class, or library", "share"], _shares(classes, _SHOWN))
    )
    return Section(title, body, {})
