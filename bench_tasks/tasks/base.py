"""What a task is: objects, a layout per seed, an instruction, stages, a goal, an expert."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from bench_tasks.object_sets import Evolved
from bench_tasks.view import View
from bench_tasks.vocabulary import (
    ARMS,
    FR3_PAIR,
    SKILLS,
    Event,
    ObjectInfo,
    Question,
    Scene,
    SkillCall,
)

__all__ = [
    "AFTER", "Ask", "Check", "Goal", "Happening", "Layout", "MoveObjects", "ObjectSpec", "Show",
    "Task", "Tell", "Wait",
]  # fmt: skip

AFTER = "afterwards"
"""Name of the question that is asked once the arms are done."""


@dataclass(frozen=True)
class ObjectSpec:
    """An object to build: `kind` names a parametric program of `sim.objects`.

    `evolved` is an edited program of that kind, to be used instead: the world's choice, not a
    task's.
    """

    name: str
    kind: str
    color: str = "gray"
    params: dict[str, float] = field(default_factory=dict)
    evolved: Evolved | None = None


@dataclass(frozen=True)
class Layout:
    """What a seed drew: a pose (7,) per object, and what scoring must know (`Scene.params`).

    `reach` names for each object the arms of which at least one must be able to grasp it there,
    checked before the episode starts; `instruction` is what the planner is told, or one of
    `paraphrases` when the wording varies.
    """

    poses: dict[str, np.ndarray]
    instruction: str
    params: dict[str, Any] = field(default_factory=dict)
    reach: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paraphrases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wait:
    """Hold still for a time."""

    duration_s: float


@dataclass(frozen=True)
class Show:
    """Let the planner see the world through its cameras, without asking anything."""

    name: str


@dataclass(frozen=True)
class MoveObjects:
    """The experimenter puts objects at poses (7,)."""

    poses: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Tell:
    """People say something that the robot hears: (speaker, words), one after the other.

    A third entry names the question (`Ask`, its name/item) on whose answer this comments.
    """

    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Ask:
    """Ask the planner; the answer scores `gold` where it says the same."""

    question: Question
    gold: dict[str, str]
    chance: float
    """Expected share of right answers of a guesser that knows the choices."""
    evidence: tuple[str, ...] = ()
    """Sentences, seen or heard before (`Task.sights`, `Tell`), that the answer rests on."""
    wording: str = ""
    """The question in the language of `probes.talk`, where its text is in another."""

    def __post_init__(self) -> None:
        """ValueError when nothing is asked for, or something that is not among the choices."""
        if not self.gold or not 0.0 <= self.chance < 1.0:
            raise ValueError(f"{self.question.name}: gold {self.gold}, chance {self.chance}")
        for item, value in self.gold.items():
            if value not in self.question.choices.get(item, ()):
                raise ValueError(f"{self.question.name}: {item} {value!r} is not a choice")


Happening = Wait | Show | MoveObjects | Tell | Ask


@dataclass(frozen=True)
class Check:
    """One named condition over the state: `holds(view)` -> bool.

    As a stage it counts only from the state after all the stages named in `after` were reached, and
    once it has held for `hold_s` without a break. It is forgotten again, and must be reached anew,
    once `lost` has held for its own `hold_s`.

    As an invariant it is broken once it has failed for `hold_s` without a break, and counts only
    until the stage `until` is reached.
    """

    name: str
    holds: Any
    after: tuple[str, ...] = ()
    hold_s: float = 0.0
    lost: Check | None = None
    until: str = ""


class History(Protocol):
    """What a task notes of an episode's states, where one of them alone does not tell."""

    def on_event(self, event: Event) -> None:
        """Take notice of an event."""
        ...

    def on_state(self, view: View) -> None:
        """Take the next state."""
        ...

    def result(self) -> dict[str, Any]:
        """What came of it so far, for the verdict's `details["done"]`."""
        ...


@dataclass(frozen=True)
class Goal:
    """All checks must hold, with every object at rest, for `hold_s` without a break.

    `after` names stages that must have been reached before: how the goal came about.
    """

    checks: tuple[Check, ...]
    hold_s: float = 0.5
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """ValueError when there is nothing to check."""
        if not self.checks or self.hold_s <= 0.0:
            raise ValueError("a goal needs at least one check and a time to hold")


class Task(abc.ABC):
    """One task or probe. Subclass in a module of this package that ends with `TASK = ...`."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    tier: ClassVar[int | None] = None
    """1 spatial reasoning, 2 planning, 3 end-effector control; None for a memory probe."""
    mode: ClassVar[str]
    """single, parallel, sequential or simultaneous: how the two arms must work together."""
    kind: ClassVar[str] = "task"
    summary: ClassVar[str]
    skills: ClassVar[tuple[str, ...]] = tuple(SKILLS)
    """What a plan may consist of."""
    note: ClassVar[str] = ""
    """What the instruction ends with: the form of the actions, where it is not that of skills."""
    rests_on: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Object -> the one it stands on or in at the start; all others stand clear of each other."""
    apart: ClassVar[bool] = False
    """Whether it is left out where all tasks are named, and run only when it is asked for."""
    embodiment: ClassVar[str] = FR3_PAIR
    """The robot that it is for (see `bench_tasks.robots.embodiments`)."""
    time_limit_s: ClassVar[float] = 60.0
    max_plans: ClassVar[int] = 20

    @property
    def raw_actions(self) -> bool:
        """Whether plans are end-effector targets alone, given as 16 numbers each."""
        return self.skills == ("move_to",)

    def table_height_m(self, rng: np.random.Generator) -> float:
        """Height of the table top above the floor, m: the first that the layout's `rng` draws.

        The FR3 pair stands on its table, and how high that is makes no difference.
        """
        return 0.75

    @abc.abstractmethod
    def objects(self) -> tuple[ObjectSpec, ...]:
        """The objects in the scene, in the order of `Scene.objects`."""

    @abc.abstractmethod
    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """Draw one layout of these objects, whose sizes may vary; BenchError if none is found."""

    @abc.abstractmethod
    def expert(self, view: View, turn: int) -> list[tuple[SkillCall, ...]]:
        """The next steps from this state, knowing everything; empty when finished."""

    def goal(self, scene: Scene) -> Goal | None:
        """What success is; None when only the questions count."""
        return None

    def stages(self, scene: Scene) -> tuple[Check, ...]:
        """Conditions that mark progress; each counts once it has held in any state."""
        return ()

    def invariants(self, scene: Scene) -> tuple[Check, ...]:
        """Conditions that must hold in every state; a break fails the episode with that name."""
        return ()

    def history(self, scene: Scene) -> History | None:
        """What is noted of the states since the arms may move: the checks' `View.history`."""
        return None

    def both_hold(self, view: View, name: str) -> bool:
        """Whether both hands hold an object: when coordination is measured."""
        return all(view.grasped(name, arm) for arm in ARMS)

    def slope(self, view: View, name: str) -> float:
        """How far from level an object is carried, rad: what coordination is measured by."""
        return view.tilt(name)

    def prologue(self, scene: Scene) -> tuple[Happening, ...]:
        """What happens before the arms may move."""
        return ()

    # What a memory is needed for: see `policies.planners.remembering`.

    def sights(self, view: View) -> tuple[str, ...]:
        """What the cameras show, in sentences; `view.start` is what they showed the last time.

        Of the present alone: what is hidden, or over, is not seen.
        """
        return ()

    def recall(self, view: View) -> Ask | None:
        """What must be remembered to go on from this state; None when nothing is.

        A question of one item, whose choices are what `act` may be given, or of several for
        `act_on`; then `{item}` in its wording stands for each.
        """
        return None

    def act(self, view: View, turn: int, choice: str) -> list[tuple[SkillCall, ...]]:
        """The next steps of one who knows everything but what `recall` asks, and believes this."""
        return self.expert(view, turn)

    def act_on(
        self, view: View, turn: int, choices: dict[str, str]
    ) -> list[tuple[SkillCall, ...]]:
        """As `act`, for what was chosen of each item."""
        (choice,) = choices.values()
        return self.act(view, turn, choice)

    def clarify(self, scene: Scene, asked: str) -> tuple[Tell, ...]:
        """What people say when the planner asks for an item, in place of a plan; at most once."""
        return ()

    def afterwards(self, view: View) -> tuple[Happening, ...]:
        """What happens once the arms are done: a planner that remembers is asked of what was.

        What is right follows from the scene, this state and `View.history` alone, since a recording
        is judged again by it. Nothing that happens here changes the verdict on the arms.
        """
        return ()

    def evidence(self, scene: Scene, question: str) -> tuple[str, ...]:
        """Sentences, seen or heard, that the answer to a question rests on, by its name."""
        if question == AFTER:
            return self.evidence_after(scene)
        asks = (step for step in self.prologue(scene) if isinstance(step, Ask))
        return next((ask.evidence for ask in asks if ask.question.name == question), ())

    def evidence_after(self, scene: Scene) -> tuple[str, ...]:
        """The same of the question that is asked `afterwards`."""
        return ()

    def group(self, scene: Scene) -> str:
        """Episodes of one group are remembered together, where memory is kept between episodes."""
        return ""

    def react(self, view: View, turn: int) -> tuple[Happening, ...]:
        """What people do or say once the plan of this turn (from 0) has been carried out.

        A function of the view alone, since a recording is judged without it; no `Ask`.
        """
        return ()
