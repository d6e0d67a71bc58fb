"""Made-up scenes, states and episodes for tests of recording and scoring."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np

from bench_tasks import tasks
from bench_tasks.robots import g1
from bench_tasks.verdicts.monitor import Monitor
from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    ROBOT_PART,
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


BLOCKS = ("red_block", "green_block", "blue_block")
PARTS = tuple(f"{a}_{p}" for a in ("left", "right") for p in ("arm", "hand", "finger1", "finger2"))


def ranking_scene(seed: int = 3, version: int = 1) -> Scene:
    """A scene of the real task blocks_ranking_rgb."""
    infos = tuple(ObjectInfo(n, "block", n.split("_")[0], (0.02, 0.02, 0.02)) for n in BLOCKS)
    text = "Put the three blocks in a row."
    return Scene(
        "blocks_ranking_rgb", version, seed, text, infos, (*BLOCKS, "table", *PARTS), JOINTS, {}
    )


def ranking_state(seq: int, y: tuple[float, ...], contacts=((0, 3), (1, 3), (2, 3))) -> WorldState:
    """The three blocks at rest on the table at these y, in contact with what is named."""
    zeros = np.zeros(14)
    pose = np.array([[0.45, at, 0.02, 1.0, 0.0, 0.0, 0.0] for at in y])
    arms = np.tile([0.4, 0.0, 0.4, 0.0, 1.0, 0.0, 0.0], (2, 1))
    pairs = np.array(contacts, dtype=np.uint16).reshape(-1, 2)
    return WorldState(
        seq, seq * CONTROL_PERIOD_NS, zeros, zeros, zeros, np.full(2, 0.08), arms, np.zeros(16),
        pose, np.zeros((3, 6)), pairs, np.full(len(pairs), 1.0),
    )  # fmt: skip


IN_ORDER, OUT_OF_ORDER = (0.09, 0.0, -0.09), (0.0, 0.09, -0.09)


def ranking_episode(
    sink, states: int = 40, y=IN_ORDER, verdict: bool = True, leave_out=(), version: int = 1,
    cause: str = "", contacts=((0, 3), (1, 3), (2, 3)), seed: int = 3, **end,
) -> None:
    """A whole episode of the real task, judged live; `leave_out` names states that get lost."""
    track = [ranking_state(seq, y, contacts) for seq in range(states)]
    _play(sink, ranking_scene(seed, version), track, verdict, leave_out, cause, **end)


def reach_scene(embodiment: str = "g1", task: str = "reach_both_hands", version: int = 2) -> Scene:
    """A scene of a humanoid's real task: a table of 0.74 m, and poses for both hands."""
    pelvis = ObjectInfo(g1.PELVIS, ROBOT_PART, "gray", (0.1, 0.1, 0.1))
    parties = (g1.PELVIS, "floor", "table", *PARTS, "body", "left_foot", "right_foot")
    targets = {"left": [0.35, 0.2, 0.2, 1, 0, 0, 0], "right": [0.35, -0.2, 0.2, 1, 0, 0, 0]}
    return Scene(
        task, version, 4, "Bring both hands there.", (pelvis,), parties, g1.JOINT_NAMES,
        {"targets": targets}, base_height_m=-0.74, embodiment=embodiment,
    )  # fmt: skip


def reach_episode(
    sink, states: int = 60, joints: int = 29, actions: int = 19, objects: int = 1, party: int = 13,
    verdict: bool = True, **scene,
) -> None:
    """A humanoid that stands on both feet, its hands where they are to be."""
    hands = np.array([[0.35, y, 0.2, 1.0, 0.0, 0.0, 0.0] for y in (0.2, -0.2)])
    zeros, pelvis = np.zeros(joints), np.array([0.0, 0.0, 0.02, 1.0, 0.0, 0.0, 0.0])
    feet = np.array([[1, 12], [1, party]], np.uint16)
    track = [
        WorldState(
            seq, seq * CONTROL_PERIOD_NS, zeros, zeros, zeros, np.zeros(2), hands,
            np.zeros(actions), np.tile(pelvis, (objects, 1)), np.zeros((objects, 6)), feet,
            np.full(2, 160.0),
        )
        for seq in range(states)
    ]  # fmt: skip
    _play(sink, reach_scene(**scene), track, verdict)


def _play(
    sink, scene_: Scene, track: list[WorldState], verdict: bool = True, leave_out=(),
    cause: str = "", **end,
) -> None:
    """Give a sink an episode with these states, judged live."""
    monitor = Monitor(tasks.get(scene_.task), scene_) if verdict else None
    sink.scene(scene_)
    last = len(track) - 1
    for seq, state_ in enumerate(track):
        if monitor is not None:
            monitor.on_state(state_)
        if seq not in leave_out:
            sink.state(state_)
        happened = []
        if seq == 0:
            roles = {"planner": {"name": "expert"}, "policy": {"name": "skills"}}
            happened = [Event("begin", 0, 0, roles), Event("act", 0, 0, {})]
        if seq == last and end.get("end", True):
            happened = [Event("end", seq, state_.stamp_ns, {"cause": cause})]
        for event in happened:
            sink.event(event)
            if monitor is not None:
                monitor.on_event(event)
    if monitor is not None:
        sink.verdict(monitor.verdict())


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


def equal(a, b) -> bool:
    """Equality of dataclasses that hold arrays, bit for bit."""
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            if x.shape != y.shape or x.dtype != y.dtype or x.tobytes() != y.tobytes():
                return False
        elif x != y:
            return False
    return True


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
import made
from pathlib import Path
from bench_tasks.bags.recording import BagSink
made.feed(BagSink(Path(sys.argv[1])), 200, last=False)
os.kill(os.getpid(), signal.SIGKILL)
"""


def record_and_be_killed(path: Path) -> int:
    """Let a process record 200 states into the bag and die by SIGKILL; its exit status."""
    here = Path(__file__).parent
    args = [sys.executable, "-c", KILLED, str(path), str(here.parents[1]), str(here)]
    return subprocess.run(args, timeout=60, check=False).returncode
