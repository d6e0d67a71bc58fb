"""Skills on the real simulation: each way to fail is reached and told, and work goes on after."""

from __future__ import annotations

import drill
import numpy as np
import pytest

from bench_tasks import tasks
from bench_tasks.episode import run_episode
from bench_tasks.errors import UsageError
from bench_tasks.robots.fr3 import HOME_RAD, MAX_VELOCITY
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ActionChunk, Observation, Plan, SkillCall
from policies import make_policy
from policies.planners.expert import ExpertPlanner
from policies.skills import CHUNK, SkillOptions, SkillPolicy
from sim.world import SimWorld

DOWN = [0.0, 1.0, 0.0, 0.0]
ARM_COLUMNS = np.r_[0:7, 8:15]


@pytest.fixture(scope="module")
def pair():
    return SimWorld(), SkillPolicy()


@pytest.fixture
def cell(pair, monkeypatch):
    """Two blocks within reach of one arm each, one in the middle, one too far for the left arm."""
    task = drill.blocks("skills", (0.45, 0.2), (0.45, -0.2), (0.5, 0.0), (0.4, -0.5))
    drill.register(monkeypatch, task)
    drill.fresh(*pair, "skills")
    return pair


def move_to(arm: str, x: float, y: float, z: float, **args) -> tuple[SkillCall, ...]:
    return (SkillCall("move_to", arm, {"pose": [x, y, z, *DOWN], **args}),)


def place(arm: str, name: str, *point: float, **args) -> tuple[SkillCall, ...]:
    return (SkillCall("place", arm, {"object": name, "pose": list(point), **args}),)


def fails(cell, *steps, watch=None) -> dict:
    """Run steps of which the last fails; then a new plan must be accepted and work."""
    detail, states = drill.run_plan(*cell, *steps, watch=watch)
    assert detail["status"] == "failed" and detail["completed"] == len(steps) - 1, detail
    assert detail["call"]["skill"] == steps[-1][0].skill
    assert "\n" not in detail["reason"]
    steady = np.diff([s.command for s in states], axis=0)
    assert (np.abs(steady[:, ARM_COLUMNS]) <= np.tile(MAX_VELOCITY, 2) * 0.02).all()
    after, _ = drill.run_plan(*cell, (SkillCall("home", "left"), SkillCall("home", "right")))
    assert after["status"] == "done", after
    again, _ = drill.run_plan(*cell, drill.grasp("right", "block1"))
    assert again["status"] == "done" and again["held"]["right"] == "block1", again
    return detail


# -- what works ----------------------------------------------------------------------------------


def test_idle_before_the_first_plan(cell):
    world, policy = cell
    chunk = policy.infer(Observation(world.state))
    assert chunk.needs_plan and chunk.values.shape == (0, 16)
    assert chunk.detail == {"status": "idle", "completed": 0, "held": {}}


def test_grasp_carry_place_and_home(cell):
    world, policy = cell
    target = [0.5, 0.3, drill.SIZE_M / 2]
    detail, states = drill.run_plan(
        *cell, drill.grasp("left", "block0"), place("left", "block0", *target),
        (SkillCall("home", "left"),),
    )
    assert detail == {"status": "done", "completed": 3, "held": {}}
    view = View(world.scene, drill.hold(world, 25)[-1])
    assert view.position("block0") == pytest.approx(target, abs=0.005)
    assert view.supported_by("block0", "table") and not view.touched_by_robot("block0")
    assert view.state.joint_position[:7] == pytest.approx(HOME_RAD, abs=5e-3)
    rights = np.array([s.command[8:] for s in states])
    assert (rights == rights[0]).all(), "the other arm rests"


def test_place_at_a_pose_turns_the_object(cell):
    world, _ = cell
    pose = upright(0.5, 0.25, drill.SIZE_M / 2, 0.6)
    detail, _ = drill.run_plan(*cell, drill.grasp("left", "block0"), place("left", "block0", *pose))
    assert detail["status"] == "done", detail
    found = View(world.scene, drill.hold(world, 25)[-1]).pose("block0")
    assert found[:3] == pytest.approx(pose[:3], abs=0.005)
    assert abs(found[3:] @ pose[3:]) > np.cos(0.03)


def test_place_without_release_keeps_hold(cell):
    detail, _ = drill.run_plan(
        *cell, drill.grasp("left", "block0"), place("left", "block0", 0.45, 0.2, 0.3, release=False)
    )
    assert detail["status"] == "done" and detail["held"] == {"left": "block0"}


@pytest.mark.parametrize(
    "release", [(SkillCall("open", "left"),), move_to("left", 0.45, 0.2, 0.05, opening_m=0.08)]
)
def test_letting_go_on_purpose_is_no_lost_grasp(cell, release):
    detail, _ = drill.run_plan(
        *cell, drill.grasp("left", "block0"), drill.move_by("left", 0, 0, 0.03), release
    )
    assert detail == {"status": "done", "completed": 3, "held": {}}


def test_move_to_sets_pose_and_opening_and_move_by_is_relative(cell):
    world, _ = cell
    drill.run_plan(*cell, move_to("left", 0.5, 0.2, 0.3, opening_m=0.03))
    drill.hold(world, 25)
    state = world.state
    assert state.ee_pose[0, :3] == pytest.approx([0.5, 0.2, 0.3], abs=0.003)
    assert state.gripper_opening[0] == pytest.approx(0.03, abs=0.002)
    drill.run_plan(*cell, drill.move_by("left", -0.05, 0.02, 0.04))
    moved = drill.hold(world, 25)[-1].ee_pose[0] - state.ee_pose[0]
    assert moved[:3] == pytest.approx([-0.05, 0.02, 0.04], abs=0.003)


def test_open_and_close(cell):
    world, _ = cell
    drill.run_plan(*cell, (SkillCall("close", "left"), SkillCall("close", "right")))
    assert drill.hold(world, 25)[-1].gripper_opening == pytest.approx([0, 0], abs=1e-3)
    drill.run_plan(*cell, (SkillCall("open", "right"),))
    assert drill.hold(world, 25)[-1].gripper_opening == pytest.approx([0, 0.08], abs=1e-3)


def test_both_arms_in_one_step_do_different_things(cell):
    detail, _ = drill.run_plan(
        *cell, (*drill.grasp("left", "block0"), *drill.grasp("right", "block1")),
        (*place("left", "block0", 0.4, 0.3, 0.02), *drill.move_by("right", 0, 0, 0.1)),
    )
    assert detail == {"status": "done", "completed": 2, "held": {"right": "block1"}}


def test_an_arm_may_work_on_the_other_side_where_it_reaches(cell):
    steps = drill.grasp("left", "block2"), drill.move_by("left", 0, 0, 0.1)
    detail, _ = drill.run_plan(*cell, *steps)
    assert detail["status"] == "done" and detail["held"] == {"left": "block2"}


def test_the_same_plan_gives_the_same_actions(cell):
    steps = drill.grasp("left", "block0"), drill.move_by("left", 0, 0, 0.1)
    _, first = drill.run_plan(*cell, *steps)
    drill.fresh(*cell, "skills")
    _, second = drill.run_plan(*cell, *steps)
    assert all(drill.same(a, b) for a, b in zip(first, second, strict=True))


# -- what fails, and how it is told --------------------------------------------------------------


def test_grasp_out_of_reach(cell):
    detail = fails(cell, drill.grasp("left", "block3"))
    assert detail["reason"].startswith("unreachable: left arm cannot grasp block3 at (0.400, -0.5")


@pytest.mark.parametrize(
    "step", [drill.move_by("left", 0.6, 0, 0), move_to("left", 0.5, -0.9, 0.2)]
)
def test_motion_out_of_reach(cell, step):
    assert fails(cell, step)["reason"].startswith("unreachable: left arm cannot")


def test_place_out_of_reach(cell):
    steps = drill.grasp("left", "block0"), place("left", "block0", 0.4, -0.7, 0.02)
    assert fails(cell, *steps)["reason"].startswith("unreachable: left arm")


def test_motion_into_the_table(cell):
    detail = fails(cell, move_to("left", 0.45, 0.3, -0.02))
    assert detail["reason"] == "collision: left arm (link 8) with the table"


def test_motion_into_the_other_arm(cell):
    detail = fails(cell, move_to("right", 0.45, 0.0, 0.3), move_to("left", 0.45, 0.03, 0.3))
    assert detail["reason"].startswith("collision: left arm")
    assert "with the right arm" in detail["reason"]


def test_two_arms_at_once_to_one_place(cell):
    both = (*move_to("left", 0.45, 0.02, 0.3), *move_to("right", 0.45, -0.02, 0.3))
    assert "with the right arm" in fails(cell, both)["reason"]


def test_grasp_missed_when_the_object_is_taken_away(cell):
    world, _ = cell
    away = upright(0.62, 0.4, drill.SIZE_M / 2)

    def take(state):
        if state.ee_pose[0, 2] < 0.1 and state.object_pose[0, 1] < 0.3:
            world.move_objects({"block0": away})

    detail = fails(cell, drill.grasp("left", "block0"), watch=take)
    assert detail["reason"] == "grasp missed: left hand does not hold block0"
    assert detail["held"] == {}


@pytest.mark.parametrize(
    "carry", [drill.move_by("left", 0, 0, 0.2), place("left", "block0", 0.5, 0.3, 0.02)]
)
def test_grasp_lost_when_the_object_is_taken_while_carried(cell, carry):
    world, _ = cell

    def take(state):
        if state.object_pose[0, 2] > 0.08:
            world.move_objects({"block0": upright(0.62, 0.4, drill.SIZE_M / 2)})

    detail = fails(cell, drill.grasp("left", "block0"), carry, watch=take)
    assert detail["reason"] == "grasp lost: block0 slipped from the left hand"
    assert detail["held"] == {}


def test_grasp_lost_between_plans_is_told_with_the_next(cell):
    world, policy = cell
    drill.run_plan(*cell, drill.grasp("left", "block0"), drill.move_by("left", 0, 0, 0.1))
    world.move_objects({"block0": upright(0.62, 0.4, drill.SIZE_M / 2)})
    drill.hold(world, 10)
    detail, _ = drill.run_plan(*cell, place("left", "block0", 0.5, 0.2, 0.02))
    assert detail["status"] == "failed" and "block0" in detail["reason"]
    assert detail["reason"].split(":")[0] in ("grasp lost", "not held")


def test_place_of_what_is_not_held(cell):
    detail = fails(cell, place("left", "block0", 0.5, 0.2, 0.02))
    assert detail["reason"] == "not held: left hand does not hold block0"
    drill.fresh(*cell, "skills")
    other = drill.grasp("left", "block0"), place("left", "block1", 0.5, 0.2, 0.02)
    assert fails(cell, *other)["reason"] == "not held: left hand does not hold block1"


def test_unknown_grasp_names_those_there_are(cell):
    detail = fails(cell, drill.grasp("left", "block0", grasp="handle"))
    assert detail["reason"].startswith("no grasp 'handle' on block0: it has across_y")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (drill.grasp("left", "teapot"), "unknown object 'teapot': choose from block0"),
        (place("left", "teapot", 0.5, 0, 0.1), "unknown object 'teapot'"),
        ((SkillCall("jump", "left"),), "unknown skill 'jump'"),
        ((SkillCall("home", "middle"),), "unknown arm 'middle'"),
        (drill.move_by("left", 0, 0), "must have 3 numbers, got 2"),
        (drill.move_by("left", 0, 0, float("nan")), "must be finite"),
        ((SkillCall("home", "left"), SkillCall("open", "left")), "one call per arm"),
        ((), "one call per arm"),
    ],
)
def test_a_wrong_plan_is_refused_whole(cell, step, message):
    world, policy = cell
    with pytest.raises(UsageError, match=message):
        policy.accept(Plan(((SkillCall("close", "right"),), step)))
    chunk = policy.infer(Observation(world.state))
    assert chunk.needs_plan, "nothing of a refused plan is executed"


# -- two hands together, and whole episodes ------------------------------------------------------


def test_hands_that_lift_a_pot_stay_level_all_the_way(pair):
    world, policy = pair
    scene, _ = drill.fresh(world, policy, "lift_pot", 1)
    detail, _ = drill.run_plan(
        world, policy,
        tuple(drill.grasp(arm, "pot", grasp=f"{arm}_handle")[0] for arm in ARMS),
    )
    assert detail["status"] == "done"
    lift = tuple(drill.move_by(arm, 0, 0, 0.16)[0] for arm in ARMS)
    detail, states = drill.run_plan(world, policy, lift)
    assert detail["status"] == "done"
    heights = np.array([s.ee_pose[:, 2] for s in states])
    assert heights[-1].mean() - heights[0].mean() > 0.14
    assert np.abs(heights[:, 0] - heights[:, 1]).max() < 0.005
    assert max(View(scene, s).tilt("pot") for s in states) < 0.03


class Track:
    """A sink that keeps states and chunks."""

    def __init__(self) -> None:
        self.states, self.chunks, self.failures = [], [], []

    def state(self, state) -> None:
        self.states.append(state)

    def chunk(self, chunk, stamp_ns) -> None:
        self.chunks.append(chunk)

    def event(self, event) -> None:
        if event.kind == "plan_result" and event.data["status"] == "failed":
            self.failures.append(event.data["reason"])

    def ignore(self, *_) -> None:
        pass

    scene = frames = verdict = ignore


@pytest.mark.parametrize("task", [n for n in tasks.names() if tasks.get(n).expert.__doc__])
def test_nothing_snaps_in_whole_expert_episodes(pair, task):
    world, policy = pair
    track = Track()
    verdict, _ = run_episode(tasks.get(task), 1, world, ExpertPlanner(), policy, track)
    assert verdict.success, verdict.cause
    assert track.failures == [], "the expert's own calls can all be done"
    commands = np.array([s.command for s in track.states])
    change = np.abs(np.diff(commands, axis=0))
    assert (change[:, ARM_COLUMNS] <= np.tile(MAX_VELOCITY, 2) * 0.02).all()
    assert change[:, [7, 15]].max() < 0.02, "fingers take their time too"
    assert all(1 <= len(c.values) <= CHUNK for c in track.chunks)
    asked = np.concatenate([c.values for c in track.chunks])
    assert np.array_equal(asked, commands[1:]), "what was asked is what was executed"


def test_arms_have_a_pace_of_their_own(cell):
    world, usual = cell
    calls = {arm: SkillCall("move_by", arm, {"offset": [0.0, 0.0, -0.12]}) for arm in ARMS}

    def commands(policy, seed, *step):
        drill.fresh(world, policy, "skills", seed)
        return np.array([s.command for s in drill.run_plan(world, policy, step)[1]])

    paces = []
    for seed in range(3):
        policy = SkillPolicy(SkillOptions(pace=0.5))
        drill.fresh(world, policy, "skills", seed)
        paces.append(policy._pace)
        for arm in ARMS:
            quick, slow = (commands(p, seed, calls[arm]) for p in (usual, policy))
            assert len(slow) - 1 == pytest.approx((len(quick) - 1) / policy._pace[arm], abs=1.5)
            assert np.array_equal(slow[-1], quick[-1])
        # Both at once take as long as the slower one.
        alone = [len(commands(policy, seed, calls[arm])) for arm in ARMS]
        assert len(commands(policy, seed, *calls.values())) == max(alone)
    drawn = [p[arm] for p in paces for arm in ARMS]
    assert len(set(drawn)) == 6 and all(0.5 <= p <= 1.0 for p in drawn)
    drill.fresh(world, policy, "skills", 2)
    assert policy._pace == paces[2], "the same for the same seed"
    assert usual._pace == {"left": 1.0, "right": 1.0}


def test_in_realtime_late_chunks_make_one_smooth_motion(cell):
    """Whatever is lost on the way was due before: no action is executed twice or left out."""
    world, policy = cell
    policy.realtime = True
    try:
        scene, state = world.reset("skills", 0)
        policy.reset(scene, 0)
        policy.infer(Observation(state))
        policy.accept(Plan((drill.grasp("right", "block1"),)))
        track = [state.command]
        chunk, wait = policy.infer(Observation(state)), 1
        for late in (2, 0, 3, 1) * 40:
            if chunk.needs_plan:
                break
            assert chunk.detail.get("until_next", CHUNK) <= CHUNK
            # Until the answer is there the chunk before goes on, or the arms hold.
            count = chunk.detail.get("until_next", CHUNK)
            for _ in range(max(1, count + late - wait)):
                index = state.seq - chunk.seq
                row = chunk.values[index] if index < len(chunk.values) else state.command
                state = world.step(ActionChunk(state.seq, row[None]))[0]
                track.append(state.command)
            chunk, wait = policy.infer(Observation(state)), late
    finally:
        policy.realtime = False
    assert chunk.detail["status"] == "done" and chunk.detail["held"] == {"right": "block1"}
    steps = np.diff(track, axis=0)[:, ARM_COLUMNS]
    assert (np.abs(steps) <= 0.4 * np.tile(MAX_VELOCITY, 2) * 0.02 + 1e-9).all()
    assert (np.abs(np.diff(steps, axis=0)) <= 0.4 * 10 * 0.02**2 + 1e-9).all()


def test_the_policy_of_the_registry_can_be_told_that_the_world_goes_on():
    policy = make_policy("skills")
    assert policy.realtime is False
    policy.realtime = True
    assert policy._pair.realtime is True
