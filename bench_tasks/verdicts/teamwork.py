"""How two arms got on with each other in one episode: waiting, conflict, surprise; from the record.

Waiting: one arm stands still while the other works. Conflict: the arms touch each other, or both
hold one thing and are told to hold it further apart, or nearer, than it is. Surprise: how far each
agent of the policy `pair` found its partner from where it had expected it.

All of it is measured for every policy, so that two agents can be compared with one for both arms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bench_tasks.robots.fr3 import TCP_OFFSET_M, base_position
from bench_tasks.verdicts.afterwards import OVER
from bench_tasks.verdicts.coordination import GRIPPER_M_S, MOVING_RAD_S
from bench_tasks.view import SQUEEZE_M, View
from bench_tasks.vocabulary import ARMS, FR3_PAIR, GRIPPER_COLUMNS, Event, Scene, WorldState

__all__ = ["MEASURES", "PARTNER", "PARTNERS", "check_teamwork", "tcp_position", "teamwork_of"]

PARTNER = "partner"
"""Kind of the event at every look of the policy `pair`: {"partner", "odd", "factor", "stranger",
"surprise": {arm: {"rad", "still_rad"}}}: mean errors over joints of what the arm's agent foretold
of its partner's command, and of foretelling that it does not move."""
PARTNERS = ("normal", "slow", "fast", "stranger")
MEASURES = (
    "acted_s", "left_waits_s", "right_waits_s", "both_still_s", "both_work_s", "clash_s", "pull_s",
    "both_held_s", "worst_pull_m",
)  # fmt: skip
CLASH_N = 1.0
"""Arms that press on each other with more than this are in conflict ..."""
PULL_M = 0.01
"""... and so are those that are told to hold one thing this much further apart or nearer. The
expert's worst is 1.3 mm in 60 demonstrations of lift_pot, none of them disturbed."""

# FR3 link lengths in Craig's convention (Franka's FCI documentation), hand and TCP included.
_A = (0.0, 0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088)
_D = (0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.0)
_ALPHA = np.array([0, -1, 1, 1, -1, 1, 1]) * np.pi / 2
_FLANGE_M = 0.107


def tcp_position(arm: str, joints: np.ndarray) -> np.ndarray:
    """TCP positions (.., 3) in the world frame, m, of joints (.., 7), the table top at the bases.

    As `kinematics.DualArm.forward`, without the libraries that it needs: a recording is scored
    where they are not installed.
    """
    joints = np.asarray(joints, dtype=np.float64)
    rotation, position = np.eye(3), np.zeros(3)
    for k, (a, d, alpha) in enumerate(zip(_A, _D, _ALPHA, strict=True)):
        ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(joints[..., k]), np.sin(joints[..., k])
        zero = np.zeros_like(c)
        turn = np.stack([
            np.stack([c, -s, zero], -1), np.stack([s * ca, c * ca, zero - sa], -1),
            np.stack([s * sa, c * sa, zero + ca], -1),
        ], -2)  # fmt: skip
        position = position + rotation @ np.array([a, -sa * d, ca * d])
        rotation = rotation @ turn
    return base_position(arm) + position + rotation[..., 2] * (_FLANGE_M + TCP_OFFSET_M)


def teamwork_of(
    scene: Scene | None, states: Sequence[WorldState], events: Iterable[Event]
) -> dict[str, Any]:
    """The measures of an episode and its partner; {} when the arms were never to act.

    {} also for other robots than the FR3 pair, whose links the measures know.

    `MEASURES` are times (s) of what this module tells at its head, from the event `act` to the end,
    and the worst pull (m); `partner` is what the events `PARTNER` say, {} when there were none:
    `kind`, `odd`, `factor`, `stranger`, and for each agent the means `rad`, `still_rad` and the
    count `looks`.
    """
    events = list(events)
    begin = next((event.seq for event in events if event.kind == "act"), None)
    end = next((event.seq for event in events if event.kind in (OVER, "end")), None)
    if scene is None or begin is None or scene.embodiment != FR3_PAIR:
        return {}
    acted = [s for s in states if s.seq >= begin and (end is None or s.seq <= end)]
    if len(acted) < 2:
        return {}
    return {**_measured(scene, acted), "partner": _partner(events)}


def _measured(scene: Scene, states: Sequence[WorldState]) -> dict[str, float]:
    spent_s = np.diff([s.stamp_ns for s in states]) / 1e9
    speed = np.abs(np.stack([s.joint_velocity for s in states[1:]])).reshape(len(spent_s), 2, 7)
    told = np.stack([s.command for s in states])[:, GRIPPER_COLUMNS]
    opening = np.stack([s.gripper_opening for s in states])
    grips = np.abs(np.diff(told, axis=0)) > GRIPPER_M_S * spent_s[:, None]
    left, right = ((speed > MOVING_RAD_S).any(axis=2) | grips).T
    kept_open = (opening - told > SQUEEZE_M).all(axis=1)
    fingers = {f"{arm}_finger{n}" for arm in ARMS for n in (1, 2)}
    known = fingers <= set(scene.entities)
    loose = [item.name for item in scene.objects if known and not item.fixed]
    clash, held = np.zeros(len(spent_s), bool), np.zeros(len(spent_s), bool)
    sides = [{scene.entities.index(f"{arm}_{part}") for part in _PARTS
              if f"{arm}_{part}" in scene.entities} for arm in ARMS]  # fmt: skip
    for k, state in enumerate(states[1:]):
        clash[k] = _touch(state, sides) > CLASH_N
        if not kept_open[k + 1]:
            continue
        view = View(scene, state)
        held[k] = any(all(view.grasped(name, arm) for arm in ARMS) for name in loose)
    pull = _pull([state for state, both in zip(states[1:], held, strict=True) if both])
    pulled = held.copy()
    pulled[held] = pull > PULL_M
    masks = (
        np.ones(len(spent_s), bool), ~left & right, left & ~right, ~left & ~right, left & right,
        clash, pulled, held,
    )  # fmt: skip
    found = {name: float(spent_s[mask].sum()) for name, mask in zip(MEASURES, masks, strict=False)}
    found["worst_pull_m"] = float(pull.max(initial=0.0))
    return found


_PARTS = ("arm", "hand", "finger1", "finger2")


def _touch(state: WorldState, sides: Sequence[set[int]]) -> float:
    """Summed normal force between the two arms, N."""
    left, right = sides
    return sum(
        (force for (a, b), force in zip(state.contact_pair.tolist(), state.contact_force.tolist(),
                                        strict=True)
         if (a in left and b in right) or (a in right and b in left)), 0.0
    )  # fmt: skip


def _pull(states: Sequence[WorldState]) -> np.ndarray:
    """How much further apart or nearer than they are the hands are told to be, (n,) m."""
    if not states:
        return np.zeros(0)
    told = np.stack([state.command for state in states])
    are = np.stack([state.ee_pose[:, :3] for state in states])
    hands = [tcp_position(arm, told[:, 8 * k : 8 * k + 7]) for k, arm in enumerate(ARMS)]
    apart = np.linalg.norm(hands[0] - hands[1], axis=1)
    return np.nan_to_num(np.abs(apart - np.linalg.norm(are[:, 0] - are[:, 1], axis=1)), posinf=0.0)


def _partner(events: Iterable[Event]) -> dict[str, Any]:
    said = [event.data for event in events if event.kind == PARTNER]
    if not said:
        return {}
    first, agents = said[0], {}
    for arm in ARMS:
        told = [d["surprise"] for d in said if isinstance(d.get("surprise"), dict)]
        seen = [s[arm] for s in told if isinstance(s.get(arm), dict)]
        pairs = [(s.get("rad"), s.get("still_rad")) for s in seen]
        pairs = [p for p in pairs if all(type(v) in (int, float) and 0 <= v < 1e3 for v in p)]
        if pairs:
            rad, still = np.mean(pairs, axis=0).tolist()
            agents[arm] = {"rad": rad, "still_rad": still, "looks": len(pairs)}
    kind, odd, factor = first.get("partner"), first.get("odd"), first.get("factor")
    return {
        "kind": kind if kind in PARTNERS else "normal", "odd": odd if odd in ARMS else "",
        "factor": float(factor) if type(factor) in (int, float) and 0 < factor < 1e3 else 1.0,
        "stranger": str(first.get("stranger", "")), "agents": agents,
    }  # fmt: skip


def check_teamwork(found: dict[str, Any]) -> None:
    """TypeError when a result file's teamwork is not what `teamwork_of` gives."""
    if not found:
        return
    partner = found.get("partner")
    good = set(found) == {*MEASURES, "partner"} and isinstance(partner, dict)
    good = good and all(type(found[m]) in (int, float) and 0 <= found[m] < 1e9 for m in MEASURES)
    if good and isinstance(partner, dict) and partner:
        good = set(partner) == {"kind", "odd", "factor", "stranger", "agents"}
        good = good and partner["kind"] in PARTNERS and isinstance(partner["agents"], dict)
        good = good and type(partner["factor"]) in (int, float)
        for arm, agent in partner["agents"].items() if good else ():
            good = good and arm in ARMS and isinstance(agent, dict)
            good = good and set(agent) == {"rad", "still_rad", "looks"}
            good = good and all(type(v) in (int, float) for v in agent.values())
    if not good:
        raise TypeError(f"teamwork is {found!r}"[:200])
