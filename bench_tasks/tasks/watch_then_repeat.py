"""Memory probe: three blocks are put on a mat one after the other; do it in the same order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    Wait,
)
from bench_tasks.tasks.families.carry import Carry, Step, next_steps
from bench_tasks.tasks.families.layouts import nearest_first, upright
from bench_tasks.tasks.families.memory import (
    MemoryTask,
    lifted,
    name_of,
    put_down_on,
    standing_on_mat,
)
from bench_tasks.view import View
from bench_tasks.vocabulary import ObjectInfo, Scene

BLOCKS = ("red_block", "green_block", "blue_block")
LETTERS = dict(zip("ABC", BLOCKS, strict=True))
ORDERS = tuple(" -> ".join(order) for order in itertools.permutations(LETTERS))
MAT, MAT_AT_M, MAT_SIZE_M = "gray_mat", (0.45, 0.0), 0.24
ON_MAT_M = {"red_block": (0.45, 0.08), "green_block": (0.45, 0.0), "blue_block": (0.45, -0.08)}
"""A block has its own place on the mat, whenever it comes: the row tells nothing of the order."""
OFF_MAT_M = ((0.42, 0.30), (0.62, 0.17), (0.42, -0.30))


def _did(block: str) -> str:
    return f"put the {name_of(block)} on the gray mat"


def _undid(block: str) -> str:
    return f"took the {name_of(block)} off the gray mat"


class WatchThenRepeat(MemoryTask):
    """It is shown once; afterwards all is as it was before."""

    name = "watch_then_repeat"
    version = 2
    summary = "see three blocks put on a mat one after the other; repeat it in the same order"

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Three blocks and the mat."""
        return (
            *(ObjectSpec(b, "block", b.split("_")[0], {"size": 0.04}) for b in BLOCKS),
            ObjectSpec(MAT, "pad", "gray", {"size": MAT_SIZE_M}),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The order is drawn, and which block lies where before and after."""
        half = objects[BLOCKS[0]].half_size_m[2]
        order = [BLOCKS[k] for k in rng.permutation(len(BLOCKS))]
        at = [OFF_MAT_M[k] for k in rng.permutation(len(BLOCKS))]

        def near(place: tuple[float, float]) -> np.ndarray:
            x, y = np.array(place) + rng.uniform(-0.015, 0.015, 2)
            return upright(x, y, half, rng.uniform(-0.3, 0.3))

        poses = {block: near(place) for block, place in zip(BLOCKS, at, strict=True)}
        on = {block: near(ON_MAT_M[block]).tolist() for block in BLOCKS}
        back = {block: near(place).tolist() for block, place in zip(BLOCKS, at, strict=True)}
        return Layout(
            {**poses, MAT: upright(*MAT_AT_M, 0.0005)},
            self.instructed(
                "You saw once how the three blocks were put on the gray mat, one after the other. "
                "Put them there in the same order, each with a hand, and let go of each before "
                "the next.",
                *(f"I saw that somebody {_did(block)}." for block in order),
            ),
            self.drawn(rng, order=order, on=on, back=back),
            reach={block: nearest_first(pose) for block, pose in poses.items()},
        )  # fmt: skip

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """That somebody put one of the blocks on the mat or took it off, or another one."""
        names = BLOCKS if own else ("yellow_block", "white_block", "black_block")
        event = (_did, _undid)[int(rng.integers(2))]
        return f"I saw that somebody {event(names[int(rng.integers(len(names)))])}."

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """It is shown and undone, people talk, and the order is asked."""
        shown: list[Happening] = []
        for block in scene.params["order"]:
            on = MoveObjects({block: tuple(scene.params["on"][block])})
            shown += [on, Wait(0.1), Show(f"{block} comes")]
        for block in scene.params.get("back_order", BLOCKS):  # All at once in version 1.
            back = MoveObjects({block: tuple(scene.params["back"][block])})
            shown += [back, Wait(0.1), Show(f"{block} goes")]
        # Of what was done twice the first time counts.
        before, then = self.talk_in_two(scene)
        return (
            *before, Show("before"), *shown, Wait(0.2), Show("after"), then, self.asked(scene)
        )

    def drawn_after(self, rng: np.random.Generator) -> dict[str, Any]:
        """The order in which they are taken back, which is asked for in the end."""
        return {"back_order": [BLOCKS[k] for k in rng.permutation(len(BLOCKS))]}

    def sights(self, view: View) -> tuple[str, ...]:
        """Which block was put on the mat, or taken off, since one looked the last time."""
        found = []
        for block in BLOCKS:
            now, before = (bool(standing_on_mat(v, block)) for v in (view, view.start))
            if now != before:
                found.append(f"I saw that somebody {_did(block) if now else _undid(block)}.")
        return tuple(found)

    def asked(self, scene: Scene) -> Ask:
        """In which order."""
        return self._in_which_order(_did, scene.params["order"], "remembered")

    def asked_after(self, view: View) -> Ask | None:
        """In which order they were taken back; the control tells nothing of that."""
        if self.told:
            return None
        return self._in_which_order(_undid, view.scene.params["back_order"], AFTER)

    def _in_which_order(
        self, event: Callable[[str], str], order: Sequence[str], name: str
    ) -> Ask:
        did = {letter: event(block) for letter, block in LETTERS.items()}
        things = "; ".join(f"{letter}: {words}" for letter, words in did.items())
        letter_of = {block: letter for letter, block in LETTERS.items()}
        return self.question(
            f"somebody did three things. {things}. In which order?", ORDERS,
            " -> ".join(letter_of[block] for block in order), tuple(did.values()), name,
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """All that was taken, when it is asked in the end."""
        return tuple(map(_undid, BLOCKS))

    def goal(self, scene: Scene) -> Goal:
        """All on the mat, brought there by hand, let go."""
        return Goal(
            (
                Check("on the mat", lambda v: all(standing_on_mat(v, b) for b in BLOCKS)),
                Check(
                    "standing",
                    lambda v: all(v.supported_by(b, "table") and v.lean(b) < 0.1 for b in BLOCKS),
                ),
                Check("let go", lambda v: not any(v.touched_by_robot(b) for b in BLOCKS)),
            ),
            after=tuple(f"{name_of(b)} lifted" for b in scene.params["order"]),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Each lifted by a hand, in their order."""
        order = scene.params["order"]
        return tuple(
            Check(
                f"{name_of(block)} lifted",
                lambda v, b=block: lifted(v, b),
                after=tuple(f"{name_of(b)} lifted" for b in order[:k]),
            )
            for k, block in enumerate(order)
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """None is on the mat before those that came before it."""
        order = scene.params["order"]

        def in_order(view: View) -> bool:
            on = [put_down_on(view, block) is not None for block in order]
            last = max((k for k, there in enumerate(on) if there), default=0)
            return all(
                standing_on_mat(view, block) and view.touching(block, "table")
                for block in order[:last]
            )

        return (Check("in their order", in_order),)

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """The first in the chosen order that is not on the mat."""
        for letter in choice.split(" -> "):
            block = LETTERS[letter]
            if standing_on_mat(view, block) is None or view.holder(block):
                half = view.scene.object(block).half_size_m[2]
                carry = Carry(block, (*ON_MAT_M[block], half))
                return next_steps(view, [carry], turn)
        return []


class WatchThenRepeatTold(WatchThenRepeat):
    """The control."""

    name = "watch_then_repeat_told"
    told = True
    summary = f"{WatchThenRepeat.name}, and the instruction tells the order"


TASK, CONTROL = WatchThenRepeat(), WatchThenRepeatTold()
