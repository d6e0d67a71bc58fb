"""What the clients of all policy servers share: episodes, deadlines, checks, and what a failure is.

A failure of any kind, of the wire or in the numbers, is a `WireError` that ends the episode as
"policy error: ..."; nothing of that answer is executed, the arms keep their last command, and the
connection is given up, so that a late answer finds nobody. The next episode connects anew.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import (
    ActionChunk,
    CameraFrame,
    Metadata,
    Observation,
    Plan,
    Scene,
)
from policies.after_reset import after_reset
from policies.remote.actions import chunk_values
from policies.remote.codec import WireError
from policies.remote.embodiment import CAMERAS, Embodiment, load
from policies.remote.observations import request
from policies.remote.websocket import Refused

__all__ = ["RemotePolicy", "ServerOptions", "api_key", "differences"]

RETRY_S = 0.2
MAX_REASON = 600


@dataclass(frozen=True)
class ServerOptions:
    """Where the server is and how long is waited for it.

    `deadline_s` holds for each call, `first_deadline_s` for the first answer of all, for which
    servers compile; `connect_s` is how long a server that does not listen is tried. The key is
    read from the environment variable `api_key_env`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tls: bool = False
    api_key_env: str = "OPENPI_API_KEY"
    embodiment: str = "fr3_pair"
    deadline_s: float = 10.0
    first_deadline_s: float = 45.0
    connect_s: float = 10.0

    def checked(self) -> ServerOptions:
        """Return self; UsageError names a value that cannot be used."""
        if not self.host or "/" in self.host or "@" in self.host:
            raise UsageError("host must be the name or address of a host, without ws:// and path")
        if not 1 <= self.port <= 65535:
            raise UsageError(f"port must be 1 to 65535, got {self.port}")
        for name in ("deadline_s", "first_deadline_s", "connect_s"):
            value = getattr(self, name)
            if not 0.0 < value <= 3600.0:
                raise UsageError(f"{name} must be above 0 and at most 3600, got {value:g}")
        return self


def api_key(variable: str) -> str:
    """The key that an environment variable holds; "" when there is none."""
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key.isprintable() or not key.isascii():
        raise UsageError(f"the key in {variable} holds characters that no key has")
    return key


class RemotePolicy:
    """A policy on a server. Subclasses know one wire: `_connect`, `_begin`, `_call`, `_close`."""

    NAME: ClassVar[str] = ""
    Options: ClassVar[type] = ServerOptions

    def __init__(self, options: ServerOptions | None = None) -> None:
        """Read the embodiment; no server is asked before the first episode."""
        self.options = (options or self.Options()).checked()
        self.embodiment: Embodiment = load(self.options.embodiment)
        self.key = api_key(self.options.api_key_env)
        self.metadata = Metadata(self.NAME, "1", cameras=self.embodiment.cameras)
        self.server_metadata: dict[str, Any] = {}
        self.latency_s: list[float] = []
        """How long each answer of this episode took."""
        self._scene: Scene | None = None
        self._failed = ""
        self._answered = False

    # -- one wire --------------------------------------------------------------------------------

    def _connect(self, deadline_s: float) -> dict[str, Any]:
        """Connect anew and return what the server says of itself; `Refused` when it is not up."""
        raise NotImplementedError

    def _begin(self, deadline_s: float) -> None:
        """Tell the server that an episode begins, where its wire has words for that."""

    def _call(self, message: dict[str, Any], deadline_s: float) -> dict[str, Any]:
        """Send an observation and return the answer as nested dicts of arrays."""
        raise NotImplementedError

    def _close(self) -> None:
        """Give up the connection, so that nothing that comes late is read."""
        raise NotImplementedError

    def _announced(self) -> dict[str, Any]:
        """What the server's metadata must say, where it says it, from the embodiment."""
        return {
            "embodiment": self.embodiment.name, "action_dim": self.embodiment.action_size,
            "control_hz": self.embodiment.action.rate_hz,
        }  # fmt: skip

    def close(self) -> None:
        """End the episode and the connection."""
        self._scene = None
        self._close()

    # -- a policy --------------------------------------------------------------------------------

    def reset(self, scene: Scene, seed: int) -> None:
        """Connect anew, compare what the server says with the embodiment, begin an episode."""
        self._close()
        self._scene, self._seed, self._failed = scene, seed, ""
        self._frames: list[tuple[CameraFrame, ...]] = []
        self._rest: list[np.ndarray] = []
        self.latency_s = []
        try:
            self.server_metadata = self._patiently()
            wanted = {**self._announced(), **self.embodiment.server}
            wrong = differences(self.server_metadata, wanted)
            wrong += unsent(self.server_metadata, self.embodiment)
            if wrong:
                raise WireError(
                    f"it does not fit the embodiment {self.options.embodiment}: {'; '.join(wrong)}"
                )
            self._begin(self.options.deadline_s)
        except WireError as error:
            raise self._failure(error) from None

    def _patiently(self) -> dict[str, Any]:
        """Connect; a server that is not up yet is tried for a while."""
        end = time.monotonic() + self.options.connect_s
        while True:
            try:
                return self._connect(self.options.deadline_s)
            except Refused:
                if time.monotonic() + RETRY_S > end:
                    raise
                time.sleep(RETRY_S)

    def accept(self, plan: Plan) -> None:
        """Ignore the plan: the server is told the instruction."""

    def infer(self, observation: Observation) -> ActionChunk:
        """The server's next actions, checked; WireError when there are none that can be used."""
        after_reset(self._scene, f"policy {self.NAME}")
        if self._failed:
            raise WireError(self._failed)
        state = observation.state
        if self.embodiment.images:
            self._frames.append(observation.frames)
            del self._frames[: -self._parts]
        if not self._rest:
            self._rest = self._ask(observation)
        return ActionChunk(state.seq, self._rest.pop(0))

    @property
    def _parts(self) -> int:
        """In how many parts a chunk is executed, so that a picture can be taken before each."""
        return max([1, *(picture.frames for picture in self.embodiment.images)])

    def answer(self, observation: Observation) -> dict[str, Any]:
        """The server's answer to an observation as it is, before any number in it is checked."""
        scene = after_reset(self._scene, f"policy {self.NAME}")
        # Until a chunk has been executed there is only one moment to show.
        frames = (self._frames if self.latency_s else []) or [observation.frames]
        deadline_s = self.options.deadline_s if self._answered else self.options.first_deadline_s
        begun = time.monotonic()
        try:
            message = request(
                self.embodiment, observation.state, frames, scene, self._seed
            )
            reply = self._call(message, deadline_s)
        except WireError as error:
            raise self._failure(error) from None
        self.latency_s.append(time.monotonic() - begun)
        self._answered = True
        return reply

    def _ask(self, observation: Observation) -> list[np.ndarray]:
        reply = self.answer(observation)
        assert self._scene is not None
        try:
            values = chunk_values(self.embodiment, reply, observation.state, self._scene)
        except WireError as error:
            raise self._failure(error) from None
        return [part for part in np.array_split(values, self._parts) if len(part)]

    def _failure(self, error: WireError) -> WireError:
        """The error with the server's name, without the key; the connection is given up."""
        self._close()
        where = f"policy server {self.options.host}:{self.options.port}"
        self._failed = self.shown(f"{where}: {error}")[:MAX_REASON]
        return WireError(self._failed)

    def shown(self, text: str) -> str:
        """What a server said as one line for people: no key in it, nothing that moves a cursor."""
        if self.key:
            text = text.replace(self.key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def differences(said: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Where a server's metadata says something else than is wanted; what is wanted None is free."""
    found = []
    for key, value in wanted.items():
        if key not in said or value is None:
            continue
        theirs, ours = _plain(said[key]), _plain(value)
        if theirs != ours:
            found.append(f"its {key} is {str(theirs)[:80]}, here it is {ours}")
    return found


def unsent(said: dict[str, Any], embodiment: Embodiment) -> list[str]:
    """What a server that lists its cameras by our names would be asked without."""
    listed = said.get("cameras")
    wanted = [c for c in CAMERAS if c in listed] if isinstance(listed, list | tuple) else []
    missing = [camera for camera in wanted if camera not in embodiment.cameras]
    return [f"it wants pictures of {', '.join(missing)}, which are not sent"] if missing else []


def _plain(value: Any) -> Any:
    """Tuples and arrays as lists, numbers as Python's, for comparison."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
