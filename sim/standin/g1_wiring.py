"""What may be wrong with a stand-in G1, and who bends its arms: for who has to find that out."""

from __future__ import annotations

import numpy as np

from bench_tasks.errors import unknown
from bench_tasks.robots import g1
from bench_tasks.robots.unitree_hg import JOINTS

__all__ = ["Bent", "reported"]

_ARM = 7
_LEFT = g1.LEGS + g1.WAIST
MOST_RAD = np.concatenate([np.zeros(g1.LEGS), np.full(g1.WAIST, 0.3), np.full(2 * _ARM, 0.5)])
BENDING_S, RESTING_S = 0.4, 1.1


def reported(numbers: np.ndarray, swap_arms: bool, flip: list[str]) -> np.ndarray:
    """q, dq, tau (3 * 29,) as a robot says them whose arms are swapped, or joints turned round."""
    rows = numbers.reshape(3, JOINTS).copy()
    for name in flip:
        if name not in g1.JOINT_NAMES:
            raise unknown("joint", name, g1.JOINT_NAMES)
        rows[:, g1.JOINT_NAMES.index(name)] *= -1
    if swap_arms:
        arms = rows[:, _LEFT:].reshape(3, 2, _ARM)
        rows[:, _LEFT:] = arms[:, ::-1].reshape(3, 2 * _ARM)
    return rows.ravel()


class Bent:
    """Joints that somebody bends by hand, from rest to rest, while no motor holds them."""

    def __init__(self, seed: int) -> None:
        """They begin as the robot stands."""
        self._rng = np.random.default_rng(seed)
        self.q, self.dq, self.tau = g1.DEFAULT_RAD.copy(), np.zeros(JOINTS), np.zeros(JOINTS)
        self._from = self._to = self.q
        self._begun_s = float("-inf")

    def step(self, now_s: float, dt_s: float) -> None:
        """Go on."""
        if now_s - self._begun_s > BENDING_S + RESTING_S:
            wanted = g1.DEFAULT_RAD + self._rng.uniform(-MOST_RAD, MOST_RAD)
            self._from, self._to = self.q, np.clip(wanted, *g1.LIMITS_RAD.T)
            self._begun_s = now_s
        share = min(1.0, (now_s - self._begun_s) / BENDING_S)
        before, self.q = self.q, self._from + share * (self._to - self._from)
        self.dq = (self.q - before) / max(dt_s, 1e-3)

    def measured(self) -> np.ndarray:
        """As `IdealJoints.measured`."""
        return np.concatenate([self.q, self.dq, self.tau, [1.0, 0, 0, 0], np.zeros(5), [9.81]])
