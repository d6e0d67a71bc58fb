"""A mug, passed on by way of the table, hung by its handle on the peg of a rack."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.tasks.families.carry import Carry, Step, next_steps
from bench_tasks.tasks.families.kitchen import carried_stage, let_go, local, side
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View, compose, invert
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall, other_arm

MIDDLE_M = (0.46, 0.0)
WITHIN_M = 0.08
BAR_M = 0.008
"""Thickness of the handle."""
POST_M = 0.018
PEG_BELOW_TOP_M = 0.02
FREE_M = 0.02
BEFORE_TIP_M = 0.035
PASSED = "mug set down in the middle"


def _peg(half: tuple[float, float, float]) -> np.ndarray:
    """Root and tip (2, 3) of the peg's axis in the rack's frame; the foot is 10 cm wide."""
    length = 2 * half[1] - POST_M / 2 - half[0]
    z = half[2] - PEG_BELOW_TOP_M
    return np.array([[0.0, half[1] - length, z], [0.0, half[1], z]])


def _opening(half: tuple[float, float, float]) -> tuple[float, float, float]:
    """The handle's opening in the mug's plane y = 0: least x, greatest x, greatest |z|."""
    return 2 * half[1] - half[0], half[0] - BAR_M, 0.022


def _on_peg(view: View) -> bool:
    """Whether the peg goes through the handle's opening."""
    rack, mug = (view.scene.object(n).half_size_m for n in ("rack", "mug"))
    to_mug = invert(local(view, "mug", "rack"))
    root, tip = (compose(to_mug, np.array([*p, 1, 0, 0, 0]))[:3] for p in _peg(rack))
    if root[1] * tip[1] >= 0.0:
        return False
    x, _, z = root + (tip - root) * root[1] / (root[1] - tip[1])
    low, high, tall = _opening(mug)
    return bool(low < x < high and abs(z) < tall)


def _hangs_free(view: View) -> bool:
    """Whether the rack alone carries the mug, clear of the table."""
    others = [o.name for o in view.scene.objects if o.name not in ("rack", "mug")]
    lowest = view.position("mug")[2] - np.linalg.norm(view.scene.object("mug").half_size_m[1:])
    return bool(
        view.touching("mug", "rack")
        and not any(view.touching("mug", other) for other in ("table", *others))
        and lowest > FREE_M
    )


class HangingMug(Task):
    """Sequential work: mug and rack stand on opposite sides, so the arms pass the mug on."""

    version = 2
    name = "hanging_mug"
    tier = 2
    mode = "sequential"
    summary = "pass the mug on by way of the table and hang it by its handle on the rack's peg"
    time_limit_s = 60.0

    def objects(self) -> tuple[ObjectSpec, ...]:
        """The mug and the rack, which is fixed."""
        return (ObjectSpec("mug", "hook_mug", "blue"), ObjectSpec("rack", "rack", "brown"))

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The mug's side is drawn; the peg of the rack opposite points to the middle."""
        bringer = ARMS[int(rng.integers(2))]
        hanger = other_arm(bringer)
        mug = upright(
            rng.uniform(0.40, 0.50), side(bringer) * rng.uniform(0.32, 0.42),
            objects["mug"].half_size_m[2], rng.uniform(-0.35, 0.35),
        )
        # The peg is along +y of the rack; from the left side the middle is towards -y.
        yaw = (np.pi if hanger == "left" else 0.0) + rng.uniform(-0.1, 0.1)
        rack = upright(
            rng.uniform(0.52, 0.58), side(hanger) * rng.uniform(0.28, 0.36),
            objects["rack"].half_size_m[2], yaw,
        )
        return Layout(
            {"mug": mug, "rack": rack},
            f"The mug is on the {bringer} side, the rack on the {hanger} side. With the {bringer} "
            f"arm set the mug down upright in the middle of the table (x {MIDDLE_M[0]:.2f} m, y "
            f"{MIDDLE_M[1]:g} m), then with the {hanger} arm hang it by its handle on the peg of "
            "the rack and let go.",
            params={"bringer": bringer, "hanger": hanger},
            reach={"mug": (bringer,)},
            paraphrases=(
                f"Hang the mug by its handle on the rack's peg so that it hangs free: the "
                f"{bringer} arm sets it down upright in the middle of the table (x "
                f"{MIDDLE_M[0]:.2f} m, y {MIDDLE_M[1]:g} m), the {hanger} arm takes it from there.",
                f"The mug belongs on the rack. The {bringer} arm passes it on by setting it down "
                f"upright at x {MIDDLE_M[0]:.2f} m, y {MIDDLE_M[1]:g} m; the {hanger} arm hangs "
                "its handle over the peg and lets go.",
            ),
        )

    def goal(self, scene: Scene) -> Goal:
        """The peg through the handle, the mug free of all else, after both arms had it."""
        hanger = scene.params["hanger"]
        return Goal(
            (
                Check("peg through the handle", _on_peg),
                Check("hanging free", _hangs_free),
                let_go("mug"),
            ),
            after=(PASSED, carried_stage("mug", hanger).name, _hung_by(hanger).name),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Carried by the first arm, set down, carried by the second, put on the peg by it."""
        first, second = (carried_stage("mug", scene.params[k]) for k in ("bringer", "hanger"))
        return (
            first,
            Check(
                PASSED,
                lambda v: _in_middle(v) and v.tilt("mug") < 0.1
                and v.supported_by("mug", "table") and not v.touched_by_robot("mug"),
                after=(first.name,),
            ),
            carried_stage("mug", scene.params["hanger"], after=(PASSED,)),
            _hung_by(scene.params["hanger"], after=(second.name,)),
        )

    def expert(self, view: View, turn: int) -> list[Step]:
        """To the middle, handle ahead; then onto the peg from its tip, and down."""
        bringer, hanger = view.scene.params["bringer"], view.scene.params["hanger"]
        half = view.scene.object("mug").half_size_m
        if _on_peg(view) and not view.touched_by_robot("mug"):
            # It swings for a while: that is waited for.
            return [] if view.at_rest("mug") else [(SkillCall("open", hanger),)] * 2
        if view.grasped("mug", hanger):
            return _hang(view, hanger)
        if not _in_middle(view) or view.touched_by_robot("mug"):
            pose = (*MIDDLE_M, half[2], 1.0, 0.0, 0.0, 0.0)
            return next_steps(view, [Carry("mug", pose, bringer)], turn)
        return [(SkillCall("home", bringer),), (SkillCall("grasp", hanger, {"object": "mug"}),)]


def _in_middle(view: View) -> bool:
    return bool(np.linalg.norm(view.position("mug")[:2] - MIDDLE_M) < WITHIN_M)


def _hung_by(arm: str, after: tuple[str, ...] = ()) -> Check:
    """The stage that the arm has brought the handle over the peg."""
    return Check(
        f"put on the peg by the {arm} arm", lambda v: v.grasped("mug", arm) and _on_peg(v), after
    )


def _hang(view: View, arm: str) -> list[Step]:
    """Before the peg's tip, along the peg, down onto it, let go, up and home."""
    half, rack = view.scene.object("mug").half_size_m, view.pose("rack")
    root, tip = (
        compose(rack, np.array([*p, 1, 0, 0, 0]))[:3]
        for p in _peg(view.scene.object("rack").half_size_m)
    )
    along = (tip - root) / np.linalg.norm(tip - root)
    low, high, tall = _opening(half)
    # The rack's x axis, or its opposite where the rack is turned to face the other way.
    ahead = np.array([along[1], -along[0], 0.0]) * (1.0 if along[1] > 0 else -1.0)
    yaw = float(np.arctan2(ahead[1], ahead[0]))
    before = tip + BEFORE_TIP_M * along - (low + high) / 2 * ahead
    pose = upright(*before, yaw)
    on = (root + tip) / 2 - (tip + BEFORE_TIP_M * along)
    place = {"object": "mug", "pose": [float(v) for v in pose], "release": False}

    def move(offset: np.ndarray) -> Step:
        return (SkillCall("move_by", arm, {"offset": [float(v) for v in offset]}),)

    return [
        (SkillCall("place", arm, place),), move(on), move(np.array([0.0, 0.0, 0.004 - tall])),
        (SkillCall("open", arm),), move(np.array([0.0, 0.0, 0.10])), (SkillCall("home", arm),),
    ]


TASK = HangingMug()
