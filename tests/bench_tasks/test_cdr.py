"""The codec against itself, against the readers users have, and against rclpy's own."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import made
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap_ros2._dynamic import generate_dynamic
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from bench_tasks import images
from bench_tasks.bags import cdr, interfaces
from bench_tasks.vocabulary import ActionChunk, CameraFrame, Depth, Event, Verdict

MSG_DIR = Path(__file__).parents[2] / "ros_ws" / "src" / "bench_interfaces" / "msg"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000308020000003682"
    "8e480000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def typestore():
    store = get_typestore(Stores.ROS2_KILTED)
    for name, text in interfaces.DEFINITIONS.items():
        if name.startswith("bench_interfaces"):
            store.register(get_types_from_msg(text, name))
    return store


MESSAGES = {
    "bench_interfaces/msg/WorldState": cdr.encode_state(made.state(3, 8, 20)),
    "bench_interfaces/msg/ActionChunk": cdr.encode_chunk(
        ActionChunk(3, np.arange(32.0).reshape(2, 16)), 60_000_000, 20_000_000
    ),
    "bench_interfaces/msg/EpisodeEvent": cdr.encode_event(Event("show", 3, 6, {"name": "é"})),
    "bench_interfaces/msg/Scene": cdr.encode_scene(made.scene()),
    "bench_interfaces/msg/Verdict": cdr.encode_verdict(
        Verdict("t", 1, True, 1.0, "", {"a": True}, 3, 0.06)
    ),
    "bench_interfaces/msg/CalibratedDepth": images.encode_depth(
        "head", 5, Depth(PNG, tuple(map(float, range(9))), (0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0))
    ),
    "rosgraph_msgs/msg/Clock": cdr.encode_clock(1_000_000_001),
    "sensor_msgs/msg/JointState": cdr.encode_joint_state(made.state(1), made.JOINTS),
    "sensor_msgs/msg/CompressedImage": images.encode_frame(
        CameraFrame("head", 3, 60_000_000, 2, 3, "png", PNG)
    ),
    "sensor_msgs/msg/CameraInfo": images.encode_camera_info("head", 5, 4, 3, tuple(range(9))),
    "sensor_msgs/msg/Image": images.encode_image("head", 5, 1, 2, "rgb8", 6, b"abcdef"),
}


def test_definitions_equal_the_interface_package():
    for path in MSG_DIR.glob("*.msg"):
        name = f"bench_interfaces/msg/{path.stem}"
        assert interfaces.fields(name) == interfaces.parse(path.read_text()), name


@pytest.mark.parametrize("name", [n for n in interfaces.DEFINITIONS if "bench" not in n])
def test_standard_definitions_equal_the_distribution(name):
    store = get_typestore(Stores.ROS2_KILTED)
    text, _ = store.generate_msgdef(name, ros_version=2)
    assert interfaces.fields(name) == interfaces.parse(text.split("=" * 80)[0])


@pytest.mark.parametrize("objects,contacts", [(8, 20), (1, 1), (3, 0), (0, 0), (0, 3), (2, 7)])
def test_every_reader_sees_the_state(objects, contacts):
    state = made.state(5, objects, contacts)
    data = cdr.encode_state(state)
    assert made.equal(cdr.decode_state(data), state)
    name = "bench_interfaces/msg/WorldState"
    theirs = [
        typestore().deserialize_cdr(data, name),
        generate_dynamic(name, interfaces.schema_text(name))[name](data),
    ]
    for message in theirs:
        assert message.seq == 5 and message.stamp.nanosec == 100_000_000
        for field in ("joint_effort", "command", "object_pose", "contact_pair", "contact_force"):
            mine = getattr(state, field).ravel().tolist()
            assert list(getattr(message, field)) == mine, field
    assert cdr.encode(name, cdr.decode(name, data)) == data, "both codecs agree"


@pytest.mark.parametrize("name", MESSAGES)
def test_other_readers_accept_and_return_the_same(name):
    data = MESSAGES[name]
    store = typestore()
    assert bytes(store.serialize_cdr(store.deserialize_cdr(data, name), name)) == data
    message = generate_dynamic(name, interfaces.schema_text(name))[name](data)
    for field, kind, size in interfaces.fields(name):
        value = cdr.decode(name, data)[field]
        if size is None and "/" not in kind:
            assert getattr(message, field) == value
        elif size is not None:
            assert list(getattr(message, field)) == list(value)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_garbage_tail_is_cut(name):
    assert cdr.canonical(name, MESSAGES[name] + b"astrtps_") == MESSAGES[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_every_cut_is_refused_with_an_error(name):
    data = MESSAGES[name]
    for size in [*range(min(len(data), 300)), len(data) - 1]:
        with pytest.raises(ValueError):
            cdr.canonical(name, data[:size])


def test_garbage_in_padding_does_not_change_the_content():
    data = cdr.encode_state(made.state(5, 1, 1))
    assert data[-16:-8] == cdr._COUNT.pack(1) + bytes(4), "four bytes of padding before the force"
    dirty = data[:-12] + b"rtps" + data[-8:]
    assert made.equal(cdr.decode_state(dirty), made.state(5, 1, 1))
    assert cdr.canonical("bench_interfaces/msg/WorldState", dirty) == data


def test_the_rest_of_the_vocabulary_comes_back():
    scene = made.scene(target=[1, 2])
    assert cdr.decode_scene(cdr.encode_scene(scene)) == scene
    chunk = ActionChunk(9, np.arange(48.0).reshape(3, 16))
    assert made.equal(cdr.decode_chunk(cdr.encode_chunk(chunk, 1, 2)), chunk)
    event = Event("plan", 4, 80_000_000, {"steps": [[1]], "é": None})
    assert cdr.decode_event(cdr.encode_event(event)) == event
    verdict = Verdict("t", 2**63, False, 0.25, "lost", {"a": True}, 9, 0.18, {"x": [1]})
    assert cdr.decode_verdict(cdr.encode_verdict(verdict)) == verdict
    frame = CameraFrame("left_wrist", 3, 60_000_000, 2, 3, "png", PNG)
    assert images.decode_frame(images.encode_frame(frame)) == frame


def test_numpy_values_in_events_are_recorded_as_plain_numbers():
    event = Event("x", 0, 0, {"a": np.ones(2), "b": np.int64(3)})
    assert cdr.decode_event(cdr.encode_event(event)).data == {"a": [1.0, 1.0], "b": 3}


def test_wrong_content_is_refused():
    bad = dataclasses.replace(made.state(1), command=np.zeros(15))
    with pytest.raises(ValueError, match="command has 15"):
        cdr.encode_state(bad)
    with pytest.raises(ValueError, match="2 contact forces"):
        cdr.encode_state(dataclasses.replace(made.state(1), contact_force=np.zeros(2)))
    with pytest.raises(ValueError, match=r"\(2, 15\)"):
        cdr.encode_chunk(ActionChunk(1, np.zeros((2, 15))), 0, 1)


def test_the_hash_depends_on_every_bit():
    def of(*states):
        digest = cdr.StateHash()
        for state in states:
            digest.add(state)
        return digest.hexdigest()

    one, two = made.state(1), made.state(2)
    assert of(one, two) == of(made.state(1), made.state(2))
    assert len({of(one, two), of(two, one), of(one), of()}) == 4
    nudged = dataclasses.replace(one, command=np.nextafter(one.command, 1))
    assert of(one) != of(nudged)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_never_crash(junk):
    for name in interfaces.DEFINITIONS:
        try:
            cdr.canonical(name, cdr.HEADER + junk)
        except ValueError:
            continue


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 * 10**9 - 1), st.text(), st.text())
def test_any_event_comes_back(seq, stamp, kind, text):
    kind = kind.replace("\0", "").encode("utf-8", "ignore").decode()
    event = Event(kind, seq, stamp, {"text": text})
    assert cdr.decode_event(cdr.encode_event(event)) == event


RCLPY = """
import sys
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, JointState
sys.path[:0] = sys.argv[1:]
from bench_tasks.bags import cdr
import test_cdr
for kind in (Clock, CameraInfo, CompressedImage, Image, JointState):
    name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    mine = test_cdr.MESSAGES[name]
    message = deserialize_message(mine, kind)
    theirs = serialize_message(message)
    assert cdr.canonical(name, theirs) == mine, name
    empty = serialize_message(kind())
    assert deserialize_message(cdr.canonical(name, empty), kind) == kind(), name
    test_cdr.typestore().deserialize_cdr(cdr.canonical(name, empty), name)
print("agreed")
"""


@pytest.mark.ros
def test_rclpy_reads_and_writes_the_same():
    pytest.importorskip("rclpy")
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", RCLPY, str(here), str(here.parents[1])],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("agreed"), done.stderr
