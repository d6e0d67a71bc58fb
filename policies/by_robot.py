"""The policy `skills`: plans executed by whatever moves the robot that the task is for."""

from __future__ import annotations

from bench_tasks.vocabulary import FR3_PAIR, ActionChunk, Observation, Plan, Scene
from policies.skills import SkillOptions, SkillPolicy

__all__ = ["RobotSkills"]


class RobotSkills:
    """The FR3 pair by `skills.SkillPolicy`, the G1 by `humanoid.HumanoidPolicy`."""

    Options = SkillOptions
    metadata = SkillPolicy.metadata

    def __init__(self, options: SkillOptions | None = None) -> None:
        """As `SkillPolicy`, to which the options go."""
        self._pair = SkillPolicy(options)
        self._own = self._pair

    @property
    def realtime(self) -> bool:
        """Whether the world goes on while the pair's policy is asked; see `SkillPolicy`."""
        return self._pair.realtime

    @realtime.setter
    def realtime(self, value: bool) -> None:
        self._pair.realtime = value

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode with the policy of its robot."""
        self._own = self._pair
        if scene.embodiment != FR3_PAIR:
            from policies.humanoid import HumanoidPolicy

            self._own = HumanoidPolicy()
        self._own.reset(scene, seed)

    def accept(self, plan: Plan) -> None:
        """Hand on a plan."""
        self._own.accept(plan)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return what the robot's own policy says."""
        return self._own.infer(observation)
