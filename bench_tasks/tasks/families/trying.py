"""Memory probes in which the robot learns by trying: later it must do at once what was right.

A thing is brought to one of several places and somebody says whether that was right. What was wrong
is taken back; what was right, too, but then the second part begins, as a sign on the table shows:
only the first attempt counts there. Which places were tried can be worked out without a memory, by
the number of the plan; which one was right cannot.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from bench_tasks.tasks.base import AFTER, Ask, Check, Goal, Happening, MoveObjects, Tell, Wait
from bench_tasks.tasks.families.carry import Carry, Step, done, next_steps
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.memory import MemoryTask, lifted
from bench_tasks.tasks.families.rumours import OPERATOR, overruled
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, Event, Scene

__all__ = ["SIGN", "SIGN_M", "TryTask"]

SIGN = "white_block"
SIGN_M, SIGN_AWAY_M = (0.30, 0.10), (0.30, -0.10)
WITHIN_M = 0.045
AGAIN = "Now put it where it was right, at once."


def first_right(scene: Scene) -> str:
    """What is right while it is tried."""
    return scene.params.get("rights", [scene.params["right"]])[0]


class Told:
    """What people said of the tries, one after the other."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.tried: list[str] = []

    def on_event(self, event: Event) -> None:
        """Note which option it was of."""
        lines = event.data["lines"] if event.kind == "said" else ()
        for speaker, words, *_ in lines[:1]:  # Later ones are talk, see `TryTask.react`.
            option, _, rest = words.removeprefix("The ").rpartition(" is ")
            if speaker == OPERATOR and rest in ("right.", "wrong."):
                self.tried.append(option)

    def on_state(self, view: View) -> None:
        """States tell nothing of it."""

    def result(self) -> dict[str, Any]:
        """Nothing that a verdict rests on."""
        return {}


class TryTask(MemoryTask):
    """`places` are the options, and where (x, y) m the `thing` is brought for each."""

    counts = (OPERATOR,)
    time_limit_s = 120.0
    thing: ClassVar[str]
    places: ClassVar[dict[str, tuple[float, float]]]
    begin_m: ClassVar[tuple[float, float]]
    """Where the thing is at first, and after each try."""

    @abstractmethod
    def disturbed(self, view: View) -> bool:
        """Whether something was moved that is to stay."""

    def drawn(self, rng: np.random.Generator, **params: Any) -> dict[str, Any]:
        """Which option is right, and which one the expert tries first."""
        first, right = (int(rng.integers(len(self.places))) for _ in range(2))
        options = list(self.places)
        rights = [options[right]]
        if self.rumours and not self.told:
            rights = overruled(rng.spawn(1)[0], rights[0], options)
        return super().drawn(rng, **params, first=first, right=rights[-1], rights=rights)

    def rumour(self, rng: np.random.Generator, own: bool) -> str:
        """That one of the options is right or wrong, or another thing."""
        options = list(self.places) if own else ["black mat", "order white green", "old battery"]
        word = ("right", "wrong")[int(rng.integers(2))]
        return f"The {options[int(rng.integers(len(options)))]} is {word}."

    def decrees(self, params: dict[str, Any]) -> list[str]:
        """What is right from now on, whatever was when it was tried."""
        return [f"The {option} is right." for option in params["rights"][1:]]

    def tried(self, view: View) -> str | None:
        """The option that the thing stands for, let go; None when for none."""
        if not view.touching(self.thing, "table") or view.touched_by_robot(self.thing):
            return None
        at = view.position(self.thing)[:2]
        for option, place in self.places.items():
            if np.abs(at - np.array(place)).max() < WITHIN_M:
                return option
        return None

    def second(self, view: View) -> bool:
        """Whether the second part has begun."""
        return bool(np.linalg.norm(view.position(SIGN)[:2] - np.array(SIGN_AWAY_M)) < 0.05)

    def react(self, view: View, turn: int) -> tuple[Happening, ...]:
        """Somebody says whether it was right, and takes it back."""
        option = self.tried(view)
        if option is None or self.second(view):
            return ()
        right = option == first_right(view.scene)
        said = Tell(((OPERATOR, f"The {option} is {'right' if right else 'wrong'}."),))
        back = {self.thing: (*self.begin_m, self._half(view, self.thing))}
        if right:
            back[SIGN] = (*SIGN_AWAY_M, self._half(view, SIGN))
        moved = MoveObjects({name: tuple(upright(*at).tolist()) for name, at in back.items()})
        more = (self.talk(view.scene), Tell(((OPERATOR, AGAIN),))) if right else ()
        return (said, moved, Wait(0.3), *more)

    def _half(self, view: View, name: str) -> float:
        return view.scene.object(name).half_size_m[2]

    def asked(self, scene: Scene) -> Ask:
        """What was right."""
        right = scene.params["right"]
        return self.question(
            f"Which of these was right before: {', '.join(self.places)}?", tuple(self.places),
            right, (f"The {right} is right.",),
        )

    def history(self, scene: Scene) -> Told:
        """What was said of tries."""
        return Told()

    def asked_after(self, view: View) -> Ask | None:
        """What was tried first, if anything was; the control tells nothing of that."""
        if self.told or view.history is None or not view.history.tried:
            return None
        return self.question(
            f"Which of these was tried first: {', '.join(self.places)}?", tuple(self.places),
            view.history.tried[0], self.evidence_after(view.scene), AFTER,
        )

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """All that was said of tries, when it is asked in the end."""
        return tuple(f"The {place} is " for place in self.places)

    def recall(self, view: View) -> Ask | None:
        """Nothing as long as trying is free."""
        return self.asked(view.scene) if self.second(view) else None

    def expert(self, view: View, turn: int) -> list[Step]:
        """Try one option after the other; then do what was right."""
        if self.second(view):
            return super().expert(view, turn)
        options = list(self.places)
        return self.act(view, turn, options[(view.scene.params["first"] + turn) % len(options)])

    def act(self, view: View, turn: int, choice: str) -> list[Step]:
        """Bring the thing where the choice says."""
        x, y = self.places[choice]
        carry = Carry(
            self.thing, (x, y, self._half(view, self.thing)), arm=ARMS[0] if y > 0.0 else ARMS[1]
        )
        # Whatever the turn: with the arm on that side.
        return [] if done(view, carry) else next_steps(view, [carry], 1)

    def goal(self, scene: Scene) -> Goal:
        """In the second part, where it was right."""
        right = scene.params["right"]
        return Goal(
            (
                Check("asked to do it again", self.second),
                Check("where it was right", lambda v: self.tried(v) == right),
                Check("standing", lambda v: v.lean(self.thing) < 0.1),
            ),
            after=("carried again",),
        )

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Carried, found out, carried again."""
        right = first_right(scene)
        return (
            Check("carried", lambda v: lifted(v, self.thing)),
            Check("found out", lambda v: self.tried(v) == right, after=("carried",)),
            Check(
                "carried again", lambda v: lifted(v, self.thing) and self.second(v),
                after=("found out",),
            ),
        )

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """In the second part the first attempt counts; the sign is not for the robot."""
        right = scene.params["right"]
        return (
            Check("at once", lambda v: not self.second(v) or self.tried(v) in (right, None)),
            Check("the sign untouched", lambda v: not v.touched_by_robot(SIGN)),
            Check("all else in its place", lambda v: not self.disturbed(v)),
        )
