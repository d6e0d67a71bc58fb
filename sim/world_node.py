"""The node `world`: the simulated cell on the ROS topics and services that a real cell has too.

Lockstep: the world stands still until an action chunk that answers its present state arrives,
then runs one control period per action and publishes the state after each. A chunk that answers
any other state is never executed; an event says so. Realtime (`clock: realtime`): the world runs
at 50 Hz of wall time and holds the last command when no action is due.
"""

from __future__ import annotations

import json

import numpy as np
from bench_interfaces.msg import ActionChunk as ActionChunkMsg
from bench_interfaces.msg import EpisodeEvent
from bench_interfaces.msg import Scene as SceneMsg
from bench_interfaces.msg import Verdict as VerdictMsg
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import Capture, LoadEpisode, MoveObjects
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, JointState

from bench_tasks import cdr
from bench_tasks.cdr import split_ns
from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.frames_ros import put_frames
from bench_tasks.images import DEFAULT_SIZE, optical_frame, parse_size
from bench_tasks.node_ros import (
    LATCHED,
    PERIODIC,
    TRACK,
    BenchNode,
    answer,
    parameter,
    serve_now,
    steady_timer,
    to_message,
    wait_for_listeners,
)
from bench_tasks.node_ros import main as run_node
from bench_tasks.object_sets import read_set
from bench_tasks.streams import parse_streams
from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    ActionChunk,
    CameraFrame,
    Event,
    Scene,
    WorldState,
)
from sim.pictures_ros import Pictures
from sim.scene import CAMERAS
from sim.viewer import Viewer
from sim.world import RENDERER, SimWorld

__all__ = ["WorldNode", "main"]

LISTENER_WAIT_S = 10.0
Look = tuple[tuple[str, ...], bool]
"""Cameras, and whether with depth."""


class WorldNode(BenchNode):
    """Serves a `SimWorld`. Every callback runs on one thread, so an episode cannot overtake."""

    def __init__(self) -> None:
        """Create topics and services; the first episode is set up when it is asked for."""
        super().__init__("world")
        clock = parameter(self, "clock", "lockstep")
        if clock not in ("lockstep", "realtime"):
            raise UsageError(f"clock must be lockstep or realtime, got {clock!r}")
        self.realtime = clock == "realtime"
        streams = parse_streams(parameter(self, "streams", ""))
        for camera in streams:
            if camera not in CAMERAS:
                raise unknown("camera", camera, CAMERAS)
        objects = parameter(self, "objects", "")
        width, height = parse_size(parameter(self, "image_size", DEFAULT_SIZE))
        self.world = SimWorld(
            width=width, height=height, objects=read_set(objects) if objects else None
        )
        viewer = parameter(self, "viewer", "none")
        if viewer not in ("none", "foxglove", "mujoco"):
            raise UsageError(f"viewer must be none, foxglove or mujoco, got {viewer!r}")
        self._viewer = Viewer(self.world) if viewer == "mujoco" else None
        self.state: WorldState | None = None
        self.scene: Scene | None = None
        self.paused = False
        self.refused = 0
        self._chunk: ActionChunk | None = None
        self._ticking = False
        self._shown: Look | None = None
        self._ready: tuple[Look, list[CameraFrame]] | None = None
        """What was shown at the present state, and what has been taken for it but not shown."""
        self._state_out = self.create_publisher(WorldStateMsg, "/world/state", TRACK)
        self._scene_out = self.create_publisher(SceneMsg, "/world/scene", LATCHED)
        self._event_out = self.create_publisher(EpisodeEvent, "/world/events", TRACK)
        self._clock_out = self.create_publisher(Clock, "/clock", TRACK)
        self._joints_out = self.create_publisher(JointState, "/joint_states", TRACK)
        self.pictures = Pictures(self, self.world, streams)
        self.create_subscription(
            ActionChunkMsg, "/policy/action_chunk", self._on_chunk, TRACK, raw=True
        )
        self.create_service(LoadEpisode, "/world/load_episode", self._load)
        self.create_service(Capture, "/world/capture", self._capture)
        self._shows = self.create_service(Capture, "/world/show", self._show)
        self.create_service(MoveObjects, "/world/move_objects", self._move)
        if self.realtime:
            self.create_subscription(VerdictMsg, "/episode/verdict", self._on_verdict, PERIODIC)
            steady_timer(self, CONTROL_PERIOD_NS / 1e9, self._tick)
        self._offer_simulation_control()
        self.get_logger().info(f"{clock}; pictures by {RENDERER}")

    def _offer_simulation_control(self) -> None:
        try:
            from sim.control_ros import offer
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("simulation_interfaces"):
                raise
            self.get_logger().info(
                "simulation_interfaces is not installed, so its services are not offered "
                "(on a ROS machine: apt-get install ros-$ROS_DISTRO-simulation-interfaces)"
            )
            return
        offer(self)

    # -- episodes --------------------------------------------------------------------------------

    def _load(self, request: LoadEpisode.Request, response: LoadEpisode.Response):
        def work() -> None:
            config = json.loads(request.config or "{}")
            self._wait_for_listeners(int(config.get("state_listeners", 0)))
            self._ticking, self._chunk, self._shown = False, None, None
            self.scene, state = self.world.reset(
                request.task, request.seed, tuple(config.get("vary", ()))
            )
            self.refused, self.paused = 0, False
            self._scene_out.publish(cdr.encode_scene(self.scene))
            self.publish(state)
            response.scene = self.scene.to_json()
            response.state = to_message(cdr.encode_state(state), WorldStateMsg)
            self._ticking = True

        return answer(response, work)

    def restart(self) -> None:
        """Back to state 0 of the present episode; a chunk under way is forgotten."""
        self._chunk = None
        self.publish(self.world.restart())

    def _wait_for_listeners(self, count: int) -> None:
        """Every state of an episode must reach task, policy and recorder, from the first on."""
        if count < 1:
            return
        recorded = 1 if count > 2 else 0
        outputs = [(self._state_out, count), (self._event_out, 1)]
        outputs += [(self._clock_out, recorded), (self._joints_out, recorded)]
        outputs += [(self._scene_out, recorded)]
        outputs += [(publisher, recorded) for publisher in self.pictures.publishers]
        wait_for_listeners(outputs, LISTENER_WAIT_S)

    def publish(self, state: WorldState) -> None:
        """Make `state` the present one and publish it, its clock, joints and due pictures."""
        assert self.scene is not None
        self.state, self._ready = state, None
        self._clock_out.publish(cdr.encode_clock(state.stamp_ns))
        self._state_out.publish(cdr.encode_state(state))
        self._joints_out.publish(cdr.encode_joint_state(state, self.scene.joint_names))
        self.pictures.stream(state)
        if self._viewer is not None:
            self._viewer.show()

    def _event(self, kind: str, **data: object) -> None:
        """Tell the task node, which puts it on record."""
        seq, stamp = (self.state.seq, self.state.stamp_ns) if self.state else (0, 0)
        self._event_out.publish(cdr.encode_event(Event(kind, seq, stamp, data)))

    # -- actions ---------------------------------------------------------------------------------

    def advance(self, values: np.ndarray) -> None:
        """Execute actions (k, 16), one control period each, publishing every state."""
        for action in values:
            assert self.state is not None
            if self.stopping.is_set():
                return
            self.publish(self.world.step(ActionChunk(self.state.seq, action[None]))[0])

    def _on_chunk(self, data: bytes) -> None:
        if self.state is None:
            self.get_logger().warning("an action chunk came before the first episode: ignored")
            return
        try:
            chunk = cdr.decode_chunk(data)
            # All of it, before any of it is executed.
            chunk.checked(chunk.seq, len(self.state.command))
        except (ValueError, BenchError) as error:
            self._refuse("bad_chunk", str(error))
            return
        if self.realtime:
            self._take_realtime(chunk)
            return
        if chunk.seq != self.state.seq:
            self._refuse(
                "stale_chunk", f"it answers state {chunk.seq}, now is {self.state.seq}",
                answers=chunk.seq,
            )
            return
        if self.paused:
            self._refuse("bad_chunk", "the simulation is paused")
            return
        try:
            self.advance(chunk.values)
            self._foresee()
        except BenchError as error:
            self._refuse("bad_chunk", str(error))

    def _refuse(self, kind: str, why: str, **data: object) -> None:
        self.refused += 1
        self.get_logger().warning(f"action chunk not executed: {why}")
        self._event(kind, reason=why, refused=self.refused, **data)

    # -- realtime --------------------------------------------------------------------------------

    def _take_realtime(self, chunk: ActionChunk) -> None:
        """Follow a chunk from the action that is due now; late and stale ones are on record."""
        assert self.state is not None
        late = self.state.seq - chunk.seq
        if late < 0 or late >= len(chunk.values):
            self._refuse(
                "stale_chunk", f"it answers state {chunk.seq} with {len(chunk.values)} actions, "
                f"now is {self.state.seq}", answers=chunk.seq,
            )  # fmt: skip
            return
        if late > 0:
            self._event("late_chunk", answers=chunk.seq, late_periods=late)
        self._chunk = chunk

    def _tick(self) -> None:
        if not self._ticking or self.paused or self.state is None:
            return
        action = self.state.command
        if self._chunk is not None:
            index = self.state.seq - self._chunk.seq
            if index < len(self._chunk.values):
                action = self._chunk.values[index]
            else:
                self._chunk = None
        try:
            self.advance(action[None])
        except BenchError as error:
            self._chunk = None
            self._refuse("bad_chunk", str(error))

    def _on_verdict(self, _: VerdictMsg) -> None:
        """The episode is over: stand still until the next one."""
        self._ticking = False

    # -- services --------------------------------------------------------------------------------

    def _capture(self, request: Capture.Request, response: Capture.Response):
        def work() -> None:
            frames = self.world.capture(tuple(request.cameras), request.depth)
            self.pictures.publish(frames)
            put_frames(response, frames)

        return answer(response, work)

    def _show(self, request: Capture.Request, response: Capture.Response):
        """As `_capture`, for who listens to the topics: of the images only headers come back."""

        def work() -> None:
            wanted = tuple(request.cameras), request.depth
            ready, self._ready = self._ready, None
            taken = ready[1] if ready and ready[0] == wanted else []
            self.pictures.publish(taken)
            # One by one: who sees them decodes one while the next is taken.
            for camera in request.cameras[len(taken) :]:
                self.pictures.publish(self.world.capture((camera,), request.depth))
            response.images = [self._header(camera) for camera in request.cameras]
            self._shown = None if self.realtime else wanted

        return answer(response, work)

    def _foresee(self) -> None:
        """Take what was shown before a chunk after it as well: it will be asked for again.

        The conductor meanwhile judges the states, so that neither waits for the other. Once it has
        asked, which it may do while a picture is taken, `_show` takes the rest.
        """
        if self._shown is None:
            return
        (cameras, depth), taken = self._shown, []
        self._ready, self._shown = (self._shown, taken), None
        for camera in cameras:
            if self._ready is None:
                return
            taken += self.world.capture((camera,), depth)
            serve_now(self._shows)

    def _header(self, camera: str) -> CompressedImage:
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

    def move(self, poses: dict[str, np.ndarray]) -> None:
        """Put objects at poses (7,), at rest; shows in the next state."""
        if self.scene is None:
            raise BenchError("no episode is loaded")
        self._ready = None
        self.world.move_objects(poses)


def main(args: list[str] | None = None) -> None:
    """Entry point of `world_node`."""
    run_node(WorldNode, args)


if __name__ == "__main__":
    main()
