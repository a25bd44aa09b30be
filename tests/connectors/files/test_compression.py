"""Complete gzip members and zstd frames are written, and read in sequence."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from abers import MissingExtraError
from abers_connectors.extras import extra
from abers_connectors.files import CHUNK, DamagedError, chunks, packer

COMPRESSIONS = ["gzip", "zstd"]


@given(st.lists(st.binary(max_size=50)), st.sampled_from([None, *COMPRESSIONS]))
def test_round_trip(parts: list[bytes], compression: str | None) -> None:
    """Several members, even empty ones, are read as one stream."""
    pack = packer(compression)
    file = io.BytesIO(b"".join(map(pack, parts)))
    assert b"".join(chunks(file, compression)) == b"".join(parts)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_pieces_stay_small(compression: str) -> None:
    """Data that expands a thousandfold is read in pieces too."""
    data = packer(compression)(b"x" * (64 << 20))
    sizes = [len(chunk) for chunk in chunks(io.BytesIO(data), compression)]
    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 2 * CHUNK


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(data=st.binary(min_size=1, max_size=300), cut=st.integers(1, 20), noise=st.binary())
def test_truncated_data_is_damaged(compression: str, data: bytes, cut: int, noise: bytes) -> None:
    """An end within a member is an error after the readable data, and noise may be one."""
    packed = packer(compression)(data)
    before = packer(compression)(b"before")
    kept = packed[: max(1, len(packed) - cut)]
    found: list[bytes] = []
    with pytest.raises(DamagedError, match=r"cut off or damaged"):
        found.extend(chunks(io.BytesIO(before + kept), compression))
    assert (b"before" + data).startswith(b"".join(found))
    assert b"".join(found).startswith(b"before")
    with contextlib.suppress(DamagedError):
        list(chunks(io.BytesIO(noise), compression))


def test_members_of_others_are_read() -> None:
    """Data of other tools is read, of any level and with any header."""
    packed = gzip.compress(b"one ", 1) + gzip.compress(b"two", 9)
    assert b"".join(chunks(io.BytesIO(packed), "gzip")) == b"one two"
    stream = zstandard.ZstdCompressor(level=19, write_checksum=True).compressobj()
    packed = stream.compress(b"one ") + stream.flush() + zstandard.compress(b"two")
    assert b"".join(chunks(io.BytesIO(packed), "zstd")) == b"one two"


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"zstd needs zstandard, .*: pip install 'abers\[f"):
        packer("zstd")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"Parquet needs pyarrow, which is not installed"):
        extra("pyarrow.parquet", "Parquet")
