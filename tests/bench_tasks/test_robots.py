"""What does not fit the robot of a task is refused before a run, in one line that names both."""

from __future__ import annotations

from dataclasses import replace

import made
import pytest

import policies
from bench_tasks import runner
from bench_tasks.bags.demonstrations import read_demonstrations
from bench_tasks.bags.recording import BagSink
from bench_tasks.commands.collect import CollectConfig
from bench_tasks.config import RunConfig
from bench_tasks.errors import UnscoredError, UsageError
from bench_tasks.robots import embodiments
from bench_tasks.tasks import get
from bench_tasks.verdicts.monitor import Monitor
from policies.by_robot import RobotSkills
from policies.humanoid import HumanoidPolicy
from policies.skills import SkillOptions, SkillPolicy

HUMAN, PAIR = "reach_both_hands", "lift_pot"


def checked(**given) -> RunConfig:
    return runner.check(RunConfig(**{"tasks": (HUMAN,), "cameras": (), **given}))


@pytest.mark.parametrize(
    ("names", "policy", "reason"),
    [
        ((HUMAN,), "openpi", "policy openpi moves fr3_pair alone, reach_both_hands is for g1"),
        ((PAIR, HUMAN), "gr00t", "policy gr00t moves fr3_pair alone, reach_both_hands is for g1"),
        ((PAIR,), "humanoid", "policy humanoid moves g1 alone, lift_pot is for fr3_pair"),
        ((HUMAN,), "skills:pace=0.5",
         "policy skills:pace=0.5 moves fr3_pair alone, reach_both_hands is for g1"),
    ],
)  # fmt: skip
def test_a_policy_of_another_robot_is_refused(names, policy, reason):
    with pytest.raises(UsageError) as caught:
        checked(tasks=names, policy=policy)
    assert str(caught.value) == reason


def test_a_policy_of_the_tasks_robots_is_taken():
    for policy in ("skills", "hold", "random"):
        assert checked(tasks=(HUMAN, PAIR), policy=policy)
    assert checked(policy="humanoid") and checked(tasks=(PAIR,), policy="skills:pace=0.5")


def test_every_registered_policy_moves_robots_that_exist():
    for name in set(policies.POLICIES) - {"wam", "pair"}:
        robots = getattr(policies.make_policy(name), "robots", (embodiments.NAMES[0],))
        assert robots and set(robots) <= set(embodiments.NAMES)


@pytest.mark.parametrize("axis", ["table_height", "friction"])
def test_an_axis_that_makes_no_sense_with_the_robot_is_refused(axis):
    with pytest.raises(UsageError, match=f"^unknown axis for g1 '{axis}': choose from camera, "):
        checked(vary=(axis,))
    assert checked(tasks=(PAIR,), vary=(axis,)) and checked(vary=("light",))
    with pytest.raises(UsageError, match="^unknown axis 'weather': choose from camera, "):
        checked(tasks=(PAIR,), vary=("weather",))


def test_demonstrations_are_of_the_pair_alone(tmp_path):
    with pytest.raises(UsageError, match="of fr3_pair alone, reach_both_hands is for g1: choose"):
        CollectConfig((HUMAN,)).checked()
    assert CollectConfig((PAIR,)).checked()
    for name, episode in (("a", made.reach_episode), ("b", made.ranking_episode)):
        sink = BagSink(tmp_path / name)
        episode(sink)
        sink.writer.close()
    notes: list[str] = []
    assert list(read_demonstrations(tmp_path, notes.append)) == []
    assert notes[0].endswith("a is left out: its robot is g1: only fr3_pair is trained on")
    assert "no action was recorded" in notes[1]


def test_skills_say_who_they_are_and_take_no_options_for_another_robot():
    version = RobotSkills.metadata.version
    assert version == f"{SkillPolicy.metadata.version}, humanoid {HumanoidPolicy.metadata.version}"
    scene = made.reach_scene()
    policy = RobotSkills(SkillOptions(pace=0.5))
    with pytest.raises(UsageError, match="options of policy skills are for fr3_pair, reach_both"):
        policy.reset(scene, 0)
    usual = RobotSkills(SkillOptions())
    usual.reset(scene, 0)
    assert isinstance(usual._own, HumanoidPolicy)


def test_live_as_offline_a_state_of_another_robot_has_no_verdict():
    monitor = Monitor(get(HUMAN), made.reach_scene())
    monitor.on_state(replace(made.state(0, objects=1), seq=0))
    with pytest.raises(UnscoredError, match="state 0 has 14 joint numbers, the g1's 29"):
        monitor.verdict()
