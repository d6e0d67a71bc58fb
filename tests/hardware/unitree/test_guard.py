"""Which CycloneDDS may talk to a live robot."""

import pytest

from hardware.unitree.guard import unsafe


@pytest.mark.parametrize(
    ("interface", "version", "accepted"),
    [("lo", "11.0.1", ""), ("eth0", "0.10.2", ""), ("eth0", "11.0.1", "11.0.1")],
)
def test_safe_or_accepted(interface, version, accepted):
    assert unsafe(interface, version, accepted) == ""


@pytest.mark.parametrize(
    ("version", "accepted", "why"),
    [
        ("11.0.1", "", "makes programs with 0.10.2 crash"),
        ("11.0.1", "0.10.5", "makes programs with 0.10.2 crash"),
        ("0.10.5", "", "has never been tried with 0.10.2"),
        ("11.0.2", "11.0.1", "has never been tried with 0.10.2"),
    ],
)
def test_refused_with_the_safe_ways(version, accepted, why):
    reason = unsafe("enp3s0", version, accepted)
    assert why in reason and "interface enp3s0" in reason and "\n" not in reason
    for way in ("Python 3.10", "own ROS 2 topics", f'accept_cyclonedds: "{version}"'):
        assert way in reason
