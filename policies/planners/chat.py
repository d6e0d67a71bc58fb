"""What all model planners share: prompt, memory of earlier turns, budget, transcript, parsing.

A back end is a subclass with `_complete`: messages in, text out.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np

from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.probes.stream import Picture
from bench_tasks.vocabulary import (
    Answer,
    CameraFrame,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    SkillCall,
    WorldState,
)
from policies.after_reset import after_reset
from policies.planners.answers import (
    answer_schema,
    name_finder,
    plan_schema,
    read_answers,
    read_plan,
)
from policies.planners.dialects import DIALECTS
from policies.planners.jsontext import AnswerError
from policies.planners.points import Pointer
from policies.planners.spoken import read_spoken
from policies.prompts import Prompts

__all__ = ["ChatOptions", "ChatPlanner", "Completion", "Message", "PlannerError"]

HISTORIES = ("multi", "single")
SPOKEN = "rynnbrain"
"""The dialect that has a plan language of its own in the place of JSON."""


class PlannerError(BenchError):
    """A planner that cannot go on; `transcript` is what the bag keeps of the call.

    `refused`: for what was asked, such as too long a prompt; another may well be answered.
    """

    def __init__(
        self, text: str, transcript: dict[str, Any] | None = None, refused: bool = False
    ) -> None:
        """`text` is one line."""
        super().__init__(" ".join(text.split()))
        self.transcript, self.refused = transcript or {}, refused


@dataclass(frozen=True)
class ChatOptions:
    """Options of every model planner.

    help: none, names, poses or recipe. prompt: version of the templates. history: multi keeps
    earlier turns and pictures shown as explicit memory, single forgets. history_images: how many
    earlier pictures are sent again. cameras: a+b, or none. dialect: how the model points in
    pictures (of `dialects.DIALECTS`), or none. max_tokens: of one answer. budget_calls,
    budget_tokens: of one episode; 0 is no limit.
    """

    model: str = ""
    help: str = "none"
    prompt: str = "v1"
    history: str = "multi"
    history_images: int = 8
    cameras: tuple[str, ...] = ("head", "third")
    dialect: str = "none"
    max_tokens: int = 2048
    temperature: float = 0.0
    budget_calls: int = 0
    budget_tokens: int = 0


@dataclass
class Message:
    """One turn of a conversation: role system, user or assistant; texts and pictures in order."""

    role: str
    parts: list[str | CameraFrame]
    shown: bool = False
    """Whether it begins with pictures of a showing phase, which are the last to be dropped."""


@dataclass(frozen=True)
class Completion:
    """What a back end returned. Token counts are None where it does not tell."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    truncated: bool = False
    details: dict[str, Any] = field(default_factory=dict)


class ChatPlanner(ABC):
    """A planner that asks a model; subclasses give `name`, `version` and `_complete`."""

    name = "chat"
    version = "1"
    Options: type[ChatOptions] = ChatOptions

    def __init__(self, options: ChatOptions | None = None) -> None:
        """Take options; UsageError on a wrong one. Nothing is loaded or connected to yet."""
        self.options = options or self.Options()
        dialect = self.options.dialect
        if dialect != "none" and dialect not in DIALECTS:
            raise unknown("dialect", dialect, [*DIALECTS, "none"])
        if dialect != "none" and not self.options.cameras:
            raise UsageError(f"planner {self.name}: dialect {dialect} needs cameras to point in")
        self._dialect = "" if dialect == "none" else dialect
        self._prompts = Prompts(self.options.prompt, self.options.help, self._dialect)
        if self.options.history not in HISTORIES:
            raise unknown("history", self.options.history, HISTORIES)
        if not self.options.model:
            raise UsageError(f"planner {self.name} needs a model: {self.name}:model=NAME")
        parts = [self.name, self.options.model, self.options.help, self._dialect]
        label = ":".join(filter(None, parts))
        self.metadata = Metadata(
            label, f"{self.version}+prompt.{self.options.prompt}", self.options.cameras,
            privileged=self.options.help != "none", depth=bool(self._dialect),
        )  # fmt: skip
        self._scene: Scene | None = None
        self._forget()

    def _forget(self) -> None:
        self._past: list[Message] = []
        self._shown: list[str | CameraFrame] = []
        self._told: set[str] = set()
        self._start: WorldState | None = None
        self._held: tuple[str, ...] = ()
        self._calls = self._tokens = self._seed = 0
        self._cost = 0.0

    # -- the planner's methods -------------------------------------------------------------------

    def reset(self, scene: Scene, seed: int) -> None:
        """Forget everything; UsageError when the scene's task is unknown."""
        task = tasks.get(scene.task)
        self._forget()
        self._scene, self._seed, self._skills = scene, seed, task.skills
        self._actions = task.raw_actions
        self._spoken = self._dialect == SPOKEN and not self._actions
        self._find_name = name_finder(scene, self._prompts.tells_names)

    def observe(self, observation: Observation) -> None:
        """Keep what is heard and seen for the next question or plan, if memory is on."""
        self._episode()
        if self.options.history == "multi" and observation.heard:
            said = [f"{who} says: {words}" for who, words in observation.heard]
            self._shown.append("\n".join(said))
        if self.options.history == "multi" and observation.frames:
            self._shown += [self._prompts.shown(observation), *observation.frames]

    def plan(self, request: PlanRequest) -> Plan:
        """Ask for the next steps. PlannerError when the model cannot be asked."""
        scene, observation = self._episode(), request.observation
        if self._start is None:
            self._start = observation.state
        if "held" in request.feedback:
            self._held = tuple(request.feedback["held"])
        frames, first = observation.frames, self._pictures_before() + 1
        text = self._prompts.turn(request, scene, self._start, first)
        system = self._prompts.plan_system(self._actions, self._skills)
        schema = {} if self._spoken else plan_schema(self._actions, self._skills)
        completion, transcript, latency = self._call(system, text, frames, schema)
        pointer = Pointer(self._dialect, frames, first)
        if self._dialect:
            transcript["points"] = pointer.found
        try:
            self._refuse_truncated(completion)
            steps = self._steps(completion.text, pointer, transcript)
        except AnswerError as error:
            return Plan((), completion.text, latency, transcript, str(error))
        return Plan(steps, completion.text, latency, transcript)

    def _steps(
        self, text: str, pointer: Pointer, transcript: dict[str, Any]
    ) -> tuple[tuple[SkillCall, ...], ...]:
        """Steps of an answer; AnswerError when it cannot be read."""
        if self._spoken:
            return read_spoken(text, pointer, self._held)
        locate = pointer.args if self._dialect else dict
        steps, found = read_plan(text, self._actions, self._find_name, locate)
        transcript |= {"parsed": found.value, "repairs": list(found.repairs)}
        return steps

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Ask a question. PlannerError when the model cannot be asked."""
        scene, frames = self._episode(), observation.frames
        text = self._prompts.question(question, observation, scene)
        system, schema = self._prompts.question_system(), answer_schema(question)
        completion, transcript, latency = self._call(system, text, frames, schema)
        try:
            self._refuse_truncated(completion)
            values, found, notes = read_answers(completion.text, question)
        except AnswerError as error:
            return Answer({}, completion.text, latency, transcript, str(error))
        transcript |= {"parsed": found.value, "repairs": list(found.repairs), "notes": notes}
        return Answer(values, completion.text, latency, transcript)

    def complete(self, prompt: str, pictures: Sequence[Picture] = ()) -> str:
        """The answer to a text, and pictures for a model that sees, outside of any episode.

        PlannerError when there is none.
        """
        self._load_once()
        frames = [CameraFrame(one.name, 0, 0, *_size(one), one.format, one.data)
                  for one in pictures]  # fmt: skip
        return self._complete([Message("user", [prompt, *frames])], {}).text

    def choose(self, system: str, text: str, name: str, values: Sequence[str]) -> Completion:
        """The answer to a text outside of any episode: JSON that gives `name` one of `values`.

        It is asked for in this form; where the answer can have any, it may still be another.
        PlannerError when there is none.
        """
        self._load_once()
        schema = {
            "type": "object", "properties": {name: {"type": "string", "enum": list(values)}},
            "required": [name], "additionalProperties": False,
        }  # fmt: skip
        return self._complete([Message("system", [system]), Message("user", [text])], schema)

    def identity(self) -> dict[str, Any]:
        """What `choose` depends on besides its arguments, as far as was asked for.

        Nothing is loaded or connected to for it.
        """
        return {"planner": self.name, "version": self.version, "model": self.options.model,
                "temperature": self.options.temperature,
                "max_tokens": self.options.max_tokens}  # fmt: skip

    def served(self, done: Completion) -> dict[str, Any]:
        """The same as it was found, when it has answered: the model served, digests of weights."""
        return {}

    # -- what a back end gives -------------------------------------------------------------------

    @abstractmethod
    def _complete(self, messages: list[Message], schema: dict[str, Any]) -> Completion:
        """The model's answer; PlannerError when there is none.

        `schema` is {} when the answer is no JSON.
        """

    def _load_once(self) -> None:  # noqa: B027 - nothing to load is the usual case
        """Load the model, if that has to be; PlannerError when it cannot be."""

    # -- one call --------------------------------------------------------------------------------

    def _episode(self) -> Scene:
        return after_reset(self._scene, f"planner {self.name}")

    def _call(
        self, system: str, text: str, frames: tuple[CameraFrame, ...], schema: dict[str, Any]
    ) -> tuple[Completion, dict[str, Any], int]:
        """Ask once: (answer, transcript, latency in ns)."""
        self._check_budget()
        showing = any(isinstance(part, CameraFrame) for part in self._shown)
        user = Message("user", [*self._shown, text, *frames], showing)
        messages = [Message("system", [system]), *self._memory(), user]
        transcript = self._transcript(messages)
        begun = time.perf_counter_ns()
        try:
            completion = self._complete(messages, schema)
        except PlannerError as error:
            transcript |= error.transcript
            raise PlannerError(str(error), transcript) from None
        # A lone surrogate, which JSON can carry, could not be recorded.
        text = completion.text.encode("utf-8", "replace").decode()
        completion = replace(completion, text=text)
        latency = time.perf_counter_ns() - begun
        self._calls += 1
        self._tokens += (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
        self._cost += completion.cost_usd or 0.0
        transcript |= {
            "tokens": {"prompt": completion.prompt_tokens, "answer": completion.completion_tokens},
            "cost_usd": completion.cost_usd, "truncated": completion.truncated,
            "episode": {"calls": self._calls, "tokens": self._tokens, "cost_usd": self._cost},
            **completion.details,
        }  # fmt: skip
        if self.options.history == "multi":
            self._past += [user, Message("assistant", [completion.text])]
        self._shown = []
        return completion, transcript, latency

    def _check_budget(self) -> None:
        for what, spent, limit in (
            ("calls", self._calls, self.options.budget_calls),
            ("tokens", self._tokens, self.options.budget_tokens),
        ):
            if limit and spent >= limit:
                raise PlannerError(f"budget spent: {spent} of {limit} {what}")

    def _refuse_truncated(self, completion: Completion) -> None:
        if completion.truncated:
            raise AnswerError(f"the answer was cut off after {self.options.max_tokens} tokens")

    def _pictures_before(self) -> int:
        """Pictures that come before those of now, counting the ones no longer sent."""
        earlier = [part for message in self._past for part in message.parts]
        return sum(isinstance(part, CameraFrame) for part in [*earlier, *self._shown])

    def _memory(self) -> list[Message]:
        """Earlier turns; of more than `history_images` pictures, those shown stay longest."""
        pictures = [
            (message.shown, i, k)
            for i, message in enumerate(self._past)
            for k, part in enumerate(message.parts)
            if isinstance(part, CameraFrame)
        ]
        keep = {entry[1:] for entry in sorted(pictures, reverse=True)[: self._most_images()]}
        return [
            Message(
                message.role,
                [
                    self._prompts.dropped
                    if isinstance(part, CameraFrame) and (i, k) not in keep
                    else part
                    for k, part in enumerate(message.parts)
                ],
            )
            for i, message in enumerate(self._past)
        ]

    def _most_images(self) -> int:
        return max(0, self.options.history_images)

    def _transcript(self, messages: list[Message]) -> dict[str, Any]:
        """The prompt: each text once per episode, named by its hash; pictures by theirs."""
        texts: dict[str, str] = {}
        turns = []
        for message in messages:
            parts: list[dict[str, Any]] = []
            for part in message.parts:
                if isinstance(part, CameraFrame):
                    digest = hashlib.sha256(part.data).hexdigest()
                    picture = {"image": digest, "camera": part.camera, "seq": part.seq}
                    if part.depth is not None:
                        picture["depth"] = hashlib.sha256(part.depth.png).hexdigest()
                    parts.append(picture)
                    continue
                digest = hashlib.sha256(part.encode()).hexdigest()[:16]
                if digest not in self._told:
                    self._told.add(digest)
                    texts[digest] = part
                parts.append({"text": digest})
            turns.append({"role": message.role, "parts": parts})
        return {
            "planner": self.name, "model": self.options.model, "help": self.options.help,
            "prompt_version": self.options.prompt, "history": self.options.history,
            **({"dialect": self._dialect} if self._dialect else {}),
            "messages": turns, "texts": texts,
        }  # fmt: skip


def _size(picture: Picture) -> tuple[int, int]:
    """Width and height; PlannerError when it cannot be decoded."""
    pixels = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise PlannerError(f"the picture {picture.name} cannot be decoded")
    return pixels.shape[1], pixels.shape[0]
