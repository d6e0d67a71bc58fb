"""Does the G1 stay on its feet while its arms work?

    python benchmarks/g1_balance.py [--episodes 50] [--seconds 30] [--out FILE]

In each episode both hands go from one random pose to the next, drawn as the task `reach_both_hands`
draws its targets, waist included, by the policy `humanoid`; table heights take turns. An episode
ends with a fall, or when its time is over. Printed as JSON: episodes without a fall and their
Wilson interval, how far the pelvis strayed from where it began, motions done, falls.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.reports.stats import wilson  # noqa: E402
from bench_tasks.robots.g1 import PELVIS  # noqa: E402
from bench_tasks.tasks.families.humanoid import HEIGHTS_M, reach_target, upright  # noqa: E402
from bench_tasks.view import View  # noqa: E402
from bench_tasks.vocabulary import ARMS, Observation, Plan, SkillCall  # noqa: E402
from benchmarks.g1_reach import AtHeight  # noqa: E402
from policies.humanoid import HumanoidPolicy  # noqa: E402
from sim.world import SimWorld  # noqa: E402


def episode(world: SimWorld, seed: int, seconds: float) -> dict:
    """One episode: whether and when it fell, and what it did."""
    height_m = HEIGHTS_M[seed % len(HEIGHTS_M)]
    scene, state = world.set_up(AtHeight(height_m), seed)
    policy, rng = HumanoidPolicy(), np.random.default_rng([seed, 1])
    policy.reset(scene, seed)
    begin = View(scene, state).position(PELVIS)[:2].copy()
    away_m, motions = 0.0, 0
    while state.stamp_ns < seconds * 1e9:
        chunk = policy.infer(Observation(state))
        if chunk.needs_plan:
            motions += chunk.detail["status"] == "done"
            target = reach_target(rng, height_m, ARMS)
            calls = tuple(SkillCall("move_to", arm, {"pose": target[arm]}) for arm in ARMS)
            policy.accept(Plan((calls,)))
            continue
        for state in world.step(chunk):
            view = View(scene, state)
            away_m = max(away_m, float(np.linalg.norm(view.position(PELVIS)[:2] - begin)))
            if not upright(view):
                return {"seed": seed, "height_m": height_m, "fell_s": state.stamp_ns / 1e9,
                        "away_m": away_m, "motions": motions}  # fmt: skip
    return {"seed": seed, "height_m": height_m, "fell_s": None, "away_m": away_m,
            "motions": motions}  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", default="", help="also write the JSON here")
    args = parser.parse_args()
    world, begun, found = SimWorld(), time.perf_counter(), []
    for seed in range(args.first, args.first + args.episodes):
        found.append(episode(world, seed, args.seconds))
        sys.stdout.write(json.dumps(found[-1]) + "\n")
        sys.stdout.flush()
    stood = sum(item["fell_s"] is None for item in found)
    low, high = wilson(stood, len(found))
    away = [item["away_m"] for item in found]
    text = json.dumps({
        "episodes": len(found), "seconds": args.seconds, "without_a_fall": stood,
        "interval": [round(low, 3), round(high, 3)], "motions": sum(i["motions"] for i in found),
        "away_m": {"median": round(float(np.median(away)), 3), "most": round(max(away), 3)},
        "falls": [i for i in found if i["fell_s"] is not None],
        "wall_s": round(time.perf_counter() - begun),
    }, indent=1)  # fmt: skip
    sys.stdout.write(text + "\n")
    if args.out:
        Path(args.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
