"""The list of calibrators, `abers.registry`."""

from __future__ import annotations

import pytest

import abers
from abers import registry
from abers.base import Calibrator
from abers.exceptions import ParameterError
from abers.stream import Label, Observation, Processor, Settings


@pytest.mark.parametrize("name", registry.names())
def test_every_name_is_that_of_a_calibrator(name: str) -> None:
    """A name is found, declares its task, and is listed under that task alone."""
    found = registry.find(name)
    assert issubclass(found, Calibrator)
    tasks = [
        task for task in ("binary", "multiclass", "regression") if name in registry.names(task)
    ]
    assert tasks == [registry.capabilities(name).task]
    assert registry.find(f"{found.__module__}:{found.__qualname__}") is found


def test_the_default_of_each_task_comes_first() -> None:
    """The first name of a task is what a stream takes when none is given."""
    firsts = [registry.names(task)[0] for task in ("binary", "multiclass", "regression")]
    assert firsts == ["ivap", "one-vs-rest", "ivapr"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plat", "did you mean 'platt'"),
        ("no.such.module:Class", "cannot be imported"),
        ("abers:NoSuchClass", "cannot be imported"),
        ("abers:backend", "not a subclass"),
        ("os:system", "not a subclass"),
        ("a b:c", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_is_no_calibrator_is_refused(name: str, says: str) -> None:
    """The error says what is wrong with a name or an import path."""
    with pytest.raises(ParameterError, match=says):
        registry.find(name)


def test_ours_are_exported() -> None:
    """The binary and multi-class calibrators of the registry are exported, or in calibration."""
    for name in (*registry.names("binary"), *registry.names("multiclass")):
        kind = registry.find(name).__name__
        assert hasattr(abers, kind) or hasattr(abers.calibration, kind)


def test_a_stream_runs_a_calibrator_by_its_import_path() -> None:
    """A user's class does in a processor what it does by itself, and comes back in a snapshot."""
    settings = Settings(calibrator="abers.calibration.platt:Platt")
    batch: list[Observation | Label] = [
        Observation("a", 0, score=0.2),
        Label("a", 1, value=1),
        Observation("b", 2, score=0.7),
    ]
    ours, own = Processor(Settings(calibrator="platt")), Processor(settings)
    assert [ours.process(one) for one in batch] == [own.process(one) for one in batch]
    restored = Processor.restore(own.snapshot(), settings)
    last = Observation("c", 3, score=0.4)
    assert restored.process(last) == ours.process(last)


def test_a_calibrator_of_another_task_is_refused() -> None:
    """A name, or an import path, of another task is a ParameterError."""
    with pytest.raises(ParameterError, match="none for a binary task"):
        Settings(calibrator="ivapr")
    with pytest.raises(ParameterError, match="is for a regression task"):
        Processor(Settings(calibrator="abers.regression.ivapr:IVAPR"))
