"""What a policy server says, answers, and remembers from one episode to the next.

Users of these wires lose weeks to servers that go on with the last episode's history: nothing on
the wire tells them. Here the same first observation is shown after several resets, with another
episode in between; what is answered must be the same. That needs a server that answers the same
twice at all; where it does not, the probe says that it cannot tell.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.robots.fr3 import HOME_RAD, JOINT_NAMES
from bench_tasks.robots.kinematics import dual_arm
from bench_tasks.vocabulary import (
    ARMS,
    MAX_OPENING_M,
    CameraFrame,
    Observation,
    Scene,
    WorldState,
)
from policies import make_policy
from policies.remote.actions import chunk_values
from policies.remote.client import RemotePolicy

__all__ = ["CANNOT_TELL", "FORGETS", "KEEPS", "examine", "memory"]

REPEATS = 5
BETWEEN = 4
TOLERANCE = 1e-5
"""Relative: the same network may add up its numbers in another order."""
FORGETS = "the same first observation is answered the same before and after another episode"
KEEPS = "the answer to the same first observation depends on the episodes before it"
CANNOT_TELL = (
    "cannot tell: the same first observation is answered differently after each reset, by chance "
    "or because of what was before"
)
Found = tuple[str, bool, str, str, bool]


def examine(spec: str) -> list[Found]:
    """Findings (name, ok, found, remedy, needed) in the order of the questions.

    UsageError when the policy is on no server.
    """
    policy = make_policy(spec)
    if not isinstance(policy, RemotePolicy):
        raise UsageError(f"policy {policy.metadata.name} runs in this process, on no server")
    found: list[Found] = []
    try:
        policy.reset(_scene(0), 0)
    except BenchError as error:
        remedy = "start the server, or choose an embodiment file that fits it (docs/policies.md)"
        return [("server", False, str(error), remedy, True)]
    said = ", ".join(f"{key}: {value}" for key, value in policy.server_metadata.items())
    said = policy.shown(said)[:500] or "it says nothing of itself"
    found.append(("server", True, said, "", True))
    remedy = "see docs/policies.md, or the server's own output"
    try:
        observation = _observation(policy, 0)
        reply = policy.answer(observation)
        values = chunk_values(policy.embodiment, reply, observation.state, _scene(0))
        text = f"{len(values)} control periods in {policy.latency_s[-1] * 1e3:.0f} ms"
        found.append(("answer", True, text, "", True))
    except BenchError as error:
        # What is wrong with the numbers need not be: it was shown noise. Memory can be judged.
        found.append(("answer", False, str(error), remedy, False))
    try:
        verdict = memory(policy)
        remedy = "restart the server for each episode, or make it forget when a connection begins"
        found.append(("memory", verdict == FORGETS, verdict, remedy, verdict == KEEPS))
    except BenchError as error:
        found.append(("memory", False, str(error), remedy, True))
    finally:
        policy.close()
    return found


def memory(policy: RemotePolicy) -> str:
    """One of FORGETS, KEEPS and CANNOT_TELL; BenchError when the server fails.

    A server whose answers settle only after some episodes of the same kind is one that keeps a
    history, too: chance does not settle.
    """
    first = [_episode(policy, [0]) for _ in range(REPEATS)]
    same = [_equal(a, b) for a, b in zip(first, first[1:], strict=False)]
    if not same[-1]:
        return KEEPS if any(same) else CANNOT_TELL
    _episode(policy, list(range(1, BETWEEN + 1)))
    return FORGETS if all(same) and _equal(first[-1], _episode(policy, [0])) else KEEPS


def _episode(policy: RemotePolicy, kinds: list[int]) -> np.ndarray:
    """Show these observations in an episode of their own; the last answer's numbers, flat."""
    policy.reset(_scene(kinds[0]), 0)
    reply: dict[str, Any] = {}
    for kind in kinds:
        reply = policy.answer(_observation(policy, kind))
    arrays = []
    for vector in policy.embodiment.action.vectors:
        value: Any = reply
        for name in vector.key:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, np.ndarray):
            raise BenchError(f"it sent no array {'/'.join(vector.key)!r}")
        arrays.append(np.ravel(value).astype(np.float64))
    return np.concatenate(arrays)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def _scene(kind: int) -> Scene:
    prompt = "Lift the block." if kind == 0 else "Put the cup on the plate."
    return Scene("probe", 1, 0, prompt, (), (), JOINT_NAMES, {})


def _observation(policy: RemotePolicy, kind: int) -> Observation:
    """Arms near home, and noise for pictures, always the same for a `kind`."""
    rng = np.random.default_rng(kind)
    joints = np.tile(HOME_RAD, 2) + (0.05 * rng.standard_normal(14) if kind else 0.0)
    opening = np.full(2, MAX_OPENING_M if kind == 0 else 0.03)
    command = np.concatenate([joints[:7], opening[:1], joints[7:], opening[1:]])
    arms = dual_arm()
    arms.set_base_height(0.0)
    poses = np.stack([arms.forward(arm, joints[7 * k : 7 * k + 7]) for k, arm in enumerate(ARMS)])
    zeros = np.zeros(14)
    state = WorldState(
        0, 0, joints, zeros, zeros, opening, poses, command, np.zeros((0, 7)), np.zeros((0, 6)),
        np.zeros((0, 2), np.uint16), np.zeros(0),
    )  # fmt: skip
    frames = []
    for camera in policy.metadata.cameras:
        small = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        pixels = cv2.resize(small, (320, 240), interpolation=cv2.INTER_LINEAR)
        data = cv2.imencode(".png", pixels)[1].tobytes()
        frames.append(CameraFrame(camera, 0, 0, 320, 240, "png", data))
    return Observation(state, tuple(frames))
