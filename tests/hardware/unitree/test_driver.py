"""The driver against buses that hang, crash or do not let go; no DDS, no vendor's environment."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from bench_tasks.errors import BenchError
from hardware import process as processes
from hardware.unitree import driver as module
from hardware.unitree.driver import BusDriver

ROOT = Path(__file__).resolve().parents[3]
BUS = """
import json, os, socket, sys, time
end = socket.socket(fileno=int(sys.argv[1]))
settings = json.loads(end.recv(1 << 16)[1:])
def say(**message):
    try:
        end.send(b"J" + json.dumps(message).encode())
    except OSError:
        sys.exit(0)
def state():
    seven = [0.0] * 17
    say(mode="following", lost=False, state=dict(
        time_ns=time.monotonic_ns(), q=[0.0] * 29, dq=[0.0] * 29, tau=[0.0] * 29,
        quaternion=[1, 0, 0, 0], told=seven, weight=1.0,
        seq=0, rests=True, bad=0, rate_hz=200.0, heard_hz=200.0, hands={}))
letting_go = "let_go" in settings
with open(settings["log"], "a") as log:
    log.write(("let_go " + str(settings["let_go"]) if letting_go else "bus") + "\\n")
"""
GOOD = """
if letting_go:
    sys.exit(0)
while True:
    state()
    time.sleep(0.01)
"""
DEAF = """
if letting_go:
    sys.exit(0)
state()
time.sleep(60)
"""
SECOND = """
if letting_go:
    sys.exit(0)
hangs = open(settings["log"]).read().count("bus") == 1
while True:
    state()
    time.sleep(60 if hangs else 0.01)
"""
CLOSED = """
if letting_go:
    sys.exit(0)
if open(settings["log"]).read().count("bus") == 1:
    state()
    end.close()
    time.sleep(60)
while True:
    state()
    time.sleep(0.01)
"""
CRASH = """
say(mode="idle", lost=False)
say(crash="ValueError: what it was")
sys.exit(7)
"""
KEEPS = """
if letting_go:
    sys.exit(3)
state()
sys.exit(1)
"""
NEVER = """
if letting_go:
    time.sleep(60)
state()
sys.exit(1)
"""


@pytest.fixture
def bus(tmp_path, monkeypatch):
    """Starts drivers of a bus that does what a text says."""
    monkeypatch.setattr(module, "STATE_AGE_S", 1.0)  # on a busy machine
    running = []

    def start(text):
        script, python = tmp_path / "bus.py", tmp_path / "python"
        script.write_text(BUS + text)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{script}" "$3"\n')
        python.chmod(0o755)
        settings = {"transport": "dds", "ramp_s": 0.1, "log": str(tmp_path / "log")}
        running.append(BusDriver(str(python), settings))
        return running[-1]

    yield start
    for driver in running:
        driver._stopped = True
        driver._link.close()
        for process in (driver.process, *(driver._helper or ())[:1]):
            process.kill()
            process.wait()


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def started(driver):
    """What it said, until it is said to follow."""
    events = []
    until(lambda: events.extend(driver.poll()) or driver.mode == "following")
    return events


def log(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


def test_a_bus_that_is_fine_is_ready(bus):
    driver = bus(GOOD)
    driver.ready(driver.poll)
    assert driver.mode == "following" and driver.state().rests


def test_a_bus_that_hangs_is_not_ready_and_is_killed_and_cleaned_up_after(
    bus, monkeypatch, tmp_path
):
    driver = bus(SECOND)
    started(driver)
    driver.move(1, [0.0] * 17, [1.5] * 17, 0)
    time.sleep(module.STATE_AGE_S)
    monkeypatch.setattr(module, "HUNG_S", 0.5)
    hung = driver.process
    events = []
    with pytest.raises(BenchError, match="has said nothing for .* and was killed"):
        driver.ready(lambda: events.extend(driver.poll()))
    assert [kind for kind, _ in events] == ["driver_lost"]
    assert hung.returncode == -signal.SIGKILL
    monkeypatch.setattr(module, "HUNG_S", 20.0)
    driver.ready(driver.poll)
    assert driver.process is not hung and driver.state()
    assert log(tmp_path) == ["bus", f"let_go {[1.5] * 17}", "bus"]


def test_a_bus_that_was_stopped_is_noticed_by_who_polls(bus, monkeypatch):
    driver = bus(GOOD)
    driver.ready(driver.poll)
    os.kill(driver.process.pid, signal.SIGSTOP)
    monkeypatch.setattr(module, "HUNG_S", 0.3)
    events = []
    until(lambda: events.extend(driver.poll()) or driver.mode == "dead")
    assert "was killed" in events[-1][1]


def test_a_bus_that_reads_nothing_any_more_is_on_record_once(bus):
    driver = bus(DEAF)
    started(driver)
    for k in range(5000):
        driver.move(k, [0.0] * 17, [0.0] * 17, 0)
    events = driver.poll()
    assert events == [("driver_lost", "the process of the robot's bus reads nothing any more")]


def test_a_bus_whose_link_has_closed_is_killed_before_another_lets_go(bus, tmp_path):
    driver = bus(CLOSED)
    started(driver)
    until(lambda: any(kind == "driver_lost" for kind, _ in driver.poll()))
    assert driver.process.poll() == -signal.SIGKILL
    driver.ready(driver.poll)
    assert driver.state() and log(tmp_path) == ["bus", "let_go []", "bus"]


def test_how_a_bus_ended_is_said(bus, monkeypatch):
    monkeypatch.setattr(processes, "REAP_S", 10.0)  # a busy machine takes its time
    driver = bus(CRASH)
    with pytest.raises(BenchError, match=r"has ended \(exit status 7\): ValueError: what it was"):
        driver.ready(driver.poll)


@pytest.mark.parametrize("text", [KEEPS, NEVER], ids=["fails", "never ends"])
def test_arms_that_nobody_could_let_go_of_are_not_taken_anew(bus, monkeypatch, text, tmp_path):
    monkeypatch.setattr(module, "STOP_S", 1.0)
    driver, events = bus(text), []
    until(lambda: events.extend(driver.poll()) or driver.mode == "dead")
    for again in range(2):
        with pytest.raises(BenchError, match="the robot may still hold them"):
            driver.ready(driver.poll)
        until(lambda again=again: len(log(tmp_path)) == again + 3)
    assert log(tmp_path) == ["bus"] + 3 * ["let_go []"]


def test_what_ends_getting_ready_does_so_while_arms_are_let_go_of(bus):
    driver, events = bus(NEVER), []
    until(lambda: events.extend(driver.poll()) or driver.mode == "dead")

    def heed():
        raise BenchError("/safety/estop says true")

    with pytest.raises(BenchError, match="estop"):
        driver.ready(heed)
    assert driver._helper is not None
