"""The sections of the input: observations, labels, and the fields of their records."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from abers_connectors.config.section import Section, key
from abers_connectors.config.value_types import (
    DROP,
    Count,
    Delay,
    Features,
    File,
    LabelValue,
    LabelValues,
    Name,
    Names,
    Score,
    TimeZone,
)

__all__ = [
    "OF_OBSERVATION",
    "FileFormat",
    "InputFieldsSection",
    "InputSection",
    "LabelFieldsSection",
    "TopicFormat",
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
            "What becomes of an observation without a label within `limits.label_timeout`.",
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
