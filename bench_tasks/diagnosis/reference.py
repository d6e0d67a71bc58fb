"""What knowing everything would do from a state: the task's expert, carried on in thought.

The expert gives only the next steps. Here their effect is imagined (no physics: a taken thing
moves with the hand, a released one stays) and the expert asked again, until it is content.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_tasks.tasks.base import Task
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, Scene, SkillCall, WorldState

__all__ = ["Move", "Reference", "imagine", "near_grasp"]

ROUNDS = 12
"""Experts of today need at most five; one that never is content is stopped here."""
CLOSED_M = 0.002
NEAR_GRASP_M = 0.03


@dataclass(frozen=True)
class Move:
    """One thing taken from one pose (7,) to another by these arms; `released` there or not."""

    object: str
    arms: tuple[str, ...]
    pose: np.ndarray
    released: bool
    grasp: str = ""


@dataclass(frozen=True)
class Reference:
    """The expert's next steps from a state, and the moves of things that all of its steps make.

    `known` is False where the expert could not say (it raised).
    """

    steps: tuple[tuple[SkillCall, ...], ...] = ()
    moves: tuple[Move, ...] = ()
    known: bool = True

    @property
    def objects(self) -> list[str]:
        """What is moved, in the order in which it is first moved."""
        return list(dict.fromkeys(move.object for move in self.moves))

    def of(self, name: str) -> list[Move]:
        """The moves of one thing."""
        return [move for move in self.moves if move.object == name]

    def next_taken(self) -> list[str]:
        """What the next steps alone move, or hold already."""
        named = [c.args.get("object") for step in self.steps for c in step]
        return [n for n in self.objects if n in named] or self.objects[:1]


def imagine(task: Task, scene: Scene, start: WorldState, state: WorldState, turn: int) -> Reference:
    """The reference from `state`; `start` is the state in which the arms first might move."""
    world = _Thought(scene, state)
    steps: tuple[tuple[SkillCall, ...], ...] = ()
    seen: list[list[tuple[Any, ...]]] = []
    try:
        for k in range(ROUNDS):
            now = task.expert(View(scene, world.state(), start), turn + k)
            if k == 0:
                steps = tuple(tuple(step) for step in now)
            before = len(world.moves)
            for step in now:
                world.do(tuple(step))
            done = [(m.object, m.arms, *np.round(m.pose, 3)) for m in world.moves[before:]]
            if not now or done in seen:
                del world.moves[before:]
                break
            seen.append(done)
    except Exception:  # noqa: BLE001 - other people's task code, asked about a thought state
        return Reference(steps, tuple(world.moves), known=bool(steps))
    return Reference(steps, tuple(world.moves))


def near_grasp(view: View, name: str, hand: np.ndarray) -> tuple[float, float, str]:
    """The object's grasp nearest to a TCP pose (7,): distance (m), turn (rad), its name."""
    found = [(np.inf, 0.0, "")]
    for grasp in view.scene.object(name).grasps:
        pose = compose(view.pose(name), np.array(grasp.pose))
        away = float(np.linalg.norm(pose[:3] - hand[:3]))
        turn = 2 * float(np.arccos(min(1.0, abs(float(pose[3:] @ hand[3:])))))
        found.append((away, turn, grasp.name))
    return min(found, key=lambda f: f[0] + 0.02 * f[1])


class _Thought:
    """A world without physics."""

    def __init__(self, scene: Scene, state: WorldState) -> None:
        self.scene, self._base = scene, state
        self.pose = state.object_pose.copy()
        self.hand = state.ee_pose.copy()
        self.opening = state.gripper_opening.copy()
        self.command = state.command.copy()
        self.moves: list[Move] = []
        names = scene.entities
        self.contacts = {
            frozenset((names[a], names[b])): float(f)
            for (a, b), f in zip(state.contact_pair.tolist(), state.contact_force, strict=True)
        }
        view = View(scene, state)
        self.held: dict[str, tuple[str, np.ndarray]] = {}
        for arm in ARMS:
            for item in scene.objects:
                if not item.fixed and view.grasped(item.name, arm):
                    self._hold(arm, item.name)
                    break

    def state(self) -> WorldState:
        """The world as a state at rest."""
        index = {name: i for i, name in enumerate(self.scene.entities)}
        pairs = [sorted(index[n] for n in pair) for pair in self.contacts if len(pair) == 2]
        forces = [force for pair, force in self.contacts.items() if len(pair) == 2]
        return dataclasses.replace(
            self._base, object_pose=self.pose.copy(), ee_pose=self.hand.copy(),
            gripper_opening=self.opening.copy(), command=self.command.copy(),
            object_twist=np.zeros_like(self._base.object_twist),
            contact_pair=np.array(pairs, dtype=np.uint16).reshape(-1, 2),
            contact_force=np.array(forces, dtype=np.float64),
        )  # fmt: skip

    def do(self, step: tuple[SkillCall, ...]) -> None:
        """Imagine that the calls of one step succeed."""
        moved: dict[str, list[str]] = {}
        for call in step:
            k, args = ARMS.index(call.arm), call.args
            if call.skill == "grasp":
                self._grasp(call.arm, args["object"], args.get("grasp"))
            elif call.skill == "close":
                self._close(call.arm)
            elif call.skill == "open":
                self._release(call.arm)
            elif call.skill == "place":
                self._place(call)
            elif call.skill in ("move_by", "move_to"):
                target = self.hand[k].copy()
                if call.skill == "move_by":
                    target[:3] += np.asarray(args["offset"], dtype=np.float64)
                else:
                    target = np.asarray(args["pose"], dtype=np.float64)
                changed = not np.allclose(target, self.hand[k], atol=1e-4)
                self.hand[k] = target
                if call.arm in self.held and changed:
                    moved.setdefault(self.held[call.arm][0], []).append(call.arm)
                    self._follow(call.arm)
                if call.skill == "move_to" and "opening_m" in args:
                    self._grip(call.arm, float(args["opening_m"]))
        for name, arms in moved.items():
            self._note(name, tuple(arms), released=False)

    def _note(self, name: str, arms: tuple[str, ...], released: bool, grasp: str = "") -> None:
        pose = self.pose[self.scene.index(name)].copy()
        last = self.moves[-1] if self.moves else None
        if last is not None and last.object == name and last.arms == arms and not last.released:
            self.moves.pop()  # on the way
        self.moves.append(Move(name, arms, pose, released, grasp))

    def _grip(self, arm: str, opening_m: float) -> None:
        k = ARMS.index(arm)
        if opening_m > CLOSED_M:
            if self.command[8 * k + 7] <= CLOSED_M:
                self._release(arm)
        elif self.command[8 * k + 7] > CLOSED_M:
            self._close(arm)
        self.command[8 * k + 7] = self.opening[k] = opening_m
        if arm in self.held:
            self.opening[k] = 0.02

    def _close(self, arm: str) -> None:
        hand = self.hand[ARMS.index(arm)]
        self.command[8 * ARMS.index(arm) + 7] = 0.0
        view = View(self.scene, self.state())
        near = [
            (near_grasp(view, o.name, hand)[0], o.name) for o in self.scene.objects if not o.fixed
        ]
        if near and min(near)[0] < NEAR_GRASP_M and arm not in self.held:
            self._hold(arm, min(near)[1])

    def _grasp(self, arm: str, name: str, grasp: str | None) -> None:
        item = self.scene.object(name)
        ways = [g for g in item.grasps if grasp in (None, g.name)]
        if not ways:
            return
        # The hand that turns least from pointing ahead will do: a thought needs no joints.
        best = max(ways, key=lambda g: compose(self.pose[self.scene.index(name)], np.array(g.pose))
                   @ self.hand[ARMS.index(arm)])  # fmt: skip
        self.hand[ARMS.index(arm)] = compose(
            self.pose[self.scene.index(name)], np.array(best.pose)
        )
        self._hold(arm, name)

    def _hold(self, arm: str, name: str) -> None:
        k = ARMS.index(arm)
        self.held[arm] = (name, compose(invert(self.hand[k]), self.pose[self.scene.index(name)]))
        self.command[8 * k + 7] = 0.0
        self.opening[k] = 0.02
        for finger in (1, 2):
            self.contacts[frozenset((name, f"{arm}_finger{finger}"))] = 5.0

    def _follow(self, arm: str) -> None:
        """A held thing goes with the hand, what it carries goes with it, what carried it stays."""
        name, local = self.held[arm]
        row, riders = self.scene.index(name), self._riders(name)
        shift = compose(compose(self.hand[ARMS.index(arm)], local), invert(self.pose[row]))
        for moved in (row, *(self.scene.index(rider) for rider in riders)):
            self.pose[moved] = compose(shift, self.pose[moved])
        for pair in list(self.contacts):
            others = pair - {name}
            if name in pair and not any(n in riders or n.startswith(ARMS) for n in others):
                del self.contacts[pair]

    def _riders(self, name: str) -> list[str]:
        """What a thing carries: smaller things that touch it, over its floor or within it."""
        row, half = self.scene.index(name), self.scene.object(name).half_size_m
        found = []
        for item in self.scene.objects:
            at = compose(invert(self.pose[row]), self.pose[self.scene.index(item.name)])
            if (
                frozenset((name, item.name)) in self.contacts and not item.fixed
                and max(item.half_size_m[:2]) < max(half[:2])
                and abs(at[0]) < half[0] and abs(at[1]) < half[1] and at[2] > -half[2]
            ):
                found.append(item.name)
        return found

    def _place(self, call: SkillCall) -> None:
        name, arm = call.args["object"], call.arm
        row, pose = self.scene.index(name), np.asarray(call.args["pose"], dtype=np.float64)
        if pose.size == 3:
            pose = np.concatenate([pose, self.pose[row][3:]])
        if arm not in self.held or self.held[arm][0] != name:
            self._hold(arm, name)
        self.hand[ARMS.index(arm)] = compose(pose, invert(self.held[arm][1]))
        self._follow(arm)
        released = bool(call.args.get("release", True))
        if released:
            self._release(arm)
        else:
            self._note(name, (arm,), released=False)

    def _release(self, arm: str) -> None:
        k = ARMS.index(arm)
        self.command[8 * k + 7] = self.opening[k] = MAX_OPENING_M
        if arm not in self.held:
            return
        name, _ = self.held.pop(arm)
        others = [a for a, (held, _) in self.held.items() if held == name]
        for part in ("arm", "hand", "finger1", "finger2"):
            self.contacts.pop(frozenset((name, f"{arm}_{part}")), None)
        if not others:
            self._note(name, (arm,), released=True)
            self.contacts[frozenset((name, self._below(name)))] = 1.0

    def _below(self, name: str) -> str:
        """What a thing at its pose stands on: the object under it, or the table."""
        row = self.scene.index(name)
        at, half = self.pose[row], self.scene.object(name).half_size_m
        if at[2] - half[2] < 0.003:
            return "table"
        near = []
        for item in self.scene.objects:
            away = self.pose[self.scene.index(item.name)][:3] - at[:3]
            if item.name != name and np.linalg.norm(away[:2]) < max(item.half_size_m[:2]):
                near.append((abs(float(away[2])), item.name))
        return min(near)[1] if near else "table"
