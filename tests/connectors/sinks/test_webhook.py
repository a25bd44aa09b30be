"""Alarms to a webhook: a server receives each once, and a silent one delays nothing."""

from __future__ import annotations

import logging
import socket
import threading
from queue import Queue

import pytest
from tests.connectors.hooks import SECRET, Posted, listening

from abers_connectors.sinks.webhook import Webhook


def sent(url: str, *alarms: bytes) -> list[str]:
    """Post alarms one after the other, and return the result of each."""
    results = Queue[str]()
    webhook = Webhook(url, results.put, pauses=(0.01, 0.01))
    found = []
    for alarm in alarms:
        webhook.post(alarm)
        found.append(results.get(timeout=240))
    webhook.close()
    return found


def test_each_alarm_is_posted_once() -> None:
    """Alarms are posted in their order, as JSON, to the whole address."""
    with listening() as listener:
        assert sent(listener.url, b'{"v":1}', b'{"v":2}') == ["sent", "sent"]
        heard = [listener.heard.get_nowait() for _ in range(2)]
        assert listener.heard.empty()
    kind = "application/json"
    assert heard == [Posted(SECRET, kind, b'{"v":1}'), Posted(SECRET, kind, b'{"v":2}')]


@pytest.mark.parametrize("answer", [500, 503, 408, 429])
def test_a_server_that_fails_is_asked_again(answer: int) -> None:
    """A temporary failure is retried, and the alarm is then posted once."""
    with listening([answer, answer]) as listener:
        assert sent(listener.url, b"{}") == ["sent"]
        assert listener.heard.qsize() == 3


def test_attempts_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """After some attempts an alarm is dropped; the log names the host, and not the address."""
    with listening([500] * 3) as listener:
        assert sent(listener.url, b"{}", b"{}") == ["failed", "sent"]
    assert caplog.messages == ["an alarm could not be posted to 127.0.0.1: it answers 500"]


@pytest.mark.parametrize("answer", [302, 400, 404])
def test_what_will_not_be_different_is_not_tried_again(answer: int) -> None:
    """A permanent refusal is not retried, and a redirect is not followed."""
    with listening([answer]) as listener:
        assert sent(listener.url, b"{}") == ["failed"]
        assert [one.path for one in listener.heard.queue] == [SECRET]


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    """Without a server the alarm is dropped, and the address is not logged."""
    with listening() as listener:
        url = listener.url
    caplog.set_level(logging.DEBUG)
    assert sent(url, b"{}") == ["failed"]
    assert caplog.messages == ["an alarm could not be posted to 127.0.0.1: ConnectionRefusedError"]
    assert SECRET not in caplog.text


def test_an_answer_that_is_no_http() -> None:
    """A response that is not HTTP is a failure."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(1000)
                    client.sendall(b"\x16\x03\x01\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        assert sent(f"http://127.0.0.1:{server.getsockname()[1]}", b"{}") == ["failed"]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_one_who_keeps_silent_hinders_nobody() -> None:
    """Posting takes no time; what is too much is dropped and counted."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # connects, and never answers
        results = Queue[str]()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        webhook = Webhook(url, results.put, pauses=(), timeout=60.0)
        for _ in range(150):
            webhook.post(b"{}")
        found = [results.get_nowait() for _ in range(results.qsize())]
        assert set(found) == {"dropped"}
        assert 49 <= len(found) <= 50  # one may be under way
    rest = [results.get(timeout=240) for _ in range(150 - len(found))]  # now nobody listens
    assert set(rest) == {"failed"}
    webhook.close()


def test_alarms_that_wait_at_the_end_are_reported() -> None:
    """When a process ends, queued alarms are still posted."""
    with listening() as listener:
        results = Queue[str]()
        webhook = Webhook(listener.url, results.put)
        for _ in range(5):
            webhook.post(b"{}")
        webhook.close()
        assert [*results.queue] == ["sent"] * 5


def test_the_end_waits_for_no_further_attempt() -> None:
    """When a process ends, a failed alarm is not retried after a pause."""
    with listening([500] * 9) as listener:
        results = Queue[str]()
        webhook = Webhook(listener.url, results.put, pauses=(3600.0,))
        webhook.post(b"{}")
        assert listener.heard.get(timeout=240).body == b"{}"
        webhook.close()
        assert [*results.queue] == ["failed"]
