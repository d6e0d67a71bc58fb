"""How much room the G1's hands reach, by voxels of 0.02 m, without and with the waist.

    python benchmarks/g1_workspace.py [--samples 20000000] [--out FILE]

Joint positions are drawn evenly within their limits and a voxel counts where a TCP comes to lie, in
the pelvis' frame: of the left hand ("single") and of either ("both"). Postures in which the robot
would touch itself count as well, so the volumes are upper bounds of what is free of collision; what
chance has not found yet makes them too small, which the growth over the last tenth of the samples
tells. Beside them stand those that HERO reports (arXiv 2602.16705).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.robots import g1  # noqa: E402
from bench_tasks.vocabulary import ARMS  # noqa: E402

VOXEL_M = 0.02
BATCH = 100_000
SIDE = 160
"""Voxels along each side of the grid, whose middle is the pelvis."""
PUBLISHED_M3 = {"arms only": {"single": 0.166, "both": 0.248},
                "with waist": {"single": 0.426, "both": 0.523}}  # fmt: skip


def chain(arm: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """From the pelvis to the hand: placement (rotation, translation), axis, and joint (0 to 28)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g1.xml"
        path.write_text(g1.mjcf(meshes=False))
        model = pin.buildModelFromMJCF(str(path))
    found, joint = [], model.getJointId(f"{arm}_wrist_yaw_joint")
    while model.names[joint] in g1.JOINT_NAMES:
        placement = model.jointPlacements[joint]
        axis = np.array([kind == model.joints[joint].shortname()[-1] for kind in "XYZ"], float)
        if axis.sum() != 1.0:
            raise AssertionError(f"{model.names[joint]} is a {model.joints[joint].shortname()}")
        index = g1.JOINT_NAMES.index(model.names[joint])
        found.append((placement.rotation, placement.translation, axis, index))
        joint = model.parents[joint]
    return found[::-1]


def positions(links: list, joints: np.ndarray) -> np.ndarray:
    """TCP positions (n, 3) in the pelvis' frame at all joints' positions (n, 29).

    From the hand back to the pelvis: a point is turned (Rodrigues), not ever more rotations.
    """
    place = np.broadcast_to(g1.TCP_POSE[:3], (len(joints), 3))
    for fixed, offset, axis, index in reversed(links):
        sine, cosine = np.sin(joints[:, index, None]), np.cos(joints[:, index, None])
        x, y, z = axis
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        along = place @ np.outer(axis, axis)
        place = (along + cosine * (place - along) + sine * (place @ cross.T)) @ fixed.T + offset
    return place


def volumes(samples: int, waist: bool, rng: np.random.Generator) -> dict[str, float]:
    """Volumes in m3, and by what share the one of both hands grew over the last tenth."""
    grids = {arm: np.zeros(SIDE**3, dtype=bool) for arm in ARMS}
    links = {arm: chain(arm) for arm in ARMS}
    low, high = g1.LIMITS_RAD.T
    first = g1.LEGS if waist else g1.LEGS + g1.WAIST
    batches = max(10, samples // BATCH)
    at_nine_tenths = 0
    for k in range(batches):
        joints = np.zeros((BATCH, len(low)))
        joints[:, first:] = rng.uniform(low[first:], high[first:], (BATCH, len(low) - first))
        for arm, grid in grids.items():
            cells = np.floor(positions(links[arm], joints) / VOXEL_M).astype(int) + SIDE // 2
            grid[np.ravel_multi_index(cells.T, (SIDE,) * 3)] = True
        if k + 1 == batches * 9 // 10:
            at_nine_tenths = int((grids["left"] | grids["right"]).sum())
    both = int((grids["left"] | grids["right"]).sum())
    return {
        "single": round(float(grids["left"].sum()) * VOXEL_M**3, 4),
        "both": round(both * VOXEL_M**3, 4),
        "growth": round(both / at_nine_tenths - 1.0, 5),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000_000)
    parser.add_argument("--out", default="", help="also write the JSON here")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    found = {
        "samples": args.samples, "voxel_m": VOXEL_M, "published_m3": PUBLISHED_M3,
        "arms only": volumes(args.samples, False, rng),
        "with waist": volumes(args.samples, True, rng),
    }  # fmt: skip
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if args.out:
        Path(args.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
