"""The node `safety`: what policies ask for on `/policy/action_chunk`, judged, to the robot.

The world listens to `/safety/action_chunk` instead. Motion must be confirmed (`/safety/confirm`,
or the parameter `confirm`); `/safety/stop` and `/safety/estop` (std_msgs/Bool) stop the arms until
`/safety/release`; `/safety/ready` says whether commands would be let through, and why not.
`/safety/heartbeat` comes once a control period while the robot may move, and counts on while this
node gets its states: a robot that follows commands and does not hear it count for 100 ms stops by
itself, and so does one that gets ready by itself and does not hear it at all. Every intervention
is an event on `/safety/events`, which the task node puts on record.
"""

from __future__ import annotations

import time

from bench_interfaces.msg import ActionChunk as ActionChunkMsg
from bench_interfaces.msg import EpisodeEvent
from bench_interfaces.msg import Scene as SceneMsg
from bench_interfaces.msg import Verdict as VerdictMsg
from bench_interfaces.msg import WorldState as WorldStateMsg
from std_msgs.msg import Bool, UInt64
from std_srvs.srv import Trigger

from bench_tasks.bags import cdr
from bench_tasks.errors import UsageError
from bench_tasks.ros.node_ros import (
    BUTTON,
    LATCHED,
    LATEST,
    PERIODIC,
    TRACK,
    BenchNode,
    Unwatched,
    parameter,
    steady_timer,
    take_all,
    unwatched,
)
from bench_tasks.ros.node_ros import main as run_node
from bench_tasks.vocabulary import CONTROL_PERIOD_NS, Event, WorldState
from hardware.franka import cell as franka_cell
from hardware.franka import narrowed as franka_narrowed
from hardware.safety import Decision, Supervisor
from hardware.safety.imagined import Imagined, in_words
from hardware.safety.limits import Limits, read_limits
from hardware.unitree import cell as unitree_cell
from hardware.unitree import narrowed as unitree_narrowed

__all__ = ["SafetyNode", "main"]

COMMANDERS = ("policy", "planner", "task")
"""Nodes without which nobody commands: the arms stop when one of them dies."""
EARLY_S = {"lockstep": 5.0, "realtime": 0.05}
"""How long a command may come before the state that it answers, which travels another way."""
HUMANOID = "g1"
MOST_EARLY = 5
"""Commands that wait for their states at the same time."""
LOOK_TICKS = 25
STALL_S = 0.05
FLUSH_S = 0.05


class SafetyNode(BenchNode):
    """ROS around a `Supervisor`. Every callback runs on one thread."""

    def __init__(self) -> None:
        """Load limits, and those of a cell; UsageError when they are wrong.

        Parameters: `limits`, `cell` (of a real robot, whose own limits may be narrower), `clock`,
        `confirm`, `dry_run`, `listeners` (nodes that must listen before commands may come).
        """
        super().__init__("safety")
        clock = parameter(self, "clock", "lockstep")
        if clock not in EARLY_S:
            raise UsageError(f"clock must be lockstep or realtime, got {clock!r}")
        self._realtime, self._early_s = clock == "realtime", EARLY_S[clock]
        self._listeners = parameter(self, "listeners", 1)
        limits = read_limits(parameter(self, "limits", "fr3_pair"))
        cell = parameter(self, "cell", "")
        if cell:
            limits = _narrowed(limits, cell)
        self._limits = limits
        self._imagined = Imagined(limits) if parameter(self, "dry_run", False) else None
        """The arms of a dry run, in place of those that stay."""
        self._said = ""
        self._supervisor = Supervisor(limits, self._realtime, parameter(self, "confirm", False))
        self._state: WorldState | None = None
        self._scene, self._judged = ("", -1), None
        """Task and seed of the episode, and of the one that has been judged, which is over."""
        self._early: list[tuple[int, float, bytes]] = []
        """Commands for states that are not known yet: number, how long to wait, message."""
        self._pressed, self._lost, self._ticked_s = False, "", 0.0
        self._beats = self._ticks = 0
        self._chunk_out = self.create_publisher(ActionChunkMsg, "/safety/action_chunk", TRACK)
        if self._imagined is not None:  # for the policy: what saw the arms stay would begin there
            self._imagined_out = self.create_publisher(
                WorldStateMsg, "/safety/imagined_state", TRACK
            )
        self._event_out = self.create_publisher(EpisodeEvent, "/safety/events", TRACK)
        self._beat_out = self.create_publisher(UInt64, "/safety/heartbeat", LATEST)
        self._by_hand = Unwatched()
        self._scenes = unwatched(self, SceneMsg, "/world/scene", LATCHED, self._by_hand)
        self.create_subscription(WorldStateMsg, "/world/state", self._on_state, TRACK, raw=True)
        self.create_subscription(
            ActionChunkMsg, "/policy/action_chunk", self._on_chunk, TRACK, raw=True
        )
        if self._realtime:
            self.create_subscription(VerdictMsg, "/episode/verdict", self._on_verdict, PERIODIC)
        for qos in BUTTON:
            self.create_subscription(Bool, "/safety/estop", self._on_estop, qos, raw=True)
        for name in ("ready", "confirm", "stop", "release"):
            self.create_service(Trigger, f"/safety/{name}", getattr(self, f"_{name}"))
        steady_timer(self, CONTROL_PERIOD_NS / 1e9, self._tick)
        self.get_logger().info(f"limits of {limits.robot}; {clock}; {self._not_ready() or 'ready'}")

    # -- what comes ------------------------------------------------------------------------------

    def _on_state(self, data: bytes) -> None:
        self._look_at_scene()
        try:
            state = cdr.decode_state(data)
        except ValueError as error:
            self._stop_arms("state", str(error))
            return
        if self._imagined is not None:
            state = self._imagined.state(state)
            self._imagined_out.publish(cdr.encode_state(state))
        self._state = state
        self._do(self._supervisor.on_state(state, time.monotonic()))
        self._judge_early()

    def _look_at_scene(self) -> None:
        for data in take_all(self._scenes):
            self._early = []  # they were meant for another episode
            self._judged = None
            try:
                scene = cdr.decode_scene(data)
                self._scene = scene.task, scene.seed
                self._supervisor.begin(scene)
            except ValueError as error:
                self._stop_arms("state", f"scene: {error}")
                self._supervisor.end()

    def _on_verdict(self, verdict: VerdictMsg) -> None:
        self._judged = verdict.task, verdict.seed

    @property
    def _over(self) -> bool:
        """Whether no more states come since the episode is over: by itself the robot stands still.

        It would get what is sent to it only when it has got ready for the next one.
        """
        return self._judged == self._scene and self._supervisor.overdue

    def _on_chunk(self, data: bytes) -> None:
        self._look_at_scene()
        try:
            seq = cdr.decode_chunk(data).seq
        except ValueError:
            seq = -1  # whatever it is, it is judged now
        if self._state is None or seq > self._state.seq:
            self._early.append((seq, time.monotonic() + self._early_s, data))
            if len(self._early) > MOST_EARLY:
                self._judge(self._early.pop(0)[2])
            return
        self._judge(data)

    def _judge_early(self) -> None:
        """Those whose state has come, or has not in time, in the order in which they came."""
        now_s, waiting = time.monotonic(), self._early
        self._early = []
        for seq, until_s, data in waiting:
            if now_s > until_s or (self._state is not None and seq <= self._state.seq):
                self._judge(data)
            else:
                self._early.append((seq, until_s, data))

    def _judge(self, data: bytes) -> None:
        self._do(self._supervisor.on_message(data, time.monotonic()))

    def _tick(self) -> None:
        now_s = time.monotonic()
        self._judge_early()
        punctual = now_s - self._ticked_s < STALL_S
        self._ticked_s = now_s
        if punctual:  # else this node was held up, and states may be waiting to be looked at
            decision = self._supervisor.on_time(now_s)
            if not self._over:
                self._do(decision)
        if self._realtime:
            self._look_after_commanders()
        if self._supervisor.vouches:
            self._beats += self._supervisor.sees
            self._beat_out.publish(UInt64(data=self._beats))

    def _look_after_commanders(self) -> None:
        self._ticks += 1
        if self._ticks % LOOK_TICKS == 0:
            for name in COMMANDERS:
                self.watch.add(name)
        died = self.watch.died()
        if died != self._lost:
            self._lost = died  # "" when it is there again
            if died:
                self._do(self._supervisor.lost(died, time.monotonic()))

    def _stop_arms(self, kind: str, reason: str) -> None:
        self._do(self._supervisor.stop(kind, reason, time.monotonic()))

    # -- what is done ----------------------------------------------------------------------------

    def _do(self, decision: Decision) -> None:
        if self._realtime:  # a stop does not wait until it has been told of
            self._send(decision)
        seq, stamp = (self._state.seq, self._state.stamp_ns) if self._state else (0, 0)
        for told in decision.interventions:
            self.get_logger().warning(f"{told.action}: {told.reason}")
            event = Event(f"safety_{told.action}", seq, stamp, told.data())
            self._event_out.publish(cdr.encode_event(event))
        if not self._realtime:
            self._send(decision)

    def _send(self, decision: Decision) -> None:
        if decision.send is None or self._over:
            return
        if self._imagined is not None:
            said = in_words(self._limits, decision.send)
            if said != self._said:  # who holds still says so again and again
                self.get_logger().info(f"answering state {decision.send.seq} {said}")
            self._said = said
            self._imagined.send(decision.send)
            return
        stamp = self._state.stamp_ns if self._state else 0
        self._chunk_out.publish(cdr.encode_chunk(decision.send, stamp, CONTROL_PERIOD_NS))

    def close(self) -> None:
        """Whoever ends this node ends the motion."""
        if self._realtime and self._state is not None:
            self._stop_arms("end", "the safety node ends")
            time.sleep(FLUSH_S)

    # -- services --------------------------------------------------------------------------------

    def _not_ready(self) -> str:
        """Why no command would reach the robot; "" when one may."""
        found = self._chunk_out.get_subscription_count()
        if found < self._listeners:
            return f"{found} of {self._listeners} nodes listen to /safety/action_chunk"
        return self._supervisor.why_not

    def _ready(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.message = self._not_ready()
        response.success = not response.message
        return response

    def _confirm(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._supervisor.confirm()
        self.get_logger().info("motion is confirmed")
        response.success, response.message = True, "motion is confirmed"
        return response

    def _stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._stop_arms("stop", "/safety/stop was called")
        response.success, response.message = True, "the arms stop until /safety/release"
        return response

    def _release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._pressed:
            response.success, response.message = False, "/safety/estop still says true"
            return response
        self._supervisor.release()
        self.get_logger().info("released")
        response.success, response.message = True, "released: the next command is judged afresh"
        return response

    def _on_estop(self, data: bytes) -> None:
        # The byte behind the header: only a plain "false" is none, not what cannot be read.
        before, self._pressed = self._pressed, bytes(data[4:5]) != b"\0"
        if self._pressed and not before:  # the same message may come by several ways
            self._stop_arms("estop", "/safety/estop said true")


def _narrowed(limits: Limits, cell: str) -> Limits:
    """The limits for commands to the robot of a cell, which may keep within narrower ones."""
    if limits.robot == HUMANOID:
        return unitree_narrowed.narrowed(limits, unitree_cell.read_cell(cell))
    return franka_narrowed.narrowed(limits, franka_cell.read_cell(cell))


def main(args: list[str] | None = None) -> None:
    """Entry point of `safety_node`."""
    run_node(SafetyNode, args)


if __name__ == "__main__":
    main()
