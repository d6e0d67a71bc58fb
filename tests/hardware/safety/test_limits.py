"""The file of limits: all of it or one line that says what is wrong."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml

from bench_tasks.errors import UsageError
from hardware.safety.limits import read_limits, shipped_limits

TEXT = (files("hardware.limits") / "fr3_pair.yaml").read_text(encoding="utf-8")


def changed(tmp_path, change) -> str:
    raw = yaml.safe_load(TEXT)
    change(raw)
    path = tmp_path / "limits.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return str(path)


def test_the_shipped_ones_are_read_by_name_and_by_path(tmp_path):
    assert "fr3_pair" in shipped_limits()
    assert read_limits("fr3_pair").joint_names[7] == "right_fr3_joint1"
    assert read_limits(changed(tmp_path, lambda raw: None)).robot == "fr3_pair"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda raw: raw.pop("joints"), "joints is missing"),
        (lambda raw: raw.update(speed=1), "unknown key 'speed'"),
        (lambda raw: raw["joints"][2].update(speed=1), r"unknown key in joints\[2\] 'speed'"),
        (lambda raw: raw["joints"][2].pop("jerk_rad_s3"), r"joints\[2\]\.jerk_rad_s3 is missing"),
        (lambda raw: raw["joints"].pop(), "the 7 of one arm or the 17 of waist and arms, got 6"),
        (lambda raw: raw["joints"][0].update(velocity_rad_s=0), "velocity_rad_s must be a numb"),
        (lambda raw: raw["joints"][0].update(velocity_rad_s="2"), "from 0.01 to 50, got '2'"),
        (lambda raw: raw["joints"][0].update(torque_nm=float("nan")), "torque_nm must be a number"),
        (lambda raw: raw["joints"][0].update(position_rad=[2, -2]), "2 must be less than -2"),
        (lambda raw: raw["joints"][0].update(position_rad=[2]), "must be a list of 2"),
        (lambda raw: raw["commands"].update(share=1.5), r"share must be in \[0.01, 1\], got 1.5"),
        (lambda raw: raw["commands"].update(max_actions=True), "max_actions must be a whole"),
        (lambda raw: raw["workspace_m"].update(left=[]), "workspace_m.left must be a list"),
        (lambda raw: raw["workspace_m"].pop("right"), "workspace_m.right is missing"),
        (lambda raw: raw["workspace_m"].update(right=[[[0.5, -0.7, 0], [0.75, 0.45, 0.8]]]),
         r"workspace_m.right must hold the hand's starting pose, \(0.307, -0.350, 0.487\)"),
        (lambda raw: raw.update(format_version=2), "format_version must be 1, got 2"),
        (lambda raw: raw.update(measured=[1]), "measured must be a mapping"),
        (lambda raw: raw["joints"][3].update(position_rad=[-174.3, -8.7]),
         r"joints\[3\].position_rad\[0\] must be a number from -7 to 7, got -174.3"),
        (lambda raw: raw["joints"][3].update(position_rad=[-3.2, -0.1]), "position_rad of left_"
         "fr3_joint4 is wider than that of fr3_pair: the robot's own limits may only be made narr"),
        (lambda raw: raw["joints"][0].update(velocity_rad_s=15), "velocity_rad_s of left_fr3_j"),
        (lambda raw: raw["joints"][0].update(acceleration_rad_s2=573), "acceleration_rad_s2 of"),
        (lambda raw: raw["joints"][0].update(jerk_rad_s3=9e4), "jerk_rad_s3 of left_fr3_joint1"),
        (lambda raw: raw["joints"][5].update(torque_nm=120), "torque_nm of left_fr3_joint6 is"),
        (lambda raw: raw["joints"][0].update(near_upper=[0.3, 12, 3]), "near_upper of left_fr3"),
        (lambda raw: raw["joints"][0].update(near_lower=[0, 12, -2.75]), "near_lower of left_fr"),
        (lambda raw: raw["joints"][1].update(near_lower=[9, 12, -2.75]), "near_lower of left_fr3_"
         "joint2 lets it not even move in the middle of its range"),
        (lambda raw: raw["joints"][5].update(position_rad=[2.0, 2.1]), "position_rad of left_fr3_"
         "joint6, 2 to 2.1, is without .*, where it starts"),
        (lambda raw: raw["commands"].update(max_actions=10**9), "a whole number from 1 to 1000"),
        (lambda raw: raw["workspace_m"].update(left=[[[0, 0, 0], [1, 1, 1e-9]]]),
         r"workspace_m.left\[0\]: between 0 and 1e-09 must be 0.01 or more"),
        (lambda raw: raw.update(gripper_opening_m=[0, 0.09]), "than that of fr3_pair, 0 to 0.08"),
        (lambda raw: raw["commands"].update(control_period_s=20), "a number from 0.001 to 0.5"),
        (lambda raw: raw["commands"].update(jump_rad=17), "a number from 0.001 to 1, got 17"),
        (lambda raw: raw["commands"].update(stop_share=0.001), "from 0.1 to 1, got 0.001"),
        (lambda raw: raw["workspace_m"].update(left=[[[-100, -750, 0], [1000, 1150, 1200]]]),
         r"workspace_m.left\[0\]\[0\]\[0\] must be a number from -5 to 5, got -100"),
        (lambda raw: raw["distance_m"].update(arms=-5), "arms must be a number from -0.02 to 1"),
        (lambda raw: raw["measured"].update(tracking_rad=2.9), "from 0.001 to 1, got 2.9"),
        (lambda raw: raw["measured"].update(lag_s=100), "lag_s must be a number from 0.001 to"),
        (lambda raw: raw["measured"].update(velocity_share=100), "velocity_share must be a numb"),
        (lambda raw: raw["measured"].update(contact_force_n=1e9), "contact_force_n must be a num"),
        (lambda raw: raw["measured"].update(state_age_s=100), "state_age_s must be a number from"),
        (lambda raw: raw.update(robot="my_pair"), "unknown robot 'my_pair': choose from fr3_pair"),
        (lambda raw: raw.update(robot="g1"), "g1 has 17 joints that are commanded, these .* 14"),
        (lambda raw: raw["joints"].reverse(), "left_fr3_joint7 is where left_fr3_joint1 should"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, change, says):
    path = changed(tmp_path, change)
    with pytest.raises(UsageError, match=says) as error:
        read_limits(path)
    assert path in str(error.value) and "\n" not in str(error.value)


def test_another_name_does_not_make_another_robot_of_a_humanoid(tmp_path):
    """Its distances would be looked for in the pair's geometry."""
    raw = yaml.safe_load((files("hardware.limits") / "g1.yaml").read_text(encoding="utf-8"))
    path = tmp_path / "mine.yaml"
    for robot, says in (
        ("my_g1", "unknown robot 'my_g1': choose from "),
        ("fr3_pair", "fr3_pair has 14 joints that are commanded, these are for 17"),
    ):
        path.write_text(yaml.safe_dump({**raw, "robot": robot}), encoding="utf-8")
        with pytest.raises(UsageError, match=says) as error:
            read_limits(str(path))
        assert "\n" not in str(error.value)


def test_no_such_file_or_name(tmp_path):
    with pytest.raises(UsageError, match="fr3_pair"):
        read_limits("fr4_pair")
    with pytest.raises(UsageError, match="cannot read"):
        read_limits(str(tmp_path / "none.yaml"))


def test_narrower_ones_are_taken(tmp_path):
    def change(raw):
        raw["joints"][0].update(position_rad=[-1.0, 1.0], velocity_rad_s=1.0, torque_nm=20.0,
                                near_lower=[0.3, 12.0, -1.0])  # fmt: skip
        raw.update(gripper_opening_m=[0.01, 0.05])

    limits = read_limits(changed(tmp_path, change))
    assert limits.velocity[[0, 7]].tolist() == [1.0, 1.0] and limits.position[7, 1] == 1.0
    assert limits.speed(limits.position[None, :, 0], limits.position[None, :, 0] > 9)[0, 0] == 0.0
