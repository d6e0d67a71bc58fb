"""Client of OpenPI's policy servers: a msgpack dict over a websocket, answered by one.

The server speaks first, with its metadata. There is no message for the start of an episode, so the
connection is made anew for each.
"""

from __future__ import annotations

from typing import Any

from policies.remote.client import RemotePolicy
from policies.remote.codec import WireError, pack, unpack
from policies.remote.websocket import Websocket, said

__all__ = ["OpenPIPolicy"]


class OpenPIPolicy(RemotePolicy):
    """`openpi:host=...,port=8000,embodiment=...`."""

    NAME = "openpi"
    _socket: Websocket | None = None

    def _connect(self, deadline_s: float) -> dict[str, Any]:
        o = self.options
        self._socket = Websocket(o.host, o.port, o.tls, self.key, deadline_s)
        return self._dict(self._socket.receive(deadline_s), "metadata")

    def _call(self, message: dict[str, Any], deadline_s: float) -> dict[str, Any]:
        return self._dict(self._exchange(message, deadline_s), "answer")

    def _exchange(self, message: dict[str, Any], deadline_s: float) -> bytes | str:
        if self._socket is None:
            raise WireError("there is no connection")
        return self._socket.ask(pack(message), deadline_s)

    def _dict(self, raw: bytes | str, what: str) -> dict[str, Any]:
        value = self._value(raw)
        if not isinstance(value, dict):
            raise WireError(f"its {what} is no dict but a {type(value).__name__}")
        return value

    def _value(self, raw: bytes | str) -> Any:
        if isinstance(raw, str):  # a text frame is an error
            raise WireError(f"it sent an error: {said(raw)}")
        return unpack(raw)

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
