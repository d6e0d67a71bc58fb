"""Memory probe: a block is taken from its mat; put it back where it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_tasks.probes.talk import SEEN, put
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
    Wait,
)
from bench_tasks.tasks.families.carry import Carry, Step, done, next_steps
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.memory import (
    MAT_M,
    MATS,
    MemoryTask,
    carried_to,
    lies_on,
    lifted,
    name_of,
    put_down_on,
    standing_on_mat,
)
from bench_tasks.tasks.families.rumours import OPERATOR, overruled
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene

BLOCK, MIDDLE = "red_block", "gray_mat"
OTHERS = ("green_block", "blue_block", "yellow_block")
"""Blocks that only people speak of."""
MIDDLE_M = (0.42, 0.0)


def _places(scene: Scene) -> list[str]:
    """The mat where it was at first, and each that it belongs on from then on, as Ana says."""
    return scene.params.get("places", [scene.params["target"]])  # Without any before rumours.


def _belongs(mat: str) -> str:
    return put("belongs", 0, object=name_of(BLOCK), place=f"on the {name_of(mat)}")


class PutBackBlock(MemoryTask):
    """Four mats are alike but for their colour, and from the middle all look as likely."""

    name = "put_back_block"
    counts = (SEEN, OPERATOR)
    summary = "a block was taken from one of four mats to the middle; put it back where it was"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """A block, four mats that it may come from, and the one in the middle."""
        mats = [*((name, name.split("_")[0]) for name in MATS), (MIDDLE, "gray")]
        return (
            ObjectSpec(BLOCK, "block", "red", {"size": 0.04}),
            *(ObjectSpec(name, "pad", color, {"size": MAT_M}) for name, color in mats),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The mat is drawn, and how the block lies on it and later in the middle."""
        half = objects[BLOCK].half_size_m[2]
        target = list(MATS)[int(rng.integers(len(MATS)))]
        places = [target]
        if self.rumours and not self.told:
            places = overruled(rng.spawn(1)[0], target, list(MATS))

        def on(at: tuple[float, float]) -> np.ndarray:
            x, y = np.array(at) + rng.uniform(-0.015, 0.015, 2)
            return upright(x, y, half, rng.uniform(-0.3, 0.3))

        first, middle = on(MATS[places[0]]), on(MIDDLE_M)
        mats = {name: upright(*at, 0.0005) for name, at in {**MATS, MIDDLE: MIDDLE_M}.items()}
        return Layout(
            {BLOCK: first, **mats},
            self.instructed(
                "The red block was taken from its mat to the gray one while you looked on. Put it "
                "back on the mat on which you saw it first, and let go. Put it on no other mat.",
                f"Before, the red block was on the {name_of(target)}.",
            ),
            self.drawn(rng, target=target, places=places, taken=middle.tolist()),
            reach={BLOCK: ARMS},
        )

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """Where the red block is, was or belongs, or another one."""
        block = BLOCK if own else OTHERS[int(rng.integers(len(OTHERS)))]
        kind = ("lies", "was", "belongs")[int(rng.integers(3))]
        mat = list(MATS)[int(rng.integers(len(MATS)))]
        return put(kind, 0, object=name_of(block), place=f"on the {name_of(mat)}")

    def decrees(self, params: dict[str, Any]) -> list[str]:
        """Where it belongs from now on."""
        return [_belongs(mat) for mat in params["places"][1:]]

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """It is seen, taken away, people talk, and it is asked about."""
        taken = MoveObjects({BLOCK: tuple(scene.params["taken"])})
        return (
            Wait(0.2), Show("on its mat"), taken, Wait(0.3), Show("in the middle"),
            self.talk(scene), self.asked(scene),
        )  # fmt: skip

    def sights(self, view: View) -> tuple[str, ...]:
        """Which mat the block is on."""
        mat = standing_on_mat(view, BLOCK)
        return (lies_on(BLOCK, mat),) if mat else ()

    def asked(self, scene: Scene) -> Ask:
        """Where it was."""
        target, places = scene.params["target"], _places(scene)
        return self.question(
            "Where was the red block before it was on the gray mat?",
            tuple(f"on the {name_of(mat)}" for mat in MATS), f"on the {name_of(target)}",
            (lies_on(BLOCK, target) if len(places) == 1 else _belongs(target),),
        )

    def asked_after(self, view: View) -> Ask:
        """On which mat it was last, where the arms have put it if they have."""
        mat = standing_on_mat(view, BLOCK)
        mat = mat if mat in MATS else _places(view.scene)[0]
        return self.question(
            "Where was the red block before it was on the gray mat?",
            tuple(f"on the {name_of(mat)}" for mat in MATS), f"on the {name_of(mat)}",
            self.evidence_after(view.scene), AFTER, (SEEN,),
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """All sights of it, when it is asked in the end."""
        return tuple(lies_on(BLOCK, mat) for mat in MATS)

    def cleared(self, view: View) -> dict[str, np.ndarray]:
        """It is taken to the middle again."""
        return {BLOCK: np.array(view.scene.params["taken"])}

    def goal(self, scene: Scene) -> Goal:
        """On its mat, carried there, let go."""
        return carried_to(BLOCK, scene.params["target"])

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Lifted by a hand."""
        return (Check("lifted", lambda v: lifted(v, BLOCK)),)

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """The first attempt counts."""
        wrong = {mat for mat in MATS if mat != scene.params["target"]}
        return (
            Check("put on no other mat", lambda v: put_down_on(v, BLOCK) not in wrong),
        )  # fmt: skip

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """Bring it to the chosen mat."""
        x, y = MATS[choice.removeprefix("on the ").replace(" ", "_")]
        half = view.scene.object(BLOCK).half_size_m[2]
        carry = Carry(BLOCK, (x, y, half), arm=ARMS[0] if y > 0.0 else ARMS[1])
        return [] if done(view, carry) else next_steps(view, [carry], turn)


class PutBackBlockTold(PutBackBlock):
    """The control."""

    name = "put_back_block_told"
    told = True
    summary = f"{PutBackBlock.name}, and the instruction tells where it was"


TASK, CONTROL = PutBackBlock(), PutBackBlockTold()
