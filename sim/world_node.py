"""The node `world`: the simulated cell on the ROS topics and services that a real cell has too.

Lockstep: the world stands still until an action chunk that answers its present state arrives,
then runs one control period per action and publishes the state after each. A chunk that answers
any other state is never executed; an event says so. Realtime (`clock: realtime`): the world runs
at 50 Hz of wall time and holds the last command when no action is due.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bench_interfaces.srv import Capture

from bench_tasks.errors import BenchError, UsageError, unknown
from bench_tasks.images import DEFAULT_SIZE, parse_size
from bench_tasks.object_sets import read_set
from bench_tasks.robots.dynamics import read_dynamics
from bench_tasks.ros.node_ros import answer, parameter, serve_now, steady_timer
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.ros.world_ros import WorldBase
from bench_tasks.streams import parse_streams
from bench_tasks.vocabulary import (
    CONTROL_PERIOD_NS,
    ActionChunk,
    CameraFrame,
    Scene,
    WorldState,
)
from sim.pictures_ros import Pictures
from sim.scene import CAMERAS
from sim.viewer import Viewer
from sim.world import RENDERER, SimWorld

__all__ = ["WorldNode", "main"]

Look = tuple[tuple[str, ...], bool]
"""Cameras, and whether with depth."""


class WorldNode(WorldBase):
    """Serves a `SimWorld`. Every callback runs on one thread, so an episode cannot overtake."""

    def __init__(self) -> None:
        """Create topics and services; the first episode is set up when it is asked for."""
        super().__init__()
        streams = parse_streams(parameter(self, "streams", ""))
        for camera in streams:
            if camera not in CAMERAS:
                raise unknown("camera", camera, CAMERAS)
        objects = parameter(self, "objects", "")
        dynamics = parameter(self, "dynamics", "")
        width, height = parse_size(parameter(self, "image_size", DEFAULT_SIZE))
        self.world = SimWorld(
            width=width, height=height, objects=read_set(objects) if objects else None,
            dynamics=read_dynamics(dynamics) if dynamics else None,
        )
        viewer = parameter(self, "viewer", "none")
        if viewer not in ("none", "foxglove", "mujoco"):
            raise UsageError(f"viewer must be none, foxglove or mujoco, got {viewer!r}")
        self._viewer = Viewer(self.world) if viewer == "mujoco" else None
        self.paused = False
        self._shown: Look | None = None
        self._ready: tuple[Look, list[CameraFrame]] | None = None
        """What was shown at the present state, and what has been taken for it but not shown."""
        self.pictures = Pictures(self, self.world, streams)
        if self.realtime:
            steady_timer(self, CONTROL_PERIOD_NS / 1e9, self._tick)
        self._offer_simulation_control()
        clock = "realtime" if self.realtime else "lockstep"
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

    def load(self, task: str, seed: int, config: dict[str, Any]) -> tuple[Scene, WorldState]:
        """Set up the layout of (task, seed)."""
        self._shown, self.paused = None, False
        return self.world.reset(task, seed, tuple(config.get("vary", ())))

    def restart(self) -> None:
        """Back to state 0 of the present episode; a chunk under way is forgotten."""
        self.chunk = None
        self.publish(self.world.restart())

    def picture_publishers(self) -> list[Any]:
        """What a recorder of pictures listens to."""
        return self.pictures.publishers

    def publish(self, state: WorldState) -> None:
        """Make `state` the present one and publish it, its clock, joints and due pictures."""
        self._ready = None
        super().publish(state)
        self.pictures.stream(state)
        if self._viewer is not None:
            self._viewer.show()

    # -- actions ---------------------------------------------------------------------------------

    def advance(self, values: np.ndarray) -> None:
        """Execute actions (k, 16), one control period each, publishing every state."""
        for action in values:
            assert self.state is not None
            if self.stopping.is_set():
                return
            self.publish(self.world.step(ActionChunk(self.state.seq, action[None]))[0])

    def answer_chunk(self, chunk: ActionChunk) -> None:
        """Execute a chunk that answers the present state."""
        assert self.state is not None
        if chunk.seq != self.state.seq:
            self.refuse(
                "stale_chunk", f"it answers state {chunk.seq}, now is {self.state.seq}",
                answers=chunk.seq,
            )
            return
        if self.paused:
            self.refuse("bad_chunk", "the simulation is paused")
            return
        try:
            self.advance(chunk.values)
        except BenchError as error:
            self.refuse("bad_chunk", str(error))
            return
        self._foresee()

    def _tick(self) -> None:
        """In realtime: one control period, of the action that is due or else the last one."""
        if not self.ticking or self.paused or self.state is None:
            return
        due = self.due(self.state.seq)
        if not len(due):
            self.chunk = None
        try:
            self.advance(due[:1] if len(due) else self.state.command[None])
        except BenchError as error:
            self.chunk = None
            self.refuse("bad_chunk", str(error))

    # -- services --------------------------------------------------------------------------------

    def capture(self, cameras: tuple[str, ...], depth: bool) -> tuple[CameraFrame, ...]:
        """Take pictures now."""
        return self.world.capture(cameras, depth)

    def publish_pictures(self, frames: tuple[CameraFrame, ...]) -> None:
        """Put pictures on the cameras' topics."""
        self.pictures.publish(frames)

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
            response.images = [self.header(camera) for camera in request.cameras]
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
            try:
                taken += self.world.capture((camera,), depth)
            except BenchError:
                self._ready = None  # who asks for it is told
                return
            serve_now(self.shows)

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
