"""How well two arms worked together, measured over the state track of one episode.

Parallel work: the time in which both arms worked at once, against the best that the shares of the
work allow: the lesser arm could have worked while the other did, all the time.
Simultaneous work: how level the thing was kept, and how even the hands, while both held it.
"""

from __future__ import annotations

from typing import Any

from bench_tasks.tasks.base import Task
from bench_tasks.view import View
from bench_tasks.vocabulary import ROBOT_PART, Scene

__all__ = ["Coordination"]

MOVING_RAD_S = 0.03
"""An arm works when one of its joints is faster than this ..."""
GRIPPER_M_S = 0.01
"""... or its fingers are told to open or close faster than this."""


class Coordination:
    """Feed it the view of every state in which the arms may act, then ask for `result`."""

    def __init__(self, task: Task, scene: Scene) -> None:
        """Start measuring what the mode of `task` asks for; nothing in the other modes."""
        self._task, self._mode = task, task.mode
        self._loose = tuple(
            item.name for item in scene.objects if not item.fixed and item.kind != ROBOT_PART
        )
        self._work_ns = (0, 0)
        self._both_ns = 0
        self._held_ns = 0
        self._tilt_rad = 0.0
        self._offset_m = 0.0
        self._gripper: tuple[float, float] | None = None

    def on_state(self, view: View, period_ns: int) -> None:
        """Take a state and the time since the one before it (ns, 0 where nobody looked)."""
        if self._mode not in ("parallel", "simultaneous"):
            return
        self._on_work(view, period_ns)
        if self._mode == "simultaneous":
            self._on_hold(view, period_ns)

    def _on_work(self, view: View, period_ns: int) -> None:
        state = view.state
        speeds = state.joint_velocity[-14:].tolist()
        command = (float(state.command[-9]), float(state.command[-1]))
        before = command if self._gripper is None else self._gripper
        self._gripper = command
        works, spent = [], [0, 0]
        for k in range(2):
            own = speeds[7 * k : 7 * k + 7]
            grips = abs(command[k] - before[k]) > GRIPPER_M_S * 1e-9 * period_ns
            works.append(max(own) > MOVING_RAD_S or min(own) < -MOVING_RAD_S or grips)
            spent[k] = period_ns if works[k] else 0
        self._work_ns = (self._work_ns[0] + spent[0], self._work_ns[1] + spent[1])
        if all(works):
            self._both_ns += period_ns

    def _on_hold(self, view: View, period_ns: int) -> None:
        state = view.state
        for name in self._loose:
            if self._task.both_hold(view, name):
                self._held_ns += period_ns
                self._tilt_rad = max(self._tilt_rad, self._task.slope(view, name))
                offset = abs(float(state.ee_pose[0, 2] - state.ee_pose[1, 2]))
                self._offset_m = max(self._offset_m, offset)
                return

    def result(self) -> dict[str, Any]:
        """What was measured; empty in modes that nothing is measured in.

        Both: `left_s`, `right_s` and `both_s`, the times of work. Parallel: `overlap`, the share
        of all work done at once (twice `both_s` over the sum of both arms' times), `best`, the
        most it could have been (twice the lesser time over the sum), and `of_best`, their ratio,
        None when an arm did nothing. Simultaneous: `held_s`, how long both hands held one thing,
        `worst_tilt_rad` and `worst_offset_m` (between the hands' heights) in that time, None when
        they never did.
        """
        if self._mode not in ("parallel", "simultaneous"):
            return {}
        left, right = self._work_ns
        found: dict[str, Any] = {
            "left_s": left / 1e9, "right_s": right / 1e9, "both_s": self._both_ns / 1e9
        }
        if self._mode == "parallel":
            total, lesser = left + right, min(left, right)
            found["overlap"] = 2 * self._both_ns / total if total else None
            found["best"] = 2 * lesser / total if total else None
            found["of_best"] = self._both_ns / lesser if lesser else None
        else:
            held = self._held_ns > 0
            found["held_s"] = self._held_ns / 1e9
            found["worst_tilt_rad"] = self._tilt_rad if held else None
            found["worst_offset_m"] = self._offset_m if held else None
        return found
