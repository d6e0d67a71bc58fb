"""Reads MCAP files front to back, as far as they go: whole, cut off, or damaged in the middle.

Index-based readers refuse a file whose writer was killed; here every complete chunk counts. Only
what messages need is parsed (https://mcap.dev/spec), and only of the topics asked for, since
scoring reads two topics of many.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

__all__ = ["McapFile", "Message"]

MAGIC = b"\x89MCAP0\r\n"
MAX_CHUNK_BYTES = 1 << 30
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 3, 4, 5, 6, 15
_RECORD = struct.Struct("<BQ")
_MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQI")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: topic, full type name, log and publish time (ns), CDR bytes."""

    topic: str
    type_name: str
    log_ns: int
    publish_ns: int
    data: bytes


def _text(data: bytes, position: int) -> tuple[str, int]:
    length = struct.unpack_from("<I", data, position)[0]
    end = position + 4 + length
    if end > len(data):
        raise ValueError("a text reaches beyond its record")
    return data[position + 4 : end].decode(), end


def _decompress(name: str, data: bytes, size: int) -> bytes:
    if size > MAX_CHUNK_BYTES:
        raise ValueError(f"claims {size} bytes")
    if name == "":
        return data
    if name == "zstd":
        try:
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
    if name == "lz4":
        import lz4.frame

        try:
            return lz4.frame.decompress(data)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    raise ValueError(f"compression {name!r} is not known")


@dataclass
class McapFile:
    """One file. Iterate `messages`; afterwards `problems` tells what could not be read.

    `counts` then holds the number of messages by topic, of those not asked for too, and `indexed`
    whether the file is whole to its last byte, so that tools which need its index can read it.
    """

    path: Path
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    indexed: bool = False
    _schemas: dict[int, str] = field(default_factory=dict)
    _channels: dict[int, tuple[str, str]] = field(default_factory=dict)
    _wanted: set[int] = field(default_factory=set)

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Messages of the topics (None: all) in file order. OSError when it cannot be opened."""
        with open(self.path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if file.read(len(MAGIC)) != MAGIC:
                self.problems.append("it is empty" if size == 0 else "it is not an MCAP file")
                return
            while True:
                start = file.tell()
                head = file.read(_RECORD.size)
                if len(head) < _RECORD.size:
                    self._cut(start, "without its end record" if not head else "inside a record")
                    return
                opcode, length = _RECORD.unpack(head)
                if start + _RECORD.size + length > size:
                    self._cut(start, "inside a record")
                    return
                if opcode == _DATA_END:
                    file.seek(max(file.tell() + length, size - len(MAGIC)))
                    self.indexed = file.read() == MAGIC
                    return
                if opcode not in (_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK):
                    file.seek(length, 1)
                    continue
                try:
                    yield from self._top(opcode, file.read(length), topics)
                except (ValueError, struct.error, MemoryError, ImportError) as error:
                    self.problems.append(f"the record at byte {start} is damaged: {error}")

    def _cut(self, position: int, how: str) -> None:
        self.problems.append(f"the file ends {how} at byte {position}")

    def _top(
        self, opcode: int, body: bytes, topics: Collection[str] | None
    ) -> Iterator[Message]:
        if opcode != _CHUNK:
            yield from self._record(opcode, body, 0, len(body), topics)
            return
        _, _, size, checksum = _CHUNK_HEAD.unpack_from(body)
        name, position = _text(body, _CHUNK_HEAD.size)
        records = _decompress(name, body[position + 8 :], size)
        if checksum and zlib.crc32(records) != checksum:
            raise ValueError("its checksum is wrong")
        position = 0
        while position < len(records):
            opcode, length = _RECORD.unpack_from(records, position)
            start = position + _RECORD.size
            position = start + length
            if position > len(records):
                raise ValueError("a record reaches beyond its chunk")
            yield from self._record(opcode, records, start, position, topics)

    def _record(
        self, opcode: int, data: bytes, start: int, end: int, topics: Collection[str] | None
    ) -> Iterator[Message]:
        if opcode == _MESSAGE:
            channel, _, log_ns, publish_ns = _MESSAGE_HEAD.unpack_from(data, start)
            if channel not in self._channels:
                raise ValueError(f"message of unknown channel {channel}")
            topic, type_name = self._channels[channel]
            self.counts[topic] += 1
            if channel in self._wanted:
                payload = data[start + _MESSAGE_HEAD.size : end]
                yield Message(topic, type_name, log_ns, publish_ns, payload)
        elif opcode == _SCHEMA:
            name, _ = _text(data, start + 2)
            self._schemas[struct.unpack_from("<H", data, start)[0]] = name
        elif opcode == _CHANNEL:
            channel, schema = struct.unpack_from("<HH", data, start)
            topic, _ = _text(data, start + 4)
            self._channels[channel] = (topic, self._schemas.get(schema, ""))
            if topics is None or topic in topics:
                self._wanted.add(channel)
