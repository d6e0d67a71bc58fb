"""The way between the world node and a driver process: two local sockets, and what they carry.

Messages stay whole and in order, and neither side ever waits for the other: what does not fit is
dropped and counted. When a process ends, however it ends, the kernel closes its socket and the
other side knows at its next look.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MODES", "ArmState", "Command", "Gone", "Link", "decode", "encode", "last_words", "pair"]

MODES = ("starting", "idle", "following", "stopping", "fault", "lost")
"""Of an arm: not connected yet; connected without motion; following commands (or holding still
for want of them); coming to rest before motion ends; stopped by the robot, to be recovered;
connection lost, being tried again."""


class Gone(Exception):
    """The process on the other side has ended."""


@dataclass(frozen=True)
class Command:
    """Where the arm is to be at `due_ns` of its `own_ns`: position, velocity, acceleration (7,).

    The state of motion there is what makes a chain of commands smooth; zeros mean a stop.
    """

    seq: int
    q: Sequence[float]
    v: Sequence[float]
    a: Sequence[float]
    due_ns: int


@dataclass(frozen=True)
class ArmState:
    """What an arm measured and what its loop does.

    `time_ns` is CLOCK_MONOTONIC, and so is `own_ns`, by which commands are due, but for a simulated
    robot's: its own time, which passes with its cycles. q, dq, tau (7,): measured position,
    velocity, link-side torque; `tau_ext` (7,) the part of it that the robot takes to come from
    outside; `q_sent` (7,) what the loop asked for in this cycle; `wrench` (6,) estimated external
    force and torque at the stiffness frame, in the base frame. `success_rate` is the robot's own
    count of the last 100 commands that reached it in time; `rate_hz` of cycles. `lost` counts
    cycles in which a command did not reach the robot. `waiting` says that no command has come for
    too long.
    """

    time_ns: int
    own_ns: int
    cycles: int
    lost: int
    command_seq: int
    mode: str
    waiting: bool
    success_rate: float
    rate_hz: float
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    tau_ext: np.ndarray
    q_sent: np.ndarray
    wrench: np.ndarray


_COMMAND = struct.Struct("<cqq21d")
_STATE = struct.Struct("<cqqqqqB?2d41d")


def encode(message: Command | ArmState | dict[str, Any]) -> bytes:
    """One message as bytes; a dict travels as JSON."""
    if isinstance(message, Command):
        return _COMMAND.pack(
            b"C", message.seq, message.due_ns, *message.q, *message.v, *message.a
        )
    if isinstance(message, ArmState):
        return _STATE.pack(
            b"S", message.time_ns, message.own_ns, message.cycles, message.lost,
            message.command_seq, MODES.index(message.mode), message.waiting, message.success_rate,
            message.rate_hz, *message.q, *message.dq, *message.tau, *message.tau_ext,
            *message.q_sent, *message.wrench,
        )  # fmt: skip
    return b"J" + json.dumps(message).encode()


def decode(data: bytes) -> Command | ArmState | dict[str, Any]:
    """Inverse of `encode`; ValueError on anything else."""
    try:
        if data[:1] == b"C":
            _, seq, due_ns, *n = _COMMAND.unpack(data)
            return Command(seq, n[:7], n[7:14], n[14:], due_ns)
        if data[:1] == b"S":
            _, *counts, mode, waiting, success, rate = (found := _STATE.unpack(data))[:10]
            parts = np.split(np.array(found[10:]), [7, 14, 21, 28, 35])
            return ArmState(*counts, MODES[mode], waiting, success, rate, *parts)
        found = json.loads(data[1:]) if data[:1] == b"J" else None
    except (struct.error, IndexError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"malformed message of {len(data)} bytes: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"malformed message of {len(data)} bytes beginning {data[:8]!r}")
    return found


class Link:
    """One end. Not for use from two threads at once."""

    def __init__(self, end: socket.socket) -> None:
        """Take over a connected socket that keeps messages whole."""
        end.setblocking(False)
        self._end = end
        self._kept: list[Command | ArmState | dict[str, Any]] = []
        """What came behind the settings."""
        self.dropped = 0

    @classmethod
    def of(cls, number: int) -> Link:
        """The end whose file descriptor was handed to this process."""
        return cls(socket.socket(fileno=number))

    def send(self, message: Command | ArmState | dict[str, Any]) -> bool:
        """Whether the message is under way; False when the other side does not read. Gone."""
        try:
            self._end.send(encode(message))
            return True
        except BlockingIOError:
            self.dropped += 1
            return False
        except OSError:
            raise Gone from None

    def receive(self) -> list[Command | ArmState | dict[str, Any]]:
        """All that has come since the last call. Gone once the other side has ended."""
        found, self._kept = self._kept, []
        while True:
            try:
                data = self._end.recv(1 << 16)
            except BlockingIOError:
                return found
            except OSError:
                raise Gone from None
            if not data:
                if found:
                    return found  # the end shows again at the next call
                raise Gone
            found.append(decode(data))

    def settings(self) -> dict[str, Any]:
        """Wait for the settings, which are the first message of all. Gone as `receive`.

        What has come behind them meanwhile is for `receive`.
        """
        while not (messages := self.receive()):
            time.sleep(0.005)
        settings, *self._kept = messages
        if not isinstance(settings, dict):
            raise ValueError(f"the first message is a {type(settings).__name__}, no settings")
        return settings

    def close(self) -> None:
        """The other side will see that this one is gone."""
        self._end.close()


def pair() -> tuple[Link, socket.socket]:
    """This process's end, and the one to hand to another process and then close."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Link(ours), theirs


@contextlib.contextmanager
def last_words(link: Link) -> Iterator[None]:
    """When a process ends by an exception, tell the other side of it; that this is gone is none."""
    try:
        yield
    except Gone:
        return
    except Exception as error:
        with contextlib.suppress(Gone):
            link.send({"crash": " ".join(f"{type(error).__name__}: {error}".split())})
        raise
