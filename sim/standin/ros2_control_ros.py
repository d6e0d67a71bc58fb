"""franka_ros2's topics and actions over ideal arms: what its controllers say and hear.

A process of its own, since real ones do not wait for a scene either: `python -m
sim.standin.ros2_control_ros FD FD [FILE [PACE]]`, where each FD is for an arm what `franka_server`
has, FILE a `black_box`, and PACE where the scene sees their time (`pace`), which is the wall's.

It misbehaves when told so on /standin/misbehave (std_msgs/String, "WHAT ARM", "" ends it): `reject`
takes no more trajectories, `mute` says nothing, `late` says all 0.3 s later, `stuck` is a joint
that does not move, `refuse` a hand that rejects goals.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import rclpy
from franka_msgs.action import Grasp, Homing, Move
from geometry_msgs.msg import WrenchStamped
from rclpy.action import ActionServer, GoalResponse
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.vocabulary import ARMS
from sim.standin.black_box import BlackBox
from sim.standin.franka_server import SceneHand, exchange
from sim.standin.pace import Pace
from sim.standin.trajectory_controller import Point, TrajectoryController

__all__ = ["JOINTS", "MISBEHAVE", "Controllers", "as_a_manager", "main"]

MISBEHAVE = "/standin/misbehave"
JOINTS = tuple(f"fr3_joint{k}" for k in range(1, 8))
TURN_S = 0.01
LATE_S = 0.3
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class Controllers:
    """Both arms' and hands', in a node and with threads of its own."""

    def __init__(self, pace_file: str = "") -> None:
        """Offer all; arms at home, hands open."""
        self._paces = [Pace(pace_file, part) for part in range(len(ARMS))]
        self.hands = [SceneHand() for _ in ARMS]
        now = time.time_ns()
        self.arms = [TrajectoryController(JOINTS, HOME_RAD.copy(), now) for _ in ARMS]
        self._wrong: dict[int, str] = {}
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._later: deque[tuple[float, Callable[[], None]]] = deque()
        self.node = node = Node("standin_control", start_parameter_services=False,
                                use_global_arguments=False)  # fmt: skip
        self._executor = SingleThreadedExecutor()
        self._outs, self._servers = [], []
        node.create_subscription(String, MISBEHAVE, self._misbehave, 10)
        for k, arm in enumerate(ARMS):
            node.create_subscription(
                JointTrajectory, f"/{arm}/fr3_arm_controller/joint_trajectory", self._taker(k), 5
            )
            felt = f"/{arm}/franka_robot_state_broadcaster"
            self._outs.append((
                node.create_publisher(JointState, f"/{arm}/franka/joint_states", 10),
                node.create_publisher(JointState, f"{felt}/external_joint_torques", BEST_EFFORT),
                node.create_publisher(
                    WrenchStamped, f"{felt}/external_wrench_in_base_frame", BEST_EFFORT
                ),
                node.create_publisher(
                    JointState, f"/{arm}/franka_gripper/joint_states", BEST_EFFORT
                ),
            ))  # fmt: skip
            for kind, work in ((Move, self._move), (Grasp, self._grasp), (Homing, self._home)):
                name = f"/{arm}/franka_gripper/{kind.__name__.lower()}"
                self._servers.append(ActionServer(
                    node, kind, name, self._doer(k, kind, work), goal_callback=self._judge(k)
                ))  # fmt: skip
        self._executor.add_node(node)
        self._threads = [threading.Thread(target=work, daemon=True)
                         for work in (self._spin, self._run)]  # fmt: skip
        for thread in self._threads:
            thread.start()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()

    def close(self) -> None:
        """Say no more."""
        self._stopping.set()
        self._executor.shutdown(timeout_sec=1.0)

    # -- what they are told ----------------------------------------------------------------------

    def _misbehave(self, message: String) -> None:
        what, _, arm = message.data.partition(" ")
        with self._lock:
            self._wrong = {ARMS.index(arm): what} if what else {}
            for k, controller in enumerate(self.arms):
                controller.stuck = self._wrong.get(k) == "stuck"

    def _taker(self, k: int) -> Callable[[JointTrajectory], None]:
        def take(message: JointTrajectory) -> None:
            stamp = message.header.stamp
            points = [
                Point(p.time_from_start.sec * 10**9 + p.time_from_start.nanosec,
                      np.array(p.positions), np.array(p.velocities), np.array(p.accelerations))
                for p in message.points
            ]  # fmt: skip
            with self._lock:
                self.arms[k].run(time.time_ns())
                why = "told to" if self._wrong.get(k) == "reject" else self.arms[k].take(
                    message.joint_names, stamp.sec * 10**9 + stamp.nanosec, points, time.time_ns()
                )  # fmt: skip
            if why:
                self.node.get_logger().error(f"{ARMS[k]}: a trajectory is not taken: {why}")

        return take

    def _judge(self, k: int) -> Callable[[Any], GoalResponse]:
        def judge(_: Any) -> GoalResponse:
            wrong = self._wrong.get(k) == "refuse"
            return GoalResponse.REJECT if wrong else GoalResponse.ACCEPT

        return judge

    def _doer(self, k: int, kind: Any, work: Callable[[SceneHand, Any], bool]) -> Any:
        async def do(handle: Any) -> Any:
            ended: Future = Future(executor=self._executor)

            def wait() -> None:
                try:
                    ended.set_result((bool(work(self.hands[k], handle.request)), ""))
                except ValueError as error:
                    ended.set_result((False, str(error)))
                self._executor.wake()  # it looks at tasks only when something comes

            # Who waits for fingers must not keep trajectories waiting.
            threading.Thread(target=wait, daemon=True).start()
            success, error = await ended
            (handle.succeed if success else handle.abort)()
            return kind.Result(success=success, error=error)

        return do

    def _move(self, hand: SceneHand, goal: Any) -> bool:
        hand.move(goal.width, goal.speed)
        return abs(hand.width - goal.width) < 0.005

    def _grasp(self, hand: SceneHand, goal: Any) -> bool:
        epsilon = goal.epsilon
        return hand.grasp(goal.width, epsilon.inner, epsilon.outer, goal.speed, goal.force)

    def _home(self, hand: SceneHand, _: Any) -> bool:
        return hand.homing()

    # -- what they say ---------------------------------------------------------------------------

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            for k in range(len(ARMS)):
                with self._lock:
                    stopped = self.arms[k].reflex
                    self.arms[k].run(time.time_ns())
                    wrong = self._wrong.get(k)
                self._paces[k].tell(self.arms[k].now_ns / 1e9)
                if self.arms[k].reflex != stopped:
                    self.node.get_logger().error(f"{ARMS[k]}: reflex: {self.arms[k].reflex}")
                said = self._said(k)
                if wrong == "late":
                    self._later.append((time.monotonic() + LATE_S, said))
                elif wrong != "mute":
                    said()
            while self._later and self._later[0][0] <= time.monotonic():
                self._later.popleft()[1]()
            due = max(due + TURN_S, time.monotonic() - TURN_S)
            time.sleep(max(0.0, due - time.monotonic()))

    def _said(self, k: int) -> Callable[[], None]:
        arm, hand, (states, torques, wrench, fingers) = self.arms[k], self.hands[k], self._outs[k]
        stamp = self.node.get_clock().now().to_msg()
        nothing = [0.0] * 7
        state = JointState(name=list(JOINTS), position=arm.q.tolist(), velocity=arm.v.tolist(),
                           effort=nothing)  # fmt: skip
        felt = JointState(name=list(JOINTS), effort=nothing)
        opened = JointState(name=["fr3_finger_joint1", "fr3_finger_joint2"],
                            position=[hand.width / 2] * 2)  # fmt: skip
        pressed = WrenchStamped()
        for message in (state, felt, opened, pressed):
            message.header.stamp = stamp

        def said() -> None:
            for out, message in ((states, state), (torques, felt), (wrench, pressed),
                                 (fingers, opened)):  # fmt: skip
                out.publish(message)

        return said


class _Arm:
    """What `exchange` asks of an arm."""

    def __init__(self, controller: TrajectoryController) -> None:
        """It is driven elsewhere."""
        self._controller = controller

    @property
    def data(self) -> SimpleNamespace:
        """Its time."""
        return SimpleNamespace(time=self._controller.now_ns / 1e9)

    def get_robot_state(self) -> dict[str, np.ndarray]:
        """Position and velocity."""
        return {"q": self._controller.q, "dq": self._controller.v}


def as_a_manager() -> None:
    """Before it joins ROS: run in real time as a controller manager does, where that is allowed.

    Shared memory would have it wait for those who do not.
    """
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))


def main() -> None:
    """Run until the scene ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    as_a_manager()
    # Told to end it ends, and does not go on without rclpy until then.
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    made = Controllers(*sys.argv[4:5])
    ends = [socket.socket(fileno=int(number)) for number in sys.argv[1:3]]
    threads = []
    for k, (end, arm, hand) in enumerate(zip(ends, made.arms, made.hands, strict=True)):
        box = BlackBox(*sys.argv[3:4])
        threads.append(threading.Thread(target=exchange, args=(end, _Arm(arm), hand, box, k)))
        threads[-1].start()
    threads[0].join()


if __name__ == "__main__":
    main()
