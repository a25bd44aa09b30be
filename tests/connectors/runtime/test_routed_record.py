"""Routed records are seen as those of the inputs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import Read

from abers_connectors.runtime.application import ORIGIN, RoutedOrigin, RoutedRecord, origins
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.transport import BadHeaders

TOPICS = ("seen", "labels")
ORIGINS = st.builds(
    RoutedOrigin,
    which=st.integers(0, 1),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    timestamp=st.integers(-1, 2**63 - 1),
    unread=st.booleans(),
    bad_headers=st.booleans(),
    whole=st.integers(0, 2**32 - 1),
)
HEADERS = st.lists(st.tuples(st.sampled_from(["trace", ORIGIN]), st.none() | st.binary()))


@given(ORIGINS, HEADERS, st.integers(0, 99))
def test_it_is_the_record_of_the_input(
    origin: RoutedOrigin, headers: list[tuple[str, bytes | None]], offset: int
) -> None:
    """Place, time and headers are those of the input, and the offset of the topic is kept."""
    routed = Read(b"v", offset, b"k", [*headers, (ORIGIN, origin.encoded())], 5, "routed", 3)
    found = origins(MergedRecords([routed], [0]), TOPICS)
    assert (found.inputs, found.read_at) == ([origin.which], [offset])
    (one,) = found.records
    assert isinstance(one, RoutedRecord)
    place = (one.topic, one.partition, one.offset, one.timestamp, one.key, one.value)
    expected = (TOPICS[origin.which], origin.partition, origin.offset, origin.timestamp, b"k", b"v")
    assert place == expected
    own = headers[:-1] if origin.looked_up else headers  # the last says what the router found
    assert one.headers == (() if origin.bad_headers else own)
    assert (type(one.headers) is BadHeaders) == origin.bad_headers
    assert (one.unread, one.whole) == (origin.unread, origin.whole)


@given(HEADERS.map(lambda some: [one for one in some if one[0] != ORIGIN or one[1] != b""]))
def test_a_record_of_somebody_else_stays_as_it_is(
    headers: list[tuple[str, bytes | None]],
) -> None:
    """Without an origin as its last header, a record is that of the routed topic."""
    record = Read(b"v", headers=[*headers, ("last", b"")])
    found = origins(MergedRecords([record], [0]), TOPICS)
    assert (found.records, found.inputs) == ([record], [0])
