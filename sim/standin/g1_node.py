"""A stand-in for a G1 at a table: what is under the driver, without a robot.

Unitree's DDS topics are those of `g1_dds` in a process of its own, in the driver's environment;
the motors behind them are those of the scene's G1, which its own controller keeps on its feet. What
the scene shows is published as a lab's own drivers would (`scene_ros`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.object_sets import ObjectSet
from bench_tasks.robots import g1
from bench_tasks.robots.unitree_hg import ARM_SDK, JOINTS
from bench_tasks.ros.domain import robot_domain
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.node_ros import parameter
from bench_tasks.vocabulary import ActionChunk
from sim.standin.black_box import BlackBox
from sim.standin.g1_driven import EXCHANGE_S, DrivenWorld
from sim.standin.g1_firmware import COMMAND, LAYING_OUT, MEASURED, Firmware
from sim.standin.scene_ros import CAMERAS, StandIn

__all__ = ["G1StandInNode", "main"]

FIRST_TASK = "reach_both_hands"
"""What the robot stands at before anything is laid out: it is on before its driver is."""
BEHIND_S = 0.1
UPPER = slice(g1.LEGS, JOINTS)
HOME_WITHIN_RAD = 0.1


class G1StandInNode(StandIn):
    """The scene, and the process with its robot's topics."""

    def __init__(self) -> None:
        """Start the robot; UsageError when the driver's environment is not there."""
        self._firmware = Firmware()
        self._due_s, self._own_s = time.monotonic(), 0.0
        super().__init__()
        self._box = BlackBox(self.black_box)
        given = parameter(self, "python", "")
        python = Path(given) if given else Path(sys.prefix) / "unitree/bin/python"
        if not python.exists():
            raise UsageError(f"the stand-in G1 has no Python at {python}: run make unitree")
        settings = json.loads(parameter(self, "standin", "{}"))
        settings = {"domain": robot_domain(), **settings}
        self._end, self._process = self._started(str(python), settings)
        self.begin()
        self.in_scene(lambda: self.world.reset(FIRST_TASK, 0))

    def new_world(self, objects: ObjectSet | None) -> DrivenWorld:
        """The cell whose robot is driven from here."""
        return DrivenWorld(self._exchange, objects=objects)

    def _started(self, python: str, settings: dict) -> tuple[socket.socket, subprocess.Popen]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        with theirs:
            process = subprocess.Popen(
                [python, str(Path(__file__).with_name("g1_dds.py")), json.dumps(settings),
                 str(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=environment, start_new_session=True,
            )  # fmt: skip
        ours.setblocking(False)
        return ours, process

    def close(self) -> None:
        """The robot's process ends with its socket."""
        super().close()
        self._end.close()
        self._process.terminate()

    def lay_out(self, task: str, seed: int, vary: tuple[str, ...]):
        """Put robot and objects where they belong; its arms must be at home, as the scene's are."""

        def work():
            state = self.world.state
            away = float(np.abs(state.joint_position[g1.LEGS :] - g1.HOME_RAD).max())
            if away > HOME_WITHIN_RAD:
                raise BenchError(f"waist and arms are {away:.2f} rad away from their starting pose")
            self._say_standing()
            found = self.world.reset(task, seed, vary)
            self.world.capture(CAMERAS[:1])  # to open the renderer takes a while
            return found

        return self.in_scene(work)

    def _say_standing(self) -> None:
        """A scene that is being laid out measures nothing, and does not hang."""
        try:
            self._end.send(LAYING_OUT)
        except OSError:
            pass  # it reads nothing any more, or is gone, which the next exchange says

    def period(self) -> None:
        """One control period of the scene, which takes as long as one."""
        scene = self.world.scene
        if scene is None:
            return
        hold = np.zeros((1, len(self.world.state.command)))  # whatever: it is driven from outside
        (state,) = self.world.step(ActionChunk(self.world.state.seq, hold))
        self._box.flush()
        self.show(scene, state)

    def _exchange(self, measured: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Wait for the time that it is in the scene, then hand over what is new, both ways."""
        now = time.monotonic()
        self._due_s = max(self._due_s + EXCHANGE_S, now - BEHIND_S)
        time.sleep(max(0.0, self._due_s - now))
        try:
            while data := self._end.recv(4096):
                arms, weight, *numbers = COMMAND.unpack(data)
                rows = np.array(numbers).reshape(JOINTS, 5)
                self._firmware.take(ARM_SDK if arms else "rt/lowcmd", rows, weight, self._due_s)
            self._lost()
        except BlockingIOError:
            pass
        except OSError:
            self._lost()
        self._own_s += EXCHANGE_S
        self._box.note(time.monotonic(), 0, self._own_s, measured[UPPER])
        try:
            self._end.send(MEASURED.pack(*measured))
        except BlockingIOError:
            pass
        except OSError:
            self._lost()
        return self._firmware.motors(own, self._due_s)

    def _lost(self) -> None:
        if not self.stopping.is_set():
            self.get_logger().error("the process with the robot's topics has ended")
            self.stop(1)


def main(args: list[str] | None = None) -> None:
    """Entry point of `standin_g1_node`."""
    run_node(G1StandInNode, args)


if __name__ == "__main__":
    main()
