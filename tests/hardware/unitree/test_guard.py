"""Which CycloneDDS may talk to a live robot."""

import pytest

from hardware.unitree.guard import ros_version, unsafe


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


def test_what_ros_speaks_by_is_looked_at_as_well(tmp_path, monkeypatch):
    share = tmp_path / "there/share/cyclonedds"
    share.mkdir(parents=True)
    (share / "package.xml").write_text("<package><name>cyclonedds</name>"
                                       "<version>0.10.2</version></package>")  # fmt: skip
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path}/empty:{tmp_path}/there")
    assert ros_version("rmw_cyclonedds_cpp") == "0.10.2"
    assert unsafe("eth0", ros_version("rmw_cyclonedds_cpp"), "") == ""
    other = ros_version("rmw_fastrtps_cpp")
    assert "eth0: rmw_fastrtps_cpp has never been tried" in unsafe("eth0", other, "")
    assert unsafe("eth0", other, other) == "" and unsafe("lo", other, "") == ""
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert "unknown has never" in unsafe("eth0", ros_version("rmw_cyclonedds_cpp"), "")
