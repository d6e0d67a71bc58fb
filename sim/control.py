"""What the services of simulation_interfaces mean for this world, without ROS.

Numbers are those of simulation_interfaces 2.1 (`Result`, `SimulationState`, scopes of
`ResetSimulation`). A step is one control period in which the last command is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench_tasks.errors import BenchError
from bench_tasks.view import REST_ANGULAR_RAD_S, REST_LINEAR_M_S
from bench_tasks.vocabulary import Scene, WorldState, numbers

__all__ = [
    "ALREADY_THERE", "FAILED", "FEATURES", "INCORRECT_STATE", "NOT_FOUND", "OK", "PAUSED",
    "PLAYING", "QUITTING", "STOPPED", "UNSUPPORTED", "Outcome", "SimulationControl",
]  # fmt: skip

UNSUPPORTED, OK, NOT_FOUND, INCORRECT_STATE, FAILED = range(5)
ALREADY_THERE = 101
INCORRECT_TRANSITION = 103
STOPPED, PLAYING, PAUSED, QUITTING = range(4)
SCOPE_DEFAULT, SCOPE_TIME, SCOPE_STATE, SCOPE_SPAWNED, SCOPE_ALL = 0, 1, 2, 4, 255

FEATURES = (
    "ENTITY_STATE_GETTING", "ENTITY_STATE_SETTING", "SIMULATION_RESET",
    "SIMULATION_STATE_GETTING", "SIMULATION_STATE_SETTING", "SIMULATION_STATE_PAUSE",
    "STEP_SIMULATION_SINGLE", "STEP_SIMULATION_MULTIPLE", "STEP_SIMULATION_ACTION",
)  # fmt: skip
"""Names of the constants of `SimulatorFeatures` that hold here."""


@dataclass(frozen=True)
class Outcome:
    """A result code and, unless it is OK, the reason."""

    code: int = OK
    message: str = ""


class Controlled(Protocol):
    """The world node, as far as control needs it."""

    scene: Scene | None
    state: WorldState | None
    paused: bool

    def restart(self) -> None:
        """Back to state 0 of the present episode, and publish it."""
        ...

    def advance(self, values: np.ndarray) -> None:
        """Execute actions (k, 16)."""
        ...

    def move(self, poses: dict[str, np.ndarray]) -> None:
        """Put objects at poses (7,), at rest."""
        ...

    def stop(self, status: int = 0) -> None:
        """End the process."""
        ...


NO_EPISODE = Outcome(INCORRECT_STATE, "no episode is loaded")


class SimulationControl:
    """Pause, step, reset and entity access of one cell."""

    def __init__(self, cell: Controlled) -> None:
        """Control `cell`."""
        self._cell = cell
        self._stopped = False

    @property
    def mode(self) -> int:
        """STOPPED before the first episode and when told so, else PLAYING or PAUSED."""
        if self._cell.state is None or (self._stopped and self._cell.paused):
            return STOPPED
        return PAUSED if self._cell.paused else PLAYING

    def set_mode(self, mode: int) -> Outcome:
        """Pause, play, stop (which resets and stands still) or quit."""
        if mode == QUITTING:
            self._cell.stop()
            return Outcome()
        if mode not in (STOPPED, PLAYING, PAUSED):
            return Outcome(INCORRECT_TRANSITION, f"unknown simulation state {mode}")
        if self._cell.state is None:
            return NO_EPISODE
        if mode == self.mode:
            return Outcome(ALREADY_THERE, "the simulation is in that state already")
        if mode == PAUSED and self.mode == STOPPED:
            return Outcome(INCORRECT_TRANSITION, "a stopped simulation cannot be paused")
        if mode == STOPPED:
            self._cell.restart()
        self._cell.paused, self._stopped = mode != PLAYING, mode == STOPPED
        return Outcome()

    def reset(self, scope: int) -> Outcome:
        """Back to the start of the episode: time, state, controllers and numbering together.

        Parts of that (only time, only state) would let the arms snap back, so they are refused.
        """
        if self._cell.state is None:
            return NO_EPISODE
        if scope not in (SCOPE_DEFAULT, SCOPE_ALL, SCOPE_TIME | SCOPE_STATE | SCOPE_SPAWNED):
            return Outcome(
                UNSUPPORTED, "time, state and controllers are reset together: use scope 0 or 255"
            )
        self._cell.restart()
        return Outcome()

    def step(self, count: int) -> Iterator[tuple[int, Outcome | None]]:
        """Run `count` periods while paused; yields (periods done, outcome once it is over)."""
        if self.mode != PAUSED:
            yield 0, Outcome(FAILED, "steps are possible only while the simulation is paused")
            return
        if count < 1:
            yield 0, Outcome(FAILED, f"steps must be at least 1, got {count}")
            return
        for done in range(1, count + 1):
            state = self._cell.state
            assert state is not None
            try:
                self._cell.advance(state.command[None])
            except BenchError as error:
                yield done - 1, Outcome(FAILED, str(error))
                return
            yield done, Outcome() if done == count else None

    def entities(self, pattern: str) -> tuple[Outcome, list[str]]:
        """Names of the objects that the regular expression matches in full; all if it is ""."""
        if self._cell.scene is None:
            return NO_EPISODE, []
        try:
            match = re.compile(pattern or ".*").fullmatch
        except re.error as error:
            return Outcome(FAILED, f"filter {pattern!r}: {error}"), []
        return Outcome(), [o.name for o in self._cell.scene.objects if match(o.name)]

    def entity(self, name: str) -> tuple[Outcome, np.ndarray, np.ndarray]:
        """Pose (7,) and twist (6,) of an object in the world frame, as of the present state."""
        row, outcome = self._row(name)
        if row is None:
            return outcome, np.zeros(7), np.zeros(6)
        state = self._cell.state
        assert state is not None
        return outcome, state.object_pose[row], state.object_twist[row]

    def set_entity(self, name: str, pose: np.ndarray, twist: np.ndarray, frame: str) -> Outcome:
        """Put an object at a pose (7,), at rest. It shows in the next state."""
        row, outcome = self._row(name)
        if row is None:
            return outcome
        if frame not in ("", "world"):
            return Outcome(UNSUPPORTED, f"poses must be in the frame 'world', not {frame!r}")
        # What was read of an object at rest can be written back: physics leaves a little speed.
        at_rest = np.linalg.norm(twist[:3]) < REST_LINEAR_M_S
        if not (at_rest and np.linalg.norm(twist[3:]) < REST_ANGULAR_RAD_S):
            return Outcome(UNSUPPORTED, "objects can only be put down at rest")
        try:
            self._cell.move({name: numbers(f"pose of {name}", pose, (7,))})
        except BenchError as error:
            return Outcome(FAILED, str(error))
        return Outcome()

    def _row(self, name: str) -> tuple[int | None, Outcome]:
        scene = self._cell.scene
        if scene is None or self._cell.state is None:
            return None, NO_EPISODE
        names = [o.name for o in scene.objects]
        if name not in names:
            return None, Outcome(NOT_FOUND, f"no entity {name!r}: there are {', '.join(names)}")
        return names.index(name), Outcome()
