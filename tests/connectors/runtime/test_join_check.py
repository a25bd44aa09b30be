"""A warning for labels that do not meet their observations, and for no others."""

from __future__ import annotations

from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.runtime.maintenance import JoinCheck

SECOND = 1000


def observe(task: Served, *names: str, time: int) -> None:
    """Process observations."""
    task.take(
        *(Read(b'{"id": "%s", "time": %d, "score": 0.5}' % (n.encode(), time)) for n in names)
    )


def settle(task: Served, *names: str, time: int) -> None:
    """Process labels."""
    value = '{"id": "%s", "time": %d, "label": 1}'
    task.take(*(Read((value % (name, time)).encode()) for name in names))


def names(prefix: str, count: int) -> list[str]:
    """Return some ids."""
    return [f"{prefix}{number}" for number in range(count)]


def test_labels_that_meet_nothing() -> None:
    """Over a fifth of a thousand labels without an observation cause a warning with advice."""
    join_check, task = JoinCheck(), Served()
    observe(task, *names("a", 800), time=0)
    assert join_check.check([task], 0.0) is None
    settle(task, *names("a", 798), *names("b", 201), time=1)
    assert join_check.check([task], 0.0) is None
    settle(task, "a799", time=1)
    warning = join_check.check([task], 0.0)
    assert warning is not None
    assert warning.startswith("201 of the last 1,000 labels have met no observation.")
    assert "`abers check --connect`" in warning


def test_one_warning() -> None:
    """A second warning does not follow."""
    join_check, task = JoinCheck(), Served()
    join_check.check([task], 0.0)
    warned = []
    for prefix in "abc":
        settle(task, *names(prefix, 1000), time=0)
        warned.append(join_check.check([task], 0.0) is not None)
    assert warned == [True, False, False]


def test_a_few_may_be_unmatched() -> None:
    """A fifth, or fewer than a thousand, is not enough; the next thousand counts anew."""
    join_check, task = JoinCheck(), Served()
    observe(task, *names("a", 2000), time=0)
    join_check.check([task], 0.0)
    settle(task, *names("a", 800), *names("b", 200), time=1)
    assert join_check.check([task], 0.0) is None
    settle(task, *names("c", 999), time=1)
    assert join_check.check([task], 0.0) is None
    settle(task, "c999", time=1)
    assert str(join_check.check([task], 0.0)).startswith("1,000 of the last 1,000 ")


def test_labels_that_are_early() -> None:
    """Labels that have waited for less than the median delay may still be matched."""
    join_check, task = JoinCheck(), Served()
    observe(task, "first", time=0)
    join_check.check([task], 60.0)
    settle(task, *names("a", 1000), time=30 * SECOND)
    assert join_check.check([task], 60.0) is None
    observe(task, *names("a", 1000), time=60 * SECOND)
    assert join_check.check([task], 60.0) is None


def test_labels_that_timed_out() -> None:
    """Labels that timed out are unmatched too."""
    join_check, task = JoinCheck(), Served()
    join_check.check([task], 0.0)
    settle(task, *names("a", 1000), time=0)
    observe(task, "late", "later", "latest", time=8 * 86_400 * SECOND)
    assert task.processor.waiting == (3, 0)
    assert join_check.check([task], 0.0) is not None


def test_newly_assigned_tasks() -> None:
    """The counts that a task has when it is assigned do not count."""
    join_check, first, second = JoinCheck(), Served(0), Served(1)
    settle(second, *names("a", 5000), time=0)
    assert join_check.check([first], 0.0) is None
    assert join_check.check([first, second], 0.0) is None
    assert join_check.check([first, second], 0.0) is None
    settle(first, *names("a", 1000), time=0)
    assert join_check.check([first, second], 0.0) is not None


def test_a_task_that_was_restored_again() -> None:
    """A task with fewer labels than before starts a new comparison."""
    join_check, task = JoinCheck(), Served()
    settle(task, *names("a", 1500), time=0)
    join_check.check([task], 0.0)
    anew = Served()
    settle(anew, *names("a", 1000), time=0)
    assert join_check.check([anew], 0.0) is None
    settle(anew, *names("b", 1000), time=0)
    assert join_check.check([anew], 0.0) is not None
