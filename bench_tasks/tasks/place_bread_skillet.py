"""The skillet to the middle by its handle, then the bread into it."""

from __future__ import annotations

from bench_tasks.tasks.families.bread_skillet import BreadSkillet
from bench_tasks.tasks.families.carry import Step, next_steps
from bench_tasks.view import View


class PlaceBreadSkillet(BreadSkillet):
    """One arm fetches what the other one cannot reach."""

    name = "place_bread_skillet"
    summary = "bring the skillet to the middle by its handle, put the bread in with the other arm"

    def expert(self, view: View, turn: int) -> list[Step]:
        """One carry per plan."""
        return next_steps(view, self.todo(view), turn)


TASK = PlaceBreadSkillet()
