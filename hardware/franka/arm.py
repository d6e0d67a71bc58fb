"""The process of one arm: pylibfranka's 1 kHz loop and nothing else.

pylibfranka holds Python's lock while it waits for the robot, so each arm has a process of its own,
without ROS in it: python -m hardware.franka.arm FD, where FD is its end of a `link` and the
settings are the first message. It follows `Command`s, brakes when they stop, and when the other
side ends it brings the arm to rest, ends the motion and ends itself. It never starts to move again
by itself after the robot has stopped it: that takes `recover` and `start`.

Besides commands it takes {"do": ...}: `start` control, `hold` (to rest, in control), `go_to` with
`q` and `share`, which lasts as long as `go_on` comes every 100 ms (else {"lapsed": why}), and
`recover`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import time
from operator import sub
from typing import Any

import numpy as np
import pylibfranka as franka

from hardware.franka.cartesian import Spring
from hardware.franka.limits import MAX_TORQUE_NM, MAX_TORQUE_RATE_NM_S
from hardware.franka.linked import LinkedArm
from hardware.franka.tracker import CYCLE_S, RENEW_S, Tracker
from hardware.link import ArmState, Link, last_words

__all__ = ["main"]

RETRY_S = 1.0
RATE_CYCLES = 250
"""Over how many cycles the loop's rate is measured."""
TORQUE_STEP_NM = 0.9 * MAX_TORQUE_RATE_NM_S * CYCLE_S
LOST = (franka.NetworkException, franka.RealtimeException, franka.FrankaException)
"""No robot there, no real-time kernel here, or another version of the robot's software."""
REFLEX = re.compile(r'\[((?:"\w+"(?:, *)?)+)\]')
SAME_RAD = 2.5e-6
"""The robot's reference is this near to what it was sent if that came in time.

For a command that is late it guesses, and takes the guess back when the command comes. To go on
from its reference instead of from what was sent was tried: what was under way then made a step.
"""
MAX_LOST = 20
CREEP_RAD_S = 0.02
"""Well below this speed friction is not made up for: an arm that is told to rest is not pushed."""


def reflex_of(text: str) -> str:
    """The names of the errors in what libfranka says of an aborted motion; else its text."""
    found = REFLEX.search(text)
    return found.group(1).replace('"', "") if found else " ".join(text.split())


class Arm(LinkedArm):
    """One robot and its link to the world node."""

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Keep what is needed; `run` connects."""
        super().__init__(link, settings)
        self._tracker = Tracker(settings["max_jump_rad"], settings["speed"])
        self._torque = settings["control"] != "position"
        by_hand = settings["control"] == "cartesian_impedance"
        self._spring = Spring(settings["cartesian"]) if by_hand else None
        self._every = settings["report_every"]
        # Only a simulated robot's time can fall behind ours.
        self._slow, self._own_ns = settings["simulated"], 0
        self._cycles = self._lost = 0
        self._rate_hz, self._rate_at = 1.0 / CYCLE_S, time.perf_counter()
        self._fault = ""
        """Why the robot is out of control; kept until `recover`."""
        self._start = self._recover = False

    def end(self) -> None:
        """Come to rest, end the motion, and then the process."""
        self._end = True

    def run(self) -> None:
        """Serve until told to end, or until the other side is gone."""
        while not self._end:
            try:
                self._connect()
                while not self._end:
                    self._idle()
                    # What was asked for in another mode is not done later.
                    start, self._start = self._start, False
                    if start and self._mode == "idle":
                        self._controlled()
            except LOST as error:
                self._start = self._recover = False
                self._tell("lost", f"no connection: {' '.join(str(error).split())}")
                self._listen_for(RETRY_S)

    def _connect(self) -> None:
        enforce = self._set["realtime"] == "enforce"
        config = franka.RealtimeConfig.kEnforce if enforce else franka.RealtimeConfig.kIgnore
        self._robot = robot = franka.Robot(self._set["address"], config)
        self._model = robot.load_model() if self._torque else None
        self._look_at(robot.read_once())

    def _now_ns(self) -> int:
        """Of the time by which commands are due."""
        return self._own_ns if self._slow else time.monotonic_ns()

    def _configure(self) -> None:
        """Settings that the robot forgets when it is switched off, and refuses while it is stopped.

        CommandException when it does not take them.
        """
        robot, collision, load = self._robot, self._set["collision"], self._set["payload"]
        robot.set_collision_behavior(
            collision["lower_torque_nm"], collision["upper_torque_nm"],
            collision["lower_force_n"], collision["upper_force_n"],
        )  # fmt: skip
        robot.set_load(load["mass_kg"], load["center_m"], load["inertia_kgm2"])
        robot.set_joint_impedance(self._set["joint_impedance"])

    # -- without control -------------------------------------------------------------------------

    def _idle(self) -> None:
        """One look at the robot, and at what is asked."""
        self._listen()
        state = self._robot.read_once()
        if self._recover:
            self._recover = False
            self._do_recover(state)
            state = self._robot.read_once()
        self._look_at(state)
        self._tracker.reset(state.q)
        self._report(state, state.q)

    def _look_at(self, state: Any) -> None:
        """What the robot says of itself while it is not controlled."""
        self._own_ns = round(state.time.to_sec() * 1e9)
        mode = state.robot_mode
        if mode == franka.RobotMode.Idle:
            self._tell("fault" if self._fault else "idle", self._fault)
        elif mode == franka.RobotMode.Reflex:
            named = str(state.current_errors) or str(state.last_motion_errors)
            names = re.findall(r"\w+", named)
            self._tell("fault", self._fault or ", ".join(names) or "reflex")
        elif mode != franka.RobotMode.Move:
            self._tell("fault", f"the robot is in mode {mode.name}")

    def _do_recover(self, state: Any) -> None:
        try:
            if state.robot_mode != franka.RobotMode.Idle:
                self._robot.automatic_error_recovery()
        except (franka.CommandException, franka.ControlException) as error:
            self._fault = f"recovery failed: {reflex_of(str(error))}"
            return
        self._fault = ""

    # -- in control ------------------------------------------------------------------------------

    def _controlled(self) -> None:
        try:
            self._configure()
            if self._torque:
                control = self._robot.start_torque_control()
            else:
                control = self._robot.start_joint_position_control(
                    franka.ControllerMode.JointImpedance
                )
            self._loop(control, self._torque)
            self._tell("idle", "")
        except (franka.ControlException, franka.CommandException,
                franka.InvalidOperationException, ArithmeticError) as error:  # fmt: skip
            self._fault = reflex_of(str(error))
            self._tell("fault", self._fault)
            if isinstance(error, ArithmeticError):
                with contextlib.suppress(Exception):
                    self._robot.stop()

    def _loop(self, control: Any, torque: bool) -> None:
        tracker = self._tracker
        state, _ = control.readOnce()
        self._own_ns = round(state.time.to_sec() * 1e9)
        tracker.reset(state.q if torque else state.q_d)
        sent = np.zeros(7)
        self._tell("following", "")
        while True:
            self._listen()
            resting = self._gone or self._end
            if resting:
                tracker.brake()
                if self._mode != "stopping":
                    self._tell("stopping", "")
            finished = resting and tracker.at_rest
            if torque:
                sent = self._torques(state, sent)
                answer = franka.Torques(sent.tolist())
            else:
                answer = franka.JointPositions(tracker.position)
            if finished:
                answer.motion_finished = True
                control.writeOnce(answer)
                return
            control.writeOnce(answer)
            state, duration = control.readOnce()
            self._own_ns = round(state.time.to_sec() * 1e9)
            # Through cycles that it was not heard in, the robot has gone on by itself.
            for _ in range(1, min(MAX_LOST, round(duration.to_sec() / CYCLE_S))):
                tracker.step()
            if not torque and max(map(abs, map(sub, state.q_d, tracker.position))) > SAME_RAD:
                self._lost += 1
            tracker.step()
            self._report(state, tracker.position)

    def _torques(self, state: Any, last: np.ndarray) -> np.ndarray:
        """Springs and dampers towards the reference; the robot adds gravity itself."""
        away = np.asarray(self._tracker.position) - state.q
        slip = np.asarray(self._tracker.velocity) - state.dq
        if self._spring is None:
            wanted = self._set["stiffness"] * away + self._set["damping"] * slip
        else:
            jacobian = np.reshape(self._model.zero_jacobian(state), (7, 6)).T
            wanted = self._spring.torques(jacobian, away, slip)
        # By what it is told to do, not by what it does: that would feed back, and tremble.
        wanted += self._set["friction_nm"] * np.tanh(np.divide(self._tracker.velocity, CREEP_RAD_S))
        wanted = np.clip(wanted + self._model.coriolis(state), -MAX_TORQUE_NM, MAX_TORQUE_NM)
        return last + np.clip(wanted - last, -TORQUE_STEP_NM, TORQUE_STEP_NM)

    # -- the link --------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Take what has come; of commands the newest is the one that counts."""
        newest = self._hear(self._obey)
        if newest is not None and self._mode == "following":
            refused = self._tracker.command(newest, self._now_ns())
            if refused:
                self._say({"refused": refused, "seq": newest.seq})

    def _obey(self, message: dict[str, Any]) -> None:
        what = message.get("do")
        if what == "start":
            if self._mode == "idle":
                self._start = True
            elif self._mode != "following":
                self._say({"refused": f"start: the arm is in mode {self._mode}", "seq": -1})
        elif what == "hold":
            self._start = False
            self._tracker.brake()
        elif what == "go_to" and self._mode == "following":
            refused = self._tracker.go_to(message["q"], message["share"])
            if refused:
                self._say({"refused": refused, "seq": -1})
        elif what == "go_on":
            self._tracker.go_on()
        elif what == "recover":
            self._recover = True

    def _listen_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._end:
            self._listen()
            time.sleep(0.02)

    def _report(self, state: Any, sent: Any) -> None:
        self._cycles += 1
        if self._cycles % RATE_CYCLES == 0:
            now = time.perf_counter()
            self._rate_hz, self._rate_at = RATE_CYCLES / (now - self._rate_at), now
        if self._cycles % self._every or self._gone:
            return
        self._tell(self._mode, self._why)
        if self._tracker.lapsed:
            why = f"nobody wanted its way to go on for {RENEW_S:g} s: it brakes"
            self._tracker.lapsed = not self._say({"lapsed": why})
        self._say(
            ArmState(
                time.monotonic_ns(), self._now_ns(), self._cycles, self._lost, self._tracker.seq,
                self._mode, self._tracker.waiting, state.control_command_success_rate,
                self._rate_hz, state.q, state.dq, state.tau_J, state.tau_ext_hat_filtered, sent,
                state.O_F_ext_hat_K,
            )
        )  # fmt: skip


def main() -> None:
    """Run one arm until the other side of the link ends."""
    # Ctrl-C reaches the whole group; the arm must come to rest first, which `Gone` brings about.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link.of(int(sys.argv[1]))
    with last_words(link):
        _serve(link, link.settings())


def _serve(link: Link, settings: dict[str, Any]) -> None:
    arm = Arm(link, settings)
    signal.signal(signal.SIGTERM, lambda *_: arm.end())
    if settings["realtime"] == "enforce":
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
    # The collector stops the loop for longer than a cycle; nothing here makes cycles of objects.
    gc.collect()
    gc.freeze()
    gc.disable()
    arm.run()


if __name__ == "__main__":
    main()
