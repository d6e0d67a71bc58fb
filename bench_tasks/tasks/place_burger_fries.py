"""Burger and fries onto a tray, each with the arm of its side."""

from __future__ import annotations

from bench_tasks.tasks.families.burger_fries import BurgerFries
from bench_tasks.tasks.families.carry import Step, next_steps
from bench_tasks.view import View


class PlaceBurgerFries(BurgerFries):
    """Independent work for two arms that share the tray."""

    name = "place_burger_fries"
    summary = "put burger and fries on the tray, each with the arm of its side"

    def expert(self, view: View, turn: int) -> list[Step]:
        """Take both at once, then put them down one after the other."""
        return next_steps(view, self.todo(view), turn)


TASK = PlaceBurgerFries()
