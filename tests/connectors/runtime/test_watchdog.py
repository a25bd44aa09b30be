from __future__ import annotations

import threading

from abers_connectors.runtime.watchdog import Limit, Watchdog


def test_late_call_ends_the_process() -> None:
    """A call that takes longer than allowed is logged, and ends the process."""
    logged: list[str] = []
    ended: list[int] = []
    over = threading.Event()

    def end(code: int) -> None:
        ended.append(code)
        over.set()

    watchdog = Watchdog(0.05, logged.append, end)
    with watchdog.call("commit"):
        assert over.wait(60)
    watchdog.close()
    assert ended == [75]
    (sentence,) = logged
    assert sentence.startswith(
        "the broker did not answer commit within 0.05 s (kafka.stall_timeout)"
    )


def test_a_call_may_have_a_shorter_limit() -> None:
    """The process ends after the shorter limit, and the message names its key."""
    logged: list[str] = []
    over = threading.Event()
    watchdog = Watchdog(60, logged.append, lambda _: over.set())
    with watchdog.call("send offsets", Limit(0.05, "kafka.transaction_timeout")):
        assert over.wait(30)
    watchdog.close()
    (sentence,) = logged
    assert sentence.startswith(
        "the broker did not answer send offsets within 0.05 s (kafka.transaction_timeout)"
    )


def test_call_in_time() -> None:
    """Nothing happens between calls, however long that takes."""
    ended = threading.Event()
    watchdog = Watchdog(0.5, lambda _: ended.set(), lambda _: ended.set())
    with watchdog.call("poll"):
        pass
    assert not ended.wait(1.0)
    watchdog.close()
