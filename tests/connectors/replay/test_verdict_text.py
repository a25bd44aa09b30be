"""Verdicts as JSON has them."""

from __future__ import annotations

import msgspec
from tests.engine.stream.test_verdicts import monitor_of, settings, stream

from abers.stream import Processor
from abers_connectors.replay.summary import loss_record, summarize, verdict_record


def test_records_have_the_numbers_of_the_sentences() -> None:
    """JSON has status, sizes and their range; a summary has the same."""
    processor = Processor(settings())
    processor.process_batch(stream(0.5, 600))
    raw, served = map(verdict_record, monitor_of(processor).verdicts)
    assert raw["ratio"]["value"] == raw["observed"] / raw["expected"]
    assert raw["difference"]["lower"] <= raw["difference"]["value"] <= raw["difference"]["upper"]
    saved = loss_record(monitor_of(processor).losses)
    assert saved is not None
    assert saved["labels"] == 600
    summary = summarize([processor], 1_200, {}, 1_200, 1.0)
    assert summary.verdicts == [raw, served]
    assert summary.calibration == saved
    assert msgspec.json.decode(msgspec.json.encode(summary))["verdicts"] == [raw, served]


def test_records_before_the_first_label_are_json() -> None:
    """What is not known yet is null."""
    processor = Processor(settings())
    processor.process_batch(stream(1.0, 600)[:1])
    (raw, _) = map(verdict_record, monitor_of(processor).verdicts)
    assert raw["ratio"] == {"value": None, "lower": None, "upper": None}
    assert raw["came"] is None
