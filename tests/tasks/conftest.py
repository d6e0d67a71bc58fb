"""Lets the tests of this folder share `staging`, whatever import mode pytest runs with."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def world():
    """One simulated cell for all tests of a module, so that each scene is compiled once."""
    from sim.world import SimWorld

    return SimWorld()
