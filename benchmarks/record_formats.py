"""Cost of decoding records of topics, and of encoding predictions, by format.

Narrow records have five fields, wide ones forty more, which are not read. The schemas come from a
server in this process and are known before the clock starts. What msgspec alone takes for the same
lines, without columns, keys and checks, is measured too.
"""

from __future__ import annotations

import io
import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import msgspec

from abers.stream import Prediction, Processor
from abers_connectors.config.model import load
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.transport import TopicPartition
from abers_connectors.schemas.outputs import output_encoder
from benchmarks.page import Key, Section, table
from benchmarks.scrape import OneRecord
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import TopicFormat
    from benchmarks.plan import Plan

NARROW, WIDE, WRITTEN = "narrow", "wide", "written"
FORMATS: dict[str, TopicFormat] = {
    "JSON": "json",
    "JSON Schema": "json-schema",
    "Avro": "avro",
    "Protobuf": "protobuf",
}
ALONE = "msgspec alone"
_RECORDS, _CALLS = 2_000, 10
_MORE = {f"f{n:02}": n / 7 for n in range(40)}
_KINDS = {"id": "string", "time": "long", "model": "string", "score": "double", "channel": "string"}
_PROTO = {"long": "int64"}
_HEAD = b"\0\0\0\0"


class _Line(msgspec.Struct, gc=False):
    """The fields of a record that are read."""

    id: str
    time: int
    model: str
    score: float


class _Nowhere:
    """A producer that sends nothing."""

    def send(self, *_: object) -> None:
        """Do nothing."""


def record_formats(plan: Plan) -> Section:
    """Measure decoding and encoding, an event."""
    title = "Record formats"
    try:
        from abers_connectors.schemas import avro, protobuf  # noqa: PLC0415 - extras
    except ImportError:
        return Section(title, "Not measured: fastavro or grpcio-tools is not installed.", {})
    del avro, protobuf
    values = dict[Key, Spread]()
    with _registry() as url:
        for what, more in ((NARROW, {}), (WIDE, _MORE)):
            loops = {name: _decoding(url, form, more) for name, form in FORMATS.items()}
            found = in_turns(plan.rounds, loops | {ALONE: _decoding_alone(more)})
            values |= {(what, name, 0): spread for name, spread in found.items()}
    loops = {name: _encoding(form) for name, form in FORMATS.items()}
    found = in_turns(plan.rounds, loops | {ALONE: _encoding_alone()})
    values |= {(WRITTEN, name, 0): spread for name, spread in found.items()}
    columns = (NARROW, WIDE, WRITTEN)
    rows = [[name, *(_cell(values, what, name) for what in columns)] for name in (*FORMATS, ALONE)]
    body = (
        f"`Deserializer.decode` of {_RECORDS} observations from bytes to columns, µs of processor"
        " time a record, in batches as a service reads them: of five fields, and of forty more."
        " Then predictions to records that are handed to a producer, µs each. A round is the"
        f" fastest of {_CALLS} calls. The last row is `decode_lines` and `encode_lines` of msgspec"
        " on the same lines; in brackets, times as long as this.\n\n"
        + table(["format", "5 fields", "45 fields", "a prediction"], rows)
    )
    return Section(title, body, values)


def _cell(values: dict[Key, Spread], what: str, name: str) -> str:
    one = values[what, name, 0]
    return f"{one} [{one.median / values[what, ALONE, 0].median:.1f}]"


def _each(call: Callable[[], object]) -> Callable[[], float]:
    """Return a function that measures the fastest of some calls, µs a record.

    Other programs take the caches from a call; none makes it faster.
    """
    return lambda: 1e6 * min(cpu_seconds(call) for _ in range(_CALLS)) / _RECORDS


def _config(url: str, form: TopicFormat) -> Config:
    flags = {
        "kafka.bootstrap_servers": "localhost:9092",
        "kafka.observations": "scores",
        "kafka.predictions": "predictions",
        "input.format": form,
    }
    if form != "json":
        flags["schema_registry.url"] = url
    return load(flags=flags, environ={})


def _records(form: TopicFormat, more: dict[str, float]) -> list[OneRecord]:
    events = [
        {"id": f"observation-{n:08}", "time": 1_700_000_000_000 + n, "model": "fraud"}
        | {"score": n / _RECORDS, "channel": "web", **more}
        for n in range(_RECORDS)
    ]
    return [OneRecord(raw, n) for n, raw in enumerate(_written(form, events))]


def _decoding(url: str, form: TopicFormat, more: dict[str, float]) -> Callable[[], float]:
    deserializer = Deserializer(_config(url, form), partitions=1, environ={})
    records, inputs = _records(form, more), [0] * _RECORDS
    deserializer.prepare(records, inputs)
    assert not deserializer.decode(records, inputs).dead  # noqa: S101 - all are right
    return _each(partial(deserializer.decode, records, inputs))


def _decoding_alone(more: dict[str, float]) -> Callable[[], float]:
    text = b"\n".join(one.value for one in _records("json", more))
    return _each(partial(msgspec.json.Decoder(_Line).decode_lines, text))


def _written(form: TopicFormat, events: Sequence[dict[str, Any]]) -> list[bytes]:
    """Return events as the clients of a format write them."""
    wide = len(events[0]) > len(_KINDS)
    number = 2 * list(FORMATS.values()).index(form) + wide
    head = _HEAD + bytes([number])
    if form == "json":
        return [json.dumps(one).encode() for one in events]
    if form == "json-schema":
        return [head + json.dumps(one).encode() for one in events]
    if form == "protobuf":
        from abers_connectors.schemas.protobuf import ProtoFile  # noqa: PLC0415 - an extra

        message = ProtoFile(_proto(wide=wide), {}).message_type([0])
        return [head + b"\0" + message(**one).SerializeToString() for one in events]
    from fastavro import parse_schema, schemaless_writer  # noqa: PLC0415 - an extra

    schema, found = parse_schema(json.loads(_avro(wide=wide))), []
    for one in events:
        body = io.BytesIO()
        schemaless_writer(body, schema, one)
        found.append(head + body.getvalue())
    return found


def _kinds(*, wide: bool) -> dict[str, str]:
    return {**_KINDS, **(dict.fromkeys(_MORE, "double") if wide else {})}


def _avro(*, wide: bool) -> str:
    fields = [{"name": name, "type": kind} for name, kind in _kinds(wide=wide).items()]
    return json.dumps({"type": "record", "name": "Event", "fields": fields})


def _proto(*, wide: bool) -> str:
    lines = [
        f"{_PROTO.get(kind, kind)} {name} = {number};"
        for number, (name, kind) in enumerate(_kinds(wide=wide).items(), 1)
    ]
    return f'syntax = "proto3"; message Event {{ {" ".join(lines)} }}'


def _encoding(form: TopicFormat) -> Callable[[], float]:
    """Return a measurement of outputs that become records, which a producer gets."""
    config, records = _config("", "json"), _records("json", {})
    decoded = Deserializer(config, partitions=1, environ={}).decode(records, [0] * _RECORDS)
    outputs = Processor(config.settings()).process_batch(decoded.events)
    encoders = {} if form == "json" else {"predictions": output_encoder(form, Prediction, 1)}
    serializer = Serializer(max_bytes=1 << 20, encoders=encoders)
    producer: Any = _Nowhere()
    to = TopicPartition("predictions", 0)

    def written() -> None:
        for found in serializer.serialize(outputs, decoded, records).values():
            found.send(producer, to)

    return _each(written)


def _encoding_alone() -> Callable[[], float]:
    rows = [
        Prediction(f"observation-{n:08}", 1_700_000_000_000, "fraud", n / 2000, 0.0, 1.0, 0.5, n)
        for n in range(_RECORDS)
    ]
    return _each(partial(msgspec.json.Encoder().encode_lines, rows))


class _Schemas(BaseHTTPRequestHandler):
    """Answers with the schema of an id."""

    def do_GET(self) -> None:
        """Answer one question."""
        form, wide = divmod(int(self.path.rpartition("/")[2]), 2)
        kind, text = [
            ("JSON", '{"type": "object"}'),
            ("JSON", '{"type": "object"}'),
            ("AVRO", _avro(wide=bool(wide))),
            ("PROTOBUF", _proto(wide=bool(wide))),
        ][form]
        body = json.dumps({"schema": text, "schemaType": kind}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@contextmanager
def _registry() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Schemas) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
