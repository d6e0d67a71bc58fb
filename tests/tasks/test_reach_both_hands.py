"""The humanoid reaches with both hands, through the ordinary runner, and is scored from the bag."""

from __future__ import annotations

import json

import numpy as np
import pytest
from staging import Played, fails, fails_with, succeeds

from bench_tasks import runner, tasks
from bench_tasks.bags.bag import read_bag
from bench_tasks.config import RunConfig
from bench_tasks.errors import UsageError
from bench_tasks.tasks.families.humanoid import HEIGHTS_M, hand_error
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, Observation, Plan, SkillCall
from policies.humanoid import HumanoidOptions, HumanoidPolicy

NAME = "reach_both_hands"
TASK = tasks.get(NAME)


@pytest.fixture(scope="module")
def done(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    config = RunConfig((NAME,), episodes=2, out=str(out), cameras=())
    return runner.run(config, world)


def test_the_expert_reaches_and_the_recording_says_so_too(done):
    assert done.evaluated
    for episode in done.episodes:
        assert episode.success and episode.agrees is True, episode.cause
        assert (episode.policy, episode.planner) == ("skills", "expert")


def test_the_recording_holds_the_whole_robot(done):
    recording = read_bag(done.out / NAME / "000000", chunks=True)
    state = recording.states[-1]
    assert recording.scene.embodiment == "g1"
    assert len(state.joint_position) == len(recording.scene.joint_names) == 29
    assert state.command.shape == (19,)
    assert {chunk.values.shape[1] for chunk in recording.chunks} == {19}
    executed = np.stack([s.command for s in recording.states[1:11]])
    assert executed == pytest.approx(recording.chunks[0].values, abs=1e-12)
    assert [o.name for o in recording.scene.objects] == ["pelvis"]


def test_tables_are_of_three_heights_and_targets_above_them(world):
    seen = set()
    for seed in range(8):
        scene, state = world.reset(NAME, seed)
        seen.add(-scene.base_height_m)
        assert world.model.geom("floor").pos[2] == scene.base_height_m
        for arm, pose in scene.params["targets"].items():
            away, _ = hand_error(state.ee_pose[ARMS.index(arm)], pose)
            assert away > 0.05 and 0.05 < pose[2] < 0.42
        json.dumps(scene.params)
    assert seen == set(HEIGHTS_M)


@pytest.fixture(scope="module")
def hands(world):
    """A function that lets the hands be at poses (2, 7), for so many periods each; and those."""
    scene, _ = world.reset(NAME, 0)

    def played(*held):
        episode = Played(world, NAME)
        for pose, periods in held:
            episode.add(periods, ee_pose=pose)
        return episode

    return played, np.array([scene.params["targets"][arm] for arm in ARMS])


BOTH = ("left hand there", "right hand there")


def test_hands_that_stay_there_count(hands):
    played, there = hands
    succeeds(played((there, 60)))


def test_flying_through_does_not(hands):
    played, there = hands
    off = there + [0, 0, 0.06, 0, 0, 0, 0]
    fails(played((there, 40)), "held too briefly")
    fails(played(*[(there, 40), (off, 5)] * 3), *BOTH)


def test_beside_it_is_not_there(hands):
    played, there = hands
    there = there.copy()
    there[1, 2] += 0.06
    fails(played((there, 60)), BOTH[1])


def test_one_hand_is_not_both(world, hands):
    played, there = hands
    there = there.copy()
    there[0] = world.state.ee_pose[0]
    fails(played((there, 60)), BOTH[0])


def test_a_hand_turned_away_is_not_there(hands):
    played, there = hands
    there = there.copy()
    there[0, 3:] = there[0, [4, 3, 6, 5]] * [-1, 1, 1, -1]
    fails(played((there, 60)), BOTH[0])


def test_the_wrong_hands_are_wrong(hands):
    played, there = hands
    fails(played((there[::-1], 60)), *BOTH)


@pytest.mark.parametrize("part", ["body", "left_arm", "right_hand"])
def test_on_its_knees_or_hands_it_is_not_on_its_feet(hands, world, part):
    played, there = hands
    feet = [("floor", f"{side}_foot", 160.0) for side in ARMS]
    succeeds(Played(world, NAME).add(60, feet, ee_pose=there))
    kneeling = Played(world, NAME).add(60, [*feet, ("floor", part, 5.0)], ee_pose=there)
    assert fails_with(kneeling, "invariant broken") == "invariant broken: on its feet"


def test_out_of_reach_and_impossible_skills_are_told(world):
    scene, state = world.reset(NAME, 0)
    policy = HumanoidPolicy()
    policy.reset(scene, 0)
    with pytest.raises(UsageError, match="cannot grasp: choose from move_to"):
        policy.accept(Plan(((SkillCall("grasp", "left", {"object": "pelvis"}),),)))
    far = {"pose": [1.5, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]}
    policy.accept(Plan(((SkillCall("move_to", "left", far),),)))
    answer = policy.infer(Observation(state))
    assert answer.needs_plan and answer.detail["reason"].startswith("out of reach: left hand ends")
    pair, _ = world.reset("lift_pot", 0)
    with pytest.raises(UsageError, match="lift_pot has fr3_pair"):
        policy.reset(pair, 0)


def test_corrections_bring_the_hands_nearer_than_setting_out_once(world):
    """The pelvis gives way as the arms reach out; without corrections the hands stay behind."""
    errors = []
    for corrected in (False, True):
        scene, state = world.reset(NAME, 3)
        policy = HumanoidPolicy(HumanoidOptions(replan=corrected, adjust=corrected))
        policy.reset(scene, 0)
        policy.accept(Plan(tuple(TASK.expert(View(scene, state), 0))))
        for _ in range(20):
            chunk = policy.infer(Observation(world.state))
            if chunk.needs_plan:
                break
            world.step(chunk)
        errors.append([
            hand_error(world.state.ee_pose[k], scene.params["targets"][arm])[0]
            for k, arm in enumerate(ARMS)
        ])  # fmt: skip
    assert min(errors[0]) > 0.03 and max(errors[1]) < 0.02
