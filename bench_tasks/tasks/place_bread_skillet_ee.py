"""The skillet to the middle by its handle, then the bread into it, by raw actions."""

from __future__ import annotations

from bench_tasks.tasks.families.bread_skillet import BreadSkillet
from bench_tasks.tasks.families.carry import Step, action_steps
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.view import View


class PlaceBreadSkilletEe(RawActions, BreadSkillet):
    """Sixteen numbers per action: pose and gripper of each hand."""

    name = "place_bread_skillet_ee"
    summary = "bring the skillet to the middle, put the bread in, by end-effector targets"

    def expert(self, view: View, turn: int) -> list[Step]:
        """One carry per plan."""
        todo = self.todo(view)
        return action_steps(view, todo[0]) if todo else []


TASK = PlaceBreadSkilletEe()
