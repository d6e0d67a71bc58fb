"""How two arms get on: measured right on states made by hand, in the record, and in the report."""

from __future__ import annotations

import json
from dataclasses import replace

import made
import numpy as np
import pytest

from bench_tasks.bags.recording import BagSink
from bench_tasks.reports.report_teamwork import teamwork
from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.verdicts import score_files, scoring
from bench_tasks.verdicts.episode_score import EpisodeScore
from bench_tasks.verdicts.teamwork import (
    MEASURES,
    PARTNER,
    check_teamwork,
    tcp_position,
    teamwork_of,
)
from bench_tasks.vocabulary import ARMS, Event, ObjectInfo, Scene, WorldState

PARTS = ("arm", "hand", "finger1", "finger2")
ENTITIES = ("pot", "table", *(f"{arm}_{part}" for arm in ARMS for part in PARTS))
SCENE = Scene("lift_pot", 1, 0, "", (ObjectInfo("pot", "pot", "gray", (0.1,) * 3),), ENTITIES, (),
              {})  # fmt: skip
GRASPS = [("pot", f"{arm}_finger{n}", 5.0) for arm in ARMS for n in (1, 2)]
JOINTS = np.tile(HOME_RAD, 2)


def state(moving=(), opening=(0.0, 0.0), told=None, apart=0.0, contacts=()):
    """A state with both arms at home, told to be there, the hands `apart` m nearer than that."""
    velocity = np.zeros(14)
    for arm in moving:
        velocity[7 * ARMS.index(arm) + 3] = -0.2
    command = np.insert(JOINTS, [7, 14], opening if told is None else told)
    hands = np.zeros((2, 7))
    hands[:, :3] = [tcp_position(arm, HOME_RAD) for arm in ARMS]
    hands[0, 1] -= apart
    pairs = [sorted((SCENE.entity(a), SCENE.entity(b))) for a, b, _ in contacts]
    return WorldState(
        0, 0, JOINTS, velocity, np.zeros(14), np.array(opening, dtype=float), hands, command,
        np.zeros((1, 7)), np.zeros((1, 6)), np.array(pairs, np.uint16).reshape(-1, 2),
        np.array([force for *_, force in contacts], dtype=float),
    )


def measured(*states, begin=0, end=None, events=()):
    track = [replace(s, seq=k, stamp_ns=k * 20_000_000) for k, s in enumerate(states)]
    end = len(track) - 1 if end is None else end
    told = [Event("act", begin, 0, {}), *events, Event("end", end, 0, {"cause": ""})]
    return teamwork_of(SCENE, track, told)


def test_tcp_positions_are_those_of_the_kinematics():
    rng = np.random.default_rng(0)
    for arm in ARMS:
        joints = HOME_RAD + rng.uniform(-1, 1, (20, 7))
        want = [dual_arm().forward(arm, q)[:3] for q in joints]
        assert np.allclose(tcp_position(arm, joints), want, atol=1e-6)
        assert np.allclose(tcp_position(arm, joints[0]), want[0], atol=1e-6)


def test_an_arm_waits_while_the_other_works():
    states = [state()] + [state(("left",))] * 3 + [state(("right",))] * 5 + [state(ARMS)] * 7
    found = measured(*states, *[state()] * 11)
    times = {"acted_s": 26, "left_waits_s": 5, "right_waits_s": 3, "both_work_s": 7,
             "both_still_s": 11}  # fmt: skip
    for name, periods in times.items():
        assert found[name] == pytest.approx(0.02 * periods), name
    # Only what lies between the beginning of the act and the end counts.
    found = measured(*states, begin=2, end=9)
    assert found["acted_s"] == pytest.approx(0.14)
    assert found["right_waits_s"] == pytest.approx(0.02)
    assert found["left_waits_s"] == pytest.approx(0.10)


def test_closing_fingers_is_work():
    found = measured(*(state(told=(o, 0.08)) for o in (0.08, 0.04, 0.0, 0.0)))
    assert found["right_waits_s"] == pytest.approx(0.04) and found["left_waits_s"] == 0.0


def test_arms_that_press_on_each_other_clash():
    hard, soft = (state(contacts=[("left_arm", "right_hand", f)]) for f in (1.5, 0.5))
    own = state(contacts=[("left_finger1", "left_finger2", 9.0), ("table", "right_hand", 9.0)])
    found = measured(state(), hard, soft, own, hard)
    assert found["clash_s"] == pytest.approx(0.04)


def held(apart=0.0, contacts=GRASPS):
    return state(opening=(0.03, 0.03), told=(0.0, 0.0), apart=apart, contacts=contacts)


def test_pulling_is_being_told_to_hold_it_further_apart_than_it_is():
    found = measured(
        state(apart=0.5), held(), held(apart=0.009), held(apart=0.012), held(apart=-0.02),
        held(apart=0.3, contacts=GRASPS[:3]), state(apart=0.4, contacts=GRASPS),
    )
    assert found["both_held_s"] == pytest.approx(0.08)
    assert found["pull_s"] == pytest.approx(0.04)
    assert found["worst_pull_m"] == pytest.approx(0.02, abs=1e-9)
    assert measured(state(), state())["worst_pull_m"] == 0.0


def look(**surprise):
    data = {"partner": "slow", "odd": "left", "factor": 0.5, "stranger": "", "surprise": surprise}
    return Event(PARTNER, 0, 0, data)


def test_surprise_is_a_mean_over_looks():
    found = measured(state(), state(), events=[
        look(), look(left={"rad": 0.1, "still_rad": 0.3}),
        look(left={"rad": 0.3, "still_rad": 0.5}, right={"rad": 0.01, "still_rad": 0.02}),
    ])["partner"]  # fmt: skip
    agents = found.pop("agents")
    assert found == {"kind": "slow", "odd": "left", "factor": 0.5, "stranger": ""}
    assert agents["left"] == {"rad": pytest.approx(0.2), "still_rad": pytest.approx(0.4),
                              "looks": 2}  # fmt: skip
    assert agents["right"] == {"rad": 0.01, "still_rad": 0.02, "looks": 1}


@pytest.mark.parametrize("data", [
    {}, {"partner": 3, "odd": [], "factor": "x", "surprise": 4}, {"surprise": {"left": "x"}},
    {"surprise": {"left": {"rad": float("nan"), "still_rad": 0.1}}}, {"factor": float("inf")},
])  # fmt: skip
def test_whatever_a_recording_holds_can_be_written_and_read(data):
    found = measured(state(), state(), events=[Event(PARTNER, 0, 0, data)])
    assert found["partner"]["kind"] == "normal" and found["partner"]["agents"] == {}
    score = EpisodeScore("lift_pot", 0, True, 1.0, "", "", "", 1.0, 1.0, teamwork=found)
    check_teamwork(json.loads(json.dumps(score.to_dict()["teamwork"], allow_nan=False)))


def test_numbers_that_are_not_finite_do_not_spread():
    bad = replace(held(), ee_pose=np.full((2, 7), np.nan), joint_velocity=np.full(14, np.inf))
    found = measured(state(), bad, held(apart=0.02))
    assert found["worst_pull_m"] == pytest.approx(0.02)
    assert all(np.isfinite(found[name]) for name in MEASURES)


def test_nothing_is_measured_where_the_arms_were_not_to_act():
    assert teamwork_of(SCENE, [state(), state()], []) == {}
    assert teamwork_of(None, [], [Event("act", 0, 0, {})]) == {}


@pytest.mark.parametrize("found", [
    {"partner": {}}, {**dict.fromkeys(MEASURES, 0.0), "partner": {"kind": "slow"}},
    {**dict.fromkeys(MEASURES, "1"), "partner": {}}, {**dict.fromkeys(MEASURES, 0.0), "partner": 3},
])  # fmt: skip
def test_a_wrong_result_is_refused(found):
    with pytest.raises(TypeError, match="teamwork is"):
        check_teamwork(found)


def test_it_is_in_a_recordings_score_and_its_result_file(tmp_path):
    sink = BagSink(tmp_path / "000003")
    made.ranking_episode(sink)
    sink.writer.close(wall_s=1.5)
    score = scoring.score_bag(tmp_path / "000003")
    assert score.scored and score.teamwork["acted_s"] > 0 and score.teamwork["partner"] == {}
    path = score_files.save_scores(tmp_path, [score])
    assert score_files.load_scores(path)[0].teamwork == score.teamwork


def test_the_report_shows_agents_beside_the_joint_policy():
    def score(policy, success, partner, **measures):
        found = {**dict.fromkeys(MEASURES, 0.0), **measures, "partner": partner}
        return EpisodeScore("lift_pot", 0, success, 1.0, "" if success else "x", "", "", 1.0, 1.0,
                            tier=2, policy=policy, teamwork=found)  # fmt: skip

    agents = {"left": {"rad": 0.1, "still_rad": 0.2, "looks": 1}}
    slow = {"kind": "slow", "odd": "right", "factor": 0.5, "stranger": "", "agents": agents}
    more = {**slow, "agents": {"left": {"rad": 0.4, "still_rad": 0.8, "looks": 2}}}
    joint = score("wam", True, {}, left_waits_s=4.0)
    other = replace(joint, task="grab_roller")
    page = teamwork([
        joint, score("pair <slow>", True, slow, left_waits_s=1.0, worst_pull_m=0.02),
        score("pair <slow>", False, more, left_waits_s=2.0, pull_s=1.0), other,
    ])  # fmt: skip
    rows = page.split("<tr>")
    assert "grab_roller" not in page and len(rows) == 4
    (pair,) = [row for row in rows if "pair &lt;slow&gt;" in row]
    (one,) = [row for row in rows if "wam" in row]
    assert "1/2" in pair and ">1.50<" in pair and ">0.50<" in pair and ">20 mm<" in pair
    assert "0.3000 <span class=soft>(0.6000)" in pair, "a mean over looks"
    assert "1/1" in one and ">4.00<" in one
    assert teamwork([joint, other]) == ""
