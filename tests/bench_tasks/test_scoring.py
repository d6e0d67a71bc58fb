"""Offline verdicts: exact on golden recordings, never favourable to what is missing."""

import json
import subprocess
import sys
from pathlib import Path

import made
import pytest

from bench_tasks.errors import UsageError
from bench_tasks.recording import BagSink
from bench_tasks.scoring import (
    load_scores,
    newest_scores,
    save_scores,
    score_bag,
    score_folder,
)
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


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        banned = {"mujoco", "rclpy", "sim", "policies", "pinocchio", "cv2", "torch"}
        if name.split(".")[0] in banned:
            raise ImportError(f"{name} must not be imported")
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from bench_tasks.scoring import score_bag
score = score_bag(Path(sys.argv[2]))
assert score.success and score.agrees, score
try:
    import mujoco
except ImportError:
    print("scored without")
"""


def test_scoring_needs_neither_simulator_nor_ros():
    args = [str(HERE.parents[1]), str(GOLDEN / "in_order.mcap")]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *args], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "scored without", done.stderr
