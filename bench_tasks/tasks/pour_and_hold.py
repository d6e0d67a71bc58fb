"""Beads, poured with one hand into a bowl that the other hand holds up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.lifting import on_fingers_alone, rise
from bench_tasks.view import View, compose, invert, quat_from_yaw, rotation_matrix
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall, other_arm

HOLDER, POURER = ARMS
BEADS = tuple(f"bead_{k}" for k in range(1, 7))
MOST = 5
HELD_UP_M = 0.05
TIPPED_RAD = 1.2
WALL_M, CUP_FLOOR_M = 0.004, 0.004
"""Thickness of the bowl's wall and of the cup's floor, whatever their size."""
POUR_RAD = np.radians(155)
"""Steep enough for the beads to slide out (friction up to 1.1 holds them on 48 degrees)."""
BOWL_AT_M = np.array([0.48, 0.08, 0.13])
"""Where the expert holds the middle of the bowl: forward, to the left, up."""
POUR_FROM_M = np.array([-0.012, -0.06, 0.045])
"""The cup's middle while the expert tips it: forward of the bowl's, to the left of it, and how
far its bottom would be above the rim if it stood upright."""


def _middle(info: ObjectInfo) -> np.ndarray:
    """Pose (7,) of the bowl proper in its object's frame: the handle is on the +y side of it."""
    return upright(0.0, info.half_size_m[0] - info.half_size_m[1], 0.0)


@lru_cache(maxsize=1)  # goal, stages and invariants all ask, of one state after the other
def _in_bowl(view: View) -> int:
    """How many beads are within the bowl's wall and below its rim, and no longer in the cup."""
    info, pose = view.scene.object("bowl"), view.pose("bowl")
    rows = [view.scene.index(name) for name in BEADS]
    local = (view.state.object_pose[rows, :3] - pose[:3]) @ rotation_matrix(pose[3:])
    local -= _middle(info)[:3]
    inside = np.linalg.norm(local[:, :2], axis=1) < info.half_size_m[0] - WALL_M
    inside &= np.abs(local[:, 2]) < info.half_size_m[2]
    return sum(
        not view.touching(name, "cup")
        for name, within in zip(BEADS, inside.tolist(), strict=True)
        if within
    )


def _held_up(view: View, arm: str | None = None) -> bool:
    arms = ARMS if arm is None else (arm,)
    return (
        rise(view, "bowl") >= HELD_UP_M
        and any(view.grasped("bowl", a) for a in arms)
        and on_fingers_alone(view, "bowl")
    )


def _pouring(view: View) -> bool:
    """Whether one hand holds the bowl up and the other tips the cup over it."""
    if view.tilt("cup") < TIPPED_RAD:
        return False
    middle = compose(view.pose("bowl"), _middle(view.scene.object("bowl")))
    offset = view.position("cup") - middle[:3]
    near = np.linalg.norm(offset[:2]) < 0.15 and offset[2] > 0.0
    return bool(near) and any(
        _held_up(view, arm) and view.grasped("cup", other_arm(arm)) for arm in ARMS
    )


class PourAndHold(Task):
    """Simultaneous work: what one hand holds is what the other one aims at."""

    version = 2
    name = "pour_and_hold"
    tier = 2
    mode = "simultaneous"
    summary = "hold the bowl up with one hand, pour the beads from the cup into it with the other"
    rests_on = dict.fromkeys(BEADS, "cup")

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The bowl, the cup and the beads in it."""
        return (
            ObjectSpec("bowl", "saucepan", "blue"),
            ObjectSpec("cup", "beaker", "white"),
            *(ObjectSpec(name, "block", "orange", {"size": 0.011}) for name in BEADS),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The bowl on the left, its handle outwards, the cup on the right.

        Not the other way round as well: the two arms are equal, not mirrored, and the left one
        cannot tip the cup over what the right one holds.
        """
        bowl = upright(
            rng.uniform(0.42, 0.54), rng.uniform(0.12, 0.20), objects["bowl"].half_size_m[2],
            rng.uniform(-0.25, 0.25),
        )
        cup = upright(
            rng.uniform(0.44, 0.54), rng.uniform(-0.30, -0.14), objects["cup"].half_size_m[2],
            rng.uniform(-0.2, 0.2),
        )
        poses = {"bowl": bowl, "cup": cup}
        half, low = objects[BEADS[0]].half_size_m[2], CUP_FLOOR_M - objects["cup"].half_size_m[2]
        for k, name in enumerate(BEADS):
            x, y = ((k & 1) * 2 - 1) * (half + 0.0015), ((k >> 1 & 1) * 2 - 1) * (half + 0.0015)
            local = upright(x, y, low + half + (k >> 2) * (2 * half + 0.0005))
            poses[name] = compose(cup, local)
        return Layout(
            poses,
            "Hold the blue bowl up by its handle with one hand, at least 5 cm above the table, and "
            "with the other hand pour the orange beads from the white cup into it. At least five "
            "of the six must be in the bowl at the end, the bowl still held up. Never pour while "
            "it stands on the table.",
            reach={"bowl": (HOLDER,), "cup": (POURER,)},
            paraphrases=(
                "Lift the blue bowl by its handle with the left hand, 5 cm or more; keep it up. "
                "With the right hand empty the cup into it. Five or six of the six beads must land "
                "in the bowl; none may get into it while it is on the table.",
                "One hand is to raise the bowl and keep it in the air, the other to tip the white "
                "cup over it until five orange beads or all six lie in the bowl. The bowl must "
                "not stand on the table when beads go in.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """Most beads in the bowl, which one hand holds up, after they were poured there."""
        return Goal(
            (
                Check("bowl held up", lambda v: _held_up(v)),
                Check("bowl level", lambda v: v.tilt("bowl") < 0.35),
                Check("most beads in the bowl", lambda v: _in_bowl(v) >= MOST),
                Check(
                    "beads let go",  # asked late: it takes long
                    lambda v: _in_bowl(v) >= MOST
                    and not any(v.touched_by_robot(name) for name in BEADS),
                ),
            ),
            after=("cup tipped over the bowl",),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Beads get into the bowl while it is in the air, and not by the fingers."""
        return (
            Check(
                "bowl not filled on the table",
                lambda v: not v.touching("bowl", "table") or _in_bowl(v) == 0,
            ),
            Check("no bead picked up", lambda v: not any(v.holder(name) for name in BEADS)),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Bowl and cup in hand, the cup tipped over the bowl, the first bead in, half of them."""
        return (
            Check("bowl held up empty", lambda v: _held_up(v) and _in_bowl(v) == 0),
            Check("cup in hand", lambda v: v.holder("cup") is not None),
            Check("cup tipped over the bowl", _pouring, after=("bowl held up empty",)),
            Check("a bead in the bowl", lambda v: _held_up(v) and _in_bowl(v) > 0),
            Check(
                "half of the beads in the bowl",
                lambda v: _held_up(v) and _in_bowl(v) >= len(BEADS) / 2,
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Take both, bring the cup over the bowl, tip it and wait for the beads."""
        in_hand = view.grasped("bowl", HOLDER), view.grasped("cup", POURER)
        # From its left the wrist is turned as it must be to tip the cup; later, any way will do.
        cup = _grasp(POURER, "cup", **({"grasp": "side_right"} if turn < 2 else {}))
        if not any(in_hand):
            return [(_grasp(HOLDER, "bowl"), cup)]
        if not all(in_hand):
            return [(_grasp(HOLDER, "bowl"),)] if in_hand[1] else [(cup,)]
        info = view.scene.object("bowl")
        bowl = upright(*(BOWL_AT_M - _middle(info)[:3]))
        at = upright(*(BOWL_AT_M + POUR_FROM_M))
        at[2] += info.half_size_m[2] + view.scene.object("cup").half_size_m[2]
        # The cup is round: it is turned so that the hand points straight ahead.
        grasp = compose(invert(view.pose("cup")), view.state.ee_pose[ARMS.index(POURER)])
        ahead = rotation_matrix(grasp[3:])[:2, 2]
        at[3:] = quat_from_yaw(-np.arctan2(ahead[1], ahead[0]))
        if rise(view, "bowl") < HELD_UP_M:
            return [
                (_bring(HOLDER, "bowl", bowl.tolist()),), (_bring(POURER, "cup", at.tolist()),),
            ]
        wait = [(SkillCall("close", POURER),)] * 3  # closing a closed hand takes 0.4 s
        if _in_bowl(view) >= MOST:
            return [] if view.all_at_rest() else wait
        shake = [
            (SkillCall("move_by", POURER, {"offset": [0.0, 0.0, dz]}),) for dz in (0.03, -0.03)
        ]
        if view.tilt("cup") > TIPPED_RAD:
            return [*shake, *wait]
        steps = []
        for angle in np.linspace(0.5, 1.0, 4) * POUR_RAD:  # not all at once
            tip = np.array([*at[:3], np.cos(angle / 2), -np.sin(angle / 2), 0.0, 0.0])
            hand = compose(compose(tip, np.array([0, 0, 0, *at[3:]])), grasp)
            steps.append((SkillCall("move_to", POURER, {"pose": hand.tolist()}),))
        return [*steps, *shake, *shake, *wait]


def _grasp(arm: str, name: str, **how: str) -> SkillCall:
    return SkillCall("grasp", arm, {"object": name, **how})


def _bring(arm: str, name: str, pose: list[float]) -> SkillCall:
    return SkillCall("place", arm, {"object": name, "pose": pose, "release": False})


TASK = PourAndHold()
