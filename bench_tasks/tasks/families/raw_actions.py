"""What makes a task one of tier 3: end-effector targets take the place of skills."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["RawActions"]


class RawActions:
    """Comes first among a task's base classes. An action is as `actions.step_from_action` says."""

    tier: ClassVar[int | None] = 3
    skills: ClassVar[tuple[str, ...]] = ("move_to",)
    max_plans: ClassVar[int] = 12
    note: ClassVar[str] = (
        " Give each action as 16 numbers: position (m), quaternion (w x y z) and gripper "
        "(0 closed, 1 open) of the left hand, then of the right."
    )
