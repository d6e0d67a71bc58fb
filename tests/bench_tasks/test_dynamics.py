"""The file that says how joints answer to commands: read as written, refused where it is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from bench_tasks.config import RunConfig
from bench_tasks.errors import UsageError
from bench_tasks.robots.dynamics import Dynamics, read_dynamics


def dynamics() -> Dynamics:
    rng = np.random.default_rng(0)
    return Dynamics(
        rng.uniform(500, 40000, 14), rng.uniform(1, 500, 14), rng.uniform(0, 2, 14),
        rng.uniform(-0.1, 0.1, 14), np.array([0.01, 0.02]),
    )


@pytest.fixture
def file(tmp_path):
    dynamics().write(tmp_path / "robot.yaml")
    return tmp_path / "robot.yaml"


def test_it_is_read_as_it_was_written(file):
    found, given = read_dynamics(file), dynamics()
    for part in ("stiffness", "damping", "dry", "offset_rad", "delay_s"):
        np.testing.assert_allclose(getattr(found, part), getattr(given, part), rtol=1e-5)
    assert found.hash == given.hash
    config = RunConfig(("lift_pot",), dynamics=str(file))
    assert config.checked().to_dict()["dynamics_hash"] == found.hash
    assert RunConfig(("lift_pot",)).to_dict()["dynamics_hash"] == ""


def put(raw: dict, path: str, value: object) -> None:
    *way, last = path.split("/")
    for key in way:
        raw = raw[key]
    raw[last] = value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format_version", 3, "format_version must be 2, got 3"),
        ("format_version", 1, "is of format 1, which had no stiffness: make it anew from the rec"),
        ("robot", "g1", "unknown robot 'g1': choose from fr3_pair"),
        ("delay_s/left", 0.3, "delay_s.left must be a number from 0 to 0.2, got 0.3"),
        ("delay_s/left", -0.001, "delay_s.left must be a number from 0 to 0.2"),
        ("delay_s/middle", 0.0, "unknown key in delay_s 'middle'"),
        ("joints/left_fr3_joint3/dry_nm", -1.0, "dry_nm must be a number from 0 to 1000, got -1.0"),
        ("joints/left_fr3_joint3/dry_nm", float("nan"), "dry_nm must be a number"),
        ("joints/left_fr3_joint3/dry_nm", True, "dry_nm must be a number"),
        ("joints/left_fr3_joint3", {"dry_nm": 1.0}, "joints.left_fr3_joint3.stiffness_nm_rad is"),
        ("joints/left_fr3_joint3/stiffness_nm_rad", 0, "must be a number from 10 to 70000, got 0"),
        ("joints/left_fr3_joint3/damping_nm_s", -1.0, "must be a number from 0 to 100000, got -1"),
        ("joints/right_fr3_joint9", {}, "unknown key in joints 'right_fr3_joint9'"),
        ("joints/right_fr3_joint7/offset_rad", 0.5, "offset_rad must be a number from -0.2 to 0.2"),
    ],
)
def test_what_is_wrong_is_named(file, path, value, said):
    raw = yaml.safe_load(file.read_text())
    put(raw, path, value)
    file.write_text(yaml.safe_dump(raw))
    with pytest.raises(UsageError, match=said):
        read_dynamics(file)


def test_a_file_that_is_none_is_refused_before_a_run(tmp_path):
    with pytest.raises(UsageError, match="cannot read the dynamics .*nowhere.yaml"):
        RunConfig(("lift_pot",), dynamics=str(tmp_path / "nowhere.yaml")).checked()
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(UsageError, match="the file must be a mapping"):
        read_dynamics(tmp_path / "list.yaml")
