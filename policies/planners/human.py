"""A person at the terminal: to try a task by hand, and to see what a planner is told."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bench_tasks import tasks
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.vocabulary import (
    Answer,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    WorldState,
)
from policies.after_reset import after_reset
from policies.planners.answers import name_finder, read_answers, read_plan
from policies.planners.jsontext import AnswerError
from policies.prompts import Prompts

__all__ = ["HumanOptions", "HumanPlanner"]

HOW = """\
One step a line, an empty line ends the plan, an empty plan says that the task is finished:
  left grasp object=pot grasp=left_handle | right home
  left place object=cup pose=[0.45,0.1,0.05]
or one JSON object with executable_plan on one line.
"""


@dataclass(frozen=True)
class HumanOptions:
    """help: none, names, poses or recipe. pictures: folder to save camera pictures in, or none."""

    help: str = "poses"
    prompt: str = "v1"
    pictures: str = ""
    cameras: tuple[str, ...] = ("head", "third")


class HumanPlanner:
    """Shows the prompt and reads lines."""

    Options = HumanOptions

    def __init__(
        self, options: HumanOptions | None = None, source: TextIO | None = None,
        sink: TextIO | None = None,
    ) -> None:
        """Read from and write to a terminal, by default this process's own; UsageError without."""
        terminal = source or sys.stdin
        if terminal is None or terminal.closed or not terminal.isatty():
            raise UsageError("planner human needs a terminal: run bench_tasks run in one")
        self.options = options or HumanOptions()
        self._source, self._sink = source, sink
        self._prompts = Prompts(self.options.prompt, self.options.help)
        cameras = self.options.cameras if self.options.pictures else ()
        self.metadata = Metadata(
            f"human:{self.options.help}", "1", cameras, self.options.help != "none"
        )
        self._scene: Scene | None = None

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode."""
        self._scene, self._start = scene, None
        self._actions = tasks.get(scene.task).raw_actions
        self._find_name = name_finder(scene, self._prompts.tells_names)
        self._say(HOW)

    def observe(self, observation: Observation) -> None:
        """Say what is heard, save the pictures."""
        for who, words in observation.heard:
            self._say(f"{who} says: {words}\n")
        self._show(observation)

    def plan(self, request: PlanRequest) -> Plan:
        """Ask for steps; what was mistyped is refused as any planner's answer is."""
        scene = self._episode()
        self._start: WorldState | None = self._start or request.observation.state
        self._show(request.observation)
        prompt = self._prompts.turn(request, scene, self._start)
        self._say(prompt + "\n")
        begun, lines = time.perf_counter_ns(), []
        while line := self._read("> "):
            lines.append(line)
            if line.startswith("{"):
                break
        raw, latency = "\n".join(lines), time.perf_counter_ns() - begun
        told = {"planner": "human", "help": self.options.help, "prompt": prompt}
        try:
            text = raw if raw.startswith("{") else json.dumps(
                {"executable_plan": [_step(line, self._actions) for line in lines]}
            )  # fmt: skip
            steps, _ = read_plan(text, self._actions, self._find_name)
        except AnswerError as error:
            return Plan((), raw, latency, told, str(error))
        return Plan(steps, raw, latency, told)

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Ask each item; an empty line leaves it unanswered."""
        scene = self._episode()
        self._show(observation)
        self._say(self._prompts.question(question, observation, scene) + "\n")
        begun = time.perf_counter_ns()
        given = {
            item: self._read(f"{item} ({'/'.join(choices)}): ")
            for item, choices in question.choices.items()
        }
        raw, latency = json.dumps({"answers": given}), time.perf_counter_ns() - begun
        try:
            values, _, notes = read_answers(raw, question)
        except AnswerError as error:
            return Answer({}, raw, latency, {"planner": "human"}, str(error))
        return Answer(values, raw, latency, {"planner": "human", "notes": notes})

    def _episode(self) -> Scene:
        return after_reset(self._scene, "planner human")

    def _say(self, text: str) -> None:
        out = self._sink or sys.stdout
        out.write(text)
        out.flush()

    def _read(self, prompt: str) -> str:
        self._say(prompt)
        line = (self._source or sys.stdin).readline()
        if not line:
            raise BenchError("planner human: the terminal was closed")
        return line.strip()

    def _show(self, observation: Observation) -> None:
        if not observation.frames:
            return
        folder = Path(self.options.pictures)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for frame in observation.frames:
                file = folder / f"{frame.seq:06d}_{frame.camera}.{frame.format}"
                file.write_bytes(frame.data)
                self._say(f"picture: {file}\n")
        except OSError as error:
            raise UsageError(f"cannot write pictures to {folder}: {error.strerror}") from None


def _step(line: str, actions: bool) -> object:
    """A typed line as JSON: 16 numbers, or calls separated by |."""
    if actions:
        try:
            return [float(word) for word in line.replace(",", " ").strip("[] ").split()]
        except ValueError:
            raise AnswerError(f"an action is 16 numbers, got {line!r}") from None
    calls = []
    for part in line.split("|"):
        words = part.split()
        if len(words) < 2:
            raise AnswerError(f"a call is: arm skill key=value ..., got {part.strip()!r}")
        args = {}
        for word in words[2:]:
            key, _, value = word.partition("=")
            try:
                args[key] = json.loads(value)
            except ValueError:
                args[key] = value
        calls.append({"skill": words[1], "arm": words[0], "args": args})
    return calls
