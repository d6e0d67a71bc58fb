"""Says again what a recorded planner said: the same plans and answers, without the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tasks.bags.bag import find_bags, read_bag
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.vocabulary import (
    Answer,
    Event,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    SkillCall,
)
from policies.after_reset import after_reset

__all__ = ["ReplayOptions", "ReplayPlanner"]


@dataclass(frozen=True)
class ReplayOptions:
    """bag: the folder of one recorded episode, or of a run, in which task and seed are found."""

    bag: str = ""


class ReplayPlanner:
    """Reads the events of a bag; never privileged by itself, it shows nothing new."""

    Options = ReplayOptions
    metadata = Metadata("replay", "1")

    def __init__(self, options: ReplayOptions | None = None) -> None:
        """Look for recordings, read none; UsageError when there are none."""
        self.options = options or ReplayOptions()
        if not self.options.bag:
            raise UsageError("planner replay needs a recording: replay:bag=FOLDER")
        self._bags = find_bags(Path(self.options.bag))
        self._events: list[Event] | None = None

    def reset(self, scene: Scene, seed: int) -> None:
        """Find the recording of this task and seed; UsageError when there is none."""
        self._events, self._plans = None, 0
        for path in self._bags:
            recording = read_bag(path)
            found = recording.scene
            if found and (found.task, found.seed) == (scene.task, scene.seed):
                if found.task_version != scene.task_version:
                    raise UsageError(
                        f"{path} is of version {found.task_version} of {scene.task}, "
                        f"now is {scene.task_version}"
                    )
                self._events = recording.events
                return
        raise UsageError(f"no recording of {scene.task} seed {seed} in {self.options.bag}")

    def observe(self, observation: Observation) -> None:
        """What was seen is in the recording."""

    def plan(self, request: PlanRequest) -> Plan:
        """The next recorded plan; BenchError where the recorded planner failed, or said no more."""
        said = [e for e in self._said() if e.kind == "plan"]
        if self._plans >= len(said):
            raise self._end(f"there is no plan {self._plans + 1} in the recording")
        data = said[self._plans].data
        self._plans += 1
        steps = tuple(
            tuple(SkillCall(c["skill"], c["arm"], dict(c["args"])) for c in step)
            for step in data["steps"]
        )
        refused = data.get("refused", "")
        return Plan(
            steps, data.get("raw", ""), data.get("latency_ns", 0), _transcript(data),
            "" if steps else refused,
        )  # fmt: skip

    def ask(self, question: Question, observation: Observation) -> Answer:
        """The recorded answer; BenchError when there is none."""
        for event in self._said():
            data = event.data
            if event.kind in ("answer", "answer_refused") and data["name"] == question.name:
                return Answer(
                    dict(data.get("values", {})), data.get("raw", ""), data.get("latency_ns", 0),
                    _transcript(data), data.get("refused", ""),
                )  # fmt: skip
        raise self._end(f"there is no answer to {question.name!r} in the recording")

    def _said(self) -> list[Event]:
        return after_reset(self._events, "planner replay")

    def _end(self, otherwise: str) -> BenchError:
        """The error that ended the recorded episode, if it was the planner's."""
        errors = [e.data["error"] for e in self._said() if e.kind == "planner_error"]
        return BenchError(errors[0] if errors else otherwise)


def _transcript(data: dict[str, Any]) -> dict[str, Any]:
    return {"planner": "replay", "recorded": data.get("transcript", {})}
