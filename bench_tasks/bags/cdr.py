"""CDR, the byte form of ROS 2 messages, to and from the vocabulary; no ROS needed.

The bytes are canonical: padding is zero and nothing trails, so equal content gives equal bytes
(a middleware's own serialiser leaves uninitialised memory in both places). Every decoder raises
ValueError on bytes that are too short or otherwise not what the type says.
"""

from __future__ import annotations

import hashlib
import json
import struct
from functools import cache
from typing import Any

import numpy as np

from bench_tasks.bags.cdr_types import HEADER, decode, encode, join_ns, split_ns
from bench_tasks.bags.interfaces import DEFINITIONS
from bench_tasks.vocabulary import ACTION_SIZE, ActionChunk, Event, Scene, Verdict, WorldState

__all__ = [
    "HEADER", "StateHash", "canonical", "decode", "decode_chunk", "decode_event", "decode_scene",
    "decode_state", "decode_verdict", "encode", "encode_chunk", "encode_clock", "encode_event",
    "encode_joint_state", "encode_scene", "encode_state", "encode_verdict", "join_ns", "layout",
    "split_ns",
]  # fmt: skip


def canonical(type_name: str, data: bytes) -> bytes:
    """The same message without a garbage tail or padding; unchanged if the type is not known."""
    if type_name not in DEFINITIONS:
        return bytes(data)
    if type_name == _STATE_TYPE:
        return encode_state(decode_state(data))
    return encode(type_name, decode(type_name, data))


# ---- the state track: by far the most messages, so by hand -------------------------------------

_STATE_TYPE = "bench_interfaces/msg/WorldState"
_STATE_HEAD = struct.Struct("<QiI")
_COUNT = struct.Struct("<I")
_ARMS = ("joint_position", "joint_velocity", "joint_effort", "gripper_opening", "ee_pose",
         "command")  # fmt: skip


def _arm_sizes(joints: int, command: int) -> tuple[int, ...]:
    """Sizes of the arrays `_ARMS`; ValueError when no robot has so many joints and commands.

    Two arms of seven joints are there at least, and what a humanoid has besides: some of it is
    commanded (see `embodiments`).
    """
    if joints < 14:
        raise ValueError(f"state: joint_position has {joints} values, not 14 or more")
    if not ACTION_SIZE <= command <= joints + 2:
        raise ValueError(f"state: command has {command} values, not {ACTION_SIZE} to {joints + 2}")
    return (joints, joints, joints, 2, 14, command)


@cache
def _counts(sizes: tuple[int, ...], objects: int, contacts: int) -> tuple[bytes, ...]:
    """Before each array: padding, its length, padding. Constant for given sizes."""
    position, found = _STATE_HEAD.size, []
    sizes = (*sizes, 7 * objects, 6 * objects)
    for size, item in [*((s, 8) for s in sizes), (2 * contacts, 2), (contacts, 8)]:
        lead = bytes(-position % 4) + _COUNT.pack(size)
        position += len(lead)
        if size:
            lead += bytes(-position % item)
            position += -position % item + size * item
        found.append(lead)
    return tuple(found)


def _bytes(array: np.ndarray, size: int, name: str) -> bytes:
    out = np.ascontiguousarray(array, "<f8")
    if out.size != size:
        raise ValueError(f"state: {name} has {out.size} values, not {size}")
    return out.tobytes()


def encode_state(state: WorldState) -> bytes:
    """One WorldState message. ValueError when an array has not the size its docstring says."""
    objects, contacts = len(state.object_pose), len(state.contact_force)
    sizes = _arm_sizes(np.size(state.joint_position), np.size(state.command))
    c = _counts(sizes, objects, contacts)
    pair = np.ascontiguousarray(state.contact_pair, "<u2")
    if pair.size != 2 * contacts:
        raise ValueError(f"state: {contacts} contact forces but {pair.size} contact indices")
    sec, nanosec = divmod(state.stamp_ns, 1_000_000_000)
    return b"".join((
        HEADER, _STATE_HEAD.pack(state.seq, sec, nanosec),
        *(
            part
            for k, (name, size) in enumerate(zip(_ARMS, sizes, strict=True))
            for part in (c[k], _bytes(getattr(state, name), size, name))
        ),
        c[6], _bytes(state.object_pose, 7 * objects, "object_pose"),
        c[7], _bytes(state.object_twist, 6 * objects, "object_twist"),
        c[8], pair.tobytes(),
        c[9], _bytes(state.contact_force, contacts, "contact_force"),
    ))  # fmt: skip


def decode_state(data: bytes) -> WorldState:
    """Inverse of `encode_state`; what trails the message is ignored. The arrays are read-only."""
    if bytes(data[:4]) != HEADER:
        raise ValueError(f"not little-endian plain CDR: header {bytes(data[:4]).hex()}")
    body = bytes(data[4:])  # a copy, so that the float64 fields lie aligned in memory
    try:
        seq, sec, nanosec = _STATE_HEAD.unpack_from(body)
        f8 = np.frombuffer(body, "<f8", len(body) // 8)
        index, arms = 3, []
        for _ in _ARMS:
            # Each of them is a multiple of 8 bytes, so all begin at one.
            size = _COUNT.unpack_from(body, 8 * index - 8)[0]
            arms.append(f8[index : index + size])
            index += size + 1
        found = tuple(map(len, arms))
        if found != _arm_sizes(found[0], found[-1]):
            raise ValueError(f"state {seq}: arrays of the arms have {found} values")
        position = 8 * index - 8
        tail = []
        for item, dtype in ((8, "<f8"), (8, "<f8"), (2, "<u2"), (8, "<f8")):
            position += -position % 4
            count = _COUNT.unpack_from(body, position)[0]
            position += 4
            if count:
                position += -position % item
            tail.append(np.frombuffer(body, dtype, count, position))
            position += item * count
    except struct.error as error:
        raise ValueError(f"state ends after {len(data)} bytes: {error}") from None
    pose, twist, pair, force = tail
    objects = len(pose) // 7
    if 7 * objects != len(pose) or 6 * objects != len(twist) or len(pair) != 2 * len(force):
        raise ValueError(f"state {seq}: object or contact arrays do not match each other")
    return WorldState(
        seq, sec * 1_000_000_000 + nanosec, arms[0], arms[1], arms[2], arms[3],
        arms[4].reshape(2, 7), arms[5], pose.reshape(-1, 7), twist.reshape(-1, 6),
        pair.reshape(-1, 2), force,
    )  # fmt: skip


class StateHash:
    """SHA-256 over the content of a state track, in order: equal tracks, equal hash."""

    def __init__(self) -> None:
        """Start with no state."""
        self._sha = hashlib.sha256()

    def add(self, state: WorldState) -> None:
        """Take the next state."""
        self._sha.update(encode_state(state))

    def add_encoded(self, data: bytes) -> None:
        """Take the next state as its canonical bytes (from `encode_state`), not as received."""
        self._sha.update(data)

    def hexdigest(self) -> str:
        """The hash of the states so far."""
        return self._sha.hexdigest()


# ---- the other messages -----------------------------------------------------------------------


def encode_clock(stamp_ns: int) -> bytes:
    """rosgraph_msgs/Clock."""
    return encode("rosgraph_msgs/msg/Clock", {"clock": split_ns(stamp_ns)})


def encode_scene(scene: Scene) -> bytes:
    """Scene at stamp 0, the start of the episode."""
    return encode("bench_interfaces/msg/Scene", {"stamp": split_ns(0), "json": scene.to_json()})


def decode_scene(data: bytes) -> Scene:
    """Inverse of `encode_scene`."""
    text = decode("bench_interfaces/msg/Scene", data)["json"]
    try:
        return Scene.from_json(text)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"malformed scene: {error!r}") from None


def encode_chunk(chunk: ActionChunk, stamp_ns: int, period_ns: int) -> bytes:
    """ActionChunk asked for at `stamp_ns`, one action per `period_ns`."""
    values = np.asarray(chunk.values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < ACTION_SIZE:
        raise ValueError(f"chunk values have shape {values.shape}, not (k, {ACTION_SIZE} or more)")
    return encode(
        "bench_interfaces/msg/ActionChunk",
        {"stamp": split_ns(stamp_ns), "seq": chunk.seq, "period_ns": period_ns,
         "layout": layout(values.shape[1]), "values": values.ravel()},
    )  # fmt: skip


def decode_chunk(data: bytes) -> ActionChunk:
    """Inverse of `encode_chunk`."""
    raw = decode("bench_interfaces/msg/ActionChunk", data)
    size = _action_size(raw["layout"])
    if not size or len(raw["values"]) % size:
        raise ValueError(f"chunk of {len(raw['values'])} values in layout {raw['layout']!r}")
    return ActionChunk(raw["seq"], np.reshape(raw["values"], (-1, size)))


_LAYOUT = "joint_position"


def layout(size: int) -> str:
    """Name of the layout of actions of this size; the FR3 pair's has no number."""
    return _LAYOUT if size == ACTION_SIZE else f"{_LAYOUT}:{size}"


def _action_size(label: str) -> int:
    """Inverse of `layout`; 0 for a layout that is none of ours."""
    if label == _LAYOUT:
        return ACTION_SIZE
    name, _, number = label.partition(":")
    right = name == _LAYOUT and number.isascii() and number.isdigit() and len(number) < 4
    return int(number) if right and int(number) > ACTION_SIZE else 0


def encode_event(event: Event) -> bytes:
    """EpisodeEvent; numpy values in `data` become plain numbers and lists."""
    return encode(
        "bench_interfaces/msg/EpisodeEvent",
        {"stamp": split_ns(event.stamp_ns), "seq": event.seq, "kind": event.kind,
         "data": _json(event.data)},
    )  # fmt: skip


def decode_event(data: bytes) -> Event:
    """Inverse of `encode_event`."""
    raw = decode("bench_interfaces/msg/EpisodeEvent", data)
    content = json.loads(raw["data"])
    if not isinstance(content, dict):
        raise ValueError(f"event {raw['kind']!r}: data is not a JSON object")
    return Event(raw["kind"], raw["seq"], join_ns(raw["stamp"]), content)


def encode_verdict(verdict: Verdict) -> bytes:
    """Verdict, stamped with the simulated time at its end; `details` carries the stages too."""
    return encode(
        "bench_interfaces/msg/Verdict",
        {"stamp": split_ns(round(verdict.sim_s * 1e9)), "task": verdict.task,
         "seed": verdict.seed, "success": verdict.success, "progress": verdict.progress,
         "cause": verdict.cause, "end_seq": verdict.end_seq,
         "details": _json({"stages": verdict.stages, "details": verdict.details})},
    )  # fmt: skip


def decode_verdict(data: bytes) -> Verdict:
    """Inverse of `encode_verdict`."""
    raw = decode("bench_interfaces/msg/Verdict", data)
    try:
        more = json.loads(raw["details"])
        stages, details = dict(more["stages"]), dict(more["details"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"malformed verdict: {error!r}") from None
    return Verdict(
        raw["task"], raw["seed"], raw["success"], raw["progress"], raw["cause"],
        stages, raw["end_seq"], join_ns(raw["stamp"]) / 1e9, details,
    )  # fmt: skip


def encode_joint_state(state: WorldState, names: tuple[str, ...]) -> bytes:
    """sensor_msgs/JointState of the joints, named as in `Scene.joint_names`."""
    return encode(
        "sensor_msgs/msg/JointState",
        {"header": {"stamp": split_ns(state.stamp_ns), "frame_id": ""}, "name": names,
         "position": state.joint_position, "velocity": state.joint_velocity,
         "effort": state.joint_effort},
    )  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be recorded: {value!r}")
