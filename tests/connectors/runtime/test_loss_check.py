"""What a service loses, `abers_connectors.runtime.maintenance` and `replay.losses`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.connectors.runtime.test_status import observed

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.replay.summary import LOSSES, Loss, loss_sentences, summarize
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.maintenance import LossCheck
from abers_connectors.runtime.task import StreamTask

if TYPE_CHECKING:
    from abers.stream import Event

RULES = Path(__file__).parents[3] / "deploy" / "rules.yml"
DAY = 86_400_000
STEP = DAY // 144  # ten minutes


def tasks(count: int = 1, **limits: Any) -> list[StreamTask]:  # noqa: ANN401 - settings
    """Return tasks of several partitions."""
    wanted = Settings(**{"label_timeout": 7 * DAY} | limits)
    checkpoints = [Checkpoint("app", n, 0, 0, (0, 0)) for n in range(count)]
    return [StreamTask(Processor(wanted, front="toml"), one) for one in checkpoints]


def late(count: int, first: int = 0, *, delay: int = 8 * DAY) -> list[Event]:
    """Return observations every ten minutes, and their labels later."""
    times = [first + n * STEP for n in range(count)]
    made: list[Event] = [Observation(f"a{at}", at, score=0.5) for at in times]
    made += [Label(f"a{at}", at + delay, value=1) for at in times]
    return sorted(made, key=lambda one: one.time)


def test_labels_that_come_too_late_have_a_remedy() -> None:
    """Labels 8 days late under 7 days: how many came, the median delay, and the setting."""
    check, (task,) = LossCheck(), tasks()
    assert check.check([task]) == []
    task.processor.process_many(late(1_000))
    said = check.check([task])
    assert said[0] == (
        "3 of 1,000 labels came within 7 days; the median delay of the others is 8 days: set "
        "limits.label_timeout to more than the delay, or late labels are not learned"
    )
    assert check.sentences == said
    assert said[1].startswith("997 of 1,000 predictions had no label within 7 days (100 %)")


def test_a_sentence_goes_when_its_cause_does() -> None:
    """It is logged once, holds as long as it is true, and counts what came since."""
    check, (task,) = LossCheck(), tasks(max_jump=2**53)
    check.check([task])
    task.processor.process_many(late(1_000))
    assert len(check.check([task])) == 2
    assert check.check([task]) == []  # nothing came since
    assert len(check.sentences) == 2
    begin = 40 * DAY
    task.processor.process_many(late(1_500, begin, delay=STEP))
    assert check.check([task]) == []
    assert check.sentences == []
    task.processor.process_many(late(1_500, 3 * begin))
    assert check.check([task]) == []  # logged before
    assert len(check.sentences) == 2


def test_few_say_nothing() -> None:
    """Below a thousand labels nothing is said, even if all are late."""
    check, (task,) = LossCheck(), tasks()
    check.check([task])
    task.processor.process_many(late(900))
    assert check.check([task]) == []


def test_a_process_without_partitions() -> None:
    """It loses nothing, before the first assignment and after the last."""
    check, (task,) = LossCheck(), tasks()
    for assigned in ([], [], [task], []):
        assert check.check(assigned) == []
        assert check.check(assigned) == []


def test_another_assignment_begins_anew() -> None:
    """What another process lost of a partition does not count as lost here."""
    check, (one, other) = LossCheck(), tasks(2)
    check.check([one])
    other.processor.process_many(late(1_000))
    assert check.check([one, other]) == []
    assert check.check([one, other]) == []


def test_records_that_cannot_be_used() -> None:
    """More than one record in a hundred as junk: a sentence that names the dead letters."""
    check, task = LossCheck(), Served(0)
    check.check([task])
    task.take(*(Read(b"{") if n % 50 == 0 else observed(f"{n}", 1_000 + n) for n in range(1_000)))
    (said,) = check.check([task])
    assert said.startswith("20 of 1,000 records cannot be used (2 %): see the dead letters")


@pytest.mark.parametrize(
    ("limits", "events", "said"),
    [
        (
            {"max_pending": 10},
            [Observation(f"{n // 2}", n, score=0.5) for n in range(4_000)],
            [
                "1,990 of 1,990 predictions were dropped before their label (100 %)",
                "2,000 of 4,000 observations had an id that was there before",
            ],
        ),
        (
            {"max_early": 10},
            [Label(f"{n}", n, value=1) for n in range(1_000)],
            ["990 of 1,000 labels were dropped before their observation came (99 %)"],
        ),
        (
            {},
            [
                *(Label(f"{n}", n, value=1) for n in range(1_000)),
                *(Observation(f"far{n}", 8 * DAY, score=0.5) for n in range(3)),
            ],
            ["1,000 of 1,000 labels met no observation within 7 days (100 %)"],
        ),
        (
            {},
            [
                *(Observation(f"{n}", n, score=0.5) for n in range(900)),
                *(Label(f"{n % 900}", 900 + n, value=1) for n in range(1_200)),
            ],
            ["300 of 1,200 labels had an id with a label already"],
        ),
    ],
    ids=["evicted", "early", "unknown", "twice"],
)
def test_each_kind_has_its_sentence(
    limits: dict[str, Any], events: list[Event], said: list[str]
) -> None:
    """A service and the end of a replay name what is lost, by kind."""
    (task,) = tasks(**{"max_jump": 2**53} | limits)
    check = LossCheck()
    check.check([task])
    task.processor.process_many(events)
    found = check.check([task])
    for one, start in zip(found, said, strict=True):
        assert one.startswith(start)
    summary = summarize([task.processor], len(events), {}, len(events), 1.0)
    assert [*summary.losses] == found


def test_retired_predictions() -> None:
    """Predictions that go with their models come with the limits that retire them."""
    of = {"learned": 900, "retired": 200}
    (said,) = loss_sentences(of, Settings(), [], "toml")
    assert said.startswith("200 of 1,100 predictions were dropped with their models (18 %)")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda one: one.name)
def test_a_share_that_is_not_exceeded(loss: Loss) -> None:
    """At the share itself nothing is said, and above it one sentence with the numbers."""
    most, part = round(loss.share * 10_000), loss.lost[0] in loss.whole
    whole = next(name for name in loss.whole if name not in loss.lost)
    for lost in (most, most + 1):
        of = {whole: 10_000 - lost * part, loss.lost[0]: lost}
        said = loss.text(of, Settings(), [], "toml")
        assert (said is not None) == (lost > most)
        assert said is None or "10,000" in said


@pytest.mark.parametrize("loss", LOSSES, ids=lambda one: one.name)
def test_each_kind_has_an_alert(loss: Loss) -> None:
    """The rules have an alert of each kind, with the same share."""
    rules = RULES.read_text("utf-8")
    found = re.search(rf"- alert: {loss.alert}\n(.*?)(?=\n\n|\Z)", rules, re.DOTALL)
    assert found, loss.alert
    assert f"> {loss.share:g} *" in found[1]
