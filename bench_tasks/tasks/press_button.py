"""Memory probe: something happens a number of times; press a button as often."""

from __future__ import annotations

from collections.abc import Mapping
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
from bench_tasks.tasks.families.carry import Step
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.memory import (
    MAT_M,
    MemoryTask,
    name_of,
    standing_on_mat,
)
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo, Scene, SkillCall

COUNT, DONE, BLOCK = "green_button", "blue_button", "red_block"
MAT, OTHER_MAT = "gray_mat", "yellow_mat"
TIMES = ("1", "2", "3", "4")
BUTTONS_M = {COUNT: (0.45, 0.16), DONE: (0.45, -0.16)}
MATS_M, ASIDE_M = {MAT: (0.58, 0.0), OTHER_MAT: (0.66, -0.22)}, (0.66, 0.22)
ABOVE_M, INTO_M = 0.05, 0.004
PAUSE_S = 0.1
"""What touches a button again within this has not let go of it."""
DOWN = (0.0, 1.0, 0.0, 0.0)


def _did(mat: str) -> str:
    return f"somebody put the red block on the {name_of(mat)}"


class Presses:
    """How often the robot has pressed a button: a function of the states in their order."""

    def __init__(self, button: str) -> None:
        """Nothing yet."""
        self._button, self._count = button, 0
        self._seq = -1
        self._touched_ns: int | None = None

    def __call__(self, view: View) -> int:
        """The number up to this state; one that was counted already changes nothing."""
        state = view.state
        if state.seq > self._seq:
            self._seq = state.seq
            if view.touched_by_robot(self._button):
                last = self._touched_ns
                self._count += last is None or state.stamp_ns - last > PAUSE_S * 1e9
                self._touched_ns = state.stamp_ns
        return self._count


class PressButton(MemoryTask):
    """How often it happened is over, and nothing that is left tells of it."""

    name = "press_button"
    version = 2
    summary = "press the green button as often as a block was put on a mat, then the blue one"
    skills = ("move_to", "move_by", "home")

    def objects(self) -> tuple[ObjectSpec, ...]:
        """Two buttons, and a block that somebody puts on two mats, of which one counts."""
        return (
            *(ObjectSpec(b, "button", b.split("_")[0], {"size": 0.05}) for b in BUTTONS_M),
            ObjectSpec(BLOCK, "block", "red", {"size": 0.04}),
            *(ObjectSpec(mat, "pad", mat.split("_")[0], {"size": MAT_M}) for mat in MATS_M),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The number is drawn, and where the buttons stand."""
        times = TIMES[int(rng.integers(len(TIMES)))]
        shift = {b: rng.uniform(-0.03, 0.03, 2) for b in BUTTONS_M}
        poses = {
            b: upright(x + shift[b][0], y + shift[b][1], objects[b].half_size_m[2])
            for b, (x, y) in BUTTONS_M.items()
        }
        half = objects[BLOCK].half_size_m[2]
        mats = {mat: upright(*at, 0.0005) for mat, at in MATS_M.items()}
        return Layout(
            {**poses, BLOCK: upright(*ASIDE_M, half), **mats},
            self.instructed(
                "You saw how the red block was put on the gray mat, once or several times. Press "
                "the green button with a hand from above as many times, letting go of it each "
                "time, then the blue button once, which ends the count, and take your hands off.",
                *[f"I saw that {_did(MAT)}."] * int(times),
            ),
            self.drawn(rng, times=times, half_m=half),
        )

    def drawn(self, rng: np.random.Generator, **params: Any) -> dict[str, Any]:
        """Also on which mat the block is put one time after the other."""
        found = super().drawn(rng, **params)
        on = [MAT] * int(found["times"]) + [OTHER_MAT] * int(found["other_times"])
        return {**found, "shown": [on[k] for k in found.pop("shown_by") if k < len(on)]}

    def drawn_after(self, rng: np.random.Generator) -> dict[str, Any]:
        """How often it is put on the mat that is asked for in the end."""
        most = 2 * len(TIMES)
        return {
            "other_times": TIMES[int(rng.integers(len(TIMES)))],
            "shown_by": rng.permutation(most).tolist(),
        }

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """That somebody put the block on one of the mats, or another block."""
        did = _did(list(MATS_M)[int(rng.integers(len(MATS_M)))])
        if not own:
            did = did.replace("red", ("green", "blue", "white")[int(rng.integers(3))])
        return f"I saw that {did}."

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """The block comes and goes, people talk, and it is asked how often."""
        half = scene.params["half_m"]

        def put(at: tuple[float, float]) -> MoveObjects:
            return MoveObjects({BLOCK: tuple(upright(*at, half).tolist())})

        shown: list[Happening] = []
        # Recordings of version 1 have one mat.
        for mat in scene.params.get("shown", [MAT] * int(scene.params["times"])):
            shown += [put(MATS_M[mat]), Wait(0.1), Show("on"), put(ASIDE_M), Wait(0.1), Show("off")]
        return (Show("before"), *shown, self.talk(scene), self.asked(scene))

    def sights(self, view: View) -> tuple[str, ...]:
        """Whether the block has been put on a mat since one looked the last time."""
        mat = standing_on_mat(view, BLOCK)
        came = mat and not standing_on_mat(view.start, BLOCK)
        return (f"I saw that {_did(mat)}.",) if mat and came else ()

    def asked(self, scene: Scene) -> Ask:
        """How often."""
        return self.question(
            f"How often did it happen that {_did(MAT)}?", TIMES, scene.params["times"], (_did(MAT),)
        )

    def asked_after(self, view: View) -> Ask | None:
        """How often it was put where it did not matter; the control tells nothing of that."""
        if self.told:
            return None
        did = _did(OTHER_MAT)
        times = view.scene.params["other_times"]
        text = f"How often did it happen that {did}?"
        return self.question(text, TIMES, times, (did,), AFTER)

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """Each time, of the mat that is asked for."""
        return (_did(OTHER_MAT),)

    def goal(self, scene: Scene) -> Goal:
        """As often as it happened, the other once, hands off."""
        times, count, done = int(scene.params["times"]), Presses(COUNT), Presses(DONE)
        return Goal(
            (
                Check("as often", lambda v: count(v) == times),
                Check("the count ended", lambda v: done(v) == 1),
                Check("hands off", lambda v: not any(map(v.touched_by_robot, BUTTONS_M))),
            )
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """The one pressed, then the other."""
        return (
            Check("green pressed", lambda v: v.touched_by_robot(COUNT)),
            Check("blue pressed", lambda v: v.touched_by_robot(DONE), after=("green pressed",)),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Not more often, and not fewer times before the count is ended."""
        times, count, done = int(scene.params["times"]), Presses(COUNT), Presses(DONE)

        def not_ended_early(view: View) -> bool:
            pressed, ended = count(view), done(view)
            return pressed == times or ended == 0

        more = Presses(COUNT)
        return (
            Check("not more often", lambda v: more(v) <= times),
            Check("not ended before", not_ended_early),
        )

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """Press so many times, then the other with the other hand."""
        if turn:
            return []
        green, blue = (self._press(view, b, a) for b, a in zip(BUTTONS_M, ARMS, strict=True))
        left, right = ((SkillCall("home", arm),) for arm in ARMS)
        return [*green * int(choice), left, *blue, right]

    def _press(self, view: View, button: str, arm: str) -> list[Step]:
        x, y, z = view.position(button)
        top = float(z) + view.scene.object(button).half_size_m[2]
        return [
            (
                SkillCall(
                    "move_to", arm,
                    {"pose": [float(x), float(y), top + dz, *DOWN], "opening_m": 0.0},
                ),
            )
            for dz in (ABOVE_M, -INTO_M, ABOVE_M)
        ]  # fmt: skip


class PressButtonTold(PressButton):
    """The control."""

    name = "press_button_told"
    told = True
    summary = f"{PressButton.name}, and the instruction tells each time"


TASK, CONTROL = PressButton(), PressButtonTold()
