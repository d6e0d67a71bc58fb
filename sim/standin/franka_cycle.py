"""franka-sim's robot, a step of whose physics is a cycle of its control, however long that takes.

franka-sim steps its physics on one thread and hears and answers its client on another, each a
thousand times a second of the wall's. On a busy machine both fall behind, but not alike: then an
arm has less time for its way than it was given, and lags. Here it has one step for each command,
as a real arm has a millisecond; a robot that is slow is slow for whoever goes by its time.
"""

from __future__ import annotations

import time

from franka_sim.franka_sim_server import FrankaSimServer
from franka_sim.mujoco_franka_sim import MujocoFrankaSim

from sim.standin.pace import Pace

__all__ = ["CycledServer", "CycledSim"]

CYCLE_S, LONGEST_CYCLE_S = 0.001, 0.1
SMOOTH, SMALL_S = 0.05, 0.0001


class CycledSim(MujocoFrankaSim):
    """An arm that moves on when it is told to."""

    def __init__(self, pace: Pace) -> None:
        """`pace`: with whom it shares its time."""
        super().__init__()
        self.pace = pace
        self.connected = lambda: False

    def run_simulation(self) -> None:
        """While nobody is connected, time passes by itself."""
        due = time.perf_counter()
        self._read_and_publish_state()
        while self.running:
            if not self.connected():
                self.pace.wait(self.data.time)
                self.step()
            due = max(due + self.dt, time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))


class CycledServer(FrankaSimServer):
    """The server of such an arm."""

    physics_sim: CycledSim
    # What has come is applied before the cycle ends, however long this process waits to do that.
    _DRAIN_GATE_TIMEOUT = 0.5

    def __init__(self, *args, **more) -> None:
        """As franka-sim's."""
        super().__init__(*args, **more)
        self.physics_sim.connected = lambda: self.connection_running and self.transmitting_state
        self._gate_s, self._cycle_s = 0.0, CYCLE_S

    def _drain_gate(self, answer_deadline: float = 0.0) -> float:
        """Before a cycle ends: wait for the others of the cell, and for the answer to the last one.

        An answer has a millisecond of the robot's time, which is what cycles took lately.
        """
        begun = time.perf_counter()
        self.physics_sim.pace.wait(self.physics_sim.data.time)
        late_s = self._cycle_s - CYCLE_S
        super()._drain_gate(answer_deadline + late_s)
        now = time.perf_counter()
        latest_s = min(max(now - self._gate_s, CYCLE_S), LONGEST_CYCLE_S)
        self._cycle_s += SMOOTH * (latest_s - self._cycle_s)
        self._gate_s = now
        waited_s = now - begun
        return waited_s if waited_s > SMALL_S else 0.0  # else each cycle would be a little longer

    def _account_for_communication_cycle(self) -> None:
        """A cycle ends, and with it the time for its command; what the arm did in it is told."""
        super()._account_for_communication_cycle()
        arm = self.physics_sim
        arm.step()
        found = arm.get_robot_state()
        self.robot_state.state.update(
            {name: found[name] for name in found if name not in self._server_owned_state_fields}
        )
