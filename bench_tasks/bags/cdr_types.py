"""CDR of any known message type, as a dict of its fields, driven by its definition.

Little-endian plain CDR (XCDR1): a 4-byte header, then the fields, each aligned to its own size
counted from behind the header; an empty sequence is its length alone, as Fast CDR writes it.
What is written is canonical: padding is zero and nothing trails. Reading raises ValueError on
bytes that are too short or otherwise not what the type says.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from bench_tasks.bags.interfaces import fields

__all__ = ["HEADER", "decode", "encode", "join_ns", "split_ns"]

HEADER = b"\x00\x01\x00\x00"
_FORMATS = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip


def split_ns(stamp_ns: int) -> dict[str, int]:
    """A stamp (ns) as the fields of builtin_interfaces/Time."""
    sec, nanosec = divmod(stamp_ns, 1_000_000_000)
    return {"sec": sec, "nanosec": nanosec}


def join_ns(stamp: dict[str, int]) -> int:
    """Inverse of `split_ns`."""
    return stamp["sec"] * 1_000_000_000 + stamp["nanosec"]


class _Writer:
    def __init__(self) -> None:
        self.body = bytearray()

    def align(self, size: int) -> None:
        self.body += bytes(-len(self.body) % size)

    def primitive(self, kind: str, value: Any) -> None:
        if kind == "string":
            text = value.encode() + b"\0"
            self.primitive("uint32", len(text))
            self.body += text
            return
        code = _FORMATS[kind]
        self.align(struct.calcsize(code))
        self.body += struct.pack("<" + code, value)

    def array(self, kind: str, values: Any) -> None:
        if len(values) == 0:
            return
        if kind not in _FORMATS:
            for value in values:
                self.field(kind, None, value)
            return
        dtype = np.dtype("<" + _FORMATS[kind])
        self.align(dtype.itemsize)
        if isinstance(values, bytes | bytearray | memoryview):
            self.body += values
        else:
            self.body += np.asarray(values, dtype=dtype).tobytes()

    def field(self, kind: str, size: int | None, value: Any) -> None:
        if size is None:
            if kind == "string" or kind in _FORMATS:
                self.primitive(kind, value)
            else:
                for name, sub, count in fields(kind):
                    self.field(sub, count, value[name])
            return
        if size == 0:
            self.primitive("uint32", len(value))
        elif len(value) != size:
            raise ValueError(f"{kind}[{size}] was given {len(value)} values")
        self.array(kind, value)


class _Reader:
    def __init__(self, data: bytes) -> None:
        if len(data) < 4 or data[0] != 0 or data[1] > 1:
            raise ValueError(f"not plain CDR: header {bytes(data[:4]).hex()}")
        self.order = "<" if data[1] else ">"
        self.data, self.pos = data, 4

    def take(self, size: int, count: int = 1) -> int:
        """Align to `size`, go past `count` such items, and return where they begin."""
        start = self.pos + (4 - self.pos) % size
        self.pos = start + size * count
        if self.pos > len(self.data):
            raise ValueError(f"message ends after {len(self.data)} bytes, {self.pos} are needed")
        return start

    def primitive(self, kind: str) -> Any:
        if kind == "string":
            length = self.primitive("uint32")
            start = self.take(1, length)
            return bytes(self.data[start : start + max(0, length - 1)]).decode()
        code = self.order + _FORMATS[kind]
        return struct.unpack_from(code, self.data, self.take(struct.calcsize(code)))[0]

    def array(self, kind: str, count: int) -> Any:
        if kind not in _FORMATS:
            return [self.field(kind, None) for _ in range(count)]
        dtype = np.dtype(self.order + _FORMATS[kind])
        if count == 0:
            return np.zeros(0, dtype)
        start = self.take(dtype.itemsize, count)
        if kind == "uint8":
            return bytes(self.data[start : self.pos])
        return np.frombuffer(self.data, dtype, count, start)

    def field(self, kind: str, size: int | None) -> Any:
        if size is not None:
            return self.array(kind, size or self.primitive("uint32"))
        if kind == "string" or kind in _FORMATS:
            return self.primitive(kind)
        return {name: self.field(sub, count) for name, sub, count in fields(kind)}


def encode(type_name: str, value: dict[str, Any]) -> bytes:
    """Canonical CDR of a message given as a dict of all its fields. ValueError on a wrong one."""
    writer = _Writer()
    try:
        writer.field(type_name, None, value)
    except (KeyError, TypeError, AttributeError, struct.error) as error:
        raise ValueError(f"{type_name}: {error!r}") from None
    return HEADER + bytes(writer.body)


def decode(type_name: str, data: bytes) -> dict[str, Any]:
    """Fields of a CDR message: nested dicts, numpy arrays, bytes for uint8[]."""
    return _Reader(data).field(type_name, None)
