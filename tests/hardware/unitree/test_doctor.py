"""The doctor against stand-ins of a G1 that are ill, over real DDS on loopback."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.ros.domain import robot_domain
from bench_tasks.view import compose
from hardware.looks import Looks
from hardware.unitree import joints, network
from hardware.unitree.cell import read_cell
from hardware.unitree.checkup import check
from hardware.unitree.driver import BusDriver

ROOT = Path(__file__).resolve().parents[3]
DRIVER = Path(sys.prefix) / "unitree/bin/python"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | {
    "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"
}  # fmt: skip
MARKER = np.array([0.02, -0.03, 0.05, 0.5, -0.5, 0.5, 0.5])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVER.exists(), reason="make unitree"),
]


@pytest.fixture
def robot(ros_domain, tmp_path):
    """Starts a stand-in; says where what it says is written."""
    running = []

    def start(**settings):
        out = tmp_path / f"standin{len(running)}.jsonl"
        with out.open("w") as file:
            running.append(subprocess.Popen(
                [DRIVER, ROOT / "sim/standin/g1_dds.py",
                 json.dumps({"domain": robot_domain(), **settings})],
                env=ENVIRONMENT, stdout=file,
            ))  # fmt: skip
        end = time.monotonic() + 20.0
        while not out.read_text().count("\n"):
            assert time.monotonic() < end
            time.sleep(0.05)
        return out

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def wrong(ros_domain, monkeypatch):
    """What the check-up finds that is not well: name -> what."""
    monkeypatch.setattr(network, "LISTEN_S", 2.0)

    def look(**cell):
        settings = {**read_cell("standin").bus(), "hands": "rubber", **cell}
        found = check(network.hear(str(DRIVER), settings), settings)
        return {name: said for name, ok, said, _ in found if not ok}

    return look


def test_a_healthy_robot_is_called_healthy(robot, wrong):
    robot()
    assert wrong() == {}


@pytest.mark.parametrize(
    ("settings", "cell", "name", "said"),
    [
        ({"silent": True}, {}, "robot", "rt/lowstate is announced, but none comes"),
        ({"crc_wrong": 0.05}, {}, "messages", r"\d+ with a wrong checksum"),
        ({"loss": 0.2}, {}, "messages", r"(1[6-9]|2[0-4])\.\d % lost"),
        ({"outage_s": [1.0, 0.12]}, {}, "heartbeat", "at most 1[2-9]. ms without one"),
        ({"rate_hz": 60.0}, {}, "heartbeat", r"[56]\d states a second"),
        ({"latency_s": 0.03}, {}, "latency", r"[6-9]\d ms there and back"),
        ({"mode_machine": 6}, {}, "mode_machine", "6: a G1 with 29 joints, its waist locked"),
        ({"control": "debug"}, {}, "control", "debug mode"),
        ({}, {"control": "low"}, "control", r"\(ai\) is active, and would fight"),
        ({"switcher": False}, {}, "control", "which program controls it is not known"),
        ({"hands": "dex3"}, {}, "hands", "a Dex3 hand is there: left, right"),
        ({}, {"hands": "dex3"}, "left hand", "does not come"),
        ({"flip": ["left_knee_joint"]}, {}, "joints", "left_knee_joint says -0.67 rad"),
    ],
)  # fmt: skip
def test_each_planted_fault_is_found_and_named(robot, wrong, settings, cell, name, said):
    robot(**settings)
    found = wrong(**cell)
    assert re.search(said, found.pop(name, "")), found
    related = {"left hand": {"right hand"}, "heartbeat": {"messages"}}.get(name, set())
    assert set(found) <= related, found


def test_nobody_there_another_interface_and_another_commander(robot, wrong):
    assert re.search("nobody else is on interface lo", wrong()["robot"])
    assert "cannot use interface 'nosuch0'" in wrong(
        interface="nosuch0", accept_cyclonedds="0.10.2"
    )["CycloneDDS"]  # fmt: skip
    robot()
    other = BusDriver(str(DRIVER), read_cell("standin").bus())
    try:
        other.ready(other.poll)
        assert list(wrong()) == ["commander"]
    finally:
        other.close()
    robot()
    assert "2 programs write rt/lowstate" in wrong()["robot"]


def looks(robot, arm="left", **faults):
    """What a check node writes while somebody bends the robot: its word, and a tracker's."""
    out, body = robot(bent=True, **faults), UpperBody()
    driver = BusDriver(str(DRIVER), read_cell("standin").bus())
    taken = Looks({"format_version": 1, "arm": arm}, joints.columns(arm), 12)
    end, rng = time.monotonic() + 60.0, np.random.default_rng(0)
    try:
        while taken.left:
            assert time.monotonic() < end
            driver.poll()
            time.sleep(0.05)
            state, lines = driver._newest, out.read_text().splitlines()
            if state is not None and len(lines) > 1:
                true = np.array(json.loads(lines[-2])["q"])[g1.LEGS :]
                seen = compose(body.forward(true)[0 if arm == "left" else 1], MARKER)
                off = np.roll(Rotation.from_rotvec(rng.normal(0, 0.004, 3)).as_quat(), 1)
                seen = compose(seen, [*rng.normal(0, 0.001, 3), *off])
                taken.offer({"q": state.q[g1.LEGS :], "seen": seen}, 0.0)
    finally:
        driver.close()
    return taken.to_dict()


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({}, None),
        ({"swap_arms": True}, "the joints of left and right arm are swapped"),
        ({"flip": ["waist_yaw_joint"]}, "waist_yaw_joint has the wrong sign"),
        ({"flip": ["left_elbow_joint"]}, "left_elbow_joint has the wrong sign"),
    ],
)
def test_order_and_signs_follow_from_what_a_tracker_sees(robot, tmp_path, faults, said):
    file = tmp_path / "left.json"
    file.write_text(json.dumps(looks(robot, **faults)))
    found = [what for _, ok, what, _ in joints.check([joints.read_evidence(file)]) if not ok]
    assert found == ([said] if said else [])
