"""The Unitree G1 with 29 joints and rubber hands: names, limits, gains, and its model file.

Joint order is that of the vendor's SDK (motor 0 to 28): left leg, right leg, waist, left arm,
right arm.
"""

from __future__ import annotations

import importlib.util
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.vocabulary import ARMS

__all__ = [
    "ARMATURE", "DAMPING", "DEFAULT_RAD", "DEX3_RAD", "EFFORT_NM", "HOME_RAD", "JOINT_NAMES",
    "KD", "KP", "LEGS", "LIMITS_RAD", "MAX_VELOCITY", "PELVIS", "TCP_POSE", "UPPER_KD",
    "UPPER_KP", "balance_models", "mjcf",
]  # fmt: skip

PELVIS = "pelvis"
"""The floating base: its body in the model, and what it is called among a scene's objects."""
LEGS = 12
"""The first joints are the legs', which the balance policy moves."""
WAIST = 3

_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_WAIST = ("waist_yaw", "waist_roll", "waist_pitch")
_ARM = (
    "shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch",
    "wrist_yaw",
)
JOINT_NAMES = tuple(
    f"{name}_joint"
    for name in (
        *(f"{side}_{part}" for side in ARMS for part in _LEG),
        *_WAIST,
        *(f"{side}_{part}" for side in ARMS for part in _ARM),
    )
)

_LIMITS = {
    "hip_pitch": (-2.5307, 2.8798), "hip_roll": (-0.5236, 2.9671), "hip_yaw": (-2.7576, 2.7576),
    "knee": (-0.087267, 2.8798), "ankle_pitch": (-0.87267, 0.5236),
    "ankle_roll": (-0.2618, 0.2618), "waist_yaw": (-2.618, 2.618), "waist_roll": (-0.52, 0.52),
    "waist_pitch": (-0.52, 0.52), "shoulder_pitch": (-3.0892, 2.6704),
    "shoulder_roll": (-1.5882, 2.2515), "shoulder_yaw": (-2.618, 2.618),
    "elbow": (-1.0472, 2.0944), "wrist_roll": (-1.97222, 1.97222),
    "wrist_pitch": (-1.61443, 1.61443), "wrist_yaw": (-1.61443, 1.61443),
}  # fmt: skip


def _limits(joint: str) -> tuple[float, float]:
    """Of the left side; a roll of the right side is the mirror image."""
    part = joint.removesuffix("_joint")
    low, high = _LIMITS[part.removeprefix("left_").removeprefix("right_")]
    if part in ("right_hip_roll", "right_shoulder_roll"):
        return -high, -low
    return low, high


LIMITS_RAD = np.array([_limits(name) for name in JOINT_NAMES])
"""(29, 2) position limits, those of the model (a test holds them equal)."""

_MOTORS = {
    "5020": (0.003609725, 25.0, 37.0), "7520_14": (0.01017752004, 88.0, 32.0),
    "7520_22": (0.025101925, 139.0, 20.0), "4010": (0.00425, 5.0, 22.0),
    "two 5020": (0.00721945, 50.0, 37.0),
}  # fmt: skip
"""Armature (kg m2), effort limit (Nm) and velocity limit (rad/s) of each motor, as in mjlab's
unitree_g1/g1_constants.py (from Unitree); ankles, waist roll and waist pitch are driven by two."""


def _motor(joint: str) -> tuple[float, float, float]:
    for kind, parts in {
        "7520_22": ("hip_roll", "knee"), "7520_14": ("hip_pitch", "hip_yaw", "waist_yaw"),
        "two 5020": ("ankle", "waist"), "4010": ("wrist_pitch", "wrist_yaw"),
    }.items():  # fmt: skip
        if any(part in joint for part in parts):
            return _MOTORS[kind]
    return _MOTORS["5020"]


ARMATURE, EFFORT_NM, MAX_VELOCITY = np.array([_motor(name) for name in JOINT_NAMES]).T
KP = ARMATURE * (10.0 * 2.0 * math.pi) ** 2
KD = 2.0 * 2.0 * ARMATURE * 10.0 * 2.0 * math.pi
"""Motor gains (29,), Nm/rad and Nm s/rad, for 10 Hz at a damping ratio of 2: those that the balance
policies were trained with and carry as metadata."""

_WRIST = np.array(["wrist" in name for name in JOINT_NAMES[LEGS:]])
_IS_WAIST = np.arange(len(JOINT_NAMES) - LEGS) < WAIST
UPPER_KP = np.where(_IS_WAIST, 300.0, np.where(_WRIST, 40.0, 80.0))
UPPER_KD = np.where(_IS_WAIST, 5.0, np.where(_WRIST, 1.5, 3.0))
"""Gains (17,) of waist and arms, stiffer than the policy's: those that Unitree's own teleoperation
(xr_teleoperate, robot_arm.py) gives arms and wrists; gravity is fed forward besides."""
DAMPING = np.concatenate([np.full(LEGS, 8.0), UPPER_KD])
"""Nm s/rad (29,) of motors that only resist: legs as in Unitree's examples."""
_LEFT_DEX3 = np.array([
    (-1.0472, 1.0472), (-0.724312, 1.0472), (0.0, 1.74533),
    (-1.5708, 0.0), (-1.74533, 0.0), (-1.5708, 0.0), (-1.74533, 0.0),
])  # fmt: skip
DEX3_RAD = {"left": _LEFT_DEX3, "right": 0.0 - _LEFT_DEX3[:, ::-1]}
"""Ranges (7, 2) of the joints of a Dex3 hand in the order of its motors: thumb 0 to 2, middle and
index finger 0 and 1 (MuJoCo Menagerie, unitree_g1/g1_with_hands.xml)."""

DEFAULT_RAD = np.array(
    [
        *(-0.312, 0.0, 0.0, 0.669, -0.363, 0.0) * 2, 0.0, 0.0, 0.0,
        0.2, 0.2, 0.0, 0.6, 0.0, 0.0, 0.0, 0.2, -0.2, 0.0, 0.6, 0.0, 0.0, 0.0,
    ]
)  # fmt: skip
"""The posture (29,) that the balance policies take joint positions from (holosoma-inference)."""

HOME_RAD = np.array(
    [0.0, 0.0, 0.0, 0.3, 0.2, 0.0, -0.6, 0.0, 0.0, 0.0, 0.3, -0.2, 0.0, -0.6, 0.0, 0.0, 0.0]
)
"""Waist and arms (17,) at the start of an episode: hands in front, above the highest table."""

TCP_POSE = np.array([0.08, 0.0, 0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0])
"""TCP in a wrist's last link: at the model's palm site, z out of the hand (the link's x), y along
the link's y, which is the palm's normal."""


def _package(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            f"the humanoid needs {module}: pip install --no-deps -r requirements/humanoid.txt"
        )
    return Path(spec.submodule_search_locations[0])


def check_installed() -> None:
    """UsageError when a package that the humanoid needs is missing."""
    for package in ("mjlab", "holosoma_inference", "onnxruntime"):
        _package(package)


def balance_models() -> Path:
    """Folder of the balance policies of the installed holosoma-inference wheel."""
    return _package("holosoma_inference") / "models/loco/g1_29dof"


def mjcf(meshes: bool = True) -> str:
    """MJCF text of the robot alone, its free joint called `pelvis_free`.

    From the installed mjlab wheel (Apache-2.0, see its licence file), whose own code is not
    imported; simulation and kinematics both start from this text. Without `meshes` only the
    collision capsules are left.
    """
    folder = _package("mjlab") / "asset_zoo/robots/unitree_g1/xmls"
    root = ET.parse(folder / "g1.xml").getroot()
    compiler = root.find("compiler")
    assert compiler is not None
    compiler.set("meshdir", str(folder / "assets"))
    for element in root.findall("sensor"):
        root.remove(element)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("light", "camera"):
                parent.remove(child)
            elif child.tag == "freejoint":
                child.set("name", f"{PELVIS}_free")
            elif not meshes and (child.tag == "mesh" or child.get("class") == "visual"):
                parent.remove(child)
    return ET.tostring(root, encoding="unicode")
