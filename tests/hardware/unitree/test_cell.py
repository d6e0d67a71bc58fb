"""The file that describes a cell with a G1."""

from pathlib import Path

import pytest
import yaml

from bench_tasks.errors import UsageError
from hardware.unitree.cell import driver_python, read_cell, shipped_cells

BUS = read_cell("standin").raw["bus"]


def test_those_that_come_with_the_package(monkeypatch):
    assert shipped_cells() == ["cell", "standin"]
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    standin, real = read_cell("standin"), read_cell("cell")
    assert standin.bus()["domain"] == 143, "no node of ROS is there"
    standin.raw["transport"] = "ros2"
    assert standin.domain == 42
    assert standin.bus()["interface"] == "lo"
    assert real.domain == 0 and real.bus()["interface"] == "eth0"
    assert real.raw["confirm_before_home"] and real.bus()["accept_cyclonedds"] == ""
    assert real.frame("pelvis") == "object/pelvis"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"robot": "h1"}, "unknown robot 'h1'"),
        ({"domain": 300}, "domain must be a whole number from -1 to 232, got 300"),
        ({"domain": -1, "interface": "eth0"}, "domain must be the robot's own"),
        ({"interface": ""}, "interface must be a network card's name, got ''"),
        ({"speed": 1}, "speed"),
        ({"home_rad_s": 17.0}, "home_rad_s must be a number from 0.01 to 2, got 17"),
        ({"bus": {**BUS, "stale_s": 100}}, "bus.stale_s must be a number from 0.02 to 1, got 100"),
        ({"bus": {**BUS, "ramp_s": 1e-4}}, "bus.ramp_s must be a number from 0.1 to 60"),
        ({"bus": {**BUS, "max_jump_rad": 8.6}}, "bus.max_jump_rad must be a number from 0.001"),
        ({"bus": {**BUS, "rate_hz": 10}}, "bus.rate_hz must be a number from 50 to 1000, got 10"),
        ({"bus": {**BUS, "release_s": 0.05}}, "release_s must be at least stale_s, got 0.05 and"),
        ({"table": {"edge_m": 240, "depth_m": 0.6, "width_m": 1.2, "thickness_m": 0.04}},
         "table.edge_m must be a number from 0.01 to 1, got 240"),
        ({"accept_cyclonedds": 11}, "accept_cyclonedds must be empty or a version, got 11"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, change, why):
    raw = yaml.safe_load((Path("hardware/unitree") / "standin.yaml").read_text())
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**raw, **change}))
    with pytest.raises(UsageError) as error:
        read_cell(str(path))
    assert why in str(error.value) and "\n" not in str(error.value)


def test_a_missing_driver_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(UsageError, match="make unitree"):
        driver_python(read_cell("standin"))
