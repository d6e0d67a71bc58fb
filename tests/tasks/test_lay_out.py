"""Acts as somebody likes them: measured by what the arms did, learned from what was said."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from bench_tasks import tasks
from bench_tasks.bags.recording import HashSink
from bench_tasks.cli import main
from bench_tasks.episode import run_episode
from bench_tasks.errors import UsageError
from bench_tasks.probes.acted import acted_runs
from bench_tasks.probes.phases import acts_of
from bench_tasks.probes.preference_state import ASPECTS, PHASES
from bench_tasks.probes.stream import Item, Query
from bench_tasks.tasks.families.household import ACTS, day
from bench_tasks.tasks.lay_out import BLOCKS, HANDS, MATS, TASK, Carried
from bench_tasks.verdicts.scoring import score_bag
from bench_tasks.view import View
from bench_tasks.vocabulary import Event, Metadata, Plan, SkillCall
from policies import make_policy
from policies.planners.expert import ExpertPlanner
from tests.bench_tasks.probes.preference_solver import Solver

HOUSEHOLDS = range(24)


def item(name, speaker, text):
    return Item(name, 0, "", speaker, text)


def test_golds_follow_from_what_was_said_before_and_after_acts():
    agreed = 0
    for household in range(6):
        solver = Solver()
        for seed in range(household * ACTS, (household + 1) * ACTS):
            now = day(seed)
            for speaker, text in now.lines:
                solver.observe(item("", speaker, text))
            for aspect, values in ASPECTS.items():
                query = Query("q", 0, now.asks.replace("{item}", aspect), values)
                told = solver.answer(query).text
                assert (told == now.gold[aspect]) == (aspect in now.known), (seed, aspect)
                if aspect not in now.known:
                    assert now.scenario.learning, "in a test all has been said"
                    solver.observe(item("", now.person, now.said[aspect]))
                agreed += not now.scenario.learning
    assert agreed >= 500


def test_each_phase_has_all_and_no_value_is_a_good_guess():
    shares = defaultdict(list)
    for household in HOUSEHOLDS:
        days = [day(household * ACTS + k) for k in range(ACTS)]
        assert Counter(d.scenario.phase for d in days) == dict.fromkeys(PHASES, ACTS // 4)
        for aspect, values in ASPECTS.items():
            for value in values:
                share = np.mean([d.gold[aspect] == value for d in days if not d.scenario.learning])
                shares[aspect, value].append(share - 1 / len(values))
    for key, found in shares.items():
        assert ttest_1samp(found, 0.0).pvalue > 0.05 / len(shares), (key, np.mean(found))


def test_what_is_asked_for_is_not_in_view(world):
    scenes = [world.reset("lay_out", seed)[0] for seed in (0, 20)]
    assert scenes[0].instruction == scenes[1].instruction and not scenes[0].params
    assert TASK.sights(View(*world.reset("lay_out", 0))) == ()


# -- what the arms did ---------------------------------------------------------------------------


class Staged:
    """States made up from a real one: a block in a hand, on its way, let go."""

    def __init__(self, world):
        self.scene, self.state = world.reset("lay_out", 0)
        self.start, self.carried = self.state, Carried()
        self.put()

    def put(self, block=None, at=None, arm=None, hand=None):
        """The next state, with a block somewhere, in a hand that is somewhere."""
        poses, hands = self.state.object_pose.copy(), self.state.ee_pose.copy()
        pairs = [(b, "table", 1.0) for b in BLOCKS.values() if b != block]
        told, opening = self.start.command.copy(), np.array([0.08, 0.08])
        if block is not None:
            poses[self.scene.index(block), :3] = at
        if arm is not None:
            k = ("left", "right").index(arm)
            pairs += [(block, f"{arm}_finger{n}", 5.0) for n in (1, 2)]
            told[8 * k + 7], opening[k] = 0.0, 0.04
            hands[k, :3] = at if hand is None else hand
        elif block is not None:
            pairs += [(block, "table", 1.0)]
        self.state = replace(
            self.state, seq=self.state.seq + 1, stamp_ns=self.state.stamp_ns + 20_000_000,
            object_pose=poses, ee_pose=hands, command=told, gripper_opening=opening,
            contact_pair=np.array([[self.scene.entity(a), self.scene.entity(b)]
                                   for a, b, _ in pairs], np.uint16),
            contact_force=np.array([force for *_, force in pairs]),
        )  # fmt: skip
        self.carried.on_state(View(self.scene, self.state, self.start, self.carried))

    def carry(self, block, mat, arm, speed):
        """Up from where it is, over to a mat, down, let go."""
        at = self.state.object_pose[self.scene.index(block), :3].copy()
        goal = self.state.object_pose[self.scene.index(mat), :3] + [0, 0, 0.02]
        self.put(block, at, arm)
        for target in (at + [0, 0, 0.1], goal + [0, 0, 0.1], goal):
            count = max(1, int(np.ceil(np.linalg.norm(target - at) / (speed * 0.02))))
            for k in range(1, count + 1):
                self.put(block, at + (target - at) * k / count, arm)
            at = target
        self.put(block, goal)


def named(**names):
    words = {"thing": BLOCKS, "place": MATS, "hand": HANDS}
    return {key: next(w for w, name in words[key].items() if name == value)
            if key in words and value else value for key, value in names.items()}


@pytest.mark.parametrize(("speed", "pace"), [(0.1, "slow"), (0.19, "slow"), (0.22, ""),
                                             (0.26, "fast")])
def test_which_where_by_which_hand_and_how_fast(world, speed, pace):
    stage = Staged(world)
    assert set(stage.carried.done().values()) == {""}
    stage.carry("green_block", "right_mat", "left", speed)
    assert stage.carried.done() == named(
        thing="green_block", place="right_mat", hand="left", pace=pace
    )
    assert stage.carried.result()["peak_m_s"] == pytest.approx(speed, rel=0.1)


def test_pushed_is_not_carried(world):
    stage = Staged(world)
    goal = stage.start.object_pose[stage.scene.index("left_mat"), :3] + [0, 0, 0.02]
    stage.put("red_block", goal)
    assert set(stage.carried.done().values()) == {""}
    stage.carry("blue_block", "middle_mat", "right", 0.1)
    assert stage.carried.done() == named(thing="", place="", hand="right", pace="slow")


def test_a_second_block_or_hand_leaves_the_choice_open(world):
    stage = Staged(world)
    stage.carry("red_block", "left_mat", "left", 0.1)
    stage.carry("red_block", "right_mat", "right", 0.3)
    assert stage.carried.done() == named(thing="red_block", place="right_mat", hand="",
                                         pace="fast")  # fmt: skip
    stage.carry("blue_block", "left_mat", "left", 0.1)
    assert stage.carried.done()["thing"] == ""


def test_in_a_hand_or_beside_the_mats_it_is_nowhere(world):
    stage = Staged(world)
    stage.carry("red_block", "left_mat", "left", 0.1)
    at = stage.state.object_pose[stage.scene.index("red_block"), :3]
    stage.put("red_block", at, "left")
    assert stage.carried.done()["place"] == ""
    stage.put("red_block", at + [0.0, 0.06, 0.0])
    assert stage.carried.done()["place"] == ""


# -- what people say -----------------------------------------------------------------------------


def said_of(world, seed, asked=(), **done):
    """The aspects that are told after an act that was done as liked, but for what is said here."""
    scene, state = world.reset("lay_out", seed)
    carried = Carried()
    for aspect in asked:
        carried.on_event(Event("plan", 0, 0, {"asks": aspect, "refused": ""}))
    carried.done = lambda: {**day(seed).gold, **done}
    return [line[2].rpartition("/")[2] for tell in TASK.react(View(scene, state, state, carried), 0)
            for line in tell.lines]  # fmt: skip


def test_what_was_wrong_is_told_and_what_was_right_by_luck(world):
    assert day(0).known == frozenset()
    assert said_of(world, 0) == list(ASPECTS)
    assert said_of(world, 0, asked=["hand"]) == ["thing", "place", "pace"]
    seed = next(s for s in range(ACTS) if day(s).known == set(ASPECTS) and day(s).scenario.learning)
    assert said_of(world, seed) == []
    assert said_of(world, seed, pace="", hand="the third hand") == ["hand", "pace"]
    assert said_of(world, seed, hand="", place="") == [], "nothing was laid out yet"
    test = next(s for s in range(ACTS) if not day(s).scenario.learning)
    assert said_of(world, test, hand="") == []
    assert TASK.clarify(world.reset("lay_out", test)[0], "hand") == ()


class Curious:
    """Asks, and asks again, and then holds it to be done."""

    metadata = Metadata("curious", "1")

    def reset(self, scene, seed):
        self.heard, self.feedback = [], []

    def observe(self, observation):
        self.heard += observation.heard

    def plan(self, request):
        self.feedback.append(request.feedback.get("reason", ""))
        return Plan((), asks="hand") if request.turn < 2 else Plan(())


def test_one_question_is_answered_and_a_second_one_refused(world):
    planner, sink = Curious(), HashSink()
    run_episode(TASK, 0, world, planner, make_policy("skills"), sink)
    now = day(0)
    assert planner.heard == [*now.lines, (now.person, now.said["hand"], "1 learn/0/hand")]
    assert planner.feedback[1:] == ["a question, and no plan", "one question alone may be asked"]
    plans = [e.data for e in sink.events if e.kind == "plan"]
    assert [p.get("asks") for p in plans] == ["hand", "hand", None]
    assert Plan.from_json(Plan((), asks="hand").to_json()).asks == "hand"


def test_a_pace_that_no_hand_goes_at_is_refused():
    place = {"object": "red_block", "pose": [0.5, 0.0, 0.02]}
    SkillCall("place", "left", {**place, "pace": 0.2}).checked()
    for pace, told in ((0.1, "place: pace must be from 0.2 to 1, got 0.1"),
                       (2, "pace must be from 0.2 to 1, got 2"),
                       ("slow", "pace must be a number, got 'slow'")):
        with pytest.raises(UsageError, match=told):
            SkillCall("place", "left", {**place, "pace": pace}).checked()


# -- with real motion ----------------------------------------------------------------------------


@pytest.mark.parametrize("pace", ["slow", "fast"])
def test_the_expert_does_as_it_is_liked(world, pace):
    seed = next(s for s in range(ACTS) if day(s).gold["pace"] == pace)
    verdict, _ = run_episode(
        TASK, seed, world, ExpertPlanner(), make_policy("skills"), HashSink()
    )  # fmt: skip
    assert verdict.success, verdict.cause
    done = verdict.details["done"]
    assert {a: done[a] for a in ASPECTS} == day(seed).gold and done["peak_m_s"] > 0.1


def test_acts_are_remembered_recorded_and_scored_again(tmp_path, capsys):
    out = tmp_path / "run"
    status = main(["run", "--tasks", "lay_out", "--episodes", "2", "--planner",
                   "remembering:memory=structured,keep=true", "--out", str(out)])  # fmt: skip
    assert status == 0
    (run,) = acted_runs(out)
    assert (run.probe, run.seed, len(run.asked)) == ("lay_out", 0, 8)
    acts = acts_of(run.records)
    for seed, act in enumerate(acts):
        score = score_bag(out / "lay_out" / f"{seed:06d}")
        assert score.agrees and score.success == act.success
        # Nothing is known yet: one thing is asked for, and right then, the rest is told.
        assert act.right["thing"] and act.told_before and act.told_after
        done = score.details["done"]
        assert done["asked"] == ["thing"]
        assert act.right == {a: done[a] == day(seed).gold[a] for a in ASPECTS}
        assert act.success or score.diagnosis["kind"] == "memory"
    capsys.readouterr()
    assert main(["remember", "score", str(out), "--by", "kind"]) == 0
    assert "lay_out: acts\n" in capsys.readouterr().out
    file = out / "lay_out" / "000001" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"seed": 77}))
    assert main(["remember", "score", str(out)]) == 2, "it would count for another household"
    assert "the manifest says seed 77, the recorded scene 1" in capsys.readouterr().err


def test_who_remembers_from_episode_to_episode_does_one_after_the_other(capsys):
    args = ["run", "--tasks", "lay_out", "--episodes", "2", "--jobs", "2", "--planner"]
    assert main([*args, "remembering:keep=true"]) == 2
    assert "remembers one episode in the next: jobs must be 1, got 2" in capsys.readouterr().err


def test_it_is_a_task_of_its_own():
    assert tasks.get("lay_out") is TASK and "lay_out" not in tasks.names()


def test_an_act_copied_into_the_folder_does_not_count_twice(tmp_path):
    def put(name, **head):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "manifest.json"
        path.write_text(json.dumps({"task": "lay_out", "planner": "p", "seed": 3} | head))

    put("one")
    put("other", seed=4)
    (run,) = acted_runs(tmp_path)
    assert len(run.asked) == 8 and not any(r.reply.text for r in run.asked)
    put("two")
    with pytest.raises(UsageError, match="two is the same act of p as .*one"):
        acted_runs(tmp_path)
    for wrong in ({"seed": "3"}, {"seed": -1}, {"seed": True}, {"planner": None}):
        put("two" + str(wrong), **wrong)
        with pytest.raises(UsageError, match="planner must be a text and seed a whole number"):
            acted_runs(tmp_path / ("two" + str(wrong)))
