"""Reads a recorded episode back into the vocabulary, as far as the recording goes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench_tasks import tasks
from bench_tasks.bags import cdr
from bench_tasks.bags.mcap_file import McapFile, Message
from bench_tasks.errors import UsageError
from bench_tasks.images import camera_of_depth, camera_of_topic, decode_depth, decode_frame
from bench_tasks.manifest import read_json
from bench_tasks.vocabulary import (
    ActionChunk,
    CameraFrame,
    Event,
    Scene,
    Verdict,
    WorldState,
)

__all__ = [
    "Recording", "find_bags", "frames", "measured_frames", "messages", "place_of", "read_bag",
]  # fmt: skip

_SCORED = ("/world/scene", "/world/state", "/episode/events", "/episode/verdict")
_CHUNKS = "/policy/action_chunk"


@dataclass
class Recording:
    """One episode as recorded. `problems` is empty when everything could be read.

    `notes` says what is missing that no verdict needs. `state_hash` is over all recorded states,
    `counts` are the messages by topic; `manifest` is {} when there is none.
    """

    path: Path
    scene: Scene | None = None
    states: list[WorldState] = field(default_factory=list)
    chunks: list[ActionChunk] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    verdict: Verdict | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    state_hash: str = ""


def _files(path: Path) -> list[Path]:
    """The MCAP files of a bag folder, in order of the number that ends their name."""

    def number(file: Path) -> tuple[int, str]:
        found = re.search(r"(\d+)$", file.stem)
        return (int(found[1]) if found else 0, file.name)

    return [path] if path.is_file() else sorted(path.glob("*.mcap"), key=number)


def find_bags(folder: Path) -> list[Path]:
    """Bag folders in and below `folder`, sorted. UsageError when there is none.

    A folder with a manifest but no MCAP file counts, and so does `<task>/<seed>` with nothing in
    it: an episode that was begun. A memory probe's bag is no episode, and does not.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    files = [*folder.rglob("*.mcap"), *folder.rglob("manifest.json")]
    found = {file.parent for file in files}
    found |= {path for path in (folder, *folder.rglob("*")) if path.is_dir() and place_of(path)}
    episodes = {path for path in found if not _of_probe(path)}
    if not episodes and (found or any(folder.rglob("*.run.jsonl"))):
        raise UsageError(f"{folder} holds runs of memory probes: "
                         f"bench_tasks remember report {folder}, or remember score")  # fmt: skip
    if not episodes:
        raise UsageError(f"no recordings in {folder}")
    return sorted(episodes)


def _of_probe(bag: Path) -> bool:
    try:
        manifest = read_json(bag / "manifest.json")
    except UsageError:
        return False
    return "probe" in manifest and "task" not in manifest


def place_of(path: Path) -> tuple[str, int] | None:
    """Task and seed that a bag's folder `<task>/<seed>` stands for; None when it is no such."""
    path = path.absolute()
    if tasks.known(path.parent.name) and re.fullmatch("[0-9]{1,19}", path.name):
        return path.parent.name, int(path.name)
    return None


def messages(
    path: Path, problems: list[str], topics: Collection[str] | None = None,
    readers: list[McapFile] | None = None,
) -> Iterator[Message]:
    """Messages of a bag folder (or one MCAP file) in recorded order.

    `problems` is added to, and so is `readers`, the files in the order of reading.
    """  # fmt: skip
    files = _files(path)
    if not files:
        problems.append("there is no MCAP file")
    for file in files:
        reader = McapFile(file, problems)
        if readers is not None:
            readers.append(reader)
        try:
            yield from reader.messages(topics)
        except OSError as error:
            problems.append(f"{file.name} cannot be read: {error.strerror}")


def frames(path: Path) -> Iterator[CameraFrame]:
    """Pictures of a bag, one by one; those that cannot be decoded are left out."""
    for message in messages(path, []):
        camera = camera_of_topic(message.topic)
        if camera is not None:
            try:
                yield decode_frame(message.data)
            except ValueError:
                continue


def measured_frames(path: Path) -> dict[tuple[str, int], CameraFrame]:
    """(camera, state's number) -> picture, of those whose depth was recorded too.

    What a planner saw of the place it pointed at: enough to take its points to the world again.
    """
    depths, found = {}, {}
    for message in messages(path, []):
        if camera_of_depth(message.topic):
            camera, stamp_ns, depth = decode_depth(message.data)
            depths[camera, stamp_ns] = depth
    for frame in frames(path):
        depth = depths.get((frame.camera, frame.stamp_ns))
        if depth is not None:
            found[frame.camera, frame.seq] = replace(frame, depth=depth)
    return found


def read_bag(path: Path, chunks: bool = False) -> Recording:
    """Read what scoring needs, and the action chunks if asked for; never raises for bad content."""
    recording = Recording(path)
    manifest = path / "manifest.json"
    if path.is_dir() and manifest.exists():
        try:
            recording.manifest = read_json(manifest)
        except UsageError as error:
            recording.problems.append(str(error))
    digest = cdr.StateHash()
    topics = {*_SCORED, _CHUNKS} if chunks else set(_SCORED)
    readers: list[McapFile] = []
    for message in messages(path, recording.problems, topics, readers):
        try:
            _take(recording, message, digest)
        except Exception as error:  # noqa: BLE001 - whatever it holds, the rest is read
            text = str(error) if isinstance(error, ValueError) else repr(error)
            recording.problems.append(f"{message.topic} at {message.publish_ns} ns: {text}")
    for reader in readers:
        recording.counts.update(reader.counts)
        if not reader.indexed and not recording.problems:
            recording.notes.append(f"the index of {reader.path.name} is missing")
    if path.is_dir() and readers and not (path / "metadata.yaml").exists():
        recording.notes.append("metadata.yaml is missing")
    recording.state_hash = digest.hexdigest()
    return recording


def _take(recording: Recording, message: Message, digest: cdr.StateHash) -> None:
    if message.topic == "/world/state":
        state = cdr.decode_state(message.data)
        digest.add(state)
        recording.states.append(state)
    elif message.topic == "/episode/events":
        recording.events.append(cdr.decode_event(message.data))
    elif message.topic == "/world/scene":
        scene = cdr.decode_scene(message.data)
        if recording.scene not in (None, scene):
            raise ValueError("a second, different scene")
        recording.scene = scene
    elif message.topic == "/episode/verdict":
        recording.verdict = cdr.decode_verdict(message.data)
    else:
        recording.chunks.append(cdr.decode_chunk(message.data))
