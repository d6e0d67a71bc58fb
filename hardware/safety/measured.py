"""What is measured of a robot and must not be. Pure functions."""

from __future__ import annotations

import numpy as np

from bench_tasks.vocabulary import ARMS, Scene, WorldState
from hardware.safety.decision import Refusal, shown
from hardware.safety.limits import Limits

__all__ = ["danger", "off", "unlikely", "unreadable", "usable"]

_HARD = frozenset(f"{arm}_{part}" for arm in ARMS for part in ("arm", "hand"))
_FINGERS = frozenset(f"{arm}_finger{k}" for arm in ARMS for k in (1, 2))
"""The parties of contacts that belong to the robot."""
MOST_HEIGHT_M = 5.0
"""Of the arms' bases over the table, or under it."""


def usable(scene: Scene) -> None:
    """ValueError when what is needed of a scene is not what it should be."""
    for name in ("entities", "joint_names"):
        for item in getattr(scene, name):
            if not isinstance(item, str) or not item.isprintable():
                raise ValueError(f"{name} holds {shown(item)}, which is no name")
    height = scene.base_height_m
    if not isinstance(height, int | float) or not abs(height) < MOST_HEIGHT_M:
        raise ValueError(f"base_height_m is {shown(height)}, not within {MOST_HEIGHT_M:g} m")


def unreadable(limits: Limits, scene: Scene | None, state: WorldState) -> str:
    """What of a state cannot be used; "" when all can."""
    # A humanoid's legs come before what is commanded; how many, only the scene says.
    least = max(len(limits.joint_names), np.size(state.joint_position))
    joints = len(scene.joint_names) if scene else least
    sizes = {"joint_position": joints, "joint_velocity": joints, "joint_effort": joints,
             "gripper_opening": 2, "command": limits.size}  # fmt: skip
    for name, size in sizes.items():
        value = np.asarray(getattr(state, name))
        if value.shape != (size,):
            return f"{name} has shape {value.shape}, not ({size},)"
        if not np.isfinite(value).all():
            return f"{name} holds a number that is not finite"
    pairs, forces = np.shape(state.contact_pair), np.shape(state.contact_force)
    if len(forces) != 1 or pairs != (*forces, 2):
        return f"contact_pair has shape {pairs}, contact_force {forces}"
    return ""


def unlikely(limits: Limits, state: WorldState, last: np.ndarray, gap: int) -> str:
    """Why the command (size,) that a state tells of cannot be, `gap` periods after `last`; or "".

    What is sent to stop the arms begins there. It is a jump that no joint could follow, and none
    is where it would be then.
    """
    most, columns = limits.fastest, limits.columns
    away = np.abs(state.command[columns] - limits.commanded(state.joint_position))
    jump = np.abs(state.command - last)[columns]
    lag = limits.measured["tracking_rad"] + most * limits.measured["lag_s"]
    wrong = (jump > most * limits.period_s * gap * 1.01) & (away > lag)
    if not wrong.any():
        return ""
    joint = int(np.argmax(np.where(wrong, away, 0.0)))
    return (f"its command for {limits.joint_names[joint]} has jumped by {jump[joint]:.4g} rad, "
            f"{away[joint]:.4g} rad from where the joint is")  # fmt: skip


def danger(
    limits: Limits, scene: Scene | None, state: WorldState, recent: list[np.ndarray]
) -> Refusal | None:
    """What is measured and must not be; `recent` as for `off`."""
    tracking = off(limits, state, recent)[limits.columns]
    measured = limits.measured
    for kind, unit, value, most in (
        ("torque", "Nm", limits.commanded(state.joint_effort),
         measured["torque_share"] * limits.torque),
        ("overspeed", "rad/s", limits.commanded(state.joint_velocity),
         measured["velocity_share"] * limits.fastest),
        ("tracking", "rad from what it was told", tracking, measured["tracking_rad"]),
    ):  # fmt: skip
        over = np.abs(value) / most
        if not (over <= 1.0).all():
            joint = int(np.argmax(over))
            limit = float(np.broadcast_to(most, over.shape)[joint])
            name = limits.joint_names[joint]
            return Refusal(kind, f"{name}: {value[joint]:.4g} {unit} (limit {limit:.4g})",
                           joint=name, value=float(value[joint]), limit=limit)  # fmt: skip
    return _touching(limits, scene, state)


def off(limits: Limits, state: WorldState, recent: list[np.ndarray]) -> np.ndarray:
    """How far (size,) the arms are from all that they were told within the time they may lag.

    `recent` are the actions (size,) of that time. The hands follow at their own pace, and what
    they hold keeps them open: as measured.
    """
    told = np.array(recent)
    found = np.zeros(limits.size)
    low, high = told.min(axis=0)[limits.columns], told.max(axis=0)[limits.columns]
    joints = limits.commanded(state.joint_position)
    found[limits.columns] = joints - np.clip(joints, low, high)
    found[limits.openings] = state.gripper_opening - state.command[limits.openings]
    return found


def _touching(limits: Limits, scene: Scene | None, state: WorldState) -> Refusal | None:
    if scene is None or not len(state.contact_force):
        return None
    names = scene.entities
    for pair, force in zip(state.contact_pair, state.contact_force, strict=True):
        parties = [names[k] if k < len(names) else "?" for k in pair]
        if not any(party in _HARD or party in _FINGERS or party == "?" for party in parties):
            continue
        finger = any(party in _FINGERS for party in parties)
        most = limits.measured["finger_force_n" if finger else "contact_force_n"]
        if not abs(force) <= most:
            return Refusal("force", f"{' and '.join(parties)} press with {force:.0f} N "
                           f"(limit {most:g})", value=float(force), limit=most)  # fmt: skip
    return None
