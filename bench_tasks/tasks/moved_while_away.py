"""Memory probe: one of three blocks was moved while nobody looked, or none; undo that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_tasks.probes.talk import put
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
from bench_tasks.tasks.families.layouts import nearest_first, upright
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
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

BLOCKS = ("red_block", "green_block", "blue_block")
SIGN, SIGN_MAT = "white_block", "gray_mat"
SIGN_M, SIGN_MAT_M = (0.36, 0.1), (0.40, -0.08)
ASIDE_M = ((0.66, 0.24), (0.66, 0.0), (0.66, -0.24))
NOTHING = "nothing"
OTHERS = ("yellow_block", "orange_block", "black_block")
"""Blocks that only people speak of."""


def _free(scene: Scene) -> str:
    """The mat that was free at first."""
    return next(mat for mat in MATS if mat not in scene.params["at"].values())


class MovedWhileAway(MemoryTask):
    """One of four mats is free before as after, and which one it was cannot be seen."""

    name = "moved_while_away"
    summary = "one of three blocks was moved off view, or none; put it back, or say so by a sign"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three blocks on four mats, and the sign that nothing was moved, with its mat."""
        mats = (*MATS, SIGN_MAT)
        return (
            *(
                ObjectSpec(name, "block", name.split("_")[0], {"size": 0.04})
                for name in (*BLOCKS, SIGN)
            ),
            *(ObjectSpec(name, "pad", name.split("_")[0], {"size": MAT_M}) for name in mats),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """What was moved is drawn, nothing as often as each; all lie alike before and after."""
        half = objects[SIGN].half_size_m[2]
        order = [list(MATS)[k] for k in rng.permutation(len(MATS))]
        at, free = dict(zip(BLOCKS, order, strict=False)), order[-1]
        moved = (*BLOCKS, NOTHING)[int(rng.integers(len(BLOCKS) + 1))]

        def on(mat: str) -> np.ndarray:
            x, y = np.array(MATS[mat]) + rng.uniform(-0.015, 0.015, 2)
            return upright(x, y, half, rng.uniform(-0.3, 0.3))

        poses = {name: on(mat) for name, mat in at.items()}
        away = on(free)
        marks = {**MATS, SIGN_MAT: SIGN_MAT_M}
        fixed = {name: upright(*place, 0.0005) for name, place in marks.items()}
        return Layout(
            {**poses, SIGN: upright(*SIGN_M, half), **fixed},
            self.instructed(
                "While you were away, one of the red, the green and the blue block may have been "
                "moved to another mat. Put it back on the mat where it was, and touch no other "
                "block. If none was moved, put the white block on the gray mat instead.",
                *(f"Before, the {name_of(name)} was on the {name_of(mat)}."
                  for name, mat in at.items()),
            ),
            self.drawn(
                rng, moved=moved, at=at,
                away={moved: away.tolist()} if moved != NOTHING else {},
            ),
            reach={name: nearest_first(poses[name]) for name in BLOCKS},
        )  # fmt: skip

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """Where one of the blocks is or was, or another thing."""
        names = BLOCKS if own else OTHERS
        name, mat = names[int(rng.integers(len(names)))], list(MATS)[int(rng.integers(len(MATS)))]
        kind = ("lies", "was")[int(rng.integers(2))]
        return put(kind, 0, object=name_of(name), place=f"on the {name_of(mat)}")

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """They are seen; people talk while nobody looks; they are seen again."""
        away = {name: tuple(pose) for name, pose in scene.params["away"].items()}
        # The last that was seen is compared with the first.
        later, first = self.talk_in_two(scene)
        return (
            Wait(0.2), Show("before"), first, *([MoveObjects(away)] if away else []), Wait(0.3),
            Show("after"), *later, self.asked(scene),
        )  # fmt: skip

    def sights(self, view: View) -> tuple[str, ...]:
        """Which block is on which mat."""
        on = {name: standing_on_mat(view, name) for name in BLOCKS}
        return tuple(lies_on(name, mat) for name, mat in on.items() if mat)

    def asked(self, scene: Scene) -> Ask:
        """What was moved."""
        at, moved = scene.params["at"], scene.params["moved"]
        names = tuple(map(name_of, BLOCKS))
        seen = [lies_on(name, mat) for name, mat in at.items()]
        if moved != NOTHING:
            seen.append(lies_on(moved, _free(scene)))
        return self.question(
            f"Which of these has been moved: {', '.join(names)}?", (*names, NOTHING),
            name_of(moved), tuple(seen),
        )

    def drawn_after(self, rng: np.random.Generator) -> dict[str, Any]:
        """The block that is asked for in the end."""
        return {"asked_after": BLOCKS[int(rng.integers(len(BLOCKS)))]}

    def asked_after(self, view: View) -> Ask:
        """On which mat one of them was last, where the arms have put it if it is that."""
        block = view.scene.params["asked_after"]
        mats = [standing_on_mat(view, block), standing_on_mat(view.start, block)]
        mat = next(mat for mat in mats if mat in MATS)
        return self.question(
            f"Where was the {name_of(block)} before it was on the gray mat?",
            tuple(f"on the {name_of(mat)}" for mat in MATS), f"on the {name_of(mat)}",
            self.evidence_after(view.scene), AFTER,
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """All sights of that block, when it is asked in the end."""
        return tuple(lies_on(scene.params["asked_after"], mat) for mat in MATS)

    def cleared(self, view: View) -> dict[str, np.ndarray]:
        """That block is put on the gray mat, all others where no mat is."""
        asked = view.scene.params["asked_after"]
        half = view.scene.object(SIGN).half_size_m[2]
        others = [block for block in (*BLOCKS, SIGN) if block != asked]
        at = {asked: SIGN_MAT_M, **dict(zip(others, ASIDE_M, strict=True))}
        return {block: upright(*place, half) for block, place in at.items()}

    def _carried(self, scene: Scene) -> tuple[str, str]:
        """What is to be carried, and onto which mat."""
        moved = scene.params["moved"]
        return (SIGN, SIGN_MAT) if moved == NOTHING else (moved, scene.params["at"][moved])

    def goal(self, scene: Scene) -> Goal:
        """Where it was, carried there, let go."""
        return carried_to(*self._carried(scene))

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Lifted by a hand."""
        name, _ = self._carried(scene)
        return (Check("lifted", lambda v: lifted(v, name)),)

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """The first attempt counts."""
        name, mat = self._carried(scene)
        others = [block for block in (*BLOCKS, SIGN) if block != name]
        may = {mat, None} if name == SIGN else {mat, None, _free(scene)}
        return (
            Check(
                "no other block touched",
                lambda v: not any(v.touched_by_robot(other) for other in others),
            ),
            Check("put on no other mat", lambda v: put_down_on(v, name) in may),
        )

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """Bring what was chosen to the mat that is free, or the sign to its own."""
        taken = {standing_on_mat(view.start, block) for block in BLOCKS}
        name, (x, y) = choice.replace(" ", "_"), MATS[next(m for m in MATS if m not in taken)]
        if choice == NOTHING:
            name, (x, y) = SIGN, SIGN_MAT_M
        carry = Carry(name, (x, y, view.scene.object(name).half_size_m[2]))
        return [] if done(view, carry) else next_steps(view, [carry], turn)


class MovedWhileAwayTold(MovedWhileAway):
    """The control."""

    name = "moved_while_away_told"
    told = True
    summary = f"{MovedWhileAway.name}, and the instruction tells where all were"


TASK, CONTROL = MovedWhileAway(), MovedWhileAwayTold()
