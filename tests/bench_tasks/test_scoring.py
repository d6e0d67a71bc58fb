"""Offline verdicts: exact on golden recordings, never favourable to what is missing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import made
import pytest

from bench_tasks.bags import cdr
from bench_tasks.bags.recording import BagSink
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.reports.summary import by_task
from bench_tasks.verdicts.score_files import load_scores, newest_scores, save_scores
from bench_tasks.verdicts.scored_runs import wrong_episodes, wrong_runs
from bench_tasks.verdicts.scoring import score_bag, score_folder
from bench_tasks.vocabulary import Verdict

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
IN_ORDER = "c5a1ff257bd972ee5d16befed1a93895ea89f7cd63013d58c993d9b2940325d3"


@pytest.mark.parametrize(
    "name,success,scored,progress,cause,agrees",
    [
        ("in_order", True, True, 1.0, "", True),
        ("older_version", True, True, 1.0, "", True),
        ("out_of_order", False, True, 0.0, "plan limit: 20 plans", True),
        ("too_short", False, True, 0.2, "goal not reached: held too briefly", True),
        ("held", False, True, 0.2, "goal not reached: let go", True),
        ("state_lost", False, False, 0.0, "unscored: state 17 is missing: 18 came instead", None),
        (
            "no_end", False, False, 0.0,
            "incomplete recording: no end event, the last state is 39", None,
        ),
    ],
)  # fmt: skip
def test_golden_recordings_keep_their_verdicts(name, success, scored, progress, cause, agrees):
    score = score_bag(GOLDEN / f"{name}.mcap")
    assert (score.success, score.scored, score.cause) == (success, scored, cause)
    assert score.progress == pytest.approx(progress) and score.agrees is agrees
    assert (score.task, score.seed, score.tier) == ("blocks_ranking_rgb", 3, 2)


def test_a_golden_recording_of_the_humanoid_keeps_its_verdict():
    score = score_bag(GOLDEN / "humanoid.mcap")
    assert (score.success, score.scored, score.cause, score.agrees) == (True, True, "", True)
    assert (score.task, score.seed, score.tier) == ("reach_both_hands", 4, 3)
    assert score.end_seq == 59 and score.notes == () and len(score.state_hash) == 64


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"joints": 14, "actions": 16}, "state 0 has 14 joint numbers, the g1's 29"),
        ({"actions": 18}, "state 0 has 18 command numbers, the g1's 19"),
        ({"objects": 2}, "state 0 has 2x7 object numbers, the g1's 1x7"),
        ({"party": 14}, "state 0 has a contact of party 14 of 14"),
        ({"embodiment": "fr3_pair"},
         "the scene's robot is fr3_pair, reach_both_hands is for g1"),
        ({"embodiment": "r2d2"}, "the scene's robot is r2d2, reach_both_hands is for g1"),
        ({"task": "lift_pot"}, "the scene's robot is g1, lift_pot is for fr3_pair"),
    ],
)  # fmt: skip
def test_states_of_another_robot_than_the_scenes_are_unscored(tmp_path, changed, cause):
    sink = BagSink(tmp_path / "bag")
    made.reach_episode(sink, verdict=False, **changed)
    sink.writer.close()
    score = score_bag(tmp_path / "bag")
    assert (score.success, score.scored, score.cause) == (False, False, f"unscored: {cause}")


def test_content_hash_is_that_of_the_states_alone():
    hashes = {n: score_bag(GOLDEN / f"{n}.mcap").state_hash for n in ("in_order", "no_end", "held")}
    assert hashes["in_order"] == hashes["no_end"] == IN_ORDER != hashes["held"]


def test_another_task_version_is_said():
    notes = score_bag(GOLDEN / "older_version.mcap").notes
    assert len(notes) == 1 and "version 0" in notes[0] and "version 1" in notes[0]


def recorded(path, manifest=None, **options):
    sink = BagSink(path, manifest)
    made.ranking_episode(sink, **options)
    sink.writer.close(wall_s=1.5)
    return path


def test_fields_of_a_whole_episode(tmp_path):
    score = score_bag(recorded(tmp_path / "000003"))
    assert (score.planner, score.policy, score.wall_s) == ("expert", "skills", 1.5)
    assert score.sim_s == pytest.approx(39 * 0.02) and score.end_seq == 39
    assert score.stages["goal held"] and score.bag == str(tmp_path / "000003")


@pytest.mark.parametrize("kind", ["plan_request", "question", "show"])
def test_whether_the_planner_was_asked_for_anything(tmp_path, kind):
    assert score_bag(recorded(tmp_path / "000003")).asked is False, "it acts, and asks nobody"
    assert score_bag(with_event(tmp_path / "asked", kind, "{}")).asked is True
    sink = BagSink(tmp_path / "none")
    sink.scene(made.scene())
    sink.writer.close()
    assert score_bag(tmp_path / "none").asked is None, "it ended before it could ask"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.99])
def test_a_cut_bag_never_succeeds(tmp_path, share):
    path = recorded(tmp_path / "bag", states=300)
    assert score_bag(path).success
    file = path / "bag_0.mcap"
    data = file.read_bytes()
    end = data.rindex(b"\x0f" + (4).to_bytes(8, "little"))
    file.write_bytes(data[: int(end * share)])
    score = score_bag(path)
    assert not score.success and not score.scored and score.progress == 0.0
    assert score.cause.startswith(("incomplete recording: ", "unscored: "))


def test_every_lost_state_is_noticed(tmp_path):
    for lost in (0, 1, 20, 38, 39):
        score = score_bag(recorded(tmp_path / str(lost), leave_out=(lost,)))
        assert not score.success and not score.scored, lost
        assert score.cause.startswith(("incomplete recording: ", "unscored: "))


def test_a_state_track_that_its_manifest_does_not_vouch_for(tmp_path):
    path = recorded(tmp_path / "bag")
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "state_hash": "0" * 64}))
    score = score_bag(path)
    assert not score.success and "vouches" in score.cause
    (path / "manifest.json").write_text("{")
    assert "manifest.json" in score_bag(path).cause


def test_a_live_verdict_that_lies_is_found(tmp_path):
    sink = BagSink(tmp_path / "bag")
    made.ranking_episode(sink, y=made.OUT_OF_ORDER, verdict=False)
    sink.verdict(Verdict("blocks_ranking_rgb", 3, True, 1.0, "", {}, 39, 0.78))
    sink.writer.close()
    score = score_bag(tmp_path / "bag")
    assert score.agrees is False and not score.success


def test_events_that_arrive_after_later_states_still_count_where_they_belong(tmp_path):
    """Over topics an event can be recorded behind states that came after it."""
    one = BagSink(tmp_path / "one")
    made.ranking_episode(one)
    one.writer.close()
    late, kept = BagSink(tmp_path / "late"), []
    event = late.event
    late.event = kept.append
    made.ranking_episode(late, verdict=False)
    for item in kept:
        event(item)
    late.writer.close()
    a, b = score_bag(tmp_path / "one"), score_bag(tmp_path / "late")
    assert a.success and (a.success, a.stages, a.state_hash) == (b.success, b.stages, b.state_hash)


def test_states_after_the_end_do_not_count(tmp_path):
    sink = BagSink(tmp_path / "bag")
    made.ranking_episode(sink, states=20)
    for seq in range(20, 80):
        sink.state(made.ranking_state(seq, made.IN_ORDER))
    sink.writer.close()
    score = score_bag(tmp_path / "bag")
    assert not score.success and score.end_seq == 19 and score.agrees


def test_no_scene_unknown_task_and_nothing_at_all(tmp_path):
    sink = BagSink(tmp_path / "none", {"task": "blocks_ranking_rgb", "seed": 4})
    sink.writer.close()
    score = score_bag(tmp_path / "none")
    assert score.cause == "unscored: no scene was recorded" and score.seed == 4
    sink = BagSink(tmp_path / "odd")
    sink.scene(made.scene(task="juggling"))
    sink.writer.close()
    assert score_bag(tmp_path / "odd").cause.startswith("unscored: unknown task 'juggling'")
    (tmp_path / "empty").mkdir()
    assert score_bag(tmp_path / "empty").cause == "incomplete recording: there is no MCAP file"


def test_a_failed_set_up_is_reported_with_its_cause(tmp_path):
    sink = BagSink(tmp_path / "bag", {"task": "blocks_ranking_rgb", "seed": 4})
    sink.writer.close("failed", cause="setup: red_block is out of reach")
    score = score_bag(tmp_path / "bag")
    assert not score.success and score.cause == "setup: red_block is out of reach"
    assert (score.task, score.seed, score.state_hash) == ("blocks_ranking_rgb", 4, "")


def test_result_files_lie_side_by_side_and_come_back(tmp_path):
    recorded(tmp_path / "t" / "1")
    recorded(tmp_path / "t" / "2", y=made.OUT_OF_ORDER)
    heard = []
    scores = score_folder(tmp_path, lambda *args: heard.append(args[:2]))
    assert heard == [(1, 2), (2, 2)] and [s.success for s in scores] == [True, False]
    first = save_scores(tmp_path, scores)
    before = first.read_bytes()
    assert "t/1" in before.decode() and str(tmp_path) not in before.decode()
    second = save_scores(tmp_path, scores[:1])
    assert first != second and first.read_bytes() == before
    assert newest_scores(tmp_path) == second and load_scores(first) == scores
    first.write_text(json.dumps({"format_version": 99}))
    with pytest.raises(UsageError, match="format_version 99"):
        load_scores(first)


def edit_manifest(bag, **changes):
    value = json.loads((bag / "manifest.json").read_text())
    (bag / "manifest.json").write_text(json.dumps(value | changes))


@pytest.mark.parametrize("status", ["failed", "recording", "interrupted", None, ["x"]])
@pytest.mark.parametrize("cause", ["", "the node is gone", ["x"]])
def test_only_a_complete_recording_succeeds(tmp_path, status, cause):
    bag = recorded(tmp_path / "bag")
    edit_manifest(bag, status=status, cause=cause)
    score = score_bag(bag)
    assert not score.scored and not score.success and "x" not in score.cause.partition(":")[0]
    said = f"incomplete recording: the manifest's status is {status!r}"
    if cause == "the node is gone":
        said = cause if status == "failed" else f"{said}: {cause}"
    assert score.cause == said


def test_a_bag_without_its_manifest_is_incomplete(tmp_path):
    bag = recorded(tmp_path / "bag")
    (bag / "manifest.json").unlink()
    score = score_bag(bag)
    assert score.cause == "incomplete recording: manifest.json is missing" and not score.scored


@pytest.mark.parametrize("topic", ["/clock", "/joint_states", "/episode/verdict", "/head/x"])
@pytest.mark.parametrize("more", [1, -1])
def test_every_lost_or_added_message_is_noticed(tmp_path, topic, more):
    bag = recorded(tmp_path / "bag")
    counts = json.loads((bag / "manifest.json").read_text())["message_counts"]
    there = counts.get(topic, 0)
    edit_manifest(bag, message_counts={**counts, topic: there + more})
    score = score_bag(bag)
    said = f"incomplete recording: {there} of {there + more} messages on {topic}"
    assert score.cause == said and not score.scored and not score.success
    edit_manifest(bag, message_counts=3)
    assert "no message_counts" in score_bag(bag).cause


def test_without_a_live_verdict_an_episode_is_not_evaluated(tmp_path):
    score = score_bag(recorded(tmp_path / "bag", verdict=False))
    assert score.success and score.agrees is None and not score.evaluated
    assert score.notes == ("no live verdict was recorded",)
    assert score_bag(recorded(tmp_path / "other")).evaluated


def test_what_is_lost_but_needed_by_no_verdict_is_noted(tmp_path):
    bag = recorded(tmp_path / "bag")
    assert score_bag(bag).notes == ()
    (bag / "metadata.yaml").unlink()
    file = bag / "bag_0.mcap"
    file.write_bytes(file.read_bytes()[:-3])
    score = score_bag(bag)
    assert score.success
    assert score.notes == ("the index of bag_0.mcap is missing", "metadata.yaml is missing")


@pytest.mark.parametrize("key,value", [("task", "lift_pot"), ("seed", 4), ("task_version", 0)])
def test_manifest_and_scene_must_mean_the_same_episode(tmp_path, key, value):
    same = {"task": "blocks_ranking_rgb", "seed": 3, "task_version": 1}
    assert score_bag(recorded(tmp_path / "same", same)).success
    score = score_bag(recorded(tmp_path / "other", {**same, key: value}))
    assert not score.scored and f"the manifest says {key} {value!r}" in score.cause


def test_swapped_and_copied_recordings_are_unscored(tmp_path):
    run = {"configuration": {"tasks": ["blocks_ranking_rgb"], "seed": 3, "episodes": 2}}
    out, task = tmp_path / "out", tmp_path / "out" / "blocks_ranking_rgb"
    for seed in (3, 4):
        recorded(task / f"{seed:06d}", seed=seed)
    (out / "run.json").write_text(json.dumps(run))
    assert all(s.success for s in score_folder(out)) and wrong_runs(out, score_folder(out)) == []
    shutil.copytree(task / "000003", task / "copy")
    scores = score_folder(out)
    assert [s.success for s in scores] == [True, True, False]
    assert scores[2].cause.endswith("seed 3 is in blocks_ranking_rgb/000003 too")
    said = "1 that the run did not ask for, or has already: blocks_ranking_rgb seed 3"
    assert wrong_runs(out, scores) == [said]
    shutil.rmtree(task / "copy")
    shutil.rmtree(task / "000004")
    shutil.copytree(task / "000003", task / "000004")
    scores = score_folder(out)
    assert [s.success for s in scores] == [True, False]
    assert "folder is that of blocks_ranking_rgb seed 4" in scores[1].cause
    assert wrong_runs(tmp_path, scores) == [
        "out: 1 of the 2 episodes that the run asked for are missing: blocks_ranking_rgb seed 4; "
        + said
    ]


def test_a_recording_of_another_run_is_unscored(tmp_path):
    bag = recorded(tmp_path / "blocks_ranking_rgb" / "000003", {"planner": "expert"})
    run = {"tasks": ["blocks_ranking_rgb"], "seed": 3, "episodes": 1, "planner": "random"}
    (tmp_path / "run.json").write_text(json.dumps({"configuration": run}))
    for folder in (tmp_path, bag.parent, bag):
        (score,) = score_folder(folder)
        assert score.cause == "unscored: the planner was expert, the run's is random"


@pytest.mark.parametrize(
    ("objects", "cause"),
    [("abc", ""), ("def", "unscored: the object set was def, the run's is abc"),
     ("", "unscored: the object set was none, the run's is abc")],
)  # fmt: skip
def test_an_episode_with_other_objects_than_its_run_is_unscored(tmp_path, objects, cause):
    recorded(tmp_path / "blocks_ranking_rgb" / "000003", {"objects": objects})
    run = {"tasks": ["blocks_ranking_rgb"], "seed": 3, "episodes": 1, "objects_hash": "abc"}
    (tmp_path / "run.json").write_text(json.dumps({"configuration": run}))
    assert [score.cause for score in score_folder(tmp_path)] == [cause]


def test_an_episode_that_never_began_counts_against_the_agents_of_its_run(tmp_path):
    agents = {"planner": "model:key=value", "policy": "skills"}
    recorded(tmp_path / "blocks_ranking_rgb" / "000003", agents)
    began = {"task": "blocks_ranking_rgb", "seed": 4, **agents}
    sink = BagSink(tmp_path / "blocks_ranking_rgb" / "000004", began)
    sink.writer.close("failed", cause="crash: the worker process was killed by SIGKILL")
    run = {"tasks": ["blocks_ranking_rgb"], "seed": 3, "episodes": 2, **agents}
    (tmp_path / "run.json").write_text(json.dumps({"configuration": run}))
    (group,) = by_task(score_folder(tmp_path))
    assert (group.count, group.successes, group.unscored) == (2, 1, 1)
    assert {e.planner for e in group.episodes} == {"expert"}, "the name that it has when it begins"


def test_a_stranger_gives_its_name_to_nobody(tmp_path):
    """A recording of another planner, put into a run of which nothing else was recorded."""
    recorded(tmp_path / "blocks_ranking_rgb" / "000003", {"planner": "expert"})
    sink = BagSink(
        tmp_path / "blocks_ranking_rgb" / "000004",
        {"task": "blocks_ranking_rgb", "seed": 4, "planner": "model"},
    )
    sink.writer.close("failed", cause="setup: red_block is out of reach")
    run = {"tasks": ["blocks_ranking_rgb"], "seed": 3, "episodes": 2, "planner": "model"}
    (tmp_path / "run.json").write_text(json.dumps({"configuration": run}))
    assert [s.planner for s in score_folder(tmp_path)] == ["expert", "model"]


def test_a_copy_outside_a_run_counts_once(tmp_path):
    recorded(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert [s.success for s in score_folder(tmp_path)] == [True, False]


def test_a_big_run_is_compared_without_making_lists():
    run = {"configuration": {"tasks": ["a", "b"], "seed": 0, "episodes": 10**15}}
    said = wrong_episodes(run, [("a", 1), ("c", None)])
    assert said.startswith(f"{2 * 10**15 - 1} of the {2 * 10**15} episodes")
    assert "a seed 0, a seed 2, " in said and said.endswith("has already: c seed None")


DEEP = "[" * 200_000


def with_event(path, kind, text):
    """A bag with an event whose data is this text."""
    sink = BagSink(path)
    made.ranking_episode(sink, end=False)
    stamp = {"sec": 0, "nanosec": 780_000_000}
    raw = {"stamp": stamp, "seq": 39, "kind": kind, "data": text}
    data = cdr.encode("bench_interfaces/msg/EpisodeEvent", raw)
    sink.writer.put("/episode/events", "bench_interfaces/msg/EpisodeEvent", data, 780_000_000)
    sink.writer.close()
    return path


@pytest.mark.parametrize(
    "text", ['{"cause": ["x"]}', '{"cause": null}', "{}", '{"cause": {"a": 1}}', DEEP, "[]"]
)
def test_no_content_brings_scoring_down(tmp_path, text):
    scores = [score_bag(with_event(tmp_path / "end", "end", text))]
    recorded(tmp_path / "deep")
    (tmp_path / "deep" / "manifest.json").write_text(DEEP)
    scores.append(score_bag(tmp_path / "deep"))
    for score in scores:
        assert not score.scored and not score.success and score.seed == 3
        assert score.cause.startswith(("unscored: ", "incomplete recording: "))
    assert by_task(scores)[0].unscored == 2


def test_a_full_disk_leaves_no_result_file(tmp_path, monkeypatch):
    scores = [score_bag(recorded(tmp_path / "bag"))]
    good = save_scores(tmp_path, scores)

    def full(self, text):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(BenchError, match="No space left"):
        save_scores(tmp_path, scores)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bag", good.name]


@pytest.mark.parametrize(
    "change",
    [
        {"success": "yes"}, {"seed": [1]}, {"progress": None}, {"progress": float("nan")},
        {"stages": {"a": 3}}, {"stages": 1}, {"notes": [1]}, {"notes": None}, {"bag": 3},
        {"state_hash": None}, {"cause": ["x"]}, {"details": {"questions": 3}}, {"sim_s": True},
        {"details": {"questions": {"q": {"gold": {}}}}}, {"more": 1},
        {"progress": 1.5}, {"progress": -0.1}, {"scored": False}, {"cause": "time limit"},
        {"success": False},
        *(
            {"details": {"questions": {"q": {"gold": {}, "accuracy": right, "chance": chance}}}}
            for right, chance in ((5.0, 0.5), (-0.1, 0.5), (0.5, 1.0), (0.5, -3.0))
        ),
    ],
)  # fmt: skip
def test_a_result_file_with_what_cannot_be_is_one_error(tmp_path, change):
    good = save_scores(tmp_path, [score_bag(recorded(tmp_path / "bag"))])
    value = json.loads(good.read_text())
    value["episodes"][0] |= change
    later = tmp_path / "scores-29990101.json"
    later.write_text(json.dumps(value))
    with pytest.raises(UsageError, match="is not a result file"):
        load_scores(later)
    notes = []
    assert newest_scores(tmp_path, notes) == good and len(notes) == 1 and later.name in notes[0]


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        banned = {"mujoco", "rclpy", "sim", "policies", "pinocchio", "cv2", "torch", "mjlab",
                  "holosoma_inference", "onnxruntime"}
        if name.split(".")[0] in banned:
            raise ImportError(f"{name} must not be imported")
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from bench_tasks.verdicts.scoring import score_bag
score = score_bag(Path(sys.argv[2]))
assert score.success and score.agrees, score
try:
    import mujoco
except ImportError:
    print("scored without")
"""


@pytest.mark.parametrize("name", ["in_order", "humanoid"])
def test_scoring_needs_neither_simulator_nor_ros(name):
    args = [str(HERE.parents[1]), str(GOLDEN / f"{name}.mcap")]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *args], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "scored without", done.stderr
