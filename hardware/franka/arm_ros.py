"""The process of one arm that franka_ros2 drives: the second way, instead of `arm`.

python -m hardware.franka.arm_ros FD, with the same messages on the link as `arm`. Each command
becomes a trajectory that carries its own stop (`course`), for ros2_control's
JointTrajectoryController, which interpolates it: when this process dies the arm comes to rest. A
controller says nothing of a trajectory that it does not take, so the joints are watched: they must
be where they are told to be, to within `follow_rad`.

What is relied on: a message on ~/joint_trajectory replaces the one before; with a stamp it begins
at that time, which may have passed, and no state of before its first point is taken into account;
points with positions, velocities and accelerations are joined by quintics; times must rise, and
the last point must rest (ros-controls/ros2_controllers, joint_trajectory_controller/src/
trajectory.cpp, joint_trajectory_controller.cpp and doc/trajectory.rst). Names: franka_ros2,
franka_fr3_moveit_config/config/fr3_ros_controllers.yaml, franka_bringup/launch/franka.launch.py
(the broadcaster's joint_states are remapped to franka/joint_states; /joint_states is a copy of it
at 30 Hz) and franka_robot_state_broadcaster/src/franka_robot_state_broadcaster.cpp.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hardware.franka.course import Course
from hardware.franka.linked import LinkedArm
from hardware.franka.topics_ros import Topics, ahead_of_others, under
from hardware.franka.tracker import RENEW_S, WAITING_S
from hardware.link import ArmState, Link, last_words

__all__ = ["main"]

TURN_S = 0.005
STALE_S = 0.1
"""Older states are none. Trajectories begin at a time, so both sides must have the same one: states
from the future by more than `AHEAD_S`, or this old when they come, may as well be of a clock that
differs."""
AHEAD_S = 0.02
FELT_S = 0.25
"""So old may be what the arm feels; its broadcaster's own rate is some 30 Hz."""
TRACE_S = 0.05
"""The joints may be where they were told to be so long ago."""
REST_RAD_S = 0.05
RATED_S = 0.5
SENT = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


class RosArm(LinkedArm):
    """One arm's controller and the link to the world node."""

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Join ROS."""
        super().__init__(link, settings)
        names, space = settings["names"], settings["names"]["namespace"]
        self._joints = [f"{names['joints']}{k}" for k in range(1, 8)]
        self._states = under(space, names["joint_states"])
        self._torques, self._wrench = (under(space, names[key]) for key in ("torques", "wrench"))
        self._controller = under(space, f"{names['controller']}/joint_trajectory")
        self._name = f"franka_arm_{settings['arm']}"
        self._topics = Topics(self._name)
        for kind, topic in ((JointState, self._states), (JointState, self._torques),
                            (WrenchStamped, self._wrench)):  # fmt: skip
            self._topics.hear(kind, topic)
        self._out = self._topics.node.create_publisher(JointTrajectory, self._controller, SENT)
        self._course = Course(settings["max_jump_rad"], settings["speed"], settings["lead_s"])
        self._trace: deque[tuple[int, np.ndarray]] = deque(maxlen=round(0.5 / TURN_S))
        self._measured: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._felt = np.zeros(7), np.zeros(6)
        self._stamp_ns = self._measured_ns = self._count = self._last_ns = 0
        self._rate_hz, self._rated = 0.0, (time.monotonic(), 0)
        self._fault = ""
        self._commanded_ns: int | None = None
        self._start = self._recover = False

    def end(self) -> None:
        """Come to rest, and then end the process."""
        self._end = True

    def run(self) -> None:
        """Serve until told to end, or until the other side is gone."""
        self._topics.start()
        while True:
            begun = time.monotonic()
            now = time.monotonic_ns()
            self._listen(now)
            self._look(now)
            if self._end and self._ended(now):
                break
            self._report(now)
            time.sleep(max(0.0, TURN_S - (time.monotonic() - begun)))
        self._topics.close()

    def _ended(self, now: int) -> bool:
        """Whether the arm rests; it is braked."""
        if self._mode not in ("following", "stopping"):
            return True
        if self._mode == "following":
            self._course.brake(now)
            self._send()
            self._tell("stopping", "")
        return not self._course.at(now)[1:].any()

    # -- the controllers' side -------------------------------------------------------------------

    def _look(self, now: int) -> None:
        """What has come, and what is to be thought of it."""
        wrong = self._take(now)
        controlled = self._mode in ("following", "stopping")
        if wrong:
            if controlled:
                self._course.brake(now)
                self._send()
            self._start = self._recover = False
            self._tell("lost", wrong)
            return
        if self._recover:
            self._recover, self._fault = False, ""
        if not controlled:
            self._tell("fault" if self._fault else "idle", self._fault)
            start, self._start = self._start, False
            if start and self._mode == "idle":
                self._begin(now)
            return
        self._course.look(now)
        self._trace.append((now, self._course.at(now)[0]))
        self._fault = self._astray(now)
        if self._fault:
            self._course.brake_from(*self._measured[:2], now)  # whatever it was told
            self._send()
            self._tell("fault", self._fault)

    def _take(self, now: int) -> str:
        """Take the newest messages in; why there are none to rely on, "" when there are."""
        found = self._topics.newest(self._states)
        if found is None:
            return f"nothing has come on {self._states}"
        state, at_ns = found
        if (now - at_ns) / 1e9 > STALE_S:
            return f"nothing has come on {self._states} for {STALE_S:g} s"
        stamp_ns = state.header.stamp.sec * 1_000_000_000 + state.header.stamp.nanosec
        age_s = (_wall_ns(at_ns) - stamp_ns) / 1e9
        if not -AHEAD_S <= age_s <= STALE_S:
            return (f"states on {self._states} are {age_s:.2f} s old when they come: they are late,"
                    " or the clocks of both sides differ")  # fmt: skip
        if stamp_ns != self._stamp_ns:
            rows = {name: k for k, name in enumerate(state.name)}
            lacking = [name for name in self._joints if name not in rows]
            if lacking:
                return f"{self._states} knows no joint {lacking[0]}: joints is wrong in the cell?"
            order = [rows[name] for name in self._joints]
            values = [np.array(v) for v in (state.position, state.velocity, state.effort)]
            if any(len(v) != len(state.name) for v in values):
                return f"{self._states} lacks positions, velocities or efforts"
            q, dq, tau = (v[order] for v in values)
            if not np.isfinite([q, dq, tau]).all():
                return f"a state on {self._states} is not finite"
            self._measured, self._stamp_ns = (q, dq, tau), stamp_ns
            self._measured_ns = at_ns - max(0, round(age_s * 1e9))
            self._count += 1
        if not self._out.get_subscription_count():
            return f"no controller listens on {self._controller}"
        return self._feel(now)

    def _feel(self, now: int) -> str:
        for topic in (self._torques, self._wrench):
            found = self._topics.newest(topic)
            if found is None or (now - found[1]) / 1e9 > FELT_S:
                return f"nothing has come on {topic} for {FELT_S:g} s"
        torques, wrench = (self._topics.newest(t)[0] for t in (self._torques, self._wrench))
        if len(torques.effort) != 7:
            return f"{self._torques} has {len(torques.effort)} efforts instead of 7"
        f, t = wrench.wrench.force, wrench.wrench.torque
        self._felt = np.array(torques.effort), np.array([f.x, f.y, f.z, t.x, t.y, t.z])
        return ""

    def _begin(self, now: int) -> None:
        """Take the arm over where it is."""
        q, dq, _ = self._measured
        if others := self._others():
            told = f"start: {', '.join(others)} publishes {self._controller} as well"
            self._say({"refused": told, "seq": -1})
        elif np.abs(dq).max() > REST_RAD_S:
            self._say({"refused": "start: the arm moves: somebody else commands it", "seq": -1})
        else:
            self._course.rest(q, now)
            self._trace.clear()
            self._commanded_ns = now
            self._send()
            self._tell("following", "")

    def _others(self) -> list[str]:
        """Who else commands the arm. One of ours that was killed is known for a while yet."""
        node = self._topics.node
        found = node.get_publishers_info_by_topic(self._controller)
        names = {info.node_name for info in found} - {node.get_name()}
        ours = re.compile(rf"{re.escape(self._name)}_(\d+)")
        killed = {name for name in names if (pid := ours.fullmatch(name))
                  and not Path(f"/proc/{pid[1]}").exists()}  # fmt: skip
        return sorted(names - killed)

    def _astray(self, now: int) -> str:
        """Which joint is not where it was told to be, "" when none is."""
        q = self._measured[0]
        since = self._measured_ns - TRACE_S * 1e9
        told = np.array([r for at, r in self._trace if since <= at] or [self._course.at(now)[0]])
        # Between what it was told in that time: a joint that stands still has a way as well.
        away = np.maximum(told.min(axis=0) - q, q - told.max(axis=0))
        joint = int(away.argmax())
        if away[joint] <= self._set["follow_rad"]:
            return ""
        return (f"{self._joints[joint]} is {away[joint]:.3f} rad from where it is told to be, more "
                f"than {self._set['follow_rad']:g} rad: {self._controller} does not take "
                "trajectories, or cannot follow them")  # fmt: skip

    def _send(self) -> None:
        """Publish the course, which begins at a time of this machine's clock."""
        course = self._course
        start_ns = _wall_ns(course.start_ns)
        message = JointTrajectory(joint_names=self._joints)
        message.header.stamp = Time(sec=start_ns // 10**9, nanosec=start_ns % 10**9)
        for ns, (q, v, a) in course.points():
            message.points.append(JointTrajectoryPoint(
                positions=q.tolist(), velocities=v.tolist(), accelerations=a.tolist(),
                time_from_start=Duration(sec=ns // 10**9, nanosec=ns % 10**9),
            ))  # fmt: skip
        self._out.publish(message)

    # -- the link --------------------------------------------------------------------------------

    def _listen(self, now: int) -> None:
        """Take what has come; of commands the newest is the one that counts."""
        newest = self._hear(lambda message: self._obey(message, now))
        if newest is not None and self._mode == "following":
            refused = self._course.follow(newest, now)
            self._commanded_ns = now
            self._send()
            if refused:
                self._say({"refused": refused, "seq": newest.seq})

    def _obey(self, message: dict[str, Any], now: int) -> None:
        what, following = message.get("do"), self._mode == "following"
        if what == "start":
            if self._mode == "idle":
                self._start = True
            elif not following:
                self._say({"refused": f"start: the arm is in mode {self._mode}", "seq": -1})
        elif what == "hold":
            self._start = False
            if following:
                self._course.brake(now)
                self._send()
        elif what == "go_to" and following:
            refused = self._course.go_to(message["q"], message["share"], now)
            self._send()
            if refused:
                self._say({"refused": refused, "seq": -1})
        elif what == "go_on" and following:
            if self._course.go_on(now):
                self._send()
        elif what == "recover":
            self._recover = True

    def _report(self, now: int) -> None:
        if self._gone or self._mode not in ("idle", "following", "stopping"):
            return
        if self._course.lapsed:
            why = f"nobody wanted its way to go on for {RENEW_S:g} s: it brakes"
            self._course.lapsed = not self._say({"lapsed": why})
        if self._stamp_ns == self._last_ns:
            return
        self._last_ns = self._stamp_ns
        at, count = time.monotonic(), self._count
        if at - self._rated[0] > RATED_S:
            self._rate_hz = (count - self._rated[1]) / (at - self._rated[0])
            self._rated = at, count
        q, dq, tau = self._measured
        controlled = self._mode != "idle"
        sent = self._course.at(now)[0] if controlled else q
        waiting = controlled and (now - (self._commanded_ns or now)) / 1e9 > WAITING_S
        # How many commands reach the robot in time is not known here; the rate is that of states.
        self._say(ArmState(
            self._measured_ns, self._measured_ns, self._count, 0, self._course.seq, self._mode,
            waiting, float("nan"), self._rate_hz, q, dq, tau, self._felt[0], sent.copy(),
            self._felt[1],
        ))  # fmt: skip


def _wall_ns(monotonic_ns: int) -> int:
    """What the clock of messages says at a monotonic time."""
    return time.time_ns() - time.monotonic_ns() + monotonic_ns


def main() -> None:
    """Run one arm until the other side of the link ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link.of(int(sys.argv[1]))
    ahead_of_others()
    with last_words(link):
        arm = RosArm(link, link.settings())
        signal.signal(signal.SIGTERM, lambda *_: arm.end())
        arm.run()


if __name__ == "__main__":
    main()
