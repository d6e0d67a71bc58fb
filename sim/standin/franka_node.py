"""A stand-in for a cell with two Franka arms: what is under the driver, without a robot.

Two franka-sim servers speak the vendor's protocol, with its limits enforced. The table scene's
arms follow where theirs are, its fingers do what their hands are told, and what it shows is
published as a lab's own drivers would: camera topics, tf of the objects, contacts as from a sense
of touch (`/standin/state`). On a busy machine all of it is slow together (`pace`). The parameter
`cell` names the cell, by default `standin`, at whose addresses the servers are.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.listeners import refuse_taken
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.node_ros import parameter
from bench_tasks.runner import simulated_addresses
from bench_tasks.scratch import Scratch
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, ActionChunk
from sim.standin.franka_server import REPORT, WIDTH
from sim.standin.pace import Pace
from sim.standin.scene_ros import CAMERAS, PERIOD_S, StandIn

__all__ = ["StandInNode", "main"]

HOME_WITHIN_RAD = 0.1
SILENT_S = 1.0
"""An arm that says nothing for so long hangs; where it was last is not where it is."""
LOOK_S = 0.002
BEHIND_PERIODS = 5
"""Periods of the scene that are missed beyond these are not made up for."""


class StandInNode(StandIn):
    """The scene, and the two servers whose arms it shows."""

    def __init__(self) -> None:
        """Start the servers; UsageError when their environment is not there."""
        super().__init__()
        self._q = np.tile(np.append(HOME_RAD, MAX_OPENING_M), 2)
        self._opening = self._width = np.full(2, MAX_OPENING_M)
        self._asked, self._speed = np.full(2, MAX_OPENING_M), np.full(2, 0.1)
        self._heard_s: list[float | None] = [None, None]
        self._servers: list[subprocess.Popen[bytes]] = []
        self._ends: list[socket.socket] = []
        self._folder = Scratch("bench_tasks_standin-")
        self.pace_file = str(self._folder.path / "pace")
        Pace.begin(self.pace_file)
        self._pace, self._time_s = Pace(self.pace_file), 0.0
        self._lab_ns: int | None = None
        self.start_arms()
        self.begin()

    def start_arms(self) -> None:
        """Start what is under the driver; UsageError when that is not there."""
        given = parameter(self, "python", "")
        python = Path(given) if given else Path(sys.prefix) / "franka_sim/bin/python"
        if not python.exists():
            raise UsageError(f"simulated Franka arms have no Python at {python}: "
                             "run make franka-sim")  # fmt: skip
        cell = parameter(self, "cell", "standin")
        addresses = simulated_addresses(cell)
        refuse_taken(cell, addresses.values())
        for arm in ARMS:
            self._serve(str(python), addresses[arm])

    def _serve(self, python: str, address: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        with theirs:
            self._servers.append(
                subprocess.Popen(
                    [python, str(Path(__file__).with_name("franka_server.py")), address,
                     str(theirs.fileno()), self.black_box, str(len(self._servers)),
                     self.pace_file],
                    pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
                )
            )  # fmt: skip
        ours.setblocking(False)
        self._ends.append(ours)

    def close(self) -> None:
        """The servers end with their sockets."""
        super().close()
        for end in self._ends:
            end.close()
        for server in self._servers:
            server.terminate()
        self._folder.cleanup()

    # -- the experimenter ------------------------------------------------------------------------

    def lay_out(self, task: str, seed: int, vary: tuple[str, ...]):
        """Put the objects where they belong; the arms must be at home, as the scene's then are."""
        def work() -> Any:
            self._hear()
            away = np.abs(self._q.reshape(2, 8)[:, :7] - HOME_RAD).max()
            if away > HOME_WITHIN_RAD:
                raise BenchError(f"the arms are {away:.2f} rad away from their starting pose")
            found = self.world.reset(task, seed, vary)
            self.world.capture(CAMERAS[:1])  # to open the renderer takes a while
            return found

        return self.in_scene(work)

    # -- the scene -------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Where the servers' arms are now, and what their hands were told."""
        for k, end in enumerate(self._ends):
            what = "has ended"
            try:
                while data := end.recv(256):
                    self._heard_s[k] = time.monotonic()
                    numbers = REPORT.unpack(data)
                    self._q[8 * k : 8 * k + 7] = numbers[:7]
                    self._asked[k], self._speed[k] = numbers[14], numbers[15]
            except BlockingIOError:
                heard_s = self._heard_s[k]
                if heard_s is None or time.monotonic() - heard_s <= SILENT_S:
                    continue
                what = f"says nothing for {SILENT_S:g} s"
            except OSError:
                pass
            if not self.stopping.is_set():
                self.get_logger().error(f"the simulated {ARMS[k]} arm {what}")
                self.stop(1)
            return

    def comes(self) -> bool:
        """The scene's time is that of its arms, of which the slower counts."""
        self._hear()
        behind = (self._pace.others_s - self._time_s) / PERIOD_S
        if not 1.0 <= behind < float("inf"):
            time.sleep(LOOK_S)
            return False
        self._time_s += PERIOD_S * (1.0 if behind < BEHIND_PERIODS else behind)
        self._pace.tell(self._time_s)
        return True

    def lab_ns(self) -> int:
        """It passes as their time: who sees how far something went sees how fast it was."""
        scene_ns = round(self._time_s * 1e9)
        if self._lab_ns is None:
            self._lab_ns = self.get_clock().now().nanoseconds - scene_ns
        return self._lab_ns + scene_ns

    def leave(self) -> None:
        """Arms that hold need not wait for it."""
        self._pace.tell(float("inf"))

    def period(self) -> None:
        """One control period of the scene."""
        self._hear()
        reach = self._speed * PERIOD_S
        # Fingers that press on something open from where they are, and not only once they would
        # have come back from where they press to.
        opens = self._asked > self._width
        begun = np.where(opens, np.maximum(self._opening, self._width), self._opening)
        self._opening = begun + np.clip(self._asked - begun, -reach, reach)
        self._q[[7, 15]] = self._opening
        scene = self.world.scene
        self._width = self._opening
        if scene is not None:
            (state,) = self.world.step(ActionChunk(self.world.state.seq, self._q[None]))
            self._width = np.clip(state.gripper_opening, 0.0, MAX_OPENING_M)
            self.show(scene, state)
        for end, width in zip(self._ends, self._width, strict=True):
            try:
                end.send(WIDTH.pack(float(width)))
            except OSError:
                continue


def main(args: list[str] | None = None) -> None:
    """Entry point of `standin_franka_node`."""
    run_node(StandInNode, args)


if __name__ == "__main__":
    main()
