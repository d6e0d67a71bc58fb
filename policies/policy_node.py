"""The node `policy`: any policy of the registry, fed by topics, answering on the action topic."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

from bench_interfaces.msg import ActionChunk as ActionChunkMsg
from bench_interfaces.msg import CalibratedDepth
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import Infer, ResetAgent, SetPlan
from sensor_msgs.msg import CompressedImage

from bench_tasks.bags import cdr
from bench_tasks.errors import LateInput
from bench_tasks.execution import CALL, Execution
from bench_tasks.images import decode_depth, decode_frame, depth_topic, image_topic
from bench_tasks.ros.node_ros import (
    LATEST,
    TRACK,
    BenchNode,
    Unwatched,
    answer,
    parameter,
    take_all,
    unwatched,
    wait_for_listeners,
)
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.vocabulary import CameraFrame, Depth, Observation, Plan, Scene, WorldState
from policies import make_policy
from policies.after_reset import after_reset
from policies.execution import executed

__all__ = ["PolicyNode", "main"]

LISTENER_WAIT_S = 10.0
LOOK_EVERY_S = 0.0005
"""Between looks for a state or a picture that is under way."""


class PolicyNode(BenchNode):
    """Keeps the newest state and pictures, and infers when it is asked to answer a state."""

    def __init__(self) -> None:
        """Load the policy that the parameter `policy` names; UsageError if unknown.

        `listeners` nodes must be connected to the action topic before an episode begins;
        `input_wait_s` bounds the wait for the state to be answered and for its pictures.
        """
        super().__init__("policy")
        clock = parameter(self, "clock", "lockstep")
        self._realtime = clock == "realtime"
        execution = Execution(
            parameter(self, "execution", "sync"), parameter(self, "policy_latency", "free"),
            parameter(self, "execute", 0), parameter(self, "policy_deadline_s", 10.0),
        ).checked().on_clock(clock)  # fmt: skip
        policy = make_policy(parameter(self, "policy", "skills"))
        if hasattr(policy, "realtime"):
            policy.realtime = self._realtime
        self._policy = executed(policy, execution, self._realtime)
        self._listeners = parameter(self, "listeners", 1)
        self._input_wait_s = parameter(self, "input_wait_s", 5.0)
        self._scene: Scene | None = None
        self._state: WorldState | None = None
        self._frames: dict[str, CameraFrame] = {}
        self._depths: dict[tuple[str, int], Depth] = {}
        self._chunk_out = self.create_publisher(ActionChunkMsg, "/policy/action_chunk", TRACK)
        self._by_hand = Unwatched()
        self._states = unwatched(self, WorldStateMsg, "/world/state", LATEST, self._by_hand)
        self._pictures = [
            unwatched(self, CompressedImage, image_topic(camera), LATEST, self._by_hand)
            for camera in self._policy.metadata.cameras
        ]
        self._measured = [
            unwatched(self, CalibratedDepth, depth_topic(camera), LATEST, self._by_hand)
            for camera in self._policy.metadata.cameras
            if self._policy.metadata.depth
        ]
        self.create_service(ResetAgent, "/policy/reset", self._reset)
        self.create_service(SetPlan, "/policy/set_plan", self._set_plan)
        self.create_service(Infer, "/policy/infer", self._infer)

    # -- what it sees ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Take the newest state and pictures."""
        for data in take_all(self._states):
            self._state = cdr.decode_state(data)
        for subscription in self._pictures:
            for data in take_all(subscription):
                frame = decode_frame(data)
                self._frames[frame.camera] = frame
        for subscription in self._measured:
            for data in take_all(subscription):
                camera, stamp_ns, depth = decode_depth(data)
                # Of one camera only the newest is ever asked for.
                self._depths = {k: v for k, v in self._depths.items() if k[0] != camera}
                self._depths[camera, stamp_ns] = depth
        for name, frame in self._frames.items():
            if frame.depth is None and (name, frame.stamp_ns) in self._depths:
                self._frames[name] = replace(frame, depth=self._depths[name, frame.stamp_ns])

    def _wait_for(self, seq: int) -> bool:
        """Whether the state `seq` and its pictures are there, or come in time.

        The question can overtake them, since it travels another way.
        """
        end = time.monotonic() + self._input_wait_s
        while True:
            self._look()
            if self._has(seq):
                return True
            if time.monotonic() > end or self.stopping.is_set():
                return False
            time.sleep(LOOK_EVERY_S)

    def _has(self, seq: int) -> bool:
        """Whether the state `seq` has come, and each picture that belongs to it."""
        if self._state is None or self._scene is None:
            return False
        wanted = self._policy.metadata
        frames = [self._frames.get(name) for name in wanted.cameras]
        if any(f is None or (wanted.depth and f.depth is None) for f in frames):
            return False
        if self._realtime:
            return self._state.seq >= seq and all(f.seq >= seq for f in frames if f)
        stamp_ns = self._state.stamp_ns
        return self._state.seq == seq and all(f.stamp_ns == stamp_ns for f in frames if f)

    # -- services --------------------------------------------------------------------------------

    def _reset(self, request: ResetAgent.Request, response: ResetAgent.Response):
        def work() -> None:
            if request.scene:
                wait_for_listeners([(self._chunk_out, self._listeners)], LISTENER_WAIT_S)
                self._scene = Scene.from_json(request.scene)
                self._frames.clear()
                self._depths.clear()
                self._policy.reset(self._scene, request.seed)
            response.metadata = json.dumps(asdict(self._policy.metadata))

        return answer(response, work)

    def _set_plan(self, request: SetPlan.Request, response: SetPlan.Response):
        return answer(response, lambda: self._policy.accept(Plan.from_json(request.plan)))

    def _infer(self, request: Infer.Request, response: Infer.Response):
        return answer(response, lambda: self._answer(request.seq, response))

    def _answer(self, seq: int, response: Infer.Response) -> None:
        scene = after_reset(self._scene, "the policy")
        if not self._wait_for(seq):
            have = "none" if self._state is None else str(self._state.seq)
            raise LateInput(f"the policy has not got state {seq} and its pictures, but {have}")
        state = self._state
        assert state is not None
        frames = tuple(self._frames[name] for name in self._policy.metadata.cameras)
        # A chunk that the conductor would refuse must not get to the world.
        chunk = self._policy.infer(Observation(state, frames))
        chunk = chunk.checked(state.seq, len(state.command))
        response.needs_plan = chunk.needs_plan
        # In realtime more is published than is executed before the next call.
        told = chunk.detail.get(CALL, chunk.detail)
        response.actions = told.get("until_next", len(chunk.values))
        # In realtime the state that was answered may be a later one than was asked for.
        more = {} if chunk.needs_plan else {"seq": chunk.seq}
        response.detail = json.dumps({**chunk.detail, **more})
        if not chunk.needs_plan:
            self._chunk_out.publish(
                cdr.encode_chunk(chunk, state.stamp_ns, scene.control_period_ns)
            )


def main(args: list[str] | None = None) -> None:
    """Entry point of `policy_node`."""
    run_node(PolicyNode, args)


if __name__ == "__main__":
    main()
