"""Client of GR00T's policy servers (N1.6 and N1.7): msgpack over a ZMQ request socket.

Each request carries a number that ZMQ's reply sockets send back, so that a late answer is dropped
by ZMQ itself; after a failure the socket is made anew, too.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import zmq

from policies.remote.client import RemotePolicy, ServerOptions
from policies.remote.codec import MAX_BYTES, WireError, pack_npy, unpack
from policies.remote.websocket import Refused, said

__all__ = ["Gr00tOptions", "Gr00tPolicy"]


@dataclass(frozen=True)
class Gr00tOptions(ServerOptions):
    """The same with GR00T's own port and key. There is no TLS on this wire."""

    port: int = 5555
    api_key_env: str = "GR00T_API_TOKEN"
    embodiment: str = "gr00t_pair"


class Gr00tPolicy(RemotePolicy):
    """`gr00t:host=...,port=5555,embodiment=gr00t_pair`."""

    NAME = "gr00t"
    Options = Gr00tOptions
    _socket: zmq.Socket | None = None

    def _connect(self, deadline_s: float) -> dict[str, Any]:
        if self.options.tls:
            raise WireError("there is no TLS on this wire: use a tunnel")
        self._close()
        socket = zmq.Context.instance().socket(zmq.REQ)
        self._socket = socket
        for option, value in (
            (zmq.LINGER, 0), (zmq.IMMEDIATE, 1), (zmq.REQ_CORRELATE, 1),
            (zmq.MAXMSGSIZE, MAX_BYTES), (zmq.RECONNECT_IVL, 50), (zmq.IPV6, 1),
        ):  # fmt: skip
            socket.setsockopt(option, value)
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        try:
            socket.connect(f"tcp://{host}:{self.options.port}")
        except zmq.ZMQError as error:
            raise WireError(f"cannot connect: {error}") from None
        config = self._endpoint("get_modality_config", None, deadline_s)
        return config if isinstance(config, dict) else {}

    def _announced(self) -> dict[str, Any]:
        return {}

    def _begin(self, deadline_s: float) -> None:
        self._check_modalities()
        self._endpoint("reset", {"options": None}, deadline_s)

    def _check_modalities(self) -> None:
        """Compare the server's modalities with the embodiment's, as far as it has said them."""
        pictures, state = self.embodiment.images, self.embodiment.state
        ours = {
            "video": [picture.key[-1] for picture in pictures if picture.key[0] == "video"],
            "state": [vector.key[-1] for vector in state if vector.key[0] == "state"],
            "action": [vector.key[-1] for vector in self.embodiment.action.vectors],
            "language": list(self.embodiment.prompt[-1:]),
        }
        for name, keys in ours.items():
            config = _config(self.server_metadata.get(name))
            theirs = [str(key).removeprefix(f"{name}.") for key in config.get("modality_keys", [])]
            if theirs and set(theirs) != {key.removeprefix(f"{name}.") for key in keys}:
                raise WireError(
                    f"it does not fit the embodiment {self.options.embodiment}: its {name} keys "
                    f"are {', '.join(sorted(theirs))}, here they are {', '.join(sorted(keys))}"
                )
            moments = config.get("delta_indices")
            frames = {picture.frames for picture in pictures}
            if name == "video" and isinstance(moments, list) and {len(moments)} != (frames or {1}):
                raise WireError(
                    f"it does not fit the embodiment {self.options.embodiment}: it wants "
                    f"{len(moments)} pictures of each camera, here they are {sorted(frames)}"
                )

    def _call(self, message: dict[str, Any], deadline_s: float) -> dict[str, Any]:
        data = {"observation": _batched(message), "options": None}
        answer = self._endpoint("get_action", data, deadline_s)
        if isinstance(answer, list) and len(answer) == 2:  # [action, info]
            answer = answer[0]
        if not isinstance(answer, dict):
            raise WireError(f"its answer is no dict of actions but a {type(answer).__name__}")
        return {str(key).removeprefix("action."): _single(value) for key, value in answer.items()}

    def _endpoint(self, name: str, data: dict[str, Any] | None, deadline_s: float) -> Any:
        """The value that an end point answers with; WireError for an error of the server's."""
        if self._socket is None:
            raise WireError("there is no connection")
        message: dict[str, Any] = {"endpoint": name}
        if data is not None:
            message["data"] = data
        if self.key:
            message["api_token"] = self.key
        end = time.monotonic() + deadline_s
        self._socket.setsockopt(zmq.SNDTIMEO, max(1, round(deadline_s * 1e3)))
        try:
            self._socket.send(pack_npy(message))
        except zmq.Again:
            what = f"nobody speaks ZMQ there within {deadline_s:g} s: is it running?"
            raise Refused(what) from None
        self._socket.setsockopt(zmq.RCVTIMEO, max(1, round((end - time.monotonic()) * 1e3)))
        try:
            parts = self._socket.recv_multipart()
        except zmq.Again:
            raise WireError(f"no complete answer to {name} within {deadline_s:g} s") from None
        except zmq.ZMQError as error:
            raise WireError(f"the connection failed: {error}") from None
        if len(parts) != 1:
            raise WireError(f"its answer to {name} has {len(parts)} parts, not one")
        if parts[0] == b"ERROR":
            raise WireError(f"it failed at {name} without a reason")
        value = unpack(parts[0])
        if isinstance(value, dict) and "error" in value:
            raise WireError(f"it sent an error: {said(str(value['error']))}")
        return value

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _config(value: Any) -> dict[str, Any]:
    """A modality's configuration: a dict, or (N1.6) the text of one, in an envelope or not."""
    if isinstance(value, dict) and "as_json" in value:
        value = value["as_json"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    keys = value.get("modality_keys") if isinstance(value, dict) else None
    return value if isinstance(keys, list) else {}


def _batched(message: dict[str, Any]) -> dict[str, Any]:
    """With the dimensions of batch and time in front: one of each, unless pictures are several."""
    found: dict[str, Any] = {}
    for key, value in message.items():
        if isinstance(value, dict):
            found[key] = _batched(value)
        elif isinstance(value, np.ndarray):
            found[key] = value[None] if value.ndim == 4 else value[None, None]
        else:
            found[key] = [[value]]
    return found


def _single(value: Any) -> Any:
    """Without the batch's dimension; a batch of more is left as it is, to be refused."""
    one = isinstance(value, np.ndarray) and value.ndim == 3 and len(value) == 1
    return value[0] if one else value
