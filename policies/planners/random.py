"""The planner's floor: valid skill calls and valid answers, drawn by a seed."""

from __future__ import annotations

import zlib

import numpy as np

from bench_tasks import tasks
from bench_tasks.vocabulary import (
    ARMS,
    MAX_OPENING_M,
    Answer,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    SkillCall,
)
from policies.after_reset import after_reset

__all__ = ["RandomPlanner"]

STOP_PROBABILITY = 0.1
"""Chance that any plan but the first is empty: the planner then holds the task to be finished."""
REACH_M = np.array([[0.25, 0.65], [-0.4, 0.4], [0.05, 0.4]])
"""(3, 2) box, world frame, that random poses come from: above the table, before the arms."""
DOWNWARD = (0.0, 1.0, 0.0, 0.0)
"""Quaternion (w, x, y, z) of a hand that points straight down."""


class RandomPlanner:
    """One to three steps per plan; each gives one arm or both a call of the task's skills."""

    metadata = Metadata("random", "1")

    def __init__(self) -> None:
        """Start without an episode."""
        self._rng = np.random.default_rng(0)
        self._scene: Scene | None = None

    def reset(self, scene: Scene, seed: int) -> None:
        """Draw from `seed` again; UsageError when the scene's task is unknown."""
        skills = tasks.get(scene.task).skills
        self._rng = np.random.default_rng([seed, zlib.crc32(b"random planner")])
        self._scene = scene
        self._movable = [o.name for o in scene.objects if not o.fixed and o.grasps]
        self._skills = [s for s in skills if self._movable or s not in ("grasp", "place")]

    def observe(self, observation: Observation) -> None:
        """Look the other way."""

    def plan(self, request: PlanRequest) -> Plan:
        """Return random steps, or now and then none."""
        after_reset(self._scene, "planner random")
        if request.turn > 0 and self._rng.random() < STOP_PROBABILITY:
            return Plan(())
        return Plan(tuple(self._step() for _ in range(int(self._rng.integers(1, 4))))).checked()

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Return one valid choice per item."""
        after_reset(self._scene, "planner random")
        return Answer(
            {item: str(self._rng.choice(list(c))) for item, c in question.choices.items()}
        )

    def _step(self) -> tuple[SkillCall, ...]:
        arms = [(ARMS[0],), (ARMS[1],), ARMS][int(self._rng.integers(3))]
        return tuple(self._call(arm) for arm in arms)

    def _call(self, arm: str) -> SkillCall:
        rng = self._rng
        skill = str(rng.choice(self._skills))
        args: dict[str, object] = {}
        if skill in ("grasp", "place"):
            args["object"] = str(rng.choice(self._movable))
        if skill == "place":
            args["pose"] = rng.uniform(REACH_M[:, 0], REACH_M[:, 1]).tolist()
        elif skill == "move_by":
            args["offset"] = rng.uniform(-0.15, 0.15, 3).tolist()
        elif skill == "move_to":
            args["pose"] = [*rng.uniform(REACH_M[:, 0], REACH_M[:, 1]).tolist(), *DOWNWARD]
            args["opening_m"] = float(rng.uniform(0.0, MAX_OPENING_M))
        return SkillCall(skill, arm, args)
