"""The ceiling: the task's own scripted expert, which sees the true state and knows the answers."""

from __future__ import annotations

import bench_tasks.tasks as tasks
from bench_tasks.errors import UsageError
from bench_tasks.tasks.base import Ask, Task
from bench_tasks.view import View
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

__all__ = ["ExpertPlanner"]


class ExpertPlanner:
    """Asks the task what to do next. Privileged: it never looks at a picture."""

    metadata = Metadata("expert", "1", privileged=True)

    def __init__(self) -> None:
        """Start without an episode."""
        self._scene: Scene | None = None
        self._start: WorldState | None = None

    def reset(self, scene: Scene, seed: int) -> None:
        """Look up the scene's task; UsageError when there is no such task."""
        tasks.get(scene.task)
        self._scene, self._start = scene, None

    def observe(self, observation: Observation) -> None:
        """Nothing to see that it does not know."""

    def plan(self, request: PlanRequest) -> Plan:
        """Return the steps of `Task.expert`; BenchError when it cannot go on from here."""
        task, scene = self._episode()
        state = request.observation.state
        if request.turn == 0 or self._start is None:
            self._start = state
        steps = task.expert(View(scene, state, self._start), request.turn)
        return Plan(tuple(tuple(step) for step in steps)).checked()

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Return the gold answer; UsageError for a question that the task does not ask."""
        task, scene = self._episode()
        for step in task.prologue(scene):
            if isinstance(step, Ask) and step.question.name == question.name:
                return Answer(dict(step.gold))
        raise UsageError(f"task {scene.task!r} has no question {question.name!r}")

    def _episode(self) -> tuple[Task, Scene]:
        scene = after_reset(self._scene, "planner expert")
        return tasks.get(scene.task), scene
