"""Embodiment files, what is sent, and how numbers that come back become joint targets."""

from __future__ import annotations

from dataclasses import replace

import drill_world
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench_tasks.errors import UsageError
from bench_tasks.robots.fr3 import HOME_RAD, JOINT_LIMITS_RAD
from bench_tasks.robots.kinematics import LIMIT_MARGIN_RAD, dual_arm
from policies.remote import embodiment
from policies.remote.actions import chunk_values, resampled
from policies.remote.codec import WireError, pack, pack_npy, unpack
from policies.remote.embodiment import Action, Embodiment, Gripper, Picture, Vector
from policies.remote.observations import picture, request
from sim.scene import CAMERAS

SCENE = drill_world.scene()
HOME = drill_world.HOME


def values(it: Embodiment, rows, state=None) -> np.ndarray:
    keys = it.action.vectors
    assert len(keys) == 1
    state = state or drill_world.state()
    return chunk_values(it, {keys[0].key[0]: np.asarray(rows, np.float64)}, state, SCENE)


def single(space="joint", mode="absolute", rate_hz=50.0, gripper=None, **more) -> Embodiment:
    part = "joints" if space == "joint" else "pose"
    action = Action(
        rate_hz, (Vector(("actions",), (f"left.{part}", "left.gripper")),), space, mode,
        gripper=gripper or Gripper(), **more,
    )  # fmt: skip
    return Embodiment("drill", {"left": tuple(range(7))}, action)


# -- files ---------------------------------------------------------------------------------------


def test_the_cameras_and_limits_are_those_of_the_simulation():
    assert embodiment.CAMERAS == CAMERAS
    arms = dual_arm()
    assert np.allclose(arms.lower - LIMIT_MARGIN_RAD, JOINT_LIMITS_RAD[:, 0])
    assert np.allclose(arms.upper + LIMIT_MARGIN_RAD, JOINT_LIMITS_RAD[:, 1])


@pytest.mark.parametrize(
    ("name", "size", "sent"),
    [
        ("aloha", 14, {"images", "state", "prompt"}),
        ("droid_left", 8, {"observation/exterior_image_1_left", "observation/wrist_image_left",
                           "observation/joint_position", "observation/gripper_position",
                           "prompt"}),
        ("droid_velocity_left", 8, {"observation/exterior_image_1_left",
                                    "observation/wrist_image_left",
                                    "observation/joint_position",
                                    "observation/gripper_position", "prompt"}),
        ("fr3_pair", 16, {"state", "command", "prompt", "seed"}),
        ("fr3_pair_images", 16, {"images", "state", "command", "prompt", "seed"}),
        ("gr00t_pair", 16, {"video", "state", "language"}),
        ("roboarena_left", 8, {"observation/exterior_image_0_left",
                               "observation/exterior_image_1_left",
                               "observation/wrist_image_left", "observation/joint_position",
                               "observation/cartesian_position", "observation/gripper_position",
                               "prompt"}),
    ],
)  # fmt: skip
def test_every_file_can_be_used(name, size, sent):
    it = embodiment.load(name)
    assert it.action_size == size
    frames = [tuple(drill_world.frame(camera) for camera in it.cameras)]
    message = request(it, drill_world.state(), frames, SCENE, 3)
    assert set(message) == sent
    pack_npy({**message, "seed": 0})
    restored = unpack(pack(message))
    for vector in it.state:
        found = restored
        for key in vector.key:
            found = found[key]
        assert found.shape == (it.size(vector),) and found.dtype == vector.dtype
    assert embodiment.builtin() == sorted(
        ["aloha", "droid_left", "droid_velocity_left", "fr3_pair", "fr3_pair_images", "gr00t_pair",
         "roboarena_left"]
    )  # fmt: skip


def test_droids_velocities_are_shares_of_a_fifth_of_a_rad_a_step():
    rows = np.tile([0.5, 0, 0, 0, 0, 0, 0, 0.9], (10, 1))
    found = values(embodiment.load("droid_velocity_left"), rows)
    assert len(found) == 26, "8 of its 10 actions at 15 Hz"
    assert np.allclose(np.diff(found[:, 0]), 0.5 * 0.2 * 15 * 0.02)
    assert found[-1, 7] == 0.0, "above a half is closed"
    with pytest.raises(WireError, match="faster than its limit of 2.62 rad/s"):
        values(embodiment.load("droid_velocity_left"), rows * [2, 1, 1, 1, 1, 1, 1, 1])


GOOD = (embodiment.FOLDER / "droid_left.yaml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("rate_hz: 15", "rate_hz: 15\n  frob: 1", "unknown key of action 'frob': choose from"),
        ("about:", "abuot:", "unknown key of the file 'abuot'"),
        ("rate_hz: 15", "", "action: rate_hz is missing"),
        ("rate_hz: 15", "rate_hz: fast", "rate_hz must be of type float, got 'fast'"),
        ("rate_hz: 15", "rate_hz: 0", "rate_hz must be 1 to 1000"),
        ("rate_hz: 15", "rate_hz: .nan", "rate_hz must be of type float"),
        ("left: [1, 2, 3, 4, 5, 6, 7]", "middle: [1]", "unknown arm 'middle'"),
        ("left: [1, 2, 3, 4, 5, 6, 7]", "left: [1, 1]", "different joints 1 to 7"),
        ("left: [1, 2, 3, 4, 5, 6, 7]", "left: [0]", "different joints 1 to 7"),
        ("camera: third", "camera: thrid", "unknown camera 'thrid'"),
        ("width: 224", "width: 3", "width must be 8 to 4096"),
        ("width: 224, ", "", "a picture's width must be 8 to 4096"),
        ("width: 224", "width: 224, layout: nchw", "unknown layout 'nchw'"),
        ("width: 224", "width: '224'", "width must be of type int"),
        ("parts: [left.joints, left.gripper]", "parts: [left.gripper]", "left.joints once"),
        ("parts: [left.joints, left.gripper]", "parts: [left.joints, right.gripper]",
         "unknown part 'right.gripper'"),
        ("parts: [left.joints, left.gripper]", "parts: [left.joints, left.joints]", "once"),
        ("parts: [left.joints]}", "parts: [left.knees]}", "unknown part 'left.knees'"),
        ("binary: true", "binary: 1", "binary must be of type bool"),
        ("closed: 1, open: 0, binary", "closed: 1, open: 1, binary", "must differ"),
        ("format_version: 1", "format_version: 2", "format_version: 1"),
        ("name: droid_left", "name: [", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_that_names_what_is_wrong(tmp_path, old, new, why):
    assert old in GOOD
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        embodiment.load(str(file))
    assert why in str(caught.value) and "\n" not in str(caught.value)


# -- what is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["pad", "crop", "stretch"])
def test_pictures_arrive_upright_in_colour_order_and_size(fit):
    wanted = Picture(("x",), "head", 40, 40, fit=fit)
    pixels = picture(wanted, drill_world.frame("head"))  # 64 x 48, its upper left quarter red
    assert pixels.shape == (40, 40, 3) and pixels.dtype == np.uint8
    assert (pixels[12, 12] == [255, 0, 0]).all(), "RGB, upright, not mirrored"
    for row, column in ((12, 28), (28, 12), (28, 28)):
        assert (pixels[row, column] == [0, 0, 255]).all()
    assert (pixels[1] == 0).all() == (fit == "pad"), "bars above and below only when padded"
    turned = picture(replace(wanted, rotate_180=True), drill_world.frame("head"))
    assert np.array_equal(turned, pixels[::-1, ::-1])
    chw = picture(replace(wanted, layout="chw"), drill_world.frame("head"))
    assert chw.shape == (3, 40, 40) and np.array_equal(chw.transpose(1, 2, 0), pixels)


def test_state_is_sent_in_order_and_with_the_gripper_sign():
    state = drill_world.state()
    state.joint_position[:] = np.arange(14) / 10
    state.gripper_opening[:] = [0.08, 0.02]
    aloha = request(
        replace(embodiment.load("aloha"), images=()), state, [], SCENE, 0
    )["state"]  # fmt: skip
    left, right = [0.0, 0.1, 0.3, 0.4, 0.5, 0.6], [0.7, 0.8, 1.0, 1.1, 1.2, 1.3]
    assert np.allclose(aloha, [*left, 1.0, *right, 0.25]) and aloha.dtype == np.float32
    droid = request(replace(embodiment.load("droid_left"), images=()), state, [], SCENE, 0)
    assert droid["observation/gripper_position"] == [0.0], "open is 0 with DROID"


def test_a_pose_is_sent_in_the_frame_of_the_arms_base():
    it = replace(embodiment.load("roboarena_left"), images=())
    pose = request(it, drill_world.state(), [], SCENE, 0)["observation/cartesian_position"]
    assert np.allclose(pose[:3], [0.3, 0.0, 0.5]), "the left base stands at y = 0.35"
    assert np.allclose(np.abs(pose[3:]), [np.pi, 0, 0], atol=1e-6)


# -- what comes back -----------------------------------------------------------------------------


def row(joint_1: float, opening: float = 0.08) -> list[float]:
    return [joint_1, *HOME_RAD[1:], opening]


def test_a_slower_rate_is_followed_in_a_straight_line():
    found = values(single(rate_hz=15), [row(0.03), row(0.06), row(0.03)])
    assert len(found) == 10, "3 actions of 66.7 ms are 10 periods of 20 ms"
    at = np.arange(1, 11) * 0.02 * 15
    assert np.allclose(found[:, 0], np.interp(at, [0, 1, 2, 3], [0, 0.03, 0.06, 0.03]))
    assert np.array_equal(found[:, 8:], np.tile(HOME[8:], (10, 1))), "the other arm stays put"


def test_a_faster_rate_is_thinned_and_what_is_left_over_is_not_executed():
    found = values(single(rate_hz=200), [row(0.001 * k) for k in range(1, 8)])
    assert np.allclose(found[:, 0], [0.004]), "7 actions of 5 ms hold one period of 20 ms"
    with pytest.raises(WireError, match="less than one control period"):
        values(single(rate_hz=200), [row(0.0)])


def test_a_grip_is_not_half_done_in_between():
    targets = np.tile(HOME, (2, 1))
    targets[1, 7] = 0.0
    found = resampled(HOME, targets, 0.1, 0.02)
    assert found[:, 7].tolist() == [0.08] * 5 + [0.0] * 5


def test_only_as_many_actions_are_executed_as_the_file_says():
    assert len(values(single(execute=3), [row(0.01)] * 8)) == 3


@pytest.mark.parametrize(
    ("mode", "rows", "expected"),
    [
        ("delta", [row(0.01), row(0.02)], [0.01, 0.03]),
        ("delta_from_start", [row(0.01), row(0.02)], [0.015, 0.025]),
        ("velocity", [row(0.5), row(1.0)], [0.01, 0.03]),
    ],
)
def test_relative_actions(mode, rows, expected):
    rows = np.array(rows)
    rows[:, 1:7] = 0.0
    state = drill_world.state()
    state.joint_position[0] = 0.005  # the arm lags behind its command
    found = values(single(mode=mode), rows, state)
    assert np.allclose(found[:, 0], expected)
    half = values(single(mode=mode, scale=0.5), rows, state)[:, 0]
    begun = 0.005 if mode == "delta_from_start" else 0.0
    assert np.allclose(half - begun, (np.array(expected) - begun) / 2)


@pytest.mark.parametrize("frame", ["base", "world"])
@pytest.mark.parametrize("rotation", embodiment.ROTATIONS)
def test_poses_become_joints_that_reach_them(frame, rotation):
    arms = dual_arm()
    target = arms.forward("left", HOME_RAD) + [0.004, 0.003, -0.002, 0, 0, 0, 0]
    quaternion = np.roll(target[3:], -1)
    numbers = {
        "quaternion_wxyz": target[3:], "quaternion_xyzw": quaternion,
        "rotvec": Rotation.from_quat(quaternion).as_rotvec(),
        "rpy": Rotation.from_quat(quaternion).as_euler("xyz"),
    }[rotation]  # fmt: skip
    position = target[:3] - ([0, 0.35, 0] if frame == "base" else 0)
    it = single("cartesian", rotation=rotation, frame=frame)
    found = values(it, [[*position, *numbers, 0.08]])
    reached = arms.forward("left", found[0, :7])
    assert np.allclose(reached, target, atol=1e-3)


def test_a_shift_of_the_hand_is_along_the_axes_of_the_base():
    arms = dual_arm()
    begun = arms.forward("left", HOME_RAD)
    rows = [[0.002, 0.0, 0.0, 0.0, 0.0, 0.01, 0.08]] * 3
    found = values(single("cartesian", "delta"), rows)
    reached = arms.forward("left", found[-1, :7])
    assert np.allclose(reached[:3] - begun[:3], [0.006, 0, 0], atol=1e-3)
    turn = Rotation.from_quat(np.roll(reached[3:], -1)) * Rotation.from_quat(
        np.roll(begun[3:], -1)
    ).inv()
    assert np.allclose(turn.as_rotvec(), [0, 0, 0.03], atol=2e-3)


def test_a_pose_that_is_out_of_reach_is_refused():
    with pytest.raises(WireError, match="action 0: the left arm cannot get to"):
        values(single("cartesian"), [[2.0, 0, 0.3, np.pi, 0, 0, 0.08]])


@pytest.mark.parametrize(
    ("gripper", "number", "opening"),
    [
        (Gripper(closed=1, open=0), 0.25, 0.06), (Gripper(closed=-1, open=1), 0.0, 0.04),
        (Gripper(closed=1, open=0, binary=True), 0.4, 0.08),
        (Gripper(closed=1, open=0, binary=True), 0.6, 0.0),
        (Gripper(closed=0, open=1), 1.04, 0.08), (Gripper(binary=True), 0.03, 0.0),
    ],
)  # fmt: skip
def test_the_sign_and_range_of_the_gripper(gripper, number, opening):
    found = values(single(gripper=gripper), [row(0.0, number)] * 40)
    assert found[-1, 7] == pytest.approx(opening)
    assert np.abs(np.diff(np.append(0.08, found[:, 7]))).max() <= 0.2 * 0.02 + 1e-12


def test_a_number_just_beyond_a_limit_is_clipped_and_more_is_refused():
    low = JOINT_LIMITS_RAD[3, 0]
    state = drill_world.state(np.array([*HOME_RAD[:3], low, *HOME_RAD[4:], 0.08] * 2))
    near = [*HOME_RAD[:3], low - 5e-4, *HOME_RAD[4:], 0.08]
    assert values(single(), [near], state)[0, 3] == low
    with pytest.raises(WireError, match="left joint 4 at"):
        values(single(), [[*HOME_RAD[:3], low - 2e-3, *HOME_RAD[4:], 0.08]], state)


def test_the_codec_brings_back_what_was_sent_and_nothing_but_numbers():
    message = {"a": np.arange(6, dtype=">i2").reshape(2, 3), "b": np.float32(1.5), "c": [1, "x"],
               "d": np.zeros((0, 3)), "e": np.array(True)}  # fmt: skip
    found = unpack(pack(message))
    for key in "ade":
        assert found[key].dtype == message[key].dtype and np.array_equal(found[key], message[key])
    assert found["b"] == 1.5 and found["b"].dtype == np.float32 and found["c"] == [1, "x"]
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(unpack(pack_npy({"a": fortran}))["a"], fortran)
    for bad in (np.array([None]), np.array(["x"]), np.zeros(2, complex), object()):
        with pytest.raises(WireError, match="cannot be sent"):
            pack({"a": bad})
