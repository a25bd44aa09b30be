"""The schemas of outputs, from one description, and how they may grow."""

from __future__ import annotations

import json

import msgspec

from abers.stream import Outcome, Prediction
from abers.stream.events import MultiClassPrediction, RegressionPrediction
from abers_connectors.schemas.outputs import (
    OutputField,
    avro_schema,
    json_schema,
    output_fields,
    proto_file,
)


def test_the_fields_of_a_prediction() -> None:
    """Each field of the type, in its order, behind the version of the schema."""
    assert output_fields(Prediction) == [
        OutputField("v", "long"),
        OutputField("id", "string"),
        OutputField("time", "long"),
        OutputField("model", "string"),
        OutputField("score", "double"),
        OutputField("p0", "double"),
        OutputField("p1", "double"),
        OutputField("p", "double"),
        OutputField("n_labels", "long"),
        OutputField("segment", "string", required=False, default=""),
        OutputField("extra", "json", required=False),
    ]
    kinds = {one.name: one.kind for one in output_fields(RegressionPrediction)}
    assert (kinds["quantiles"], kinds["mean"], kinds["cdf"]) == ("numbers", "double", "json")
    assert {one.kind for one in output_fields(Outcome)} >= {"boolean"}


def test_avro() -> None:
    """What need not be there has its default, and what may be missing is a union with null."""
    assert avro_schema("Prediction", output_fields(Prediction))["fields"][8:] == [
        {"name": "n_labels", "type": "long"},
        {"name": "segment", "type": "string", "default": ""},
        {"name": "extra", "type": ["null", "string"], "default": None},
    ]
    found = avro_schema("MultiClassPrediction", output_fields(MultiClassPrediction))
    assert found["fields"][5] == {"name": "p", "type": {"type": "map", "values": "double"}}
    assert (found["name"], found["namespace"]) == ("MultiClassPrediction", "abers")


def test_protobuf() -> None:
    """The numbers of the fields are what readers know them by: they must never change."""
    assert proto_file("Prediction", output_fields(Prediction)) == (
        'syntax = "proto3";\npackage abers;\n\nmessage Prediction {\n'
        "  int64 v = 1;\n  string id = 2;\n  int64 time = 3;\n  string model = 4;\n"
        "  double score = 5;\n  double p0 = 6;\n  double p1 = 7;\n  double p = 8;\n"
        "  int64 n_labels = 9;\n  string segment = 10;\n  optional string extra = 11;\n}\n"
    )
    found = proto_file("RegressionPrediction", output_fields(RegressionPrediction))
    assert "  map<string, double> quantiles = 6;\n" in found
    assert "  optional double mean = 12;\n" in found


def test_json_schema() -> None:
    """Fields with a default are not required, and infinite numbers are null."""
    found = json_schema("Prediction", output_fields(Prediction))
    assert found["required"][-1] == "n_labels"
    assert found["properties"]["p0"] == {"type": ["number", "null"]}
    assert found["properties"]["extra"] == {"type": "object"}
    assert json.loads(msgspec.json.encode(found)) == found
