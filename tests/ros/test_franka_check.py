"""The node that collects what a camera sees of an arm, as a process among other ROS nodes."""

import itertools
import time

import numpy as np
import pytest

pytestmark = pytest.mark.ros


def test_it_writes_what_it_has_seen_and_ends(nodes, client, tmp_path):
    from geometry_msgs.msg import TransformStamped
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState
    from tf2_msgs.msg import TFMessage

    from hardware.franka.calibration import read_evidence
    from hardware.franka.reports_ros import FINGERS, JOINTS

    out = tmp_path / "seen.json"
    nodes.start("franka_check", camera="head", arm="right", grip_m=0.02, count=2, out=str(out))
    says = {(arm, name): client.create_publisher(JointState, f"/{arm}/{name}",
                                                 qos_profile_sensor_data)
            for arm in ("left", "right") for name in (JOINTS, FINGERS)}  # fmt: skip
    tf = client.create_publisher(TFMessage, "/tf", 10)
    end = time.monotonic() + 90
    for tick in itertools.count():
        if nodes.running["franka_check"].poll() is not None:
            break
        assert time.monotonic() < end, nodes.logs()
        stamp = client.get_clock().now().to_msg()
        bend = 0.5 * ((tick // 80) % 2)  # at rest for 4 s in each of two poses
        for (_, name), out_of in says.items():
            message = JointState()
            message.header.stamp = stamp
            message.position = [0.01] * 2 if name == FINGERS else [bend] * 7
            out_of.publish(message)
        one = TransformStamped()
        one.header.stamp, one.header.frame_id = stamp, "head_optical_frame"
        one.child_frame_id, one.transform.rotation.w = "marker", 1.0
        one.transform.translation.z = 1.0 + bend
        tf.publish(TFMessage(transforms=[one]))
        time.sleep(0.05)
    assert nodes.wait("franka_check") == 0, nodes.logs()
    found = read_evidence(out)
    assert (found.camera, found.arm, found.grip_m) == ("head", "right", 0.02)
    assert sorted(found.q[:, 7]) == [0.0, 0.5]
    np.testing.assert_allclose(found.seen[:, 2] - found.q[:, 7], 1.0)
    np.testing.assert_allclose(found.opening, 0.02)
