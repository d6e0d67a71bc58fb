"""The node `franka_check`: collects what a camera sees of a marker while an arm is moved by hand.

It listens to what `franka_world_node` (or franka_ros2, with one namespace for each arm) says of
both arms and hands, and to tf for the marker's pose in the camera's optical frame; whoever detects
the marker publishes that. After `count` looks it writes the file `out` and ends. What it shows is
found by `bench_tasks doctor --robot franka --seen FILE ...`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from bench_tasks.images import optical_frame
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.node_ros import parameter
from bench_tasks.vocabulary import ARMS
from hardware.check_ros import LookNode
from hardware.franka.reports_ros import FINGERS, JOINTS
from hardware.sensors_ros import Newest, stamp_ns

__all__ = ["CheckNode", "main"]

HEARD_AGE_S = 0.5


class CheckNode(LookNode):
    """Collects looks."""

    DONE = "taken: move the arm on, and turn the hand"

    def __init__(self) -> None:
        """Listen to all; UsageError when a parameter cannot be."""
        super().__init__("franka_check")
        self._camera = parameter(self, "camera", "head")
        about = {"camera": self._camera, "grip_m": parameter(self, "grip_m", 0.0)}
        joints = 7 * ARMS.index(self._arm) + np.arange(7)
        self._begin(about, joints, 12, f"{self._camera}_{self._arm}.json")
        self._seen = Newest()
        self._heard = {(name, arm): Newest() for name in (JOINTS, FINGERS) for arm in ARMS}
        for (name, arm), newest in self._heard.items():
            self.create_subscription(
                JointState, f"/{arm}/{name}", _taker(newest), qos_profile_sensor_data
            )
        self.create_subscription(TFMessage, "/tf", self._on_tf, 100)

    def _on_tf(self, message: TFMessage) -> None:
        for item in message.transforms:
            frames = item.header.frame_id, item.child_frame_id
            if frames == (optical_frame(self._camera), self._marker):
                t, r = item.transform.translation, item.transform.rotation
                pose = np.array([t.x, t.y, t.z, r.w, r.x, r.y, r.z])
                self._seen.take(stamp_ns(item.header.stamp), pose)

    def _sight(self) -> tuple[dict[str, np.ndarray], float] | str:
        found: dict[tuple[str, str], np.ndarray] = {}
        for (name, arm), newest in self._heard.items():
            value, _, age_s = newest.look()
            if value is None or age_s > HEARD_AGE_S:
                return f"nothing comes on /{arm}/{name}"
            found[name, arm] = np.array(value.position)
        pose, _, age_s = self._seen.look()
        if pose is None:
            return f"no {self._marker} in {optical_frame(self._camera)} on /tf"
        q = np.concatenate([found[JOINTS, arm] for arm in ARMS])
        opening = np.array([found[FINGERS, arm].sum() for arm in ARMS])
        return {"q": q, "opening": opening, "seen": pose}, age_s


def _taker(newest: Newest) -> Any:
    return lambda message: newest.take(stamp_ns(message.header.stamp), message)


def main(args: list[str] | None = None) -> None:
    """Entry point of `franka_check_node`."""
    run_node(CheckNode, args)


if __name__ == "__main__":
    main()
