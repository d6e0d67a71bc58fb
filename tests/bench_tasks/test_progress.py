"""Progress on a terminal and in a log."""

import io

import pytest

from bench_tasks.commands import progress as module
from bench_tasks.commands.progress import Progress, duration


@pytest.mark.parametrize(
    "seconds,text", [(0, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (125, "2:05"), (3725, "1:02:05")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_per_item_with_an_estimate(clock):
    log = io.StringIO()
    meter = Progress(3, log)
    for _ in range(3):
        clock[0] += 10
        meter.note("busy", 0.5)
        meter.done("item")
    meter.close()
    assert log.getvalue() == "[1/3] item, 20 s left\n[2/3] item, 10 s left\n[3/3] item\n"


def test_a_terminal_has_one_line_that_is_rewritten(clock):
    screen = Terminal()
    meter = Progress(2, screen)
    clock[0] += 5
    meter.note("half way", 0.5)
    meter.note("too soon to show", 0.6)
    assert screen.getvalue() == "\r\x1b[K[1/2] half way, 15 s left"
    meter.close()
    assert "\n" not in screen.getvalue()
