"""Applications of several generations for tests: their streams, and what must come of them."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from itertools import chain, pairwise
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from tests.connectors.kafka.brokers import PATIENCE, Broker, Message, unique
from tests.connectors.kafka.clients import CLIENTS

from abers.stream import Events, Label, Observation, Processor
from abers_connectors.config.model import load
from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kafka.consumer.fetcher import ConsumerRecord

    from abers.stream import Outputs
    from abers_connectors.config.model import Config

__all__ = ["RescaledApplication", "Stream", "stream"]

START = 1_700_000_000_000
MODELS = 9
SUFFIXES = {"routed": "routed", "changelog": "changelog"}


class Stream(NamedTuple):
    """Messages of the inputs."""

    observations: list[Message]
    labels: list[Message]

    def cut(self, *seconds: float) -> list[Stream]:
        """Return the parts before, between and after some seconds since the start."""
        times = [0, *(START + int(1000 * one) for one in seconds), 1 << 60]
        return [
            Stream(*([one for one in some if since <= (one.time or 0) < until] for some in self))
            for since, until in pairwise(times)
        ]


def stream(count: int, partitions: tuple[int, int], *, by_model: bool = False) -> Stream:
    """Return ten observations a second, and late labels that each model fits until a time.

    They are in random partitions with random keys, or by model in both.
    """
    random = Random(0)  # noqa: S311 - not for secrets
    found = Stream([], [])
    for number in range(count):
        at, model = START + 100 * number, random.randrange(MODELS)
        one = {"id": f"o{number}", "time": at, "model": f"model {model}"}
        key = f"model {model}".encode() if by_model else random.randbytes(3)
        first, second = (
            model % each if by_model else random.randrange(each) for each in partitions
        )
        score = random.random()
        value = json.dumps(one | {"score": score}).encode()
        found.observations.append(Message(value, key, first, at))
        late = at + random.choice([2_000, 9_050])
        right = number < count * (model + 1) / (MODELS + 1)
        label = int((random.random() < score) == right)
        value = json.dumps(one | {"time": late, "label": label}).encode()
        found.labels.append(Message(value, key, second, late))
    return Stream(found.observations, sorted(found.labels, key=lambda label: label.time or 0))


class RescaledApplication:
    """An application at any generation, with state in a folder of its own."""

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        start: Callable[..., subprocess.Popen[bytes]],
        partitions: tuple[int, int] = (3, 2),
        **kafka: object,
    ) -> None:
        """Make its inputs and outputs."""
        self.broker, self.folder, self._start = broker, folder, start
        self.name, self.generation = unique("app"), 1
        self.seen, self.labelled = 0, 0
        self.kafka: dict[str, object] = {
            "bootstrap_servers": broker.bootstrap,
            "application_id": self.name,
            "observations": broker.create("observations", partitions[0]),
            "labels": broker.create("labels", partitions[1]),
            "predictions": broker.create("predictions", 2),
            "outcomes": broker.create("outcomes", 2),
            "alerts": broker.create("alerts", 1),
            "route_by": "model",
            "partitions": 4,
            "max_records": 50,
            "leave_group_on_close": True,
            **kafka,
        }
        self.state: dict[str, object] = {"path": str(folder / "state"), "snapshot_every": 100}
        self.sections: dict[str, dict[str, object]] = {}

    def use(self, client: str) -> None:
        """Use a client by its name."""
        self.kafka |= CLIENTS[client]

    def topic(self, key: str) -> str:
        """Return the name of a topic by its key, at this generation."""
        if key not in SUFFIXES:
            return str(self.kafka[key])
        name = f"{self.name}.{SUFFIXES[key]}"
        return name if self.generation == 1 else f"{name}-{self.generation}"

    def _sections(self) -> dict[str, dict[str, Any]]:
        return {
            "kafka": self.kafka,
            "state": self.state,
            "http": {"enabled": False},
            "task": {"scores": "probability"},
            "monitoring": {"grace_period": 20, "average_run_length": 1000},
            **self.sections,
        }

    def config(self) -> Config:
        """Return the configuration."""
        return load(flags=self._sections(), environ={})

    def written(self) -> str:
        """Write the configuration, and return the name of the file."""
        lines = []
        for section, keys in self._sections().items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        (self.folder / "abers.toml").write_text("\n".join(lines) + "\n")
        return "abers.toml"

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a process, with more words on its command line."""
        return self._start("run", self.written(), "--create-topics", *words)

    def produce(self, part: Stream) -> None:
        """Write to the inputs."""
        self.seen += len(part.observations)
        self.labelled += len(part.labels)
        self.broker.produce(self.topic("observations"), part.observations)
        self.broker.produce(self.topic("labels"), part.labels)

    def serve(self, part: Stream, *words: str) -> None:
        """Write to the inputs, process until all is predicted and learned, and stop in order."""
        self.produce(part)
        with self.run(*words) as process:
            self.until(self._done, process)
            self.stop(process)

    @staticmethod
    def until(done: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait for a condition, while a process runs, if there is one."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            if process is not None:
                assert process.poll() is None, process.communicate()[1].decode()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    @staticmethod
    def stop(process: subprocess.Popen[bytes]) -> None:
        """Stop a process in order."""
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0, err.decode()

    def _done(self) -> bool:
        made = [len(self.read(key)) for key in ("predictions", "outcomes")]
        return made == [self.seen, self.labelled]

    def read(self, key: str) -> list[ConsumerRecord]:
        """Return the committed records of a topic by its key."""
        return self.broker.consume(self.topic(key))

    def merged(self) -> list[ConsumerRecord]:
        """Return the records of both inputs by time, labels first."""
        inputs = [self.read("labels"), self.read("observations")]
        return sorted(chain.from_iterable(inputs), key=lambda one: one.timestamp)

    def routed(self, generations: Sequence[int]) -> list[ConsumerRecord]:
        """Return the records that were routed in some generations, one after the other."""
        found, now = [], self.generation
        for self.generation in generations:
            found += self.read("routed")
        self.generation = now
        return found

    def outputs(self, records: Sequence[ConsumerRecord]) -> list[Outputs]:
        """Return what a processor for each model makes of its records, each alone, in order."""
        settings = self.config().settings()
        processors: dict[str, Processor] = defaultdict(lambda: Processor(settings))
        return [
            processors[event.model].process_batch(Events.of([event]))
            for event in map(_event, records)
        ]

    def require(self, outputs: Sequence[Outputs]) -> None:
        """Assert that outputs are what the topics have, to the bit."""
        expected = {
            "predictions": [one for some in outputs for one in some.predictions],
            "outcomes": [one for some in outputs for one in some.outcomes or ()],
        }
        for key, these in expected.items():
            values = sorted(one.value for one in self.read(key))
            assert values == sorted(map(msgspec.json.encode, these))
        alarms = [AlarmRecord.of(alarm) for some in outputs for _, alarm in some.alarms]
        raised = [msgspec.json.decode(one.value, type=AlarmRecord) for one in self.read("alerts")]
        assert alarms
        assert sorted(map(_without_record, raised)) == sorted(map(repr, alarms))


def _without_record(alarm: AlarmRecord) -> str:
    return repr(msgspec.structs.replace(alarm, topic=None, partition=None, offset=None))


def _event(record: ConsumerRecord) -> Observation | Label:
    one = json.loads(record.value or b"")
    known = {"recorded": record.timestamp, "model": one["model"]}
    if "score" in one:
        return Observation(one["id"], one["time"], score=one["score"], **known)
    return Label(one["id"], one["time"], value=one["label"], **known)
