"""The sections of a configuration that are not settings of the processor, and their defaults.

An option is declared here alone: deploy/abers.example.toml and the documentation are written from
these declarations. Secrets are not keys: they come from the environment or from files that keys
name, so a configuration can be shown to anybody.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from abers.stream.option import ValueKind
from abers_connectors.config.kafka_sections import (
    PASSWORD_MECHANISMS,
    TOKEN_MECHANISMS,
    KafkaSection,
    OffsetGapPolicy,
    SchemaRegistrySection,
    SecuritySection,
    default_client,
)
from abers_connectors.config.values import (
    DROP,
    CollectorUrl,
    Count,
    Delay,
    Features,
    File,
    LabelValue,
    LabelValues,
    Name,
    Names,
    Port,
    Score,
    Section,
    TimeZone,
    Url,
    key,
)
from abers_connectors.files import STANDARD

__all__ = [
    "OF_OBSERVATION",
    "PASSWORD_MECHANISMS",
    "TOKEN_MECHANISMS",
    "AlertsSection",
    "FileFormat",
    "HttpSection",
    "InputFieldsSection",
    "InputSection",
    "KafkaSection",
    "LabelFieldsSection",
    "OffsetGapPolicy",
    "OutputSection",
    "SchemaRegistrySection",
    "SecuritySection",
    "ServeSection",
    "StateSection",
    "TelemetrySection",
    "TopicFormat",
    "dead_letters_beside",
    "default_client",
]

OF_OBSERVATION = "record:observation"
"""The path of the model of a label that has that of the observation with its id."""

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
TopicFormat: TypeAlias = Literal["json", "avro", "protobuf", "json-schema"]
"""Format of records in topics; the schemas of all but the first are in a schema registry."""


class InputFieldsSection(Section, frozen=True, kw_only=True):
    """Section [input.fields]: the fields of a record."""

    intro: ClassVar[str] = (
        "Names of the fields: a name, a dotted path into nested records such as "
        '"payload.txn_id", or a constant such as "const:fraud". In files, "row" is the number of'
        ' the record, for id and time. In topics, "record:key", "record:timestamp" and '
        '"record:header:NAME" are the metadata of a Kafka record.'
    )

    id: Annotated[
        Name,
        key(
            "The id by which a label refers to its observation.",
            flag="--id",
            metavar="COLUMN",
            group="Input",
        ),
    ] = "id"
    time: Annotated[
        Name,
        key(
            "Event time: integer milliseconds since 1970, or RFC 3339 with an offset (see "
            "`input.timezone`).",
            flag="--time",
            metavar="COLUMN",
            group="Input",
        ),
    ] = "time"
    model: Annotated[
        Name,
        key(
            "The model, which has its own calibrator.",
            'A record without this field belongs to the model "default".',
            flag="--model-column",
            metavar="COLUMN",
            group="Input",
        ),
    ] = "model"
    segment: Annotated[
        Name | None,
        key(
            "A part of a model with a calibrator of its own.",
            "Default: one segment.",
            example="country",
            flag="--segment-column",
            metavar="COLUMN",
            group="Input",
        ),
    ] = None
    score: Annotated[
        Score,
        key(
            "The score to calibrate.",
            "With several classes it is a nested record with a number by class, or each has a "
            'field of its own: score = { cat = "p_cat", dog = "p_dog" }.',
            flag="--score",
            metavar="COLUMN",
            group="Input",
        ),
    ] = "score"
    x: Annotated[
        Features | None,
        key(
            'The features, as one nested record or as a list of fields; by default "x" if there '
            "is a learner.",
            example=["amount", "age"],
        ),
    ] = None
    label: Annotated[Name, key("The label.", flag="--label", metavar="COLUMN", group="Input")] = (
        "label"
    )
    label_time: Annotated[
        Name | None,
        key(
            "Event time at which the label becomes known, in files where each record contains "
            "its own label.",
            example="settled_at",
            flag="--label-time",
            metavar="COLUMN",
            group="Input",
        ),
    ] = None
    passthrough: Annotated[Names, key("Fields that are copied to the predictions.")] = ()


class LabelFieldsSection(Section, frozen=True, kw_only=True):
    """Section [input.label_fields]: the fields of the second input, where they differ."""

    intro: ClassVar[str] = "The fields of the second input, where they differ."

    id: Annotated[
        Name | None,
        key(
            "The id of a label in the second input. Default: that of `input.fields`.",
            example="txn_id",
        ),
    ] = None
    time: Annotated[
        Name | None,
        key(
            "The event time of a label in the second input. Default: that of `input.fields`.",
            example="settled_at",
        ),
    ] = None
    model: Annotated[
        Name | None,
        key(
            "The model of a label in the second input. Default: that of `input.fields`.",
            'With kafka.route_by, "record:observation" is that of the observation with the id.',
            example="model_name",
        ),
    ] = None
    label: Annotated[
        Name | None,
        key("The label in the second input. Default: that of `input.fields`.", example="outcome"),
    ] = None


class InputSection(Section, frozen=True, kw_only=True):
    """Section [input]: the observations and the labels."""

    observations: Annotated[
        File | None,
        key(
            'The file of observations, or "-" for standard input.',
            "Unless `labels`, `delay` or `fields.label_time` is set, it contains observations "
            "(with a score or features) and labels, mixed in order of arrival.",
            example="-",
        ),
    ] = None
    labels: Annotated[
        File | None,
        key(
            "A second file, of labels.",
            "The two are merged by event time, and joined by id.",
            example="labels.csv",
            flag="--labels",
            metavar="FILE",
            group="Input",
        ),
    ] = None
    format: Annotated[
        Literal[FileFormat, TopicFormat] | None,
        key(
            "Format of the records.",
            '"csv", "jsonl" or "parquet", for "-" and for names that do not end in .csv, '
            ".jsonl, .ndjson or "
            '.parquet (all but the last optionally with .gz or .zst). In topics "json", "avro", '
            '"protobuf" or "json-schema": the last three are in the wire format of a schema '
            "registry, "
            'see [schema_registry]. Default in topics: "json".',
            example="jsonl",
        ),
    ] = None
    label_format: Annotated[
        TopicFormat | None,
        key(
            "The format of kafka.labels, if it is another.",
            "Default: that of the observations.",
            example="json",
        ),
    ] = None
    delay: Annotated[
        Delay | None,
        key(
            "How much later the label of a record is released, if each record has its own.",
            "It is a number of further observations of its model, or a duration. If the "
            "records have "
            "the times of their labels, set `input.fields.label_time` instead.",
            example=50,
            flag="--delay",
            metavar="DELAY",
            group="Time",
        ),
    ] = None
    pos_label: Annotated[
        LabelValues,
        key(
            "Values that mean label 1; all others mean 0.",
            "If empty, labels are 0 and 1, or false and true.",
            flag="--positive",
            metavar="LABEL",
            group="Input",
        ),
    ] = ()
    unlabelled: Annotated[
        LabelValue,
        key(
            "What happens to an observation without a label within `limits.label_timeout`.",
            'It is "drop", or a label, for labels that are never sent; '
            "`limits.label_timeout` must "
            "then be set. The label is learned once, at the time of the observation plus "
            "`limits.label_timeout`; a label that comes later is not learned, and its "
            "outcome is marked "
            "late.",
        ),
    ] = DROP
    timezone: Annotated[
        TimeZone | None,
        key(
            'Time zone of times without an offset, such as "2013-04-01 05:00:00".',
            "Without one they are bad records.",
            example="Europe/Berlin",
            flag="--timezone",
            metavar="ZONE",
            group="Input",
        ),
    ] = None
    delimiter: Annotated[
        Literal[",", ";", "\t", "|"] | None,
        key(
            "What separates the fields of a CSV file.",
            'Write ",", ";", "|" or "\\t". Default: the one of them that the first line has, and '
            "what the name of the file says if there are several.",
            example=";",
            flag="--delimiter",
            metavar="CHARACTER",
            group="Input",
        ),
    ] = None
    decimal: Annotated[
        Literal[".", ","],
        key(
            'What precedes the decimals of numbers in CSV, "." or ",".',
            flag="--decimal",
            metavar="CHARACTER",
            group="Input",
        ),
    ] = "."
    percent: Annotated[
        bool,
        key(
            "Whether scores are percentages, which are divided by 100 as they are read.",
            'They may end in "%".',
        ),
    ] = False
    max_record_bytes: Annotated[
        Count,
        key(
            "Maximum bytes of a record; a longer one is a bad record.",
            "For a row of Parquet, only the columns that are read count.",
        ),
    ] = 1 << 20
    fields: InputFieldsSection = InputFieldsSection()
    label_fields: LabelFieldsSection = LabelFieldsSection()


class OutputSection(Section, frozen=True, kw_only=True):
    """Section [output]: predictions, outcomes and dead letters."""

    intro: ClassVar[str] = (
        "With [kafka] there are no files, and only `output.format`, `output.on_bad_record` and "
        "`output.max_dead_letter_ratio` apply."
    )

    predictions: Annotated[
        File,
        key(
            "File of the predictions, with a line or row for each observation.",
            "Its name ends in .csv or .jsonl (optionally with .gz or .zst) or in .parquet, "
            "or it is "
            '"-" for standard output, as JSON Lines.',
            flag="--output",
            metavar="FILE",
            group="Output",
        ),
    ] = "-"
    outcomes: Annotated[
        File | None,
        key(
            "File of the outcomes, with a line or row for each label and its prediction.",
            "Default: not written.",
            example="outcomes.jsonl",
        ),
    ] = None
    dead_letters: Annotated[
        File | None,
        key(
            "File of the records that cannot be used, with the reason.",
            "Default: the name of the predictions with the suffix .dead.jsonl, or "
            "abers.dead.jsonl if "
            "those go to standard output.",
            example="abers.dead.jsonl",
        ),
    ] = None
    format: Annotated[
        TopicFormat | None,
        key(
            'Format of predictions and outcomes in topics: "json", "avro", "protobuf" or "json-'
            'schema".',
            'Dead letters and alarms are always JSON. Default: "json".',
            example="json",
        ),
    ] = None
    on_bad_record: Annotated[
        Literal["dead-letter", "stop"],
        key(
            'What happens with a record that cannot be used: "dead-letter" writes it there and '
            'continues, "stop" ends the run.'
        ),
    ] = "dead-letter"
    max_dead_letter_ratio: Annotated[
        Annotated[float, ValueKind(least=0.0, most=1.0)],
        key(
            "A run over files, and a replay, ends if the ratio of dead letters to records is "
            "larger, after the first 1,000 records; and at the end if nothing was predicted.",
            "A service on topics goes on: it ends only if it never decoded a record, and 1,000 "
            "failed.",
        ),
    ] = 0.1

    @property
    def dead_letters_path(self) -> str:
        """File of the dead letters, by default next to the predictions."""
        return self.dead_letters or dead_letters_beside(self.predictions)


class StateSection(Section, frozen=True, kw_only=True):
    """Section [state]: the saved state from which a stopped run continues."""

    path: Annotated[
        File | None,
        key(
            "The file from which a stopped run continues.",
            "Default: no state is saved. One run at a time uses it. A last line of the input "
            "without an end is left for the next run. Inputs and outputs that are not those of "
            "the state end the run with exit code 78, and so do outputs without it. With [kafka]"
            ' it is a folder or URL (such as "s3://bucket/abers") of snapshots, which make a '
            "start fast; without it the whole changelog is read.",
            example="abers.state",
        ),
    ] = None
    snapshot_every: Annotated[Count, key("Number of records between two snapshots.")] = 100_000
    shared: Annotated[
        bool,
        key(
            "With [kafka]: whether all processes of the application, on any machine, share "
            "these snapshots.",
            "Only then is the changelog trimmed to what the retained snapshots need.",
        ),
    ] = False
    retain: Annotated[
        Count, key("With [kafka]: number of snapshots that are retained for each partition.")
    ] = 3
    key_file: Annotated[
        File | None,
        key(
            "File with the secret key that seals the state.",
            "Default: ABERS_STATE_KEY in the environment; without both the state is not sealed.",
            example="/run/secrets/state_key",
        ),
    ] = None


class HttpSection(Section, frozen=True, kw_only=True):
    """Section [http]: the server of health, metrics and the live page."""

    intro: ClassVar[str] = (
        "With [kafka]: /livez, /readyz and /metrics, for supervisors and Prometheus, and the "
        "live page at /, which shows whether predictions are still calibrated."
    )

    enabled: Annotated[
        bool, key("Whether the server of health, metrics and the live page runs.")
    ] = True
    host: Annotated[
        Name,
        key(
            'Address to listen on: "127.0.0.1" is this machine only, "0.0.0.0" everybody.',
            "Only the live page requires a token, and only if ABERS_HTTP_TOKEN in the "
            'environment is set: letters and digits and -._~+/, with "=" only at the end.',
            flag="--host",
            metavar="ADDRESS",
            group="Server",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        Port,
        key(
            "The port; 0 is any free one, which the log shows.",
            flag="--port",
            metavar="N",
            group="Server",
        ),
    ] = 8090
    hosts: Annotated[
        Names,
        key("Names under which clients and browsers ask, besides addresses and localhost."),
    ] = ()
    check_host: Annotated[
        bool,
        key(
            "Whether /metrics also answers only under these names, so that no web site can read "
            "it by resolving its own name to this machine.",
            "Prometheus must then use one of them.",
        ),
    ] = False
    certfile: Annotated[
        File | None,
        key(
            "PEM file with the certificate of this server, and those between it and its authority.",
            "Default: no TLS. A certificate that is renewed is read at the next start.",
            example="/etc/abers/tls/tls.crt",
        ),
    ] = None
    keyfile: Annotated[
        File | None,
        key(
            "PEM file with the key of this certificate, if that is in a file of its own.",
            example="/etc/abers/tls/tls.key",
        ),
    ] = None
    token_file: Annotated[
        File | None,
        key(
            "File with the token of the live page.",
            "Default: ABERS_HTTP_TOKEN in the environment; without both the page needs no token.",
            example="/run/secrets/token",
        ),
    ] = None
    max_models: Annotated[
        Count,
        key(
            "Number of models with metrics of their own.",
            'All others share those of the model "other", and the ten with the strongest '
            "evidence have theirs. /live/models lists all.",
        ),
    ] = 100


class ServeSection(Section, frozen=True, kw_only=True):
    """Section [serve]: the server of `abers serve`."""

    intro: ClassVar[str] = "For `abers serve`, which needs neither files nor topics."

    data: Annotated[
        File,
        key(
            "Folder of the state, which is created if it is not there.",
            "What is answered is on disk. One server at a time uses it.",
            flag="--data",
            metavar="FOLDER",
            group="Server",
        ),
    ] = "abers-state"
    learner: Annotated[
        File | None,
        key(
            "File with a learner of scikit-learn that skops saved, for two classes.",
            "It scores the features x of all models and learns their labels; only new states use "
            "the file. Default: scores come with the rows, or are those of [learner].",
            example="learner.skops",
        ),
    ] = None


class TelemetrySection(Section, frozen=True, kw_only=True):
    """Section [telemetry]: the collector of OpenTelemetry that gets metrics and traces."""

    intro: ClassVar[str] = "Only with [kafka]; needs the extra otel."

    endpoint: Annotated[
        CollectorUrl | None,
        key(
            "URL of a collector of OpenTelemetry, which gets metrics and traces by OTLP over HTTP.",
            "Default: none. Headers, which may be secret, come from OTEL_EXPORTER_OTLP_HEADERS "
            "in the environment.",
            example="http://localhost:4318",
        ),
    ] = None


class AlertsSection(Section, frozen=True, kw_only=True):
    """Section [alerts]: receivers of alarms besides the topic of alarms."""

    webhook: Annotated[
        Url | None,
        key(
            "URL to which alarms are posted as JSON, once each; it begins with https://, or with"
            " http:// on this machine.",
            "Default: none. If it is a secret, set it in the environment, as "
            "ABERS_ALERTS__WEBHOOK; only its host is ever shown.",
            example="https://example.com/alarms",
        ),
    ] = None

    def __repr__(self) -> str:
        """Leave out the address, which may be a secret."""
        return "AlertsSection(webhook=…)" if self.webhook else "AlertsSection()"


def dead_letters_beside(predictions: str) -> str:
    """Return the default file of dead letters for a file of predictions.

    >>> dead_letters_beside("out/scores.jsonl.gz"), dead_letters_beside("-")
    ('out/scores.jsonl.gz.dead.jsonl', 'abers.dead.jsonl')
    """
    return f"{'abers' if predictions == STANDARD else predictions}.dead.jsonl"
