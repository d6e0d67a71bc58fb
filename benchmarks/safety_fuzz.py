# ruff: noqa: T201
"""Bad commands against the safety supervisor: `python benchmarks/safety_fuzz.py --count 100000`.

Every thousand sequences are drawn from `--seed` and their own number, so a long run can be shared
out, or gone on with, by `--first`: what each thousand holds does not depend on where one begins.

Each sequence puts the arms in motion by good commands, does one bad thing, and then executes
whatever the supervisor sends, as an ideal robot would. An oracle that shares nothing with the
supervisor judges what was executed: its limits are typed from the data sheet, its differences are
its own, and its collisions are MuJoCo's. Bars: nothing bad executed; the arms slow down from the
next control period on and come to rest. Exit status 1 when a bar is missed.

In some sequences what is sent to stop the arms comes late. When the supervisor knows, nothing else
may be different; when it does not, a jump is bound to come, which is for the robot's own driver to
smooth: then only where the arms go counts, and that they are not thrown about.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.bags import cdr
from bench_tasks.robots.fr3 import HOME_RAD, JOINT_NAMES
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import ActionChunk, Scene, WorldState
from hardware.safety import Decision, Supervisor
from hardware.safety.limits import Limits, read_limits
from sim.scene import build_cell

import mujoco  # isort: skip  # after sim, which chooses its renderer

DT = 0.02
CHUNK = 25
JOINTS, HANDS = np.r_[0:7, 8:15], np.array([7, 15])
LOW = np.tile([-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159], 2)
HIGH = np.tile([2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159], 2)
FASTEST = np.tile([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26], 2)
ACCELERATION, JERK = 10.0, 5000.0
ENTITIES = ("table", "left_hand", "left_finger1", "block") + tuple(
    f"right_{part}" for part in ("arm", "hand", "finger1", "finger2")
)
SCENE = Scene(
    "fuzz", 1, 0, "", (), ENTITIES, JOINT_NAMES, {}, control_period_ns=20_000_000
)  # fmt: skip
STOP_PERIODS = 45
DEEPEST_M = 0.004
"""Convex hulls may overlap the table by 2 mm, and MuJoCo's contacts are not exact either."""


# -- an ideal robot ------------------------------------------------------------------------------


class Robot:
    """Executes what the supervisor sends; holds its last command when there is nothing."""

    def __init__(self, supervisor: Supervisor, command: np.ndarray) -> None:
        """At rest at `command` (16,), with its first state told."""
        self.supervisor, self.seq, self.now_s = supervisor, 0, 0.0
        self.executed = [command.copy()]
        self.chunk: ActionChunk | None = None
        self.late_periods, self.expected = 0, True
        """How late orders come, and whether the supervisor knows it."""
        self.misread = np.zeros(16)
        """How far the command that a state tells of is off the one that was executed."""
        self.mail: list[tuple[int, ActionChunk]] = []
        self.decisions: list[Decision] = []
        supervisor.begin(SCENE)
        self.tell(self.state())

    def state(self, **changed) -> WorldState:
        """The present state: the arms are where they were told to be."""
        command = self.executed[-1]
        before = self.executed[-2] if len(self.executed) > 1 else command
        known = {
            "joint_position": command[JOINTS], "joint_effort": np.zeros(14),
            "joint_velocity": (command - before)[JOINTS] / DT,
            "gripper_opening": command[HANDS], "ee_pose": np.zeros((2, 7)),
            "command": command + self.misread,
            "object_pose": np.zeros((0, 7)), "object_twist": np.zeros((0, 6)),
            "contact_pair": np.zeros((0, 2), np.uint16), "contact_force": np.zeros(0),
        }  # fmt: skip
        return WorldState(self.seq, self.seq * 20_000_000, **{**known, **changed})

    def take(self, decision: Decision) -> Decision:
        """Follow a decision; a chunk that is sent replaces the one before."""
        self.decisions.append(decision)
        if decision.send is not None:
            self.mail.append((self.seq + self.late_periods, decision.send))
            self.open_mail()
        return decision

    def open_mail(self) -> None:
        """Take what has come by now, as a world's node does: not what is over already."""
        while self.mail and self.mail[0][0] <= self.seq:
            chunk = self.mail.pop(0)[1]
            if 0 <= self.seq - chunk.seq < len(chunk.values):
                self.chunk = chunk

    def tell(self, state: WorldState) -> Decision:
        """Publish a state."""
        return self.take(self.supervisor.on_state(state, self.now_s))

    def ask(self, seq: int, values) -> Decision:
        """Somebody's command."""
        return self.take(self.supervisor.on_chunk(ActionChunk(seq, values), self.now_s))

    def step(self, publish: bool = True, tick: bool = True, **changed) -> None:
        """One control period; without `tick` the supervisor's timer does not run."""
        self.open_mail()
        action = self.executed[-1]
        if self.chunk is not None:
            index = self.seq - self.chunk.seq
            if 0 <= index < len(self.chunk.values):
                action = self.chunk.values[index]
        self.executed.append(np.array(action, dtype=float))
        self.seq, self.now_s = self.seq + 1, self.now_s + DT
        if publish:
            self.tell(self.state(**changed))
        if tick:
            self.take(self.supervisor.on_time(self.now_s))

    def twin(self) -> Robot:
        """The same situation, to be continued otherwise. The supervisor mutates no array."""
        other = copy.copy(self)
        other.supervisor = copy.copy(self.supervisor)
        other.supervisor._plan = copy.copy(self.supervisor._plan)
        other.executed, other.decisions, other.mail = list(self.executed), [], list(self.mail)
        return other


# -- the oracle ----------------------------------------------------------------------------------


def fastest(q: np.ndarray, up: bool) -> np.ndarray:
    """Greatest speeds at positions (n, 14) towards one end, written out from the data sheet."""
    a = np.tile([0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35], 2)
    b = np.tile([12.0, 5.17, 7.0, 8.0, 34.0, 11.0, 34.0], 2)
    if up:
        left = np.tile([2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196], 2) - q
    else:
        left = np.tile([2.7501, 1.7918, 2.9065, 3.0481, 2.8101, -0.54092, 3.0196], 2) + q
    return np.minimum(FASTEST, np.maximum(0.0, np.sqrt(b * np.maximum(0.0, left)) - a))


class Oracle:
    """Says what is wrong with commands that were executed, each after the other."""

    def __init__(self) -> None:
        """Build the simulated cell, whose contacts count as collisions."""
        self.model = build_cell(()).model
        self.data = mujoco.MjData(self.model)
        model, arms = self.model, ("left", "right")
        joints = [f"{arm}_fr3_joint{i}" for arm in arms for i in range(1, 8)]
        self.q = np.array([model.joint(n).qposadr[0] for n in joints])
        fingers = [[f"{arm}_finger_joint{k}" for k in (1, 2)] for arm in arms]
        self.f = np.array([[model.joint(n).qposadr[0] for n in pair] for pair in fingers])
        self.tcp = [model.site(f"{arm}_tcp").id for arm in arms]

    def wrong(
        self, commands: np.ndarray, boxes=None, jerk: float = JERK, smooth: bool = True
    ) -> str:
        """Why the commands (n, 16) are bad; "" when they are not. Whole paths, from rest.

        Not `smooth`: only where they go is judged.
        """
        if not np.isfinite(commands).all():
            return "not finite"
        q = commands[:, JOINTS]
        if (q < LOW - 1e-9).any() or (q > HIGH + 1e-9).any():
            return "position"
        if (commands[:, HANDS] < -1e-6).any() or (commands[:, HANDS] > 0.08 + 1e-6).any():
            return "gripper"
        return (self.rough(q, jerk) if smooth else "") or self.in_the_way(commands, boxes)

    def rough(self, q: np.ndarray, jerk: float) -> str:
        """Which limit of the joints' motion (n, 14) is exceeded."""
        v = (q[1:] - q[:-1]) / DT
        if (v > fastest(q[1:], True) + 1e-6).any() or (-v > fastest(q[1:], False) + 1e-6).any():
            return "velocity"
        a = (v[1:] - v[:-1]) / DT
        if np.abs(a).max(initial=0.0) > ACCELERATION + 1e-6:
            return f"acceleration {np.abs(a).max():.1f}"
        if np.abs(np.diff(a, axis=0)).max(initial=0.0) / DT > jerk + 1e-3:
            return "jerk"
        return ""

    def in_the_way(self, commands: np.ndarray, boxes) -> str:
        """What is hit or left along the way, and half way between, so that nothing is missed."""
        middle = (commands[1:] + commands[:-1]) / 2
        moved = (commands[1:] != commands[:-1]).any(axis=1)
        for row in np.concatenate([commands[1:][moved], middle[moved]]):
            found = self.touches(row) or self.outside(row, boxes)
            if found:
                return found
        return ""

    def touches(self, command: np.ndarray) -> str:
        """What touches what, deeper than hulls may."""
        self.data.qpos[self.q] = command[JOINTS]
        self.data.qpos[self.f] = command[HANDS][:, None] / 2
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        for k in range(self.data.ncon):
            contact = self.data.contact[k]
            if contact.dist < -DEEPEST_M:
                bodies = [self.model.body(self.model.geom_bodyid[g]).name for g in contact.geom]
                return f"collision {bodies} {contact.dist * 1e3:.1f} mm"
        return ""

    def outside(self, command: np.ndarray, boxes) -> str:
        """Whether a hand is out of its box; `touches` has put the arms there."""
        for k, site in enumerate(self.tcp):
            point = self.data.site_xpos[site]
            low, high = boxes[k] if boxes is not None else ((-0.1, -1.15, 0.0), (1.0, 1.15, 1.2))
            if (point < np.array(low) - 1e-4).any() or (point > np.array(high) + 1e-4).any():
                return f"workspace {point.round(3)}"
        return ""


@cache
def oracle() -> Oracle:
    """The one of this process: it takes a second to build."""
    return Oracle()


@cache
def loaded() -> tuple[Limits, Supervisor]:
    """Limits, and a supervisor that has been told nothing yet."""
    limits = read_limits("fr3_pair")
    return limits, Supervisor(limits, realtime=True, confirmed=True)


# -- situations ----------------------------------------------------------------------------------


def min_jerk(begin: np.ndarray, end: np.ndarray, periods: int) -> np.ndarray:
    """Commands (periods, 16) from rest to rest."""
    u = (np.arange(1, periods + 1) / periods)[:, None]
    return begin + (10 * u**3 - 15 * u**4 + 6 * u**5) * (end - begin)


def action(joints: np.ndarray, opening: float) -> np.ndarray:
    """An action (16,) of joint positions (14,)."""
    found = np.full(16, opening)
    found[JOINTS] = joints
    return found


def calm(begin: np.ndarray, end: np.ndarray) -> int:
    """Periods in which that motion keeps well within the limits."""
    span = np.abs(end - begin)[JOINTS]
    return max(30, int(1.875 * (span / (0.5 * FASTEST)).max() / DT),
               int(np.sqrt(5.774 * span.max() / 5.0) / DT))  # fmt: skip


@dataclass
class Situation:
    """Arms in motion on a good path, and what of it is to come (n, 16)."""

    robot: Robot
    ahead: np.ndarray


class Maker:
    """Draws situations."""

    def __init__(
        self, rng: np.random.Generator, limits: Limits, supervisor: Supervisor
    ) -> None:
        """Everything is drawn from `rng`; the supervisor is copied for each robot."""
        self.rng, self.limits, self.supervisor = rng, limits, supervisor
        self.arms = dual_arm()

    def free(self, spread: float) -> np.ndarray:
        """A random action that is free of collisions, well above the table."""
        while True:
            joints = np.tile(HOME_RAD, 2) + self.rng.uniform(-spread, spread, 14)
            joints = np.clip(joints, LOW + 0.2, HIGH - 0.2)
            low = min(self.arms.forward(arm, joints[7 * k : 7 * k + 7])[2]
                      for k, arm in enumerate(("left", "right")))  # fmt: skip
            if low > 0.15 and self.arms.collision(joints[:7], joints[7:]) is None:
                return action(joints, float(self.rng.uniform(0.0, 0.08)))

    def moving(self) -> Situation:
        """In motion, a chunk of the path having been passed on."""
        while True:
            begin, end = self.free(0.45), self.free(0.45)
            path = min_jerk(begin, end, calm(begin, end))
            robot = Robot(copy.copy(self.supervisor), begin)
            first = robot.ask(0, path[:CHUNK])
            if first.interventions or first.send is None:
                continue  # two free places can have something between them
            done = int(self.rng.integers(8, CHUNK - 3))
            for _ in range(done):
                robot.step()
            if any(d.interventions for d in robot.decisions) or len(path) < done + CHUNK:
                continue
            return Situation(robot, path[done:])


# -- what is done wrong --------------------------------------------------------------------------


def spoilt(kind: str, good: np.ndarray, command: np.ndarray, rng: np.random.Generator):
    """The chunk that is asked for instead of the good one (n, 16), starting behind `command`."""
    bad = good[:CHUNK].copy()
    row, column = int(rng.integers(len(bad))), int(rng.integers(16))
    arm_columns = JOINTS[int(rng.integers(14))]
    if kind == "not finite":
        bad[row, column] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind == "length":
        return [bad[:, :15], bad[:, :14], np.zeros((5, 17)), np.zeros((0, 16)), bad.ravel(),
                np.tile(command, (300, 1)), np.zeros((2, 3, 16))][int(rng.integers(7))]  # fmt: skip
    elif kind == "not numbers":
        return [[["a"] * 16], None, "open", [[1.0], [1.0, 2.0]], {"x": 1}][int(rng.integers(5))]
    elif kind == "order":
        orders = (np.r_[8:16, 0:8], np.r_[6:-1:-1, 7, 14:7:-1, 15], np.arange(15, -1, -1),
                  np.r_[0:7, 8:15, 7, 15], rng.permutation(16))  # fmt: skip
        bad = bad[:, orders[int(rng.integers(len(orders)))]]
    elif kind == "degrees":
        bad[:, JOINTS] = np.rad2deg(bad[:, JOINTS])
    elif kind == "millimetres":
        bad[:, HANDS] = 1e3 * bad[:, HANDS] + 1.0
    elif kind == "position":
        joint = int(rng.integers(14))
        # Not by the end's sign: joint 4 bends one way only.
        end, beyond = (HIGH[joint], 1) if rng.random() < 0.5 else (LOW[joint], -1)
        bad[row:, JOINTS[joint]] = end + beyond * rng.uniform(1e-3, 1.0)
    elif kind == "jump":
        bad[row:, arm_columns] += rng.choice([-1, 1]) * rng.uniform(0.02, 1.0)
    elif kind == "velocity":
        factor = rng.uniform(1.5, 6.0)
        last = command + factor * (good[min(len(good), CHUNK) - 1] - command)
        bad = command + (last - command) * (np.arange(1, CHUNK + 1) / CHUNK)[:, None]
        bad[:, HANDS] = command[HANDS]
    elif kind == "acceleration":
        bad[row:, arm_columns] += rng.uniform(0.005, 0.05) * (-1.0) ** np.arange(len(bad) - row)
    return bad


SPOILT = ("not finite", "length", "not numbers", "order", "degrees", "millimetres", "position",
          "jump", "velocity", "acceleration")  # fmt: skip
UNTIMELY = ("stale", "future", "out of order", "replayed")
MEASURED = ("torque", "force", "overspeed", "tracking", "bad state")
OTHER = ("e-stop", "no state", "frozen state", "silence", "not confirmed", "no limits", "jerk",
         "workspace", "arms together", "into the table", "wrong message", "stalled world",
         "wild number")  # fmt: skip
BLOCK = 1000
LATE, MOST_LATE = 0.25, 3
"""Share of sequences, of the kinds that stop the arms, in which orders come late; periods."""
KINDS = (*SPOILT, *UNTIMELY, *MEASURED, *OTHER)


class Fuzz:
    """Runs sequences and counts what went wrong."""

    def __init__(self, seed: int | tuple[int, int], per_situation: int = 20) -> None:
        """A new situation is drawn after so many sequences."""
        self.begin(seed)
        self.per = per_situation
        self.oracle = oracle()
        self.counts: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.failures: list[str] = []
        self.slowest_stop = self.late = 0

    def begin(self, seed: int | tuple[int, int]) -> None:
        """Draw from this seed from now on."""
        self.rng = np.random.default_rng(seed)
        self.limits, supervisor = loaded()
        self.maker = Maker(self.rng, self.limits, supervisor)
        self.situation: Situation | None = None
        self.used = 0

    def run(self, kind: str) -> None:
        """One sequence with one bad thing of this kind."""
        if self.situation is None or self.used >= self.per:
            self.situation, self.used = self.maker.moving(), 0
        self.used += 1
        self.counts[kind] += 1
        robot, ahead = self.situation.robot.twin(), self.situation.ahead
        begun, before = len(robot.executed) - 1, _speed(robot.executed)
        how: dict = {}
        stops = kind in SPOILT or kind in MEASURED or kind == "e-stop"
        if stops and self.rng.random() < LATE:
            robot.late_periods = int(self.rng.integers(1, MOST_LATE + 1))
            self.late += 1
            robot.expected = bool(self.rng.random() < 0.5)
            if robot.expected:  # then the arms must not notice
                robot.supervisor._plan.lead = robot.late_periods
        if kind in SPOILT:
            robot.ask(robot.seq, spoilt(kind, ahead, robot.executed[-1], self.rng))
        elif kind in UNTIMELY:
            self._untimely(kind, robot, ahead)
        elif kind in MEASURED:
            self._measured(kind, robot)
            begun, before = begun + 1, _speed(robot.executed)
        else:
            how = getattr(self, "_" + kind.replace(" ", "_").replace("-", "_"))(robot, ahead)
            begun += how.pop("later", 0)
        self._finish(kind, robot, begun, before, how)

    # -- kinds -----------------------------------------------------------------------------------

    def _untimely(self, kind: str, robot: Robot, ahead: np.ndarray) -> None:
        seq = {
            "stale": robot.seq - CHUNK - int(self.rng.integers(50)),
            "future": robot.seq + 1 + int(self.rng.integers(50)),
            "out of order": -1 - int(self.rng.integers(3)), "replayed": 0,
        }[kind]  # fmt: skip
        robot.ask(seq, np.concatenate([ahead, np.tile(ahead[-1], (60, 1))])[:CHUNK])

    def _measured(self, kind: str, robot: Robot) -> None:
        joint = int(self.rng.integers(14))
        spike = np.zeros(14)
        if kind == "torque":
            spike[joint] = self.rng.choice([-1, 1]) * (87.0 if joint % 7 < 4 else 12.0)
            changed = {"joint_effort": spike}
        elif kind == "force":
            changed = {"contact_pair": np.array([[0, 1]], np.uint16),
                       "contact_force": np.array([self.rng.uniform(101, 2000)])}  # fmt: skip
        elif kind == "overspeed":
            spike[joint] = FASTEST[joint] * 1.1
            changed = {"joint_velocity": spike}
        elif kind == "tracking":
            spike[joint] = self.rng.choice([-1, 1]) * self.rng.uniform(0.3, 0.7)
            changed = {"joint_position": robot.executed[-1][JOINTS] + spike}
        else:
            changed = {"joint_position": np.full(14, np.nan)}
        robot.step(**changed)

    def _e_stop(self, robot: Robot, ahead: np.ndarray) -> dict:
        robot.take(robot.supervisor.stop("estop", "the button", robot.now_s))
        robot.ask(robot.seq, ahead[:CHUNK])  # a good command, too late
        return {}

    def _no_state(self, robot: Robot, ahead: np.ndarray) -> dict:
        robot.supervisor = Supervisor.__new__(Supervisor)
        vars(robot.supervisor).update(vars(copy.copy(self.maker.supervisor)))
        robot.supervisor._forget()
        robot.supervisor.begin(SCENE)
        robot.chunk = None
        robot.executed = [robot.executed[-1]]
        robot.ask(0, ahead[:CHUNK])
        return {"later": -(len(self.situation.robot.executed) - 1), "rest": True}

    def _frozen_state(self, robot: Robot, ahead: np.ndarray) -> dict:
        lost = int(self.rng.integers(6, 40))
        for _ in range(lost):
            robot.step(publish=False, tick=False)
        robot.ask(robot.seq, ahead[:CHUNK])
        return {"later": lost, "dropped": True}

    def _silence(self, robot: Robot, ahead: np.ndarray) -> dict:
        for _ in range(6):  # 100 ms may pass
            robot.step(publish=False)
        return {"later": 6, "dropped": True}

    def _stalled_world(self, robot: Robot, ahead: np.ndarray) -> dict:
        """Its time stands still, everybody else's goes on: it must take what it is sent then."""
        before = robot.chunk
        for _ in range(int(self.rng.integers(7, 40))):
            robot.now_s += DT
            robot.take(robot.supervisor.on_time(robot.now_s))
        if robot.chunk is before:
            self.failures.append("stalled world: it got no stop that it could take")
        return {"dropped": True}

    def _wild_number(self, robot: Robot, ahead: np.ndarray) -> dict:
        seq = robot.seq + int(self.rng.choice([251, 10_000, 2**32, 2**40, 2**62]))
        robot.tell(replace(robot.state(), seq=seq))
        robot.ask(robot.seq, ahead[:CHUNK])
        return {}

    def _not_confirmed(self, robot: Robot, ahead: np.ndarray) -> dict:
        robot.supervisor._confirmed = False
        robot.ask(robot.seq, ahead[:CHUNK])
        return {}

    def _no_limits(self, robot: Robot, ahead: np.ndarray) -> dict:
        robot.supervisor = Supervisor(None, realtime=True, confirmed=True)
        robot.supervisor.begin(SCENE)
        robot.chunk, robot.executed = None, [robot.executed[-1]]
        robot.tell(robot.state())
        robot.ask(robot.seq, ahead[:CHUNK])
        return {"later": -(len(self.situation.robot.executed) - 1), "rest": True}

    def _jerk(self, robot: Robot, ahead: np.ndarray) -> dict:
        """Data sheet limits cannot be exceeded at 50 Hz by jerk alone: narrower ones."""
        most = 40.0
        _narrow(robot, replace(self.limits, jerk=np.full(14, most)))
        bad = ahead[:CHUNK].copy()
        row, joint = int(self.rng.integers(2, CHUNK)), JOINTS[int(self.rng.integers(14))]
        bad[row:, joint] += 0.5 * 5.0 * (np.arange(len(bad) - row) * DT) ** 2
        robot.ask(robot.seq, bad)
        # A stop is as quick as the acceleration allows: only what is not a stop counts.
        return {"jerk": most, "unless_stopped": True}

    def _workspace(self, robot: Robot, ahead: np.ndarray) -> dict:
        arms = self.maker.arms
        points = np.array([
            [arms.forward(arm, row[8 * k : 8 * k + 7])[:3] for row in (ahead[0], ahead[CHUNK - 1])]
            for k, arm in enumerate(("left", "right"))
        ])  # fmt: skip
        side = int(np.argmax(np.abs(points[:, 1] - points[:, 0]).max(1)))
        axis = int(np.argmax(np.abs(points[side, 1] - points[side, 0])))
        boxes = np.array([[(-9.0, -9.0, -9.0), (9.0, 9.0, 9.0)]] * 2)
        way = points[side, 1, axis] - points[side, 0, axis]
        # The wall is in the middle of the way; a stop must keep on this side of it.
        boxes[side, 1 if way > 0 else 0, axis] = points[side, 0, axis] + 0.6 * way
        _narrow(robot, replace(
            self.limits, workspace={"left": boxes[:1], "right": boxes[1:]},
        ))  # fmt: skip
        robot.ask(robot.seq, ahead[:CHUNK])
        return {"boxes": boxes}

    def _arms_together(self, robot: Robot, ahead: np.ndarray) -> dict:
        def point() -> dict[str, np.ndarray]:
            same = self.rng.uniform((0.35, -0.1, 0.25), (0.55, 0.1, 0.5))
            return {"left": same, "right": same}

        return self._drive(robot, point)

    def _into_the_table(self, robot: Robot, ahead: np.ndarray) -> dict:
        side = ("left", "right")[int(self.rng.integers(2))]

        def point() -> dict[str, np.ndarray]:
            y = self.rng.uniform(0.1, 0.5) * (1 if side == "left" else -1)
            return {side: np.array([self.rng.uniform(0.35, 0.55), y, -0.06])}

        return self._drive(robot, point)

    def _reaching(self, begin: np.ndarray, points: dict[str, np.ndarray]) -> np.ndarray | None:
        """The action (16,) with the hands at `points`, pointing down; None when one cannot be."""
        towards = begin.copy()
        for arm, point in points.items():
            k = 8 * (arm == "right")
            pose = np.array([*point, 0.0, 1.0, 0.0, 0.0])
            joints = self.maker.arms.inverse(arm, pose, begin[k : k + 7])
            if joints is None:
                return None
            towards[k : k + 7] = joints
        return towards

    def _drive(self, robot: Robot, draw: Callable[[], dict[str, np.ndarray]]) -> dict:
        """The hands, pointing down, by calm chunks to where they must not go, until a no."""
        while _speed(robot.executed) > 0:  # to rest first, by the stop behind the last chunk
            robot.step()
        begin = robot.executed[-1]
        while (towards := self._reaching(begin, draw())) is None:
            pass  # not every point can be reached from every place
        path = min_jerk(begin, towards, calm(begin, towards))
        path = np.concatenate([path, np.tile(path[-1], (CHUNK, 1))])
        start = robot.seq
        for at in range(0, len(path) - CHUNK + 1, CHUNK):
            decision = robot.ask(start + at, path[at : at + CHUNK])
            if any(i.action == "refused" for i in decision.interventions):
                return {"driven": True}
            for _ in range(CHUNK):
                robot.step()
        return {"driven": True, "unspoilt": True}

    def _wrong_message(self, robot: Robot, ahead: np.ndarray) -> dict:
        good = cdr.encode_chunk(ActionChunk(robot.seq, ahead[:CHUNK]), 0, 20_000_000)
        choice = int(self.rng.integers(4))
        if choice == 0:
            bad = good[: int(self.rng.integers(len(good) - 8))]
        elif choice == 1:
            bad = good.replace(b"joint_position", b"joint_velocity")
        elif choice == 2:
            bad = cdr.encode_chunk(ActionChunk(robot.seq, ahead[:CHUNK]), 0, 10_000_000)
        else:
            bad = bytes(self.rng.integers(0, 256, 300, dtype=np.uint8))
        robot.take(robot.supervisor.on_message(bad, robot.now_s))
        return {}

    # -- judging ---------------------------------------------------------------------------------

    def _finish(self, kind: str, robot: Robot, begun: int, before: float, how: dict) -> None:
        """Let the robot go on, and judge."""
        told = [i for d in robot.decisions for i in d.interventions]
        for _ in range(STOP_PERIODS):
            robot.step()
        self.actions.update({i.action for i in told})
        commands = np.array(robot.executed)
        slowed = any(i.action == "slowed" for i in told)
        dropped = kind in UNTIMELY or how.get("dropped", False)
        jerk = how.get("jerk", JERK) if slowed or not how.get("unless_stopped") else JERK
        why = self.oracle.wrong(commands[max(0, begun - 3) :] if not how.get("driven")
                                else commands, how.get("boxes"), jerk,
                                robot.expected)  # fmt: skip
        if not why and not told and not how.get("unspoilt"):
            # Passed on as it was: only what the oracle finds nothing wrong with may be.
            why = "" if kind in ("jump", "acceleration", "order", "jerk", "workspace",
                                 "velocity") else "passed on"  # fmt: skip
        speeds = np.abs(np.diff(commands[:, JOINTS], axis=0)).max(1) / DT
        if not why and not slowed and not robot.expected:
            # A jump or two until the supervisor has noticed, but not for ever.
            then = begun + robot.late_periods
            wild = speeds[then + robot.late_periods + 2 :].max()
            if wild > 2.0 * speeds[begun - 1 : then].max() + 1e-9:
                why = f"thrown to and fro, {wild:.2f} rad/s"
        begun += robot.late_periods
        if not why and not slowed and told and not how.get("driven") and robot.expected:
            if robot.late_periods:
                before = speeds[begun - 1]
            after = speeds[max(0, begun) :]
            if not dropped and len(after) and after[0] > max(before, 1e-9) + 1e-9:
                why = f"faster after it: {after[0]:.3f} rad/s, before {before:.3f}"
            rest = int(np.flatnonzero(np.append(after, 0.0) > 1e-9)[-1]) + 1 if after.any() else 0
            if not dropped:
                self.slowest_stop = max(self.slowest_stop, rest)
        if not why and speeds[-1] > 1e-9 and not slowed:
            why = f"still moving after {STOP_PERIODS} periods"
        for item in told:
            json.dumps(item.data(), allow_nan=False)
        if why:
            self.failures.append(f"{kind}: {why} ({[(i.action, i.kind) for i in told][:3]})")


def _speed(executed: list[np.ndarray]) -> float:
    return float(np.abs(executed[-1] - executed[-2])[JOINTS].max() / DT) if len(executed) > 1 else 0


def _narrow(robot: Robot, limits: Limits) -> None:
    """Other limits from now on."""
    robot.supervisor._limits = robot.supervisor._plan.limits = limits
    robot.supervisor._clearance = copy.copy(robot.supervisor._clearance)
    robot.supervisor._clearance._limits = limits


def main() -> int:
    """Run the sequences, every kind equally often; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="comma-separated; default: all of them")
    parser.add_argument("--first", type=int, default=0, help=f"where to begin, in whole {BLOCK}s")
    options = parser.parse_args()
    if options.first % BLOCK:
        parser.error(f"--first must be a multiple of {BLOCK}, got {options.first}")
    kinds = options.kinds.split(",") if options.kinds else KINDS
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds {', '.join(sorted(unknown))}: choose from {', '.join(KINDS)}")
    fuzz, begun = Fuzz(options.seed), time.process_time()
    for k in range(options.first, options.first + options.count):
        if k % BLOCK == 0:
            fuzz.begin((options.seed, k // BLOCK))
        fuzz.run(kinds[k % len(kinds)])
        if (k + 1) % BLOCK == 0:
            print(f"{k + 1} sequences, {len(fuzz.failures)} failures, "
                  f"{time.process_time() - begun:.0f} s", flush=True)  # fmt: skip
    for failure in fuzz.failures[:20]:
        print("FAILED", failure)
    print(f"{sum(fuzz.counts.values())} sequences of {len(fuzz.counts)} kinds, "
          f"{fuzz.late} with late orders, "
          f"{len(fuzz.failures)} passed on or not stopped; interventions: {dict(fuzz.actions)}; "
          f"longest stop {fuzz.slowest_stop * DT:.2f} s; "
          f"{(time.process_time() - begun) / max(1, options.count) * 1e3:.1f} ms each")  # fmt: skip
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
