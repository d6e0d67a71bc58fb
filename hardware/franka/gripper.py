"""The process of one Franka Hand, apart from its arm's loop, which must not wait for fingers.

python -m hardware.franka.gripper FD, as `arm`. It takes {"do": "width", "width": m}, `forget`
(what has not begun yet is not done) and, since fingers move then as well, `homing` only when it is
asked for. It reports {"width": m, "grasped": bool, "homed": bool, "busy": bool, "heard": how many
widths it has taken, "fault": text, "time_ns": CLOCK_MONOTONIC} at 25 Hz, or as soon as it can.
"busy" is said before an action begins; "width" is not known until it has ended. What has failed is
a fault, and not tried again by itself.

An action is an opening; a hand knows `move` (to a width, with little force) and `grasp` (until
something stops it, then hold with a force). So: closing to (almost) nothing is a grasp, any other
width a move, and a move that something stops is followed by a grasp.
"""

from __future__ import annotations

import signal
import sys
import time

import pylibfranka as franka

from hardware.franka.linked import BLOCKED_M, CLOSED_M, LinkedHand
from hardware.link import Link, last_words

__all__ = ["main"]

REPORT_S = 0.04
RETRY_S = 1.0


class Hand(LinkedHand):
    """One hand.

    pylibfranka holds Python's lock while fingers move: until they rest, nobody hears of their
    width, and no new goal is begun.
    """

    def run(self) -> None:
        """Serve until told to end, or until the other side is gone."""
        while not self._end:
            try:
                self._hand = franka.Gripper(self._set["address"])
                self._forget()
                self._fault = ""
                while not self._end:
                    begun = time.monotonic()
                    self._listen()
                    self._act()
                    self._report()
                    time.sleep(max(0.001, REPORT_S - (time.monotonic() - begun)))
            except (franka.NetworkException, franka.FrankaException) as error:
                self._fault = f"no connection: {' '.join(str(error).split())}"
                self._say({"fault": self._fault, "busy": False})
                end = time.monotonic() + RETRY_S
                while time.monotonic() < end and not self._end:
                    self._listen()
                    time.sleep(0.02)

    def _act(self) -> None:
        """Do what was asked for last, unless it is done."""
        goal = self._goal
        if not self._todo:
            return
        self._fault = ""  # the same again would be a new one
        self._report(busy=True)
        try:
            if self._homing:
                self._homing, self._done = False, None
                self._homed = self._hand.homing()
                if not self._homed:
                    self._fault = "homing failed"
                    return
            elif goal is not None:
                self._to(goal)
                self._done = goal if self._goal == goal else None
        except franka.CommandException as error:
            self._fault = " ".join(str(error).split())
            self._goal = self._done = None

    def _to(self, goal: float) -> None:
        """CommandException when the fingers did not go there, nor to what stopped them."""
        speed, force = self._set["speed_m_s"], self._set["force_n"]
        closes = goal < self._hand.read_once().width
        moved = goal <= CLOSED_M or self._hand.move(goal, speed)
        if closes and (goal <= CLOSED_M or self._hand.read_once().width > goal + BLOCKED_M):
            self._listen()
            if self._goal == goal:  # else it was taken back while the fingers moved
                self._hand.grasp(0.0, speed, force, 0.01, 0.1)
        elif not moved:
            width = self._hand.read_once().width
            raise franka.CommandException(
                f"the fingers went to {width:.3f} m instead of {goal:.3f} m"
            )

    def _report(self, busy: bool = False) -> None:
        state = self._hand.read_once()
        self._say(
            {"width": state.width, "grasped": state.is_grasped, "homed": self._homed, "busy": busy,
             "heard": self._heard, "fault": self._fault, "time_ns": time.monotonic_ns()}
        )  # fmt: skip


def main() -> None:
    """Run one hand until the other side of the link ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link.of(int(sys.argv[1]))
    with last_words(link):
        Hand(link, link.settings()).run()


if __name__ == "__main__":
    main()
