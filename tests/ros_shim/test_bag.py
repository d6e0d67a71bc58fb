"""Recordings: made from live topics, described, read by others, played back."""

import signal
import threading
import time

import pytest
import rclpy
from bench_interfaces.msg import WorldState
from mcap_ros2.reader import read_ros2_messages
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from tests.ros_shim.conftest import wait_for

pytestmark = pytest.mark.ros
COUNT = 20


@pytest.fixture
def node(ros_domain):
    """A node that spins in a thread, in the test's own domain."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=ros_domain)
    made = rclpy.create_node("tester", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(made)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    yield made
    executor.shutdown()
    thread.join(5)
    made.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def bag(ros2, node):
    """A recording of three topics, one of them latched and published before the recorder came."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    text = node.create_publisher(String, "/text", latched)
    joints = node.create_publisher(JointState, "/joints", 100)
    state = node.create_publisher(WorldState, "/state", 100)
    text.publish(String(data="first"))
    process = ros2.start("bag", "record", "-o", "rec", "/text", "/joints", "/state")
    publishers = (text, joints, state)
    wait_for(lambda: all(p.get_subscription_count() for p in publishers), 30)
    for i in range(COUNT):
        joints.publish(JointState(name=["a", "b"], position=[float(i), 0.5], effort=[]))
        state.publish(WorldState(seq=i, object_pose=[1.0] * 7, contact_pair=[i]))
        time.sleep(0.005)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    result = ros2.finish(process)
    assert result.status == 0, result.err
    for publisher in publishers:
        node.destroy_publisher(publisher)
    return ros2.folder / "rec"


def test_round_trip(ros2, node, bag):
    info = ros2("bag", "info", "rec")
    assert info.status == 0
    assert f"Messages:          {2 * COUNT + 1}" in info.out
    assert f"Topic: /joints | Type: sensor_msgs/msg/JointState | Count: {COUNT}" in info.out

    # Readers that share no code with the recorder.
    decoded = {m.channel.topic: [] for m in read_ros2_messages(bag / "rec_0.mcap")}
    for message in read_ros2_messages(bag / "rec_0.mcap"):
        decoded[message.channel.topic].append(message.ros_msg)
    assert [m.data for m in decoded["/text"]] == ["first"]
    assert [m.position[0] for m in decoded["/joints"]] == list(range(COUNT))
    assert [m.seq for m in decoded["/state"]] == list(range(COUNT))
    store = get_typestore(Stores.ROS2_KILTED)
    with Reader(bag) as reader:
        for connection in reader.connections:
            definition = connection.msgdef.data
            for part in ("MSG: std_msgs/Header", "MSG: builtin_interfaces/Time"):
                assert (part in definition) == (connection.topic == "/joints") or "Time" in part
            if connection.msgtype not in store.types:
                store.register(get_types_from_msg(definition, connection.msgtype))
        seen = [
            (c.topic, store.deserialize_cdr(raw, c.msgtype)) for c, _, raw in reader.messages()
        ]
    assert [m.seq for topic, m in seen if topic == "/state"] == list(range(COUNT))

    # Playing gives the same messages in the same order.
    got = []
    subscriptions = [
        node.create_subscription(kind, topic, got.append, 1000)
        for kind, topic in ((String, "/text"), (JointState, "/joints"), (WorldState, "/state"))
    ]
    played = ros2("bag", "play", "rec", "--rate", "0.5")
    assert played.status == 0, played.err
    wait_for(lambda: len(got) == 2 * COUNT + 1)
    assert [m.seq for m in got if isinstance(m, WorldState)] == list(range(COUNT))
    assert [m.position[0] for m in got if isinstance(m, JointState)] == list(range(COUNT))
    assert len(subscriptions) == 3


def test_play_keeps_the_pace_and_the_choice_of_topics(ros2, node, bag):
    stamps = []
    node.create_subscription(WorldState, "/state", lambda m: stamps.append(time.monotonic()), 100)
    others = []
    node.create_subscription(JointState, "/joints", others.append, 100)
    with Reader(bag) as reader:
        times = [t for c, t, _ in reader.messages() if c.topic == "/state"]
    recorded = (times[-1] - times[0]) / 1e9
    assert ros2("bag", "play", "rec", "-r", "0.2", "--topics", "/state").status == 0
    wait_for(lambda: len(stamps) == COUNT)
    assert stamps[-1] - stamps[0] == pytest.approx(recorded / 0.2, rel=0.25)
    assert not others


def test_a_signal_ends_playing_quietly(ros2, node, bag):
    heard = []
    node.create_subscription(WorldState, "/state", heard.append, 100)
    process = ros2.start("bag", "play", "rec", "-r", "0.01", "--topics", "/state")
    wait_for(lambda: heard, 30)
    process.send_signal(signal.SIGTERM)
    result = ros2.finish(process)
    assert (result.status, result.out, result.err) == (143, "", "")


def test_recorder_refuses_an_existing_folder(ros2, ros_domain):
    (ros2.folder / "here").mkdir()
    result = ros2("bag", "record", "-a", "-o", "here")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "'here' already exists" in result.err


@pytest.mark.parametrize(("words", "piece"), [
    (["record"], "name the topics"),
    (["info", "gone"], "'gone' does not exist"),
    (["info", "broken.mcap"], "broken.mcap"),
    (["play", "broken.mcap"], "broken.mcap"),
])
def test_mistakes_print_one_line_and_end_with_2(ros2, ros_domain, words, piece):
    (ros2.folder / "broken.mcap").write_bytes(b"\x89MCAP0\r\n" + b"rubbish" * 10)
    result = ros2("bag", *words)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert piece in result.err


def test_play_names_the_topics_it_has(ros2, bag):
    result = ros2("bag", "play", "rec", "--topics", "/nope")
    assert result.status == 2
    assert "/nope" in result.err
    assert "/joints, /state, /text" in result.err
