"""What is no event, however it comes: as a line of a file, or as a record of a topic."""

from __future__ import annotations

__all__ = ["POISON"]

POISON = [
    (b'{"id": "b"', "bad-json", "truncated; write one JSON object a "),
    (b'{"id": NaN}', "bad-json", "JSON has no NaN"),
    (b"{nope}", "bad-json", "malformed"),
    (b'{"a":' * 5000, "bad-json", "write one JSON object a "),
    (b"\0\0\0", "bad-json", "write one JSON object a "),
    (b"[0.5, 1]", "bad-record", "it is a JSON array; write one JSON object a "),
    (b"0.5", "bad-record", "got `float`"),
    (b'{"id": "b", "time": 5, "score": 1e999}', "bad-record", "out of range"),
    (b'{"id": "b", "time": 5}', "missing-field", 'no "score"'),
    (b'{"time": 5, "score": 1}', "missing-field", 'no "id"'),
    (b'{"id": "b", "time": 5, "score": "x"}', "bad-score", "'x' is not a finite number"),
    (b'{"id": "b", "time": "noon", "score": 1}', "bad-time", "'noon' is not a time"),
    (b'{"id": [1], "time": 5, "score": 1}', "bad-id", "[1]"),
    (b'{"id": "b\xff", "time": 5, "score": 1}', "not-utf8", "byte 0xff at position 10 is not"),
    (b"\xff\xfe", "not-utf8", "byte 0xff at position 1 is not UTF-8; write it as UTF-8"),
    (b"\0\0\0\0\x11\xff\x01ab", "schema-registry", "schema 17"),
]
"""The bytes, the reason that they are refused for, and a part of the sentence that says so."""
