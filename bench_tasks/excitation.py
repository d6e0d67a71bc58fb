"""What a recording tells of how joints answer to commands; says so where it tells too little."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.bags.bag import Recording, find_bags, read_bag
from bench_tasks.errors import UsageError
from bench_tasks.robots import embodiments
from bench_tasks.robots.dynamics import Dynamics
from bench_tasks.robots.fr3 import JOINT_NAMES
from bench_tasks.vocabulary import ARMS, FR3_PAIR

__all__ = ["Excitation", "Fit", "MIN_MOTION_RAD", "read_excitation"]

MIN_DURATION_S = 5.0
MIN_MOTION_RAD = 0.03
"""Between the ends of a joint's commands."""
Z95 = 1.96
MIN_FOLLOWED = 0.2
"""Share of its commanded way that a joint must have gone."""
FAR, FAR_RAD = 3.0, 1e-4
"""A joint is doubtful when it is further off than so many times the median, and than that."""
HOW = "record with policy excite"


@dataclass(frozen=True, eq=False)
class Excitation:
    """Times (n,) s from 0 on, commands and measured positions (n, 14) rad at these, their hash.

    A command is what the robot was told to have reached at that time.
    """

    name: str
    time_s: np.ndarray
    command: np.ndarray
    measured: np.ndarray
    hash: str


@dataclass(frozen=True, eq=False)
class Fit:
    """The dynamics found in a recording, the standard error of each number, and the simulation's.

    `rms_before` and `rms_after` (14,) rad are between recorded and simulated positions, with the
    simulation's own dynamics and with those found; `tried` the same two of another recording.
    `at_limit` names what the fit would have taken further than it may. The standard error of what
    is at the end of its range is 0: there is none.
    """

    dynamics: Dynamics
    error: Dynamics
    own: Dynamics
    rms_before: np.ndarray
    rms_after: np.ndarray
    at_limit: tuple[str, ...] = ()
    tried: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Joints that the fit did not bring as near as others, or no nearer: a local minimum?"""
        far = max(FAR_RAD, FAR * float(np.median(self.rms_after)))
        no_better = (self.rms_after >= self.rms_before) & (self.rms_after > FAR_RAD)
        return tuple(np.array(JOINT_NAMES)[(self.rms_after > far) | no_better].tolist())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        parts = {"found": self.dynamics, "standard_error": self.error, "simulation": self.own}
        arrays = {"rms_before_rad": self.rms_before, "rms_after_rad": self.rms_after}
        if self.tried:
            arrays |= zip(("tried_before_rad", "tried_after_rad"), self.tried, strict=True)
        return {
            **{name: part.to_dict() for name, part in parts.items()},
            **{name: dict(zip(JOINT_NAMES, a.tolist(), strict=True)) for name, a in arrays.items()},
            "at_limit": list(self.at_limit), "doubtful": list(self.doubtful),
        }

    def table(self) -> str:
        """A Markdown table, a row per joint, and the delays; ± are 95 % intervals."""
        head = ["joint", "stiffness, Nm/rad", "damping, Nm s/rad", "dry, Nm", "offset, mrad",
                "error before, mrad", "after"]  # fmt: skip
        head += ["elsewhere before", "after"] if self.tried else []
        rows = [head, ["---"] + ["---:"] * (len(head) - 1)]
        found, error = self.dynamics, self.error
        for k, name in enumerate(JOINT_NAMES):
            errors = (self.rms_before, self.rms_after, *(self.tried or ()))
            rows.append([
                name,
                _number(found.stiffness[k], error.stiffness[k], 0),
                _number(found.damping[k], error.damping[k], 1),
                _number(found.dry[k], error.dry[k], 3),
                _number(1e3 * found.offset_rad[k], 1e3 * error.offset_rad[k], 3),
                *(f"{1e3 * one[k]:.3f}" for one in errors),
            ])  # fmt: skip
        delays = ", ".join(
            f"{arm} {_number(1e3 * value, 1e3 * wrong, 2)} ms"
            for arm, value, wrong in zip(ARMS, found.delay_s, error.delay_s, strict=True)
        )
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines += ["", f"Delay: {delays}."]
        lines += [f"At the end of its range: {name}." for name in self.at_limit]
        lines += [f"Further off than the others, or no nearer than before: {name}; the fit may "
                  "have stopped at a local minimum: try another recording (seed)."
                  for name in self.doubtful]  # fmt: skip
        return "\n".join(lines) + "\n"


def _number(value: float, error: float, digits: int) -> str:
    """With half its 95 % interval; at the end of its range it has none."""
    if error == 0.0:
        return f"{value:.{digits}f} (end of range)"
    return f"{value:.{digits}f} ± {Z95 * error:.{digits}f}"


def read_excitation(path: Path) -> Excitation:
    """The one recording in `path`; UsageError in one line when nothing can be fitted to it."""
    bags = find_bags(path)
    if len(bags) > 1:
        raise UsageError(f"{path} holds {len(bags)} recordings: name one, as {bags[0]}")
    recording = read_bag(bags[0])
    robot = embodiments.get(FR3_PAIR)
    scene, states = recording.scene, recording.states
    if recording.problems:
        raise UsageError(f"{bags[0]}: {recording.problems[0]}")
    if scene is None or not states:
        raise UsageError(f"{bags[0]} has no {'scene' if scene is None else 'states'}")
    if scene.embodiment != FR3_PAIR or scene.joint_names != robot.joint_names:
        raise UsageError(f"{bags[0]} is of robot {scene.embodiment}: only {FR3_PAIR} is fitted")
    steps = np.diff([state.seq for state in states])
    if (steps != 1).any():
        after = states[int(np.argmax(steps != 1))].seq
        raise UsageError(f"{bags[0]} has a gap in its states after state {after}")
    stamps = np.array([state.stamp_ns for state in states], np.int64)
    if (np.diff(stamps) <= 0).any():
        raise UsageError(f"{bags[0]}: the stamps of its states do not rise")
    time_s = (stamps - stamps[0]) / 1e9
    if time_s[-1] < MIN_DURATION_S:
        raise UsageError(f"{bags[0]} is too short: {time_s[-1]:.1f} s of the {MIN_DURATION_S:g} s "
                         f"that are needed; {HOW}")  # fmt: skip
    for state in states:
        sizes = len(state.command), len(state.joint_position)
        if sizes != (len(robot.joint_names) + 2, len(robot.joint_names)):
            raise UsageError(f"{bags[0]}: state {state.seq} has {sizes[0]} commands and "
                             f"{sizes[1]} joints, not those of {FR3_PAIR}")  # fmt: skip
    command = np.stack([state.command for state in states])[:, robot.joint_columns]
    measured = np.stack([state.joint_position for state in states])
    for what, values in (("command", command), ("joint position", measured)):
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise UsageError(f"{bags[0]}: a {what} of state {bad[0]} is not a finite number")
    _check_motion(bags[0], robot.joint_names, command, measured)
    _check_free(bags[0], recording)
    name = f"{scene.task} seed {scene.seed}"
    return Excitation(name, time_s, command, measured, _hash(command, measured))


def _check_motion(
    bag: Path, names: tuple[str, ...], command: np.ndarray, measured: np.ndarray
) -> None:
    told, gone = np.ptp(command, axis=0), np.ptp(measured, axis=0)
    least = int(np.argmin(told))
    if told[least] < MIN_MOTION_RAD:
        raise UsageError(f"{bag}: {names[least]} is told to move by {told[least]:.3f} rad only, "
                         f"less than {MIN_MOTION_RAD:g}; {HOW}")  # fmt: skip
    least = int(np.argmin(gone / told))
    if gone[least] < MIN_FOLLOWED * told[least]:
        raise UsageError(f"{bag}: {names[least]} was told to move by {told[least]:.3f} rad and "
                         f"went {gone[least]:.3f}: it does not follow its commands")  # fmt: skip


def _check_free(bag: Path, recording: Recording) -> None:
    """UsageError when an arm touched anything: that is no friction of its joints."""
    assert recording.scene is not None
    entities = recording.scene.entities
    ours = np.array([name.startswith(tuple(f"{arm}_" for arm in ARMS)) for name in entities])
    for state in recording.states:
        pairs = np.asarray(state.contact_pair, int).reshape(-1, 2)
        if pairs.size and not 0 <= pairs.min() <= pairs.max() < len(entities):
            raise UsageError(f"{bag}: a contact of state {state.seq} names no entity")
        touching = pairs[ours[pairs].any(axis=1)]
        if len(touching):
            a, b = (entities[k] for k in touching[0])
            raise UsageError(f"{bag}: {a} touches {b} at {state.stamp_ns / 1e9:.2f} s, and the "
                             "arms must move freely")  # fmt: skip


def _hash(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, "<f8").tobytes())
    return digest.hexdigest()
