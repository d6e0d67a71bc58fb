"""The bus against a stand-in G1, over real DDS on loopback, in the driver's environment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench_tasks.errors import BenchError
from bench_tasks.robots import g1
from hardware.unitree.driver import BusDriver

ROOT = Path(__file__).resolve().parents[3]
DRIVER = Path(sys.prefix) / "unitree/bin/python"
PERIOD_S = 0.02
LAG_RAD = 0.05
"""More than any process that has to wait for its turn is behind, and far less than the motions."""
SETTINGS = {
    "transport": "dds", "interface": "lo", "control": "arm_sdk", "hands": "dex3",
    "accept_cyclonedds": "", "rate_hz": 200.0, "report_every": 4, "speed": 0.5,
    "max_jump_rad": 0.3, "stale_s": 0.1, "release_s": 0.6, "ramp_s": 0.6,
}  # fmt: skip
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"} | {
    "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"
}  # fmt: skip
PARENT = """
import json, sys, time
import numpy as np
from hardware.unitree.driver import BusDriver
driver = BusDriver(sys.argv[1], json.loads(sys.argv[2]))
driver.ready(driver.poll)
base, k = driver.state().told, 0
print(driver.process.pid, flush=True)
while True:
    driver.poll()
    q = base + 0.2 * np.sin(0.02 * k)
    driver.move(k, q.tolist(), [0.0] * 17, time.monotonic_ns() + 30_000_000)
    k += 1
    time.sleep(0.02)
"""
BAD = """
import sys, time
import numpy as np
from bench_tasks.robots import unitree_hg as hg
from bench_tasks.robots.unitree_dds import Dds
dds = Dds(int(sys.argv[1]), "lo", (hg.ARM_SDK,), ())
ones = np.ones(17)
for k in range(150):
    message = hg.motor_commands(slice(12, 29), ones, ones, ones, ones, ones, 4 if k % 2 else 5)
    message["motor"][hg.WEIGHT]["q"] = 1.0
    hg.signed(message)
    if k % 2 == 0:
        message["motor"][20]["q"] = 0.5
    dds.write(hg.ARM_SDK, hg.encode(message))
    time.sleep(0.01)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVER.exists(), reason="make unitree"),
]


class StandIn:
    """The stand-in's process, and what it last said."""

    def __init__(self, folder, **settings):
        self._out = folder / "standin.jsonl"
        self.process = subprocess.Popen(
            [DRIVER, ROOT / "sim/standin/g1_dds.py", json.dumps(settings)], env=ENVIRONMENT,
            stdout=self._out.open("w"),
        )  # fmt: skip

    def lines(self):
        return [json.loads(line) for line in self._out.read_text().splitlines()[:-1]]

    def wait(self, true, seconds=20.0):
        """The first of its lines from now on that is true."""
        end, seen = time.monotonic() + seconds, len(self.lines())
        while time.monotonic() < end:
            for line in self.lines()[seen:]:
                if true(line):
                    return line
            time.sleep(0.05)
        pytest.fail(f"not within {seconds:g} s; last: {self.lines()[-1:]}")


@pytest.fixture
def robot(tmp_path, ros_domain):
    """Starts stand-ins, each of which is ended after the test."""
    running = []

    def start(**settings):
        running.append(StandIn(tmp_path, domain=ros_domain, **settings))
        return running[-1]

    yield start
    for standin in running:
        standin.process.kill()
        standin.process.wait()


@pytest.fixture
def bus(ros_domain):
    """Starts drivers of the robot in this domain."""
    running = []

    def start(**changes):
        running.append(BusDriver(str(DRIVER), {**SETTINGS, "domain": ros_domain, **changes}))
        return running[-1]

    yield start
    for driver in running:
        driver.close()


def follow(driver, seconds, wish):
    """Command wish(t) at 50 Hz; rows of (wished, told, measured, weight) and all events."""
    rows, events, begun = [], [], time.monotonic()
    due, blind = begun, 0
    while due - begun < seconds:
        events += driver.poll()
        q = wish(due - begun)
        driver.move(len(rows), q.tolist(), [0.0] * len(q), int((due + 1.5 * PERIOD_S) * 1e9))
        try:
            state = driver.state()
            rows.append((q, state.told, state.q[-len(q) :], state.weight))
        except BenchError:
            blind += 1  # a machine with other work may keep any of the processes waiting
        due = max(due + PERIOD_S, time.monotonic() - PERIOD_S)
        time.sleep(max(0.0, due - time.monotonic()))
    assert blind < len(rows)
    return [np.array(column) for column in zip(*rows, strict=True)], events


def poll(driver, seconds):
    """All events of so long."""
    events, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        events += driver.poll()
        time.sleep(0.02)
    return events


def version():
    """The driver's CycloneDDS."""
    ask = "import importlib.metadata as m, sys; sys.stdout.write(m.version('cyclonedds'))"
    return subprocess.run([DRIVER, "-c", ask], capture_output=True, text=True, check=True).stdout


def heard(driver):
    """The newest state, as soon as there is one that is not too old."""
    end = time.monotonic() + 5.0
    while True:
        driver.poll()
        try:
            return driver.state()
        except BenchError:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)


def refusals(events):
    return [reason for kind, reason in events if kind == "command_refused"]


def test_arms_and_hands_follow_and_are_let_go_of(robot, bus):
    standin, driver = robot(mode_machine=9, hands="dex3"), bus()
    driver.ready(driver.poll)
    base = driver.told
    assert np.abs(base - g1.DEFAULT_RAD[12:]).max() < 1e-3
    fingers = np.array([0.1, 0.1, 0.1, -0.1, -0.1, -0.1, -0.1])
    driver.hand("left", fingers.tolist())
    driver.hand("right", [0.1] * 6)
    (wished, told, measured, weight), events = follow(
        driver, 4.0, lambda t: base + 0.3 * np.sin(2 * t)
    )
    assert np.sqrt(np.mean((told - measured) ** 2)) < LAG_RAD
    assert np.sqrt(np.mean((wished - measured) ** 2)) < 2 * LAG_RAD
    assert measured.max(0) - measured.min(0) == pytest.approx(np.full(17, 0.6), abs=0.06)
    assert weight.min() == 1.0
    assert refusals(events) == ["the right hand cannot be told [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]"]
    state = heard(driver)
    assert state.hands["left"] == pytest.approx(fingers, abs=1e-3)
    assert not state.hands["right"].any() and state.bad == 0
    line = standin.lines()[-1]
    assert "crc" not in line and "mode_machine" not in line and line["accepted"] > 100
    # Bad commands: refused by name, and the arms come to rest; none of it reaches the robot.
    q, elbow = heard(driver).told, np.arange(17) == 6
    for wrong, why in (
        (q[:5], "5 positions for 17 joints"),
        (np.where(elbow, np.nan, q), "position nan of left_elbow_joint"),
        (np.where(elbow, q + 0.4, q), "more than 0.3"), (q * 60 + 200, "whose range is"),
    ):  # fmt: skip
        driver.move(1, wrong.tolist(), [0.0] * 17, time.monotonic_ns())
        found, end = [], time.monotonic() + 3.0
        while not found and time.monotonic() < end:
            found = refusals(poll(driver, 0.02))
        assert len(found) == 1 and why in found[0]
        driver.hold()
    # Silence: held, then let go of by the weight.
    before = len(standin.lines())
    standin.wait(lambda line: line["weight"] == 0.0)
    steps = [line["weight"] for line in standin.lines()[before - 3 :]]
    assert np.diff(steps).max() <= 0.0 and np.diff(steps).min() > -0.6, steps
    poll(driver, 0.3)
    assert driver.mode == "idle"
    driver.ready(driver.poll)
    assert driver.mode == "following" and heard(driver).weight > 0.99


def test_the_robot_ignores_what_is_not_signed_or_for_another_machine(robot, ros_domain):
    standin = robot()
    standin.wait(lambda line: line["sent"] > 0)
    subprocess.run([DRIVER, "-c", BAD, str(ros_domain)], env=ENVIRONMENT, check=True, timeout=60)
    line = standin.wait(lambda line: line.get("crc", 0) > 5 and line.get("mode_machine", 0) > 5)
    assert line["accepted"] == 0 and line["weight"] == 0.0 and line["speed"] == 0.0


def test_when_the_commander_is_killed_the_bus_lets_go_and_ends(robot, ros_domain):
    standin = robot()
    settings = {**SETTINGS, "domain": ros_domain}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(DRIVER), json.dumps(settings)], env=ENVIRONMENT,
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        pid = int(parent.stdout.readline())
        standin.wait(lambda line: line["weight"] == 1.0 and line["speed"] > 0.05)
    finally:
        parent.kill()
        parent.wait()
    standin.wait(lambda line: line["weight"] == 0.0)
    end = time.monotonic() + 5.0
    while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/cmdline").exists()
    last = standin.wait(lambda line: line["speed"] < 0.01)
    time.sleep(0.5)
    assert standin.lines()[-1]["accepted"] == last["accepted"], "nobody commands any more"


def test_when_the_bus_is_killed_another_lets_go_of_the_arms(robot, bus):
    standin, driver = robot(), bus()
    driver.ready(driver.poll)
    base = driver.told
    follow(driver, 0.5, lambda t: base + 0.2 * np.sin(2 * t))
    os.kill(driver.process.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert standin.lines()[-1]["weight"] == 1.0, "the robot goes on by itself with what it has"
    ended = "the process of the robot's bus has ended (SIGKILL)"
    assert ("driver_lost", ended) in poll(driver, 0.1)
    with pytest.raises(BenchError, match="the process of the robot's bus has ended"):
        driver.state()
    standin.wait(lambda line: line["weight"] == 0.0)
    driver.ready(driver.poll)
    assert driver.mode == "following"


def test_low_level_silence_is_damped(robot, bus):
    standin, driver = robot(control="debug"), bus(control="low", hands="none")
    driver.ready(driver.poll)
    base = driver.told
    assert base.shape == (29,) and np.abs(base - g1.DEFAULT_RAD).max() < 1e-3
    (_, told, measured, _), events = follow(
        driver, 1.5, lambda t: base + 0.1 * np.sin(3 * t)
    )
    assert np.sqrt(np.mean((told - measured) ** 2)) < LAG_RAD and refusals(events) == []
    assert not standin.lines()[-1]["damped"]
    poll(driver, 0.5)
    assert driver.mode == "damping"
    assert standin.lines()[-1]["speed"] < 0.01
    driver.move(99, base.tolist(), [0.0] * 29, time.monotonic_ns())
    assert refusals(poll(driver, 0.2)) == ["the joints are not under control: damping"]
    standin.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    standin.process.send_signal(signal.SIGCONT)
    driver.ready(driver.poll)
    assert driver.mode == "following"
    os.kill(driver.process.pid, signal.SIGKILL)
    standin.wait(lambda line: line["damped"])


def test_latency_loss_and_noise_are_borne_and_gaps_reported(robot, bus):
    standin, driver = robot(latency_s=0.01, loss=0.3, noise_rad=0.002, seed=1), bus()
    driver.ready(driver.poll)
    base = driver.told
    (_, told, measured, _), events = follow(driver, 2.0, lambda t: base + 0.2 * np.sin(2 * t))
    assert np.sqrt(np.mean((told - measured) ** 2)) < LAG_RAD and refusals(events) == []
    standin.process.send_signal(signal.SIGSTOP)
    told = poll(driver, 0.4)
    standin.process.send_signal(signal.SIGCONT)
    assert any(kind == "robot_gap" and "and still none" in reason for kind, reason in told)
    with pytest.raises(BenchError, match="no state of the robot"):
        driver.state()


def test_a_live_robot_is_refused_over_the_wrong_cyclonedds(bus):
    if version() == "0.10.2":
        pytest.skip("the driver's CycloneDDS is the one that Unitree ships")
    with pytest.raises(BenchError, match=f"CycloneDDS {version()}.*Python 3.10"):
        driver = bus(interface="eth7")
        driver.ready(driver.poll)


def test_an_interface_that_is_not_there_is_named(bus):
    driver = bus(interface="nosuch0", accept_cyclonedds=version())
    with pytest.raises(BenchError, match=r"cannot use interface 'nosuch0' \(there are .*lo"):
        driver.ready(driver.poll)


def test_the_configuration_for_an_interface_is_one_for_cyclonedds(ros_domain):
    text = (ROOT / "bench_tasks/robots/cyclonedds_interface.xml").read_text()
    open_it = (
        "import sys; from cyclonedds.domain import Domain; Domain(int(sys.argv[1]), sys.argv[2])"
    )
    for name, good in (("lo", True), ("nosuch0", False)):
        done = subprocess.run(
            [DRIVER, "-c", open_it, str(ros_domain), text], capture_output=True, text=True,
            env={**ENVIRONMENT, "UNITREE_INTERFACE": name},
        )  # fmt: skip
        assert (done.returncode == 0) == good, done.stderr
