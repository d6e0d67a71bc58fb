"""What of a robot's limits a G1's cell can make use of: the tighter of the two, for commands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_tasks.robots import g1
from hardware.safety.limits import Limits
from hardware.unitree.cell import Cell

__all__ = ["LEAD_PERIODS", "ROBOT", "narrowed"]

ROBOT = "unitree"
"""What scenes call the robot of such a cell."""
LEAD_PERIODS = 1
"""What answers a state finds the arms on their way to the next one already."""


def narrowed(limits: Limits, cell: Cell) -> Limits:
    """The limits for commands to waist and arms of `cell`: what its driver would cut short is none.

    What is measured is judged by the robot's own limits as before.
    """
    bus = cell.raw["bus"]
    # Of each limit commands may use the share `share`.
    most = bus["speed"] * g1.MAX_VELOCITY[g1.LEGS :] / limits.commands["share"]
    jump = min(limits.commands["jump_rad"], bus["max_jump_rad"])
    return replace(
        limits, cell=ROBOT, velocity=np.minimum(limits.velocity, most),
        commands={**limits.commands, "jump_rad": jump}, lead_periods=LEAD_PERIODS,
        table=cell.raw["table"],
    )  # fmt: skip
