"""LeRobot datasets: the real lerobot package opens them, and nothing is lost on the way back."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench_tasks import runner
from bench_tasks.bags.demonstration import Demonstration
from bench_tasks.bags.demonstrations import data_hash, read_demonstrations
from bench_tasks.bags.lerobot_reader import EPISODES, INFO
from bench_tasks.bags.lerobot_writer import NAMES, write_dataset
from bench_tasks.cli import main
from bench_tasks.commands.collect import CollectConfig
from bench_tasks.errors import BenchError, UsageError

pytest.importorskip("pyarrow")
pytest.importorskip("av")

ARRAYS = ("state", "action", "executed")
CAMERAS = ("head", "left_wrist")


def made(steps=23, stride=5, seed=1_000_000, cameras=CAMERAS, size=(24, 32), **change):
    """A demonstration of random numbers, its pictures of one colour each."""
    rng = np.random.default_rng(seed)
    indices = np.arange(0, steps + 1, stride, dtype=np.int64)

    def picture(k):
        color = (40 * (k % 6), 30, 200 - 20 * (k % 6))
        return cv2.imencode(".png", np.full((*size, 3), color, np.uint8))[1].tobytes()

    pictures = {
        camera: (indices, [picture(k + c) for k in range(len(indices))])
        for c, camera in enumerate(cameras)
    }
    item = Demonstration(
        "lift_pot", seed, f"Lift pot {seed}.", True, 20_000_000, rng.normal(size=(steps + 1, 16)),
        rng.normal(size=(steps, 16)), rng.normal(size=(steps, 16)), pictures,
    )  # fmt: skip
    return replace(item, **change)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    from sim.world import SimWorld

    config = CollectConfig(
        ("lift_pot", "grab_roller"), cameras=CAMERAS, disturb=0.003,
        out=str(tmp_path_factory.mktemp("recorded") / "out"),
    )  # fmt: skip
    return runner.run(config, SimWorld(width=48, height=32)).out


@pytest.fixture(scope="module")
def dataset(recorded, tmp_path_factory):
    out = tmp_path_factory.mktemp("dataset") / "out"
    assert main(["export", str(recorded), "--out", str(out), "--json"]) == 0
    return out


@pytest.fixture(scope="module")
def opened(dataset, tmp_path_factory):
    """What the lerobot package says of the dataset, and the arrays it gives."""
    apart = Path(sys.prefix) / "lerobot"  # where the set-up puts it, see ros_ws/provision
    if not apart.is_dir():
        pytest.skip("the lerobot package is not there: make test installs it")
    arrays = tmp_path_factory.mktemp("opened") / "arrays.npz"
    program = Path(__file__).with_name("open_lerobot.py")
    done = subprocess.run(
        [sys.executable, program, dataset, arrays], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": str(apart)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), np.load(arrays)


def same(a: Demonstration, b: Demonstration) -> bool:
    """Equal but for the pictures themselves, which a video changes a little."""
    facts = ("task", "seed", "instruction", "success", "period_ns")
    return (
        all(getattr(a, name) == getattr(b, name) for name in facts)
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)
        and list(a.pictures) == list(b.pictures)
        and all(np.array_equal(a.pictures[c][0], b.pictures[c][0]) for c in a.pictures)
        and all(len(a.pictures[c][1]) == len(b.pictures[c][1]) for c in a.pictures)
    )


def test_a_recording_comes_back_from_the_dataset_as_it_was(recorded, dataset):
    before, after = list(read_demonstrations(recorded)), list(read_demonstrations(dataset))
    assert [item.task for item in after] == ["grab_roller", "lift_pot"]
    assert all(same(a, b) for a, b in zip(before, after, strict=True))
    assert not np.array_equal(after[0].action, after[0].executed)
    for a, b in zip(before, after, strict=True):
        for camera in CAMERAS:
            for k in (0, 7, len(a.pictures[camera][1]) - 1):
                ours, theirs = (item.picture(camera, k).astype(float) for item in (a, b))
                assert ours.shape == theirs.shape and np.abs(ours - theirs).mean() < 6
    assert len(data_hash(dataset)) == 64 and data_hash(dataset) == data_hash(dataset)


def test_the_lerobot_package_opens_it(recorded, opened):
    found, arrays = opened
    items = list(read_demonstrations(recorded))
    rows = [len(item.pictures["head"][0]) for item in items]
    assert (found["fps"], found["episodes"], found["frames"]) == (10, len(items), sum(rows))
    assert found["cameras"] == [f"observation.images.{camera}" for camera in CAMERAS]
    assert found["tasks"] == [
        text for item, n in zip(items, rows, strict=True) for text in [item.instruction] * n
    ]
    # What is for us alone is no input and no output of a policy.
    assert found["policy_features"] == {
        "observation.state": ["STATE", [16]], "action": ["ACTION", [16]],
        "observation.images.head": ["VISUAL", [3, 32, 48]],
        "observation.images.left_wrist": ["VISUAL", [3, 32, 48]],
    }  # fmt: skip
    first = 0
    for item, count in zip(items, rows, strict=True):
        part = slice(first, first + count)
        at = item.pictures["head"][0]
        state = item.state[at].astype(np.float32)
        assert np.array_equal(arrays["observation.state"][part], state)
        assert np.array_equal(arrays["item_state"][part], state)
        whole = np.concatenate(arrays["control.state"][part])[: len(item.state)]
        assert np.array_equal(whole, item.state), "to the bit, every control period"
        acted = at[at < len(item.action)]
        action = arrays["action"][part][: len(acted)]
        assert np.array_equal(action, item.action[acted].astype(np.float32))
        times = arrays["timestamp"][part]
        assert np.allclose(times, at * item.period_ns / 1e9, atol=1e-6)
        for camera in CAMERAS:
            theirs = arrays[f"observation.images.{camera}"][part]
            for k in (0, 9, count - 1):
                ours = item.picture(camera, k).transpose(2, 0, 1) / 255.0
                assert np.abs(ours - theirs[k]).mean() < 0.03, (camera, k)
        first += count
    second = items[1]
    assert np.allclose(found["ahead"], second.action[[15, 20, 25]], atol=1e-6)


def test_statistics_are_those_of_the_data(recorded, opened):
    stats = opened[0]["stats"]
    items = list(read_demonstrations(recorded))
    states = np.concatenate([item.state[item.pictures["head"][0]] for item in items])
    for name, value in (
        ("min", states.min(0)), ("max", states.max(0)), ("mean", states.mean(0)),
        ("std", states.std(0)), ("q99", np.quantile(states, 0.99, axis=0)),
    ):  # fmt: skip
        assert np.allclose(stats["observation.state"][name], value, atol=1e-6), name
    pixels = np.concatenate([
        item.picture("head", k).reshape(-1, 3)
        for item in items for k in range(len(item.pictures["head"][0]))
    ]) / 255.0  # fmt: skip
    found = stats["observation.images.head"]
    for name, value in (
        ("min", pixels.min(0)), ("max", pixels.max(0)), ("mean", pixels.mean(0)),
        ("std", pixels.std(0)), ("q50", np.quantile(pixels, 0.5, axis=0)),
    ):  # fmt: skip
        assert np.allclose(found[name], value, atol=1e-6 if name != "q50" else 1 / 255), name
    assert found["count"] == stats["action"]["count"] == [len(states)]
    assert len(NAMES) == 16 and NAMES[7] == "left_gripper_opening" and "right" in NAMES[8]


@pytest.mark.parametrize("steps", [10, 11, 14])
def test_no_step_is_lost_whatever_the_length(tmp_path, steps):
    items = [made(steps), made(steps + 5, seed=1_000_001)]
    assert write_dataset(iter(items), tmp_path / "out") == {
        "episodes": 2, "rows": sum(len(item.pictures["head"][0]) for item in items),
    }  # fmt: skip
    after = list(read_demonstrations(tmp_path / "out"))
    assert all(same(a, b) for a, b in zip(items, after, strict=True))
    color = after[1].picture("left_wrist", 2)[4, 4]
    assert np.abs(color - np.array([200 - 60, 30, 120.0])).max() < 12


def test_failed_ones_are_left_out_unless_asked_for(tmp_path):
    items = [made(), made(seed=1_000_001, success=False)]
    write_dataset(items, tmp_path / "out")
    told: list[str] = []
    (only,) = read_demonstrations(tmp_path / "out", told.append)
    assert only.seed == 1_000_000 and "episode 1 is left out: the demonstration failed" in told[0]
    assert [i.success for i in read_demonstrations(tmp_path / "out", failed=True)] == [True, False]


@pytest.mark.parametrize(
    "items,message",
    [
        ([], "there is no demonstration to write"),
        ([made(pictures={})], "lift_pot seed 1000000 has no pictures"),
        ([made(), made(stride=10)], "does not go with the first demonstration"),
        ([made(), made(cameras=("head",))], "does not go with the first demonstration"),
        ([made(size=(23, 32))], "even width and height, got 32 x 23"),
        ([made(steps=70, stride=35)], "a picture every 700000000 ns is no whole number"),
    ],
)
def test_what_cannot_be_a_dataset_leaves_nothing(tmp_path, items, message):
    with pytest.raises(UsageError, match=message):
        write_dataset(items, tmp_path / "sub" / "out")
    assert list((tmp_path / "sub").iterdir()) == []


def test_pictures_at_key_moments_alone_are_refused(tmp_path):
    item = made()
    uneven = np.array([0, 5, 10, 16, 20])
    pictures = {"head": (uneven, item.pictures["head"][1])}
    with pytest.raises(UsageError, match="do not come at a steady rate"):
        write_dataset([replace(item, pictures=pictures)], tmp_path / "out")


def test_a_dataset_is_never_overwritten(tmp_path, capsys):
    with pytest.raises(UsageError, match="exists already"):
        write_dataset([made()], tmp_path)
    assert main(["export", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "none is not a folder" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_without_the_packages_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(BenchError, match=r"pip install --no-deps -r requirements/data.txt"):
        write_dataset([made()], tmp_path / "out")


@pytest.mark.parametrize(
    "change,message",
    [
        ({"codebase_version": "v2.1"}, "codebase_version must be v3.0, got 'v2.1'"),
        ({"features": {}}, r"observation.state must be of shape \[16\], got \[\]"),
    ],
)
def test_a_dataset_of_another_kind_is_refused(tmp_path, change, message):
    write_dataset([made()], tmp_path / "out")
    file = tmp_path / "out" / INFO
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(UsageError, match=message):
        list(read_demonstrations(tmp_path / "out"))


def test_a_dataset_of_others_is_read_a_row_a_period(tmp_path):
    import pyarrow.parquet as parquet

    item = made(steps=20)
    write_dataset([item], tmp_path / "out")
    file = tmp_path / "out" / INFO
    info = json.loads(file.read_text())
    data = tmp_path / "out/data/chunk-000/file-000.parquet"
    table = parquet.read_table(data)
    ours = [name for name in table.column_names if name.startswith("control.")]
    parquet.write_table(table.drop_columns(ours), data)
    info["features"] = {k: v for k, v in info["features"].items() if k not in ours}
    file.write_text(json.dumps(info))
    episodes = tmp_path / "out" / EPISODES
    known = parquet.read_table(episodes).drop_columns(["task_name", "seed", "success"])
    parquet.write_table(known, episodes)
    (found,) = read_demonstrations(tmp_path / "out")
    assert found.period_ns == 100_000_000 and found.state.shape == (5, 16)
    assert found.seed == -1 and found.success and found.task == found.instruction
    assert np.array_equal(found.state, item.state[::5].astype(np.float32))
    assert np.array_equal(found.action, item.action[:20:5].astype(np.float32))
    assert np.array_equal(found.pictures["head"][0], np.arange(5))


def test_a_broken_episode_is_named_and_a_broken_video_too(tmp_path):
    write_dataset([made(), made(seed=1_000_001)], tmp_path / "out")
    video = next((tmp_path / "out/videos").rglob("*.mp4"))
    video.write_bytes(video.read_bytes()[:200])
    (item, _) = read_demonstrations(tmp_path / "out")
    camera = video.parts[-3].removeprefix("observation.images.")
    with pytest.raises(UsageError, match="cannot be decoded"):
        item.picture(camera, 0)
    next((tmp_path / "out/data").rglob("*.parquet")).write_bytes(b"PAR1")
    told: list[str] = []
    assert list(read_demonstrations(tmp_path / "out", told.append)) == []
    assert len(told) == 2 and "episode 1 is left out: it cannot be read" in told[1]


def test_a_video_of_another_rate_or_place_is_not_taken_for_the_pictures(tmp_path):
    write_dataset([made(), made(seed=1_000_001)], tmp_path / "out")
    file = tmp_path / "out" / INFO
    info = json.loads(file.read_text())
    file.write_text(json.dumps(info | {"fps": 20}))
    (item, _) = read_demonstrations(tmp_path / "out")
    with pytest.raises(UsageError, match="has no picture at 0.05 s, as its rows have: is it of"):
        item.picture("head", 0)
    file.write_text(json.dumps(info))
    begun = "videos/observation.images.head/from_timestamp"
    changed(tmp_path / "out", lambda rows: rows[1].update({begun: 0.5 + rows[1][begun]}))
    (first, second) = read_demonstrations(tmp_path / "out")
    assert first.picture("head", 0).shape == (24, 32, 3)
    with pytest.raises(UsageError, match="ends before the episode at 1.0 s does"):
        second.picture("head", 0)


def changed(out, change):
    """The dataset with its table of episodes as `change(rows)` leaves it."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = parquet.read_table(out / EPISODES).to_pylist()
    change(rows)
    parquet.write_table(arrow.Table.from_pylist(rows), out / EPISODES)


@pytest.mark.parametrize(
    "key,value,message",
    [
        ("success", "false", "its success must be of type bool, got 'false'"),
        ("success", None, "its success must be of type bool, got None"),
        ("success", 1, "its success must be of type bool, got 1"),
        ("seed", "7", "its seed must be of type int, got '7'"),
        ("seed", 1e6, "its seed must be of type int, got 1000000.0"),
        ("task_name", 5, "its task_name must be of type str, got 5"),
        ("videos/observation.images.head/from_timestamp", None, "its pictures begin at None s"),
        ("videos/observation.images.head/from_timestamp", -5.0, "its pictures begin at -5.0 s"),
        ("episode_index", 0, "episode 0 is left out: it is in the dataset twice"),
    ],
)
def test_what_is_said_of_an_episode_must_be_of_its_kind(tmp_path, key, value, message):
    write_dataset([made(), made(seed=1_000_001)], tmp_path / "out")
    changed(tmp_path / "out", lambda rows: [row.update({key: value}) for row in rows])
    told: list[str] = []
    left = list(read_demonstrations(tmp_path / "out", told.append))
    assert len(left) == (key == "episode_index") and message in told[-1] and "\n" not in told[-1]


def test_a_seed_that_nobody_knows_is_negative(tmp_path):
    write_dataset([made(), made(seed=1_000_001)], tmp_path / "out")
    changed(tmp_path / "out", lambda rows: rows[1].update(seed=None))
    assert [item.seed for item in read_demonstrations(tmp_path / "out")] == [1_000_000, -2]


def tampered(out, change):
    """The dataset with its data table and info.json as `change(columns, info)` leaves them."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    data, file = out / "data/chunk-000/file-000.parquet", out / INFO
    table, info = parquet.read_table(data), json.loads(file.read_text())
    columns = table.to_pydict()
    change(columns, info)
    parquet.write_table(arrow.table(columns, schema=table.schema), data)
    file.write_text(json.dumps(info))


def _put(columns, name, value):
    columns[f"control.{name}"][2][1][5] = value


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda c, _: _put(c, "state", float("nan")), "state 11 holds what is not a finite"),
        (lambda c, _: _put(c, "action", float("inf")), "action 11 holds what is not a finite"),
        (lambda c, _: _put(c, "executed", None), "executed 11 holds what is not a finite"),
        (lambda c, _: c["control.steps"].__setitem__(-1, 1000), "control.steps is not 5 in all"),
        (lambda c, _: c["control.steps"].__setitem__(-1, -1), "control.steps is not 5 in all"),
        (lambda c, _: c["control.state"][0].pop(), "cannot be read"),
        (lambda c, _: [row.pop() for row in c["control.action"]], "do not hold 5 control periods"),
        (lambda c, _: c["frame_index"].reverse(), "not in the order of their frame_index"),
        (lambda _, info: info.update(data_path=None), "cannot be read"),
        (lambda _, info: info.update(fps=0), "fps must be a number above 0, got 0"),
        (lambda _, info: info.update(fps="10"), "fps must be a number above 0, got '10'"),
        (lambda _, info: info["features"]["control.state"].update(shape=[]), "cannot be read"),
    ],
)
def test_what_a_dataset_should_not_hold_is_told_and_left_out(tmp_path, change, message):
    write_dataset([made()], tmp_path / "out")
    tampered(tmp_path / "out", change)
    told: list[str] = []
    assert list(read_demonstrations(tmp_path / "out", told.append)) == []
    (line,) = told
    assert message in line and "\n" not in line


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    write_dataset([made(steps=400)], tmp_path / "whole")
    whole = sum(path.stat().st_size for path in (tmp_path / "whole").rglob("*"))
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from test_lerobot import made, write_dataset\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({whole // 8}, -1))\n"
        "try:\n"
        "    write_dataset([made(steps=400)], Path(sys.argv[1]))\n"
        "except Exception as error:\n"
        "    sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "sub/out"], capture_output=True, text=True,
        timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == f"BenchError: cannot write {tmp_path / 'sub/out'}: File too large\n"
    assert list((tmp_path / "sub").iterdir()) == []


def test_of_two_that_write_the_same_dataset_one_does(tmp_path):
    out = tmp_path / "a b"
    killed = tmp_path / f".{out.name}.{2**22 + 5}.partial"  # beyond any process' number
    killed.mkdir()

    def items():
        yield made()
        write_dataset([made(seed=1_000_001), made(seed=1_000_002)], out)
        yield made(seed=1_000_003)

    # In one process both have the same number: as two processes have, given another name.
    names = iter((1, os.getpid()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: next(names, os.getppid()))
        with pytest.raises(BenchError, match="cannot write .*a b: Directory not empty"):
            write_dataset(items(), out)
    assert [item.seed for item in read_demonstrations(out)] == [1_000_001, 1_000_002]
    assert [path.name for path in tmp_path.iterdir()] == ["a b"]
