"""franka_ros2's way to two arms: the drivers against controllers that enforce what real ones do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("trajectory_msgs")
pytest.importorskip("franka_msgs", reason="comes with make, or with franka_ros2")

from bench_tasks.errors import BenchError  # noqa: E402
from bench_tasks.vocabulary import ARMS  # noqa: E402
from hardware.franka.cell import read_cell  # noqa: E402
from hardware.franka.drivers import Drivers  # noqa: E402
from hardware.link import Command  # noqa: E402

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[2]
PERIOD_S = 0.02
SHAPE = np.array([1, 0.5, -1, 0.5, 1, -0.5, 1]) / 2
CONTROLLERS = """
import time
import rclpy
from sim.standin.ros2_control_ros import Controllers, as_a_manager
as_a_manager()
rclpy.init()
made = Controllers()
print("ready", flush=True)
while True:
    time.sleep(0.002)
    for hand, stop in zip(made.hands, (0.03, 0.0)):  # 3 cm wide is what is in the left hand's way
        hand.width = max(hand.asked, stop)
"""


class Lab:
    """The controllers' process, and what they said."""

    def __init__(self, folder):
        self.errors = folder / "controllers.txt"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CONTROLLERS], stdout=subprocess.PIPE, stderr=errors,
                text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths()},
            )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n", self.errors.read_text()

    @property
    def said(self):
        """Of reflexes and of trajectories that are not taken."""
        return self.errors.read_text()


def paths():
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def lab(tmp_path, ros_domain):
    made = Lab(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


@pytest.fixture
def misbehave(lab):
    """Have the controllers misbehave from now on."""
    import rclpy
    from std_msgs.msg import String

    from sim.standin.ros2_control_ros import MISBEHAVE

    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("wrong", context=context)
    out = node.create_publisher(String, MISBEHAVE, 10)

    def tell(what):
        end = time.monotonic() + 10
        while not out.get_subscription_count():
            assert time.monotonic() < end
            time.sleep(0.02)
        out.publish(String(data=what))

    yield tell
    rclpy.shutdown(context=context)


@pytest.fixture
def drivers(lab):
    made = Drivers(read_cell("standin_ros2"))
    made.ready(made.poll)
    yield made
    made.close()


def wish(t, start):
    """Joint positions (7,) at time t of a smooth motion that begins at rest."""
    return start + 0.35 * (1 - np.cos(0.5 * np.pi * t)) * SHAPE


def move(drivers, seconds, until=lambda events: False):
    """Both arms along `wish` at 50 Hz; returns measured - wished and events."""
    drivers.poll()
    start = {arm: drivers.arm(arm).q_sent for arm in ARMS}
    lead_s = read_cell("standin_ros2").raw["arms"]["lead_s"]
    base, errors, events = time.monotonic(), [], []
    for k in range(int(seconds / PERIOD_S)):
        time.sleep(max(0.0, base + k * PERIOD_S - time.monotonic()))
        events += drivers.poll()
        if until(events):
            break
        for arm in ARMS:
            try:
                state = drivers.arm(arm)
                at_s = state.time_ns / 1e9 - base - lead_s
                errors.append(state.q - wish(max(0.0, at_s), start[arm]))
            except BenchError:
                pass  # as told
            a, b, c = (wish((k + i) * PERIOD_S, start[arm]) for i in (0, 1, 2))
            drivers.send(
                arm, Command(k, b.tolist(), ((c - a) / 2 / PERIOD_S).tolist(),
                             ((c - 2 * b + a) / PERIOD_S**2).tolist(),
                             int((base + (k + 1) * PERIOD_S) * 1e9)),
            )  # fmt: skip
    return np.array(errors[20:]), events


def at_rest(drivers, arm):
    """Whether the arm stays where it is for a while."""
    drivers.poll()
    before = drivers.arm(arm).q
    time.sleep(0.2)
    drivers.poll()
    return np.abs(drivers.arm(arm).q - before).max() < 1e-5


def wait(drivers, true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        drivers.poll()
        time.sleep(0.01)


@pytest.mark.slow
def test_arms_follow_hands_grasp_and_what_controllers_do_not_take_is_found_out(
    lab, drivers, misbehave
):
    errors, events = move(drivers, 4.0)
    assert (events, lab.said) == ([], "")
    assert np.sqrt(np.mean(errors**2)) < 0.01
    time.sleep(0.5)
    drivers.poll()
    for arm in ARMS:
        assert drivers.mode(arm) == "following" and drivers.arm(arm).waiting
        assert at_rest(drivers, arm)
    # Hands: 3 cm wide something in the left one, nothing in the right one.
    for arm in ARMS:
        drivers.open_to(arm, 0.0)
    assert drivers.busy("left")
    wait(drivers, lambda: not any(drivers.busy(arm) for arm in ARMS))
    assert drivers.width("left") == pytest.approx(0.03) and drivers.grasped("left")
    assert drivers.width("right") == 0.0
    drivers.open_to("left", 0.08)
    wait(drivers, lambda: not drivers.busy("left") and drivers.width("left") == 0.08)
    assert not drivers.grasped("left")
    misbehave("refuse left")
    time.sleep(0.3)
    drivers.open_to("left", 0.05)
    end, told = time.monotonic() + 5, []
    while not told and time.monotonic() < end:
        told += drivers.poll()
        time.sleep(0.02)
    assert [kind for kind, _ in told] == ["hand_fault"] and "move was rejected" in told[0][1]
    # The left controller takes no more trajectories: nobody says so, the joints do.
    misbehave("reject left")
    _, events = move(drivers, 3.0, until=bool)
    assert events[0][0] == "robot_fault" and "does not take trajectories" in events[0][1]
    drivers.hold()
    time.sleep(0.8)
    assert drivers.mode("left") == "fault" and at_rest(drivers, "right")
    misbehave("")
    drivers.ready(drivers.poll)
    for what, said in (("mute right", "nothing has come on /right/franka/joint_states for 0.1 s"),
                       ("late right", "s old when they come")):  # fmt: skip
        misbehave(what)
        _, events = move(drivers, 3.0, until=bool)
        assert events[0][0] == "robot_fault" and "nothing has come" in events[0][1], events
        wait(drivers, lambda said=said: said in drivers.faults().get("right arm", ""))
        misbehave("")
        time.sleep(0.5)  # what is late still comes
        drivers.ready(drivers.poll)
        assert at_rest(drivers, "right")
    # Nobody is let in beside another who commands the arm.
    second = Drivers(read_cell("standin_ros2"))
    try:
        told = []
        while not any("publishes" in reason for _, reason in told):
            for arm in ARMS:
                if second.mode(arm) == "idle":
                    second.tell(arm, "start")
            time.sleep(0.02)
            told += second.poll()
            assert len(told) < 99
    finally:
        second.close()
    assert "right: " not in lab.said, "no reflex, and all trajectories were taken"


def test_the_check_up_names_what_is_not_there_and_calls_a_healthy_laboratory_so(lab, monkeypatch):
    from hardware.franka import reach

    cell = read_cell("standin_ros2")
    found = reach.check_reach(cell)
    assert [name for name, *_ in found] == ["left arm", "left hand", "right arm", "right hand"]
    assert all(ok for _, ok, *_ in found), found
    monkeypatch.setattr(reach, "HEARD_S", 6.0)
    names = cell.raw["names"]
    names["left"] |= {"controller": "no_such_controller"}
    names["right"] |= {"hand": "no_such_hand"}
    wrong = {name: what for name, ok, what, _ in reach.check_reach(cell) if not ok}
    assert set(wrong) == {"left arm", "right hand"}, wrong
    assert "no controller listens on /left/no_such_controller" in wrong["left arm"]
    assert "/right/no_such_hand" in wrong["right hand"]


OTHER_SIDE = """
from hardware.franka.cell import read_cell
from hardware.franka.drivers import Drivers
from tests.ros.test_franka_ros2 import move
drivers = Drivers(read_cell("standin_ros2"))
drivers.ready(drivers.poll)
print(*(d.process.pid for d in drivers._all.values()), flush=True)
move(drivers, 30.0)
"""


@pytest.mark.parametrize("also", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_arms_come_to_rest_when_their_commander_is_killed_and_their_processes_too(lab, also):
    from hardware.franka.topics_ros import Topics

    child = subprocess.Popen(
        [sys.executable, "-c", OTHER_SIDE], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths()},
    )  # fmt: skip
    from sensor_msgs.msg import JointState

    topic = "/left/franka/joint_states"
    topics = Topics("looker")
    topics.hear(JointState, topic)
    topics.start()

    def speed():
        return np.abs(topics.newest(topic)[0].velocity).max()

    try:
        pids = [int(pid) for pid in child.stdout.readline().split()]
        end = time.monotonic() + 20
        while topics.newest(topic) is None or speed() < 0.2:
            assert time.monotonic() < end
            time.sleep(0.005)
        child.kill()
        for pid in pids if also else []:
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        child.wait(5)
        while speed() > 1e-3:
            assert time.monotonic() - killed < 1.0
            time.sleep(0.005)

        assert lab.said == ""
    finally:
        child.kill()
        topics.close()
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end, "drivers' processes end with their commander"
        time.sleep(0.05)
    again = Drivers(read_cell("standin_ros2"))
    try:
        again.ready(again.poll)  # whom DDS still believes to be there does not keep others away
        assert all(at_rest(again, arm) for arm in ARMS)
    finally:
        again.close()


# -- all nodes -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pot_is_lifted_to_a_verdict(nodes, tmp_path):
    from bench_tasks.verdicts import score_files

    out = tmp_path / "out"
    nodes.start_franka("standin_ros2_control", "standin_ros2", out)
    assert nodes.wait("task", 200.0) == 0, nodes.logs()
    (score,) = score_files.load_scores(score_files.newest_scores(out))
    assert score.agrees and score.success, (score, nodes.logs())
    log = nodes.log("standin_ros2_control")
    assert "reflex" not in log and "not taken" not in log, log


@pytest.mark.slow
def test_arms_come_to_rest_when_the_world_node_is_killed_in_the_middle_of_a_task(
    nodes, client, tmp_path
):
    from sensor_msgs.msg import JointState

    speeds = {arm: 0.0 for arm in ARMS}
    for arm in ARMS:
        client.create_subscription(
            JointState, f"/{arm}/franka/joint_states",
            lambda m, arm=arm: speeds.__setitem__(arm, np.abs(m.velocity).max()), 10,
        )  # fmt: skip
    nodes.start_franka("standin_ros2_control", "standin_ros2", tmp_path / "out")
    states = []
    from bench_interfaces.msg import WorldState

    client.create_subscription(WorldState, "/world/state", lambda _: states.append(1), 10, raw=True)
    end = time.monotonic() + 120
    while len(states) < 20 or max(speeds.values()) < 0.3:  # on its way in an episode
        assert time.monotonic() < end, nodes.logs()
        time.sleep(0.01)
    nodes.running["franka_world"].kill()
    killed = time.monotonic()
    while max(speeds.values()) > 1e-3:
        assert time.monotonic() - killed < 1.5
        time.sleep(0.005)
    log = nodes.log("standin_ros2_control")
    assert "reflex" not in log and "not taken" not in log, log
