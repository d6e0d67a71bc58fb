"""Topics of a running system, looked at and published on, and its services."""

import re
import signal
import threading

import pytest
import rclpy
import rclpy.executors
import yaml
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from bench_tasks.ros.node_ros import BUTTON
from tests.ros_shim.conftest import wait_for

pytestmark = pytest.mark.ros
RATE_HZ = 20.0


@pytest.fixture
def button(ros_domain):
    """What a node with a stop button's topic, heard in three ways, and a service was told."""
    context, told = rclpy.Context(), []
    rclpy.init(context=context, domain_id=ros_domain)
    node = rclpy.create_node("listener", context=context)
    for k, qos in enumerate(BUTTON):
        node.create_subscription(Bool, "/stop", lambda m, k=k: told.append((k, m.data)), qos)

    def answer(request, response):
        told.append(request.data)
        response.success, response.message = not request.data, "heard"
        return response

    node.create_service(SetBool, "/set", answer)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    yield told
    executor.shutdown()
    thread.join(5)
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def joints(ros_domain):
    """A node that publishes joint states, spun while the test waits."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=ros_domain)
    node = rclpy.create_node("source", context=context)
    publisher = node.create_publisher(JointState, "/joint_states", 10)
    message = JointState(name=["a"], position=[0.25] * 300)
    stop = threading.Event()

    def publish():
        while not stop.wait(1 / RATE_HZ):
            publisher.publish(message)

    thread = threading.Thread(target=publish)
    thread.start()
    yield publisher
    stop.set()
    thread.join(5)
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_list(ros2, joints):
    assert "/joint_states\n" in ros2("topic", "list").out
    assert "/joint_states [sensor_msgs/msg/JointState]\n" in ros2("topic", "list", "-t").out


def test_echo_prints_yaml(ros2, joints):
    result = ros2("topic", "echo", "/joint_states", "--once")
    assert result.status == 0
    text, rest = result.out.split("---\n", 1)
    assert rest == ""
    message = yaml.safe_load(text)
    assert message["name"] == ["a"]
    assert message["position"] == [0.25] * 128 + ["..."]
    result = ros2("topic", "echo", "-f", "--once", "/joint_states")
    full = yaml.safe_load(result.out.split("---")[0])
    assert full["position"] == [0.25] * 300


def test_hz(ros2, joints):
    process = ros2.start("topic", "hz", "/joint_states")
    lines = []
    wait_for(lambda: lines.append(process.stdout.readline()) or "average rate" in lines[-1], 15)
    rate = float(re.search(r"average rate: ([\d.]+)", lines[-1]).group(1))
    assert rate == pytest.approx(RATE_HZ, rel=0.25)
    process.send_signal(signal.SIGINT)
    assert ros2.finish(process).status in (0, 130)


def test_a_signal_ends_quietly_what_runs_until_then(ros2, joints):
    begun = {
        "---": ("echo", "/joint_states"), "average rate": ("hz", "/joint_states"),
        "publishing #2": ("pub", "/other", "std_msgs/msg/Bool", "{data: true}", "-r", "50"),
    }  # fmt: skip
    processes = {sign: ros2.start("topic", *words) for sign, words in begun.items()}
    for sign, process in processes.items():
        wait_for(lambda p=process, s=sign: s in p.stdout.readline(), 30)
        process.send_signal(signal.SIGTERM)
        result = ros2.finish(process)
        assert (result.status, result.err) == (143, "")


def test_unknown_topic_names_those_there_are(ros2, joints):
    result = ros2("topic", "echo", "/nothing")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "/nothing" in result.err
    assert "/joint_states" in result.err


def test_what_is_published_once_everybody_hears(ros2, button):
    result = ros2("topic", "pub", "--once", "/stop", "std_msgs/msg/Bool", "{data: true}")
    assert result.status == 0, result.err
    assert sorted(button) == [(k, True) for k in range(len(BUTTON))]
    process = ros2.start("topic", "pub", "-r", "20", "/stop", "std_msgs/msg/Bool", "{data: false}")
    wait_for(lambda: (0, False) in button)
    process.send_signal(signal.SIGINT)
    result = ros2.finish(process)
    assert result.status in (0, 130) and result.err == ""


@pytest.mark.parametrize("values, why", [
    ("{data: 1}", "field 'data' is boolean, got 1"),
    ("{dat: true}", "there is no field 'dat'; choose from data"),
    ("true", "values must be YAML like '{data: true}', got 'true'"),
])  # fmt: skip
def test_values_that_a_type_has_not_are_refused(values, why):
    from launch.errors import LaunchError

    from small_ros2.messages import fill, values_of

    with pytest.raises(LaunchError, match=re.escape(why)):
        fill(Bool(), values_of(values))
    header = fill(JointState(), values_of("{header: {frame_id: a}, position: [1.0]}"))
    assert (header.header.frame_id, list(header.position)) == ("a", [1.0])


def test_a_service_is_called(ros2, button):
    result = ros2("service", "call", "/set", "std_srvs/srv/SetBool", "{data: true}")
    assert (result.status, button) == (0, [True]), result.err
    assert "SetBool_Response(success=False, message='heard')" in result.out
    for words, why in (
        (("/get", "std_srvs/srv/SetBool"), "service '/get' not seen; there are: /set"),
        (("/set", "std_srvs/srv/Trigger"), "'/set' is std_srvs/srv/SetBool, not std_srvs"),
    ):
        result = ros2("service", "call", *words)
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert why in result.err
