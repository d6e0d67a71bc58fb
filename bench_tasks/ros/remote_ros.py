"""The node graph seen as the conductor sees it: a World, a Planner, a Policy and a Sink.

`episode.run_episode` runs over these unchanged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
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
from bench_tasks.errors import BenchError, LateInput, SafetyStop
from bench_tasks.ros.frames_ros import frames_of, put_frames
from bench_tasks.ros.graph_ros import Graph
from bench_tasks.ros.node_ros import LostNode, Pending, to_message
from bench_tasks.vocabulary import (
    ActionChunk,
    Answer,
    CameraFrame,
    Event,
    Metadata,
    Observation,
    Plan,
    PlanRequest,
    Question,
    Scene,
    Verdict,
    WorldState,
)

__all__ = ["RemotePlanner", "RemotePolicy", "RemoteWorld", "TopicSink"]

LOOK_S, REFUSED_S = 0.1, 0.3
"""How long a state is waited for between looks at what else was heard, and after a refusal."""
PASSED_S = 0.0005
"""Between looks for what the safety node passes on."""
CAST = ("world", "planner", "policy", "safety", "recorder")
"""Without one of these an episode is worth nothing, and arms need not go on with it."""
SAFE_WAIT_S = 600.0
"""How long a human may take to confirm motion, or to release the arms after a stop."""


class RemoteWorld:
    """The node `world` as a `protocols.World`.

    `step` does not send the chunk, since it is on the action topic already, from the policy or
    from `TopicSink.chunk`: it collects the states that follow from it.
    """

    def __init__(self, graph: Graph, sink: TopicSink) -> None:
        """Bind to the graph; `sink` takes the world's own events."""
        self._graph, self._sink = graph, sink
        self._seq = 0

    def reset(
        self, task: str, seed: int, vary: tuple[str, ...] = ()
    ) -> tuple[Scene, WorldState]:
        """Set up the episode; BenchError when the layout cannot be used."""
        graph = self._graph
        self._happened_before(graph.begin())
        if graph.safety:
            graph.wait_until_safe(SAFE_WAIT_S)
        listeners = 2 + graph.recorded + graph.safety - graph.dry_run
        config = {"state_listeners": listeners, "vary": vary}
        response = graph.load.call(
            LoadEpisode.Request(task=task, seed=seed, config=json.dumps(config))
        )
        scene = Scene.from_json(response.scene)
        graph.period_ns = scene.control_period_ns
        state = graph.first_state()
        graph.sent["/world/scene"] += 1
        self._count(state)
        if graph.safety and graph.realtime:
            self._was_not_stopped()
        return scene, state

    def _happened_before(self, events: list[Event]) -> None:
        """Put on record, with another name, what was said before the episode began."""
        if self._graph.realtime:  # in lockstep it is only what the last one has left over
            for event in events:
                self._sink.event(Event("before", 0, 0, {"event": event.kind, **event.data}))

    def _was_not_stopped(self) -> None:
        """BenchError when the robot was stopped while it got ready, and is not released yet.

        A stop that is over has nothing to do with the episode: nobody is to be blamed for it.
        """
        said = self._graph.new_safety_events()
        self._happened_before(said)
        if any(event.kind == "safety_stopped" for event in said):
            answer = self._graph.ready.call(Trigger.Request())
            if not answer.success:
                raise BenchError(f"stopped while the robot got ready: {answer.message}")

    def _count(self, state: WorldState) -> None:
        self._seq = state.seq
        self._graph.count_state(state)

    def step(self, chunk: ActionChunk) -> Iterator[WorldState]:
        """Yield the states that the chunk's actions lead to; in realtime all that have come.

        Each is on its way before anything is raised: what stopped the arms does not undo what was
        seen until then, and has the last word all the same (see `report`).
        """
        graph = self._graph
        try:
            last = chunk.seq + self._length(chunk)
            while self._seq < last or (graph.realtime and graph.more_states()):
                state = self._next_state()
                self._count(state)
                yield state
            # In motion, of whoever is asked or told something only later, too.
            graph.node.watch.check(*CAST)
        except BenchError as error:
            raise self._news() or error from None
        self.report()

    def _length(self, chunk: ActionChunk) -> int:
        """How many states follow: in lockstep as many as the safety node lets through."""
        graph = self._graph
        if not graph.safety or graph.realtime:
            return len(chunk.values)
        end = time.monotonic() + graph.deadline_s
        while time.monotonic() < end:
            count = graph.passed_on(chunk.seq)
            if count:
                return count
            self.report()
            graph.node.watch.check("safety", "world")
            time.sleep(PASSED_S)
        raise LostNode(f"no command that answers state {chunk.seq} was passed on within "
                       f"{graph.deadline_s:g} s")  # fmt: skip

    def _next_state(self) -> WorldState:
        """The next state. BenchError when the world refused the chunk; LostNode when it is late."""
        graph, seq = self._graph, self._seq + 1
        end = time.monotonic() + graph.deadline_s
        while time.monotonic() < end:
            # A refusal travels apart from the states that came before it.
            refused = bool(graph.refusal) and not graph.realtime
            state = graph.next_state(seq, REFUSED_S if refused else LOOK_S)
            if state is not None:
                return state
            if refused:
                raise BenchError(f"the world refused an action chunk: {graph.refusal}")
            self.report()
            graph.node.watch.check("world")
        raise LostNode(f"state {seq} did not come within {graph.deadline_s:g} s")

    def report(self) -> None:
        """Put on record what world and safety node have said of themselves since the last time.

        SafetyStop when the arms were stopped, whatever else was said; BenchError when the world
        cannot go on, or a command was dropped that it waits for.
        """
        worst = self._news()
        if worst is not None:
            raise worst

    def _news(self) -> BenchError | None:
        """Relay every event there is; then, of those that end an episode, the one that counts."""
        graph = self._graph
        stopped: BenchError | None = None
        lost: BenchError | None = None
        dropped: BenchError | None = None
        for event in graph.new_world_events():
            self._sink.event(event)
            if event.data.get("fatal"):
                lost = lost or BenchError(str(event.data.get("reason", event.kind)))
        for event in graph.new_safety_events():
            self._sink.event(event)
            reason = str(event.data.get("reason"))
            if event.kind == "safety_stopped":
                stopped = stopped or SafetyStop(reason)
            elif event.kind == "safety_dropped" and not graph.realtime:
                dropped = dropped or BenchError(f"an action chunk was dropped: {reason}")
        return stopped or lost or dropped

    def move_objects(self, poses: dict[str, np.ndarray]) -> None:
        """Put objects at poses (7,), at rest."""
        numbers = np.concatenate([np.asarray(p, dtype=np.float64) for p in poses.values()])
        self._graph.move.call(MoveObjects.Request(names=list(poses), poses=numbers.tolist()))

    def capture(self, cameras: tuple[str, ...], depth: bool = False) -> tuple[CameraFrame, ...]:
        """Take one colour picture per named camera; the world publishes them, too."""
        response = self._graph.capture.call(Capture.Request(cameras=list(cameras), depth=depth))
        self._graph.count_pictures(response.images, depth)
        return frames_of(response)

    def show(self, cameras: tuple[str, ...], depth: bool = False) -> None:
        """Have the same pictures published; who listens to the cameras has them, not we."""
        response = self._graph.show.call(Capture.Request(cameras=list(cameras), depth=depth))
        self._graph.count_pictures(response.images, depth)


def _metadata(text: str) -> Metadata:
    raw = json.loads(text)
    return Metadata(
        raw["name"], raw["version"], tuple(raw["cameras"]), raw["privileged"], raw["depth"],
        raw.get("memory", ""),
    )


def _state(observation: Observation) -> WorldStateMsg:
    return to_message(cdr.encode_state(observation.state), WorldStateMsg)


class RemotePlanner:
    """The node `planner` as a `protocols.Planner`."""

    def __init__(self, graph: Graph) -> None:
        """Ask the node who it is."""
        self._graph = graph
        self.metadata = _metadata(graph.planner_reset.call(ResetAgent.Request()).metadata)

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode."""
        self._graph.planner_reset.call(ResetAgent.Request(scene=scene.to_json(), seed=seed))

    def observe(self, observation: Observation) -> None:
        """Let the planner see and hear."""
        heard = json.dumps({"heard": observation.heard}) if observation.heard else ""
        message = PlanSrv.Request(state=_state(observation), observe_only=True, feedback=heard)
        self._graph.plan.call(put_frames(message, observation.frames))

    def plan(self, request: PlanRequest) -> Plan:
        """Ask for the next steps; what they hold is checked by the conductor, as everywhere."""
        message = PlanSrv.Request(
            instruction=request.instruction, turn=request.turn,
            state=_state(request.observation), feedback=json.dumps(request.feedback),
        )  # fmt: skip
        response = self._graph.plan.call(put_frames(message, request.observation.frames))
        return Plan.from_json(response.plan, check=False)

    def ask(self, question: Question, observation: Observation) -> Answer:
        """Ask a question."""
        message = Ask.Request(question=json.dumps(asdict(question)), state=_state(observation))
        response = self._graph.ask.call(put_frames(message, observation.frames))
        return Answer.from_json(response.answer)


@dataclass(frozen=True)
class OnTopic(ActionChunk):
    """A chunk that the policy's node has published: its length is true, zeros stand for the rest.

    The actions go straight to the world; the conductor only has to know how many states follow.
    """


class RemotePolicy:
    """The node `policy` as a `protocols.Policy`.

    Its chunks go straight to the world, and the world's pictures straight to it: the conductor
    says when, and hands on neither. It is asked before the pictures are, so that an answer takes
    one service's way there and back, not two of them one after the other.
    """

    sees_by_itself = True

    def __init__(self, graph: Graph, ahead: bool = True) -> None:
        """Ask the node who it is.

        `ahead` must be false where the world streams pictures by itself: with those the policy
        might answer before it is shown any, and the world then be elsewhere when it shows them.
        """
        self._graph, self._ahead = graph, ahead
        self.metadata = _metadata(graph.policy_reset.call(ResetAgent.Request()).metadata)
        self._asked: Pending | None = None
        self._has_seen = False

    def reset(self, scene: Scene, seed: int) -> None:
        """Begin an episode."""
        self._asked, self._has_seen = None, False
        self._graph.policy_reset.call(ResetAgent.Request(scene=scene.to_json(), seed=seed))

    def accept(self, plan: Plan) -> None:
        """Hand over a plan."""
        self._graph.set_plan.call(SetPlan.Request(plan=plan.to_json()))

    def ask(self, state: WorldState) -> None:
        """Send the question that `infer` takes the answer to: the policy waits for its pictures.

        Not the first one of an episode, whose pictures may take long, or be impossible.
        """
        if self._has_seen and self._ahead:
            self._asked = self._graph.infer.begin(Infer.Request(seq=state.seq))

    def infer(self, observation: Observation) -> ActionChunk:
        """Let the policy answer a state."""
        seq = observation.state.seq
        asked, self._asked = self._asked, None
        request = Infer.Request(seq=seq)
        try:
            response = (asked or self._graph.infer.begin(request)).result()
        except LateInput:
            if asked is None:
                raise
            # It gave up before the pictures were taken; now they are.
            response = self._graph.infer.call(request)
        self._has_seen = True
        detail: dict[str, Any] = json.loads(response.detail or "{}")
        size = len(observation.state.command)
        if response.needs_plan:
            return ActionChunk(seq, np.zeros((0, size)), True, detail)
        # In realtime a later state may have been answered: here the chunk begins at this one.
        answered = detail.pop("seq", None)
        if not isinstance(answered, int) or answered < seq:
            raise BenchError(f"the policy's node answered state {answered}, asked about {seq}")
        count = answered - seq + response.actions
        self._graph.sent["/policy/action_chunk"] += 1
        return OnTopic(seq, np.zeros((count, size)), detail=detail)


class TopicSink:
    """An `episode.Sink` that publishes what no other node has published already."""

    def __init__(self, graph: Graph) -> None:
        """Publish on the topics of `graph`."""
        self._graph = graph
        self.begun = False
        self.last_seq = 0
        self._hash = cdr.StateHash()

    def scene(self, scene: Scene) -> None:
        """The world published it."""
        self.begun = True

    def state(self, state: WorldState) -> None:
        """The world published it. Without a recorder, its hash is kept here."""
        self.last_seq = state.seq
        if not self._graph.recorded:
            self._hash.add(state)

    @property
    def state_hash(self) -> str:
        """Hash of the state track, when it is not recorded."""
        return self._hash.hexdigest()

    def chunk(self, chunk: ActionChunk, stamp_ns: int) -> None:
        """Publish the conductor's own chunks."""
        if isinstance(chunk, OnTopic):
            return
        if self._graph.realtime:
            return  # the world holds the last command by itself
        data = cdr.encode_chunk(chunk, stamp_ns, self._graph.period_ns)
        self._graph.chunk_out.publish(data)
        self._graph.sent["/policy/action_chunk"] += 1

    def event(self, event: Event) -> None:
        """Publish one event."""
        self._graph.event_out.publish(cdr.encode_event(event))
        self._graph.sent["/episode/events"] += 1

    def frames(self, frames: tuple[CameraFrame, ...]) -> None:
        """The world published them."""

    def verdict(self, verdict: Verdict) -> None:
        """Publish the live verdict."""
        self._graph.verdict_out.publish(cdr.encode_verdict(verdict))
        self._graph.sent["/episode/verdict"] += 1
