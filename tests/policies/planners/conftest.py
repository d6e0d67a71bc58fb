"""Lets the tests of this folder share `model_server`, and gives them one simulated cell."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def world():
    """The simulated cell, small pictures."""
    from sim.world import SimWorld

    return SimWorld(width=160, height=120)


@pytest.fixture(scope="session")
def skills():
    """The policy that executes skill calls."""
    from policies import make_policy

    return make_policy("skills")
