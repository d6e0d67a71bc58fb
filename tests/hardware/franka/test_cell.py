"""The file that describes a cell: what is wrong in it is said in one line."""

import sys

import pytest
import yaml

from bench_tasks.errors import UsageError
from hardware.franka.cell import driver_python, read_cell, shipped_cells


def changed(tmp_path, name="cell", **changes):
    """A shipped cell with `a__b=value` put at a.b (None: left out), as a file."""
    raw = read_cell(name).raw
    for path, value in changes.items():
        *above, key = path.split("__")
        place = raw
        for name in above:
            place = place[name]
        if value is None:
            del place[key]
        else:
            place[key] = value
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(raw))
    return str(file)


@pytest.mark.parametrize("name", ["cell", "standin"])
def test_shipped_cells_are_whole(name):
    assert name in shipped_cells()
    cell = read_cell(name)
    assert cell.frame("pot") == "object/pot"
    assert cell.arm("left")["address"] != cell.arm("right")["address"]
    assert set(cell.cameras) == {"head", "left_wrist", "right_wrist"}


def test_the_simulated_cell_is_on_this_machine_and_the_other_is_not():
    for arm in ("left", "right"):
        assert read_cell("standin").arm(arm)["address"].startswith("127.")
        assert not read_cell("cell").arm(arm)["address"].startswith("127.")
    assert read_cell("cell").raw["confirm_before_home"] is True
    assert read_cell("standin").arm("left")["simulated"] is True
    assert read_cell("cell").arm("left")["simulated"] is False


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arms__speed": 1.5}, r"arms.speed must be in \[0.01, 1\], got 1.5"),
        ({"arms__speeed": 1.0}, "unknown key in arms 'speeed': choose from"),
        ({"hands": None}, "hands is missing"),
        ({"simulated": True}, "simulated must be false: the address of the left arm, 172.16.0.2,"),
        ({"simulated": True, "addresses": {"left": "127.0.0.3", "right": "robot"}}, "arm, robot"),
        ({"hands__home": 1}, "hands.home must be true or false, got 1"),
        ({"arms__control": "torque"}, "unknown arms.control 'torque': choose from cartesian_imp"),
        ({"arms__control": "cartesian_pose"}, "cartesian_pose is not offered: pylibfranka sends no "
         "elbow .* choose from position, impedance, cartesian_impedance"),
        ({"arms__stiffness": [1.0] * 6}, "arms.stiffness must be a list of 7"),
        ({"arms__payload__mass_kg": float("nan")}, "mass_kg must be a number from 0 to 10, got"),
        ({"addresses__left": "172.16.1.2"}, "both arms have the address 172.16.1.2"),
        ({"objects__frame": "pot"}, "objects.frame must hold {name}, got 'pot'"),
        ({"format_version": 2}, "format_version must be 1, got 2"),
        ({"cameras__head__image": "/head/image_raw"}, "cameras.head: /head/image_raw is what"),
        ({"addresses__left": "172.16.1.2 "}, "addresses.left must be a name without spaces"),
        ({"addresses__left": "172.16.01.2"}, "'172.16.01.2' is no address of a control box"),
        ({"addresses__left": "::ffff:172.16.1.2"}, "both arms have the address ::ffff:172.16.1.2"),
        ({"addresses": {"left": "Robot", "right": "robot"}}, "both arms have the address Robot"),
        ({"arms__max_jump_rad": 8.6}, "max_jump_rad must be a number from 0.001 to 1, got 8.6"),
        ({"arms__external__force_n": 3e6}, "external.force_n must be a number from 0.5 to 300"),
        ({"arms__stiffness": [6e5] * 7}, r"stiffness\[0\] must be a number from 0.1 to 5000"),
        ({"arms__collision__upper_force_n": [4e4] * 6}, r"upper_force_n\[0\] must be a number"),
        ({"arms__payload__mass_kg": -3}, "mass_kg must be a number from 0 to 10, got -3"),
        ({"arms__payload__inertia_kgm2": [0, 1, 0] * 3}, "inertia_kgm2 is that of no body"),
        ({"arms__payload__inertia_kgm2": [0.1, 0, 0, 0, 0.01, 0, 0, 0, 0.01]}, "of no body"),
        ({"cameras": {}}, "cameras must hold something, it is empty"),
        ({"cameras__head__image": "head/image_raw"}, "cameras.head.image must be a ROS name in f"),
        ({"objects__frame": "/object/{name}"}, "must be a tf frame, without spaces or / in front"),
        ({"arms__payload__inertia_kgm2": [-0.1, 0, 0, 0, 0.1, 0, 0, 0, 0.1]}, "of no body"),
        ({"hands__max_width_m": 80}, "max_width_m must be a number from 0.001 to 0.2, got 80"),
        ({"layout__position_m": 20}, "position_m must be a number from 0.0001 to 1, got 20"),
        ({"objects__age_s": 500}, "age_s must be a number from 0.001 to 60, got 500"),
        ({"arms__collision__lower_force_n": [90.0] * 6}, "lower_force_n must not be more than"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, changes, said):
    with pytest.raises(UsageError, match=said) as caught:
        read_cell(changed(tmp_path, **changes))
    assert "\n" not in str(caught.value) and "mine.yaml" in str(caught.value)


@pytest.mark.parametrize("name", ["franka_ros2", "standin_ros2"])
def test_cells_that_franka_ros2_drives_have_names_for_each_arm(name):
    assert name in shipped_cells()
    cell = read_cell(name)
    assert cell.by_ros and not read_cell("cell").by_ros
    for arm in ("left", "right"):
        for settings in (cell.arm(arm), cell.hand(arm)):
            assert settings["arm"] == arm
            assert settings["names"]["namespace"] == f"/{arm}"
    assert cell.arm("left")["lead_s"] >= 0.02 and cell.hand("left")["force_n"] > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"driver": "ros"}, "unknown driver 'ros': choose from franka_ros2, pylibfranka"),
        ({"driver": "pylibfranka"}, "unknown key"),
        ({"arms__follow_rad": 0}, "arms.follow_rad must be a number from 0.001 to 1, got 0"),
        ({"arms__payload": {}}, "unknown key in arms 'payload'"),
        ({"names__left__hand": None}, "names.left.hand is missing"),
        ({"names__left__namespace": "left"}, "must be a ROS namespace, / in front"),
        ({"names__left__namespace": "/right"}, "both arms have the controller /right/fr3_arm_cont"),
        ({"names__left__hand": "/right/franka_gripper"}, "both arms have the hand /right/franka_"),
        ({"names__left__joint_states": "/right/franka/joint_states"},
         "both arms have the joints fr3_joint on /right/franka/joint_states"),
    ],
)
def test_what_is_wrong_in_one_is_named_in_one_line(tmp_path, changes, said):
    with pytest.raises(UsageError, match=said) as caught:
        read_cell(changed(tmp_path, "franka_ros2", **changes))
    assert "\n" not in str(caught.value)


def test_without_the_messages_it_says_where_they_come_from(monkeypatch):
    from hardware.franka import cell as module

    cell = read_cell("franka_ros2")
    monkeypatch.setattr(module, "MESSAGES", ("json", "no_such_msgs"))
    with pytest.raises(UsageError, match="does not know no_such_msgs.*source.*franka_ros2.*make"):
        driver_python(cell)
    monkeypatch.setattr(module, "MESSAGES", ("json",))
    assert driver_python(cell) == sys.executable


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="unknown cell 'x': choose from .*cell, .*standin"):
        read_cell("x")


def test_without_the_drivers_packages_it_says_how_to_get_them(tmp_path):
    cell = read_cell(changed(tmp_path, python=str(tmp_path / "none/python")))
    with pytest.raises(UsageError, match="make franka"):
        driver_python(cell)
