"""A world so light that a thousand episodes take no time: the arms are where they are told."""

from __future__ import annotations

import cv2
import numpy as np

from bench_tasks.episode import run_episode
from bench_tasks.robots.fr3 import HOME_RAD, JOINT_NAMES
from bench_tasks.tasks.base import Check, Goal, Layout, ObjectSpec, Task
from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    CameraFrame,
    Metadata,
    ObjectInfo,
    Scene,
    WorldState,
)

HOME = np.tile(np.concatenate([HOME_RAD, [0.08]]), 2)
ARM = np.r_[0:7, 8:15]


def scene(seed: int = 0) -> Scene:
    block = ObjectInfo("block", "block", "red", (0.02, 0.02, 0.02))
    return Scene(
        "wire_drill", 1, seed, "Lift the block.", (block,), ("block", "table"), JOINT_NAMES, {}
    )


def state(command: np.ndarray = HOME, seq: int = 0) -> WorldState:
    pose = np.array([[0.45, 0.2, 0.02, 1.0, 0.0, 0.0, 0.0]])
    ee = np.tile([0.3, 0.35, 0.5, 0.0, 1.0, 0.0, 0.0], (2, 1))
    zeros = np.zeros(14)
    return WorldState(
        seq, seq * CONTROL_PERIOD_NS, command[ARM], zeros, zeros, command[[7, 15]], ee,
        np.array(command), pose, np.zeros((1, 6)), np.zeros((0, 2), np.uint16), np.zeros(0),
    )  # fmt: skip


def frame(camera: str, seq: int = 0, width: int = 64, height: int = 48) -> CameraFrame:
    """A picture whose upper left quarter is red, the rest blue (PNG: exact)."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:] = (255, 0, 0)
    pixels[: height // 2, : width // 2] = (0, 0, 255)
    data = cv2.imencode(".png", pixels)[1].tobytes()
    return CameraFrame(camera, seq, seq * CONTROL_PERIOD_NS, width, height, "png", data)


class DrillTask(Task):
    """Nothing ends it but its time limit, or the policy."""

    name, mode, summary = "wire_drill", "single", "a drill"
    tier = 2
    time_limit_s = 0.6

    def objects(self):
        return (ObjectSpec("block", "block", "red"),)

    def layout(self, rng, objects):
        return Layout({}, "Lift the block.")

    def goal(self, scene):
        return Goal((Check("lifted", lambda view: view.position("block")[2] > 0.1),))

    def expert(self, view, turn):
        return []


class DrillWorld:
    """Executes every action as it is and keeps it."""

    def __init__(self) -> None:
        self.commands: list[np.ndarray] = []
        self.captures = 0

    def reset(self, task, seed, vary=()):
        self.commands, self._state = [], state()
        return scene(seed), self._state

    def step(self, chunk):
        assert chunk.seq == self._state.seq
        states = []
        for action in chunk.values:
            self.commands.append(np.array(action))
            self._state = state(action, self._state.seq + 1)
            states.append(self._state)
        return states

    def move_objects(self, poses):
        raise AssertionError("nobody moves objects here")

    def capture(self, cameras):
        self.captures += 1
        return tuple(frame(camera, self._state.seq) for camera in cameras)


class Silent:
    """A planner that is asked nothing."""

    metadata = Metadata("silent", "1")

    def reset(self, scene, seed):
        pass


class NoSink:
    """Keeps the events only."""

    def __init__(self) -> None:
        self.events = []

    def event(self, event):
        self.events.append(event)

    def __getattr__(self, name):
        return lambda *_: None


def run(policy, world: DrillWorld | None = None, seed: int = 0, limit_s: float | None = None):
    """(verdict, world) of one drill episode."""
    world = world or DrillWorld()
    task = DrillTask()
    if limit_s is not None:
        task.time_limit_s = limit_s
    verdict, _ = run_episode(task, seed, world, Silent(), policy, NoSink())
    return verdict, world

