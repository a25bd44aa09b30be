"""`abers serve`: the durable processor, its HTTP server, and its regular updates.

The server starts at once, and answers predictions and labels once the state is restored. At the end
it takes no more requests, and answers those that it has taken.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ConfigError
from abers.stream import DurableProcessor
from abers.stream.learners import read_learner
from abers.stream.option import Ref, said
from abers_connectors.config.layers import option
from abers_connectors.config.sections import ServeSection
from abers_connectors.dashboard.server import ServicePage, listening, pages, require_libraries
from abers_connectors.http.credentials import ServeTokens
from abers_connectors.runtime.application import NO_OFFSET, Checkpoint
from abers_connectors.runtime.status import TASKS, Seat, Status
from abers_connectors.runtime.task import StreamTask
from abers_connectors.secret import state_key
from abers_connectors.sinks.alarm_record import AlarmRecord
from abers_connectors.sinks.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.stream import Alarm, Processor, Settings
    from abers.stream.background_snapshot import SnapshotResult
    from abers.stream.option import Front
    from abers_connectors.config.model import Config

__all__ = ["serve"]


class AlarmWatch:
    """Passes on the alarms of a processor that were raised since the last look.

    Parameters
    ----------
    processor
        The processor; alarms that it has already are not passed on.
    post
        Takes an alarm as JSON.
    """

    def __init__(self, processor: Processor, post: Callable[[bytes], object]) -> None:
        self._post = post
        self._last: dict[tuple[str, str], Alarm] = {}
        self._new(processor)

    def look(self, processor: Processor) -> None:
        """Pass on new alarms, while nothing changes the processor."""
        for one in self._new(processor):
            self._post(msgspec.json.encode(AlarmRecord.of(one)))

    def _new(self, processor: Processor) -> list[Alarm]:
        """Return the alarms since the last call, and note the last of each model and segment."""
        found: list[Alarm] = []
        for key, history in zip(processor.keys, processor.histories, strict=False):
            newest = [one for _, one in reversed(history.alarms)]
            last = self._last.get(key)
            found += [*takewhile(lambda one, last=last: one != last, newest)][::-1]  # type: ignore[misc]
            if newest:
                self._last[key] = newest[0]
        return found


_PROBABILITIES = 'scores are probabilities (for others write task.scores = "any" in a CONFIG)'


def ready_lines(url: str, config: Config, tokens: ServeTokens) -> str:
    """Return the lines to print when the server is ready."""
    settings = config.settings()
    fields, label = _example(settings)
    fields = {"x": {"amount": 12.5}} if config.learns else fields
    said = f"; {_PROBABILITIES}" if settings.scores == "probability" else ""
    return (
        f"ready{said}; try:\n"
        f"  {_curl(f'{url}/v1/predict', fields, tokens.variable('predict'))}\n"
        f"  {_curl(f'{url}/v1/labels', {'label': label}, tokens.variable('label'))}"
    )


def _example(settings: Settings) -> tuple[dict[str, Any], Any]:
    """Return the fields of a prediction, and its label."""
    label: Any = 1
    score: Any = 0.83
    if settings.task == "multiclass":
        classes = settings.classes
        label = classes[0]
        score = {name: round(1 / len(classes), 2) for name in classes[1:]}
        score = {label: round(1 - sum(score.values()), 2), **score}
    elif settings.task == "regression":
        score, label = 12.5, 14
    return {"score": score}, label


def _curl(url: str, fields: dict[str, Any], token: str | None) -> str:
    body = msgspec.json.format(msgspec.json.encode({"id": "a1"} | fields), indent=0).decode()
    text = body.replace("'", "'\\''")  # as a shell has it
    login = "" if token is None else f' -H "authorization: Bearer ${token}"'
    return f"curl {url} -H 'content-type: application/json'{login} -d '{text}'"


_TURN = 0.25  # seconds
_EVIDENCE = 5.0  # seconds between two updates of metrics about evidence
_STALL = 60.0  # seconds without a turn after which the process counts as hung
_LAST = 20.0  # seconds for requests that were taken, at the end


class ServedTask(StreamTask):
    """The processor of the server, as status and pages read a task.

    Parameters
    ----------
    processor
        The processor.
    refused
        Numbers of rows of requests that became no events, by reason.
    """

    def __init__(self, processor: Processor, refused: Counter[str]) -> None:
        super().__init__(processor, Checkpoint("serve", 0, 0, 0, (NO_OFFSET, NO_OFFSET)))
        self._refused = refused

    @property
    def accounts(self) -> dict[str, int]:
        """How all events and predictions ended; requests do not count as records."""
        dead = Counter({f"dead:{reason}": n for reason, n in self._refused.copy().items()})
        counters = self.processor.counters.items()
        dead.update({name: n for name, n in counters if name.startswith("dead:")})
        return self.processor.accounts | dead


class _ServedState:
    """The parts that requests and the main thread share."""

    def __init__(self) -> None:
        self.status = Status(_STALL, application="serve")
        self.status.assign([("serve", 0)])
        self.page = ServicePage("serve", self.status)
        self.durable: DurableProcessor | None = None
        self._snapshot: SnapshotResult | None = None
        self._watch: AlarmWatch | None = None

    def ask(self, question: Callable[[Processor], Any]) -> Any:  # noqa: ANN401 - any result
        """Return the answer to a question about the processor; None before it is restored."""
        if self.durable is None:
            return None
        with self.durable.reading() as processor:
            return question(processor)

    def ready(
        self, durable: DurableProcessor, webhook: Webhook | None, refused: Counter[str]
    ) -> ServedTask:
        """Show that the state is restored, and watch for alarms if they go to a webhook."""
        with durable.reading() as processor:
            self._watch = None if webhook is None else AlarmWatch(processor, webhook.post)
            task = ServedTask(processor, refused)
            self.status.restored(task)
        self.status.seats[TASKS] = Seat(joined=True, last_heartbeat=float("inf"))
        self.durable = durable
        return task

    def turn(self, durable: DurableProcessor, task: ServedTask, *, evidence: bool) -> None:
        """Update status and pages, and post alarms."""
        if (made := durable.last_snapshot) is not None and made is not self._snapshot:
            self._snapshot = made
            self.status.snapshot_finished(saved=made.error is None)
        with durable.reading():
            self.status.progressed()
            self.status.events_taken(task)
            if evidence:
                self.status.update_evidence([task])
            self.page.refresh([task])
            if self._watch is not None:
                self._watch.look(task.processor)


def serve(config: Config, say: Callable[[str], object]) -> None:
    """Serve a configuration with a section [serve] until SIGTERM or SIGINT.

    Raises
    ------
    MissingExtraError
        If a library of the server is not installed.
    DurabilityError
        If the disk fails, or another process writes there; try again.
    StateError
        If the state cannot be used.
    ConfigError
        If tokens are missing, or the address cannot be used.
    """
    require_libraries()
    from abers_connectors.serve.application import ServeApplication  # noqa: PLC0415 - an extra
    from abers_connectors.serve.verdict_route import reading_routes  # noqa: PLC0415 - likewise

    section = config.serve or ServeSection()
    http, tokens, service = config.http, ServeTokens(config.http), _ServedState()
    names = {http.host, *http.hosts}
    with ExitStack() as stack, _stoppable() as stop:
        routes = [*reading_routes(config, service.ask, stack.callback, names, tokens.read)]
        rest = pages(http, service.status, service.page.feed, stack, routes)
        app = ServeApplication(rest, config, tokens, names)
        url = stack.enter_context(listening(http, app, fast=True, front=config.front))
        webhook = _webhook(config, service.status, stack)
        _require_folder(section.data, config.front)
        say(f"serving at {url}/; restoring {section.data}")
        with _durable(config, section) as durable:
            task = service.ready(durable, webhook, app.refused)
            app.open(durable)
            say(ready_lines(url, config, tokens))
            _run(service, durable, task, stop)
            app.close()
            _wait_for(lambda: app.idle)
            service.turn(durable, task, evidence=False)
            service.durable = None
    say("stopped: all that was answered is on disk")


def _webhook(config: Config, status: Status, stack: ExitStack) -> Webhook | None:
    """Return the webhook that alarms go to, if there is one."""
    if config.alerts.webhook is None:
        return None
    webhook = Webhook(config.alerts.webhook, status.webhook_called)
    stack.callback(webhook.close)
    return webhook


def _durable(config: Config, section: ServeSection) -> DurableProcessor:
    """Return the processor, with the learner that the configuration names."""
    key = state_key(file=config.state.key_file)
    learner = None
    if section.learner is not None:
        learner = read_learner(Path(section.learner).read_bytes(), section.learner)
    return DurableProcessor(
        section.data,
        config.settings(),
        key=key,
        learner=learner,
        trusted_types=None if learner is None else [],
        answers=True,
        front="toml",  # no flag sets how rows are read
    )


def _require_folder(path: str, front: Front) -> None:
    """Raise a ConfigError if the path of the state exists, and is not a folder."""
    if Path(path).exists() and not Path(path).is_dir():
        where = said((Ref(option("serve.data"), path),), front)
        raise ConfigError([f"{where}: is not a folder; name one, or a name that is free"])


def _run(
    service: _ServedState, durable: DurableProcessor, task: ServedTask, stop: threading.Event
) -> None:
    """Do what is due, until the end, or until the disk fails."""
    due = 0.0
    while not stop.wait(_TURN):
        now = time.monotonic()
        service.turn(durable, task, evidence=now >= due)
        due = due if now < due else now + _EVIDENCE


def _wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _LAST
    while not done() and time.monotonic() < end:
        time.sleep(_TURN / 10)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Yield an event that signals set."""
    stop = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {one: signal.signal(one, lambda *_: stop.set()) for one in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
