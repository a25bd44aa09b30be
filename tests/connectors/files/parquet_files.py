"""Parquet files with wrong headers and footers, which no writer makes.

Written in Thrift's compact protocol by hand, since every writer refuses to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_ZSTD = 6
DATA, DICTIONARY = 0, 2
PLAIN, CODES, LENGTHS, PREFIXES = 0, 8, 6, 7
DOUBLE, TEXT, FIXED = 5, 6, 7


def varint(number: int) -> bytes:
    """Encode a whole number with seven bits a byte."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def zigzag(number: int) -> bytes:
    """Encode a signed number."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Encode a struct of fields: number, type and bytes of each."""
    out, last = b"", 0
    for number, kind, raw in fields:
        out += bytes([(number - last) << 4 | kind]) + raw
        last = number
    return out + b"\0"


def i32(number: int, value: int) -> tuple[int, int, bytes]:
    """Return a field."""
    return number, _I32, zigzag(value)


def i64(number: int, value: int) -> tuple[int, int, bytes]:
    """Return a field."""
    return number, _I64, zigzag(value)


def text(number: int, value: str) -> tuple[int, int, bytes]:
    """Return a field."""
    return number, _BINARY, varint(len(value)) + value.encode()


def of_list(number: int, kind: int, items: list[bytes]) -> tuple[int, int, bytes]:
    """Return a field."""
    return number, _LIST, bytes([0xF0 | kind]) + varint(len(items)) + b"".join(items)


class Page(NamedTuple):
    """A page: its bytes before compression, and its header."""

    kind: int
    raw: bytes
    values: int
    encoding: int = PLAIN
    size: int | None = None

    def written(self) -> bytes:
        """Encode header and bytes."""
        packed: bytes = pa.Codec("zstd").compress(self.raw, asbytes=True)
        about = [i32(1, self.values), i32(2, self.encoding)]
        if self.kind == DATA:
            about += [i32(3, 3), i32(4, 3)]
        size = len(self.raw) if self.size is None else self.size
        number = 5 if self.kind == DATA else 7
        return (
            struct(
                i32(1, self.kind),
                i32(2, size),
                i32(3, len(packed)),
                (number, _STRUCT, struct(*about)),
            )
            + packed
        )


def element(name: str, *, kind: int | None = None, **declared: int) -> bytes:
    """Encode an element of a schema: repetition, children, converted, length."""
    numbers = {"length": 2, "repetition": 3, "children": 5, "converted": 6}
    fields = [i32(numbers[key], value) for key, value in declared.items()]
    if kind is not None:
        fields.append(i32(1, kind))
    return struct(*sorted([*fields, text(4, name)]))


LIST = [
    element("schema", children=1),
    element("id", repetition=0, children=1, converted=3),
    element("list", repetition=2, children=1),
    element("element", kind=DOUBLE, repetition=0),
]


def flat(kind: int = TEXT, **declared: int) -> list[bytes]:
    """Return the schema of one required column, id."""
    return [element("schema", children=1), element("id", kind=kind, repetition=0, **declared)]


def write(
    path: Path, pages: list[Page], rows: int, schema: list[bytes] | None = None, kind: int = TEXT
) -> Path:
    """Write a file of one row group with one column of pages."""
    schema = schema or flat(converted=0)
    written = [page.written() for page in pages]
    values = sum(page.values for page in pages if page.kind == DATA)
    names = ["id", "list", "element"][: len(schema) - 1]
    about = [
        i32(1, kind),
        of_list(2, _I32, [zigzag(page.encoding) for page in pages]),
        of_list(3, _BINARY, [varint(len(name)) + name.encode() for name in names]),
        i32(4, _ZSTD),
        i64(5, values),
        i64(6, 1000),
        i64(7, sum(map(len, written))),
    ]
    if pages[0].kind == DICTIONARY:
        about += [i64(9, 4 + len(written[0])), i64(11, 4)]
    else:
        about += [i64(9, 4)]
    column = struct(i64(2, 0), (3, _STRUCT, struct(*about)))
    group = struct(of_list(1, _STRUCT, [column]), i64(2, 1000), i64(3, rows))
    return finish(path, schema, rows, [group], b"".join(written))


def finish(
    path: Path, schema: list[bytes], rows: int, groups: list[bytes], pages: bytes = b""
) -> Path:
    """Write a file of pages, and a footer with a schema and row groups."""
    footer = struct(
        i32(1, 2), of_list(2, _STRUCT, schema), i64(3, rows), of_list(4, _STRUCT, groups)
    )
    path.write_bytes(b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


def runs(count: int, value: int = 0) -> bytes:
    """Encode a repeated value of up to eight bits."""
    return varint(count << 1) + bytes([value])


def levels(*parts: bytes) -> bytes:
    """Encode levels, after their length."""
    raw = b"".join(parts)
    return len(raw).to_bytes(4, "little") + raw


def numbers(first: int, others: int, count: int, announced: int | None = None) -> bytes:
    """Encode one number, and `count` - 1 repetitions of another, as differences."""
    out = varint(128) + varint(4) + varint(announced or count) + zigzag(first)
    least = min(others - first, 0)
    for block in range(-(-(count - 1) // 128)):
        steps = [others - first - least, *[-least] * 127] if block == 0 else [0] * 128
        width = max(steps).bit_length()
        packed = sum(step << width * place for place, step in enumerate(steps))
        out += zigzag(least if block == 0 else 0) + bytes([width] * 4)
        out += packed.to_bytes(16 * width, "little")
    return out
