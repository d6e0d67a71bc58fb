"""The task node's connections to the other nodes: their services, and the state track in order.

Each call ends by its deadline; a state that is missing is an error, never a guess.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from bench_interfaces.msg import ActionChunk as ActionChunkMsg
from bench_interfaces.msg import EpisodeEvent
from bench_interfaces.msg import Verdict as VerdictMsg
from bench_interfaces.msg import WorldState as WorldStateMsg
from bench_interfaces.srv import (
    Ask,
    Capture,
    Infer,
    LoadEpisode,
    MoveObjects,
    ResetAgent,
    SetPlan,
)
from bench_interfaces.srv import Plan as PlanSrv
from std_srvs.srv import Trigger

from bench_tasks.bags import cdr
from bench_tasks.errors import BenchError, SafetyStop
from bench_tasks.images import camera_of_frame, depth_topic
from bench_tasks.ros.conductor_ros import wait_for_services
from bench_tasks.ros.node_ros import (
    LATCHED,
    TRACK,
    BenchNode,
    Caller,
    LostNode,
    Stopped,
    Unwatched,
    take_all,
    unwatched,
    wait_for_listeners,
)
from bench_tasks.streams import periods_between
from bench_tasks.vocabulary import (
    Event,
    WorldState,
)

__all__ = ["Graph"]

LISTENER_WAIT_S = 10.0
BY_HAND_S = 3600.0
"""What a real cell's world gets for what people do for it: confirm, guide an arm, lay things out.
Each of its own waits for them ends before, and says for what; this one is for a world that hangs.
One that has died is noticed at once."""
LOOK_EVERY_S = 0.0005
"""Between looks for a state that is under way: a fraction of what simulating one takes."""


class Graph:
    """Topics and services of the other nodes, and what of this episode has been said on them."""

    def __init__(
        self, node: BenchNode, deadline_s: float, planner_deadline_s: float,
        recorded: bool, realtime: bool, streams: dict[str, float], safety: bool = False,
        by_hand: bool = False,
    ) -> None:
        """Connect `node`; each call gets `deadline_s`, the planner's `planner_deadline_s`.

        `streams` are the cameras (with their rates, Hz) that the world was told to stream. With
        `safety` the world gets from the node of that name what it passes on. With `by_hand` people
        lay out and move the objects, in their own time.
        """
        self.node, self.deadline_s = node, deadline_s
        self.recorded, self.realtime, self.safety = recorded, realtime, safety
        self._by_hand = Unwatched()
        self._states = unwatched(node, WorldStateMsg, "/world/state", TRACK, self._by_hand)
        self._ahead: deque[bytes] = deque()
        self.world_events: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.sent: Counter[str] = Counter()
        """Messages per topic that a recorder of this episode must have got."""
        self.pictures: dict[str, list[int]] = {}
        """Camera -> stamps (ns) of its pictures, which a recorder must have got as well."""
        self.streamed = bool(streams)
        self._every = {camera: periods_between(hz) for camera, hz in streams.items()}
        self.refusal = ""
        self.period_ns = 0
        node.create_subscription(
            EpisodeEvent, "/world/events", self.world_events.put, TRACK, raw=True
        )
        self.safety_events: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        if safety:
            node.create_subscription(
                EpisodeEvent, "/safety/events", self.safety_events.put, TRACK, raw=True
            )
            self._passed = unwatched(
                node, ActionChunkMsg, "/safety/action_chunk", TRACK, self._by_hand
            )
        self.chunk_out = node.create_publisher(ActionChunkMsg, "/policy/action_chunk", TRACK)
        self.event_out = node.create_publisher(EpisodeEvent, "/episode/events", TRACK)
        self.verdict_out = node.create_publisher(VerdictMsg, "/episode/verdict", LATCHED)

        def caller(kind: type, name: str, limit_s: float = deadline_s) -> Caller:
            return Caller(node, kind, name, limit_s)

        patience_s = BY_HAND_S if by_hand else deadline_s
        self.load = caller(LoadEpisode, "/world/load_episode", patience_s)
        self.capture = caller(Capture, "/world/capture")
        self.show = caller(Capture, "/world/show")
        self.move = caller(MoveObjects, "/world/move_objects", patience_s)
        self.planner_reset = caller(ResetAgent, "/planner/reset", planner_deadline_s)
        self.plan = caller(PlanSrv, "/planner/plan", planner_deadline_s)
        self.ask = caller(Ask, "/planner/ask", planner_deadline_s)
        self.policy_reset = caller(ResetAgent, "/policy/reset")
        self.infer = caller(Infer, "/policy/infer")
        self.set_plan = caller(SetPlan, "/policy/set_plan")
        if safety:
            self.ready = caller(Trigger, "/safety/ready")

    def wait_for_nodes(self, extra: dict[str, Caller], timeout_s: float) -> None:
        """Wait for every service; errors as of `wait_for_services`."""
        needed = {
            "world": [self.load, self.capture, self.show, self.move],
            "planner": [self.planner_reset, self.plan, self.ask],
            "policy": [self.policy_reset, self.infer, self.set_plan],
            **({"safety": [self.ready]} if self.safety else {}),
            **{name: [call] for name, call in extra.items()},
        }
        wait_for_services(self.node, needed, timeout_s)

    @property
    def dry_run(self) -> bool:
        """Whether the policy is shown arms that do not stay, in place of the world's states."""
        return self.node.count_publishers("/safety/imagined_state") > 0

    def begin(self) -> list[Event]:
        """Forget the last episode, once every listener to this node's topics is connected.

        Returns what world and safety node have said of themselves since.
        """
        recorded = int(self.recorded)
        wait_for_listeners(
            [
                (self.chunk_out, 1 + recorded), (self.event_out, recorded),
                (self.verdict_out, recorded),
            ],
            LISTENER_WAIT_S,
        )  # fmt: skip
        self.sent.clear()
        self.pictures.clear()
        self.refusal = ""
        between = self.new_world_events() + self.new_safety_events()
        if self.safety:
            list(take_all(self._passed))
        while self.more_states():
            self._ahead.clear()
        self.refusal = ""
        return between

    def wait_until_safe(self, limit_s: float) -> None:
        """Wait until the safety node lets commands through; say once why it does not.

        SafetyStop when it still does not after `limit_s`.
        """
        end, told = time.monotonic() + limit_s, ""
        while not (answer := self.ready.call(Trigger.Request())).success:
            if time.monotonic() > end:
                raise SafetyStop(answer.message)
            if answer.message != told:
                told = answer.message
                self.node.get_logger().warning(f"waiting: {told}")
            if self.node.stopping.wait(0.2):
                raise Stopped

    def passed_on(self, seq: int) -> int:
        """How many actions the safety node has passed on that answer state `seq`; 0: none yet."""
        for data in take_all(self._passed):
            self.sent["/safety/action_chunk"] += 1
            chunk = cdr.decode_chunk(data)
            if chunk.seq == seq:
                return len(chunk.values)
        return 0

    def more_states(self) -> bool:
        """Whether a state has come that was not asked for yet."""
        if not self._ahead:
            self._ahead.extend(take_all(self._states))
        return bool(self._ahead)

    def next_state(self, seq: int, wait_s: float) -> WorldState | None:
        """State `seq`; None when none has come within `wait_s`. BenchError when one is missing."""
        end = time.monotonic() + wait_s
        while not self.more_states():
            if self.node.stopping.is_set():
                raise Stopped
            if time.monotonic() >= end:
                return None
            time.sleep(LOOK_EVERY_S)
        try:
            state = cdr.decode_state(self._ahead.popleft())
        except ValueError as error:
            raise BenchError(f"/world/state: {error}") from None
        if state.seq != seq:
            raise BenchError(f"state {seq} did not come, but {state.seq}")
        return state

    def first_state(self) -> WorldState:
        """State 0 of a new episode; what an earlier one left under way is passed over."""
        end = time.monotonic() + self.deadline_s
        while time.monotonic() < end:
            if not self.more_states():
                if self.node.stopping.is_set():
                    raise Stopped
                self.node.watch.check("world")
                time.sleep(LOOK_EVERY_S)
            elif cdr.decode_state(self._ahead[0]).seq == 0:
                state = self.next_state(0, self.deadline_s)
                assert state is not None
                return state
            else:
                self._ahead.popleft()
        raise LostNode(f"state 0 did not come within {self.deadline_s:g} s")

    def count_state(self, state: WorldState) -> None:
        """The world has published a state, and what it sends along with it."""
        for topic in ("/world/state", "/clock", "/joint_states"):
            self.sent[topic] += 1
        if self.safety and self.realtime:  # in lockstep they are asked for one by one
            self.sent["/safety/action_chunk"] += len(list(take_all(self._passed)))
        for camera, every in self._every.items():
            if state.seq % every == 0:
                self.count_picture(camera, state.stamp_ns)

    def count_pictures(self, images: Iterable[Any], depth: bool) -> None:
        """The world has published these pictures, with their depth or without."""
        for image in images:
            camera, stamp = camera_of_frame(image.header.frame_id), image.header.stamp
            self.count_picture(camera, stamp.sec * 1_000_000_000 + stamp.nanosec)
            if depth:
                self.sent[depth_topic(camera)] += 1

    def count_picture(self, camera: str, stamp_ns: int) -> None:
        """The world has published a picture."""
        self.pictures.setdefault(camera, []).append(stamp_ns)

    def new_world_events(self) -> list[Event]:
        """What the world has reported of itself since the last call: refused and late chunks."""
        events = []
        while not self.world_events.empty():
            events.append(cdr.decode_event(self.world_events.get_nowait()))
            self.refusal = str(events[-1].data.get("reason", self.refusal))
        return events

    def new_safety_events(self) -> list[Event]:
        """What the safety node has done about commands and measurements since the last call."""
        events = []
        while not self.safety_events.empty():
            events.append(cdr.decode_event(self.safety_events.get_nowait()))
        return events
