"""The node `layout`: says how the objects of a task and seed are to lie, for a cell of real arms.

It sets up the simulated cell to know that, and moves nothing: a human does.
"""

from __future__ import annotations

import json
import math

import numpy as np
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import LoadEpisode, MoveObjects

from bench_tasks.bags import cdr
from bench_tasks.errors import BenchError
from bench_tasks.object_sets import ObjectSet, read_set
from bench_tasks.ros.node_ros import BenchNode, answer, parameter, to_message
from bench_tasks.ros.node_ros import main as run_node
from sim.world import SimWorld

__all__ = ["LayoutNode", "main"]

UPRIGHT = 0.02
"""Of a quaternion's x and y: not tilted by more than anybody sees."""


class LayoutNode(BenchNode):
    """Offers `/layout/load_episode` and `/layout/move_objects`."""

    def __init__(self, name: str = "layout") -> None:
        """Create the services."""
        super().__init__(name)
        objects = parameter(self, "objects", "")
        self.world = self.new_world(read_set(objects) if objects else None)
        self.create_service(LoadEpisode, "/layout/load_episode", self._load)
        self.create_service(MoveObjects, "/layout/move_objects", self._move)

    def new_world(self, objects: ObjectSet | None) -> SimWorld:
        """The cell that is set up."""
        return SimWorld(objects=objects)

    def _load(self, request: LoadEpisode.Request, response: LoadEpisode.Response):
        def work() -> None:
            vary = tuple(json.loads(request.config or "{}").get("vary", ()))
            scene, state = self.lay_out(request.task, request.seed, vary)
            for item, pose in zip(scene.objects, state.object_pose, strict=True):
                self.get_logger().info(f"{item.name} ({item.color} {item.kind}): {_where(pose)}")
            response.scene = scene.to_json()
            response.state = to_message(cdr.encode_state(state), WorldStateMsg)

        return answer(response, work)

    def lay_out(self, task: str, seed: int, vary: tuple[str, ...]):
        """Scene and state 0."""
        return self.world.reset(task, seed, vary)

    def _move(self, request: MoveObjects.Request, response: MoveObjects.Response):
        return answer(response, lambda: self.move(request))

    def move(self, request: MoveObjects.Request) -> None:
        """A human would have to."""
        raise BenchError(f"{', '.join(request.names)} must be moved during this task, which only "
                         "a simulated cell does")  # fmt: skip


def _where(pose: np.ndarray) -> str:
    """The pose (7,) of an object's middle, as somebody reads it who puts it there."""
    x, y, z, *quaternion = pose.tolist()
    w, i, j, k = quaternion
    if abs(i) + abs(j) < UPRIGHT:
        yaw = math.remainder(2.0 * math.atan2(k, w), math.tau)
        turned = f"turned by {math.degrees(yaw):.0f} degrees"
    else:
        turned = "quaternion w x y z " + ", ".join(f"{v:.3f}" for v in quaternion)
    return f"its middle at x {x:.3f}, y {y:.3f}, z {z:.3f} m, {turned}"


def main(args: list[str] | None = None) -> None:
    """Entry point of `layout_node`."""
    run_node(LayoutNode, args)


if __name__ == "__main__":
    main()
