"""The processes of arms and hands as the world node has them: late, hung, dead, or misled."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ARMS
from hardware import process as processes
from hardware.franka import drivers as module
from hardware.franka.drivers import Drivers
from hardware.link import pair


@pytest.fixture
def drivers(wrong, cell, monkeypatch):
    monkeypatch.setattr(module, "SLOWEST", 1.0)  # what is simulated here is as fast as the wall
    monkeypatch.setattr(module, "STATE_AGE_S", 1.0)  # on a busy machine
    monkeypatch.setattr(processes, "REAP_S", 10.0)
    made = Drivers(cell)
    made.address = cell.arm("left")["address"]
    yield made
    for driver in made._all.values():
        driver.process.kill()
    made.close()


def poll_until(drivers, true, seconds=20.0):
    """Returns all events until `true()`."""
    end, events = time.monotonic() + seconds, []
    while not true():
        events += drivers.poll()
        assert time.monotonic() < end, (events, drivers._all)
        time.sleep(0.005)
    return events


def test_nothing_moves_before_it_is_got_ready_and_hands_find_their_ends_then(drivers):
    hands = [drivers._all["gripper", arm] for arm in ARMS]
    poll_until(drivers, lambda: all("width" in hand.hand for hand in hands))
    poll_until(drivers, lambda: all(drivers.mode(arm) == "idle" for arm in ARMS))
    assert not any(hand.hand["homed"] or hand.hand["busy"] for hand in hands)
    drivers.ready(drivers.poll)
    assert all(hand.hand["homed"] for hand in hands)
    assert [drivers.mode(arm) for arm in ARMS] == ["following"] * 2
    assert [drivers.width(arm) for arm in ARMS] == [0.08] * 2


def test_an_arm_that_did_not_take_its_start_is_asked_again(drivers, monkeypatch):
    monkeypatch.setattr(module, "ASK_S", 0.2)
    arm, refused = drivers._all["arm", "left"], []
    send = arm.link.send

    def lossy(message):
        if message == {"do": "start"} and len(refused) < 2:
            refused.append(message)
            return True
        return send(message)

    monkeypatch.setattr(arm.link, "send", lossy)
    drivers.ready(drivers.poll)
    assert len(refused) == 2 and drivers.mode("left") == "following"


def test_an_arm_that_hangs_is_not_ready_and_its_process_is_replaced(drivers, monkeypatch):
    drivers.ready(drivers.poll)
    monkeypatch.setattr(module, "HUNG_S", 0.5)
    process = drivers._all["arm", "left"].process
    os.kill(process.pid, signal.SIGSTOP)
    poll_until(drivers, lambda: drivers.mode("left") == "silent")
    with pytest.raises(BenchError, match=r"no state of the left arm for \d+\.\d s: following"):
        drivers.arm("left")
    drivers.ready(drivers.poll)
    assert drivers._all["arm", "left"].process is not process and process.poll() is not None
    assert drivers.arm("left").mode == "following"


def test_what_a_hung_arm_does_not_read_is_on_record(drivers):
    drivers.ready(drivers.poll)
    os.kill(drivers._all["arm", "right"].process.pid, signal.SIGSTOP)
    lost = ("driver_lost", "the process of the right arm reads nothing any more")
    events = []
    for _ in range(5000):
        drivers.tell("right", "hold")
        events += drivers.poll()
    assert events.count(lost) == 1


def test_how_a_process_ended_is_part_of_the_reason(drivers, wrong):
    drivers.ready(drivers.poll)
    os.kill(drivers._all["gripper", "right"].process.pid, signal.SIGKILL)
    (killed,) = poll_until(drivers, lambda: drivers._all["gripper", "right"].mode == "dead")
    assert killed == ("driver_lost", "the process of the right gripper has ended (SIGKILL)")
    with pytest.raises(BenchError, match="SIGKILL"):
        drivers.grasped("right")
    wrong("crash", drivers.address)
    (crashed,) = poll_until(drivers, lambda: drivers.mode("left") == "dead")
    assert crashed[1] == (
        "the process of the left arm has ended (exit status 1): ValueError: something nobody "
        "thought of"
    )


def test_a_hand_that_is_stuck_is_not_known_any_more(drivers, wrong):
    drivers.ready(drivers.poll)
    wrong("stuck", drivers.address)
    drivers.open_to("left", 0.02)
    poll_until(drivers, lambda: drivers._all["gripper", "left"].hand["busy"])
    assert drivers.width("left") == 0.08 and not drivers.grasped("left")
    way_s = 2 * 0.08 / drivers._cell.raw["hands"]["speed_m_s"]
    drivers._all["gripper", "left"].hand["time_ns"] -= round((module.BUSY_S + way_s) * 1e9)
    for ask in (drivers.width, drivers.grasped):
        with pytest.raises(BenchError, match=r"no state of the left hand for \d+\.\d s: ready"):
            ask("left")
    assert drivers.width("right") == 0.08


def test_a_hand_that_is_lost_grows_old_and_its_reason_is_told(drivers, wrong):
    drivers.ready(drivers.poll)
    wrong("unplugged", drivers.address)
    events = poll_until(drivers, lambda: drivers._all["gripper", "left"].mode == "lost")
    time.sleep(module.HAND_AGE_S)
    assert any(kind == "hand_fault" and "Timeout" in reason for kind, reason in events)
    with pytest.raises(BenchError, match="left hand for .*no connection: .*Timeout"):
        drivers.width("left")


@pytest.mark.parametrize("what, says", [
    ("kernel", "Running kernel has no realtime"), ("version", "Incompatible library version"),
])  # fmt: skip
def test_what_the_library_refuses_is_told_and_tried_again_calmly(drivers, wrong, what, says):
    wrong(what, drivers.address)
    drivers._all["arm", "left"].process.kill()

    def lost():
        drivers._renew()
        return drivers._all["arm", "left"].mode == "lost"

    poll_until(drivers, lost)
    first, end = drivers._all["arm", "left"], time.monotonic() + 1.2
    while time.monotonic() < end:
        drivers.poll()
        drivers._renew()
    assert drivers._all["arm", "left"] is first, "it is not started over and over"
    assert says in first.fault


def test_an_opening_is_told_once(drivers):
    drivers.ready(drivers.poll)
    sent = []
    drivers._all["gripper", "left"].link.send = lambda message: sent.append(message) or True
    for width in (0.08, 0.08, 0.03, 0.03):
        drivers.open_to("left", width)
    drivers.open_to("left", 0.03, anew=True)
    assert [message["width"] for message in sent] == [0.08, 0.03, 0.03]
    drivers._all["gripper", "left"].link.send = lambda message: sent.append(message) and False
    drivers.open_to("left", 0.05)
    drivers.open_to("left", 0.05)
    assert [message["width"] for message in sent[3:]] == [0.05, 0.05], "what did not arrive is told"


def test_an_arm_that_refuses_its_settings_is_said_not_to_be_ready(drivers, wrong):
    wrong("settings", drivers.address)
    with pytest.raises(BenchError, match="left arm cannot be controlled: .*collision command rej"):
        drivers.ready(drivers.poll)


def test_a_hand_is_busy_from_when_it_is_told_until_its_fingers_rest(drivers, wrong):
    drivers.ready(drivers.poll)
    assert not drivers.busy("left")
    wrong("stuck", drivers.address)
    drivers.open_to("left", 0.02)
    assert drivers.busy("left"), "it cannot have heard of that yet"
    poll_until(drivers, lambda: drivers._all["gripper", "left"].hand["busy"])
    assert drivers.busy("left") and drivers.width("left") == 0.08
    wrong("stuck")
    poll_until(drivers, lambda: not drivers.busy("left"))
    assert drivers.width("left") == 0.02 and not drivers.busy("right")


def test_to_hold_is_told_to_hands_as_well_and_what_they_forget_is_told_anew(drivers, wrong):
    drivers.ready(drivers.poll)
    wrong("stuck", drivers.address)
    hand = drivers._all["gripper", "left"].hand
    drivers.open_to("left", 0.02)
    poll_until(drivers, lambda: hand["busy"])
    drivers.open_to("left", 0.05)
    drivers.hold()
    wrong("stuck")
    poll_until(drivers, lambda: not drivers.busy("left"))
    time.sleep(0.2)
    drivers.poll()
    assert hand["width"] == 0.02, "it did not go to 0.05"
    drivers.open_to("left", 0.05)
    poll_until(drivers, lambda: hand["width"] == 0.05)


def test_the_same_fault_of_a_hand_is_told_each_time(drivers, wrong):
    drivers.ready(drivers.poll)
    wrong("jammed", drivers.address)
    for _ in range(2):
        drivers.open_to("left", 0.02)
        events = poll_until(drivers, lambda: not drivers.busy("left"))
        assert events == [("hand_fault", "left hand: libfranka gripper: Command aborted!")]


CHILD = """
import os, sys, time
os.close(int(sys.argv[1]))
time.sleep(60)
"""


def test_a_process_that_has_closed_its_link_and_hangs_is_replaced(drivers, monkeypatch):
    drivers.ready(drivers.poll)
    monkeypatch.setattr(module, "STOP_S", 0.3)
    driver = drivers._all["arm", "left"]
    driver.process.kill()
    driver.process.wait(5)
    ours, theirs = pair()
    with theirs:
        hung = subprocess.Popen([sys.executable, "-c", CHILD, str(theirs.fileno())],
                                pass_fds=[theirs.fileno()])  # fmt: skip
    driver.link, driver.process = ours, hung
    poll_until(drivers, lambda: drivers.mode("left") == "dead")
    drivers.ready(drivers.poll)
    assert hung.poll() == -signal.SIGKILL and drivers.mode("left") == "following"


def test_a_process_that_never_says_a_word_is_replaced(drivers, monkeypatch):
    monkeypatch.setattr(module, "STUCK_S", 8.0)
    monkeypatch.setattr(module, "STOP_S", 0.3)
    driver = drivers._all["arm", "right"]
    os.kill(driver.process.pid, signal.SIGSTOP)
    driver.mode, driver.heard_s = "starting", time.monotonic() - 9.0
    drivers.ready(drivers.poll)
    assert drivers._all["arm", "right"] is not driver
    assert driver.process.poll() == -signal.SIGKILL
