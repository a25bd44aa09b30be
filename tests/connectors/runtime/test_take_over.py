"""What an application does that follows another, and when it refuses to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from tests.connectors.runtime.test_batch_buffer import LABELS, OBSERVATIONS, Topics, offsets

from abers.exceptions import StateError
from abers.stream import Settings
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.application import NO_OFFSET, Application, Checkpoint
from abers_connectors.runtime.batches import BatchBuffer, BatchLimits
from abers_connectors.runtime.status import TASKS, Status
from abers_connectors.runtime.take_over import PredecessorView, TakeOver, require_publishing
from abers_connectors.runtime.task import StreamTask
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from abers_connectors.runtime.transport import Consumer

APPLICATION = Application(
    "new", ["observations", "labels"], "changelog", Settings(), outcomes=False, key=None
)


class Group:
    """What is known of a predecessor, by its observations and labels."""

    id = "old"

    def __init__(self, *committed: int, running: bool = True, taken_by: str | None = None) -> None:
        known = dict(zip((OBSERVATIONS, LABELS), committed, strict=False))
        self.seen = PredecessorView(
            known, running=running, final=taken_by == APPLICATION.id, taken_by=taken_by
        )
        self.ready = False

    def view(self, *, fresh: bool = False) -> PredecessorView:
        """Return what is known."""
        del fresh
        return self.seen

    def take_over(self, *, ready: bool) -> None:
        """Record whether the successor is ready."""
        self.ready = ready


class Scene:
    """A task that follows a predecessor, and its records."""

    def __init__(self, group: Group, application: Application = APPLICATION) -> None:
        self.group, self.status = group, Status(60.0)
        self.status.seats[TASKS].joined = True
        self.topics = Topics()
        limits = BatchLimits(100, 1 << 20, commit_interval=0.0, max_task_idle=50.0)
        self.buffer = BatchBuffer(cast("Consumer", self.topics), limits, lambda: self.topics.now)
        inputs = application.input_partitions(0)
        self.buffer.add_task(0, dict.fromkeys(inputs, 0), capped=True)
        self.take_over = TakeOver(application, group, self.status, lambda: self.topics.now)
        self.task = self.take_over.create(lambda _: at(0, 0 if len(inputs) > 1 else NO_OFFSET), 0)
        self.published: list[tuple[int, int]] = []

    def turn(self, *committed: int, running: bool = True, taken_by: str | None = None) -> None:
        """Let the predecessor come to some offsets, and follow it."""
        self.group.seen = Group(*committed, running=running, taken_by=taken_by).seen
        self.take_over.follow({0: self.task}, self.buffer, self._publish)

    def _publish(self, task: StreamTask) -> None:
        assert task.checkpoint.follows == ""
        self.published.append(task.checkpoint.next_offsets)

    def hints(self) -> list[str]:
        """Return what /readyz says."""
        return self.status.view().hints

    def following(self) -> dict[str, float]:
        """Return the metric of partitions that follow, by state."""
        families = {one.name: one for one in registry_of(self.status).collect()}
        samples = families["abers_following_partitions"].samples
        return {one.labels["state"]: one.value for one in samples}


def at(first: int, second: int, follows: str = "old") -> StreamTask:
    """Return a task at some offsets."""
    place = Checkpoint("new", 0, 1, 0, (first, second), follows=follows)
    return StreamTask(APPLICATION.new_processor(), place)


def test_it_publishes_from_the_final_offsets() -> None:
    """A task comes as far as its predecessor, and publishes from where that has ended."""
    scene = Scene(Group(2, 1))
    scene.buffer.add(scene.topics.read(OBSERVATIONS, 1, 3, 5))
    scene.buffer.add(scene.topics.read(LABELS, 2, 4, 6))
    scene.turn(2, 1)
    assert (scene.following(), scene.group.ready) == ({"behind": 1, "ready": 0}, False)
    assert scene.hints() == ["learns behind old, and publishes nothing yet"]
    assert offsets(scene.buffer) == [(0, 0), (1, 0), (0, 1)]
    scene.turn(2, 1)
    assert (scene.following(), scene.group.ready) == ({"behind": 0, "ready": 1}, True)
    assert scene.hints() == ["ready to take over: at the offsets of old; stop old"]
    scene.turn(3, 1, running=False, taken_by="new")
    assert scene.published == []
    assert offsets(scene.buffer) == [(0, 2)]
    scene.turn(3, 1, running=False, taken_by="new")
    assert scene.published == [(3, 1)]
    assert (scene.following(), scene.hints()) == ({"behind": 0, "ready": 0}, [])


def test_it_publishes_with_one_input() -> None:
    """A task without labels of their own has one offset to reach; a marker may be the last."""
    scene = Scene(Group(3), APPLICATION._replace(inputs=["observations"]))
    scene.buffer.add(scene.topics.read(OBSERVATIONS, 1, 3))
    scene.topics.positions[OBSERVATIONS] = 3
    scene.turn(3, taken_by="new")
    assert offsets(scene.buffer) == [(0, 0), (0, 1)]
    scene.turn(3, taken_by="new")
    assert scene.published == [(3, NO_OFFSET)]


def test_it_publishes_all_of_a_partition_that_was_never_read() -> None:
    """Where the predecessor has no offset, a task publishes from its own beginning."""
    scene = Scene(Group(2, 1))
    scene.buffer.add(scene.topics.read(OBSERVATIONS, 1, 3))
    scene.turn(taken_by="new")
    assert scene.published == [(0, 0)]


def test_it_does_not_take_over_before_it_is_there() -> None:
    """A predecessor that stops before that is only followed, and may come back."""
    scene = Scene(Group(2, 1))
    scene.turn(2, 1, running=False)
    scene.turn(2, 1, running=False)
    assert not scene.group.ready
    (hint,) = scene.hints()
    assert hint.startswith("old has no running process")


def test_nothing_is_said_of_a_part_of_the_tasks() -> None:
    """While other tasks are being restored, the process is not ready."""
    scene = Scene(Group(0, 0))
    scene.status.seats[TASKS].joined = False
    for _ in range(2):
        scene.turn(0, 0)
    assert (scene.group.ready, scene.following(), scene.hints()) == (False, {}, [])


def test_a_task_that_falls_behind_is_not_ready() -> None:
    """A task that was at the offsets is ready for ten seconds, or as long as it is there."""
    scene = Scene(Group(0, 0))
    for _ in range(2):
        scene.turn(0, 0)
    scene.turn(5, 5)
    assert scene.group.ready
    scene.topics.now += 10.0
    scene.turn(5, 5)
    assert not scene.group.ready


OTHER = PredecessorView({TopicPartition("clicks", 0): 5}, running=True)


@pytest.mark.parametrize(
    ("task", "seen", "why"),
    [
        (at(0, 0), Group().seen, "group old has no committed offsets; name the"),
        (at(0, 0), OTHER, "old reads clicks, and not observations, labels; take over from"),
        (at(0, 0), Group(5).seen, "old reads observations, and not labels; take over from"),
        (at(0, 0), Group(5, 5, taken_by="third").seen, "old was taken over by third meanwhile"),
        (at(0, 0, "third"), Group(5, 5).seen, "follows third, and --take-over names old; start"),
        (at(0, 0, ""), Group(5, 5).seen, "new publishes already, and has not taken over from old"),
        (at(6, 0), Group(5, 5).seen, r"observations\[0\]: new is at @6, and old has committed @5"),
        (at(0, 6), Group(5, 5).seen, r"labels\[0\]: new is at @6, .* no prediction. Start new at"),
    ],
)
def test_what_is_refused(task: StreamTask, seen: PredecessorView, why: str) -> None:
    """A state that cannot take over from the application is an error with its remedy."""
    group = Group()
    group.seen = seen
    with pytest.raises(StateError, match=why):
        TakeOver(APPLICATION, group, Status(60.0)).require(task)


@pytest.mark.parametrize(
    ("task", "group"),
    [
        (at(5, 5), Group(5, 5)),
        (at(9, 9, ""), Group(5, 5, running=False, taken_by="new")),
        (at(9, 9, ""), Group(running=False)),
    ],
)
def test_what_goes_on(task: StreamTask, group: Group) -> None:
    """A task that follows, or has taken over, goes on, also once the old offsets are gone."""
    TakeOver(APPLICATION, group, Status(60.0)).require(task)


def test_a_task_that_follows_needs_the_option() -> None:
    """Without it a task that published nothing so far is refused, and others are not."""
    require_publishing(APPLICATION, at(5, 5, ""))
    with pytest.raises(StateError, match=r"not yet taken over from old.*--take-over old"):
        require_publishing(APPLICATION, at(5, 5))
