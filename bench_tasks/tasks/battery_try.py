"""Memory probe: find out by trying on which mat a battery works, and put it there at once later."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_tasks.tasks.base import Layout, ObjectSpec
from bench_tasks.tasks.families.layouts import upright
from bench_tasks.tasks.families.memory import MAT_M, MATS, name_of
from bench_tasks.tasks.families.trying import SIGN, SIGN_M, TryTask
from bench_tasks.view import View
from bench_tasks.vocabulary import ARMS, ObjectInfo

BATTERY = "orange_battery"


class BatteryTry(TryTask):
    """The mats differ by nothing but their colour."""

    name = "battery_try"
    summary = "find out by trying on which of four mats the battery works; later do it at once"
    thing = BATTERY
    places = {name_of(mat): at for mat, at in MATS.items()}  # noqa: RUF012
    begin_m = (0.44, 0.0)

    def objects(self) -> tuple[ObjectSpec, ...]:
        """A battery, four mats, and the sign of the second part."""
        return (
            ObjectSpec(BATTERY, "can", "orange", {"radius": 0.02, "height": 0.07}),
            ObjectSpec(SIGN, "block", "white", {"size": 0.04}),
            *(ObjectSpec(m, "pad", m.split("_")[0], {"size": MAT_M}) for m in MATS),
        )

    def layout(self, rng: np.random.Generator, objects: Mapping[str, ObjectInfo]) -> Layout:
        """The right mat is drawn."""
        low = {name: objects[name].half_size_m[2] for name in (BATTERY, SIGN)}
        params = self.drawn(rng)
        x, y = np.array(self.begin_m) + rng.uniform(-0.01, 0.01, 2)
        return Layout(
            {
                BATTERY: upright(x, y, low[BATTERY]), SIGN: upright(*SIGN_M, low[SIGN]),
                **{mat: upright(*at, 0.0005) for mat, at in MATS.items()},
            },
            self.instructed(
                "The battery works on one of four mats. Stand it on any of them and let go: you "
                "are told whether it is right, and it is taken back. Once it was right, the white "
                "block is moved to the right: then put the battery on the right mat at once, and "
                "on no other. Do not touch the white block.",
                f"Before, the {params['right']} was right.",
            ),
            params, reach={BATTERY: ARMS},
        )  # fmt: skip

    def disturbed(self, view: View) -> bool:
        """There is nothing else."""
        return False


class BatteryTryTold(BatteryTry):
    """The control."""

    name = "battery_try_told"
    told = True
    summary = f"{BatteryTry.name}, and the instruction tells what is right"


TASK, CONTROL = BatteryTry(), BatteryTryTold()
