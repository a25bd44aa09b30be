"""Snapshots with wrong content, and all that can be asked of a processor that was made of one.

Governing rule: damage is refused when the snapshot is loaded, or it does no harm: whatever is
asked of the processor afterwards is answered, and what it saves is loaded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from tests.engine.damage import damaged
from tests.engine.stream.cases import Scorer

from abers import _keyed as keyed
from abers._sealed import seal, unseal
from abers.exceptions import StateError
from abers.stream import Event, Events, Label, Observation, Processor, Settings
from abers.stream.snapshot import MAGIC, read

if TYPE_CHECKING:
    import random

KEY = b"a secret of tests"
CLASSES = ("cat", "dog", "é")
START = 1_700_000_000_000
LIMITS: dict[str, Any] = {
    "label_wait": 400,
    "lateness": 20,
    "max_pending": 30,
    "max_early": 8,
    "dedup_max": 20,
    "max_models": 4,
    "tests_after": 5,
    "alarm_distance": 20,
    "alarm_quiet": 10,
}


class Kind(NamedTuple):
    """A processor in which there is something of everything.

    Attributes
    ----------
    settings
        Its own.
    learner
        Whether an object scores.
    saved
        Its snapshot as plain lists and mappings.
    """

    settings: Settings
    learner: bool
    saved: dict[str, Any]

    def scorer(self) -> Scorer | None:
        """Make the object that scores."""
        return Scorer() if self.learner else None

    def restored(self, saved: dict[str, Any]) -> Processor:
        """Load a snapshot under a right checksum, or a right seal."""
        payload = msgspec.msgpack.encode(saved)
        key = KEY if self.learner else None
        blob = keyed.seal(MAGIC, payload, key, "")
        return Processor.restore(blob, self.settings, key=key, learner=self.scorer())


def events(settings: Settings, start: int, count: int, learner: bool) -> list[Event]:  # noqa: FBT001
    """Make observations and labels, of which some have no counterpart, of several models."""
    made: list[Event] = []
    for i in range(count):
        model, segment = ("m", "n")[i % 3 == 0], ("", "s")[i % 5 == 0]
        share = (i * 7 % 20) / 20
        score: Any = share
        value: Any = i % 3 % 2
        if settings.task == "multiclass":
            score = {"cat": share, "dog": (1 - share) / 2, "é": (1 - share) / 2}
            value = CLASSES[i % 3]
        elif settings.task == "regression":
            value = share + i % 3 / 3
        id_, time = f"{start % 1000}-{i}", start + 10 * i
        brought: dict[str, Any] = {"x": {"a": share}} if learner else {"score": score}
        made.append(Observation(id_, time, model, segment=segment, **brought))
        if i % 4:
            made.append(Label(id_, time + 5, model, value=value))
        if i % 11 == 0:
            made.append(Label(f"never-{i}", time, model, value=value))
    return made


def kind(learner: bool = False, **options: Any) -> Kind:  # noqa: ANN401, FBT001, FBT002
    """Make one."""
    settings = Settings(**LIMITS | options)
    processor = Processor(settings, learner=Scorer() if learner else None)
    processor.process_many(events(settings, START, 60, learner))
    blob = processor.snapshot({"line": 7}, KEY if learner else None)
    if learner:
        payload = keyed.unseal(MAGIC, blob, "a snapshot", KEY, "")
    else:
        payload = unseal(MAGIC, blob, "a snapshot")
    saved = msgspec.msgpack.decode(payload)
    return Kind(settings, learner, saved)


KINDS: dict[str, Kind] = {
    "plain": kind(),
    "window": kind(window=12),
    "age": kind(max_age=200, scores="probability"),
    "half-life": kind(half_life=100),
    "bare": kind(monitors=False, tests=False),
    "learner": kind(learner=True),
    **{
        name: kind(calibrator=name, scores="probability")
        for name in ("cvap", "platt", "isotonic", "dir", "beta", "uncalibrated")
    },
    "one-vs-rest": kind(task="multiclass", classes=CLASSES),
    "one-vs-one": kind(
        task="multiclass", classes=CLASSES, calibrator="one-vs-one", scores="probability"
    ),
    "regression": kind(task="regression"),
    "judged": kind(task="regression", distributions="judged", support=(-5.0, 5.0), window=15),
    "grid": kind(task="regression", thresholds=(0.1, 0.5, 0.9), distributions="told"),
}


def use(one: Kind, processor: Processor) -> None:
    """Ask for everything."""
    before = processor.state_bytes()
    again = one.restored(_plain(one, processor))
    assert again.state_bytes() == before
    look(processor)
    clock = processor.clock or START
    known = [*read_ids(one, processor)]
    later: list[Event] = [
        *(Label(id_, clock, model, value=_label(one, i)) for i, (id_, model) in enumerate(known)),
        *events(one.settings, clock, 25, one.learner),
    ]
    outputs = processor.take(Events.of(later))
    outputs.in_order()
    if outputs.judged is not None:
        processor.facts(outputs.judged)
    look(processor)
    for model in {name for name, _ in processor.keys}:
        processor.forget(model)
    clock = (processor.clock or START) + 10 * LIMITS["label_wait"]
    processor.process_many(events(one.settings, clock, 5, one.learner))
    look(processor)
    one.restored(_plain(one, processor))


def _plain(one: Kind, processor: Processor) -> dict[str, Any]:
    key = KEY if one.learner else None
    payload = keyed.unseal(MAGIC, processor.snapshot(None, key), "a snapshot", key, "")
    found: dict[str, Any] = msgspec.msgpack.decode(payload)
    return found


def read_ids(one: Kind, processor: Processor) -> list[tuple[str, str]]:
    """List the ids that the processor knows, with their models."""
    key = KEY if one.learner else None
    _, state = read(processor.snapshot(None, key), key)
    found = []
    for store in state.stores:
        lengths = memoryview(store.ids.lengths).cast("I").tolist()
        at = 0
        for length, model in zip(lengths, memoryview(store.models).cast("I"), strict=True):
            found.append((store.ids.text[at : at + length], state.models[model]))
            at += length
    return found


def _label(one: Kind, i: int) -> Any:  # noqa: ANN401
    if one.settings.task == "multiclass":
        return CLASSES[i % 3]
    return i % 2 if one.settings.task == "binary" else i / 7


def look(processor: Processor) -> None:
    """Read whatever can be read."""
    assert processor.waiting >= (0, 0)
    for monitor in [*processor.monitors, *([processor.monitor] if processor.monitor else [])]:
        found: Any = monitor
        assert found.views() is not None
        assert found.mean_width is not None
        assert found.tests is not None
        for name in ("intervals", "pit_histogram"):
            getattr(found, name, None)
        for view in (getattr(found, "raw", None), getattr(found, "calibrated", None)):
            if view is not None:
                view.means()
                view.reliability.decomposition()
                getattr(view, "bins", list)()
    processor.state_bytes()


def tried(one: Kind, rng: random.Random) -> Any:  # noqa: ANN401
    """Damage one; None if it is refused, True if it does no harm, else the failure."""
    saved = one.saved
    part = rng.choice([*saved["state"]])  # each as often, however much there is of it
    state = saved["state"] | damaged({part: saved["state"][part]}, rng)
    if rng.random() < 0.1:
        whole = damaged(saved, rng, frozenset({"state", "learners"}))
        state = whole["state"] if isinstance(whole, dict) else state
    else:
        whole = saved | {"state": state}
    try:
        processor = one.restored(whole)
    except StateError:
        return None
    except Exception as error:  # noqa: BLE001
        return "load", error
    try:
        use(one, processor)
    except Exception as error:  # noqa: BLE001
        return "use", error
    return True
