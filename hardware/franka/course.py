"""The motion of an arm from now until it rests, for a controller that takes whole trajectories.

Of a trajectory that nobody replaces, a controller goes to the end and stays there. So each one that
is sent carries its own stop: the way to the newest command and, behind it, what `Tracker` would do
if no other came. Whoever dies, then, the arm comes to rest within the FR3's limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hardware.franka.tracker import CYCLE_S, RENEW_S, Tracker
from hardware.link import Command

__all__ = ["POINT_S", "Course"]

POINT_S = 0.010
"""From one point of a trajectory to the next, all of them at whole multiples of it. Where the jerk
of the motion has a step the controller's quintic is off by up to 0.01 rad/s, less than 0.1 mrad."""
HOLD_NS = 500_000_000
"""The last point is held for so long: a controller does not take what has ended already."""
LONGEST_S = 60.0
ARRIVED_RAD = 1e-6
_CYCLE_NS, _POINT_NS = round(CYCLE_S * 1e9), round(POINT_S * 1e9)


class Course:
    """Position, velocity and acceleration for each millisecond from `start_ns` (monotonic) on."""

    def __init__(self, max_jump_rad: float, speed: float, lead_s: float) -> None:
        """As a `Tracker`, which computes it."""
        self._lead_ns = round(lead_s / POINT_S) * _POINT_NS
        self._tracker = Tracker(max_jump_rad, speed)
        self._way: np.ndarray | None = None
        self._way_ns = self._asked_ns = 0
        self.seq, self.lapsed = -1, False
        self.rest(np.zeros(7), 0)

    def rest(self, q: Sequence[float] | np.ndarray, now_ns: int) -> None:
        """Stand still at `q`."""
        self._way, self.lapsed = None, False
        self._rows = np.zeros((1, 3, 7))
        self._rows[0, 0] = q
        self.start_ns = _at_point(now_ns)

    # -- what it is told -------------------------------------------------------------------------

    def follow(self, command: Command, now_ns: int) -> str:
        """Follow a command, later by the lead. Returns why it is refused; then the arm brakes."""
        now_ns, before = self._take_up(now_ns)
        refused = self._tracker.command(
            replace(command, due_ns=command.due_ns + self._lead_ns), now_ns + self._lead_ns
        )
        if not refused:
            self.seq, self.lapsed = command.seq, False
        self._set(before, now_ns)
        return refused

    def brake(self, now_ns: int) -> None:
        """Come to rest."""
        start_ns, before = self._take_up(now_ns)
        self._set(before, start_ns)

    def brake_from(self, q: np.ndarray, v: np.ndarray, now_ns: int) -> None:
        """Come to rest from another state of motion than was told: from what was measured."""
        self._way = None
        self._tracker.take_up(q, v, np.zeros(7))
        self._set([], _at_point(now_ns))

    def go_to(self, q: Sequence[float], share: float, now_ns: int) -> str:
        """As `Tracker.go_to`: the way goes on as long as `go_on` is called again and again."""
        start_ns, before = self._take_up(now_ns)
        tracker, self.lapsed = self._tracker, False
        refused, rows = tracker.go_to(q, share), [*before, self._now()]
        while not refused and (
            np.abs(np.subtract(tracker.position, q)).max() > ARRIVED_RAD or not tracker.at_rest
        ):
            tracker.step()
            tracker.go_on()
            rows.append(self._now())
            if len(rows) * CYCLE_S > LONGEST_S:
                refused = f"the way to a goal would take longer than {LONGEST_S:g} s"
        if refused:
            self._set(before, start_ns)  # at rest, or braking
            return refused
        self._way, self._way_ns, self._asked_ns = np.array(rows), start_ns, now_ns
        self.go_on(now_ns)
        return ""

    def go_on(self, now_ns: int) -> bool:
        """Somebody still wants the way to the goal; whether there is any left of it."""
        if self._way is None or self._gone_by(now_ns):
            return False
        self._asked_ns = now_ns
        begun = (_at_point(now_ns) - self._way_ns) // _CYCLE_NS
        ahead = self._way[begun : begun + (round(RENEW_S * 1e9) + self._lead_ns) // _CYCLE_NS]
        if not len(ahead):
            return False
        self._tracker.take_up(*ahead[-1])
        self._set(list(ahead[:-1]), self._way_ns + begun * _CYCLE_NS)
        return True

    def look(self, now_ns: int) -> None:
        """Notice when nobody has wanted a way to go on: then it is at its stop by now."""
        if self._way is not None and self._gone_by(now_ns):
            self.lapsed = now_ns < self._way_ns + len(self._way) * _CYCLE_NS
            self._way = None

    def _gone_by(self, now_ns: int) -> bool:
        return now_ns > self._asked_ns + RENEW_S * 1e9

    def _take_up(self, now_ns: int) -> tuple[int, list[np.ndarray]]:
        """Have the tracker go on from the end of the lead; returns its begin, and what it is."""
        self._way = None
        start_ns = _at_point(now_ns)
        self._tracker.take_up(*self.at(start_ns + self._lead_ns))
        ahead = range(start_ns, start_ns + self._lead_ns, _CYCLE_NS)
        return start_ns, [self.at(ns) for ns in ahead]

    def _now(self) -> tuple[list[float], list[float], list[float]]:
        return self._tracker.position, self._tracker.velocity, self._tracker.acceleration

    def _set(self, rows: list, start_ns: int) -> None:
        """What was computed so far, then what the tracker does until it rests."""
        tracker = self._tracker
        rows.append(self._now())
        while not (tracker.braking and tracker.at_rest):
            tracker.step()
            rows.append(self._now())
        self._rows, self.start_ns = np.array(rows), start_ns

    # -- what it is ------------------------------------------------------------------------------

    def at(self, now_ns: int) -> np.ndarray:
        """Position, velocity and acceleration (3, 7) at a time; at rest once it has ended."""
        k = max(0, (now_ns - self.start_ns) // _CYCLE_NS)
        if k < len(self._rows):
            return self._rows[k]
        return np.stack([self._rows[-1, 0], np.zeros(7), np.zeros(7)])

    def points(self) -> list[tuple[int, np.ndarray]]:
        """(ns from `start_ns`, (3, 7)) of each point; the last is at rest, to the bit."""
        step = round(POINT_S / CYCLE_S)
        found = [(k * _CYCLE_NS, self._rows[k]) for k in range(0, len(self._rows), step)]
        end = np.stack([self._rows[-1, 0], np.zeros(7), np.zeros(7)])
        end_ns = found[-1][0] + step * _CYCLE_NS
        return [*found, (end_ns, end), (end_ns + HOLD_NS, end)]


def _at_point(ns: int) -> int:
    return ns - ns % _POINT_NS
