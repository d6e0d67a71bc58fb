"""Whether cameras, arms and hands of a cell are what its files say, from what a camera saw.

Nothing is taken on trust but the arms' geometry: from a marker seen in several poses of an arm
follows where the camera is, or that no place of it would explain what it saw.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench_tasks.robots.kinematics import DualArm, dual_arm
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M
from hardware.checkup import LOOKS, SPREAD, Found, good, mistake
from hardware.franka.calibration import Evidence, Mount
from hardware.hand_eye import Fit, apart, fit, matrix_of, pose_of

__all__ = ["check"]

MOVED_M, MOVED_RAD = 0.010, 0.020
HAND_M = 0.005


def check(mounts: dict[str, Mount], evidence: Sequence[Evidence]) -> list[Found]:
    """All that follows from the evidence."""
    arms = dual_arm()
    return [found for item in evidence for found in (*_camera(arms, mounts, item), *_hands(item))]


def _camera(arms: DualArm, mounts: dict[str, Mount], seen: Evidence) -> list[Found]:
    name = f"camera {seen.camera} ({seen.name})"
    mount = mounts.get(seen.camera)
    if mount is None:
        known = ", ".join(mounts) or "none"
        return [(name, False, f"the calibration has no such camera: it has {known}", "add it")]
    if mount.parent not in ("world", seen.arm):
        return [(name, False, f"it sits on the {mount.parent} arm, and the {seen.arm} arm moved",
                 f"move the {mount.parent} arm")]  # fmt: skip
    if len(seen.q) < LOOKS:
        return [(name, False, f"{len(seen.q)} looks are too few", f"take {LOOKS} or more")]
    found = _placed(arms, mount, seen, seen.q)
    if not good(found):
        return [(name, False, *_disagreement(arms, mount, seen, found))]
    if found.spread < SPREAD:
        return [(name, False, "the looks differ too little to tell where the camera is",
                 "turn the hand about all axes between looks, by 30 degrees and more")]  # fmt: skip
    return [_compared(name, mount, found)]


def _placed(arms: DualArm, mount: Mount, seen: Evidence, q: np.ndarray) -> Fit:
    """Where the camera is in its parent (`x`), if these are the joints (n, 14)."""
    k = 7 * ARMS.index(seen.arm)
    hand = np.array([matrix_of(arms.forward(seen.arm, row[k : k + 7])) for row in q])
    marker = np.array([matrix_of(pose) for pose in seen.seen])
    if mount.parent == "world":
        return fit(hand, marker)  # hand * (marker in hand) = camera * marker
    found = fit(hand, np.linalg.inv(marker))  # hand * camera = (marker in world) * marker^-1
    return Fit(found.g, found.x, found.error_m, found.error_rad, found.spread)


def _disagreement(arms: DualArm, mount: Mount, seen: Evidence, own: Fit) -> tuple[str, str]:
    """Why no place of the camera explains what it saw."""
    other, first = ARMS[1 - ARMS.index(seen.arm)], 7 * ARMS.index(seen.arm)
    swapped, joint = mistake(
        lambda q: _placed(arms, mount, seen, q), seen.q, np.roll(seen.q, 7, axis=1),
        range(first, first + 7),
    )  # fmt: skip
    if swapped:
        return (
            f"it is the joints of the {other} arm that agree with what it saw of the {seen.arm} "
            "one: left and right are swapped",
            "exchange the arms' addresses, or the cameras' topics, in the cell",
        )
    if joint is not None:
        return (
            f"what it saw agrees with joint {joint - first + 1} of the {seen.arm} arm turned the "
            "other way: that joint has the wrong sign",
            "correct the sign where the joints come from",
        )
    return (
        f"what it saw does not agree with the joints of the {seen.arm} arm wherever it is: "
        f"{own.error_m * 1000:.0f} mm and {own.error_rad:.2f} rad are left",
        "fasten camera and marker, look whether the marker's size is right, and look again",
    )


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    metres, turned = apart(a, b)
    return metres <= MOVED_M and turned <= MOVED_RAD


def _compared(name: str, mount: Mount, found: Fit) -> Found:
    """What was found, beside what the file says."""
    is_at = pose_of(found.x)
    written = "pose: [" + ", ".join(f"{v:.4f}" for v in is_at) + "]"
    metres, turned = apart(mount.pose, is_at)
    if _near(mount.pose, is_at):
        left = f"{found.error_m * 1000:.1f} mm"
        return name, True, f"where the calibration has it, to {metres * 1000:.0f} mm ({left})", ""
    for what, pose in _mistakes(mount.pose):
        if _near(pose, is_at):
            return name, False, f"in the calibration {what}", f"write {written}"
    return (
        name, False, f"it is {metres:.3f} m and {turned:.2f} rad away from where the calibration "
        "has it: it has moved", f"put it back, or write {written}",
    )  # fmt: skip


def _mistakes(pose: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """What people write instead of a pose, and the pose that they meant."""
    found = []
    for k, axis in enumerate("xyz"):
        meant = pose.copy()
        meant[k] *= -1
        found.append((f"its {axis} has the wrong sign", meant))
    for k, axis in enumerate(("qw", "qx", "qy", "qz")):
        meant = pose.copy()
        meant[3 + k] *= -1
        found.append((f"its {axis} has the wrong sign", meant))
    meant = np.append(pose[:3], np.roll(pose[3:], 1))
    found.append(("its quaternion is written x, y, z, w", meant))
    found.append(("its transform is the other way round", pose_of(np.linalg.inv(matrix_of(pose)))))
    return found


def _hands(seen: Evidence) -> list[Found]:
    """Whether each hand says what its fingers do: one holds a marker, the other one is open."""
    if not 0.0 < seen.grip_m < MAX_OPENING_M:
        return []  # no hand holds it
    found = []
    for k, arm in enumerate(ARMS):
        name, width = f"{arm} hand ({seen.name})", float(np.median(seen.opening[:, k]))
        true = seen.grip_m if arm == seen.arm else MAX_OPENING_M
        says = f"it says {width * 1000:.0f} mm and is {true * 1000:.0f} mm open"
        remedy = "home the hand; correct the driver's range"
        if abs(width - true) <= HAND_M:
            middle = abs(2 * true - MAX_OPENING_M) <= 2 * HAND_M
            says += ", which would be the same the other way round: grip something else" * middle
            found.append((name, not middle, says, "use a marker that is held at another width"))
        elif abs(MAX_OPENING_M - width - true) <= HAND_M:
            found.append((name, False, f"{says}: its range is inverted", remedy))
        elif abs(width - 1000 * true) <= 1000 * HAND_M:
            found.append((name, False, f"it says {width:.0f} m: that is millimetres", remedy))
        else:
            found.append((name, False, says, remedy))
    return found
