"""Looking at topics of a running system."""

import re
import signal

import pytest
import rclpy
import yaml
from sensor_msgs.msg import JointState

from tests.ros_shim.conftest import wait_for

pytestmark = pytest.mark.ros
RATE_HZ = 20.0


@pytest.fixture
def joints(ros_domain):
    """A node that publishes joint states, spun while the test waits."""
    import threading

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


def test_unknown_topic_names_those_there_are(ros2, joints):
    result = ros2("topic", "echo", "/nothing")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "/nothing" in result.err
    assert "/joint_states" in result.err
