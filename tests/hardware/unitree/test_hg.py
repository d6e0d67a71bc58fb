"""Unitree's messages: checksum and bytes, by themselves and against the vendor's library."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench_tasks.robots import unitree_hg as hg

DRIVER = Path(sys.prefix) / "unitree/bin/python"


def test_the_checksum_is_the_vendors():
    message = np.zeros((), hg.LOW_CMD)
    message["mode_pr"], message["mode_machine"] = 1, 5
    for k in range(hg.MOTORS):
        message["motor"][k]["mode"], message["motor"][k]["kd"] = k, k
        message["motor"][k]["q"] = k * 0.1
    # What unitree_sdk2py.utils.crc gives for it.
    assert int(hg.signed(message)["crc"]) == 427892028
    assert hg.is_signed(message)
    message["motor"][3]["q"] += 1e-3
    assert not hg.is_signed(message)


@pytest.mark.parametrize("kind", [hg.LOW_CMD, hg.LOW_STATE, hg.HAND_CMD, hg.HAND_STATE])
def test_what_is_sent_is_what_is_read(kind):
    message = np.zeros((), kind)
    message["motor"]["q"] = np.arange(len(message["motor"])) / 7
    message["motor"]["mode"] = 1
    message["motor"][0]["mode"] = 200
    if "count" in kind.names:
        message["count"] = 7
    data = hg.encode(message)
    found = hg.decode(data, kind)
    np.testing.assert_array_equal(found["motor"], message["motor"])
    with pytest.raises(ValueError, match="bytes"):
        hg.decode(data[:200], kind)
    with pytest.raises(ValueError, match="encoded as 0000"):
        hg.decode(b"\0\0" + data[2:], kind)


def test_a_command_touches_only_its_joints():
    ones = np.ones(17)
    message = hg.motor_commands(slice(12, 29), ones, 0 * ones, 2 * ones, 80 * ones, 3 * ones, 5)
    motors = message["motor"]
    assert motors["mode"].tolist() == [0] * 12 + [1] * 17 + [0] * 6
    assert motors["q"][12:29].tolist() == [1.0] * 17 and not motors["kp"][:12].any()
    assert int(message["mode_machine"]) == 5 and int(message["mode_pr"]) == 0


def test_a_hands_mode_names_its_motor():
    fingers = hg.hand_cmd(np.zeros(7), 1.5, 0.2)["motor"]
    assert fingers["mode"].tolist() == [0x10 + k for k in range(7)]
    assert hg.hand_cmd(np.zeros(7), 0.0, 0.2)["motor"]["mode"].tolist() == [
        0x90 + k for k in range(7)
    ]


@pytest.mark.ros
def test_the_same_topics_in_ros_2():
    from hardware.unitree.topics_ros import ros_names

    assert {ros_names(topic) for topic in hg.TOPICS} == {
        ("/lowcmd", "LowCmd"), ("/arm_sdk", "LowCmd"), ("/lowstate", "LowState"),
        ("/dex3/left/cmd", "HandCmd"), ("/dex3/right/cmd", "HandCmd"),
        ("/dex3/left/state", "HandState"), ("/dex3/right/state", "HandState"),
    }  # fmt: skip


@pytest.mark.ros
def test_without_the_robots_messages_ros_2_says_what_to_source():
    from bench_tasks.errors import UsageError
    from hardware.unitree.topics_ros import RosTopics

    if importlib.util.find_spec("unitree_hg"):
        pytest.skip("this ROS 2 knows unitree_hg")
    with pytest.raises(UsageError, match="source unitree_ros2's install/setup.bash"):
        RosTopics(0, (hg.ARM_SDK,), ("rt/lowstate",))


@pytest.mark.slow
@pytest.mark.skipif(not DRIVER.exists(), reason="make unitree")
def test_the_vendors_own_library_reads_and_writes_the_same():
    script = Path(__file__).with_name("vendor_check.py")
    done = subprocess.run([DRIVER, script], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == {"wrong": [], "kinds": 4}, done.stderr
