"""Made-up scenes, states and episodes for tests of recording and scoring."""

from __future__ import annotations

import cv2
import numpy as np

from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    ActionChunk,
    CameraFrame,
    Event,
    ObjectInfo,
    Scene,
    WorldState,
)

JOINTS = tuple(f"{a}_fr3_joint{i}" for a in ("left", "right") for i in range(1, 8))
ENTITIES = ("block", "table", "left_arm", "left_finger1")


def scene(task: str = "made_lift", seed: int = 7, objects: int = 1, **params) -> Scene:
    """A scene with blocks named block, block2, ..."""
    names = ["block", *(f"block{i}" for i in range(2, objects + 1))]
    infos = tuple(ObjectInfo(n, "block", "red", (0.02, 0.02, 0.02)) for n in names)
    return Scene(task, 1, seed, "Lift the block.", infos, (*names, "table"), JOINTS, params)


def state(seq: int, objects: int = 1, contacts: int = 1, height: float = 0.02) -> WorldState:
    """State `seq`: objects at rest at `height`, everything else a function of the seq."""
    rng = np.random.default_rng(seq)
    pose = np.tile([0.4, 0.0, height, 1.0, 0.0, 0.0, 0.0], (objects, 1))
    return WorldState(
        seq, seq * CONTROL_PERIOD_NS, rng.normal(size=14), rng.normal(size=14),
        rng.normal(size=14), rng.random(2) * 0.08, rng.normal(size=(2, 7)), rng.normal(size=16),
        pose, np.zeros((objects, 6)),
        np.tile(np.array([[0, 1]], np.uint16), (contacts, 1)), np.full(contacts, 2.5),
    )  # fmt: skip


def png(width: int = 32, height: int = 24) -> bytes:
    """A small picture."""
    ramp = np.arange(height * width * 3).reshape(height, width, 3) % 256
    return cv2.imencode(".png", ramp.astype(np.uint8))[1].tobytes()


def feed(sink, states: int, last: bool = True, reached: int | None = None) -> None:
    """Give a sink an episode of so many states; the block hangs still from state `reached` on."""
    sink.scene(scene())
    sink.state(state(0))
    sink.event(Event("begin", 0, 0, {"planner": {"name": "p"}, "policy": {"name": "q"}}))
    sink.frames((CameraFrame("head", 0, 0, 32, 24, "png", png()),))
    sink.event(Event("act", 0, 0, {}))
    for seq in range(1, states):
        if seq % 10 == 1:
            chunk = ActionChunk(seq - 1, np.zeros((10, 16)))
            sink.chunk(chunk, (seq - 1) * CONTROL_PERIOD_NS)
        sink.state(state(seq, height=0.2 if reached is not None and seq >= reached else 0.02))
    if last:
        sink.event(Event("end", states - 1, (states - 1) * CONTROL_PERIOD_NS, {"cause": ""}))
