"""What nodes that collect looks at a marker on an arm have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench_tasks.errors import UsageError, unknown
from bench_tasks.ros.node_ros import BenchNode, parameter, steady_timer
from bench_tasks.vocabulary import ARMS
from hardware.looks import Looks

__all__ = ["LookNode"]

LOOK_S = 0.1


class LookNode(BenchNode):
    """Takes looks until there are as many as `count` says, writes them to `out` and ends.

    Parameters: `arm`, `marker` (its name), `out` and `count`. Each robot has its own way to see.
    """

    DONE = ""
    """What to do after a look was taken."""

    def __init__(self, name: str) -> None:
        """UsageError when a parameter cannot be."""
        super().__init__(name)
        self._arm = parameter(self, "arm", "left")
        self._marker = parameter(self, "marker", "marker")
        if self._arm not in ARMS:
            raise unknown("arm", self._arm, ARMS)
        self._said = ""

    def _begin(self, about: dict[str, Any], joints: np.ndarray, count: int, out: str) -> None:
        """Look from now on; `about` and `joints` as for `Looks`, `count` and `out` by default."""
        self._out = Path(parameter(self, "out", out))
        if self._out.exists():
            raise UsageError(f"out: {self._out} is there already")
        about = {"format_version": 1, **about, "arm": self._arm}
        self._looks = Looks(about, joints, parameter(self, "count", count))
        steady_timer(self, LOOK_S, self._look)

    def _sight(self) -> tuple[dict[str, np.ndarray], float] | str:
        """What is seen now, see `Looks.offer`, and how old the marker's pose is; or why nothing."""
        raise NotImplementedError

    def _look(self) -> None:
        sight = self._sight()
        said = sight if isinstance(sight, str) else self._looks.offer(*sight) or self.DONE
        if said != self._said:
            self.get_logger().info(f"{self._looks.left} looks to take: {said}")
        self._said = said
        if not self._looks.left:
            self._out.write_text(json.dumps(self._looks.to_dict()), encoding="utf-8")
            self.get_logger().info(f"written: {self._out}")
            self.stop()
