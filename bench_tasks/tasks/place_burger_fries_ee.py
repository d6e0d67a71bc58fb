"""Burger and fries onto a tray, by raw end-effector actions."""

from __future__ import annotations

from bench_tasks.tasks.families.burger_fries import BurgerFries
from bench_tasks.tasks.families.carry import Step, action_steps, both_action_steps
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.view import View


class PlaceBurgerFriesEe(RawActions, BurgerFries):
    """Sixteen numbers per action: pose and gripper of each hand."""

    name = "place_burger_fries_ee"
    summary = "put burger and fries on the tray, each with its arm, by end-effector targets"

    def expert(self, view: View, turn: int) -> list[Step]:
        """Take both at once, then put them down one after the other."""
        todo = self.todo(view)
        if len(todo) == 2:
            return both_action_steps(view, *todo)
        return action_steps(view, todo[0]) if todo else []


TASK = PlaceBurgerFriesEe()
