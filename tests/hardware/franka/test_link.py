"""What goes between the world node and an arm's process, and what is left when one of them dies."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hardware.link import MODES, ArmState, Command, Gone, Link, decode, encode, last_words, pair


def state(mode="following"):
    n = np.arange(41.0) / 7
    return ArmState(5, 4, 6, 7, 8, mode, True, 0.99, 998.5, *np.split(n, [7, 14, 21, 28, 35]))


def test_messages_come_back_as_they_were():
    command = Command(3, [0.1] * 7, [0.2] * 7, [0.3] * 7, 123_456_789_012)
    assert decode(encode(command)) == command
    assert decode(encode({"do": "recover"})) == {"do": "recover"}
    for mode in MODES:
        got = decode(encode(state(mode)))
        assert isinstance(got, ArmState)
        assert (got.mode, got.waiting, got.success_rate, got.lost) == (mode, True, 0.99, 7)
        assert (got.time_ns, got.own_ns, got.cycles, got.command_seq) == (5, 4, 6, 8)
        for name in ("q", "dq", "tau", "tau_ext", "q_sent", "wrench"):
            np.testing.assert_array_equal(getattr(got, name), getattr(state(), name))


@pytest.mark.parametrize("data", [b"", b"C", b"S123", b"J{", b"J[1]", b"J\xff", b"X1", b"C" * 400])
def test_what_is_no_message_is_an_error(data):
    with pytest.raises(ValueError, match="malformed"):
        decode(data)


def test_a_reader_that_sleeps_costs_the_writer_nothing():
    ours, theirs = pair()
    sent = 0
    while ours.send(state()):
        sent += 1
        assert sent < 1_000_000
    assert ours.dropped == 1
    assert len(Link(theirs).receive()) == sent


CHILD = """
import sys, time
from hardware.link import Link
link = Link.of(int(sys.argv[1]))
link.send({"here": True})
time.sleep(60)
"""


def test_a_killed_process_is_gone_at_the_next_look():
    ours, theirs = pair()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(theirs.fileno())], pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    theirs.close()
    end = time.monotonic() + 20
    while not (found := ours.receive()) and time.monotonic() < end:
        time.sleep(0.01)
    assert found == [{"here": True}]
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    with pytest.raises(Gone):
        ours.receive()
    with pytest.raises(Gone):
        ours.send({"do": "stop"})


def test_what_was_said_before_the_end_is_still_heard():
    ours, theirs = pair()
    ours.send({"mode": "idle"})
    ours.close()
    other = Link(theirs)
    assert other.receive() == [{"mode": "idle"}]
    with pytest.raises(Gone):
        other.receive()


def test_what_comes_behind_the_settings_is_no_settings():
    ours, theirs = pair()
    for message in ({"max_jump_rad": 0.3}, {"do": "start"}, {"do": "hold"}):
        ours.send(message)  # a process takes seconds to start, and what it is told waits for it
    other = Link(theirs)
    assert other.settings() == {"max_jump_rad": 0.3}
    assert other.receive() == [{"do": "start"}, {"do": "hold"}]
    assert other.receive() == []


@pytest.mark.parametrize("said", [[], [{"max_jump_rad": 0.3}]])
def test_a_process_whose_other_side_ends_first_ends_without_a_word(said):
    ours, theirs = pair()
    for message in said:
        ours.send(message)
    ours.close()
    link = Link(theirs)
    with last_words(link):
        assert link.settings() == said[0]
        link.receive()
        pytest.fail("the other side is gone")
    link.close()
