"""The world node by itself: chunks, services, cameras, and control of the simulation."""

from __future__ import annotations

import queue
import time

import numpy as np
import pytest

from bench_tasks.object_sets import read_set
from bench_tasks.vocabulary import Scene

pytestmark = pytest.mark.ros

DEADLINE_S = 30.0


def test_a_chunk_for_the_present_state_is_executed_and_no_other(world):
    world.send(0, world.hold(3))
    assert [world.state().seq for _ in range(3)] == [1, 2, 3]
    moved = world.hold(2)
    moved[:, 0] += 0.5
    for stale in (0, 2, 4):
        world.send(stale, moved)
        event = world.event()
        assert event.kind == "stale_chunk" and event.seq == 3
        assert event.data["answers"] == stale
    assert event.data["refused"] == 3
    world.send(3, world.hold(1))
    state = world.state()
    assert state.seq == 4, "no state in between: the stale chunks were not executed"
    assert np.array_equal(state.command, world.start.command)


def test_a_malformed_chunk_is_refused(world):
    world.send(0, np.full((1, 16), np.nan))
    event = world.event()
    assert event.kind == "bad_chunk" and "finite" in event.data["reason"]
    world.send(0, world.hold(1))
    assert world.state().seq == 1


def test_objects_are_moved_and_pictures_taken(world):
    from bench_interfaces.srv import Capture, MoveObjects

    from bench_tasks.errors import UsageError

    move = world.caller(MoveObjects, "/world/move_objects")
    pose = world.start.object_pose[0].copy()
    pose[0] += 0.05
    move.call(MoveObjects.Request(names=["pot"], poses=pose.tolist()))
    world.send(0, world.hold(1))
    assert world.state().object_pose[0][0] == pytest.approx(pose[0], abs=2e-3)
    with pytest.raises(UsageError, match="unknown object 'kettle'"):
        move.call(MoveObjects.Request(names=["kettle"], poses=pose.tolist()))
    with pytest.raises(UsageError, match="1 names but 3 numbers"):
        move.call(MoveObjects.Request(names=["pot"], poses=[0.0, 0.0, 0.0]))
    capture = world.caller(Capture, "/world/capture")
    images = capture.call(Capture.Request(cameras=["head", "left_wrist"])).images
    assert [i.header.frame_id for i in images] == ["head_optical_frame", "left_wrist_optical_frame"]
    with pytest.raises(UsageError, match="unknown camera 'nose'"):
        capture.call(Capture.Request(cameras=["nose"]))


def test_what_is_shown_is_published_and_is_of_the_present_state(world, client):
    """Also where the world has looked ahead, after a chunk, and something has been moved since.

    Asked at once after a state, it is still taking the pictures.
    """
    from bench_interfaces.srv import Capture, MoveObjects
    from sensor_msgs.msg import CompressedImage

    from bench_tasks.images import decode_frame, image_topic
    from bench_tasks.ros.node_ros import PERIODIC

    cameras = ["head", "left_wrist", "third"]
    heard: dict[str, queue.Queue] = {camera: queue.Queue() for camera in cameras}
    for camera, found in heard.items():
        client.create_subscription(
            CompressedImage, image_topic(camera), found.put, PERIODIC, raw=True
        )
    show = world.caller(Capture, "/world/show")
    capture, move = (world.caller(kind, name) for kind, name in (
        (Capture, "/world/capture"), (MoveObjects, "/world/move_objects")))  # fmt: skip
    request = Capture.Request(cameras=cameras)
    pictures = []
    for seq in range(3):
        headers = show.call(request).images
        shown = [decode_frame(heard[camera].get(timeout=DEADLINE_S)) for camera in cameras]
        for camera, header, frame in zip(cameras, headers, shown, strict=True):
            assert not header.data and header.header.frame_id == f"{camera}_optical_frame"
            stamp = header.header.stamp
            assert frame.seq == seq and stamp.sec * 10**9 + stamp.nanosec == frame.stamp_ns
        same = capture.call(request).images
        assert [bytes(image.data) for image in same] == [frame.data for frame in shown]
        for found in heard.values():
            found.get(timeout=DEADLINE_S)
            assert found.empty(), "each picture is published once"
        pictures.append(shown[0].data)
        world.send(seq, world.hold(1))
        world.state()
        if seq == 1:
            pose = world.start.object_pose[0].copy()
            pose[1] += 0.1
            move.call(MoveObjects.Request(names=["pot"], poses=pose.tolist()))
    assert pictures[2] != pictures[1]


def test_a_task_that_does_not_exist_is_an_answer_not_a_crash(world):
    from bench_interfaces.srv import LoadEpisode

    from bench_tasks.errors import UsageError

    load = world.caller(LoadEpisode, "/world/load_episode")
    with pytest.raises(UsageError, match="unknown task 'juggle'"):
        load.call(LoadEpisode.Request(task="juggle", seed=0))
    world.send(0, world.hold(1))
    assert world.state().seq == 1, "the episode before it goes on"


def test_a_set_of_evolved_objects_is_used(make_world):
    from bench_interfaces.srv import LoadEpisode

    world = make_world(objects="heldout_v1")
    load = world.caller(LoadEpisode, "/world/load_episode")
    answer = load.call(LoadEpisode.Request(task="stack_blocks_two", seed=0))
    scene = Scene.from_json(answer.scene)
    names = [item.name for item in read_set("heldout_v1").of_kind("block")]
    assert scene.evolved["block"] in names


def test_streaming_cameras_publish_at_their_rate(make_world, client):
    from sensor_msgs.msg import CameraInfo, CompressedImage, Image

    from bench_tasks.images import decode_frame
    from bench_tasks.ros.node_ros import PERIODIC

    pictures: dict[str, list] = {"head": [], "left_wrist": []}
    raw: queue.Queue = queue.Queue()
    for name, found in pictures.items():
        client.create_subscription(
            CompressedImage, f"/{name}/image_raw/compressed",
            lambda data, found=found: found.append(decode_frame(data)), PERIODIC, raw=True,
        )
    client.create_subscription(Image, "/head/image_raw", raw.put, PERIODIC)
    infos: queue.Queue = queue.Queue()
    client.create_subscription(CameraInfo, "/head/camera_info", infos.put, PERIODIC)
    world = make_world(streams="head,left_wrist@25", image_size="224x200")
    world.send(0, world.hold(20))
    assert [world.state().seq for _ in range(20)][-1] == 20
    end = time.monotonic() + DEADLINE_S
    while pictures["left_wrist"][-1:] == [] or pictures["left_wrist"][-1].seq < 20:
        assert time.monotonic() < end, pictures
        time.sleep(0.02)
    assert [p.seq for p in pictures["head"]] == [0, 5, 10, 15, 20]
    assert [p.seq for p in pictures["left_wrist"]] == list(range(0, 21, 2))
    image = raw.get(timeout=DEADLINE_S)
    assert (image.width, image.height, image.encoding) == (224, 200, "rgb8")
    assert len(image.data) == 224 * 200 * 3
    assert {(p.width, p.height) for p in pictures["head"]} == {(224, 200)}
    info = infos.get(timeout=DEADLINE_S)
    assert (info.width, info.height, info.k[2], info.k[5]) == (224, 200, 111.5, 99.5)


def test_realtime_runs_by_itself_and_drops_stale_chunks(make_world):
    world = make_world(clock="realtime")
    assert [world.state().seq for _ in range(5)] == [1, 2, 3, 4, 5], "nobody sent an action"
    moved = world.hold(5)
    moved[:, 0] += 0.5
    world.send(0, moved)
    event = world.event()
    assert event.kind == "stale_chunk" and event.data["answers"] == 0
    ramp = world.hold(500)
    ramp[:, 0] += np.linspace(0.0, 0.2, 500)
    latest = world.state()
    while not world.states.empty():
        latest = world.state()
    world.send(latest.seq, ramp)
    for _ in range(500):
        state = world.state()
        if state.command[0] != world.start.command[0]:
            break
    # The action is the one of its time: the chunk starts at the state that it answers.
    assert state.command[0] == pytest.approx(ramp[state.seq - 1 - latest.seq, 0], abs=1e-12)


def test_a_picture_that_cannot_be_taken_ahead_is_not_held_against_the_chunk():
    """The chunk was executed; who asks for the picture is told what is wrong with it."""
    from types import SimpleNamespace

    from bench_tasks.errors import BenchError
    from bench_tasks.vocabulary import ActionChunk
    from sim.world_node import WorldNode

    class Blind:
        def capture(self, cameras, depth):
            raise BenchError("no renderer")

    executed, refused = [], []
    cell = SimpleNamespace(
        state=SimpleNamespace(seq=0), paused=False, world=Blind(), advance=executed.append,
        refuse=lambda *why, **more: refused.append(why), _shown=(("head",), False), _ready=None,
        shows=None,
    )  # fmt: skip
    cell._foresee = lambda: WorldNode._foresee(cell)
    WorldNode.answer_chunk(cell, ActionChunk(0, np.zeros((1, 16))))
    assert len(executed) == 1 and refused == []
    assert cell._ready is None and cell._shown is None, "it is asked for as if nothing were there"
