"""One simulated FR3 that speaks Franka's own protocol, with its limits enforced, by franka-sim.

Runs in an environment of its own (requirements/franka_sim.txt): `python
sim/standin/franka_server.py ADDRESS [FD [FILE PART [PACE]]]`. With FD, its end of a socket pair,
the hand is that of a scene elsewhere: every 4 ms it sends [q (7), dq (7), width that the fingers
are asked for, speed] as doubles, and takes the width measured there. Without ("" as well), it is
franka-sim's empty one. FILE is a `black_box`, in which it is PART, as in PACE, the file by which it
shares its time (`pace`).
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_tasks.robots.fr3 import HOME_RAD, arm_mjcf  # noqa: E402
from sim.standin.black_box import BlackBox  # noqa: E402
from sim.standin.pace import Pace  # noqa: E402

REPORT_S = 0.004
REPORT = struct.Struct("<16d")
WIDTH = struct.Struct("<d")
SETTLED, LONGEST = 8, 200
"""Looks at the fingers, one in each period of the scene, however long that takes."""
HUNG_S = 60.0
MAX_WIDTH_M = 0.08


def arm_only(folder: Path) -> Path:
    """Write the MJCF of an FR3 without hand and without shapes, which collide with nothing here."""
    root = ET.fromstring(arm_mjcf())
    for parent in list(root.iter()):
        for child in list(parent):
            hand = child.tag == "body" and child.get("name") == "hand"
            if hand or (child.tag == "geom" and parent.tag in ("body", "worldbody")):
                parent.remove(child)
    for tag in ("asset", "actuator", "tendon", "equality", "contact", "sensor"):
        for section in root.findall(tag):
            root.remove(section)
    path = folder / "fr3_arm.xml"
    path.write_text(ET.tostring(root, encoding="unicode"), encoding="utf-8")
    return path


class SceneHand:
    """A hand whose fingers are those of a scene in another process."""

    max_width = MAX_WIDTH_M

    def __init__(self) -> None:
        """Open, and holding nothing."""
        self.asked, self.speed, self.is_grasped = MAX_WIDTH_M, 0.1, False
        self._width, self._looks = MAX_WIDTH_M, 0

    @property
    def width(self) -> float:
        """Between the fingers, as the scene measured it last."""
        return self._width

    @width.setter
    def width(self, width: float) -> None:
        self._width, self._looks = width, self._looks + 1

    def _drive(self, width: float, speed: float) -> float:
        """Ask for a width and wait until the fingers stay where they are."""
        if not 0.0 <= width <= MAX_WIDTH_M:
            raise ValueError(f"width {width} m is outside 0..{MAX_WIDTH_M} m")
        self.asked, self.speed = width, max(speed, 0.001)
        begun = since = self._looks
        last, end = self.width, time.monotonic() + HUNG_S
        while time.monotonic() < end:
            time.sleep(0.01)
            if abs(self.width - last) > 2e-4:
                since, last = self._looks, self.width
            if self._looks - since >= SETTLED or self._looks - begun >= LONGEST:
                break
        return self.width

    def homing(self) -> bool:
        """Open."""
        self._drive(MAX_WIDTH_M, 0.1)
        self.is_grasped = False
        return True

    def move(self, width: float, speed: float) -> bool:
        """To a width, as far as nothing is in the way."""
        self.is_grasped = False
        self._drive(width, speed)
        return True

    def grasp(
        self, width: float, epsilon_inner: float, epsilon_outer: float, speed: float, force: float
    ) -> bool:
        """Close until something stops the fingers; whether that was within the band."""
        if not 0.0 <= width <= MAX_WIDTH_M:
            raise ValueError(f"width {width} m is outside 0..{MAX_WIDTH_M} m")
        found = self._drive(0.0, speed)
        self.is_grasped = width - epsilon_inner < found < width + epsilon_outer
        return self.is_grasped

    def stop(self) -> bool:
        """Stay."""
        self.asked = self.width
        return True

    def get_state(self):
        """As franka-sim's backends give it."""
        from franka_sim.gripper.backend import GripperStateData

        return GripperStateData(self.width, MAX_WIDTH_M, self.is_grasped, 30)


def exchange(end: socket.socket, simulated, hand: SceneHand, box: BlackBox, part: int) -> None:
    """Report to the scene and hear from it until it ends; then this process has to, too."""
    end.setblocking(False)
    status = 1
    try:
        while _exchanged(end, simulated, hand):
            if simulated.data is not None:
                q, own_s = simulated.get_robot_state()["q"], simulated.data.time
                box.note(time.monotonic(), part, own_s, q)
                box.flush()
            time.sleep(REPORT_S)
        status = 0
    except Exception:  # noqa: BLE001 - without this thread the arm would look like one that rests
        traceback.print_exc()
    finally:
        os._exit(status)


def _exchanged(end: socket.socket, simulated, hand: SceneHand) -> bool:
    """Report and hear once; whether the other side is still there."""
    state = simulated.get_robot_state()
    try:
        end.send(REPORT.pack(*state["q"], *state["dq"], hand.asked, hand.speed))
    except BlockingIOError:
        pass
    except OSError:
        return False
    try:
        while data := end.recv(64):
            hand.width = WIDTH.unpack(data)[0]
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def main() -> None:
    """Serve until told to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    from franka_sim import mujoco_franka_sim

    from sim.standin.franka_cycle import CycledServer, CycledSim

    part = int((*sys.argv[4:5], 0)[0])
    mujoco_franka_sim.ARM_INITIAL_Q = HOME_RAD.copy()  # read when a simulation is made
    simulated = CycledSim(Pace(*sys.argv[5:6], part=part))
    hand = SceneHand() if any(sys.argv[2:3]) else None
    server = CycledServer(
        host=sys.argv[1], physics_sim=simulated, gripper_backend=hand,
        enforce_motion_limits=True, enforce_comm_constraints=True,
    )  # fmt: skip
    if hand is not None:
        end = socket.socket(fileno=int(sys.argv[2]))
        box = BlackBox(*sys.argv[3:4])
        threading.Thread(
            target=exchange, args=(end, simulated, hand, box, part), daemon=True
        ).start()
    # Its physics are set up by `start`, which then stays, so the file has to stay as well.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FR3_MJCF"] = str(arm_only(Path(folder)))
        server.start()


if __name__ == "__main__":
    main()
