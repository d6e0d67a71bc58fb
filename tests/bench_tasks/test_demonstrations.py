"""Demonstrations: recorded like any episode, of seeds of their own, read back for training."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench_tasks import runner
from bench_tasks.bags.bag import frames, read_bag
from bench_tasks.bags.demonstrations import data_hash, read_demonstrations
from bench_tasks.bags.recording import BagSink
from bench_tasks.cli import main
from bench_tasks.commands.collect import CollectConfig, Disturbance
from bench_tasks.config import DEMONSTRATION_SEEDS, RunConfig
from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS

FIRST, LAST = DEMONSTRATION_SEEDS[0], DEMONSTRATION_SEEDS[-1]
QUICK = CollectConfig(("lift_pot",), cameras=("head", "left_wrist"))


@pytest.fixture(scope="module")
def world():
    from sim.world import SimWorld

    return SimWorld(width=48, height=32)


@pytest.fixture(scope="module")
def plain(world, tmp_path_factory):
    return runner.run(replace(QUICK, out=str(tmp_path_factory.mktemp("plain") / "out")), world)


@pytest.fixture(scope="module")
def disturbed(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("disturbed") / "out"
    return runner.run(replace(QUICK, out=str(out), cameras=(), disturb=0.01), world)


def test_evaluation_and_demonstrations_share_no_seed():
    for seed, count in ((0, 10**6), (LAST + 1, 5)):
        RunConfig(("lift_pot",), seed=seed, episodes=count).checked()
        with pytest.raises(UsageError, match=f"demonstrations take seeds {FIRST} to {LAST}"):
            replace(QUICK, seed=seed, episodes=count).checked()
    for seed, count in ((FIRST, 1), (LAST, 1), (FIRST - 3, 4), (LAST, 2), (FIRST + 5, 10)):
        with pytest.raises(UsageError, match=f"seeds {FIRST} to {LAST} are kept for demonstr"):
            RunConfig(("lift_pot",), seed=seed, episodes=count).checked()
    for seed, count in ((FIRST - 1, 2), (LAST, 2)):
        with pytest.raises(UsageError, match="demonstrations take seeds"):
            replace(QUICK, seed=seed, episodes=count).checked()
    replace(QUICK, seed=LAST).checked()


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("--seed", "7"), "demonstrations take seeds"),
        (("--picture-hz", "7"), "picture-hz must be one of 1, 2, 5, 10, 25, 50, got 7"),
        (("--picture-hz", "nan"), "picture-hz must be one of"),
        (("--disturb", "-1"), "disturb must be from 0 to 0.1 rad, got -1"),
        (("--disturb", "nan"), "disturb must be from 0 to 0.1 rad, got nan"),
        (("--pace", "1.5"), "pace must be from 0.2 to 1, got 1.5"),
        (("--cameras", "rear"), "unknown camera 'rear': choose from head"),
    ],
)
def test_a_wrong_argument_is_one_line(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert main(["collect", "--tasks", "lift_pot", "--out", str(out), *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1 and not out.exists()
    assert main(["run", "--tasks", "lift_pot", "--out", str(out), "--seed", str(FIRST)]) == 2
    assert "are kept for demonstrations" in capsys.readouterr().err and not out.exists()


def test_a_demonstration_is_what_was_recorded(plain):
    assert plain.evaluated
    bag = Path(plain.episodes[0].bag)
    recording = read_bag(bag, chunks=True)
    (item,) = read_demonstrations(plain.out)
    assert (item.task, item.seed, item.success) == ("lift_pot", FIRST, True)
    assert item.instruction == recording.scene.instruction and item.period_ns == 20_000_000
    steps = len(recording.states) - 1
    assert item.state.shape == (steps + 1, 16) and item.action.shape == (steps, 16)
    for k, state in enumerate(recording.states):
        for side, _ in enumerate(ARMS):
            half = item.state[k, 8 * side : 8 * side + 8]
            assert np.array_equal(half[:7], state.joint_position[7 * side : 7 * side + 7])
            assert half[7] == state.gripper_opening[side]
        if k:
            assert np.array_equal(item.executed[k - 1], state.command)
    for chunk in recording.chunks:
        asked = item.action[chunk.seq : chunk.seq + len(chunk.values)]
        assert np.array_equal(asked, chunk.values[: len(asked)])
    assert np.array_equal(item.action, item.executed)


def test_pictures_come_at_a_steady_rate_behind_the_state_they_show(plain):
    (item,) = read_demonstrations(plain.out)
    for camera in QUICK.cameras:
        indices, pictures = item.pictures[camera]
        assert indices.dtype == np.int64 and len(pictures) == len(indices)
        assert np.array_equal(indices, np.arange(0, len(item.state), 5))
        assert item.picture(camera, 3).shape == (32, 48, 3)
    taken = [f for f in frames(Path(plain.episodes[0].bag)) if f.camera == "head"]
    bgr = cv2.imdecode(np.frombuffer(taken[4].data, np.uint8), cv2.IMREAD_COLOR)
    assert taken[4].seq == 20 and np.array_equal(item.picture("head", 4), bgr[:, :, ::-1])


def test_pictures_change_nothing_of_what_happens(plain, world, tmp_path):
    other = runner.run(replace(QUICK, out=str(tmp_path / "out"), cameras=()), world)
    assert other.episodes[0].state_hash == plain.episodes[0].state_hash
    fast = replace(QUICK, out=str(tmp_path / "fast"), cameras=("head",), picture_hz=25.0)
    (item,) = read_demonstrations(runner.run(fast, world).out)
    assert np.array_equal(item.pictures["head"][0], np.arange(0, len(item.state), 2))


def test_a_disturbance_shows_in_what_is_executed_not_in_what_is_asked(disturbed, plain):
    assert disturbed.evaluated
    (item,) = read_demonstrations(disturbed.out, failed=True)
    (calm,) = read_demonstrations(plain.out)
    error = item.executed - item.action
    arms = [k for k in range(16) if k % 8 != 7]
    assert not error[:, [7, 15]].any()
    # Until a hand grips, also where it is narrowed for its approach.
    hands = item.action[:, [7, 15]]
    grips = (hands < item.state[:-1, [7, 15]] - 0.002).any(axis=1)
    near = (hands < 0.075).all(axis=1) & ~grips
    assert 0.003 < error[:30][:, arms].std() < 0.03
    assert near.sum() > 30 and np.abs(error[near][:, arms]).max() > 0.003
    assert np.abs(np.diff(error[:200], axis=0)).max() < 0.006, "it is smooth"
    # A hand that works is left in peace, and so is an arm that holds still in the end.
    closed = (item.action[:, [7, 15]] < 0.01).all(axis=1)
    assert closed.sum() > 90 and np.abs(error[closed][60:]).max() < 1e-4
    assert (item.executed[-5:] == item.executed[-5]).all()
    # The expert's first plan does not know of it; the rest is to end where it would have.
    count = 40
    assert np.array_equal(item.action[:count], calm.action[:count])
    assert np.abs(item.state[count] - calm.state[count]).max() > 1e-3
    assert disturbed.episodes[0].success and data_hash(disturbed.out) != data_hash(plain.out)


def test_a_disturbance_is_the_same_for_a_seed_and_has_the_deviation_that_was_asked():
    def draw(task, seed, count=300):
        noise = Disturbance(task, seed, 0.02)
        return np.array([noise.next() for _ in range(count)])

    assert np.array_equal(draw("a", 1), draw("a", 1))
    assert not np.array_equal(draw("a", 1), draw("a", 2))
    assert not np.array_equal(draw("a", 1), draw("b", 1))
    late = draw("a", 3, 20_000)[200:]
    arms = [k for k in range(16) if k % 8 != 7]
    assert late[:, arms].std() == pytest.approx(0.02, rel=0.05) and not late[:, [7, 15]].any()
    one = late[:, 0]
    half_second = np.corrcoef(one[:-25], one[25:])[0, 1]
    assert 0.2 < half_second < 0.6, "about 0.5 s of memory"


def test_a_picture_of_no_state_is_none_of_the_demonstration(plain, tmp_path):
    source = Path(plain.episodes[0].bag)
    recording, seen = read_bag(source, chunks=True), list(frames(source))
    for name, period_ns in (("late", 20_000_000), ("timeless", 0)):
        sink = BagSink(tmp_path / name)
        sink.scene(replace(recording.scene, control_period_ns=period_ns))
        for state in recording.states[:11]:
            sink.state(state)
        sink.chunk(recording.chunks[0], 0)
        sink.frames(tuple(seen[:8]))  # of two cameras at the states 0, 5, 10 and 15
        sink.verdict(recording.verdict)
        sink.writer.close()
    assert [f.seq for f in seen[:8:2]] == [0, 5, 10, 15] and len(recording.chunks[0].values) == 10
    told: list[str] = []
    (item,) = read_demonstrations(tmp_path, told.append)
    assert [item.pictures[camera][0].tolist() for camera in QUICK.cameras] == [[0, 5, 10]] * 2
    assert len(told) == 1 and told[0].endswith("timeless is left out: its control period is 0 ns")


def test_failed_and_broken_demonstrations_are_named(plain, tmp_path):
    import shutil

    source = Path(plain.episodes[0].bag)
    for seed in range(3):
        shutil.copytree(source, tmp_path / "lift_pot" / f"{FIRST + seed}")
    broken = next((tmp_path / "lift_pot" / f"{FIRST + 1}").glob("*.mcap"))
    broken.write_bytes(broken.read_bytes()[:-20000])
    (tmp_path / "lift_pot" / f"{FIRST + 3}").mkdir()
    told: list[str] = []
    found = list(read_demonstrations(tmp_path, told.append))
    assert len(found) == 2 and len(told) == 2
    assert str(FIRST + 1) in told[0] and "no MCAP file" in told[1]
    with pytest.raises(UsageError, match="no recordings in"):
        (tmp_path / "empty").mkdir()
        list(read_demonstrations(tmp_path / "empty"))


def test_what_an_unsuccessful_expert_did_is_left_out_unless_asked_for(world, tmp_path):
    config = replace(QUICK, cameras=(), policy="hold", out=str(tmp_path / "out"))
    result = runner.run(config, world)
    assert not result.episodes[0].success and result.episodes[0].cause
    told: list[str] = []
    assert list(read_demonstrations(result.out, told.append)) == []
    assert len(told) == 1 and "failed" in told[0]
    (item,) = read_demonstrations(result.out, failed=True)
    assert not item.success and len(item.action) > 10


def test_the_hash_is_of_the_content(plain, world, tmp_path):
    again = runner.run(replace(QUICK, out=str(tmp_path / "out")), world)
    assert data_hash(again.out) == data_hash(plain.out)
    more = replace(QUICK, out=str(tmp_path / "more"), cameras=("head",))
    assert data_hash(runner.run(more, world).out) != data_hash(plain.out)


def test_collect_from_the_command_line(tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["collect", "--tasks", "lift_pot", "--cameras", "", "--out", str(out)]
    assert main([*arguments, "--json"]) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert episode["success"] and episode["seed"] == FIRST
    run = json.loads((out / "run.json").read_text())
    assert run["configuration"]["disturb"] == 0.0 and run["configuration"]["picture_hz"] == 10.0
