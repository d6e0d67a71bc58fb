"""A planner that knows how to move, but not what was: that it asks a memory under test.

What the cameras show and what people say become items of the memory. Where the task has to be
remembered (`Task.recall`), the memory is asked; what it replies is what the arms then do. It knows
everything else, like the expert, so that success measures the memory. Without an answer it guesses.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import bench_tasks.tasks as tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.probes.stream import Item, Picture, Query
from bench_tasks.probes.talk import counting
from bench_tasks.protocols import Memory
from bench_tasks.tasks.base import Ask, Task
from bench_tasks.view import View
from bench_tasks.vocabulary import (
    Answer,
    CameraFrame,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    WorldState,
)
from policies.after_reset import after_reset
from policies.memory import check_memory, make_memory
from policies.memory.eye import colours_in
from policies.memory.reader import RuleReader

__all__ = ["RememberingOptions", "RememberingPlanner"]

DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class RememberingOptions:
    """memory: which one, `+` for the commas of its own options; cameras: whose pictures it keeps.

    keep: true when it remembers from one episode to the next, which lie days apart.
    """

    memory: str = "structured"
    cameras: tuple[str, ...] = ()
    keep: bool = False


class RememberingPlanner:
    """Moves like the expert, towards what the memory says.

    What is in view, or in the instruction, needs no memory: it is read first.
    """

    Options = RememberingOptions

    def __init__(self, options: RememberingOptions | None = None) -> None:
        """UsageError when there is no such memory."""
        self.options = options or RememberingOptions()
        self._spec = self.options.memory.replace("+", ",")
        try:
            check_memory(self._spec)
        except BenchError as error:
            raise UsageError(f"planner remembering: {error}") from None
        self.metadata = Metadata(
            f"remembering:{self.options.memory}", "1", self.options.cameras, privileged=True,
            memory=self.options.memory,
        )
        self.in_order = self.options.keep
        self._reader = RuleReader(colours_in)
        self._scene: Scene | None = None
        self._memory: Memory | None = None
        self._episodes = 0

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode, with an empty memory unless it is to be kept."""
        group = tasks.get(scene.task).group(scene)
        if self._memory is not None and not (self.options.keep and group == self._group):
            self._memory.close()
            self._memory = None
        self._group, self._asked = group, False
        if self._memory is None:
            self._items: list[Item] = []
        self._memory = self._memory or make_memory(self._spec)
        self._scene, self._seed = scene, seed
        self._start: WorldState | None = None
        self._last: WorldState | None = None
        self._chosen: dict[tuple[str, str], str] = {}
        self._episodes += 1
        self._base_ns = self._episodes * DAY_NS if self.options.keep else 0

    def observe(self, observation: Observation) -> None:
        """Remember what is said, or seen."""
        self._episode()
        for speaker, words, *about in observation.heard:
            self._remember(observation.state, speaker, words, about=about[0] if about else None)
        if not observation.heard:
            self._see(observation)

    def plan(self, request: PlanRequest) -> Plan:
        """What is to be done next, if it is what the memory says."""
        task, scene = self._episode()
        state = request.observation.state
        if request.turn == 0 or self._start is None:
            self._start = state
        seen = self._see(request.observation)
        view = View(scene, state, self._start)
        ask = task.recall(view)
        if ask is None:
            return Plan(tuple(map(tuple, task.expert(view, request.turn)))).checked()
        choices, told = {}, {}
        for item in ask.question.choices:
            choices[item], told[item] = self._decide(
                ask.question, item, seen, state, ask.wording, ask.evidence
            )
        if len(choices) == 1:
            (told,) = told.values()
        elif not self._asked:
            unknown = [item for item in told if told[item]["by"] == "guess"]
            if unknown:
                # What is said to it may tell of the others, too.
                self._asked = True
                for item in unknown:
                    del self._chosen[ask.question.name, item]
                return Plan((), transcript={"memory": told}, asks=unknown[0])
        steps = task.act_on(view, request.turn, choices)
        return Plan(tuple(map(tuple, steps)), transcript={"memory": told}).checked()

    def ask(self, question: Question, observation: Observation) -> Answer:
        """What it remembers of each item that is asked for."""
        task, scene = self._episode()
        asks = (step for step in task.prologue(scene) if isinstance(step, Ask))
        wording = next((a.wording for a in asks if a.question.name == question.name), "")
        evidence = task.evidence(scene, question.name)
        seen = self._see(observation)
        values, transcript = {}, {}
        for item in question.choices:
            values[item], transcript[item] = self._decide(
                question, item, seen, observation.state, wording, evidence
            )
        return Answer(values, transcript={"memory": transcript})

    # -- what it takes in ------------------------------------------------------------------------

    def _see(self, observation: Observation) -> list[Item]:
        """What is in view now, which is remembered; [] where the task has no words for it."""
        task, scene = self._episode()
        state = observation.state
        sights = task.sights(View(scene, state, self._last))
        self._last = state
        if not sights and not observation.frames:
            return []
        return [self._remember(state, "", " ".join(sights), observation.frames)]

    def _remember(
        self, state: WorldState, speaker: str, text: str, frames: Sequence[CameraFrame] = (),
        about: str | None = None,
    ) -> Item:
        assert self._scene is not None and self._memory is not None
        session = f"{self._scene.task}/{self._scene.seed}/{self._base_ns // DAY_NS}"
        count = len(self._items)
        picture = None
        if frames:
            picture = Picture(frames[0].camera, frames[0].data, frames[0].format, text)
        # In the order in which they came, also what came at one moment.
        stamp_ns = self._base_ns + state.stamp_ns + count
        item = Item(f"{session}/{count}", stamp_ns, session, speaker, text, picture, about)
        self._memory.observe(item)
        self._items.append(item)
        return item

    # -- what it brings back ---------------------------------------------------------------------

    def _decide(
        self, question: Question, item: str, seen: list[Item], state: WorldState, wording: str,
        evidence: Sequence[str],
    ) -> tuple[str, dict]:
        """One of the choices, the same whenever it is asked again, and how it came about."""
        choices, key = question.choices[item], (question.name, item)
        text = (wording or question.text).replace("{item}", item)
        told: dict = {"asked": text, "choices": list(choices)}
        if key in self._chosen:
            return self._chosen[key], {**told, "chosen": self._chosen[key], "by": "said before"}
        query = Query(f"{question.name}/{item}", self._base_ns + state.stamp_ns, text, choices)
        by, reply = "view", self._reader.answer(query, [*self._instruction(), *seen])
        if reply.text not in choices:
            by, reply = "memory", self._recalled(query, evidence)
        choice = reply.text
        if choice not in choices:
            rng = np.random.default_rng(
                [self._seed, self._base_ns // DAY_NS, zlib.crc32("/".join(key).encode())]
            )
            by, choice = "guess", choices[int(rng.integers(len(choices)))]
        self._chosen[key] = choice
        used = {one.id: one.text for one in self._items if one.id in reply.used}
        return choice, {**told, "chosen": choice, "by": by, "replied": reply.text,
                        "confidence": reply.confidence, "used": used}  # fmt: skip

    def _recalled(self, query: Query, evidence: Sequence[str]):
        assert self._memory is not None
        tell = getattr(self._memory, "tell", None)
        if tell is not None:
            _, counts = counting(query.text)
            tell([
                one.id for one in self._items if counts is None or one.speaker in counts
                if any(text in one.text for text in evidence)
            ])  # fmt: skip
        return self._memory.answer(query)

    def _instruction(self) -> list[Item]:
        """What the planner is told to do, sentence by sentence, as it is at hand all the time."""
        _, scene = self._episode()
        sentences = [f"{words}." for words in scene.instruction.rstrip(".").split(". ")]
        return [
            Item(f"instruction/{k}", k - len(sentences), "instruction", "", words)
            for k, words in enumerate(sentences)
        ]

    def _episode(self) -> tuple[Task, Scene]:
        scene = after_reset(self._scene, "planner remembering")
        return tasks.get(scene.task), scene
