"""The list of calibrators, `abers.registry`."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import msgspec
import pytest

import abers
from abers import registry
from abers.base import Calibrator, Capabilities
from abers.exceptions import ParameterError
from abers.stream import Label, Observation, Processor, Settings

TASKS = ("binary", "multiclass", "regression")
NAMED = [(name, task) for task in TASKS for name in registry.names(task)]
CLASSES = ("cat", "dog", "owl")
STREAMS: dict[str, tuple[dict[str, Any], list[Observation | Label]]] = {
    "binary": (
        {"scores": "probability"},
        [
            Observation("a", 0, score=0.2),
            Label("a", 1, value=1),
            Observation("b", 2, score=0.7),
            Observation("c", 3, score=0.4),
            Label("b", 4, value=0),
        ],
    ),
    "multiclass": (
        {"task": "multiclass", "classes": CLASSES, "scores": "probability"},
        [
            Observation("a", 0, score=dict(zip(CLASSES, (0.5, 0.3, 0.2), strict=True))),
            Label("a", 1, value="dog"),
            Observation("b", 2, score=dict(zip(CLASSES, (0.25, 0.5, 0.25), strict=True))),
            Observation("c", 3, score=dict(zip(CLASSES, (0.1, 0.1, 0.8), strict=True))),
            Label("b", 4, value="cat"),
        ],
    ),
    "regression": (
        {"task": "regression", "distributions": "scored", "support": (0.0, 9.0)},
        [
            Observation("a", 0, score=2.0),
            Label("a", 1, value=3.0),
            Observation("b", 2, score=7.0),
            Observation("c", 3, score=4.0),
            Label("b", 4, value=5.0),
        ],
    ),
}
"""Settings and events of each task."""


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
        ("a b:c", "no calibrator for a binary task"),
        ("", "no calibrator for a binary task"),
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


@pytest.mark.parametrize(("name", "task"), NAMED)
def test_options_that_a_stream_gives(name: str, task: str) -> None:
    """A declared option is one of the settings, and of the class."""
    kind = registry.find(name, task)
    declared = {*kind.capabilities.options, *kind.capabilities.forgetting}
    assert declared <= {*Settings.__struct_fields__} & {*signature(kind).parameters}


@pytest.mark.parametrize(("name", "task"), [one for one in NAMED if one[0] != registry.NONE])
def test_a_stream_runs_a_calibrator_by_its_import_path(name: str, task: str) -> None:
    """A user's class does in a processor what it does by itself, and comes back in a snapshot."""
    kind = registry.find(name, task)
    options, batch = STREAMS[task]
    given = Settings(calibrator=name, **options)
    if name in registry.protected_forms(task):
        given = msgspec.structs.replace(given, probability="merged")
    settings = Settings(calibrator=f"{kind.__module__}:{kind.__qualname__}", **options)
    ours, own = Processor(given), Processor(settings)
    assert [ours.process(one) for one in batch] == [own.process(one) for one in batch]
    assert own.monitor is not None
    assert ours.monitor is not None
    assert own.monitor.summary() == ours.monitor.summary()
    restored = Processor.restore(own.snapshot(), settings)
    again = [msgspec.structs.replace(one, id=f"{one.id}{one.id}") for one in batch]
    assert restored.process_many(again) == ours.process_many(again)


class Numbered(Calibrator[float, int, float, Any]):
    """A user's calibrator that hears what becomes of its predictions."""

    capabilities = Capabilities(
        task="binary", answer="probability", removal="none", forgetting=(), stateful=True
    )
    heard: ClassVar[list[tuple[str, float]]] = []

    def __len__(self) -> int:
        """Hold nothing."""
        return 0

    def _predict(self, score: float, *given: float) -> float:
        self.heard.append(("predicted", given[-1]))
        return score

    def _learn(self, *given: float) -> bool:
        self.heard.append(("learned", given[-1]))
        return True

    def _expire(self, number: int) -> None:
        self.heard.append(("expired", number))

    def _save(self) -> bytes:
        return b""

    def _load(self, payload: memoryview) -> None:
        del payload
        super().__init__()


def test_a_stateful_calibrator_of_your_own() -> None:
    """It hears the numbers of its predictions, and needs no experts that monitors show."""
    Numbered.heard.clear()
    settings = Settings(calibrator=f"{__name__}:Numbered", max_pending=1)
    processor = Processor(settings)
    for one in (
        Observation("a", 0, score=0.2),
        Observation("b", 1, score=0.3),
        Label("b", 2, value=1),
    ):
        processor.process(one)
    assert Numbered.heard == [("predicted", 0), ("expired", 0), ("predicted", 1), ("learned", 1)]
    assert processor.monitor is not None
    assert processor.monitor.others == []


def test_a_rule_of_forgetting_that_a_calibrator_of_your_own_lacks() -> None:
    """It is refused by name before the first event, as of the calibrators here."""
    own = Settings(calibrator=f"{__name__}:Numbered", window=5)
    with pytest.raises(ParameterError, match=r"window: is not for '.*Numbered'; leave it out"):
        Processor(own)


def test_a_calibrator_of_another_task_is_refused() -> None:
    """A name, or an import path, of another task is a ParameterError."""
    with pytest.raises(ParameterError, match="does not support the task 'binary'"):
        Settings(calibrator="ivapr")
    with pytest.raises(ParameterError, match="does not support the task 'binary'"):
        Processor(Settings(calibrator="abers.regression.ivapr:IVAPR"))
