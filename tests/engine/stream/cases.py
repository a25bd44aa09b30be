"""Events, settings and a learner that the tests of the stream share.

The drawn events are hostile. A handful of ids, models, segments, scores and times make
duplicates, ties and early and late events the normal case; every limit is often tiny; every field
is at times of a wrong type or value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from hypothesis import strategies as st

from abers.stream import DeadLetter, Event, Label, Observation, Output, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Processor

FOREVER = 10**9
IDS = ("a", "b", "c", "d", "é", "\0")
MODELS = ("m", "ms", "")
SEGMENTS = ("", "s", "ss")


class Scorer:
    """A learner whose scores depend on all it has learned; it fails where the features say so."""

    def __init__(self) -> None:
        """Begin with nothing learned."""
        self.count = self.positives = 0

    def score(self, x: dict[str, Any]) -> float:
        """Return the smoothed rate of label 1, shifted by the feature `a`."""
        if x.get("fail") == "score":
            msg = "asked to fail at scoring"
            raise RuntimeError(msg)
        rate = (self.positives + 1) / (self.count + 2)
        given: float = x.get("give", (rate + x.get("a", 0.0)) / 2)
        return given

    def learn(self, x: dict[str, Any], value: float) -> None:
        """Count the label."""
        if x.get("fail") in {"learn", f"learn-{int(value)}"}:
            msg = "asked to fail at learning"
            raise RuntimeError(msg)
        self.count += 1
        self.positives += int(value)


FEATURES: Sequence[Any] = (
    {"a": 0.0},
    {"a": 0.0},
    {"a": 0.5},
    {"a": 1.0},
    {"a": 1.0, "fail": "learn"},
    {"a": 0.5, "fail": "learn-1"},
    {"fail": "score"},
    {"give": float("nan")},
    {"give": 1.5},
    {},
    None,
    [("a", 1.0)],
)
SCORES: Sequence[Any] = (0.1, 0.2, 0.5, 0.5, 0.5, 0.9, 1, 0, -0.0, 1 / 3)
BAD_SCORES: Sequence[Any] = (
    None,
    float("nan"),
    float("inf"),
    -float("inf"),
    "0.5",
    10**400,
    1j,
    [0.5],
)
LABELS: Sequence[Any] = (0, 1, False, True)
BAD_LABELS: Sequence[Any] = (None, 2, -1, "1", 0.5, float("nan"), [], {})
BAD_IDS: Sequence[Any] = ("", None, 7, b"a", "\ud800")
BAD_MODELS: Sequence[Any] = (None, 7, b"m", "m\udfff")
BAD_TIMES: Sequence[Any] = (None, True, 1.0, "1", 2**53, -(2**53), 10**30, float("nan"))

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
"""Values that nothing can word or write down."""


class Draw(NamedTuple):
    """Fields of an event, before its time is known."""

    observed: bool
    id: str
    model: str
    segment: str
    score: Any
    x: Any
    value: Any
    gap: int
    outlier: int
    recorded: int | None
    wrong: dict[str, Any]


def often(*usual: Any) -> list[Any]:  # noqa: ANN401
    """Repeat what is usual, so that what is not stays rare."""
    return list(usual) * (60 // len(usual))


def drawn(
    scores: Sequence[Any], labels: Sequence[Any], features: Sequence[Any], *wrong: dict[str, Any]
) -> st.SearchStrategy[Draw]:
    """Draw events, of which a few have other fields that are wrong, or one of those given."""
    rare = [
        *({"id": value} for value in BAD_IDS),
        *({"model": value} for value in BAD_MODELS),
        {"segment": None},
        *({name: "é" * 129} for name in ("id", "model", "segment")),
        *({"time": value} for value in BAD_TIMES),
        *wrong,
    ]
    return st.builds(
        Draw,
        observed=st.booleans(),
        id=st.sampled_from(IDS),
        model=st.sampled_from(("m", "m", "m", *MODELS)),
        segment=st.sampled_from(("", "", "", *SEGMENTS)),
        score=st.sampled_from(scores),
        x=st.sampled_from(features),
        value=st.sampled_from(labels),
        gap=st.sampled_from((0, 0, 0, 1, 1, 2, 3, 10, -1, -2)),
        outlier=st.sampled_from((*often(0), -4, -40, 6, 7, 200, 5 * FOREVER, -5 * FOREVER)),
        recorded=st.sampled_from((*often(None), 0, 0, -5, -6, -7, -300, 400)),
        wrong=st.sampled_from([*often({}), *often({}), *rare]),
    )


DRAWS = drawn(
    SCORES,
    LABELS,
    FEATURES,
    *({"score": value} for value in (*BAD_SCORES, -0.5, 1.5)),
    *({"value": value} for value in BAD_LABELS),
)


def event(draw: Draw, now: int) -> Event:
    """Make the event at a time, less or more an outlier."""
    fields: dict[str, Any] = {
        "id": draw.id,
        "time": now + draw.outlier,
        "model": draw.model,
        "recorded": None if draw.recorded is None else now + draw.outlier + draw.recorded,
    }
    if draw.observed:
        fields |= {"segment": draw.segment, "score": draw.score, "x": draw.x}
        wrong = {k: v for k, v in draw.wrong.items() if k != "value"}
        return Observation(**fields | wrong)
    fields["value"] = draw.value
    return Label(**fields | {k: v for k, v in draw.wrong.items() if k not in {"segment", "score"}})


def events(draws: Sequence[Draw]) -> list[Event]:
    """Make events whose times ascend, but for outliers."""
    now, made = 0, []
    for draw in draws:
        now += draw.gap
        made.append(event(draw, now))
    return made


EVENTS = st.lists(DRAWS, max_size=40).map(events)
FORGETTING: Sequence[dict[str, int]] = (
    {},
    {},
    {"window": 1},
    {"window": 3},
    {"max_age": 6},
    {"half_life": 2},
)
LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "label_timeout": st.sampled_from((FOREVER, FOREVER, 20, 20, 5, 2, 0)),
    "allowed_lateness": st.sampled_from((0, 0, 3, 12)),
    "max_clock_skew": st.sampled_from((FOREVER, 6, 0)),
    "max_jump": st.sampled_from((2**53, 2**53, 300, 6, 0, None)),
    "max_bytes": st.sampled_from((FOREVER, FOREVER, 1000, 300, 0)),
    "dedup_ttl": st.sampled_from((None, None, 20, 2, 0)),
    "dedup_max_ids": st.sampled_from((FOREVER, FOREVER, 3, 1, 0)),
    "max_pending": st.sampled_from((FOREVER, FOREVER, 3, 1)),
    "max_early": st.sampled_from((FOREVER, FOREVER, 2, 1)),
    "max_models": st.sampled_from((FOREVER, FOREVER, 3, 2, 1)),
    "max_id_bytes": st.sampled_from((256, 256, 2, 1)),
}


def settled(settings: Settings) -> Settings:
    """Leave room for the ids of protected predictions.

    What is given up for its bytes expires before a prediction at the same event, and the naive
    processor learns of it only afterwards.
    """
    return msgspec.structs.replace(settings, max_bytes=FOREVER) if settings.protected else settings


def limited(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[Settings]:
    """Draw settings with these options, tiny limits, and a way to forget if there is any."""

    def made(forgetting: dict[str, Any], **rest: Any) -> Settings:  # noqa: ANN401 - options
        if rest["label_timeout"] == 0:  # there is no time to wait
            rest["unlabelled"] = None
        ways = {} if rest.get("calibrator") == "none" else forgetting
        return settled(Settings(**ways, **rest))

    return st.builds(
        made,
        forgetting=st.sampled_from(FORGETTING),
        **options,
        **LIMITS,
    )


SETTINGS = limited(
    scores=st.sampled_from(("any", "probability")),
    probability=st.sampled_from((None, None, "merged", "protected")),
    max_name_bytes=st.sampled_from((256, 256, 2, 1)),
    unlabelled=st.sampled_from((None, None, 0, 1)),
)


def stream(n: int, seed: int = 0, *, every: int = 300) -> list[Event]:
    """Make a long stream with delays, ties, duplicates, gaps and a few bad records.

    Parameters
    ----------
    n
        Number of observations; most have a label.
    seed
        Of everything that is random.
    every
        About how many events come between a label that is lost or a repeated event.
    """
    rng = np.random.default_rng(seed)
    made: list[tuple[float, Event]] = []
    for i in range(n):
        time = 1_700_000_000_000 + 10 * i
        id_, model = f"id-{i}", MODELS[i % 7 % len(MODELS)]
        score = float(np.round(rng.random(), int(rng.integers(1, 5))))
        value = int(rng.random() < score**2)
        segment = SEGMENTS[int(rng.integers(3))]
        observation = Observation(id_, time, model, score=score, x={"a": score}, segment=segment)
        delay = float(rng.exponential(400.0)) - 5.0
        made.append((time, observation))
        if rng.integers(every) > 0:
            made.append((time + delay, Label(id_, time + int(delay), model, value=value)))
        if rng.integers(every) == 0:
            made.append((time + float(rng.exponential(600.0)), observation))
            made.append((time + float(rng.exponential(900.0)), Label(id_, time, model, value=1)))
        if rng.integers(every) == 0:
            wrong = msgspec.structs.replace(observation, time=time * 1000, recorded=time)
            made.append((time, wrong))
            made.append((time, Label(f"never-{i}", time, model, value=0)))
            made.append((time, Observation(f"bad-{i}", time, model, score=None)))
    return [e for _, e in sorted(made, key=lambda pair: pair[0])]


def plain(output: Output) -> tuple[Any, ...]:
    """Return an output as values with their types; the text of a rejection is left out."""
    if isinstance(output, DeadLetter):
        assert isinstance(output.detail, str)
        assert output.detail
        fields = msgspec.structs.asdict(output.event)
        del fields["recorded"]  # a label that waited does not know it any longer
        parts = map(_equal_to_itself, fields.values())
        return (type(output.event), *parts, output.reason, output.row)
    values = msgspec.structs.astuple(output)
    return (type(output), *((type(value), _equal_to_itself(value)) for value in values))


def _equal_to_itself(value: Any) -> Any:  # noqa: ANN401
    """Return a value, or a word for NaN, which is equal to nothing, not even to itself."""
    return "NaN" if value != value else value  # noqa: PLR0124


def rowless(output: Output) -> tuple[Any, ...]:
    """Return an output as values, without the row of a dead letter."""
    if isinstance(output, DeadLetter):
        output = msgspec.structs.replace(output, row=None)
    return plain(output)


def state_part(processor: Processor, name: str) -> Any:  # noqa: ANN401
    """Return a part of the state of a processor, as plain lists and mappings."""
    *_, found = msgspec.msgpack.decode(processor.state_bytes())[name]
    return found


def saved_calibrators(processor: Processor) -> list[bytes]:
    """Return the states of the calibrators of a processor."""
    _, found = state_part(processor, "calibrators")
    return list[bytes](found)
