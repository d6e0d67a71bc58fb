"""What of a robot's limits a Franka cell can make use of: the tighter of the two, for commands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_tasks.vocabulary import ARMS
from hardware.franka.cell import Cell
from hardware.franka.limits import (
    ACCELERATION_SHARE,
    LEAD_PERIODS,
    MAX_ACCELERATION,
    MAX_VELOCITY,
    SPEED_SHARE,
)
from hardware.robot_time import SLOWEST
from hardware.safety.limits import Limits

__all__ = ["ROBOT", "narrowed"]

ROBOT = "franka"
"""What scenes call the robot of such a cell."""


def narrowed(limits: Limits, cell: Cell) -> Limits:
    """The limits for commands to the arms of `cell`: what its drivers would cut short is too much.

    A path that was checked is only followed if nobody makes it slower on the way. What is measured
    is judged by the robot's own limits as before, but for how late it may be of a simulated robot.
    """
    arms, share = cell.raw["arms"], limits.commands["share"]

    def both(most: np.ndarray, own: np.ndarray) -> np.ndarray:
        # Of each limit commands may use the share `share`.
        return np.minimum(own, np.tile(most, len(ARMS)) / share)

    measured = dict(limits.measured)
    if cell.raw.get("simulated"):  # it has hardly moved since the last one
        measured["state_age_s"] /= SLOWEST
    return replace(
        limits,
        cell=ROBOT,
        velocity=both(SPEED_SHARE * arms["speed"] * MAX_VELOCITY, limits.velocity),
        acceleration=both(ACCELERATION_SHARE * MAX_ACCELERATION, limits.acceleration),
        commands={
            **limits.commands, "jump_rad": min(limits.commands["jump_rad"], arms["max_jump_rad"])
        },
        measured=measured,
        lead_periods=LEAD_PERIODS,
    )  # fmt: skip
