"""From the actions of a chunk to what an arm and a hand are told, and what a hand can feel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_tasks.robots.fr3 import JOINT_LIMITS_RAD
from bench_tasks.view import SQUEEZE_M, compose, invert
from bench_tasks.vocabulary import ARMS, MAX_OPENING_M, Scene

__all__ = ["Step", "destination", "hand_contacts", "next_step", "strain", "within"]

FINGER_ROOM_M = 0.015
"""How far outside of an object's bounding box a tool centre point can be that holds it."""


def within(action: np.ndarray) -> np.ndarray:
    """The action (16,) clipped to what joints and hands can do, as the simulated cell clips it."""
    low, high = JOINT_LIMITS_RAD.T
    clipped = np.array(action, dtype=float)
    for k in range(len(ARMS)):
        clipped[8 * k : 8 * k + 7] = np.clip(clipped[8 * k : 8 * k + 7], low, high)
        clipped[8 * k + 7] = np.clip(clipped[8 * k + 7], 0.0, MAX_OPENING_M)
    return clipped


@dataclass(frozen=True)
class Step:
    """What both arms and hands do in the next period: action (16,), and the motion (16,) there."""

    action: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    openings: tuple[float, ...]


def next_step(last: np.ndarray, due: np.ndarray, period_s: float) -> Step:
    """The step from the last action (16,) to the first of those that are due (k, 16), k >= 0.

    The velocity at its end is that of a parabola through the last, this and the next action; with
    no next one the velocity goes on, and with none at all the arms hold.
    """
    if not len(due):
        zero = np.zeros(len(last))
        return Step(last, zero, zero, tuple(last[8 * k + 7] for k in range(len(ARMS))))
    rows = np.array([within(row) for row in due[:2]])
    if len(rows) > 1:
        velocity = (rows[1] - last) / (2 * period_s)
        acceleration = (rows[1] - 2 * rows[0] + last) / period_s**2
    else:
        velocity, acceleration = (rows[0] - last) / period_s, np.zeros(len(last))
    openings = tuple(
        float(np.clip(destination(due[:, 8 * k + 7]), 0.0, MAX_OPENING_M))
        for k in range(len(ARMS))
    )
    return Step(rows[0], velocity, acceleration, openings)


def destination(openings: np.ndarray) -> float:
    """Where openings (k,) are heading: their value where they first rest again or turn round.

    A hand is told a width once, and goes there at its own pace.
    """
    steps = np.diff(openings)
    steps[np.abs(steps) < 1e-9] = 0.0
    if not len(steps) or steps[0] == 0.0:
        return float(openings[0])
    ended = np.flatnonzero(np.sign(steps) != np.sign(steps[0]))
    return float(openings[ended[0]] if len(ended) else openings[-1])


def hand_contacts(
    scene: Scene, ee_pose: np.ndarray, object_pose: np.ndarray, opening: np.ndarray,
    command: np.ndarray, grasped: tuple[bool, ...], force_n: float,
    busy: tuple[bool, ...] = (False, False),
) -> tuple[np.ndarray, np.ndarray]:
    """Contacts (m, 2), (m,) of the fingers, as far as the hands themselves can tell.

    A hand that says it has grasped, and that something keeps open, holds the object whose bounding
    box its tool centre point (ee_pose (2, 7)) is in; where there are several, the one whose middle
    is nearest. With no such object it holds something that nobody tracks: no contact. The force is
    what the hand was told to hold with. Of a `busy` hand, what it says is of before its fingers
    began to move: what it held then it has not let go of until it says so.
    """
    pairs, forces = [], []
    for k, arm in enumerate(ARMS):
        pressed = busy[k] or opening[k] - command[8 * k + 7] > SQUEEZE_M
        if not grasped[k] or not pressed:
            continue
        best = None
        for row, item in enumerate(scene.objects):
            tcp = compose(invert(object_pose[row]), ee_pose[k])[:3]
            if (np.abs(tcp) <= np.array(item.half_size_m) + FINGER_ROOM_M).all():
                distance = float(np.linalg.norm(tcp))
                best = min(best or (distance, item.name), (distance, item.name))
        if best is None:
            continue
        for finger in (1, 2):
            pair = scene.entity(f"{arm}_finger{finger}"), scene.entity(best[1])
            pairs.append(sorted(pair))
            forces.append(force_n)
    order = sorted(range(len(pairs)), key=lambda k: pairs[k])
    return (
        np.array([pairs[k] for k in order], np.uint16).reshape(-1, 2),
        np.array([forces[k] for k in order], float),
    )


def strain(arm: str, wrench: np.ndarray, arms: dict[str, Any]) -> str:
    """What acts on an arm beyond `arms.external` of the cell, in words; "" when nothing does.

    wrench (6,): force, N, and torque, Nm.
    """
    force, torque = (float(np.linalg.norm(part)) for part in (wrench[:3], wrench[3:]))
    most = arms["external"]
    # Not a number is no measurement to rely on.
    if not force <= most["force_n"]:
        return f"{force:.0f} N act on the {arm} arm, more than {most['force_n']:g} N"
    if not torque <= most["torque_nm"]:
        return f"{torque:.0f} Nm act on the {arm} arm, more than {most['torque_nm']:g} Nm"
    return ""
