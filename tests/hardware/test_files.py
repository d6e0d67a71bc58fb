"""Every value of every file of a robot, one after the other, made into what nobody can mean."""

import json
import math
import pickle
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from bench_tasks import yaml_shape
from bench_tasks.errors import UsageError
from hardware.franka import calibration
from hardware.franka.cell import read_cell as read_franka
from hardware.safety.limits import read_limits
from hardware.unitree import joints
from hardware.unitree.cell import read_cell as read_unitree

READERS = {
    "hardware.franka": read_franka, "hardware.unitree": read_unitree,
    "hardware.limits": read_limits,
}  # fmt: skip
FILES = [(package, name) for package in READERS for name in yaml_shape.shipped(package)]
OTHERS = (None, [], {}, [None], {"a": 1})
"""Neither a number, nor a text, nor true or false."""
NO_NUMBER = (*OTHERS, True, "1", "", math.nan, math.inf, -math.inf, 1e9, -1e9, 10**9, -(10**9))
NO_TEXT = (*OTHERS, True, 0, 1.5, " ", "a b", "\n")
NO_FLAG = (*OTHERS, 0, 1, "true", "", 1.0)
NEARLY_0 = (1e-9, -1e-9, 0)
MAY_BE_0 = {"position_rad", "near_lower", "near_upper", "gripper_opening_m", "workspace_m",
            "distance_m", "friction_nm", "payload", "domain", "pose", "q",
            "grip_m", "seen"}  # fmt: skip
MAY_BE_EMPTY = {"python", "calibration", "topic", "accept_cyclonedds"}
MAY_HOLD_SPACES = {"python", "calibration"}
MAY_BE_LEFT_OUT = {"cameras"}
"""Not they, but any one in them."""


def copied(value):
    return pickle.loads(pickle.dumps(value))  # an order of magnitude faster than deepcopy


def places(value, at=()):
    """All that is in it: the ways there."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for k in range(min(2, len(value))):  # the others are as these
            yield from places(value[k], (*at, k))


def put(raw, at, value):
    """A copy of it with a value at that place; `...` leaves it out."""
    found = copied(raw)
    place = found
    for key in at[:-1]:
        place = place[key]
    if value is ...:
        del place[at[-1]]
    else:
        place[at[-1]] = value
    return found


def nonsense(raw):
    """Each is wrong by one value: (where, what is there instead, all of it)."""
    for at in places(raw):
        here = raw
        for key in at:
            here = here[key]
        if isinstance(here, dict):
            yield at, "another key", put(raw, (*at, "no_such_key"), 1)
            wrong = (None, [], {}, [here], 3, "text", True)
        elif isinstance(here, list):
            wrong = (None, [], {}, 3, "text", here[:-1], [*here, None])
        elif isinstance(here, bool):
            wrong = NO_FLAG
        elif isinstance(here, str):
            wrong = [value for value in NO_TEXT if not (
                value == "a b" and set(at) & MAY_HOLD_SPACES)]  # fmt: skip
            if not set(at) & MAY_BE_EMPTY:
                wrong.append("")
        else:
            wrong = [*NO_NUMBER, *(() if set(at) & MAY_BE_0 else NEARLY_0)]
        if len(at) == 0:
            continue
        for value in wrong:
            yield at, value, put(raw, at, value)
        if not (len(at) == 2 and at[0] in MAY_BE_LEFT_OUT):
            yield at, "nothing", put(raw, at, ...)


@pytest.mark.parametrize(("package", "name"), FILES)
def test_no_value_that_makes_no_sense_is_taken(package, name, monkeypatch):
    own = {n: yaml.safe_load((files(package) / f"{n}.yaml").read_text()) for p, n in FILES
           if p == package}  # fmt: skip
    now = {}
    monkeypatch.setattr(
        yaml_shape, "read_yaml", lambda path: copied(now.get(path.name) or own[path.stem])
    )
    now["mine.yaml"] = own[name]
    READERS[package]("mine.yaml")
    taken, count = [], 0
    for at, value, raw in nonsense(own[name]):
        now["mine.yaml"], count = raw, count + 1
        try:
            READERS[package]("mine.yaml")
        except UsageError as error:
            assert "\n" not in str(error) and "mine.yaml" in str(error), error
            continue
        taken.append((".".join(map(str, at)), value))
    assert taken == [] and count > 300


MOUNTS = {
    "format_version": 1, "cameras": {
        "head": {"parent": "world", "pose": [0.1, -0.1, 0.75, 0.5, -0.5, 0.5, -0.5]},
        "left_wrist": {"parent": "left", "pose": [0.1, -0.02, -0.06, 1.0, 0.0, 0.0, 0.0]},
    },
}  # fmt: skip


def test_no_calibration_is_taken_that_no_camera_can_have(monkeypatch):
    def read(raw):
        monkeypatch.setattr(calibration, "read_yaml", lambda path: raw)
        return calibration.read_calibration(Path("calibration.yaml"))

    def refused(raw, said="calibration.yaml: "):
        with pytest.raises(UsageError, match=said) as caught:
            read(raw)
        assert "\n" not in str(caught.value)

    assert set(read(MOUNTS)) == {"head", "left_wrist"}
    for _, _, raw in nonsense(MOUNTS):
        refused(raw)
    far = ("cameras", "head", "pose", 0)
    refused(put(MOUNTS, far, 500), "cameras.head.pose must be from 0 to 10 m away, got 500 m")
    near = ("cameras", "left_wrist", "pose", 0)
    refused(put(MOUNTS, near, 2.0), "cameras.left_wrist.pose must be from 0 to 1 m away, got 2.")
    refused(put(MOUNTS, ("cameras", "head", "pose", 3), 0.3), "unit quaternion, got one of length")
    refused(put(MOUNTS, ("cameras", "a b"), MOUNTS["cameras"]["head"]), "a key in cameras must be")


POSE = [0.1, -0.1, 0.75, 0.5, -0.5, 0.5, -0.5]
LOOKS = {
    calibration: {
        "format_version": 1, "camera": "head", "arm": "left", "grip_m": 0.02,
        "looks": [{"q": [0.1] * 14, "opening": [0.02, 0.08], "seen": POSE}] * 2,
    },
    joints: {"format_version": 1, "arm": "left", "looks": [{"q": [0.1] * 17, "seen": POSE}] * 2},
}  # fmt: skip


@pytest.mark.parametrize("module", LOOKS, ids=["franka", "unitree"])
def test_no_look_is_taken_that_nobody_can_have_had(module, tmp_path):
    path, taken = tmp_path / "looks.json", []
    path.write_text(json.dumps(LOOKS[module]))
    assert module.read_evidence(path).q.shape[0] == 2
    for at, value, raw in nonsense(LOOKS[module]):
        path.write_text(json.dumps(raw))
        try:
            module.read_evidence(path)
        except UsageError as error:
            assert "\n" not in str(error) and "looks.json" in str(error)
            continue
        taken.append((at, value))
    # A hand that says millimetres is found by the check-up; one look less is another recording.
    assert {at[2] if at[2:] else at for at, _ in taken} <= {"opening", ("looks",), ("looks", 0),
                                                           ("looks", 1)}, taken  # fmt: skip
    assert all(math.isfinite(value) for at, value in taken if "opening" in at), taken
