"""The node `world` made of two Franka arms: the same topics and services as the simulated one.

The arms' and hands' loops run in processes of their own (`drivers`); 50 times a second, on a
thread of its own, the state is put together from what was measured, published, and the next
action handed on. What is not known (an object that nobody sees, an arm that does not answer)
ends the episode without a verdict, with its reason.
"""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import DualArm, dual_arm
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.vocabulary import (
    ARM_COLUMNS,
    ARMS,
    MAX_OPENING_M,
    Scene,
    WorldState,
)
from hardware.franka.cell import Cell, read_cell
from hardware.franka.drivers import Drivers
from hardware.franka.motion import hand_contacts, next_step, strain, within
from hardware.franka.narrowed import ROBOT
from hardware.franka.ready import FATAL, Preparation
from hardware.franka.reports_ros import Reports
from hardware.link import Command
from hardware.world_ros import PERIOD_S, RealWorld

__all__ = ["FrankaWorldNode", "main"]


LOOK_S = 0.002


class FrankaWorldNode(RealWorld):
    """Two arms, two hands, cameras and a tracker."""

    ROBOT, MOVED, FATAL = ROBOT, "the arms", FATAL
    _cell: Cell

    def __init__(self) -> None:
        """Start the drivers and listen to the sensors; UsageError when the cell is not right."""
        super().__init__(read_cell)
        cell = self._cell
        self._kinematics = dual_arm()
        self._last = np.zeros(16)
        self.drivers = Drivers(cell)
        if self.drivers.simulated:
            self._look_s = LOOK_S
        # Of its own: it is asked on the ticker's thread, also while the other is at work.
        self._shown = DualArm()
        self._reports = Reports(self, cell, self.drivers, self.sensors, self._shown)
        self._preparation = Preparation(
            cell, self.drivers, self.sensors, self._signals, self.stopping, self._record,
            self.get_logger().warning, kinematics=self._kinematics,
        )  # fmt: skip
        self._start()

    def close(self) -> None:
        """Bring the arms to rest."""
        self._ticker.join(timeout=1.0)
        self.drivers.close()
        self.sensors.close()

    def _came_home(self) -> None:
        self._last = np.tile(np.append(HOME_RAD, MAX_OPENING_M), len(ARMS))

    def _take_scene(self, scene: Scene) -> None:
        for kinematics in (self._kinematics, self._shown):
            kinematics.set_base_height(scene.base_height_m)

    # -- 50 times a second -----------------------------------------------------------------------

    def _now_ns(self) -> int:
        return self.drivers.now_ns()

    def _turn(self, at_s: float) -> None:
        super()._turn(at_s)
        self._reports.broadcast()

    def _diagnose(self) -> None:
        self._reports.diagnose(self._late)

    def _heed(self) -> None:
        super()._heed()
        for arm in ARMS:
            if felt := strain(arm, self.drivers.arm(arm).wrench, self._cell.raw["arms"]):
                raise BenchError(felt)

    def _act(self, seq: int, at_s: float, safe: bool) -> None:
        due = self._reachable(self.due(seq))
        if safe:  # else the arms are told nothing, and have come to rest
            self._command(seq, due, at_s)

    def _command(self, seq: int, due: np.ndarray, at_s: float) -> None:
        """Tell arms and hands what to do in the period that began at `at_s`."""
        step = next_step(self._last, due, PERIOD_S)
        self._last = step.action.copy()
        due_ns = int((at_s + PERIOD_S) * 1e9)
        for k, arm in enumerate(ARMS):
            part = slice(8 * k, 8 * k + 7)
            self.drivers.send(
                arm, Command(seq, step.action[part].tolist(), step.velocity[part].tolist(),
                             step.acceleration[part].tolist(), due_ns),
            )  # fmt: skip
            if len(due):  # else the hand stays, or goes on to where it was told
                self.drivers.open_to(arm, step.openings[k])

    def _reachable(self, due: np.ndarray) -> np.ndarray:
        """The actions that are due; none when they begin too far from where the arms are told."""
        if len(due):
            away = np.abs(within(due[0]) - self._last)[ARM_COLUMNS]
            joint, limit = int(away.argmax()), self._cell.raw["arms"]["max_jump_rad"]
            if away[joint] > limit:
                self.chunk = None
                name = f"joint {joint % 7 + 1} of the {ARMS[joint // 7]} arm"
                self.refuse(
                    "bad_chunk", f"it begins {away[joint]:.3f} rad away at {name}, more than "
                    f"{limit:g} rad",
                )  # fmt: skip
                return due[:0]
        return due

    def _hold(self) -> None:
        self.drivers.hold()

    def _stay(self) -> None:
        """An arm has braked: from here on both hold where they are told to be now."""
        self.chunk = None
        for k, arm in enumerate(ARMS):
            self._last[8 * k : 8 * k + 7] = self.drivers.arm(arm).q_sent

    def _still_held(self) -> None:
        self._stay()

    def _measured(self, scene: Scene, seq: int, stamp_ns: int) -> WorldState:
        """The state now; BenchError when any of it is not known."""
        arms = [self.drivers.arm(arm) for arm in ARMS]
        for arm in ARMS:
            if self.drivers.mode(arm) != "following":
                raise BenchError(f"the {arm} arm is in mode {self.drivers.mode(arm)}")
        ee = np.stack([self._kinematics.forward(a, s.q) for a, s in zip(ARMS, arms, strict=True)])
        opening = np.array([self.drivers.width(arm) for arm in ARMS])
        seen = [self.sensors.pose(item.name) for item in scene.objects]
        poses = np.array([pose for pose, _ in seen]).reshape(-1, 7)
        if scene.contacts == "all":
            pairs, forces = self.sensors.contacts()
        else:
            pairs, forces = hand_contacts(
                scene, ee, poses, opening, self._last,
                tuple(self.drivers.grasped(arm) for arm in ARMS),
                self._cell.raw["hands"]["force_n"],
                tuple(self.drivers.busy(arm) for arm in ARMS),
            )  # fmt: skip
        return WorldState(
            seq=seq, stamp_ns=stamp_ns,
            joint_position=np.concatenate([s.q for s in arms]),
            joint_velocity=np.concatenate([s.dq for s in arms]),
            joint_effort=np.concatenate([s.tau for s in arms]),
            gripper_opening=opening, ee_pose=ee, command=self._last.copy(), object_pose=poses,
            object_twist=np.array([twist for _, twist in seen]).reshape(-1, 6),
            contact_pair=pairs, contact_force=forces,
        )  # fmt: skip


def main(args: list[str] | None = None) -> None:
    """Entry point of `franka_world_node`."""
    run_node(FrankaWorldNode, args)


if __name__ == "__main__":
    main()
