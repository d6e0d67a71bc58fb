"""The process of one Franka Hand that franka_ros2 drives: the second way, instead of `gripper`.

python -m hardware.franka.gripper_ros FD, with the same messages on the link as `gripper`. Openings
become goals of franka_ros2's actions, one after the other. What it relies on stands in franka_ros2,
franka_gripper/src/gripper_action_server.cpp: the node's actions `move`, `grasp` and `homing` with
{success, error}, aborted when they did not succeed; `joint_states` with half of the opening for
each finger. No topic says whether a hand holds something: here it does since a grasp succeeded, as
long as its fingers stay where they were then.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from franka_msgs.action import Grasp, Homing, Move
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState

from hardware.franka.linked import BLOCKED_M, CLOSED_M, LinkedHand
from hardware.franka.topics_ros import Topics, under
from hardware.link import Link, last_words

__all__ = ["main"]

INNER_M, OUTER_M = 0.01, 0.1
"""Around none: whatever stops the fingers is held."""
SLIPPED_M = 0.004
"""Fingers that have closed further by so much since they grasped hold nothing any more."""
REPORT_S, LOOK_S, OLD_S = 0.04, 0.01, 0.5
ACCEPT_S, LONGEST_S = 2.0, 15.0
HOMING_S = 30.0


class Failed(Exception):
    """The hand did not do what it was told."""


class RosHand(LinkedHand):
    """One hand's actions and the link to the world node."""

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Join ROS."""
        super().__init__(link, settings)
        names = settings["names"]
        hand = under(names["namespace"], names["hand"])
        self._fingers = [f"{names['fingers']}{k}" for k in (1, 2)]
        self._states = f"{hand}/joint_states"
        self._topics = Topics(f"franka_hand_{settings['arm']}")
        self._topics.hear(JointState, self._states)
        self._actions = {kind: f"{hand}/{kind.__name__.lower()}" for kind in (Move, Grasp, Homing)}
        self._clients = {
            kind: ActionClient(self._topics.node, kind, name)
            for kind, name in self._actions.items()
        }
        self._held: float | None = None
        self._busy = False
        self._reported_s = float("-inf")

    def end(self) -> None:
        """Begin nothing more, and end the process."""
        self._end = True

    def run(self) -> None:
        """Serve until told to end, or until the other side is gone."""
        self._topics.start()
        while not self._end:
            self._listen()
            if not self._lacking():
                self._act()  # before anything is said: what was heard is busy from now on
            self._say_how_it_is()
        # What is held stays held, and fingers on their way go on to where they were told.
        self._topics.close()

    def _say_how_it_is(self) -> None:
        if time.monotonic() >= self._reported_s + REPORT_S:
            self._reported_s = time.monotonic()
            self._report()
        time.sleep(LOOK_S)

    # -- the hand's side -------------------------------------------------------------------------

    def _lacking(self) -> str:
        """What is missing of the hand, "" when nothing is."""
        found = self._topics.newest(self._states)
        if found is None or (time.monotonic_ns() - found[1]) / 1e9 > OLD_S:
            return f"nothing has come on {self._states} for {OLD_S:g} s"
        absent = [name for name in self._fingers if name not in found[0].name]
        if absent:
            return f"{self._states} knows no joint {absent[0]}: fingers is wrong in the cell?"
        for kind, client in self._clients.items():
            if not client.server_is_ready():
                return f"nobody offers the action {self._actions[kind]}"
        return ""

    @property
    def _width(self) -> float:
        state, _ = self._topics.newest(self._states)
        parts = dict(zip(state.name, state.position, strict=False))
        return float(sum(parts[name] for name in self._fingers))

    def _act(self) -> None:
        """Do what was asked for last, unless it is done."""
        goal = self._goal
        if not self._todo:
            return
        self._fault = ""  # the same again would be a new one
        self._busy = True
        self._report()
        try:
            if self._homing:
                self._homing, self._done = False, None
                self._homed = self._do(Homing.Goal(), HOMING_S)
                if not self._homed:
                    raise Failed("homing failed")
            elif goal is not None:
                self._to(goal)
                self._done = goal if self._goal == goal else None
        except Failed as error:
            self._fault = str(error)
            self._goal = self._done = None
        finally:
            self._busy = False
        self._report()

    def _to(self, goal: float) -> None:
        """Failed when the fingers did not go there, nor to what stopped them."""
        speed, force = self._set["speed_m_s"], self._set["force_n"]
        closes = goal < self._width
        self._held = None
        moved = goal <= CLOSED_M or self._do(Move.Goal(width=goal, speed=speed), LONGEST_S)
        if closes and (goal <= CLOSED_M or self._width > goal + BLOCKED_M):
            self._listen()
            if self._goal == goal:  # else it was taken back while the fingers moved
                wanted = Grasp.Goal(width=0.0, speed=speed, force=force)
                wanted.epsilon.inner, wanted.epsilon.outer = INNER_M, OUTER_M
                if self._do(wanted, LONGEST_S):
                    self._held = self._width
        elif not moved:
            raise Failed(f"the fingers went to {self._width:.3f} m instead of {goal:.3f} m")

    def _do(self, goal: Any, seconds: float) -> bool:
        """Have a goal done; whether it was. Failed when the hand says why not, or nothing."""
        kind = next(k for k in self._clients if isinstance(goal, k.Goal))
        name = kind.__name__.lower()
        sent = self._clients[kind].send_goal_async(goal)
        self._until(sent.done, ACCEPT_S, f"{name} was not answered")
        if not sent.result().accepted:
            raise Failed(f"{name} was rejected")
        answer = sent.result().get_result_async()
        self._until(answer.done, seconds, f"{name} did not end")
        result = answer.result().result
        if result.error:
            raise Failed(" ".join(f"{name} failed: {result.error}".split()))
        return result.success

    def _until(self, true: Callable[[], bool], seconds: float, what: str) -> None:
        end = time.monotonic() + seconds
        while not true():
            if self._end:
                raise Failed("the process ends")
            if time.monotonic() > end:
                raise Failed(f"{what} within {seconds:g} s")
            self._listen()
            self._say_how_it_is()

    # -- the link --------------------------------------------------------------------------------

    def _report(self) -> None:
        lacking = self._lacking()
        if lacking:
            self._forget()
            self._held = None
            self._say({"fault": lacking, "busy": False})
            return
        width = self._width
        if self._held is not None and width < self._held - SLIPPED_M:
            self._held = None
        _, at_ns = self._topics.newest(self._states)
        self._say(
            {"width": width, "grasped": self._held is not None, "homed": self._homed,
             "busy": self._busy, "heard": self._heard, "fault": self._fault, "time_ns": at_ns}
        )  # fmt: skip

def main() -> None:
    """Run one hand until the other side of the link ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link.of(int(sys.argv[1]))
    with last_words(link):
        hand = RosHand(link, link.settings())
        signal.signal(signal.SIGTERM, lambda *_: hand.end())
        hand.run()


if __name__ == "__main__":
    main()
