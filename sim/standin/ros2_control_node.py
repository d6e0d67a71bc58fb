"""A stand-in for a cell whose two Franka arms franka_ros2 drives: its topics and actions.

As `franka_node`, with ideal arms behind a JointTrajectoryController each
(`ros2_control_ros`) instead of servers of the vendor's protocol.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.vocabulary import ARMS
from sim.standin.franka_node import StandInNode

__all__ = ["ControlStandInNode", "main"]

ROOT = Path(__file__).resolve().parents[2]


class ControlStandInNode(StandInNode):
    """The scene, and the process with the controllers whose arms it shows."""

    def start_arms(self) -> None:
        """Start the controllers."""
        links = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in ARMS]
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        numbers = [theirs.fileno() for _, theirs in links]
        self._servers.append(subprocess.Popen(
            [sys.executable, "-m", "sim.standin.ros2_control_ros", *map(str, numbers),
             self.black_box, self.pace_file],
            pass_fds=numbers, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        ))  # fmt: skip
        for ours, theirs in links:
            theirs.close()
            ours.setblocking(False)
            self._ends.append(ours)


def main(args: list[str] | None = None) -> None:
    """Entry point of `standin_ros2_control_node`."""
    run_node(ControlStandInNode, args)


if __name__ == "__main__":
    main()
