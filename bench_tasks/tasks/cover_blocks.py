"""Memory probe: three blocks are seen, then covered; say and show where one of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bench_tasks.tasks.base import (
    AFTER,
    Ask,
    Check,
    Goal,
    Happening,
    Layout,
    MoveObjects,
    ObjectSpec,
    Show,
    Task,
    Wait,
)
from bench_tasks.tasks.families.layouts import arm_for, nearest_first, upright
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Question, Scene, SkillCall

PLACES = ("left", "middle", "right")
COLORS = ("red", "green", "blue")
PARKED_X_M, ASIDE_X_M = 0.66, 0.34


def _half_height(scene: Scene, name: str) -> float:
    return scene.object(name).half_size_m[2]


def _place(scene: Scene) -> str:
    """Where the block is that is asked for."""
    return next(p for p, b in scene.params["at"].items() if b == scene.params["target"])


def _covered(view: View, block: str, cover: str) -> bool:
    offset = view.position(cover) - view.position(block)
    return bool(np.linalg.norm(offset[:2]) < 0.02 and view.touching(cover, "table"))


class CoverBlocks(Task):
    """The colours stand in an order that only those who looked before can know."""

    name = "cover_blocks"
    mode = "single"
    kind = "probe"
    summary = "see three blocks, they are covered, uncover the one asked for"
    told = False
    """Whether the instruction tells where the blocks are: the control."""

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three blocks and three covers."""
        return (
            *(ObjectSpec(f"{c}_block", "block", c, {"size": 0.04}) for c in COLORS),
            *(ObjectSpec(f"{place}_cover", "cover", "white") for place in PLACES),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The order of the colours and the colour asked for are drawn."""
        order = [COLORS[i] for i in rng.permutation(3)]
        target = COLORS[int(rng.integers(3))]
        poses, at, covered = {}, {}, {}
        low, block = objects["left_cover"].half_size_m[2], objects[f"{target}_block"].half_size_m[2]
        for place, color, y in zip(PLACES, order, (0.2, 0.0, -0.2), strict=True):
            x, dy = rng.uniform(0.46, 0.52), rng.uniform(-0.02, 0.02)
            poses[f"{color}_block"] = upright(x, y + dy, block, rng.uniform(-0.1, 0.1))
            poses[f"{place}_cover"] = upright(PARKED_X_M, y, low)
            at[place] = f"{color}_block"
            covered[place] = upright(x, y + dy, low).tolist()
        told = "".join(f" Before, the {b.replace('_', ' ')} was {p}." for p, b in at.items())
        (later,) = rng.spawn(1)
        others = [name for name in at.values() if name != f"{target}_block"]
        layout = Layout(
            poses,
            f"Before the covers were put on you saw a red, a green and a blue block. Uncover the "
            f"{target} block: lift its cover and put it aside. Touch no other cover.",
            params={
                "target": f"{target}_block", "at": at, "covered": covered,
                "asked_after": others[int(later.integers(len(others)))],
            },
            reach={f"{c}_block": nearest_first(poses[f"{c}_block"]) for c in COLORS},
            paraphrases=(
                f"You were shown a red, a green and a blue block, which are hidden by now. Lift "
                f"the cover off the {target} one, set it down beside it and let go; leave the "
                "other two covers alone.",
                f"Remember where the {target} block stood, and bring it to light: its cover is to "
                "be lifted and put aside, no other one touched.",
            ),
        )
        if not self.told:
            return layout
        return replace(layout, instruction=layout.instruction + told, paraphrases=())

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """Show, cover, ask."""
        covers = {f"{p}_cover": tuple(scene.params["covered"][p]) for p in PLACES}
        return (
            Wait(0.5), Show("blocks in view"), Wait(0.5), MoveObjects(covers), Wait(0.5),
            Show("blocks covered"), self.asked(scene),
        )

    def asked(self, scene: Scene) -> Ask:
        """Where the block is."""
        target, place = scene.params["target"], _place(scene)
        name = target.replace("_", " ")
        question = Question(
            "where", f"Under which cover is the {name}: left, middle or right?", {target: PLACES}
        )
        return Ask(question, {target: place}, 1 / 3, (f"The {name} is {place}.",),
                   f"Where is the {name}?")  # fmt: skip

    def sights(self, view: View) -> tuple[str, ...]:
        """Where the blocks are that are not covered."""
        return tuple(
            f"The {block.replace('_', ' ')} is {place}."
            for place, block in view.scene.params["at"].items()
            if not any(_covered(view, block, f"{p}_cover") for p in PLACES)
        )

    def recall(self, view: View) -> Ask:
        """Where the block is."""
        return self.asked(view.scene)

    def afterwards(self, view: View) -> tuple[Happening, ...]:
        """It is asked of a block that nobody has asked for so far, and that is still covered."""
        at, block = view.scene.params["at"], view.scene.params["asked_after"]
        places = tuple(p for p in PLACES if at[p] != view.scene.params["target"])
        gold = next(p for p in places if at[p] == block)
        question = Question(AFTER, f"Where is the {block.replace('_', ' ')}?", {"answer": places})
        return (
            Show("done"),
            Ask(question, {"answer": gold}, 1 / len(places), self.evidence_after(view.scene)),
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """Sights of that block."""
        return (f"The {scene.params['asked_after'].replace('_', ' ')} is ",)

    def goal(self, scene: Scene) -> Goal:
        """The right cover stands aside, let go; the others still cover their blocks."""
        at, target = scene.params["at"], scene.params["target"]
        cover = f"{_place(scene)}_cover"
        return Goal(
            (
                Check(
                    "its cover aside",
                    lambda v: bool(
                        np.linalg.norm((v.position(cover) - v.position(target))[:2]) > 0.09
                    )
                    and v.supported_by(cover, "table")
                    and v.tilt(cover) < 0.1,
                ),
                Check(
                    "the block where it was",
                    lambda v: bool(
                        np.linalg.norm((v.position(target) - v.start.position(target))[:2]) < 0.03
                    )
                    and v.supported_by(target, "table"),
                ),
                Check(
                    "the others covered",
                    lambda v: all(
                        _covered(v, block, f"{p}_cover")
                        for p, block in at.items()
                        if block != target
                    ),
                ),
                Check(
                    "let go",
                    lambda v: not v.touched_by_robot(cover) and not v.touched_by_robot(target),
                ),
            ),
            after=("its cover lifted",),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Looking under another cover is guessing, and so is trying whether it is loose."""
        target = scene.params["target"]
        wrong = [f"{p}_cover" for p, block in scene.params["at"].items() if block != target]
        return (
            Check(
                "no other cover touched",
                lambda v: not any(v.touched_by_robot(c) for c in wrong),
            ),
            Check(
                "no other cover opened",
                lambda v: all(
                    v.position(c)[2] < _half_height(scene, c) + 0.02 and v.tilt(c) < 0.3
                    for c in wrong
                ),
            ),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """The right cover held, then lifted over the block."""
        cover = f"{_place(scene)}_cover"
        # The cover's lower edge has passed the block's top.
        clear = _half_height(scene, cover) + 2 * _half_height(scene, scene.params["target"])
        return (
            Check("its cover held", lambda v: v.holder(cover) is not None),
            Check(
                "its cover lifted",
                lambda v: v.holder(cover) is not None
                and v.position(cover)[2] > clear,
            ),
        )

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Lift the right cover and put it in front of its block."""
        return self.act(view, turn, _place(view.scene))

    def act(self, view: View, turn: int, choice: str) -> list[tuple[SkillCall, ...]]:
        """The same with the cover that was chosen."""
        target, cover = view.scene.params["at"][choice], f"{choice}_cover"
        at = view.position(cover)
        if np.linalg.norm((at - view.position(target))[:2]) > 0.09 and not view.holder(cover):
            return []
        arm = view.holder(cover) or arm_for(view, cover)
        steps: list[tuple[SkillCall, ...]] = []
        if view.holder(cover) is None:
            steps.append((SkillCall("grasp", arm, {"object": cover}),))
        pose = [ASIDE_X_M, float(view.position(target)[1]), _half_height(view.scene, cover)]
        place = SkillCall("place", arm, {"object": cover, "pose": pose})
        return [*steps, (place,), (SkillCall("home", arm),)]


class CoverBlocksTold(CoverBlocks):
    """The control."""

    name = "cover_blocks_told"
    apart = True
    told = True
    summary = f"{CoverBlocks.name}, and the instruction tells where the blocks are"


TASK, CONTROL = CoverBlocks(), CoverBlocksTold()
