"""Whether waist and arms of a G1 have the right order and signs, from what a tracker saw.

A marker is fastened to a hand, and somebody bends waist and arm. Where the hand is in the pelvis'
frame follows from the joints, where the marker is in it from the tracker.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_tasks.errors import UsageError
from bench_tasks.robots import g1
from bench_tasks.robots.g1_kinematics import UpperBody
from bench_tasks.vocabulary import ARMS
from bench_tasks.yaml_shape import NUMBER, OneOf, between, check_shape, exactly
from hardware.checkup import LOOKS, SPREAD, Found, good, mistake
from hardware.hand_eye import Fit, apart, checked_pose, fit, matrix_of, pose_of

__all__ = ["Evidence", "check", "columns", "read_evidence"]

BENT_RAD = 0.2
PELVIS_M, PELVIS_RAD = 0.02, 0.05
MOST_M = 10.0
"""No tracker sees a hand further from the pelvis."""
_NOWHERE = np.array([0.0, 0, 0, 1, 0, 0, 0])
_NAMES = g1.JOINT_NAMES[g1.LEGS :]
_SHAPE = {
    "format_version": exactly(1), "arm": OneOf(ARMS),
    "looks": [{"q": (between(-7.0, 7.0),) * len(_NAMES), "seen": (NUMBER,) * 7}],
}  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """What a tracker saw of a marker on the hand of `arm`: q (n, 17) rad, and `seen` (n, 7).

    q as the robot says: waist, left arm, right arm; `seen` in the frame that it calls the pelvis.
    """

    name: str
    arm: str
    q: np.ndarray
    seen: np.ndarray


def read_evidence(path: Path) -> Evidence:
    """What `unitree_check_node` wrote. UsageError in one line when it is not as it must be."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        check_shape(raw, _SHAPE)
        seen = [checked_pose(look["seen"], f"looks[{k}].seen", MOST_M)
                for k, look in enumerate(raw["looks"])]  # fmt: skip
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None
    return Evidence(path.name, raw["arm"], np.array([x["q"] for x in raw["looks"]]),
                    np.array(seen))  # fmt: skip


def columns(arm: str) -> np.ndarray:
    """Which of the 17 joints move a hand: the waist's, and its own arm's."""
    first = g1.WAIST + 7 * ARMS.index(arm)
    return np.r_[0 : g1.WAIST, first : first + 7]


def check(evidence: Sequence[Evidence]) -> list[Found]:
    """All that follows from the evidence."""
    body = UpperBody()
    return [found for seen in evidence for found in _check(body, seen)]


def _check(body: UpperBody, seen: Evidence) -> list[Found]:
    name = f"{seen.arm} arm and waist ({seen.name})"
    if len(seen.q) < LOOKS:
        return [(name, False, f"{len(seen.q)} looks are too few", f"take {LOOKS} or more")]
    found = _placed(body, seen, seen.q)
    if not good(found):
        return [(name, False, *_disagreement(body, seen, found))]
    still = [_NAMES[k] for k in columns(seen.arm) if np.ptp(seen.q[:, k]) < BENT_RAD]
    if still or found.spread < SPREAD:
        return [(name, False, f"what it saw agrees, but hardly moved: {', '.join(still) or 'all'}; "
                 "order and signs of these are not known",
                 f"bend each by {BENT_RAD:g} rad and more, about all axes")]  # fmt: skip
    said = f"order and signs are right, to {found.error_m * 1e3:.1f} mm"
    return [(name, True, said, ""), _pelvis(seen.name, found)]


def _placed(body: UpperBody, seen: Evidence, q: np.ndarray) -> Fit:
    """Where the tracker's pelvis is in the model's (`x`), if these are the joints (n, 17)."""
    k = ARMS.index(seen.arm)
    hand = np.array([matrix_of(body.forward(row)[k]) for row in q])
    return fit(hand, np.array([matrix_of(pose) for pose in seen.seen]))


def _disagreement(body: UpperBody, seen: Evidence, own: Fit) -> tuple[str, str]:
    """Why no place of the tracker's pelvis explains what it saw."""
    arms = seen.q[:, g1.WAIST :].reshape(-1, 2, 7)[:, ::-1].reshape(-1, 14)
    exchanged = np.concatenate([seen.q[:, : g1.WAIST], arms], axis=1)
    swapped, joint = mistake(
        lambda q: _placed(body, seen, q), seen.q, exchanged, columns(seen.arm).tolist()
    )
    remedy = "whoever translates the robot's joints has it wrong: it must be that of Unitree's SDK"
    if swapped:
        return "the joints of left and right arm are swapped", remedy
    if joint is not None:
        return f"{_NAMES[joint]} has the wrong sign", remedy
    return (
        f"what the tracker saw of the {seen.arm} hand does not agree with the joints: "
        f"{own.error_m * 1000:.0f} mm and {own.error_rad:.2f} rad are left",
        "fasten marker and pelvis' rigid body, look whether the marker is on that hand and the "
        "waist's joints are the robot's, and look again",
    )


def _pelvis(file: str, found: Fit) -> Found:
    name, (metres, turned) = f"pelvis ({file})", apart(pose_of(found.x), _NOWHERE)
    said = f"{metres * 1e3:.0f} mm and {turned:.2f} rad from the model's"
    if metres <= PELVIS_M and turned <= PELVIS_RAD:
        return name, True, said, ""
    offset = ", ".join(f"{v:.4f}" for v in pose_of(found.x))
    return (name, False, f"what the tracker calls the pelvis is {said}",
            f"correct its rigid body: it lies at [{offset}] (x y z qw qx qy qz) in the pelvis "
            "link")  # fmt: skip
