"""Our own policies on OpenPI's wire, so that others' evaluators can use them.

The layout is that of the embodiment `fr3_pair`: `state` (16), [7 joints (rad), opening (m)] for the
left arm, then the right; `actions` (k, 16) at 50 Hz come back. Optional are `command` (16), what
was last commanded, `images` {camera: (h, w, 3) or (3, h, w) uint8}, `prompt` and `seed`. A
connection is an episode: the policy is made anew for each.
"""

from __future__ import annotations

import contextlib
import hmac
import http
import logging
import socket
import time
from typing import Any

import cv2
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

import bench_tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.protocols import Policy
from bench_tasks.robots import embodiments
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import (
    ACTION_SIZE,
    ARM_COLUMNS,
    CONTROL_PERIOD_NS,
    FR3_PAIR,
    GRIPPER_COLUMNS,
    CameraFrame,
    Observation,
    Scene,
    WorldState,
)
from policies import make_policy
from policies.remote.client import RemotePolicy, api_key
from policies.remote.codec import MAX_BYTES, WireError, pack, unpack

__all__ = ["PolicyServer"]

INTERNAL_ERROR, POLICY_VIOLATION = 1011, 1008
_LOG = logging.getLogger(f"{__name__}.library")
_LOG.propagate = False
_LOG.addHandler(logging.NullHandler())


class PolicyServer:
    """Serves one policy of the registry to any number of clients, each with an instance of its own.

    With a key in the environment variable `api_key_env` only clients that send it are served.
    """

    def __init__(
        self, spec: str, host: str = "127.0.0.1", port: int = 8000,
        api_key_env: str = "OPENPI_API_KEY",
    ) -> None:
        """Bind the port (0: a free one); UsageError when the policy or port cannot be served."""
        self._spec, self._key = spec, api_key(api_key_env)
        self._clients: set[ServerConnection] = set()
        self._closing = False
        policy = make_policy(spec)
        if policy.metadata.privileged or isinstance(policy, RemotePolicy):
            why = (
                "is on a server already" if not policy.metadata.privileged
                else "needs plans and the true poses of objects, which are not on this wire"
            )  # fmt: skip
            raise UsageError(f"policy {policy.metadata.name} cannot be served: it {why}")
        self.metadata = {
            "server": f"bench_tasks {bench_tasks.__version__}", "policy": policy.metadata.name,
            "policy_version": policy.metadata.version, "embodiment": "fr3_pair",
            "action_dim": ACTION_SIZE, "control_hz": round(1e9 / CONTROL_PERIOD_NS),
            "cameras": list(policy.metadata.cameras),
        }  # fmt: skip
        try:
            self._server: Server = serve(
                self._client, host, port, compression=None, max_size=MAX_BYTES,
                process_request=self._request, logger=_LOG,
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        self.port: int = self._server.socket.getsockname()[1]
        pictures = ",embodiment=fr3_pair_images" if policy.metadata.cameras else ""
        at = "" if host == "127.0.0.1" else f"host={host},"
        self.client_spec = f"openpi:{at}port={self.port}{pictures}"
        """The policy by which this project's own evaluator asks it."""

    def serve_forever(self) -> None:
        """Serve until `shutdown` or an interrupt."""
        try:
            self._server.serve_forever()
        finally:
            self.shutdown()

    def shutdown(self) -> None:
        """Close all connections and the port.

        Not every version of the library closes connections itself, which would keep the process.
        """
        self._closing = True
        for connection in list(self._clients):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()

    def _request(self, connection: ServerConnection, request: Any) -> Any:
        if request.path == "/healthz":
            return connection.respond(http.HTTPStatus.OK, "OK\n")
        given = request.headers.get("Authorization", "")
        if self._key and not hmac.compare_digest(given.encode(), f"Api-Key {self._key}".encode()):
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, "the API key is missing\n")
        return None

    def _client(self, connection: ServerConnection) -> None:
        self._clients.add(connection)
        try:
            if self._closing:
                return
            connection.send(pack(self.metadata))
            episode = _Episode(make_policy(self._spec))
            before_ms = 0.0
            while True:
                message = connection.recv()
                begun = time.perf_counter()
                answer = self._answer(connection, episode, message)
                if answer is None:
                    return
                if before_ms:
                    answer["server_timing"]["prev_total_ms"] = before_ms
                connection.send(pack(answer))
                before_ms = (time.perf_counter() - begun) * 1e3
        except ConnectionClosed:
            return
        finally:
            self._clients.discard(connection)

    def _answer(
        self, connection: ServerConnection, episode: _Episode, message: bytes | str
    ) -> dict[str, Any] | None:
        """What goes back; None when that was an error, as text, after which the wire is closed."""
        begun = time.perf_counter()
        try:
            if isinstance(message, str):
                raise WireError("an observation is a binary message")
            values = episode.act(unpack(message))
        except Exception as error:  # noqa: BLE001 - whatever a policy raises, the client is told
            known = isinstance(error, BenchError)
            text = str(error) if known else f"{type(error).__name__}: {error}"
            connection.send(" ".join(text.split()))
            connection.close(POLICY_VIOLATION if known else INTERNAL_ERROR, "see the text before")
            return None
        spent_ms = (time.perf_counter() - begun) * 1e3
        return {"actions": values, "server_timing": {"infer_ms": spent_ms}}


class _Episode:
    """A policy, and what it must be told that a client does not send."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seq = 0
        self._command: np.ndarray | None = None
        self._about: dict[str, str | int] = {}

    def act(self, message: Any) -> np.ndarray:
        """Actions (k, 16) for an observation; WireError names what is wrong with it."""
        if not isinstance(message, dict):
            raise WireError(f"an observation is a dict, not a {type(message).__name__}")
        measured = _numbers(message, "state")
        assert measured is not None
        # Without it, what we answered last is what was commanded, if all of it was executed.
        command = _numbers(message, "command", needed=False)
        if command is None:
            command = measured if self._command is None else self._command
        wrong = embodiments.get(FR3_PAIR).beyond(measured)
        if wrong:
            raise WireError(f"state: {wrong}")
        scene = _scene(message)
        about = {"prompt": scene.instruction, "seed": scene.seed}
        if self._seq == 0:
            self._policy.reset(scene, scene.seed)
            self._about = about
        for key, value in about.items():
            if key in message and value != self._about[key]:  # it would go on with the old one
                raise WireError(f"{key} has changed: connect anew for another episode")
        state = _state(self._seq, measured, command)
        cameras = self._policy.metadata.cameras
        frames = tuple(_frame(message, camera, state) for camera in cameras)
        chunk = self._policy.infer(Observation(state, frames)).checked(state.seq)
        if chunk.needs_plan:
            raise WireError("the policy needs a plan, which is not on this wire")
        # As the simulated arms do by themselves: others' evaluators may refuse what is beyond.
        robot = embodiments.get(FR3_PAIR)
        values = np.clip(chunk.values, robot.low, robot.high)
        self._seq += len(values)
        self._command = values[-1]
        return np.ascontiguousarray(values)


def _numbers(message: dict[str, Any], key: str, needed: bool = True) -> np.ndarray | None:
    if key not in message and not needed:
        return None
    value = message.get(key)
    right = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    if not right or value.shape != (ACTION_SIZE,) or not np.isfinite(value).all():
        what = f"an array of {ACTION_SIZE} finite floats"
        raise WireError(f"{key} must be {what}, not {_what(value)}")
    return value.astype(np.float64)


def _what(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return "missing" if value is None else f"a {type(value).__name__}"


def _seed(message: dict[str, Any]) -> int:
    seed = message.get("seed", 0)
    seed = int(seed) if isinstance(seed, np.integer) else seed
    if type(seed) is not int or seed < 0:
        raise WireError(f"seed must be a whole number from 0, not {_what(seed)}")
    return seed


def _scene(message: dict[str, Any]) -> Scene:
    prompt = message.get("prompt", "")
    if not isinstance(prompt, str):
        raise WireError(f"prompt must be a text, not {_what(prompt)}")
    return Scene("remote", 1, _seed(message), prompt, (), (), JOINT_NAMES, {}, robot="remote")


def _state(seq: int, measured: np.ndarray, command: np.ndarray) -> WorldState:
    """A state in which all that is not on the wire is not a number."""
    unknown = np.full(14, np.nan)
    return WorldState(
        seq, seq * CONTROL_PERIOD_NS, measured[ARM_COLUMNS], unknown, unknown,
        measured[GRIPPER_COLUMNS],
        np.full((2, 7), np.nan), command, np.zeros((0, 7)), np.zeros((0, 6)),
        np.zeros((0, 2), np.uint16), np.zeros(0),
    )  # fmt: skip


def _frame(message: dict[str, Any], camera: str, state: WorldState) -> CameraFrame:
    """The picture of a camera, as PNG, which loses nothing."""
    images = message.get("images")
    pixels = images.get(camera) if isinstance(images, dict) else None
    good = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.ndim == 3
    if good and pixels.shape[0] == 3 and pixels.shape[2] != 3:
        pixels = pixels.transpose(1, 2, 0)
    if not good or pixels.shape[2] != 3 or not pixels.size:
        raise WireError(f"images/{camera} must be (h, w, 3) uint8, not {_what(pixels)}")
    data = cv2.imencode(".png", cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGR))[1]
    height, width = pixels.shape[:2]
    return CameraFrame(camera, state.seq, state.stamp_ns, width, height, "png", data.tobytes())
