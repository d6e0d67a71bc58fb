"""The policy `skills`: plans executed by whatever moves the robot that the task is for."""

from __future__ import annotations

from dataclasses import replace

from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments
from bench_tasks.vocabulary import FR3_PAIR, ActionChunk, Observation, Plan, Scene
from policies.humanoid import HumanoidPolicy
from policies.skills import SkillOptions, SkillPolicy

__all__ = ["RobotSkills"]


class RobotSkills:
    """The FR3 pair by `skills.SkillPolicy`, the G1 by `humanoid.HumanoidPolicy`.

    Its version names both, and the scene says which of them it was. The options are those of
    `SkillPolicy`: with one that is not as it is by default only the pair can be moved.
    """

    Options = SkillOptions
    metadata = replace(
        SkillPolicy.metadata,
        version=f"{SkillPolicy.metadata.version}, humanoid {HumanoidPolicy.metadata.version}",
    )

    def __init__(self, options: SkillOptions | None = None) -> None:
        """As `SkillPolicy`, to which the options go."""
        usual = options is None or options == SkillOptions()
        self.robots = embodiments.NAMES if usual else (FR3_PAIR,)
        self._pair = SkillPolicy(options)
        self._own: SkillPolicy | HumanoidPolicy = self._pair

    @property
    def realtime(self) -> bool:
        """Whether the world goes on while the pair's policy is asked; see `SkillPolicy`."""
        return self._pair.realtime

    @realtime.setter
    def realtime(self, value: bool) -> None:
        self._pair.realtime = value

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode with the policy of its robot; UsageError where options are not its."""
        if scene.embodiment not in self.robots:
            raise UsageError(
                f"options of policy skills are for {' and '.join(self.robots)}, {scene.task} is "
                f"for {scene.embodiment}"
            )
        # Of the humanoid's nothing is loaded for who has the pair alone.
        self._own = self._pair if scene.embodiment == FR3_PAIR else HumanoidPolicy()
        self._own.reset(scene, seed)

    def accept(self, plan: Plan) -> None:
        """Hand on a plan."""
        self._own.accept(plan)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return what the robot's own policy says."""
        return self._own.infer(observation)
