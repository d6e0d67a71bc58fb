"""Kinds of things that happen to arms in motion: what is measured, told or heard is wrong."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.safety.oracle import FASTEST
from benchmarks.safety.robot import DT, JOINTS, SCENE
from benchmarks.safety.situations import CHUNK, Case
from hardware.safety import Supervisor

__all__ = ["E_STOP", "LOST", "MEASURED", "TOLD"]


def measured(kind: str, case: Case) -> None:
    """In one state."""
    robot, rng = case.robot, case.rng
    joint, spike = int(rng.integers(14)), np.zeros(14)
    if kind == "torque":
        spike[joint] = rng.choice([-1, 1]) * (87.0 if joint % 7 < 4 else 12.0)
        changed = {"joint_effort": spike}
    elif kind == "force":
        changed = {"contact_pair": np.array([[0, 1]], np.uint16),
                   "contact_force": np.array([rng.uniform(101, 2000)])}  # fmt: skip
    elif kind == "overspeed":
        spike[joint] = FASTEST[joint] * 1.1
        changed = {"joint_velocity": spike}
    elif kind == "tracking":
        spike[joint] = rng.choice([-1, 1]) * rng.uniform(0.3, 0.7)
        changed = {"joint_position": robot.executed[-1][JOINTS] + spike}
    else:
        changed = {"joint_position": np.full(14, np.nan)}
    robot.step(**changed)
    case.now()


def e_stop(case: Case) -> None:
    """And a good command, too late."""
    press(case)
    case.ask()


def press(case: Case) -> None:
    """The button."""
    robot = case.robot
    robot.take(robot.supervisor.stop("estop", "the button", robot.now_s))


# -- states that do not come, or are wrong -------------------------------------------------------


def no_state(case: Case) -> None:
    """There never was one."""
    robot, case.begun = case.robot, 0
    robot.supervisor = Supervisor.__new__(Supervisor)
    vars(robot.supervisor).update(vars(copy.copy(case.maker.supervisor)))
    robot.supervisor._forget()
    robot.supervisor.begin(SCENE)
    robot.chunk = None
    robot.executed = [robot.executed[-1]]
    robot.ask(0, case.ahead[:CHUNK])


def frozen_state(case: Case) -> None:
    """They cease, and nobody looks at the clock until a command comes."""
    lost = int(case.rng.integers(6, 40))
    for _ in range(lost):
        case.robot.step(publish=False, tick=False)
    case.ask()
    case.begun, case.unhurried = case.begun + lost, True


def silence(case: Case) -> None:
    """They cease; 100 ms may pass."""
    for _ in range(6):
        case.robot.step(publish=False)
    case.begun, case.unhurried = case.begun + 6, True


def stalled_world(case: Case) -> None:
    """Its time stands still, everybody else's goes on: it must take what it is sent then."""
    robot, before = case.robot, case.robot.chunk
    for _ in range(int(case.rng.integers(7, 40))):
        robot.now_s += DT
        robot.take(robot.supervisor.on_time(robot.now_s))
    if robot.chunk is before:
        case.failure = "it got no stop that it could take"
    case.unhurried = True


def wild_number(case: Case) -> None:
    """Of a state."""
    robot = case.robot
    seq = robot.seq + int(case.rng.choice([251, 10_000, 2**32, 2**40, 2**62]))
    robot.tell(replace(robot.state(), seq=seq))
    case.ask()


def lost_states(case: Case) -> None:
    """Up to half of them, while good commands come; it is stopped after one that was lost."""
    robot, rng, start = case.robot, case.rng, case.robot.seq
    share, periods = rng.uniform(0.0, 0.5), int(rng.integers(1, 25))
    path = np.concatenate([case.ahead, np.tile(case.ahead[-1], (periods + CHUNK, 1))])
    for k in range(periods):
        if rng.random() < 0.3:
            robot.ask(start + k, path[k : k + CHUNK])
        robot.step(publish=rng.random() >= share)
    robot.step(publish=False)
    case.now()
    if rng.random() < 0.5:
        press(case)
    else:
        robot.take(robot.supervisor.lost("node /policy is gone", robot.now_s))


def wrong_state(case: Case) -> None:
    """One tells of a command that was none; it is stopped by then, a period later or not at all."""
    robot, rng = case.robot, case.rng
    robot.misread = np.zeros(16)
    columns = JOINTS if rng.random() < 0.3 else JOINTS[int(rng.integers(14))]
    robot.misread[columns] = rng.choice([-1, 1]) * rng.uniform(0.01, 0.3)
    robot.step()
    robot.misread = np.zeros(16)
    then = int(rng.integers(3))
    if then == 2:
        robot.step()
    case.now()
    if then:
        press(case)
    case.unhurried = not then


# -- what must be there before anything moves ----------------------------------------------------


def not_confirmed(case: Case) -> None:
    """By any human."""
    case.robot.supervisor._confirmed = False
    case.ask()


def no_limits(case: Case) -> None:
    """Of the robot."""
    robot, case.begun = case.robot, 0
    robot.supervisor = Supervisor(None, realtime=True, confirmed=True)
    robot.supervisor.begin(SCENE)
    robot.chunk, robot.executed = None, [robot.executed[-1]]
    robot.tell(robot.state())
    case.ask()


MEASURED = {
    kind: partial(measured, kind)
    for kind in ("torque", "force", "overspeed", "tracking", "bad state")
}
E_STOP = {"e-stop": e_stop}
TOLD = {
    "no state": no_state, "frozen state": frozen_state, "silence": silence,
    "not confirmed": not_confirmed, "no limits": no_limits, "stalled world": stalled_world,
    "wild number": wild_number,
}  # fmt: skip
LOST = {"lost states": lost_states, "wrong state": wrong_state}
