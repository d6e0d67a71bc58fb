"""What every node `world` offers, whatever its arms are made of: topics, services, and realtime.

In realtime the world follows a chunk by the number of the state that each action was meant for: a
chunk that comes late loses the actions whose time has passed, and one that is stale is refused.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from bench_interfaces.msg import ActionChunk as ActionChunkMsg
from bench_interfaces.msg import EpisodeEvent
from bench_interfaces.msg import Scene as SceneMsg
from bench_interfaces.msg import Verdict as VerdictMsg
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import Capture, LoadEpisode, MoveObjects
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, JointState

from bench_tasks.bags import cdr
from bench_tasks.bags.cdr import split_ns
from bench_tasks.errors import BenchError, UsageError
from bench_tasks.images import optical_frame
from bench_tasks.ros.frames_ros import put_frames
from bench_tasks.ros.node_ros import (
    LATCHED,
    PERIODIC,
    TRACK,
    BenchNode,
    answer,
    parameter,
    to_message,
    wait_for_listeners,
)
from bench_tasks.vocabulary import ActionChunk, CameraFrame, Event, Scene, WorldState

__all__ = ["WorldBase"]

LISTENER_WAIT_S = 10.0


class WorldBase(BenchNode):
    """A node `world`; each says for itself how to load, capture, move, and act in lockstep."""

    def __init__(
        self, clocks: tuple[str, ...] = ("lockstep", "realtime"),
        commands: str = "/policy/action_chunk",
    ) -> None:
        """Create the topics and services; UsageError when the clock is none of `clocks`.

        `commands` is the topic of the chunks that are executed.
        """
        super().__init__("world")
        clock = parameter(self, "clock", clocks[0])
        if clock not in clocks:
            raise UsageError(f"clock must be {' or '.join(clocks)}, got {clock!r}")
        self.realtime = clock == "realtime"
        self.state: WorldState | None = None
        self.scene: Scene | None = None
        self.refused = 0
        self.chunk: ActionChunk | None = None
        self.ticking = False
        self._state_out = self.create_publisher(WorldStateMsg, "/world/state", TRACK)
        self._scene_out = self.create_publisher(SceneMsg, "/world/scene", LATCHED)
        self._event_out = self.create_publisher(EpisodeEvent, "/world/events", TRACK)
        self._clock_out = self.create_publisher(Clock, "/clock", TRACK)
        self._joints_out = self.create_publisher(JointState, "/joint_states", TRACK)
        self.create_subscription(
            ActionChunkMsg, commands, self._on_chunk, TRACK, raw=True
        )
        if self.realtime:
            self.create_subscription(VerdictMsg, "/episode/verdict", self._on_verdict, PERIODIC)
        self.create_service(LoadEpisode, "/world/load_episode", self._load)
        self.create_service(Capture, "/world/capture", self._capture)
        self.shows = self.create_service(Capture, "/world/show", self._show)
        self.create_service(MoveObjects, "/world/move_objects", self._move)

    # -- what each does for itself ---------------------------------------------------------------

    def load(self, task: str, seed: int, config: dict[str, Any]) -> tuple[Scene, WorldState]:
        """Make everything ready for an episode; BenchError when that cannot be done."""
        raise NotImplementedError

    def capture(self, cameras: tuple[str, ...], depth: bool) -> tuple[CameraFrame, ...]:
        """A picture of each camera now; BenchError when there is none."""
        raise NotImplementedError

    def publish_pictures(self, frames: tuple[CameraFrame, ...]) -> None:
        """Put pictures on the cameras' topics."""
        raise NotImplementedError

    def move(self, poses: dict[str, np.ndarray]) -> None:
        """Have objects put at poses (7,)."""
        raise NotImplementedError

    def answer_chunk(self, chunk: ActionChunk) -> None:
        """In lockstep: execute a chunk, or refuse it."""
        raise NotImplementedError

    def picture_publishers(self) -> list[Any]:
        """What a recorder of pictures listens to."""
        return []

    # -- episodes --------------------------------------------------------------------------------

    def _load(self, request: LoadEpisode.Request, response: LoadEpisode.Response):
        def work() -> None:
            config = json.loads(request.config or "{}")
            self._wait_for_listeners(int(config.get("state_listeners", 0)))
            self.ticking, self.chunk = False, None
            self.scene, state = self.load(request.task, request.seed, config)
            self.refused = 0
            self._scene_out.publish(cdr.encode_scene(self.scene))
            self.publish(state)
            response.scene = self.scene.to_json()
            response.state = to_message(cdr.encode_state(state), WorldStateMsg)
            self.ticking = True

        return answer(response, work)

    def _wait_for_listeners(self, count: int) -> None:
        """Every state of an episode must reach task, policy and recorder, from the first on."""
        if count < 1:
            return
        recorded = 1 if count > 2 else 0
        outputs = [(self._state_out, count), (self._event_out, 1)]
        outputs += [(self._clock_out, recorded), (self._joints_out, recorded)]
        outputs += [(self._scene_out, recorded)]
        outputs += [(publisher, recorded) for publisher in self.picture_publishers()]
        wait_for_listeners(outputs, LISTENER_WAIT_S)

    def _on_verdict(self, _: VerdictMsg) -> None:
        """The episode is over: stand still until the next one."""
        self.ticking, self.chunk = False, None

    def publish(self, state: WorldState) -> None:
        """Make `state` the present one and publish it with its clock and joints."""
        assert self.scene is not None
        self.state = state
        self._clock_out.publish(cdr.encode_clock(state.stamp_ns))
        self._state_out.publish(cdr.encode_state(state))
        self._joints_out.publish(cdr.encode_joint_state(state, self.scene.joint_names))

    def event(self, kind: str, **data: object) -> None:
        """Tell the task node, which puts it on record."""
        seq, stamp = (self.state.seq, self.state.stamp_ns) if self.state else (0, 0)
        self._event_out.publish(cdr.encode_event(Event(kind, seq, stamp, data)))

    # -- actions ---------------------------------------------------------------------------------

    def _on_chunk(self, data: bytes) -> None:
        state = self.state
        if state is None or (self.realtime and not self.ticking):
            self.get_logger().warning("an action chunk came outside of an episode: ignored")
            return
        try:
            chunk = cdr.decode_chunk(data)
            # All of it, before any of it is executed.
            chunk.checked(chunk.seq, len(state.command))
        except (ValueError, BenchError) as error:
            self.refuse("bad_chunk", str(error))
            return
        if self.realtime:
            self._take(chunk, state)
        else:
            self.answer_chunk(chunk)

    def _take(self, chunk: ActionChunk, state: WorldState) -> None:
        """Follow a chunk from the action that is due now; late and stale ones are on record."""
        late = state.seq - chunk.seq
        if late < 0 or late >= len(chunk.values):
            self.refuse(
                "stale_chunk", f"it answers state {chunk.seq} with {len(chunk.values)} actions, "
                f"now is {state.seq}", answers=chunk.seq,
            )  # fmt: skip
            return
        if late > 0:
            self.event("late_chunk", answers=chunk.seq, late_periods=late)
        self.chunk = chunk

    def refuse(self, kind: str, why: str, **data: object) -> None:
        """Put it on record that a chunk is not executed."""
        self.refused += 1
        self.get_logger().warning(f"action chunk not executed: {why}")
        self.event(kind, reason=why, refused=self.refused, **data)

    def due(self, seq: int) -> np.ndarray:
        """Actions (k, n) from the one that answers state `seq` on; none when nothing is due."""
        chunk = self.chunk
        if chunk is None:
            return np.zeros((0, 0))
        return chunk.values[max(seq - chunk.seq, 0) :]

    # -- the other services ----------------------------------------------------------------------

    def _capture(self, request: Capture.Request, response: Capture.Response):
        def work() -> None:
            frames = self.capture(tuple(request.cameras), request.depth)
            self.publish_pictures(frames)
            put_frames(response, frames)

        return answer(response, work)

    def _show(self, request: Capture.Request, response: Capture.Response):
        """As `_capture`, for who listens to the topics: of the images only headers come back."""

        def work() -> None:
            frames = self.capture(tuple(request.cameras), request.depth)
            self.publish_pictures(frames)
            response.images = [self.header(camera) for camera in request.cameras]

        return answer(response, work)

    def header(self, camera: str) -> CompressedImage:
        """A picture of the present state, but for its pixels."""
        assert self.state is not None
        image = CompressedImage()
        image.header.frame_id = optical_frame(camera)
        stamp = split_ns(self.state.stamp_ns)
        image.header.stamp.sec, image.header.stamp.nanosec = stamp["sec"], stamp["nanosec"]
        return image

    def _move(self, request: MoveObjects.Request, response: MoveObjects.Response):
        def work() -> None:
            poses = np.asarray(request.poses, dtype=np.float64)
            if poses.size != 7 * len(request.names):
                raise UsageError(f"{len(request.names)} names but {poses.size} numbers for poses")
            self.move(dict(zip(request.names, poses.reshape(-1, 7), strict=True)))

        return answer(response, work)
