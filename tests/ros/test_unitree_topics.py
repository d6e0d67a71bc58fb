"""A G1's topics by ROS 2: bytes go out and come in as they are, whoever has the types."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest

pytest.importorskip("rclpy")

from tests.ros.conftest import DEADLINE_S  # noqa: E402

pytestmark = pytest.mark.ros
ARM_SDK, STATE = "rt/arm_sdk", "rt/lowstate"


@pytest.fixture
def topics(ros_domain, monkeypatch):
    """Makes ends of the topics; another message stands for the robot's, which are not here."""
    from std_msgs.msg import String

    from hardware.unitree.topics_ros import RosTopics

    known = ModuleType("unitree_hg.msg")
    known.LowCmd = known.LowState = String
    monkeypatch.setitem(sys.modules, "unitree_hg", ModuleType("unitree_hg"))
    monkeypatch.setitem(sys.modules, "unitree_hg.msg", known)
    made = []

    def make(out, into):
        made.append(RosTopics(ros_domain, out, into))
        return made[-1]

    yield make
    for end in made:
        end.close()


def message(text: str) -> bytes:
    from rclpy.serialization import serialize_message
    from std_msgs.msg import String

    return bytes(serialize_message(String(data=text)))


def test_bus_and_robot_hear_each_other_in_order(topics):
    bus, robot = topics((ARM_SDK,), (STATE,)), topics((STATE,), (ARM_SDK,))
    for here, there, topic in ((bus, robot, ARM_SDK), (robot, bus, STATE)):
        heard, sent, end = [], 0, time.monotonic() + DEADLINE_S
        while len(heard) < 20:  # what is sent before the other side is known is lost
            assert time.monotonic() < end
            here.write(topic, message(f"{sent:04d}"))
            sent += 1
            time.sleep(0.01)
            heard += there.take(topic)
        numbers = [int(data[8:12]) for data in heard]
        assert numbers == sorted(numbers) and heard[-1] == message(f"{numbers[-1]:04d}")
        assert here.take(ARM_SDK if here is robot else STATE) == []
