"""A policy that moves every joint so that `bench_tasks sysid` can tell how it answers to commands.

Each joint follows a sum of sines of frequencies that no other joint of its arm has (a band-limited
multi-sine; Swevers et al., "Optimal robot excitation and identification", IEEE Transactions on
Robotics and Automation 13(5), 1997), about where it stands. It fades in and out, keeps a share of
the FR3's velocity and acceleration limits, and is checked for collisions before it begins.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.excitation import MIN_MOTION_RAD
from bench_tasks.robots import embodiments
from bench_tasks.robots.fr3 import JOINT_LIMITS_RAD, MAX_ACCELERATION, MAX_VELOCITY
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import ARMS, FR3_PAIR, ActionChunk, Metadata, Observation, Plan, Scene

__all__ = ["ExciteOptions", "ExcitePolicy"]

CHUNK = 10
"""Actions per answer."""
AHEAD = 25
"""So many are published where the world does not wait; the next answer replaces those after CHUNK.
More would keep the safety node, which checks them all, from its heartbeat."""
ON_ITS_WAY = 10
"""Control periods within which an answer is executed."""
HELD_RAD = 1e-3
"""So far beside the motion arms are no longer in it."""
LOW_HZ = 0.1
FADE_S = 1.0
REST_S = 0.5
"""At the end, so that what is late still shows."""
DRAWS = 20
"""Sets of phases of which the one is taken that moves furthest within the limits."""
MARGIN_RAD = 0.05
MIN_HEIGHT_M = 0.15
"""How far above the table the hands' centre points stay: what stands there is not known."""
CHECK_EVERY = 4
SHRINK = 0.7
SMALLEST_RAD = 0.05
OVER = "the excitation is over: bench_tasks sysid reads its recording"


@dataclass(frozen=True)
class ExciteOptions:
    """How far each joint moves at most (rad), how long (s), up to which frequency (Hz).

    `share` is that of the joints' velocity and acceleration limits which is used at most.
    """

    amplitude_rad: float = 0.2
    duration_s: float = 20.0
    high_hz: float = 1.5
    share: float = 0.25

    def __post_init__(self) -> None:
        """UsageError names a value that no motion can have."""
        for name, low, high in (
            ("amplitude_rad", SMALLEST_RAD, 0.5), ("duration_s", 5.0, 50.0), ("high_hz", 0.5, 5.0),
            ("share", 0.01, 0.5),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(
                    f"policy excite: {name} must be from {low:g} to {high:g}, got {value:g}"
                )
        if len(_frequencies(self.high_hz, self.duration_s)) < 7:
            raise UsageError(
                f"policy excite: (high_hz - {LOW_HZ:g}) * duration_s must be more than 6, so that "
                f"each of 7 joints has a frequency of its own; got high_hz {self.high_hz:g} and "
                f"duration_s {self.duration_s:g}"
            )


class ExcitePolicy:
    """Both arms of an FR3 pair at once. Ends its episode by an error that says so."""

    Options = ExciteOptions
    metadata = Metadata("excite", "2")
    realtime = False
    """Whether the world goes on while it is asked, as the policy's node knows."""

    def __init__(self, options: ExciteOptions | None = None) -> None:
        """Begin without an episode."""
        self._options = options or ExciteOptions()
        self._scene: Scene | None = None
        self._seed = 0
        self._values: np.ndarray | None = None
        self._start = np.zeros(0)
        self._first = self._passed = 0

    def reset(self, scene: Scene, seed: int) -> None:
        """Another seed, another motion. UsageError when the robot is no FR3 pair."""
        if scene.embodiment != FR3_PAIR:
            raise UsageError(f"policy excite moves {FR3_PAIR} only, not {scene.embodiment}")
        self._scene, self._seed, self._values = scene, seed, None

    def accept(self, plan: Plan) -> None:
        """Ignore the plan."""

    def infer(self, observation: Observation) -> ActionChunk:
        """Return what comes next; BenchError when it is over, is not executed or cannot be done."""
        state = observation.state
        if self._values is None:
            self._first, self._start = state.seq, np.array(state.command, np.float64)
            self._values = self._prepared()
        at = state.seq - self._first
        if at >= len(self._values):
            raise BenchError(OVER)
        told = self._values[at - 1] if at else self._start
        beside = np.abs(state.command - told)[embodiments.get(FR3_PAIR).joint_columns].max()
        if not beside <= HELD_RAD:
            raise BenchError(
                f"the excitation is not executed: after {at} periods the arms are told to be "
                f"{beside:.3f} rad beside it; the events say what has slowed or stopped them"
            )
        if self.realtime:
            # From here on without a gap: the arms do not stand still while the next answer comes.
            count = CHUNK if at else self._passed + CHUNK
            ahead = {"until_next": min(count, len(self._values) - at)}
            return ActionChunk(
                state.seq, self._values[at : at + count - CHUNK + AHEAD], detail=ahead
            )
        return ActionChunk(state.seq, self._values[at : at + CHUNK])

    def _prepared(self) -> np.ndarray:
        """The motion, and before it rest for as long as the world has gone on without it."""
        begun = time.perf_counter()
        motion = self._motion(self._start)
        if self.realtime and self._scene is not None:
            passed_ns = (time.perf_counter() - begun) * 1e9
            self._passed = math.ceil(passed_ns / self._scene.control_period_ns)
            rest = np.tile(self._start, (self._passed + ON_ITS_WAY, 1))
            motion = np.concatenate([rest, motion])
        return motion

    def _motion(self, start: np.ndarray) -> np.ndarray:
        """Actions (n, 16) from the command `start` (16,) back to it, free of collisions."""
        if self._scene is None:
            raise BenchError("policy excite: reset comes first")
        period_s = self._scene.control_period_ns / 1e9
        away = multi_sine(self._options, period_s, self._seed)
        columns = embodiments.get(FR3_PAIR).joint_columns
        arms = dual_arm()
        arms.set_base_height(self._scene.base_height_m)
        scale = 1.0
        while True:
            values = np.tile(start, (len(away), 1))
            values[:, columns] += scale * away
            moved = np.ptp(values[:, columns], axis=0)
            if not moved.min() >= MIN_MOTION_RAD:  # nor is what is no number
                least = int(np.argmin(moved))
                raise BenchError(
                    f"policy excite would move joint {least % 7 + 1} of the {ARMS[least // 7]} arm "
                    f"by {moved[least]:.3f} rad only, and sysid needs {MIN_MOTION_RAD:g}: give it "
                    "more share, amplitude_rad or room, or a lower high_hz"
                )
            wrong = _obstacle(values)
            if not wrong:
                rest = np.tile(start, (round(REST_S / period_s), 1))
                return np.concatenate([values, rest])
            scale *= SHRINK
            if scale * self._options.amplitude_rad < SMALLEST_RAD:
                raise BenchError(f"policy excite finds no room to move: {wrong}")


def multi_sine(options: ExciteOptions, period_s: float, seed: int) -> np.ndarray:
    """Displacements (n, 14) rad, from and to rest at 0, as far as limits and options allow."""
    rng = np.random.default_rng([seed, 0xE8C17E])
    time = period_s * np.arange(1, round(options.duration_s / period_s) + 1)
    end = time[-1]
    frequencies = _frequencies(options.high_hz, end)
    fade = np.minimum(1.0, np.minimum(time, end - time) / FADE_S)
    fade = fade**3 * (10.0 - 15.0 * fade + 6.0 * fade**2)
    columns = []
    for joint in range(7 * len(ARMS)):
        omega = 2.0 * np.pi * frequencies[joint % 7 :: 7]
        limits = (
            options.amplitude_rad, options.share * MAX_VELOCITY[joint % 7],
            options.share * MAX_ACCELERATION[joint % 7],
        )  # fmt: skip
        found = []
        for _ in range(DRAWS):
            phase = rng.uniform(0.0, 2.0 * np.pi, len(omega))
            # Equal speeds: what is slow shows dry friction, what is fast delay and inertia.
            one = fade * (np.sin(np.outer(time, omega) + phase) / omega).sum(axis=1)
            speed = np.gradient(one, period_s)
            peaks = [np.abs(v).max() for v in (one, speed, np.gradient(speed, period_s))]
            found.append(one * min(limit / peak for limit, peak in zip(limits, peaks, strict=True)))
        columns.append(max(found, key=np.std))
    return np.stack(columns, axis=1)


def _frequencies(high_hz: float, duration_s: float) -> np.ndarray:
    """Multiples (n,) of one base frequency above the lowest, to be dealt out to joints in turn."""
    base = max(1.0 / duration_s, (high_hz - LOW_HZ) / 28)
    return LOW_HZ + base * np.arange(int((high_hz - LOW_HZ) / base) + 1)


def _obstacle(values: np.ndarray) -> str:
    """What forbids the motion (n, 16); "" when nothing does."""
    arms = dual_arm()
    for row in values[::CHECK_EVERY]:
        joints = {arm: row[8 * k : 8 * k + 7] for k, arm in enumerate(ARMS)}
        for arm, q in joints.items():
            if (q < JOINT_LIMITS_RAD[:, 0] + MARGIN_RAD).any() or (
                q > JOINT_LIMITS_RAD[:, 1] - MARGIN_RAD
            ).any():
                return f"the {arm} arm is at the end of a joint's range"
            if arms.forward(arm, q)[2] < MIN_HEIGHT_M:
                return f"the {arm} hand comes closer than {MIN_HEIGHT_M:g} m to the table"
        hit = arms.collision(joints["left"], joints["right"], (row[7], row[15]))
        if hit is not None:
            return hit
    return ""
