"""Two arms' drivers against two simulated robots that speak Franka's protocol, limits enforced."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from bench_tasks.robots.fr3 import HOME_RAD
from bench_tasks.vocabulary import ARMS
from hardware.franka.cell import read_cell
from hardware.franka.drivers import Drivers
from hardware.franka.reach import check_reach
from hardware.link import Command
from sim.standin.pace import Pace

ROOT = Path(__file__).resolve().parents[3]
SERVERS, DRIVERS = (Path(sys.prefix) / name / "bin/python" for name in ("franka_sim", "franka"))
PERIOD_S = 0.02
SHAPE = np.array([1, 0.5, -1, 0.5, 1, -0.5, 1]) / 2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SERVERS.exists() and DRIVERS.exists()), reason="make franka-sim"),
]


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    """The simulated robots of the cell `standin`."""
    cell, pace = read_cell("standin"), str(tmp_path_factory.mktemp("pace") / "pace")
    Pace.begin(pace)
    running = [
        subprocess.Popen(
            [SERVERS, ROOT / "sim/standin/franka_server.py", cell.arm(arm)["address"], "", "",
             str(k), pace],
            env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
        )
        for k, arm in enumerate(ARMS)
    ]
    yield cell
    for server in running:
        server.terminate()
    for server in running:
        server.wait(10)


@pytest.fixture
def drivers(robots):
    """Both arms in control."""
    made = Drivers(robots)
    made.ready(made.poll)
    yield made
    made.close()


def wish(t, start):
    """Joint positions (7,) at time t of a smooth motion that begins at rest."""
    return start + 0.35 * (1 - np.cos(0.5 * np.pi * t)) * SHAPE


def move(drivers, seconds):
    """Both arms along `wish` at 50 Hz of their time; returns measured - wished and events."""
    drivers.poll()
    start = {arm: drivers.arm(arm).q_sent for arm in ARMS}
    base, errors, events = drivers.now_ns() / 1e9, [], []
    for k in range(int(seconds / PERIOD_S)):
        while drivers.now_ns() / 1e9 < base + k * PERIOD_S:
            time.sleep(0.001)
        events += drivers.poll()
        for arm in ARMS:
            state = drivers.arm(arm)
            measured_s = (state.own_ns - drivers._time.own_ns(arm, 0)) / 1e9
            errors.append(state.q - wish(measured_s - base, start[arm]))
            a, b, c = (wish((k + i) * PERIOD_S, start[arm]) for i in (0, 1, 2))
            drivers.send(
                arm, Command(k, b.tolist(), ((c - a) / 2 / PERIOD_S).tolist(),
                             ((c - 2 * b + a) / PERIOD_S**2).tolist(),
                             int((base + (k + 1) * PERIOD_S) * 1e9)),
            )  # fmt: skip
    return np.array(errors[20:]), events


def at_rest(drivers, arm):
    """Whether the arm stays where it is for a while.

    The simulated joint 7 trembles by 2 mrad around where it holds.
    """
    drivers.poll()
    before = drivers.arm(arm).q
    time.sleep(0.3)
    drivers.poll()
    return np.abs(drivers.arm(arm).q - before).max() < 5e-3


def test_two_arms_follow_closely_and_stop_when_nobody_speaks(drivers):
    errors, events = move(drivers, 6.0)
    assert events == []
    assert np.sqrt(np.mean(errors**2)) <= 0.01
    for _ in range(20):  # what nobody reads fills the sockets with what is old
        time.sleep(0.05)
        drivers.poll()
    for arm in ARMS:
        state = drivers.arm(arm)
        assert (state.mode, state.waiting) == ("following", True)
        assert state.success_rate > 0.9
        assert at_rest(drivers, arm)


@pytest.mark.parametrize("control", ["impedance", "cartesian_impedance"])
def test_springs_at_joints_or_at_the_hand_follow_without_an_abort(robots, tmp_path, control):
    robots.raw["arms"]["control"], file = control, tmp_path / "soft.yaml"
    file.write_text(yaml.safe_dump(robots.raw))
    robots.raw["arms"]["control"] = "position"
    made = Drivers(read_cell(str(file)))
    try:
        made.ready(made.poll)
        errors, events = move(made, 6.0)
        assert events == [] and np.sqrt(np.mean(errors**2)) <= 0.01
        time.sleep(0.5)
        assert all(at_rest(made, arm) for arm in ARMS)
    finally:
        made.close()


def well(robots):
    return [(name, ok) for name, ok, *_ in check_reach(robots)] == [
        (f"{arm} {what}", True) for arm in ARMS for what in ("arm", "hand")
    ]


def test_the_check_up_reaches_robots_that_rest_and_such_as_work_and_disturbs_none(robots):
    end = time.monotonic() + 60
    while not well(robots):  # they take their time to start
        assert time.monotonic() < end, check_reach(robots)
        time.sleep(0.5)
    made = Drivers(robots)
    try:
        made.ready(made.poll)
        assert well(robots)
        errors, events = move(made, 2.0)
        assert events == [] and np.sqrt(np.mean(errors**2)) <= 0.01
    finally:
        made.close()
    made = Drivers(robots)
    try:
        made.ready(made.poll)
        assert move(made, 1.0)[1] == []
    finally:
        made.close()


def test_an_arm_whose_process_was_killed_stops_and_is_got_back(drivers):
    move(drivers, 1.5)
    process = drivers._all["arm", "left"].process
    process.send_signal(signal.SIGKILL)
    process.wait(5)
    # What it had said before is heard first.
    told = drivers.poll() + drivers.poll()
    assert told == [("driver_lost", "the process of the left arm has ended (SIGKILL)")]
    drivers.ready(drivers.poll)
    assert at_rest(drivers, "left")
    for arm in ARMS:
        drivers.go_to(arm, HOME_RAD, 0.3)
    end = time.monotonic() + 20
    while any(np.abs(drivers.arm(arm).q - HOME_RAD).max() > 0.01 for arm in ARMS):
        assert time.monotonic() < end and not drivers.poll()
        for arm in ARMS:
            drivers.go_on(arm)
        time.sleep(0.02)


OTHER_SIDE = """
import sys, threading
sys.path[:0] = [{root!r}]
from tests.hardware.franka.test_servers import ARMS, Drivers, move, read_cell
drivers = Drivers(read_cell("standin"))
drivers.ready(drivers.poll)

def tell():
    print(min(abs(drivers.arm(arm).dq).max() for arm in ARMS), flush=True)

threading.Timer(1.0, tell).start()  # the motion is fastest then
move(drivers, 30.0)
"""


def test_arms_whose_commander_was_killed_stop_and_can_be_taken_over(robots):
    child = subprocess.Popen(
        [sys.executable, "-c", OTHER_SIDE.format(root=str(ROOT))], stdout=subprocess.PIPE,
        text=True, cwd=ROOT,
    )  # fmt: skip
    assert child.stdout is not None
    assert float(child.stdout.readline()) > 0.1, "both arms move, rad/s"
    assert child.poll() is None
    child.kill()
    child.wait(5)
    drivers = Drivers(robots)
    try:
        drivers.ready(drivers.poll)
        assert all(at_rest(drivers, arm) for arm in ARMS)
    finally:
        drivers.close()
