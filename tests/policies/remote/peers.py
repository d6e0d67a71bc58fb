"""Policy servers written from the descriptions of their wires, not with our codec; good and bad."""

from __future__ import annotations

import contextlib
import io
import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import zmq
from websockets.protocol import State
from websockets.sync.server import ServerConnection, serve

DEADLINE_S = 0.3
"""Of clients whose server is slow; the others have SAFE_S, which no loaded machine exceeds."""
SAFE_S = 10.0


# -- the two ways of arrays ----------------------------------------------------------------------


def packed(value: Any) -> bytes:
    def array(a):
        return {b"__ndarray__": True, b"data": a.tobytes(), b"dtype": a.dtype.str,
                b"shape": list(a.shape)}  # fmt: skip

    return msgpack.packb(value, default=array)


def unpacked(data: bytes) -> Any:
    def hook(found):
        if b"__ndarray__" in found:
            return np.frombuffer(found[b"data"], found[b"dtype"]).reshape(found[b"shape"])
        return found

    return msgpack.unpackb(data, object_hook=hook)


def npy_packed(value: Any) -> bytes:
    def array(a):
        file = io.BytesIO()
        np.save(file, a)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}

    return msgpack.packb(value, default=array)


def npy_unpacked(data: bytes) -> Any:
    def hook(found):
        if "__ndarray_class__" in found:
            return np.load(io.BytesIO(found["as_npy"]), allow_pickle=False)
        return found

    return msgpack.unpackb(data, object_hook=hook)


# -- servers -------------------------------------------------------------------------------------


class OpenPIPeer:
    """Answers observations with `answer(observation, connection)`.

    bytes go out as they are, text as text, anything else packed; None says nothing. `greet` does
    the same for the metadata. `endpoints`: RoboArena's.
    """

    def __init__(
        self, answer: Callable, metadata: Any = None, endpoints: bool = False,
        before: Callable | None = None,
    ) -> None:
        self.answer, self.metadata, self.endpoints = answer, metadata or {}, endpoints
        self.before = before
        self.seen: list[dict] = []
        self.headers: list[Any] = []
        self.connections = 0
        self.open: list[ServerConnection] = []
        self.server = serve(
            self._serve, "127.0.0.1", 0, compression=None, max_size=None, close_timeout=0.02,
            process_request=self._request, logger=_silent(), open_timeout=1,
        )  # fmt: skip
        self.port = self.server.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def _request(self, connection: ServerConnection, request) -> Any:
        self.headers.append(request.headers)
        return self.before(connection, request) if self.before else None

    def _serve(self, connection: ServerConnection) -> None:
        self.connections += 1
        self.open = [c for c in self.open if c.state is State.OPEN] + [connection]
        with contextlib.suppress(Exception):
            metadata = self.metadata
            self._send(connection, metadata(connection) if callable(metadata) else metadata)
            while True:
                observation = unpacked(connection.recv())
                self.seen.append(observation)
                if self.endpoints and observation.get("endpoint") == "reset":
                    connection.send("reset successful")
                    continue
                self._send(connection, self.answer(observation, connection))

    @staticmethod
    def _send(connection: ServerConnection, value: Any) -> None:
        if value is not None:
            connection.send(value if isinstance(value, bytes | str) else packed(value))

    def __enter__(self) -> OpenPIPeer:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        self.server.shutdown()
        self.thread.join(5)


def _silent():
    import logging

    logger = logging.getLogger("peers")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger


class RawPeer:
    """A TCP server that does `act(socket)` with every connection; what it is no peer of."""

    def __init__(self, act: Callable) -> None:
        self.act, self.over = act, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            self.act(sock)

    def __enter__(self) -> RawPeer:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


class Gr00tPeer:
    """Answers get_action with `answer(observation, self)`: bytes as they are, None not at all."""

    def __init__(self, answer: Callable, modalities: Any = None) -> None:
        self.answer, self.modalities = answer, modalities or {}
        self.seen: list[dict] = []
        self.resets = 0
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        while not self.over.is_set():
            if not self.socket.poll(20):
                continue
            message = npy_unpacked(self.socket.recv())
            endpoint = message["endpoint"]
            if endpoint == "reset":
                self.resets += 1
                value: Any = {}
            elif endpoint == "get_modality_config":
                value = self.modalities
            else:
                self.seen.append({**message["data"]["observation"], "token":
                                  message.get("api_token", "")})  # fmt: skip
                value = self.answer(message["data"]["observation"], self)
            if value is None:  # a reply socket must answer: begin anew
                self.again()
                continue
            self.socket.send(value if isinstance(value, bytes) else npy_packed(value))

    def again(self) -> None:
        self.socket.close(0)
        self.socket = self.context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        for _ in range(100):
            try:
                self.socket.bind(f"tcp://127.0.0.1:{self.port}")
                return
            except zmq.ZMQError:
                time.sleep(0.02)

    def __enter__(self) -> Gr00tPeer:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        self.thread.join(5)
        self.context.destroy(0)


# -- good answers --------------------------------------------------------------------------------

ROWS = 10
STEP_RAD = 0.004


def good_values(command: np.ndarray) -> np.ndarray:
    """The chunk (10, 16) of a good server: joint 1 of the left arm turns slowly."""
    values = np.tile(np.asarray(command, np.float64), (ROWS, 1))
    values[:, 0] += STEP_RAD * np.arange(1, ROWS + 1)
    return values


def gr00t_answer(values: np.ndarray) -> list:
    """The same as GR00T says it, with a batch dimension and shares of the opening."""
    v = np.asarray(values, np.float64)[None]
    return [
        {"left_arm": v[..., 0:7], "left_hand": v[..., 7:8] / 0.08, "right_arm": v[..., 8:15],
         "right_hand": v[..., 15:16] / 0.08}, {},
    ]  # fmt: skip


# -- what goes wrong -----------------------------------------------------------------------------

_JOINTS = np.array(([1.0] * 7 + [0.0]) * 2)

BAD_VALUES: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "too narrow": (lambda v: v[:, :15], "must be"),
    "too wide": (lambda v: np.hstack([v, v[:, :1]]), "must be"),
    "one row without its dimension": (lambda v: v[0], "must be"),
    "a dimension too many": (lambda v: v[None, None], "must be"),
    "no rows": (lambda v: v[:0], "must be"),
    "rows without end": (lambda v: np.tile(v, (100, 1)), "must be"),
    "whole numbers": (lambda v: v.astype(np.int64), "float type"),
    "bytes": (lambda v: v.astype(np.uint8), "float type"),
    "flags": (lambda v: v > 0, "float type"),
    "a list": (lambda v: v.tolist(), "no array"),
    "a text": (lambda v: "go on", "no array"),
    "nothing": (lambda v: None, "no array"),
    "not a number": (lambda v: _with(v, (4, 3), np.nan), "not finite"),
    "infinite": (lambda v: _with(v, (9, 8), np.inf), "not finite"),
    "beyond a limit": (lambda v: _with(v, (9, 3), 0.5), "left joint 4"),
    "an enormous number": (lambda v: _with(v, (0, 1), 1e300), "left joint 2"),
    "a jump": (lambda v: _with(v, (5, 8), v[5, 8] + 0.3), "right joint 1"),
    "a jump at once": (lambda v: v + 0.2 * _JOINTS, "faster"),
    "degrees": (lambda v: np.hstack([np.degrees(v[:, :7]), v[:, 7:]]), "left joint"),
    "grippers in per cent": (lambda v: _with(v, (0, 7), 80.0), "left gripper"),
    "a negative gripper": (lambda v: _with(v, (0, 15), -0.04), "right gripper"),
}
"""What -> (the chunk made bad, words of the reason)."""


def _with(values: np.ndarray, at: tuple[int, int], to: float) -> np.ndarray:
    values = np.array(values)
    values[at] = to
    return values


class Evil:
    """Pickled, it would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('pickle was loaded')",))


BAD_BYTES: dict[str, tuple[Callable[[], bytes | str], str]] = {
    "noise": (lambda: np.random.default_rng(3).bytes(500), "not msgpack|no dict"),
    "an empty message": (lambda: b"", "not msgpack"),
    "half a message": (lambda: packed({"actions": np.zeros((10, 16))})[:200], "not msgpack"),
    "a number": (lambda: packed(7), "is no (array or )?dict"),
    "no actions": (lambda: packed({"server_timing": {}}), "no array"),
    "a pickle": (lambda: pickle.dumps({"actions": Evil()}), "pickled data, which is never read"),
    "a pickle in an array": (
        lambda: msgpack.packb({"actions": {b"__ndarray__": True, b"data": pickle.dumps(Evil()),
                                           b"dtype": "|O", b"shape": [1]}}), "dtype '|O'",
    ),
    "a dtype that is code": (
        lambda: msgpack.packb({"actions": {b"__ndarray__": True, b"data": b"", b"shape": [0],
                                           b"dtype": "V8,(2)O"}}), "not of numbers",
    ),
    "an array that lies": (
        lambda: msgpack.packb({"actions": {b"__ndarray__": True, b"data": b"1234",
                                           b"dtype": "<f8", b"shape": [10**6, 16]}}), "4 bytes",
    ),
    "a negative shape": (
        lambda: msgpack.packb({"actions": {b"__ndarray__": True, b"data": b"",
                                           b"dtype": "<f8", b"shape": [-1, 16]}}), "shape",
    ),
    "a .npy file of objects": (
        lambda: msgpack.packb({"actions": {"__ndarray_class__": True, "as_npy": _object_npy()}}),
        "not of numbers",
    ),
    "nesting without end": (lambda: b"\x91" * 100_000 + b"\x01", "not msgpack"),
    "an extension": (lambda: msgpack.packb({"actions": msgpack.ExtType(5, b"x" * 9)}), "msgpack"),
    "a million empty dicts": (
        lambda: b"\xdc\x00\x64" + (b"\xdc\x27\x10" + b"\x80" * 10_000) * 100, "lists and dicts",
    ),
    "a million empty lists": (
        lambda: b"\xdc\x00\x64" + (b"\xdc\x27\x10" + b"\x90" * 10_000) * 100, "lists and dicts",
    ),
    "a list without end": (lambda: b"\xdd\x7f\xff\xff\xff" + b"\x01" * 1000, "not msgpack"),
}  # fmt: skip
"""What -> (the message, words of the reason)."""


def _object_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
    return file.getvalue()


def _drop(connection: ServerConnection) -> None:
    connection.socket.shutdown(socket.SHUT_RDWR)


def _raw(data: bytes, then_drop: bool) -> Callable[[ServerConnection], None]:
    def act(connection: ServerConnection) -> None:
        connection.socket.sendall(data)
        if then_drop:
            _drop(connection)
        else:
            time.sleep(2 * DEADLINE_S)

    return act


def _trickle(connection: ServerConnection) -> None:
    """A good frame, a byte at a time: never silent, never complete within the deadline."""
    with contextlib.suppress(OSError):
        for byte in b"\x82\x7e\x08\x00" + bytes(2048):
            connection.socket.sendall(bytes([byte]))
            time.sleep(0.01)


def _fragments(connection: ServerConnection) -> None:
    """A message in fragments without end."""
    with contextlib.suppress(OSError):
        connection.socket.sendall(b"\x02\x01x")
        for _ in range(400):
            connection.socket.sendall(b"\x00\x01x")
            time.sleep(0.01)


def _oversized(connection: ServerConnection) -> None:
    with contextlib.suppress(Exception):
        connection.send(bytes(17 * 1024 * 1024))


BAD_WIRE: dict[str, tuple[Callable[[ServerConnection], None], str]] = {
    "the connection drops": (_drop, "broke off"),
    "it closes in order": (lambda c: c.close(), "broke off"),
    "half a frame, then it drops": (_raw(b"\x82\x7e\x10\x00abc", True), "broke off"),
    "half a frame, then silence": (_raw(b"\x82\x7e\x10\x00abc", False), "no complete answer"),
    "silence": (lambda c: time.sleep(2 * DEADLINE_S), "no complete answer"),
    "a trickle": (_trickle, "no complete answer"),
    "fragments without end": (_fragments, "no complete answer"),
    "pings instead of an answer": (_raw(b"\x89\x00" * 5, False), "no complete answer"),
    "noise on the wire": (_raw(bytes([0xFF, 0x37, 9, 9]) * 20, False), "no websocket message"),
    "a frame that claims a terabyte": (
        _raw(b"\x82\x7f" + struct.pack(">Q", 2**40) + b"x", False), "more than the limit",
    ),
    "a frame of 17 MB": (_oversized, "more than the limit|no complete"),
    "a text that is not UTF-8": (_raw(b"\x81\x02\xff\xfe", False), "no websocket message"),
}
"""What -> (what the server does instead of an answer, words of the reason)."""
