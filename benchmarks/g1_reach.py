"""How near the G1's hands come to 180 fixed targets, with and without HERO's corrections.

    python benchmarks/g1_reach.py [--modes none,replan,adjust,both] [--every 1] [--out FILE]
    python benchmarks/g1_reach.py --draw        # write the targets' file anew

With --out each target is written as soon as it is measured, one line of JSON each, and what such a
file holds already is not measured again: a run that was stopped goes on where it was.

`g1_targets.json` holds 60 targets for each table height (0.5, 0.74, 0.88 m): 20 of the left hand,
20 of the right, 20 of both at once; --every 6 takes each sixth. A hand has 8 s, in which the
corrections that are on go on to the end. Measured over the last two, in the measures of
hero_bench_v1: position (cm) and angle (degrees) in the world and in the frame of the pelvis
(against the target as the pelvis saw it when the robot set out, so that it shows what the joints do
without what the body does), mean and percentiles, shares within 2.5, 5 and 10 cm; S7.5 and S5:
means of all hands within 7.5 cm and 15 degrees, or 5 cm and 10, without a fall; C3: within 3 cm and
15 degrees over the last second. Shares with Wilson's interval, means with the bootstrap's (95 %).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_tasks.errors import UsageError, unknown  # noqa: E402
from bench_tasks.reports.stats import wilson  # noqa: E402
from bench_tasks.tasks.families.humanoid import (  # noqa: E402
    HEIGHTS_M,
    hand_error,
    in_pelvis,
    reach_target,
    upright,
)
from bench_tasks.tasks.reach_both_hands import ReachBothHands  # noqa: E402
from bench_tasks.view import View  # noqa: E402
from bench_tasks.vocabulary import ARMS, ActionChunk, Observation, Plan, SkillCall  # noqa: E402
from policies.humanoid import HumanoidOptions, HumanoidPolicy  # noqa: E402
from sim.world import SimWorld  # noqa: E402

TARGETS = Path(__file__).with_name("g1_targets.json")
SECONDS, HOLD_S, LAST_S = 8.0, 2.0, 1.0
SETS = (("left",), ("right",), ARMS)
PER_SET = 20
MODES = {
    # Staying on its goal for all the time: what is corrected goes on being corrected.
    name: HumanoidOptions(replan, adjust, settle_s=SECONDS)
    for name, replan, adjust in (
        ("none", False, False), ("replan", True, False), ("adjust", False, True),
        ("both", True, True),
    )
}  # fmt: skip


class AtHeight(ReachBothHands):
    """The scene of `reach_both_hands` at a table of a given height."""

    def __init__(self, height_m: float) -> None:
        """Take the height of the table, m."""
        self._height_m = height_m

    def table_height_m(self, rng: np.random.Generator) -> float:
        """Always the same."""
        return self._height_m


def draw() -> None:
    """Write the targets' file."""
    rng, lines = np.random.default_rng(20260), []
    for height_m in HEIGHTS_M:
        for arms in SETS:
            for _ in range(PER_SET):
                hands = reach_target(rng, height_m, arms)
                lines.append(json.dumps({"height_m": height_m, "hands": hands}))
    TARGETS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def attempt(world: SimWorld, target: dict, options: HumanoidOptions) -> dict[str, Any]:
    """Errors of each hand over the time that is measured; `fell` when it did."""
    scene, state = world.set_up(AtHeight(target["height_m"]), 0)
    policy, hands = HumanoidPolicy(options), target["hands"]
    policy.reset(scene, 0)
    policy.accept(Plan((
        tuple(SkillCall("move_to", arm, {"pose": pose}) for arm, pose in hands.items()),
    )))  # fmt: skip
    begin = View(scene, state)
    seen = {arm: in_pelvis(begin, np.array(pose)) for arm, pose in hands.items()}
    rows: list[list[float]] = []
    reason = ""
    while state.stamp_ns < SECONDS * 1e9:
        chunk = policy.infer(Observation(state))
        if chunk.needs_plan:
            reason = reason or chunk.detail.get("reason", "")
            chunk = ActionChunk(state.seq, np.tile(state.command, (10, 1)))
        for state in world.step(chunk):
            view = View(scene, state)
            if not upright(view):
                return {**target, "fell": True, "reason": reason}
            if state.stamp_ns > (SECONDS - HOLD_S) * 1e9:
                rows.append([
                    value
                    for arm in hands
                    for pose in (state.ee_pose[ARMS.index(arm)],)
                    for value in (
                        *hand_error(pose, hands[arm]),
                        *hand_error(in_pelvis(view, pose), seen[arm].tolist()),
                    )
                ])
    track = np.array(rows).reshape(len(rows), len(hands), 4) * (
        [100.0, math.degrees(1.0)] * 2
    )
    hold, last = track.mean(axis=0), track[-round(LAST_S * 50):].mean(axis=0)
    return {**target, "fell": False, "reason": reason, "hold": hold.round(2).tolist(),
            "last": last.round(2).tolist()}  # fmt: skip


def share(good: int, of: int) -> dict[str, Any]:
    """A share and its interval."""
    return {"share": round(good / of, 3), "interval": [round(x, 3) for x in wilson(good, of)]}


def summary(found: list[dict]) -> dict[str, Any]:
    """The measures over all targets; errors are those of hands of a robot that stands."""
    stood = [item for item in found if not item["fell"]]
    hands = np.array([hand for item in stood for hand in item["hold"]]).reshape(-1, 4)

    def within(what: str, cm: float, degrees: float) -> dict[str, Any]:
        good = sum(
            all(h[0] <= cm and h[1] <= degrees for h in item[what]) for item in stood
        )
        return share(good, len(found))

    def of(column: int) -> dict[str, Any]:
        values = hands[:, column]
        drawn = np.random.default_rng(0).choice(values, (2000, len(values))).mean(axis=1)
        return {
            "mean": round(float(values.mean()), 2),
            "interval": np.percentile(drawn, (2.5, 97.5)).round(2).tolist(),
        } | {f"p{p}": round(float(np.percentile(values, p)), 2) for p in (50, 80, 90, 95)}

    counts = {
        "targets": len(found), "falls": len(found) - len(stood),
        "out_of_reach": sum(bool(item["reason"]) for item in found),
    }  # fmt: skip
    if not stood:
        return counts
    return counts | {
        "world_cm": of(0), "world_degrees": of(1), "pelvis_cm": of(2), "pelvis_degrees": of(3),
        "within": {f"{cm:g} cm": round(float((hands[:, 0] <= cm).mean()), 3)
                   for cm in (2.5, 5.0, 10.0)},
        "S7.5": within("hold", 7.5, 15.0), "S5": within("hold", 5.0, 10.0),
        "C3": within("last", 3.0, 15.0),
    }  # fmt: skip


def _measured(out: Path | None) -> dict[str, list[dict]]:
    """What a file holds already, by mode; its first line says what it is measured on."""
    found: dict[str, list[dict]] = {mode: [] for mode in MODES}
    head = json.dumps({
        "targets": hashlib.sha256(TARGETS.read_bytes()).hexdigest()[:16], "seconds": SECONDS,
        "policy": HumanoidPolicy.metadata.version,
    })  # fmt: skip
    if out is None:
        return found
    if not out.exists():
        out.write_text(head + "\n")
        return found
    # What follows the last end of a line was being written when the run was stopped.
    whole, _, _ = out.read_text().rpartition("\n")
    first, *lines = whole.split("\n")
    if first != head:
        raise UsageError(f"{out} is of other measurements: it begins {first[:100]}, not {head}")
    out.write_text(whole + "\n")
    for item in map(json.loads, lines):
        found[item.pop("mode")].append(item)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="write the targets' file and stop")
    parser.add_argument("--modes", default=",".join(MODES), help=f"of {', '.join(MODES)}")
    parser.add_argument("--every", type=int, default=1, help="take each n-th target")
    parser.add_argument("--out", type=Path, help="write each target here at once, and go on there")
    args = parser.parse_args()
    if args.draw:
        draw()
        return
    modes = args.modes.split(",")
    for mode in modes:
        if mode not in MODES:
            parser.error(str(unknown("mode", mode, MODES)))
    try:
        done = _measured(args.out)
    except UsageError as error:
        parser.error(str(error))
    targets = list(enumerate(json.loads(TARGETS.read_text())))[:: args.every]
    world = SimWorld()
    # One of each set and height after the other, in all modes: what has been measured when a run
    # is stopped is a fair sample.
    for k, target in sorted(targets, key=lambda item: item[0] % PER_SET):
        for mode in modes:
            if any(item["k"] == k for item in done[mode]):
                continue
            item = {"k": k, **attempt(world, target, MODES[mode])}
            done[mode].append(item)
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps({"mode": mode, **item}) + "\n")
            sys.stderr.write(f"\r{k + 1}: {mode}   ")
    sys.stderr.write("\n")
    asked = {k for k, _ in targets}
    results = {}
    for mode in modes:
        found = [item for item in done[mode] if item["k"] in asked]
        results[mode] = {"all heights": summary(found)} | {
            f"{height_m:g} m": summary([i for i in found if i["height_m"] == height_m])
            for height_m in HEIGHTS_M
        }
    sys.stdout.write(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
