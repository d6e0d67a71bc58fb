"""In place of Franka's client library: an ideal robot and hand in this process, made to misbehave.

What goes wrong is a file of that name in the folder that the environment's FAKE_FRANKA names:
`settings`, `crash`, `kernel`, `version`, `reflex`, `unplugged`, `stuck`, `short` (fingers do not
move, and that is a no), `jammed` (and that is an exception) or `blocked` (at 0.05 m), only for
robots whose address it holds.
"""

import enum
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HOME = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]
calls = []
"""All that any robot or hand here was told, in order."""


class NetworkException(RuntimeError):
    pass


class RealtimeException(RuntimeError):
    pass


class FrankaException(Exception):
    pass


class CommandException(RuntimeError):
    pass


class ControlException(RuntimeError):
    pass


class InvalidOperationException(RuntimeError):
    pass


RobotMode = enum.Enum("RobotMode", "Other Idle Move Guiding Reflex UserStopped")
RealtimeConfig = enum.Enum("RealtimeConfig", "kEnforce kIgnore")
ControllerMode = enum.Enum("ControllerMode", "JointImpedance CartesianImpedance")


class JointPositions:
    motion_finished = False

    def __init__(self, q):
        self.q = list(q)


def wrong(what, address):
    path = Path(os.environ["FAKE_FRANKA"]) / what
    return path.exists() and address in path.read_text()


class Robot:
    def __init__(self, address, realtime):
        self.address, self.q, self.mode, self.errors = address, list(HOME), RobotMode.Idle, ""
        self.cycles = 0
        if wrong("kernel", address):
            raise RealtimeException("libfranka: Running kernel has no realtime capabilities")
        if wrong("version", address):
            raise FrankaException("libfranka: Incompatible library version")

    def _told(self, name, *values):
        calls.append((name, *values))
        if wrong("settings", self.address):
            raise CommandException(f"libfranka: {name} command rejected")

    def set_collision_behavior(self, *limits):
        self._told("collision", *limits)

    def set_load(self, *load):
        self._told("load", *load)

    def set_joint_impedance(self, stiffness):
        self._told("impedance", stiffness)

    def automatic_error_recovery(self):
        calls.append(("recovery",))
        self.mode, self.errors = RobotMode.Idle, ""

    def read_once(self):
        time.sleep(0.001)
        if wrong("crash", self.address):
            raise ValueError("something nobody thought of")
        if wrong("unplugged", self.address):
            raise NetworkException("libfranka: UDP receive: Timeout")
        self.cycles += 1
        time_s = self.cycles / 1000
        return SimpleNamespace(
            time=SimpleNamespace(to_sec=lambda: time_s), q=np.array(self.q),
            q_d=np.array(self.q), dq=np.zeros(7), tau_J=np.zeros(7),
            tau_ext_hat_filtered=np.zeros(7), O_F_ext_hat_K=np.zeros(6),
            control_command_success_rate=1.0, robot_mode=self.mode, current_errors=self.errors,
            last_motion_errors="",
        )  # fmt: skip

    def start_joint_position_control(self, mode):
        calls.append(("control",))
        self.mode = RobotMode.Move
        return Control(self)


class Control:
    def __init__(self, robot):
        self.robot = robot

    def readOnce(self):
        if wrong("reflex", self.robot.address):
            self.robot.mode, self.robot.errors = RobotMode.Reflex, '["joint_reflex"]'
            raise ControlException('motion aborted by reflex! ["joint_reflex"]')
        return self.robot.read_once(), SimpleNamespace(to_sec=lambda: 0.001)

    def writeOnce(self, answer):
        self.robot.q = list(answer.q)
        if answer.motion_finished:
            self.robot.mode = RobotMode.Idle


class Gripper:
    def __init__(self, address):
        self.address, self.width, self.grasped = address, 0.04, False
        if wrong("version", address):
            raise FrankaException("libfranka gripper: Incompatible library version")
        self._reachable()

    def _reachable(self):
        if wrong("unplugged", self.address):
            raise NetworkException("libfranka gripper: Timeout")

    def read_once(self):
        self._reachable()
        return SimpleNamespace(width=self.width, max_width=0.08, is_grasped=self.grasped)

    def _go(self, name, width, speed):
        calls.append((name, width))
        while wrong("stuck", self.address):
            time.sleep(0.01)
        if wrong("jammed", self.address):
            raise CommandException("libfranka gripper: Command aborted!")
        if wrong("short", self.address):
            return False
        if blocked := wrong("blocked", self.address):
            width = max(width, 0.05)
        time.sleep(abs(width - self.width) / speed)
        self.width = width
        return not blocked

    def homing(self):
        return self._go("homing", 0.08, 0.4)

    def move(self, width, speed):
        self.grasped = False
        return self._go("move", width, speed)

    def grasp(self, width, speed, force, inner, outer):
        self.grasped = True
        return self._go("grasp", 0.03, speed)
