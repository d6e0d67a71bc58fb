"""The monitor itself: what it holds to be success, over made-up and simulated states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from staging import Stage, succeeds

from bench_tasks.errors import UnscoredError
from bench_tasks.tasks.base import Ask, Check, Goal, Task
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.vocabulary import (
    ARMS,
    CONTROL_PERIOD_NS,
    Event,
    ObjectInfo,
    Question,
    Scene,
    WorldState,
)

GOAL_Z, LOST_Z, HALF_Z, LOW_Z = 1.0, -1.0, 0.5, 0.0


class Made(Task):
    """The goal is z > 0.9, and below -0.5 all is lost; stages need their order."""

    name, mode, summary = "made", "single", "made up for tests of the monitor"

    def objects(self):
        return ()

    def layout(self, rng, objects):
        raise NotImplementedError

    def expert(self, view, turn):
        return []

    def goal(self, scene):
        return Goal((Check("up", lambda v: v.position("thing")[2] > 0.9),))

    def stages(self, scene):
        return (
            Check("second", lambda v: v.position("thing")[2] > 0.6, after=("first",)),
            Check("first", lambda v: v.position("thing")[2] > 0.4),
        )

    def invariants(self, scene):
        return (Check("not lost", lambda v: v.position("thing")[2] > -0.5),)


class Asking(Made):
    """Only a question of four items counts, and none of it is guessed at better than 1/2."""

    items = ("a", "b", "c", "d")

    def goal(self, scene):
        return None

    def prologue(self, scene):
        question = Question("q", "?", {item: ("yes", "no") for item in self.items})
        return (Ask(question, dict.fromkeys(self.items, "yes"), chance=0.5),)


class Strict(Made):
    """A goal that is reached by way of "first", which is lost below 0.1; no depth before it."""

    def goal(self, scene):
        return Goal((Check("up", lambda v: v.position("thing")[2] > 0.9),), after=("first",))

    def stages(self, scene):
        low = Check("low", lambda v: v.position("thing")[2] < 0.1, hold_s=0.04)
        return (
            Check("first", lambda v: 0.4 < v.position("thing")[2] < 0.9, hold_s=0.02, lost=low),
        )

    def invariants(self, scene):
        return (
            Check("deep", lambda v: v.position("thing")[2] > -0.5, hold_s=0.04, until="first"),
        )


class Empty(Made):
    """Nothing to reach and nothing asked."""

    def goal(self, scene):
        return None


INFO = ObjectInfo("thing", "block", "red", (0.02, 0.02, 0.02))
SCENE = Scene("made", 1, 0, "", (INFO,), ("table", "thing"), (), {})


def state(seq: int, z: float, **changes) -> WorldState:
    pose = np.array([[0.0, 0.0, z, 1.0, 0.0, 0.0, 0.0]])
    zeros = np.zeros(14)
    plain = WorldState(
        seq, seq * CONTROL_PERIOD_NS, zeros, zeros, zeros, np.zeros(2), np.zeros((2, 7)),
        np.zeros(16), pose, np.zeros((1, 6)), np.array([[0, 1]], np.uint16), np.ones(1),
    )
    return replace(plain, **changes)


def watch(*heights: float, task: Task | None = None, act: bool = True, **changes) -> Monitor:
    """A monitor that has seen a state at each height; `changes` apply to the last one."""
    monitor = Monitor(task or Made(), SCENE)
    monitor.on_state(state(0, LOW_Z))
    if act:
        monitor.on_event(Event("act", 0, 0, {}))
    for seq, z in enumerate(heights, start=1):
        monitor.on_state(state(seq, z, **(changes if seq == len(heights) else {})))
    return monitor


@pytest.mark.parametrize(("states", "good"), [(24, False), (25, False), (26, True), (60, True)])
def test_the_goal_must_hold_half_a_second(states, good):
    assert watch(*[GOAL_Z] * states).verdict().success is good


@pytest.mark.parametrize(("low", "good"), [(23, True), (24, True), (25, False), (60, False)])
def test_what_is_reached_after_the_time_limit_is_no_success(monkeypatch, low, good):
    # A chunk may go on past it, and with it a slow policy's wait. 26 high states are half a second.
    monkeypatch.setattr(Made, "time_limit_s", 1.0)
    heights = [*[LOW_Z] * low, *[GOAL_Z] * 60]
    verdict = watch(*heights).verdict()
    assert verdict.success is good
    assert verdict.cause == ("" if good else "time limit: 1 s of simulated time")
    # What is lost by then does not matter either.
    assert "time limit" in watch(*[LOW_Z] * 60, LOST_Z).verdict().cause


def test_an_episode_whose_arms_were_stopped_is_no_success():
    for stopped, cause in (({"stopped": True}, "safety stop: the button"), ({}, "")):
        monitor = watch(*[GOAL_Z] * 60)
        monitor.on_event(Event("end", 60, 0, {"cause": "safety stop: the button", **stopped}))
        verdict = monitor.verdict()
        assert (verdict.success, verdict.cause) == (not stopped, cause)
        assert verdict.stages["goal held"], "what was reached stands"


def test_held_too_briefly_is_named():
    verdict = watch(*[GOAL_Z] * 20).verdict()
    assert verdict.cause == "goal not reached: held too briefly"


@pytest.mark.parametrize("lapse", [LOW_Z, HALF_Z, float("nan")])
def test_without_a_break(lapse):
    assert not watch(*[GOAL_Z] * 20, lapse, *[GOAL_Z] * 20).verdict().success
    assert watch(*[GOAL_Z] * 20, GOAL_Z, *[GOAL_Z] * 20).verdict().success


@pytest.mark.parametrize(("speed", "good"), [(0.01, True), (0.05, False)])
@pytest.mark.parametrize("axis", range(3))
def test_at_rest(speed, good, axis):
    monitor = watch()
    twist = np.zeros((1, 6))
    twist[0, axis], twist[0, 3 + axis] = speed, 10 * speed
    for seq in range(1, 40):
        monitor.on_state(state(seq, GOAL_Z, object_twist=twist))
    assert monitor.verdict().success is good


def test_nothing_counts_before_the_arms_may_act():
    verdict = watch(*[GOAL_Z] * 60, act=False).verdict()
    assert not verdict.success
    assert verdict.cause == "goal not reached: never checked"
    assert not any(verdict.stages.values())


def test_a_missing_state_raises():
    monitor = watch(GOAL_Z)
    with pytest.raises(ValueError, match="state 2 is missing: 3 came instead"):
        monitor.on_state(state(3, GOAL_Z))


def test_a_state_seen_twice_raises():
    monitor = watch(GOAL_Z)
    with pytest.raises(ValueError, match="state 2 is missing: 1 came instead"):
        monitor.on_state(state(1, GOAL_Z))


@pytest.mark.parametrize("stamp_ns", [0, CONTROL_PERIOD_NS])
def test_time_that_does_not_go_on_raises(stamp_ns):
    monitor = watch(GOAL_Z)
    with pytest.raises(ValueError, match="not later"):
        monitor.on_state(state(2, GOAL_Z, stamp_ns=stamp_ns))


@pytest.mark.parametrize(("step_ns", "good"), [(CONTROL_PERIOD_NS, True), (600_000_000, False)])
def test_time_that_nobody_watched_is_not_held(step_ns, good):
    # Thirty states in order; with long gaps between them, in which anything may have happened.
    monitor = watch()
    for seq in range(1, 31):
        monitor.on_state(state(seq, GOAL_Z, stamp_ns=seq * step_ns))
    assert monitor.verdict().success is good


def test_no_state_at_all_is_no_verdict():
    with pytest.raises(ValueError, match="no state"):
        Monitor(Made(), SCENE).verdict()


def test_stages_stay_reached_and_need_their_order():
    monitor = watch(0.7)
    # "first" is reached now; "second" holds too but not before "first" was reached.
    assert monitor.verdict().stages == {"second": False, "first": True, "goal held": False}
    monitor.on_state(state(2, 0.7))
    assert monitor.verdict().stages["second"] is True
    monitor.on_state(state(3, LOW_Z))
    assert monitor.verdict().stages == {"second": True, "first": True, "goal held": False}


@pytest.mark.parametrize("seed", range(20))
def test_progress_never_falls_and_is_one_only_with_success(seed):
    rng = np.random.default_rng(seed)
    heights = np.repeat(rng.choice([LOW_Z, HALF_Z, 0.7, GOAL_Z], size=8), 10)
    monitor, last = watch(), 0.0
    for seq, z in enumerate([*heights, *[GOAL_Z] * 30], start=1):
        monitor.on_state(state(seq, z))
        verdict = monitor.verdict()
        assert last <= verdict.progress <= 1.0
        assert (verdict.progress == 1.0) is verdict.success is (verdict.cause == "")
        last = verdict.progress
    assert last == 1.0


def test_a_broken_invariant_cannot_be_healed():
    monitor = watch(LOST_Z, *[GOAL_Z] * 60)
    verdict = monitor.verdict()
    assert not verdict.success
    assert verdict.cause == "invariant broken: not lost"
    assert verdict.progress < 1.0
    assert monitor.finished
    assert watch(LOW_Z, *[GOAL_Z] * 60).verdict().success


def test_what_ended_the_episode_is_the_cause_unless_the_goal_was_held():
    end = Event("end", 60, 0, {"cause": "time limit: 60 s"})
    for z, cause in ((GOAL_Z, ""), (HALF_Z, "time limit: 60 s")):
        monitor = watch(*[z] * 60)
        monitor.on_event(end)
        assert monitor.verdict().cause == cause


NUMBERS = [
    "joint_position", "joint_velocity", "joint_effort", "gripper_opening", "ee_pose", "command",
    "object_pose", "object_twist", "contact_force",
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", NUMBERS)
def test_a_number_that_is_not_finite_is_never_success(field, value):
    spoilt = getattr(state(0, GOAL_Z), field).copy()
    spoilt.flat[-1] = value
    monitor = watch(*[GOAL_Z] * 10, **{field: spoilt})
    for seq in range(11, 60):
        monitor.on_state(state(seq, GOAL_Z))
    verdict = monitor.verdict()
    assert not verdict.success
    assert verdict.cause == "invariant broken: every number finite"


def test_a_contact_force_that_is_not_a_number_does_not_let_go(world):
    # A condition like "not touched" would hold for NaN: NaN > 0 is false.
    stage = Stage(world, "blocks_ranking_rgb")
    monitor = Monitor(stage.task, stage.scene)
    for color, y in (("red", 0.09), ("green", 0.0), ("blue", -0.09)):
        stage.put(f"{color}_block", [0.45, y, 0.02])
    stage.hold(0.02)
    monitor.on_state(replace(stage.state, seq=0, stamp_ns=0))
    monitor.on_event(Event("act", 0, 0, {}))
    entities = stage.scene.entities
    hand, block = entities.index("left_hand"), entities.index("red_block")
    pairs = np.vstack([stage.state.contact_pair, [[hand, block]]])
    forces = np.append(stage.state.contact_force, np.nan)
    for seq in range(1, 40):
        stamp = seq * CONTROL_PERIOD_NS
        monitor.on_state(
            replace(stage.state, seq=seq, stamp_ns=stamp, contact_pair=pairs, contact_force=forces)
        )
    assert not monitor.verdict().success
    succeeds(stage.hold(1.0))


def test_nothing_to_check_is_not_success():
    verdict = watch(*[GOAL_Z] * 60, task=Empty()).verdict()
    assert not verdict.success
    assert verdict.cause == "nothing to check"
    assert verdict.progress == 0.0


@pytest.mark.parametrize("make", [
    lambda: Goal(()),
    lambda: Goal((Check("any", lambda v: True),), hold_s=0.0),
    lambda: Ask(Question("q", "?", {}), {}, 0.5),
    lambda: Ask(Question("q", "?", {"a": ("yes", "no")}), {"a": "maybe"}, 0.5),
    lambda: Ask(Question("q", "?", {"a": ("yes",)}), {"b": "yes"}, 0.5),
    lambda: Ask(Question("q", "?", {"a": ("yes",)}), {"a": "yes"}, 1.0),
], ids=["no check", "no time", "no gold", "gold no choice", "gold not asked", "certain"])
def test_goals_and_questions_that_nobody_can_fail_are_refused(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize(("right", "progress"), [(0, 0), (1, 0), (2, 0), (3, 0.5), (4, 1)])
def test_answers_score_nothing_up_to_chance(right, progress):
    values = {item: "yes" if k < right else "no" for k, item in enumerate(Asking.items)}
    monitor = watch(task=Asking())
    monitor.on_event(Event("answer", 0, 0, {"name": "q", "values": values}))
    verdict = monitor.verdict()
    assert verdict.progress == pytest.approx(progress)
    assert verdict.success is (right == 4)
    assert verdict.details["questions"]["q"]["accuracy"] == right / 4


class Touching(Made):
    """What has to touch is a block and the table, of which a hand feels nothing."""

    def goal(self, scene):
        return Goal((Check("down", lambda v: v.touching("thing", "table")),))


def test_what_the_cell_cannot_feel_is_no_verdict_and_no_end():
    parts = tuple(f"{a}_{p}" for a in ARMS for p in ("arm", "hand", "finger1", "finger2"))
    felt = replace(SCENE, entities=("thing", "table", *parts), contacts="hands")
    monitor = Monitor(Touching(), felt)
    monitor.on_event(Event("act", 0, 0, {}))
    for seq in range(40):
        monitor.on_state(state(seq, LOW_Z))
        assert not monitor.finished
    with pytest.raises(UnscoredError, match="nothing here measures whether thing touches table"):
        monitor.verdict()


@pytest.mark.parametrize(
    ("low", "again", "good"), [(0, 0, True), (2, 0, True), (3, 0, False), (3, 2, True)]
)
def test_a_stage_that_is_lost_for_long_enough_must_be_reached_anew(low, again, good):
    heights = [HALF_Z] * 2 + [LOW_Z] * low + [HALF_Z] * again + [GOAL_Z] * 26
    verdict = watch(*heights, task=Strict()).verdict()
    assert verdict.success is good
    assert verdict.stages["first"] is good
    assert verdict.cause == ("" if good else "goal not reached: first before")


@pytest.mark.parametrize(("deep", "good"), [(2, True), (3, False)])
def test_an_invariant_may_fail_briefly_and_counts_no_more_after_its_stage(deep, good):
    start = [LOST_Z] * deep + [HALF_Z] * 2
    verdict = watch(*start, *[LOST_Z] * 5, *[HALF_Z] * 2, *[GOAL_Z] * 26, task=Strict()).verdict()
    assert verdict.success is good
    assert verdict.cause == ("" if good else "invariant broken: deep")
