"""What a technician and other ROS programs want to know of a cell's arms.

`/diagnostics` once a second, and for each arm the topics of franka_ros2's state broadcaster and
gripper, best effort, on the wall's clock: `/left/franka_robot_state_broadcaster/current_pose` and
so on. `robot_state`, which is of a type of its own, is not among them. Where the cameras are is
on `/tf_static`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped, TransformStamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from bench_tasks.errors import BenchError
from bench_tasks.images import optical_frame
from bench_tasks.robots.kinematics import DualArm
from bench_tasks.ros.node_ros import LATCHED
from bench_tasks.vocabulary import ARMS
from hardware.franka.cell import Cell
from hardware.franka.drivers import Drivers
from hardware.sensors_ros import Sensors

__all__ = ["BROADCAST", "FINGERS", "JOINTS", "Reports"]

_OF_ARM = "franka_robot_state_broadcaster"
FINGERS = "franka_gripper/joint_states"
JOINTS = f"{_OF_ARM}/measured_joint_states"
BROADCAST = {
    f"{_OF_ARM}/current_pose": PoseStamped,
    JOINTS: JointState,
    f"{_OF_ARM}/desired_joint_states": JointState,
    f"{_OF_ARM}/external_joint_torques": JointState,
    f"{_OF_ARM}/external_wrench_in_base_frame": WrenchStamped,
    FINGERS: JointState,
}


class Reports:
    """Publishes them."""

    def __init__(
        self, node: Node, cell: Cell, drivers: Drivers, sensors: Sensors, kinematics: DualArm
    ) -> None:
        """Create the topics."""
        self._node, self._cell, self._drivers = node, cell, drivers
        self._sensors, self._kinematics = sensors, kinematics
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._out = {
            (arm, name): node.create_publisher(
                kind, f"/{arm}/{name}", qos_profile_sensor_data
            )
            # By franka_ros2 they are there, from who measures them.
            for arm in ARMS if not cell.by_ros for name, kind in BROADCAST.items()
        }  # fmt: skip
        self._heard: list[tuple[str, str]] = []
        self._fixed = node.create_publisher(TFMessage, "/tf_static", LATCHED)
        self._tell_of_cameras()

    def _tell_of_cameras(self) -> None:
        message = TFMessage()
        for camera, mount in self._cell.mounts().items():
            one = TransformStamped()
            one.header.stamp = self._node.get_clock().now().to_msg()
            one.header.frame_id = (
                self._cell.raw["objects"]["world_frame"] if mount.parent == "world"
                else f"{mount.parent}_fr3_hand_tcp"
            )  # fmt: skip
            one.child_frame_id = optical_frame(camera)
            t, r = one.transform.translation, one.transform.rotation
            t.x, t.y, t.z, r.w, r.x, r.y, r.z = mount.pose.tolist()
            message.transforms.append(one)
        if message.transforms:
            self._fixed.publish(message)

    # -- each period -----------------------------------------------------------------------------

    def broadcast(self) -> None:
        """Publish what of the arms' states somebody listens to, as far as it is known."""
        for arm, name in self._heard:
            try:
                self._out[arm, name].publish(self._message(arm, name))
            except BenchError:
                continue  # what is not known is not told

    def _message(self, arm: str, name: str) -> Any:
        message = BROADCAST[name]()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = f"{arm}_fr3_link0"
        if name == FINGERS:
            message.name = [f"{arm}_fr3_finger_joint{k}" for k in (1, 2)]
            message.position = [self._drivers.width(arm) / 2] * 2
            return message
        state, name = self._drivers.arm(arm), name.removeprefix(_OF_ARM + "/")
        if name == "current_pose":
            message.header.frame_id = "world"
            position, turn = message.pose.position, message.pose.orientation
            pose = self._kinematics.forward(arm, state.q)
            position.x, position.y, position.z, turn.w, turn.x, turn.y, turn.z = pose.tolist()
        elif name == "external_wrench_in_base_frame":
            force, torque = message.wrench.force, message.wrench.torque
            force.x, force.y, force.z, torque.x, torque.y, torque.z = state.wrench.tolist()
        else:
            message.name = [f"{arm}_fr3_joint{k}" for k in range(1, 8)]
            if name == "measured_joint_states":
                message.position, message.velocity = state.q.tolist(), state.dq.tolist()
                message.effort = state.tau.tolist()
            elif name == "desired_joint_states":
                message.position = state.q_sent.tolist()
            else:
                message.effort = state.tau_ext.tolist()
        return message

    # -- once a second ---------------------------------------------------------------------------

    def diagnose(self, late_periods: int) -> None:
        """Publish the diagnostics, and look who listens to the rest."""
        self._heard = [key for key, out in self._out.items() if out.get_subscription_count()]
        array = DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        array.status += [self._of_arm(arm) for arm in ARMS]
        for camera in self._cell.cameras:
            age = self._sensors.picture_age_s(camera)
            good = age <= self._cell.raw["camera_age_s"]
            array.status.append(_status(
                f"camera {camera}", good, "ok" if good else "no recent picture", age_s=age
            ))  # fmt: skip
        array.status.append(_status("world", True, "ok", late_periods=late_periods))
        self._diagnostics.publish(array)

    def _of_arm(self, arm: str) -> DiagnosticStatus:
        mode, faults = self._drivers.mode(arm), self._drivers.faults()
        try:
            state = self._drivers.arm(arm)
        except BenchError as error:
            return _status(f"{arm} arm", False, str(error), mode=mode)
        wrong = "; ".join(f"{name}: {text}" for name, text in faults.items() if arm in name)
        return _status(
            f"{arm} arm", not wrong, wrong or mode, mode=mode, success_rate=state.success_rate,
            rate_hz=state.rate_hz, lost_cycles=state.lost, waiting=state.waiting,
            external_force_n=float(np.linalg.norm(state.wrench[:3])),
        )  # fmt: skip


def _status(name: str, good: bool, message: str, **values: Any) -> DiagnosticStatus:
    level = DiagnosticStatus.OK if good else DiagnosticStatus.ERROR
    shown = [KeyValue(key=k, value=f"{v:.3f}" if isinstance(v, float) else str(v))
             for k, v in values.items()]  # fmt: skip
    return DiagnosticStatus(
        level=level, name=f"bench_tasks: {name}", message=message, values=shown
    )
