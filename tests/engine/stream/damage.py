"""Snapshots with wrong content, and every call on a processor restored from one.

Damage is refused when the snapshot is loaded, or it does no harm: whatever is
asked of the processor afterwards is answered, and what it saves is loaded again.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from tests.engine.damage import damaged
from tests.engine.stream.cases import Scorer

from abers.exceptions import StateError
from abers.serialization import seal, unseal
from abers.stream import Event, Events, JournalEntry, Label, Observation, Processor, Settings
from abers.stream.snapshot import MAGIC

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

KEY = b"a secret of tests"
CLASSES = ("cat", "dog", "é")
START = 1_700_000_000_000
LIMITS: dict[str, Any] = {
    "label_timeout": 400,
    "allowed_lateness": 20,
    "max_pending": 30,
    "max_early": 8,
    "dedup_max_ids": 20,
    "max_models": 4,
    "grace_period": 5,
    "average_run_length": 20,
    "cooldown": 10,
}


class Kind(NamedTuple):
    """A processor whose state has some of every part.

    Attributes
    ----------
    settings
        Settings of the processor.
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

    @property
    def state(self) -> dict[str, Any]:
        """The parts of the saved state, by name."""
        return {name: payload for name, (*_, payload) in self.saved["components"].items()}

    def with_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the snapshot with other parts."""
        before = self.saved["components"]
        parts = {name: [*before[name][:-1], payload] for name, payload in state.items()}
        return self.saved | {"components": parts}

    def restored(self, saved: dict[str, Any]) -> Processor:
        """Load a snapshot under a right checksum, or a right seal."""
        payload = msgspec.msgpack.encode(saved)
        key = KEY if self.learner else None
        blob = seal(MAGIC, payload, key, "")
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
    """Make a kind."""
    settings = Settings(**LIMITS | options)
    processor = Processor(settings, learner=Scorer() if learner else None)
    processor.process_many(events(settings, START, 60, learner))
    blob = processor.snapshot({"line": 7}, KEY if learner else None)
    if learner:
        payload = unseal(MAGIC, blob, "a snapshot", KEY, "")
    else:
        payload = unseal(MAGIC, blob, "a snapshot")
    saved = msgspec.msgpack.decode(payload)
    return Kind(settings, learner, saved)


MADE: dict[str, Callable[[], Kind]] = {
    "plain": kind,
    "window": lambda: kind(window=12),
    "age": lambda: kind(max_age=200, scores="probability"),
    "half-life": lambda: kind(half_life=100),
    "protected": lambda: kind(scores="probability"),
    "by age": lambda: kind(learn_after=100),
    "unlabelled": lambda: kind(unlabelled=0, scores="probability"),
    "bare": lambda: kind(monitors=False, tests=False),
    "learner": lambda: kind(learner=True),
    **{
        name: lambda name=name: kind(calibrator=name, scores="probability")  # type: ignore[misc]
        for name in ("cvap", "platt", "isotonic", "dir", "beta", "none")
    },
    "cvap, merged": lambda: kind(calibrator="cvap", scores="probability", probability="merged"),
    "one-vs-rest": lambda: kind(task="multiclass", classes=CLASSES),
    "protected classes": lambda: kind(task="multiclass", classes=CLASSES, scores="probability"),
    "uncalibrated classes": lambda: kind(
        task="multiclass", classes=CLASSES, calibrator="none", scores="probability"
    ),
    "one-vs-one": lambda: kind(
        task="multiclass", classes=CLASSES, calibrator="one-vs-one", scores="probability"
    ),
    "regression": lambda: kind(task="regression"),
    "with distributions": lambda: kind(
        task="regression", distributions="scored", support=(-5.0, 5.0), window=15
    ),
    "grid": lambda: kind(task="regression", grid=(0.1, 0.5, 0.9), distributions="full"),
}
"""How to make one of each task, each calibrator, and each way to forget."""


@cache
def made(name: str) -> Kind:
    """Return a kind, made once."""
    return MADE[name]()


def use(one: Kind, processor: Processor) -> None:
    """Call everything that a processor can do."""
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
    outputs = processor.process_batch(Events.of(later))
    outputs.in_order()
    if outputs.settled_batch is not None:
        forecasts = outputs.settled_batch.scored.forecasts
        assert all(len(one.losses) == len(one.squares) for one in forecasts.values())
    look(processor)
    for model in {name for name, _ in processor.keys}:
        processor.reset_model(model)
    clock = (processor.clock or START) + 10 * LIMITS["label_timeout"]
    processor.process_many(events(one.settings, clock, 5, one.learner))
    look(processor)
    one.restored(_plain(one, processor))


def _plain(one: Kind, processor: Processor) -> dict[str, Any]:
    key = KEY if one.learner else None
    payload = unseal(MAGIC, processor.snapshot(None, key), "a snapshot", key, "")
    found: dict[str, Any] = msgspec.msgpack.decode(payload)
    return found


def read_ids(one: Kind, processor: Processor) -> list[tuple[str, str]]:
    """List the ids that the processor knows, with their models."""
    state = one._replace(saved=_plain(one, processor)).state
    found = []
    for (text, lengths), models, *_ in state["pending"]:
        at = 0
        for length, model in zip(
            memoryview(lengths).cast("I"), memoryview(models).cast("I"), strict=True
        ):
            found.append((text[at : at + length], state["keys"][0][model]))
            at += length
    return found


def _label(one: Kind, i: int) -> Any:  # noqa: ANN401
    if one.settings.task == "multiclass":
        return CLASSES[i % 3]
    return i % 2 if one.settings.task == "binary" else i / 7


def look(processor: Processor) -> None:
    """Read every property."""
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


def damaged_snapshot(one: Kind, rng: random.Random) -> dict[str, Any]:
    """Damage a part of a snapshot: each part as often, however much there is of it."""
    if rng.random() < 0.1:
        found: dict[str, Any] = damaged(one.saved, rng, frozenset({"components"}))
        return found
    state = one.state
    part = rng.choice([name for name in state if name != "learners"])
    if rng.random() < 0.1:
        *kind, payload = one.saved["components"][part]
        return one.saved | {
            "components": one.saved["components"] | {part: [*damaged(kind, rng), payload]}
        }
    return one.with_state(state | damaged({part: state[part]}, rng))


def try_snapshot(one: Kind, rng: random.Random) -> bool:
    """Load a damaged snapshot, and use it if it loads; return whether it was refused."""
    saved = damaged_snapshot(one, rng)
    try:
        processor = one.restored(saved)
    except StateError:
        return True
    use(one, processor)
    return False


def try_entry(one: Kind, rng: random.Random) -> bool:
    """Apply a damaged entry, and use the processor if that works; return whether it was refused."""
    live, other = one.restored(one.saved), one.restored(one.saved)
    before = other.state_bytes()
    batch = events(one.settings, (live.clock or START) + 1, 8, one.learner)
    _, entry = live.process_logged(Events.of(batch))
    plain = damaged(msgspec.msgpack.decode(msgspec.msgpack.encode(entry)), rng)
    try:
        wrong = msgspec.convert(plain, JournalEntry)
    except msgspec.ValidationError:  # as whoever reads a changelog refuses it
        return True
    try:
        other.apply(wrong)
    except StateError:
        require_unchanged_or_broken(other, before)
        return True
    use(one, other)
    return False


def require_unchanged_or_broken(processor: Processor, before: bytes) -> None:
    """Check that a processor is unchanged, or raises because it is broken."""
    try:
        assert processor.state_bytes() == before
    except StateError as error:
        assert "broken" in str(error)  # noqa: PT017 - one of two good ends
