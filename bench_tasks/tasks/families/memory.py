"""Memory probes: something is seen, people talk, and the arms must do what rests on what was seen.

What must be remembered is drawn evenly and can no longer be seen when the arms may move, so that
who remembers nothing is right as often as the choices are many. The first attempt counts. In the
control of a probe, the instruction tells what would have to be remembered.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from bench_tasks.probes.talk import SEEN, only, say
from bench_tasks.probes.words import ATTRIBUTES, EVENTS, OBJECTS, PERSONS, PLACES, SMALL_TALK
from bench_tasks.tasks.base import (
    Ask,
    Check,
    Goal,
    Happening,
    MoveObjects,
    Show,
    Task,
    Tell,
    Wait,
)
from bench_tasks.tasks.families.rumours import amid, rule
from bench_tasks.view import View
from bench_tasks.vocabulary import Question, Scene, SkillCall

__all__ = [
    "MATS", "MAT_M", "MOST_RUMOURS", "MemoryTask", "carried_to", "chatter", "lies_on",
    "lifted", "name_of", "put_down_on", "standing_on_mat",
]  # fmt: skip

MAT_M = 0.10
MATS = {
    "green_mat": (0.42, 0.28), "blue_mat": (0.56, 0.15), "yellow_mat": (0.56, -0.15),
    "purple_mat": (0.42, -0.28),
}  # fmt: skip
"""Where marks on the table are, m: each is within reach of the arm on its side."""

MOST_RUMOURS = 500


def chatter(rng: np.random.Generator, count: int) -> list[list[str]]:
    """What people say in the meantime, [speaker, words] each; nothing of it is about the task."""
    lines = []
    for _ in range(count):
        speaker = str(rng.choice(PERSONS))
        attribute = str(rng.choice(list(ATTRIBUTES)))
        value = str(rng.choice(ATTRIBUTES[attribute]))
        said = (
            str(rng.choice(SMALL_TALK)),
            say("has", rng, attribute=attribute, value=value),
            say("did", rng, event=str(rng.choice(EVENTS))),
            say("lies", rng, object=str(rng.choice(OBJECTS)), place=str(rng.choice(PLACES))),
        )
        lines.append([speaker, said[int(rng.integers(len(said)))]])
    return lines


def standing_on_mat(view: View, name: str) -> str | None:
    """The mark within whose middle an object is, seen from above; None when in none's."""
    x, y = view.position(name)[:2]
    for mat in (o.name for o in view.scene.objects if o.kind == "pad"):
        at = view.position(mat)
        if max(abs(x - at[0]), abs(y - at[1])) < view.scene.object(mat).half_size_m[0]:
            return mat
    return None


def lies_on(name: str, mat: str) -> str:
    """The sentence that says so."""
    return f"The {name_of(name)} is on the {name_of(mat)}."


def put_down_on(view: View, name: str) -> str | None:
    """The mark on which an object stands and was let go; None when on none."""
    if not view.touching(name, "table") or view.touched_by_robot(name):
        return None
    return standing_on_mat(view, name)


def lifted(view: View, name: str) -> bool:
    """Whether a hand holds an object 3 cm above the table or higher."""
    low = view.scene.object(name).half_size_m[2] + 0.03
    return bool(view.holder(name) and view.position(name)[2] > low)


def carried_to(name: str, mat: str) -> Goal:
    """An object stands on a mark, was lifted there and let go; its stage is called `lifted`."""
    return Goal(
        (
            Check("on its mat", lambda v: standing_on_mat(v, name) == mat),
            Check("standing", lambda v: v.supported_by(name, "table") and v.lean(name) < 0.1),
            Check("let go", lambda v: not v.touched_by_robot(name)),
        ),
        after=("lifted",),
    )


def name_of(name: str) -> str:
    """The name of an object in plain words."""
    return name.replace("_", " ")


class MemoryTask(Task):
    """A subclass asks one thing (`asked`), and its `act` does what follows from any choice."""

    mode = "single"
    kind = "probe"
    apart = True
    told: ClassVar[bool] = False
    """Whether the instruction tells what would have to be remembered: the control."""
    lines: ClassVar[int] = 40
    """So many things are said before the arms may move."""
    rumours: int = 0
    """So many more are said that are like what counts, and do not count."""
    counts: ClassVar[tuple[str, ...]] = (SEEN,)
    """Whose word counts where there are rumours."""

    def asked(self, scene: Scene) -> Ask:
        """What must be remembered."""
        raise NotImplementedError

    def question(
        self, text: str, choices: tuple[str, ...], gold: str, evidence: tuple[str, ...],
        name: str = "remembered", counts: Sequence[str] = (),
    ) -> Ask:
        """A question with one right answer among choices of which each is as likely.

        Where there are rumours, with whose word `counts`, by default the task's.
        """
        if self.rumours:
            text = f"{text} {only((SEEN,) if self.told else counts or self.counts)}"
        question = Question(name, text, {"answer": choices})
        return Ask(question, {"answer": gold}, 1.0 / len(choices), evidence)

    def recall(self, view: View) -> Ask | None:
        """The one thing, all the time."""
        return self.asked(view.scene)

    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """Do what follows from the right answer."""
        return self.act(view, turn, self.asked(view.scene).gold["answer"])

    def drawn(self, rng: np.random.Generator, **params: Any) -> dict[str, Any]:
        """The layout's parameters with what people will say, and what is asked in the end."""
        (later,) = rng.spawn(1)  # Of its own: what is drawn before and behind stays as it is.
        found = {
            **params, "chatter": chatter(rng, self.lines), **self.drawn_after(later),
            "chatter_after": chatter(later, self.lines),
        }  # fmt: skip
        if self.rumours:
            for key, decrees in (("chatter", self.decrees(params)), ("chatter_after", ())):
                found[key] = amid(
                    later, found[key], self.rumours, self.rumour, self.counts, decrees
                )
        return found

    def with_rumours(self, count: int) -> MemoryTask:
        """The same task with so many distractors, under a name of its own."""
        task = copy.copy(self)
        task.rumours, name = count, f"{self.name}_rumours{count}"
        task.__dict__ |= {"name": name, "summary": f"{self.summary}; {count} rumours"}
        return task

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """A sentence like those that count, of the very thing or of others."""
        raise NotImplementedError

    def decrees(self, params: dict[str, Any]) -> Sequence[str]:
        """What the one person says in turn whose word counts."""
        return ()

    def drawn_after(self, rng: np.random.Generator) -> dict[str, Any]:
        """More parameters, for what is asked in the end."""
        return {}

    def instructed(self, text: str, *history: str) -> str:
        """What the planner is told; in the control with sentences on what was."""
        if self.told:
            return " ".join((text, *history))
        return f"{text} {rule(self.counts)}" if self.rumours else text

    def talk(self, scene: Scene, params: str = "chatter") -> Tell:
        """People talk."""
        return Tell(tuple((who, words) for who, words in scene.params[params]))

    def talk_in_two(self, scene: Scene) -> tuple[tuple[Tell, ...], Tell]:
        """Half of the talk where there are rumours, and the rest of it."""
        lines = self.talk(scene).lines
        half = len(lines) // 2 if self.rumours else 0
        return (Tell(lines[:half]),) if half else (), Tell(lines[half:])

    def asked_after(self, view: View) -> Ask | None:
        """What is asked once the arms are done, in this state; None where there is nothing to ask.

        Its answer must not be in view when the table is `cleared`.
        """
        return None

    def cleared(self, view: View) -> dict[str, np.ndarray]:
        """What people put where before they ask, poses (7,)."""
        return {}

    def afterwards(self, view: View) -> tuple[Happening, ...]:
        """It is seen how the arms left it; people clear up and talk, and ask."""
        ask = self.asked_after(view)
        if ask is None:
            return ()
        cleared = {name: tuple(pose) for name, pose in self.cleared(view).items()}
        away = (MoveObjects(cleared), Wait(0.3), Show("cleared")) if cleared else ()
        return (Show("done"), *away, self.talk(view.scene, "chatter_after"), ask)
