"""Whether a G1 and its cell are what the cell's file says, from what was heard of the robot.

`listen` hears it. What a tracker saw of a marker on its hands, and so whether joints have the right
order and signs, is found by `joints`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench_tasks.robots import g1
from bench_tasks.robots.unitree_hg import ARM_SDK, MACHINES
from bench_tasks.view import rotation_matrix
from bench_tasks.vocabulary import ARMS
from hardware.checkup import Found
from hardware.unitree.guard import VENDORS

__all__ = ["check", "check_seen"]

LEAST_HZ = 100.0
MOST_GAP_S = 0.05
MOST_LOST = 0.05
"""Of its states; the robot sends 500 a second."""
MOST_ROUND_S = 0.04
"""There and back: two control periods."""
SLACK_RAD = 0.05
UPRIGHT_RAD = 0.1
"""A tracker's frame of the pelvis and the robot's own sense of what is up differ by less."""


def check(heard: dict[str, Any], cell: dict[str, Any]) -> list[Found]:
    """All that follows from what `listen` heard; `cell`: interface, domain, hands and control."""
    where = f"interface {cell['interface']}, domain {cell['domain']}"
    if "unsafe" in heard:
        return [("CycloneDDS", False, heard["unsafe"],
                 f"install Python 3.10, then make unitree: it takes {VENDORS}")]  # fmt: skip
    found: list[Found] = [("CycloneDDS", True, f"{heard['cyclonedds']} on {where}", "")]
    if "cannot" in heard:
        return [("CycloneDDS", False, heard["cannot"], "correct interface and domain in the cell")]
    found.append(_robot(heard, where))
    if heard["states"]:
        found += [
            _heartbeat(heard), _losses(heard), _machine(heard), _ranges(np.array(heard["q"])),
        ]  # fmt: skip
    if heard["programs"]:
        found += [_control(heard["mode"], cell["control"]), *_latency(heard["round_trips_s"])]
        found += [_commander(heard["writers"]), *_hands(heard["hands"], cell["hands"])]
    return found


def _robot(heard: dict[str, Any], where: str) -> Found:
    name, writers = "robot", heard["writers"].get("rt/lowstate", 0)
    if writers > 1:
        return (name, False, f"{writers} programs write rt/lowstate",
                "end all but the robot's own, such as a simulator")  # fmt: skip
    if heard["states"]:
        return name, True, f"rt/lowstate, {heard['rate_hz']:.0f} times a second", ""
    if heard["unusable"]:
        said = ", ".join(f"{count} with {why}" for why, count in heard["unusable"].items())
        return (name, False, f"no rt/lowstate that can be used: {said}",
                "is it a G1, and does its firmware speak unitree_hg?")  # fmt: skip
    if writers:
        return (name, False, "rt/lowstate is announced, but none comes",
                "look for a firewall that lets no UDP through")  # fmt: skip
    if heard["programs"]:
        return (name, False, f"no rt/lowstate: {heard['programs']} programs are on {where}, none "
                "of which writes it", "is that the robot? Switch it on, and off and on "
                "again")  # fmt: skip
    return (name, False, f"no rt/lowstate: nobody else is on {where}",
            "switch the robot on, look at the cable and at this machine's address (Unitree's are "
            "192.168.123.x), and at interface and domain in the cell")  # fmt: skip


def _heartbeat(heard: dict[str, Any]) -> Found:
    rate, gap, stalled = heard["rate_hz"], heard["gap_s"], heard["stalled_s"]
    said = f"{rate:.0f} states a second, at most {gap * 1e3:.0f} ms without one"
    if rate >= LEAST_HZ and gap <= MOST_GAP_S:
        return "heartbeat", True, said, ""
    asked = f"at least {LEAST_HZ:.0f} and at most {MOST_GAP_S * 1e3:.0f} ms are needed"
    if gap > MOST_GAP_S and stalled > 0.5 * gap:
        return ("heartbeat", False, f"{said}; {asked}. This machine did not run the check-up for "
                f"{stalled * 1e3:.0f} ms", "end what else runs here")  # fmt: skip
    return ("heartbeat", False, f"{said}; {asked}",
            "use a cable, not the radio; look at the switch between")  # fmt: skip


def _losses(heard: dict[str, Any]) -> Found:
    bad = sum(heard["unusable"].values())
    if bad:
        said = ", ".join(f"{count} with {why}" for why, count in heard["unusable"].items())
        return ("messages", False, f"of {bad + heard['states']} not used: {said}",
                "look for a bad cable, or a program that writes the robot's topics")  # fmt: skip
    lost = _lost(np.array(heard["ticks"]))
    said = f"checksums right, {100 * lost:.1f} % lost"
    if lost <= MOST_LOST:
        return "messages", True, said, ""
    return ("messages", False, f"{said}, at most {100 * MOST_LOST:.0f} % may be",
            "use a cable, not the radio; look for what else is on that network")  # fmt: skip


def _lost(ticks: np.ndarray) -> float:
    """The share of states that are missing, by the robot's own milliseconds in those that came."""
    steps = np.diff(ticks)
    steps = steps[(steps >= 0) & (steps < 1000)]  # somebody may have switched it off and on
    if not steps.any():
        return 0.0
    often = np.bincount(steps[steps > 0]).argmax()
    usual = steps[np.abs(steps - often) <= 0.4 * often].mean()
    return float(max(0.0, 1.0 - len(steps) * usual / steps.sum()))


def _machine(heard: dict[str, Any]) -> Found:
    name, (machine, *more) = "mode_machine", heard["machines"]
    right = ", ".join(str(number) for number, (joints, free) in MACHINES.items()
                      if joints == len(g1.JOINT_NAMES) and free)  # fmt: skip
    wanted = f"the limits are for {len(g1.JOINT_NAMES)} joints and a free waist ({right})"
    if more:
        return (name, False, f"it changes: {heard['machines']}", "two robots in one domain?")
    if machine not in MACHINES:
        return name, False, f"{machine} is not known; {wanted}", "ask Unitree what that robot is"
    joints, free = MACHINES[machine]
    said = f"{machine}: a G1 with {joints} joints, its waist {'free' if free else 'locked'}"
    if (joints, free) == (len(g1.JOINT_NAMES), True):
        return name, True, said, ""
    remedy = "take out the waist's fastening and tell the robot so, by Unitree's manual"
    if joints != len(g1.JOINT_NAMES):
        remedy = "this robot has no limits and no model here"
    return name, False, f"{said}; {wanted}", remedy


def _ranges(q: np.ndarray) -> Found:
    low, high = g1.LIMITS_RAD.T
    over = np.maximum(low - q, q - high)
    k = int(over.argmax())
    if over[k] <= SLACK_RAD:
        return "joints", True, f"all {len(q)} within their ranges", ""
    return (
        "joints", False, f"{g1.JOINT_NAMES[k]} says {q[k]:.2f} rad, its range is {low[k]:.2f} to "
        f"{high[k]:.2f}: a wrong zero, sign or order of joints",
        "see what a marker says (unitree_check_node), and calibrate by Unitree's app",
    )  # fmt: skip


def _control(mode: str | None, control: str) -> Found:
    name = "control"
    if mode is None:
        return (name, False, "which program controls it is not known: its motion_switcher does not "
                "answer", "see by remote and app whether it is in debug mode")  # fmt: skip
    said = f"the robot's own program ({mode})" if mode else "none of the robot's own (debug mode)"
    if control == "low" and mode:
        return (name, False, f"{said} is active, and would fight with rt/lowcmd over the motors",
                "put it into debug mode (Unitree's manual), hanging in its frame")  # fmt: skip
    if control != "low" and not mode:
        return (name, False, f"{said}: nobody keeps it on its feet, and rt/arm_sdk moves nothing",
                "switch it off and on again, and have it stand by the remote")  # fmt: skip
    return name, True, said, ""


def _latency(round_trips_s: list[float]) -> list[Found]:
    if not round_trips_s:
        return []
    usual = float(np.median(round_trips_s))
    said = f"{usual * 1e3:.0f} ms there and back, {max(round_trips_s) * 1e3:.0f} ms at most"
    if usual <= MOST_ROUND_S:
        return [("latency", True, said, "")]
    return [("latency", False, f"{said}; {MOST_ROUND_S * 1e3:.0f} ms may be usual",
             "use a cable, not the radio; end what else is on that network")]  # fmt: skip


def _commander(writers: dict[str, int]) -> Found:
    name, count = "commander", writers.get(ARM_SDK, 0)
    if not count:
        return name, True, "nobody else commands waist and arms", ""
    return (name, False, f"{count} more write {ARM_SDK}",
            "end them: bench_tasks in another window, teleoperation, an example")  # fmt: skip


def _hands(heard: dict[str, int], hands: str) -> list[Found]:
    mounted = [hand for hand in ARMS if heard.get(hand)]
    if hands == "dex3":
        return [
            (f"{hand} hand", True, "a Dex3 hand", "") if hand in mounted else
            (f"{hand} hand", False, f"the cell says dex3, and rt/dex3/{hand}/state does not come",
             "look at its plug, and whether its service runs; else say hands: rubber")
            for hand in ARMS
        ]  # fmt: skip
    if mounted:
        return [("hands", False, f"the cell says {hands}, and a Dex3 hand is there: "
                 f"{', '.join(mounted)}", "its fingers are not in the model: take it off, or say "
                 "hands: dex3")]  # fmt: skip
    return [("hands", True, f"no Dex3 hands, as the cell says ({hands})", "")]


def check_seen(seen: dict[str, Any], upright: Sequence[float] | None) -> list[Found]:
    """What cameras and tracker of the cell publish, as `hardware.seen_ros` saw it.

    `upright` (4,): how the robot's own sensor says that its pelvis is turned; about the vertical
    nobody can compare it.
    """
    found = [_pelvis(seen["objects"][g1.PELVIS], upright)]
    for camera, wrong in seen["cameras"].items():
        name = f"camera {camera}"
        found.append((name, not wrong, wrong.removeprefix(f"{name}: ") or "sends pictures",
                      "start its driver, or correct its topics in the cell"))  # fmt: skip
    return found


def _pelvis(pose: str | list[float], upright: Sequence[float] | None) -> Found:
    name = "pelvis"
    if isinstance(pose, str):
        return (name, False, pose.removeprefix(f"{name} is "),
                "have the tracker publish it, as `objects` of the cell says")  # fmt: skip
    said = "seen at " + ", ".join(f"{v:.3f}" for v in pose[:3])
    if upright is None:
        return name, True, said, ""
    ups = [rotation_matrix(np.array(q, float))[2] for q in (pose[3:], upright)]
    tilt = float(np.arccos(np.clip(ups[0] @ ups[1], -1.0, 1.0)))
    if tilt <= UPRIGHT_RAD:
        return name, True, said, ""
    return (name, False, f"{said}, but tilted by {tilt:.2f} rad from what the robot's own sensor "
            "says", "z of the world must point up, and the pelvis' frame lie as the model's")
