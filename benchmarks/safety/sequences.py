"""Sequences of every kind, drawn, done and judged.

In some of them what is sent comes late. When the supervisor knows, nothing else may be different;
when it does not, a jump is bound to come, which is for the robot's own driver to smooth: then only
where the arms go counts, and that they are not thrown about.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import numpy as np

from benchmarks.safety.commands import SPOILT, UNTIMELY, WRONG
from benchmarks.safety.happenings import E_STOP, LOST, MEASURED, TOLD
from benchmarks.safety.oracle import JERK, oracle
from benchmarks.safety.robot import DT, JOINTS
from benchmarks.safety.situations import Case, Maker, Situation
from hardware.safety import Intervention

__all__ = ["KINDS", "Fuzz"]

_DOES = {**SPOILT, **UNTIMELY, **MEASURED, **E_STOP, **TOLD, **WRONG, **LOST}
_LAST = ("wrong message", "stalled world", "wild number", "lost states", "wrong state",
         "wrong type")  # fmt: skip
_ORDER = (*SPOILT, *UNTIMELY, *MEASURED, *E_STOP, "no state", "frozen state", "silence",
          "not confirmed", "no limits", "jerk", "workspace", "arms together", "into the table",
          *_LAST)  # fmt: skip
KINDS: dict[str, Callable[[Case], None]] = {kind: _DOES[kind] for kind in _ORDER}
"""What they do, in the order in which they take turns."""
LATE, MOST_LATE = 0.25, 3
"""Share of sequences, of the kinds that stop the arms, in which orders come late; periods."""
MAY_COME_LATE = {*SPOILT, *MEASURED, *E_STOP, *LOST}
MAY_BE_GOOD = ("jump", "acceleration", "order", "jerk", "workspace", "velocity")
"""Kinds that a path as it was drawn may have nothing of; what passes is for the oracle to judge."""
STOP_PERIODS = 45


class Fuzz:
    """Runs sequences and counts what went wrong."""

    def __init__(self, seed: int | tuple[int, int], per_situation: int = 20) -> None:
        """A new situation is drawn after so many sequences."""
        self.begin(seed)
        self.per = per_situation
        self.oracle = oracle()
        self.counts: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.failures: list[str] = []
        self.slowest_stop = self.late = 0

    def begin(self, seed: int | tuple[int, int]) -> None:
        """Draw from this seed from now on."""
        self.rng = np.random.default_rng(seed)
        self.maker = Maker(self.rng)
        self.situation: Situation | None = None
        self.used = 0

    def run(self, kind: str) -> None:
        """One sequence with one bad thing of this kind."""
        if self.situation is None or self.used >= self.per:
            self.situation, self.used = self.maker.moving(), 0
        self.used += 1
        self.counts[kind] += 1
        case = Case(self.situation, self.maker)
        if kind in MAY_COME_LATE and self.rng.random() < LATE:
            self.come_late(case)
        KINDS[kind](case)
        told = [i for decision in case.robot.decisions for i in decision.interventions]
        for _ in range(STOP_PERIODS):
            case.robot.step()
        self.actions.update({i.action for i in told})
        for item in told:
            json.dumps(item.data(), allow_nan=False)
        if why := self.judged(kind, case, told):
            self.failures.append(f"{kind}: {why} ({[(i.action, i.kind) for i in told][:3]})")

    def come_late(self, case: Case) -> None:
        """What is sent from now on."""
        robot = case.robot
        robot.late_periods = int(self.rng.integers(1, MOST_LATE + 1))
        self.late += 1
        robot.expected = bool(self.rng.random() < 0.5)
        if robot.expected:  # then the arms must not notice
            robot.supervisor._plan.lead = robot.late_periods

    def judged(self, kind: str, case: Case, told: list[Intervention]) -> str:
        """What is wrong with what came of it; "" for nothing."""
        robot, commands = case.robot, np.array(case.robot.executed)
        slowed = any(i.action == "slowed" for i in told)
        why = case.failure or self.oracle.wrong(
            commands if case.whole else commands[max(0, case.begun - 3) :], case.boxes,
            case.jerk if slowed else JERK, robot.expected,
        )  # fmt: skip
        if not why and not told and not case.harmless and kind not in MAY_BE_GOOD:
            why = "passed on"
        speeds = np.abs(np.diff(commands[:, JOINTS], axis=0)).max(1) / DT
        if not why and not slowed and not robot.expected:
            why = thrown(case, speeds)
        if not why and not slowed and told and not case.whole and robot.expected:
            why = self.not_stopped(case, speeds)
        if not why and speeds[-1] > 1e-9 and not slowed:
            why = f"still moving after {STOP_PERIODS} periods"
        return why

    def not_stopped(self, case: Case, speeds: np.ndarray) -> str:
        """Why that is no stop from the next period on, or from when what is sent comes."""
        if case.unhurried:
            return ""
        begun = case.begun + case.robot.late_periods
        before = speeds[begun - 1] if case.robot.late_periods else case.before
        after = speeds[max(0, begun) :]
        if len(after) and after[0] > max(before, 1e-9) + 1e-9:
            return f"faster after it: {after[0]:.3f} rad/s, before {before:.3f}"
        rest = int(np.flatnonzero(np.append(after, 0.0) > 1e-9)[-1]) + 1 if after.any() else 0
        self.slowest_stop = max(self.slowest_stop, rest)
        return ""


def thrown(case: Case, speeds: np.ndarray) -> str:
    """A jump or two may be until the supervisor has noticed how late it is, but not for ever."""
    then, late = case.begun + case.robot.late_periods, case.robot.late_periods
    wild, most = speeds[then + late + 2 :].max(), 2.0 * speeds[case.begun - 1 : then].max()
    if case.unhurried:  # nobody stopped them: they go on along their path
        most = max(most, np.abs(np.diff(case.ahead[:, JOINTS], axis=0)).max() / DT)
    if wild > most + 1e-9:
        return f"thrown to and fro, {wild:.2f} rad/s"
    return ""
