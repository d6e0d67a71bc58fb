"""Lets the tests of this folder share `made`, whatever import mode pytest runs with."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config):
    config.addinivalue_line("markers", "ros: needs rclpy")
    config.addinivalue_line("markers", "slow: takes long")
