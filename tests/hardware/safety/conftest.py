"""Robots at home, at rest, each with a supervisor of its own."""

from __future__ import annotations

import copy

import pytest

from benchmarks.safety.robot import Robot
from hardware.safety import Supervisor
from tests.hardware.safety.ideal import HOME, LIMITS


@pytest.fixture(scope="session")
def loaded():
    return Supervisor(LIMITS, realtime=True, confirmed=True)


@pytest.fixture
def robot(loaded):
    """In realtime."""
    return _robot(loaded, realtime=True)


@pytest.fixture
def stepped(loaded):
    """In lockstep."""
    return _robot(loaded, realtime=False)


def _robot(loaded, realtime):
    supervisor = copy.copy(loaded)
    supervisor._clearance = copy.copy(loaded._clearance)
    supervisor._realtime = realtime
    return Robot(supervisor, HOME.copy())
