"""Executes plans with the G1: hands to poses by IK of waist and arms, corrected on the way.

What HERO (arXiv 2602.16705) does about a body that gives way while the arms move, with the
constants of its released code where they differ from the paper's:

- replanning: every 3 s the goal is taken anew into the frame of the pelvis, which has moved;
- goal adjustment: while a hand is within 0.15 m of its goal, the pose that IK aims at is moved
  against what is left of the error, g <- g - 0.6 e, by at most 1 cm at a time, and no more once
  that is below 1.75 cm.

Without either the arms go where the goal was when they set out. The pelvis sways a little all the
time, and the more, the more the arms answer to it: what goals are taken into is its pose smoothed
over `PELVIS_S`, with which hands sent to one place again and again stray from it by 3 mm, not 11.
HERO's learned corrections of forward kinematics and odometry have no place here: the hands' poses
are known.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments, g1
from bench_tasks.robots.g1 import PELVIS
from bench_tasks.robots.g1_kinematics import upper_body
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import (
    ARMS,
    CONTROL_PERIOD_NS,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
    SkillCall,
)
from policies.motion import slerp

__all__ = ["HumanoidOptions", "HumanoidPolicy"]

CHUNK = 10
REPLAN_S = 3.0
PELVIS_S = 0.5
"""Time constant of the pelvis' pose that goals are taken into."""
ADJUST_GAIN, ADJUST_STEP_M = 0.6, 0.01
ADJUST_WITHIN_M, ADJUST_FROZEN_M = 0.15, 0.0175
PATIENCE_S = 5.0
"""How long a step waits after its motion at most while it corrects."""
MAX_SETTLE_S = 60.0
MISSED_M, PRESSED_SHORT_M = 0.05, 0.15
"""A hand that ends further from its goal has missed it, and a goal to which it cannot come as near
is out of reach. One that presses on an object is meant to end short of a goal inside of it."""
PRESSES_N = 1.0
LINE_STEP_M, LINE_STEP_RAD = 0.02, 0.15
LINE_ERROR_M = 0.01
THERE_M = 0.05
HAND_SPEED_M_S = 0.25
MAX_SPEED_RAD_S = np.concatenate([np.full(g1.WAIST, 0.5), np.full(14, 1.2)])
"""Calm: what the arms do to the balance grows with their acceleration."""
_PERIOD_S = CONTROL_PERIOD_NS * 1e-9
_PEAK_SPEED = 1.875
SKILLS = ("move_to", "move_by", "home", "open", "close")


@dataclass(frozen=True)
class HumanoidOptions:
    """`replan` and `adjust` as at the head of this module; `waist`: whether IK may bend it.

    `settle_s`: how long a step stays on its goal after its motion at least, corrections going on.
    """

    replan: bool = True
    adjust: bool = True
    waist: bool = True
    settle_s: float = 0.4

    def __post_init__(self) -> None:
        """UsageError names a time that no step should take."""
        if not 0.0 <= self.settle_s <= MAX_SETTLE_S:
            raise UsageError(f"policy humanoid: settle_s must be from 0 to {MAX_SETTLE_S:g}, "
                             f"got {self.settle_s:g}")  # fmt: skip


@dataclass
class _Step:
    """A step under way: where the hands are to be in the world, and what IK is told instead.

    `home` are the columns (of waist and arms) that go home meanwhile; `pelvis`: the pose (7,) in
    whose frame the goals are.
    """

    calls: tuple[SkillCall, ...]
    goals: dict[str, np.ndarray]
    home: np.ndarray
    pelvis: np.ndarray
    offset_m: dict[str, np.ndarray] = field(default_factory=dict)
    arrived_s: float | None = None
    planned_s: float = 0.0


class HumanoidPolicy:
    """Runs a plan's steps one after the other, ten actions at a time."""

    Options = HumanoidOptions
    metadata = Metadata("humanoid", "4", privileged=True)
    robots = ("g1",)

    def __init__(self, options: HumanoidOptions | None = None) -> None:
        """Load the kinematics."""
        self._options = options or HumanoidOptions()
        self._arms = upper_body()
        self._robot = embodiments.get("g1")

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; UsageError when the scene is another robot's."""
        if scene.embodiment != self._robot.name:
            raise UsageError(f"policy humanoid moves the g1, {scene.task} has {scene.embodiment}")
        self._scene = scene
        self._steps: list[tuple[SkillCall, ...]] = []
        self._step: _Step | None = None
        self._last: _Step | None = None
        self._pelvis, self._seen_s = np.zeros(7), -np.inf
        self._track = np.zeros((0, len(g1.HOME_RAD)))
        self._completed, self._status = 0, "idle"
        self._sent: dict[str, np.ndarray] = {}
        """Where each hand was last sent, which is not where it is when it presses on something."""

    def accept(self, plan: Plan) -> None:
        """Take a plan; UsageError on a skill that this robot has not."""
        steps = list(plan.checked().steps)
        for call in (call for step in steps for call in step):
            if call.skill not in SKILLS:
                raise UsageError(
                    f"the g1's rubber hands cannot {call.skill}: choose from {', '.join(SKILLS)}"
                )
        self._steps, self._step, self._completed, self._status = steps, None, 0, "done"

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next actions, or say how the plan went."""
        state = observation.state
        view, now_s = View(self._scene, state), state.stamp_ns * 1e-9
        self._smooth(view.pose(PELVIS), now_s)
        reason = {}
        if self._step is not None and len(self._track) == 0:
            reason = self._settle(view, now_s)
        if self._step is None and not reason:
            if not self._steps:
                return self._ask(state.seq, {"status": self._status})
            reason = self._begin(view, self._steps.pop(0), now_s)
        if reason:
            self._steps, self._step = [], None
            return self._ask(state.seq, {"status": "failed", **reason})
        step = self._step
        assert step is not None
        if self._options.replan and now_s - step.planned_s >= REPLAN_S:
            self._replan(view, now_s)
        rows, self._track = self._track[:CHUNK], self._track[CHUNK:]
        if len(rows) == 0:
            rows = np.tile(state.command[self._robot.joint_columns], (CHUNK, 1))
        actions = np.stack([embodiments.with_openings(row, 0.0) for row in rows])
        return ActionChunk(state.seq, actions)

    def _ask(self, seq: int, detail: dict) -> ActionChunk:
        nothing = np.zeros((0, self._robot.action_size))
        return ActionChunk(seq, nothing, True, {**detail, "completed": self._completed, "held": {}})

    # -- a step ----------------------------------------------------------------------------------

    def _begin(self, view: View, calls: tuple[SkillCall, ...], now_s: float) -> dict:
        """Set out; returns why not, {} when all is well."""
        goals = {}
        for call in calls:
            hand = view.state.ee_pose[ARMS.index(call.arm)]
            if call.skill == "move_to":
                goals[call.arm] = np.asarray(call.args["pose"], dtype=np.float64)
            elif call.skill == "move_by":
                goals[call.arm] = self._sent.get(call.arm, hand).copy()
                goals[call.arm][:3] += call.args["offset"]
            self._sent.pop(call.arm, None)
        self._sent |= goals
        last = self._last
        if last is not None and goals and _same(goals, last.goals):
            # What is to stay where it is stays, and is not moved by a hair each time that it is
            # said: what hangs on a hand would swing.
            self._step = replace(last, calls=calls, arrived_s=None)
            return {}
        self._last = None
        self._step = _Step(calls, goals, _homeward(calls), self._pelvis, planned_s=now_s)
        start = view.state.command[self._robot.joint_columns]
        if not goals:
            self._track = _timed(self._homing(np.stack([start, start])))
            return {}
        joints, left = self._solve(start)
        if left > MISSED_M:
            return {
                "reason": f"out of reach: {' and '.join(goals)} hand ends {left:.3f} m short",
                "call": asdict(calls[0]),
            }
        points = self._homing(self._path(start, joints))
        self._track = _timed(points, self._farthest(start) / HAND_SPEED_M_S)
        return {}

    def _homing(self, points: np.ndarray) -> np.ndarray:
        """The way points (m, 17) with those joints on a straight way home that are to go there."""
        assert self._step is not None
        columns, points = self._step.home, points.copy()
        share = np.linspace(0.0, 1.0, len(points))[:, None]
        begin = points[0, columns]
        points[:, columns] = begin + share * (g1.HOME_RAD[columns] - begin)
        return points

    def _aims(self) -> dict[str, np.ndarray]:
        """Poses in the pelvis' frame that IK is to bring the hands to."""
        step = self._step
        assert step is not None
        aims = {}
        for arm, goal in step.goals.items():
            aim = goal.copy()
            aim[:3] += step.offset_m.get(arm, np.zeros(3))
            aims[arm] = compose(invert(step.pelvis), aim)
        return aims

    def _solve(self, start: np.ndarray) -> tuple[np.ndarray, float]:
        aims, waist = self._aims(), self._options.waist
        near, left = self._arms.inverse(aims, start, waist, restarts=0)
        # Hands that are there already do not change to another posture for the last centimetre:
        # they would swing far on the way.
        if left == 0.0 or left <= LINE_ERROR_M and self._farthest(start) <= THERE_M:
            return near, left
        return self._arms.inverse(aims, start, waist)

    def _farthest(self, start: np.ndarray) -> float:
        hands = self._arms.forward(start)
        return max(
            float(np.linalg.norm(hands[ARMS.index(arm), :3] - aim[:3]))
            for arm, aim in self._aims().items()
        )

    def _path(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Joint positions (m, 17) along straight lines of the hands, or else straight in joints."""
        begin, aims = self._arms.forward(start), self._aims()
        turn = max(
            2.0 * float(np.arccos(min(1.0, abs(begin[ARMS.index(a), 3:] @ p[3:]))))
            for a, p in aims.items()
        )
        count = int(np.ceil(max(self._farthest(start) / LINE_STEP_M, turn / LINE_STEP_RAD, 1.0)))
        points = [start]
        for k in range(1, count):
            share, wanted = k / count, {}
            for arm, aim in aims.items():
                hand = begin[ARMS.index(arm)]
                place = hand[:3] + share * (aim[:3] - hand[:3])
                wanted[arm] = np.concatenate([place, slerp(hand[3:], aim[3:], share)])
            joints, left = self._arms.inverse(wanted, points[-1], self._options.waist, restarts=0)
            if left > LINE_ERROR_M:
                return np.stack([start, end])
            points.append(joints)
        # The way may lead to another posture than the end was found in: it then ends in its own.
        joints, left = self._arms.inverse(aims, points[-1], self._options.waist, restarts=0)
        if left > LINE_ERROR_M and np.abs(end - points[-1]).max() > 0.5:
            return np.stack([start, end])
        return np.stack([*points, joints if left <= LINE_ERROR_M else end])

    def _smooth(self, pelvis: np.ndarray, now_s: float) -> None:
        """Let the smoothed pose of the pelvis follow."""
        share = 1.0 - math.exp(-(now_s - self._seen_s) / PELVIS_S)
        near = np.copysign(1.0, pelvis[3:] @ self._pelvis[3:])
        mean = self._pelvis + share * (pelvis * [1, 1, 1, *[near] * 4] - self._pelvis)
        mean[3:] /= np.linalg.norm(mean[3:])
        self._pelvis, self._seen_s = mean, now_s

    # -- corrections -----------------------------------------------------------------------------

    def _errors(self, view: View) -> dict[str, np.ndarray]:
        assert self._step is not None
        return {
            arm: view.state.ee_pose[ARMS.index(arm), :3] - goal[:3]
            for arm, goal in self._step.goals.items()
        }

    def _settle(self, view: View, now_s: float) -> dict:
        """The motion is over: correct what is left of the error, or end the step.

        Returns why it failed, {} when it is done or goes on.
        """
        step, options = self._step, self._options
        assert step is not None
        if step.arrived_s is None:
            step.arrived_s = now_s
        waited, pressed = now_s - step.arrived_s, {arm: _pressed(view, arm) for arm in step.goals}
        # A hand that presses on something cannot come nearer, and should not press ever harder.
        errors = {a: e for a, e in self._errors(view).items() if not pressed[a]}
        worst = max((float(np.linalg.norm(e)) for e in errors.values()), default=0.0)
        correcting = step.goals and (options.adjust or options.replan)
        patience_s = PATIENCE_S if correcting and worst > ADJUST_FROZEN_M else 0.0
        if waited >= max(patience_s, options.settle_s):
            self._step, self._last = None, step
            reason = self._missed(view, step, pressed)
            self._completed += not reason
            return reason
        moved = False
        for arm, error in errors.items() if options.adjust else ():
            size = float(np.linalg.norm(error))
            if ADJUST_FROZEN_M < size <= ADJUST_WITHIN_M:
                back = -ADJUST_GAIN * error
                back *= min(1.0, ADJUST_STEP_M / float(np.linalg.norm(back)))
                step.offset_m[arm] = step.offset_m.get(arm, np.zeros(3)) + back
                moved = True
        if moved:
            self._go(view)
        return {}

    def _missed(self, view: View, step: _Step, pressed: dict[str, set[str]]) -> dict:
        """Which hand of a step that is over is not where it was sent, {} when all are."""
        things = {item.name for item in self._scene.objects}
        for call in step.calls:
            if call.arm not in step.goals:
                continue
            hand = view.state.ee_pose[ARMS.index(call.arm), :3]
            short_m = float(np.linalg.norm(hand - step.goals[call.arm][:3]))
            if short_m > (PRESSED_SHORT_M if pressed[call.arm] & things else MISSED_M):
                on = " and ".join(sorted(pressed[call.arm]))
                why = f", pressing on {on}" if on else ""
                reason = f"missed: {call.arm} hand ends {short_m:.3f} m from its goal{why}"
                return {"reason": reason, "call": asdict(call)}
        return {}

    def _replan(self, view: View, now_s: float) -> None:
        """Take the goal anew into the frame of the pelvis where it is now."""
        assert self._step is not None
        self._step.pelvis, self._step.planned_s = self._pelvis, now_s
        self._go(view, len(self._track))

    def _go(self, view: View, ticks: int = 0) -> None:
        """From the present command to the aims, in no less than `ticks` periods."""
        if self._step is None or not self._step.goals:
            return
        start = view.state.command[self._robot.joint_columns]
        joints, left = self._solve(start)
        # Where the body went back so far that the goal is out of reach, as near as the arms get.
        if left <= ADJUST_WITHIN_M:
            points = self._path(start, joints) if ticks else np.stack([start, joints])
            self._track = _timed(self._homing(points), ticks * _PERIOD_S)


def _same(goals: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> bool:
    return goals.keys() == others.keys() and all(
        np.allclose(pose, others[arm], atol=1e-6) for arm, pose in goals.items()
    )


def _homeward(calls: tuple[SkillCall, ...]) -> np.ndarray:
    """Columns of waist and arms that go home in a step: the waist when both arms do."""
    arms = [ARMS.index(call.arm) for call in calls if call.skill == "home"]
    waist = np.arange(g1.WAIST if len(arms) == len(ARMS) else 0)
    return np.concatenate([waist, *(g1.WAIST + 7 * k + np.arange(7) for k in arms)])


def _pressed(view: View, arm: str) -> set[str]:
    """Names of what a hand or its arm presses on; what the robot touches of itself is none."""
    scene, state = view.scene, view.state
    own = {scene.entity(f"{arm}_{part}") for part in ("hand", "arm")}
    forces: dict[str, float] = {}
    for pair, force in zip(state.contact_pair.tolist(), state.contact_force.tolist(), strict=True):
        if own & set(pair):
            for other in set(pair) - scene.robot_entities:
                name = scene.entities[other]
                forces[name] = forces.get(name, 0.0) + force
    return {name for name, force in forces.items() if force > PRESSES_N}


def _timed(points: np.ndarray, least_s: float = 0.2) -> np.ndarray:
    """Joint positions (t, 17) through way points (m, 17), minimum jerk from rest to rest.

    Each stretch takes what its slowest joint needs, or its share of `least_s` if that is more: one
    in which a joint has far to go slows no other down.
    """
    share_s = max(least_s, 0.2) / _PEAK_SPEED / (len(points) - 1)
    needed_s = (np.abs(np.diff(points, axis=0)) / MAX_SPEED_RAD_S).max(axis=1)
    passed_s = np.concatenate([[0.0], np.maximum(needed_s, share_s).cumsum()])
    ticks = int(np.ceil(passed_s[-1] * _PEAK_SPEED / _PERIOD_S))
    u = np.arange(1, ticks + 1) / ticks
    s = (10 * u**3 - 15 * u**4 + 6 * u**5) * passed_s[-1]
    return np.stack([np.interp(s, passed_s, column) for column in points.T], axis=1)
