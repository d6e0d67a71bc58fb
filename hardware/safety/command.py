"""What can be wrong with a command by itself, and how it is driven slower. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_tasks.bags import cdr
from bench_tasks.vocabulary import ACTION_SIZE, ARMS, ActionChunk, Scene
from hardware.safety.decision import Refusal, shown
from hardware.safety.limits import Limits
from hardware.safety.motion import Breach, Moving, breach, slowed, stopped_at_end

__all__ = ["ORDERS", "answered", "at_rest_after", "for_this_robot", "labelled", "plausible",
           "slower", "timely", "well_formed"]  # fmt: skip

SIMULATED = "sim"
"""What a scene calls the robot of a simulation, which does what it is told."""
ORDERS = {
    "left and right swapped": np.r_[8:16, 0:8],
    "the joints of each arm reversed": np.r_[6:-1:-1, 7, 14:7:-1, 15],
    "all joints reversed": np.r_[14:7:-1, 7, 6:-1:-1, 15],
    "both grippers behind both arms": np.r_[0:7, 14, 7:14, 15],
    "the grippers before their arms": np.r_[1:8, 0, 9:16, 8],
}
"""How wrong orders are undone, to name them."""


def labelled(raw: dict[str, Any], size: int, scene: Scene | None) -> None:
    """Refusal unless a message of ActionChunk says that it is actions (n, size) for the scene."""
    wanted, at = cdr.layout(size), raw["stamp"]
    if raw["layout"] != wanted:
        raise Refusal("layout", f"the layout is {shown(raw['layout'])}, not {wanted!r}")
    if at["sec"] < 0 or at["nanosec"] >= 10**9:
        raise Refusal("malformed", f"{at['sec']} s and {at['nanosec']} ns are no time")
    if scene is not None and raw["period_ns"] != scene.control_period_ns:
        raise Refusal("period", f"an action lasts {raw['period_ns']} ns, "
                      f"not {scene.control_period_ns} ns")  # fmt: skip
    if len(raw["values"]) % size:
        raise Refusal("length", f"{len(raw['values'])} numbers are no actions of {size}")


def for_this_robot(limits: Limits, scene: Scene) -> None:
    """Refusal unless the limits are for the robot whose scene it is, joint by joint."""
    if scene.robot not in (SIMULATED, limits.cell):
        raise Refusal("cell", f"the cell of the robot {scene.robot!r} is not known (parameter "
                      "cell): what its drivers do with a command cannot be foreseen")  # fmt: skip
    names = scene.joint_names[-len(limits.joint_names) :]
    if names != limits.joint_names:
        pairs = zip(names, limits.joint_names, strict=False)
        wrong = next((f"{a!r}, not {b!r}" for a, b in pairs if a != b), "fewer or more")
        raise Refusal("joint_order", f"the robot's joints are not those of the limits: {wrong}")
    if scene.control_period_ns != round(limits.period_s * 1e9):
        raise Refusal("period", f"the robot's control period is {scene.control_period_ns} ns, the "
                      f"limits are for {limits.period_s:g} s")  # fmt: skip


def answered(chunk: Any) -> int:
    """The number of the state that a chunk answers; Refusal when it is none, or no chunk."""
    if not isinstance(chunk, ActionChunk):
        raise Refusal("malformed", f"what should be actions is {shown(chunk)}")
    seq = chunk.seq
    if isinstance(seq, bool) or not isinstance(seq, int | np.integer):
        raise Refusal("malformed", f"the state that it answers is {shown(seq)}, no whole number",
                      value=shown(seq))  # fmt: skip
    return int(seq)


def well_formed(limits: Limits, given: Any) -> np.ndarray:
    """The actions (n, size), every number finite."""
    try:
        plain = np.asarray(given)
    except Exception:  # rows of different lengths, or anything that only looks like an array
        plain = np.empty(0, dtype=object)
    if plain.dtype.kind not in "fiu" or np.ma.isMaskedArray(given):
        raise Refusal("malformed", f"what should be actions are no numbers: {shown(given)}")
    values = np.array(plain, dtype=np.float64)  # whoever asked may change theirs meanwhile
    most, size = limits.commands["max_actions"], limits.size
    if values.ndim != 2 or values.shape[1] != size or not 0 < len(values) <= most:
        raise Refusal("length", f"actions must be (1 to {most}, {size}), got {values.shape}")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise Refusal("not_finite", f"action {row}, number {column} is {values[row, column]}")
    return values


def timely(
    seq: int, count: int, now: int, answered: int, realtime: bool, lead: int = 0
) -> int:
    """How many of the actions are over in state `now`; dropped when all are.

    `answered` is the state that was answered last. The robot does what it is sent `lead` periods
    later: so many more are over by then.
    """
    late = now - seq
    if late < 0:
        raise Refusal("future", f"it answers state {seq}, the newest is {now}", "dropped")
    if late + lead >= count or (late > 0 and not realtime):
        later = f", and the robot is {lead} periods late" if lead else ""
        raise Refusal("stale", f"it answers state {seq} with {count} actions, now is {now}{later}",
                      "dropped")  # fmt: skip
    if seq <= answered:
        raise Refusal("out_of_order", f"it answers state {seq}, {answered} was answered",
                      "dropped")  # fmt: skip
    return late


def plausible(limits: Limits, path: np.ndarray, command: np.ndarray) -> None:
    """Refusal when the path is none from `command`: other units, order, or somewhere else."""
    most, columns = limits.commands["jump_rad"], limits.columns
    jumps = np.abs(np.diff(path[:, columns], axis=0, prepend=command[None, columns]))
    reach = np.minimum(most, limits.velocity * limits.period_s)
    for within in (np.full_like(reach, most), reach):
        if not (jumps[0] <= within).all():
            _name_mistake(limits, path[0], command, within)
    openings = path[:, limits.openings]
    wrong = np.maximum(limits.opening[0] - openings, openings - limits.opening[1]) > 1e-6
    if wrong.any():
        row, k = np.argwhere(wrong)[0]
        raise Refusal(
            "gripper", f"the {ARMS[k]} hand cannot open {openings[row, k]:g} m "
            f"({limits.opening[0]:g} to {limits.opening[1]:g})", row=int(row),
            value=float(openings[row, k]),
        )  # fmt: skip
    if not (jumps <= most).all():
        row, joint = np.unravel_index(int(np.argmax(jumps)), jumps.shape)
        name, value = limits.joint_names[joint], float(jumps[row, joint])
        raise Refusal(
            "jump", f"{name} would jump by {value:.3f} rad in action {row} (at most {most:g})",
            joint=name, row=int(row), value=value, limit=most,
        )  # fmt: skip


def _name_mistake(
    limits: Limits, first: np.ndarray, command: np.ndarray, within: np.ndarray
) -> None:
    """Refusal when `first`, put right, would be `within` (n,) rad of the command."""
    columns = limits.columns
    arms = command[columns]
    if (np.abs(np.deg2rad(first[columns]) - arms) <= within).all():
        raise Refusal("units", "the joint positions look like degrees")
    before = limits.size - ACTION_SIZE  # numbers of a waist
    for name, undo in ORDERS.items():
        again = np.concatenate([first[:before], first[before:][undo]])
        if (np.abs(again[columns] - arms) <= within).all():
            raise Refusal("joint_order", f"the order looks wrong: {name}")


def slower(
    limits: Limits, found: Breach, moving: Moving, path: np.ndarray, begin: np.ndarray
) -> np.ndarray:
    """The path (n, size) from action `begin` at a pace within the limits; Refusal at no pace."""
    if found.kind != "position":
        joints, index = slowed(limits, moving, path[:, limits.columns])
        if len(joints):
            passed = limits.actions(joints, begin)
            grid = np.arange(-1, len(path))
            for column in limits.openings:
                known = np.append(begin[column], path[:, column])
                passed[:, column] = np.interp(index, grid, known)
            return passed
    raise Refusal(found.kind, found.said(limits), **found.detail(limits))


def at_rest_after(limits: Limits, end: Moving, passed: np.ndarray) -> np.ndarray:
    """How the arms come to rest after `passed`; Refusal when that is beyond a limit."""
    joints = stopped_at_end(limits, end)
    found = breach(limits, end, joints) if len(joints) else None
    if found is not None:
        raise Refusal(found.kind, f"no stop is possible behind it: {found.said(limits)}",
                      **found.detail(limits, len(passed)))  # fmt: skip
    return limits.actions(joints, passed[-1])
