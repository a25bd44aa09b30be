"""The list of calibrators, `abers.registry`."""

from __future__ import annotations

import pytest

import abers
from abers import registry
from abers.base import Calibrator
from abers.exceptions import ParameterError
from abers.stream import Label, Observation, Processor, Settings

TASKS = ("binary", "multiclass", "regression")
NAMED = [(name, task) for task in TASKS for name in registry.names(task)]


@pytest.mark.parametrize(("name", "task"), NAMED)
def test_every_name_is_that_of_a_calibrator(name: str, task: str) -> None:
    """A name is found, and declares the task that lists it; no class has two names."""
    found = registry.find(name, task)
    assert issubclass(found, Calibrator)
    assert registry.capabilities(name, task).task == task
    assert registry.find(f"{found.__module__}:{found.__qualname__}", task) is found
    assert [one for one in NAMED if registry.find(*one) is found] == [(name, task)]


def test_the_default_of_each_task_comes_first() -> None:
    """The first name of a task is what a stream takes when none is given."""
    firsts = [registry.names(task)[0] for task in TASKS]
    assert firsts == ["ivap", "one-vs-rest", "ivapr"]


def test_names_of_all_tasks() -> None:
    """A name that several tasks have is listed once."""
    assert sorted(registry.names()) == sorted({name for name, _ in NAMED})


@pytest.mark.parametrize("task", TASKS)
def test_protected_forms(task: str) -> None:
    """A default that makes probabilities has a protected form; predictions change all of these."""
    forms = registry.protected_forms(task)
    assert (registry.names(task)[0] in forms) == (task != "regression")
    assert {*forms} | {*forms.values()} <= {*registry.names(task)}
    for form in forms.values():
        assert registry.capabilities(form, task).stateful


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plat", "did you mean 'platt'"),
        ("no.such.module:Class", "cannot be imported"),
        ("abers:NoSuchClass", "cannot be imported"),
        ("abers:backend", "not a subclass"),
        ("os:system", "not a subclass"),
        ("a b:c", "none for a binary task"),
        ("", "none for a binary task"),
    ],
)
def test_what_is_no_calibrator_is_refused(name: str, says: str) -> None:
    """The error says what is wrong with a name or an import path."""
    with pytest.raises(ParameterError, match=says):
        registry.find(name, "binary")


def test_ours_are_exported() -> None:
    """The binary and multi-class calibrators of the registry are exported, or in calibration."""
    for name, task in NAMED:
        if task == "regression":
            continue
        kind = registry.find(name, task).__name__
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
