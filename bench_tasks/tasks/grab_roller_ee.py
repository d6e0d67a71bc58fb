"""A rolling pin, lifted by both arms at the same time, level, by raw end-effector actions."""

from __future__ import annotations

import numpy as np

from bench_tasks.actions import step_from_action
from bench_tasks.tasks.families.carry import APPROACH_M, Step
from bench_tasks.tasks.families.lifting import LIFT_M, in_both_hands, rise
from bench_tasks.tasks.families.raw_actions import RawActions
from bench_tasks.tasks.families.roller import RollerTask
from bench_tasks.view import View, compose
from bench_tasks.vocabulary import ARMS


class GrabRollerEe(RawActions, RollerTask):
    """Sixteen numbers per action, of which both halves matter at once."""

    name = "grab_roller_ee"
    summary = "lift the roller by its two handles with both arms at once, by end-effector targets"

    def expert(self, view: View, turn: int) -> list[Step]:
        """Above the handles, down, closed, up: both hands in every action."""
        missing = LIFT_M - rise(view, "roller")
        if in_both_hands(view, "roller"):
            return [] if missing < 0.04 else [_action(view.state.ee_pose, missing, 0.0)]
        grasps = {g.name: np.array(g.pose) for g in view.scene.object("roller").grasps}
        hands = [compose(view.pose("roller"), grasps[f"{arm}_handle"]) for arm in ARMS]
        steps = [
            _action(hands, APPROACH_M, 1.0), _action(hands, 0.0, 1.0), _action(hands, 0.0, 0.0),
        ]
        if any(view.grasped("roller", arm) for arm in ARMS):
            return [_action(view.state.ee_pose, 0.0, 1.0), *steps]
        return steps


def _action(hands, above_m: float, gripper: float) -> Step:
    """Both hands (2 poses (7,)) at a height above where they are given, grippers alike."""
    up = np.array([0.0, 0.0, above_m, 0.0, 0.0, 0.0, 0.0])
    return step_from_action(
        np.concatenate([np.append(np.asarray(pose) + up, gripper) for pose in hands]).tolist()
    )


TASK = GrabRollerEe()
