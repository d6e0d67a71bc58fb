"""The link's side of an arm's and of a hand's process, whichever way these reach the robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hardware.link import ArmState, Command, Gone, Link

__all__ = ["BLOCKED_M", "CLOSED_M", "NEW_GOAL_M", "LinkedArm", "LinkedHand"]

CLOSED_M = 0.010
"""A hand that is told to close further than this is meant to hold something."""
NEW_GOAL_M = 0.001
BLOCKED_M = 0.003


class LinkedArm:
    """Hears commands and says how it is; a link whose other side is gone ends it."""

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Keep what is needed."""
        self._link, self._set = link, settings
        self._mode, self._why, self._told = "starting", "", False
        self._gone = self._end = False

    def _hear(self, obey: Callable[[dict[str, Any]], None]) -> Command | None:
        """Have what came obeyed; of commands since the last message the newest counts."""
        if self._gone:
            return None
        try:
            messages = self._link.receive()
        except Gone:
            self._gone = self._end = True
            return None
        newest = None
        for message in messages:
            if isinstance(message, Command):
                newest = message
            elif isinstance(message, dict):
                newest = None
                obey(message)
        return newest

    def _say(self, message: ArmState | dict[str, Any]) -> bool:
        try:
            return self._link.send(message)
        except Gone:
            self._gone = self._end = True
            return False

    def _tell(self, mode: str, why: str) -> None:
        """Say in which mode the arm is now, and why, until that is under way."""
        self._told = self._told and (mode, why) == (self._mode, self._why)
        self._mode, self._why = mode, why
        if not self._told:
            self._told = self._say({"mode": mode, "fault": why})


class LinkedHand:
    """Hears which opening is wanted; a link whose other side is gone ends it.

    What is held then stays held: to drop it would be worse.
    """

    def __init__(self, link: Link, settings: dict[str, Any]) -> None:
        """Keep what is needed."""
        self._link, self._set = link, settings
        self._goal: float | None = None
        self._done: float | None = None
        self._homing = self._homed = self._end = False
        self._heard, self._fault = 0, ""

    @property
    def _todo(self) -> bool:
        """Whether something was asked for last that is not done."""
        goal, done = self._goal, self._done
        new = goal is not None and (done is None or abs(goal - done) >= NEW_GOAL_M)
        return self._homing or new

    def _forget(self) -> None:
        """What was asked for before is not done later, and it may be another hand now."""
        self._goal = self._done = None
        self._homing = self._homed = False

    def _listen(self) -> None:
        if self._end:
            return
        try:
            messages = self._link.receive()
        except Gone:
            self._end = True
            return
        for message in messages:
            if not isinstance(message, dict):
                continue
            what = message.get("do")
            if what == "width":
                self._goal = min(max(float(message["width"]), 0.0), self._set["max_width_m"])
                self._heard += 1
                if message.get("anew"):
                    self._done = None
            elif what == "forget":
                self._goal, self._homing = None, False
            elif what == "homing":
                self._homing = not self._homed

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._link.send(message)
        except Gone:
            self._end = True
