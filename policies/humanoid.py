"""Executes plans with the G1: hands to poses by IK of waist and arms, corrected on the way.

What HERO (arXiv 2602.16705) does about a body that gives way while the arms move, with the
constants of its released code where they differ from the paper's:

- replanning: every 3 s the goal is taken anew into the frame of the pelvis, which has moved;
- goal adjustment: while a hand is within 0.15 m of its goal, the pose that IK aims at is moved
  against what is left of the error, g <- g - 0.6 e, by at most 1 cm at a time, and no more once
  that is below 1.75 cm.

Without either the arms go where the goal was when they set out. HERO's learned corrections of
forward kinematics and odometry have no place here: the hands' poses are known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

from bench_tasks import embodiments, g1
from bench_tasks.errors import UsageError
from bench_tasks.g1_kinematics import upper_body
from bench_tasks.tasks.families.humanoid import in_pelvis
from bench_tasks.view import View
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
ADJUST_GAIN, ADJUST_STEP_M = 0.6, 0.01
ADJUST_WITHIN_M, ADJUST_FROZEN_M = 0.15, 0.0175
SETTLE_S, PATIENCE_S = 0.4, 5.0
"""How long a step waits after its motion at least, and at most while it corrects."""
OUT_OF_REACH_M = 0.03
PRESSES_N = 1.0
LINE_STEP_M, LINE_STEP_RAD = 0.02, 0.15
LINE_ERROR_M = 0.01
HAND_SPEED_M_S = 0.25
MAX_SPEED_RAD_S = np.concatenate([np.full(g1.WAIST, 0.5), np.full(14, 1.2)])
"""Calm: what the arms do to the balance grows with their acceleration."""
_PERIOD_S = CONTROL_PERIOD_NS * 1e-9
_PEAK_SPEED = 1.875
SKILLS = ("move_to", "move_by", "home", "open", "close")


@dataclass(frozen=True)
class HumanoidOptions:
    """`replan` and `adjust` as at the head of this module; `waist`: whether IK may bend it."""

    replan: bool = True
    adjust: bool = True
    waist: bool = True


@dataclass
class _Step:
    """A step under way: where the hands are to be in the world, and what IK is told instead."""

    calls: tuple[SkillCall, ...]
    goals: dict[str, np.ndarray]
    base: View
    offset_m: dict[str, np.ndarray] = field(default_factory=dict)
    arrived_s: float | None = None
    planned_s: float = 0.0


class HumanoidPolicy:
    """Runs a plan's steps one after the other, ten actions at a time."""

    Options = HumanoidOptions
    metadata = Metadata("humanoid", "1", privileged=True)

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
        if self._step is not None and len(self._track) == 0:
            self._settle(view, now_s)
        if self._step is None:
            if not self._steps:
                return self._ask(state.seq, {"status": self._status})
            reason = self._begin(view, self._steps.pop(0), now_s)
            if reason:
                self._steps, self._step = [], None
                return self._ask(state.seq, {"status": "failed", **reason})
        elif self._options.replan and now_s - self._step.planned_s >= REPLAN_S:
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
        self._step = _Step(calls, goals, view, planned_s=now_s)
        start = view.state.command[self._robot.joint_columns]
        if not goals:
            end = start.copy()
            for k in (ARMS.index(call.arm) for call in calls if call.skill == "home"):
                rows = slice(g1.WAIST + 7 * k, g1.WAIST + 7 * k + 7)
                end[rows] = g1.HOME_RAD[rows]
            if {c.arm for c in calls if c.skill == "home"} == set(ARMS):
                end[: g1.WAIST] = g1.HOME_RAD[: g1.WAIST]
            self._track = _timed(np.stack([start, end]))
            return {}
        joints, left = self._solve(start)
        if left > OUT_OF_REACH_M:
            return {
                "reason": f"out of reach: {' and '.join(goals)} hand ends {left:.3f} m short",
                "call": asdict(calls[0]),
            }
        self._track = _timed(self._path(start, joints), self._farthest(start) / HAND_SPEED_M_S)
        return {}

    def _aims(self) -> dict[str, np.ndarray]:
        """Poses in the pelvis' frame that IK is to bring the hands to."""
        step = self._step
        assert step is not None
        aims = {}
        for arm, goal in step.goals.items():
            aim = goal.copy()
            aim[:3] += step.offset_m.get(arm, np.zeros(3))
            aims[arm] = in_pelvis(step.base, aim)
        return aims

    def _solve(self, start: np.ndarray) -> tuple[np.ndarray, float]:
        return self._arms.inverse(self._aims(), start, self._options.waist)

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

    # -- corrections -----------------------------------------------------------------------------

    def _errors(self, view: View) -> dict[str, np.ndarray]:
        assert self._step is not None
        return {
            arm: view.state.ee_pose[ARMS.index(arm), :3] - goal[:3]
            for arm, goal in self._step.goals.items()
        }

    def _settle(self, view: View, now_s: float) -> None:
        """The motion is over: correct what is left of the error, or count the step as done."""
        step, options = self._step, self._options
        assert step is not None
        if step.arrived_s is None:
            step.arrived_s = now_s
        waited = now_s - step.arrived_s
        # A hand that presses on something cannot come nearer, and should not press ever harder.
        errors = {a: e for a, e in self._errors(view).items() if not _presses(view, a)}
        worst = max((float(np.linalg.norm(e)) for e in errors.values()), default=0.0)
        correcting = step.goals and (options.adjust or options.replan)
        if waited >= (PATIENCE_S if correcting and worst > ADJUST_FROZEN_M else SETTLE_S):
            self._step = None
            self._completed += 1
            return
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

    def _replan(self, view: View, now_s: float) -> None:
        """Take the goal anew into the frame of the pelvis where it is now."""
        assert self._step is not None
        self._step.base, self._step.planned_s = view, now_s
        self._go(view, len(self._track))

    def _go(self, view: View, ticks: int = 0) -> None:
        """From the present command to the aims, in no less than `ticks` periods."""
        if self._step is None or not self._step.goals:
            return
        start = view.state.command[self._robot.joint_columns]
        joints, left = self._solve(start)
        # Where the body went back so far that the goal is out of reach, as near as the arms get.
        if left <= ADJUST_WITHIN_M:
            self._track = _timed(np.stack([start, joints]), ticks * _PERIOD_S)


def _presses(view: View, arm: str) -> bool:
    state = view.state
    parts = [view.scene.entity(f"{arm}_{part}") for part in ("hand", "arm")]
    touching = np.isin(state.contact_pair, parts).any(axis=1)
    return bool(state.contact_force[touching].sum() > PRESSES_N)


def _timed(points: np.ndarray, least_s: float = 0.2) -> np.ndarray:
    """Joint positions (t, 17) through way points (m, 17), minimum jerk from rest to rest."""
    steps = np.abs(np.diff(points, axis=0)) * (len(points) - 1)
    needed_s = float((steps / MAX_SPEED_RAD_S).max(initial=0.0)) * _PEAK_SPEED
    ticks = int(np.ceil(max(needed_s, least_s, 0.2) / _PERIOD_S))
    u = np.arange(1, ticks + 1) / ticks
    s = (10 * u**3 - 15 * u**4 + 6 * u**5) * (len(points) - 1)
    grid = np.arange(len(points))
    return np.stack([np.interp(s, grid, column) for column in points.T], axis=1)
