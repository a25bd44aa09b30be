from __future__ import annotations

import threading

from abers_connectors.kafka.watchdog import Watchdog


def test_late_call_ends_the_process() -> None:
    """A call that takes longer than allowed is named, and the process ends to be started again."""
    said: list[str] = []
    ended: list[int] = []
    over = threading.Event()

    def end(code: int) -> None:
        ended.append(code)
        over.set()

    watchdog = Watchdog(0.05, said.append, end)
    with watchdog.call("commit"):
        assert over.wait(60)
    watchdog.close()
    assert ended == [75]
    (sentence,) = said
    assert sentence.startswith("the broker did not answer commit within 0.05 s (kafka.watchdog)")


def test_call_in_time() -> None:
    """Nothing happens between calls, however long that takes."""
    looked = threading.Event()
    watchdog = Watchdog(0.01, lambda _: looked.set(), lambda _: looked.set())
    with watchdog.call("poll"):
        pass
    assert not looked.wait(0.1)
    watchdog.close()
