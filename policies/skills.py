"""The default policy: executes skill calls by inverse kinematics and collision-checked motion.

Nothing fails silently: a call that cannot be planned, or whose effect is not seen afterwards,
ends the plan with its reason, which the planner hears.
"""

from __future__ import annotations

import itertools
import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.targets import resolved, standing_on
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import (
    ARM_COLUMNS,
    ARMS,
    CONTROL_PERIOD_NS,
    MAX_OPENING_M,
    MIN_PACE,
    ActionChunk,
    Metadata,
    Observation,
    Plan,
    Scene,
    SkillCall,
)
from policies.clearance import hand_hits, widest_opening
from policies.motion import (
    MotionError,
    Phase,
    collision_free,
    gripper_phase,
    joint_move,
    line_move,
    sample_pair,
)

__all__ = ["SkillOptions", "SkillPolicy"]

CHUNK = 10
APPROACH_M = 0.10
RETREAT_M = 0.08
LIFT_M = 0.10
HIGH_M = 0.30
CLEARANCE_M = 0.035
"""How much wider than the object the fingers open before closing on it; at least, to let go."""
RELEASE_HEIGHT_M = 0.001
_CLOSED_M = 0.002
GRIP_S, REAL_GRIP_S = 0.4, 1.2
"""A real hand needs 0.8 s for all of its width and a moment to notice that it has arrived."""
REAL_PACE = 0.6
"""Where nothing waits, arms move calmly: so much slower than in a simulation that does."""
LAG_RAD = 0.08
"""Further behind than by a command that came a moment late."""
AHEAD = 30
"""So many actions at most are published, of which the next answer replaces most."""
CLOSING_S = 3.0
ON_ITS_WAY = 3
"""Control periods from an answer until it can be executed."""
_PERIOD_S = CONTROL_PERIOD_NS * 1e-9


@dataclass
class _Held:
    name: str
    pose_tcp_object: np.ndarray


@dataclass(frozen=True)
class SkillOptions:
    """`pace`: in each episode each arm's own pace is drawn from this to 1 times the usual one."""

    pace: float = 1.0


class SkillPolicy:
    """Runs a plan's steps one after the other, ten actions at a time."""

    Options = SkillOptions
    metadata = Metadata("skills", "1", privileged=True)

    def __init__(self, options: SkillOptions | None = None) -> None:
        """Loads the kinematics; UsageError when an option is wrong."""
        self._slowest = (options or SkillOptions()).pace
        if not MIN_PACE <= self._slowest <= 1.0:
            raise UsageError(f"pace must be from {MIN_PACE:g} to 1, got {self._slowest:g}")
        self._kinematics = dual_arm()

    realtime = False
    """Whether the world goes on while it is asked, as the policy's node knows. Then each answer
    is what is left of the motion, by the state that each action is meant for, and a motion
    begins when its planning is over."""

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; a new episode begins."""
        self._scene = scene
        self._kinematics.set_base_height(scene.base_height_m)
        self._steps: list[tuple[SkillCall, ...]] = []
        self._current: tuple[SkillCall, ...] = ()
        self._track: np.ndarray | None = None
        self._held: dict[str, _Held] = {}
        self._completed = 0
        self._from = self._waited = 0
        self._status = "idle"
        self._view: View | None = None
        self._pointed: list[dict] = []
        rng = np.random.default_rng([seed, zlib.crc32(f"pace {scene.task}".encode())])
        self._pace = dict(zip(ARMS, rng.uniform(self._slowest, 1.0, 2).tolist(), strict=True))

    @property
    def _grip_s(self) -> float:
        """How long the arm waits for fingers that open or close."""
        return REAL_GRIP_S if self.realtime else GRIP_S

    def accept(self, plan: Plan) -> None:
        """Take a plan to execute from the present state on.

        A point to grasp at stands for the object that has it now, whatever moves later. UsageError
        when there is no such object, none of a name, or a point came before the first state.
        """
        steps, self._pointed = [], []
        for step in plan.checked().steps:
            steps.append(tuple(self._meant(call) for call in step))
        self._steps, self._track, self._completed, self._status = steps, None, 0, "done"

    def _meant(self, call: SkillCall) -> SkillCall:
        """The call with its object by name."""
        if call.skill == "grasp" and "point" in call.args:
            if self._view is None:
                raise UsageError("a point means nothing before the first state")
            meant = resolved(self._view, call)
            self._pointed.append({"point": call.args["point"], "object": meant.args["object"]})
            return meant
        if "object" in call.args:
            self._scene.object(call.args["object"])
        return call

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next actions, or say how the plan went."""
        view = self._view = View(self._scene, observation.state)
        seq = observation.state.seq
        if self.realtime and self._track is not None:
            self._track, self._from = self._on_time(seq, observation.state.command), seq
        try:
            self._check_hold(view)
            if self._track is not None and len(self._track) == 0:
                if self.realtime and self._closing(view):
                    return ActionChunk(seq, np.tile(view.state.command, (CHUNK, 1)))
                self._finish(view)
            if self._track is None:
                if not self._steps:
                    return self._ask(view, {"status": self._status})
                self._current = self._steps.pop(0)
                begun = time.perf_counter()
                self._track, self._from, self._waited = self._plan_step(view, self._current), seq, 0
                if self.realtime:
                    passed = math.ceil((time.perf_counter() - begun) / _PERIOD_S) + ON_ITS_WAY
                    hold = np.tile(view.state.command, (passed, 1))
                    self._track = np.concatenate([hold, self._track])
        except _Failure as failure:
            self._steps, self._track = [], None
            detail = {
                "status": "failed", "reason": str(failure), "call": asdict(failure.call),
            }
            return self._ask(view, detail)
        if self.realtime:
            ahead = {"until_next": min(CHUNK, len(self._track))}
            return ActionChunk(seq, self._track[:AHEAD], detail=ahead)
        chunk, self._track = self._track[:CHUNK], self._track[CHUNK:]
        return ActionChunk(seq, chunk)

    def _ask(self, view: View, detail: dict) -> ActionChunk:
        held = {arm: item.name for arm, item in self._held.items()}
        if self._pointed:
            detail = {**detail, "pointed": self._pointed}
        return ActionChunk(
            view.state.seq, np.zeros((0, 16)), True,
            {**detail, "completed": self._completed, "held": held},
        )

    # -- effects ---------------------------------------------------------------------------------

    def _check_hold(self, view: View) -> None:
        """Notice an object that slipped out of a hand."""
        for arm, item in list(self._held.items()):
            opening = view.state.gripper_opening[ARMS.index(arm)]
            fingers = [f"{arm}_finger{k}" for k in (1, 2)]
            if opening < _CLOSED_M or not any(view.touching(item.name, f) for f in fingers):
                del self._held[arm]
                call = next((c for c in self._current if c.arm == arm), SkillCall("hold", arm))
                # Fingers that were told to close hold on; a `place` may lose it on the way, too.
                if view.state.command[8 * ARMS.index(arm) + 7] < _CLOSED_M:
                    raise _Failure(call, f"grasp lost: {item.name} slipped from the {arm} hand")

    def _on_time(self, seq: int, command: np.ndarray) -> np.ndarray:
        """What of the motion is due from state `seq` on.

        Where the arms did not come along, because they were stopped or a part was lost, they go on
        from where they are.
        """
        assert self._track is not None
        done = min(max(0, seq - self._from), len(self._track))
        away = np.abs(self._track[:done] - command)[:, ARM_COLUMNS].max(axis=1)
        if not done or away[-1] <= LAG_RAD:
            return self._track[done:]
        hold = np.tile(command, (ON_ITS_WAY, 1))
        return np.concatenate([hold, self._track[int(away.argmin()) + 1 :]])

    def _closing(self, view: View) -> bool:
        """Whether a real hand, which takes its time, may still come to hold what it closes on."""
        missed = any(
            call.skill == "grasp" and not view.grasped(call.args["object"], call.arm)
            for call in self._current
        )
        self._waited += CHUNK
        return missed and self._waited * _PERIOD_S <= CLOSING_S

    def _finish(self, view: View) -> None:
        """Check that the step did what it should, and note what is held."""
        for call in self._current:
            if call.skill == "grasp":
                name = call.args["object"]
                if not view.grasped(name, call.arm):
                    raise _Failure(call, f"grasp missed: {call.arm} hand does not hold {name}")
                tcp = view.state.ee_pose[ARMS.index(call.arm)]
                self._held[call.arm] = _Held(name, compose(invert(tcp), view.pose(name)))
            elif _lets_go(call):
                self._held.pop(call.arm, None)
        self._track = None
        self._completed += 1

    # -- planning --------------------------------------------------------------------------------

    def _plan_step(self, view: View, step: tuple[SkillCall, ...]) -> np.ndarray:
        """Actions (t, 16) of the first combination of ways that is free of collision."""
        rest = {arm: view.state.command[8 * k : 8 * k + 8] for k, arm in enumerate(ARMS)}
        ways = []
        for call in step:
            found, errors = [], []
            for way in self._ways(view, call, rest[call.arm]):
                try:
                    pace = self._pace[call.arm] * (REAL_PACE if self.realtime else 1.0)
                    pace *= call.args.get("pace", 1.0)
                    found.append([replace(p, duration_s=p.duration_s / pace) for p in way])
                except MotionError as error:
                    errors.append(str(error))
                if len(found) == 4:
                    break
            if not found:
                raise _Failure(call, errors[0] if errors else "unreachable: no way to do it")
            # A line past a singular posture can take a minute and end with the elbow turned over.
            slow = 2 * min(sum(phase.duration_s for phase in way) for way in found)
            ways.append(sorted(found, key=lambda way: sum(p.duration_s for p in way) > slow))
        together = len({call.skill for call in step}) == 1
        hit = None
        for combination in itertools.product(*ways):
            phases = {call.arm: way for call, way in zip(step, combination, strict=True)}
            actions = sample_pair(phases, rest, together)
            collision = collision_free(self._kinematics, actions)
            if collision is None:
                return actions
            hit = hit or collision
        raise _Failure(step[0], f"collision: {hit}")

    def _ways(
        self, view: View, call: SkillCall, start: np.ndarray
    ) -> Iterator[Iterator[Phase]]:
        """Ways to do a call from action (8,) `start`, best first; each yields its phases."""
        if call.skill == "grasp":
            yield from self._grasp_ways(view, call, start)
        elif call.skill == "place":
            target = self._place_target(view, call)
            for route in _ROUTES:
                yield self._place(view, call, start, target, route)
        elif call.skill == "move_by":
            pose = self._kinematics.forward(call.arm, start[:7])
            pose[:3] += np.asarray(call.args["offset"], dtype=np.float64)
            yield self._chain(call.arm, start, [("line", pose)])
        elif call.skill == "move_to":
            pose = np.asarray(call.args["pose"], dtype=np.float64)
            pose = np.concatenate([pose[:3], pose[3:] / np.linalg.norm(pose[3:])])
            end = []
            if "opening_m" in call.args:
                end = [("grip", float(np.clip(call.args["opening_m"], 0.0, MAX_OPENING_M)))]
            for route in ("line", "joint"):
                yield self._chain(call.arm, start, [(route, pose), *end])
        elif call.skill in ("open", "close"):
            opening = MAX_OPENING_M if call.skill == "open" else 0.0
            yield iter([gripper_phase(start, opening, self._grip_s)])
        else:
            yield self._home(call.arm, start)

    def _grasp_ways(self, view, call, start):
        item = self._scene.object(call.args["object"])
        wanted = call.args.get("grasp")
        grasps = [g for g in item.grasps if wanted is None or g.name == wanted]
        if not grasps:
            names = ", ".join(g.name for g in item.grasps) or "none"
            raise _Failure(call, f"no grasp {wanted!r} on {item.name}: it has {names}")
        reached = []
        for grasp in grasps:
            pose = compose(view.pose(item.name), np.array(grasp.pose))
            above = pose + np.array([0, 0, APPROACH_M, 0, 0, 0, 0])
            joints = self._kinematics.inverse(call.arm, above, start[:7])
            if joints is not None:
                opening = min(MAX_OPENING_M, grasp.width_m + CLEARANCE_M)
                hits = hand_hits(view, pose, opening, (item.name,)) is not None
                cost = (hits, float(np.abs(joints - start[:7]).sum()))
                reached.append((cost, opening, pose, above))
        if not reached:
            where = ", ".join(f"{v:.3f}" for v in view.position(item.name))
            raise _Failure(
                call, f"unreachable: {call.arm} arm cannot grasp {item.name} at ({where})"
            )
        for _, opening, pose, above in sorted(reached, key=lambda entry: entry[0]):
            for route in _ROUTES:
                yield self._chain(
                    call.arm, start,
                    [("open", opening), (route, above), ("line", pose), ("grip", 0.0)],
                )

    def _place_target(self, view: View, call: SkillCall) -> np.ndarray:
        held = self._held.get(call.arm)
        name = call.args.get("object", held.name if held else "anything")
        if held is None or held.name != name:
            raise _Failure(call, f"not held: {call.arm} hand does not hold {name}")
        if "point" in call.args:
            pose = np.array(standing_on(view, name, np.array(call.args["point"])))
        else:
            pose = np.asarray(call.args["pose"], dtype=np.float64)
        if pose.size == 3:
            pose = np.concatenate([pose, view.pose(name)[3:]])
        return compose(pose, invert(held.pose_tcp_object))

    def _place(self, view, call, start, target, route) -> Iterator[Phase]:
        here = self._kinematics.forward(call.arm, start[:7])
        above = target + np.array([0, 0, APPROACH_M, 0, 0, 0, 0])
        up = np.concatenate([[*here[:2], max(here[2] + LIFT_M, above[2])], here[3:]])
        down = target + np.array([0, 0, RELEASE_HEIGHT_M, 0, 0, 0, 0])
        moves = [("line", up), (route, above), ("line", down)]
        if call.args.get("release", True):
            item = self._scene.object(self._held[call.arm].name)
            width = next((g.width_m for g in item.grasps), 0.0)
            # A thing that leans on one finger is let go by wide open ones alone.
            opening = widest_opening(
                view, down, min(MAX_OPENING_M, width + CLEARANCE_M), MAX_OPENING_M, (item.name,)
            )
            retreat = target + np.array([0, 0, RETREAT_M, 0, 0, 0, 0])
            moves += [("grip", opening), ("line", retreat)]
        return self._chain(call.arm, start, moves)

    def _home(self, arm: str, start: np.ndarray) -> Iterator[Phase]:
        here = self._kinematics.forward(arm, start[:7])
        if here[2] < HIGH_M:
            up = np.concatenate([here[:2], [HIGH_M], here[3:]])
            try:
                rise = line_move(self._kinematics, arm, start, up)
                start = rise.points[-1]
                yield rise
            except MotionError:
                # Stretched out it cannot rise straight; joint motion homewards rises too.
                pass
        yield joint_move(start, HOME_RAD)

    def _chain(self, arm: str, start: np.ndarray, moves) -> Iterator[Phase]:
        """Phases of one move after the other, each from where the last one ended."""
        opening = start[7]
        for kind, value in moves:
            if kind == "line":
                phase = line_move(self._kinematics, arm, start, value)
            elif kind in ("joint", "high"):
                if kind == "high":
                    here = self._kinematics.forward(arm, start[:7])
                    if here[2] < HIGH_M:
                        up = np.concatenate([here[:2], [HIGH_M], here[3:]])
                        rise = line_move(self._kinematics, arm, start, up)
                        start = rise.points[-1]
                        yield rise
                joints = self._kinematics.inverse(arm, value, start[:7])
                if joints is None:
                    where = ", ".join(f"{v:.3f}" for v in value[:3])
                    raise MotionError(f"unreachable: {arm} arm cannot reach ({where})")
                phase = joint_move(start, joints)
            elif kind == "grip":
                opening = value
                phase = gripper_phase(start, opening, self._grip_s)
            else:  # open on the way: the fingers need not wait for the arm
                opening = value
                continue
            phase.points[:, 7] = np.linspace(start[7], opening, len(phase.points))
            start = phase.points[-1]
            yield phase


_ROUTES = ("line", "joint", "high")


def _lets_go(call: SkillCall) -> bool:
    """Whether the call is meant to end with nothing in the hand."""
    if call.skill == "place":
        return call.args.get("release", True)
    return call.skill == "open" or call.args.get("opening_m", 0.0) > 0.0


class _Failure(Exception):
    """A call that could not be done."""

    def __init__(self, call: SkillCall, reason: str) -> None:
        super().__init__(reason)
        self.call = call
