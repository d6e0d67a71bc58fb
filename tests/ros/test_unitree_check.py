"""The doctor of a G1 and the node that collects looks, among ROS nodes and over DDS."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench_tasks.cli import main
from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.ros.domain import robot_domain
from bench_tasks.view import compose

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(sys.prefix) / "unitree/bin/python"
PELVIS = np.array([0.3, 0.1, 0.05, 0.9689, 0.0, 0.0, 0.2474])
MARKER = np.array([0.02, -0.03, 0.05, 0.5, -0.5, 0.5, 0.5])

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVER.exists(), reason="make unitree"),
]


def test_a_healthy_cell_is_called_healthy_and_then_each_part_that_goes_is_named(
    nodes, monkeypatch, capsys
):
    for key, value in nodes.env.items():
        monkeypatch.setenv(key, value)

    def doctor():
        main(["doctor", "--robot", "unitree", "--cell", "standin", "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return {c["name"]: c["found"] for c in checks if c["needed"] and not c["ok"]}

    nodes.start("standin_g1")
    end = time.monotonic() + 60
    while "robot" in (found := doctor()) or "pelvis" in found:
        assert time.monotonic() < end, (found, nodes.logs())
    assert found == {}
    nodes.kill()
    found = doctor()
    assert "nobody else is on interface lo" in found["robot"]
    assert "nobody publishes the tf frame object/pelvis" in found["pelvis"]
    assert "nothing has come on" in found["camera head"]


def test_looks_of_a_robot_that_somebody_bends_show_a_joint_with_the_wrong_sign(
    nodes, client, tmp_path, capsys
):
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage

    from hardware.unitree import joints

    said, out = tmp_path / "standin.jsonl", tmp_path / "left.json"
    settings = {"domain": robot_domain(), "bent": True, "flip": ["left_wrist_yaw_joint"]}
    with said.open("w") as file:
        robot = subprocess.Popen(
            [DRIVER, ROOT / "sim/standin/g1_dds.py", json.dumps(settings)], stdout=file,
            env={**nodes.env, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": ""},
        )  # fmt: skip
    nodes.start("unitree_check", arm="left", cell="standin", count=9, out=str(out))
    tf, body, end = client.create_publisher(TFMessage, "/tf", 10), UpperBody(), None
    try:
        end = time.monotonic() + 120
        while nodes.running["unitree_check"].poll() is None:
            assert time.monotonic() < end, nodes.logs()
            time.sleep(0.05)
            lines = said.read_text().splitlines()
            if len(lines) < 2:
                continue
            true = np.array(json.loads(lines[-2])["q"])[g1.LEGS :]
            hand = compose(PELVIS, compose(body.forward(true)[0], MARKER))
            stamp = client.get_clock().now().to_msg()
            sent = []
            for name, pose in (("object/pelvis", PELVIS), ("object/marker", hand)):
                one = TransformStamped()
                one.header.stamp, one.header.frame_id, one.child_frame_id = stamp, "world", name
                t, r = one.transform.translation, one.transform.rotation
                (t.x, t.y, t.z), (r.w, r.x, r.y, r.z) = pose[:3].tolist(), pose[3:].tolist()
                sent.append(one)
            tf.publish(TFMessage(transforms=sent))
    finally:
        robot.kill()
        robot.wait()
    assert nodes.wait("unitree_check") == 0, nodes.logs()
    found = [what for _, ok, what, _ in joints.check([joints.read_evidence(out)]) if not ok]
    assert found == ["left_wrist_yaw_joint has the wrong sign"]
