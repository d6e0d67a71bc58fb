"""A G1 that is not there: Unitree's DDS topics, and behind them joints, ideal ones or MuJoCo's.

Runs in the driver's environment (requirements/unitree.txt): `python sim/standin/g1_dds.py SETTINGS
[FD]`. SETTINGS is JSON, see `DEFAULTS`. With FD, its end of a socket pair, the joints are somebody
else's: accepted commands go there, (topic, rows (29, 5), weight), and what is measured comes back.
Without, they are ideal, and a line of JSON on stdout says ten times a second how things stand.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_tasks.robots.unitree_dds import Dds  # noqa: E402
from bench_tasks.robots.unitree_hg import (  # noqa: E402
    ARM_SDK,
    HAND_CMD,
    HAND_STATE,
    JOINTS,
    LOW_CMD,
    LOW_STATE,
    decode,
    encode,
    signed,
)
from bench_tasks.robots.unitree_rpc import CHECK_MODE, MOTION_SWITCHER, Server  # noqa: E402
from bench_tasks.ros.domain import robot_domain  # noqa: E402
from sim.standin.g1_firmware import (  # noqa: E402
    Elsewhere,
    Firmware,
    IdealJoints,
    rows_of,
    weight_of,
    why_refused,
)
from sim.standin.g1_wiring import Bent, reported  # noqa: E402

__all__ = ["DEFAULTS", "StandIn", "main"]

DEFAULTS: dict[str, Any] = {
    "domain": -1, "interface": "lo", "control": "motion", "rate_hz": 250.0, "mode_machine": 5,
    "latency_s": 0.0, "loss": 0.0, "noise_rad": 0.0, "silence_s": 0.1, "seed": 0,
    "crc_wrong": 0.0, "outage_s": [0.0, 0.0], "hands": "rubber", "switcher": True,
    "silent": False, "swap_arms": False, "flip": [], "bent": False,
}  # fmt: skip
"""`domain`: -1 is the one beside the environment's ROS domain; `latency_s` each way; `loss` is the
share of messages lost, each way; `noise_rad` the standard deviation of joint positions, velocities
having ten times as much; `crc_wrong` the share of states with a wrong checksum; `outage_s`: every
so long nothing comes through for so long, either way.
`switcher`: whether it says which program controls it; `silent`: it says no state; `swap_arms` and
`flip` (joints' names): what it says of its joints is wrong; `bent`: somebody bends them by hand."""
HANDS = {"rubber": (), "dex3": ("left", "right")}
MODES = {"motion": "ai", "debug": ""}
COMMANDS = ("rt/lowcmd", ARM_SDK)
HAND_SPEED = 3.0
GAP_S, GAPS_KEPT = 0.05, 100


class StandIn:
    """The topics of one robot."""

    def __init__(self, settings: dict[str, Any], joints: Any, take: Any) -> None:
        """`take` gets accepted commands."""
        self._set, self._joints, self._take = settings, joints, take
        hands = HANDS[settings["hands"]]
        self._dds = Dds(
            settings["domain"], settings["interface"],
            ("rt/lowstate", *(f"rt/dex3/{hand}/state" for hand in hands)),
            (*COMMANDS, *(f"rt/dex3/{hand}/cmd" for hand in hands)),
        )  # fmt: skip
        mode = {"form": "0", "name": MODES[settings["control"]]}
        self._switcher = Server(
            self._dds, MOTION_SWITCHER, lambda api: mode if api == CHECK_MODE else None
        ) if settings["switcher"] else None  # fmt: skip
        self._asked: deque[tuple[float, Any]] = deque()
        self._rng = np.random.default_rng(settings["seed"])
        self._state, self._hands = np.zeros((), LOW_STATE), {h: np.zeros(7) for h in hands}
        self._state["mode_machine"] = settings["mode_machine"]
        self._wanted = {hand: np.zeros(7) for hand in hands}
        self._coming: deque[tuple[float, str, np.ndarray]] = deque()
        self._going: deque[tuple[float, bytes]] = deque()
        self.counts: dict[str, int] = {"accepted": 0, "sent": 0}
        self._heard_s = self._sent_s = self._outage_s = 0.0
        self.gaps: deque[tuple[str, float, float]] = deque(maxlen=GAPS_KEPT)
        """After more than `GAP_S` without: what (command, state), until when, and for how long."""

    def _lost(self) -> bool:
        return self._set["loss"] > 0 and self._rng.random() < self._set["loss"]

    def _out(self, now_s: float) -> bool:
        """Whether nothing comes through, either way."""
        every_s, seconds = self._set["outage_s"]
        if every_s and now_s - self._outage_s > every_s:
            self._outage_s = now_s
        return bool(every_s) and now_s - self._outage_s < seconds

    def _gap(self, what: str, since_s: float, now_s: float) -> None:
        if since_s and now_s - since_s > GAP_S:
            self.gaps.append((what, round(now_s, 3), round(now_s - since_s, 4)))

    def hear(self, now_s: float) -> None:
        """Take what has come; what is wrong is ignored, and counted."""
        for topic in COMMANDS:
            for data in self._dds.take(topic):
                if not (self._lost() or self._out(now_s)):
                    self._hear_command(topic, decode(data, LOW_CMD), now_s)
        while self._coming and self._coming[0][0] <= now_s:
            _, topic, message = self._coming.popleft()
            self.counts["accepted"] += 1
            self._take(topic, rows_of(message), weight_of(message), now_s)
        for hand in self._hands:
            for data in self._dds.take(f"rt/dex3/{hand}/cmd"):
                motors = decode(data, HAND_CMD)["motor"]
                if (motors["kp"] > 0).all():
                    self._wanted[hand] = motors["q"].astype(np.float64)
        self._answer(now_s)

    def _answer(self, now_s: float) -> None:
        """Say which program controls it."""
        if self._switcher is None:
            return
        due_s = now_s + 2 * self._set["latency_s"]
        self._asked.extend((due_s, question) for question in self._switcher.heard())
        while self._asked and self._asked[0][0] <= now_s:
            self._switcher.answer(self._asked.popleft()[1])

    def _hear_command(self, topic: str, message: np.ndarray, now_s: float) -> None:
        wrong = why_refused(message, self._set["mode_machine"])
        if wrong:
            self.counts[wrong] = self.counts.get(wrong, 0) + 1
            return
        self._coming.append((now_s + self._set["latency_s"], topic, message))
        self._gap("command", self._heard_s, now_s)
        self._heard_s = now_s

    def tell(self, now_s: float, dt_s: float) -> None:
        """Publish the state, if there is a new one."""
        measured = self._joints.measured()
        if measured is not None and not self._set["silent"]:
            self._put(measured, now_s)
            if not self._lost():
                message = signed(self._state)
                if self._rng.random() < self._set["crc_wrong"]:
                    message["crc"] += 1
                    self.counts["sent_crc_wrong"] = self.counts.get("sent_crc_wrong", 0) + 1
                self._going.append((now_s + self._set["latency_s"], encode(message)))
        while self._going and self._going[0][0] <= now_s:
            data = self._going.popleft()[1]
            if not self._out(now_s):
                self._gap("state", self._sent_s, now_s)
                self._dds.write("rt/lowstate", data)
                self._sent_s = now_s
                self.counts["sent"] += 1
        for hand in self._hands:
            away = self._wanted[hand] - self._hands[hand]
            self._hands[hand] += np.clip(away, -HAND_SPEED * dt_s, HAND_SPEED * dt_s)
            state = np.zeros((), HAND_STATE)
            state["count"], state["press_count"] = 7, 9
            state["motor"]["q"] = self._hands[hand]
            self._dds.write(f"rt/dex3/{hand}/state", encode(state))

    def _put(self, measured: np.ndarray, now_s: float) -> None:
        noise = self._set["noise_rad"]
        numbers, joints = measured.copy(), slice(0, 3 * JOINTS)
        numbers[joints] = reported(numbers[joints], self._set["swap_arms"], self._set["flip"])
        if noise:
            numbers[:JOINTS] += self._rng.normal(0.0, noise, JOINTS)
            numbers[JOINTS : 2 * JOINTS] += self._rng.normal(0.0, 10 * noise, JOINTS)
        motors, state = self._state["motor"][:JOINTS], self._state
        motors["q"], motors["dq"], motors["tau_est"] = numbers[joints].reshape(3, JOINTS)
        motors["mode"] = 1
        base = numbers[3 * JOINTS :]
        state["quaternion"], state["gyroscope"] = base[:4], base[4:7]
        state["accelerometer"] = base[7:]
        state["tick"] = int(now_s * 1e3) & 0xFFFFFFFF


def main() -> None:
    """Serve until told to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    given = json.loads(sys.argv[1])
    if unknown := set(given) - set(DEFAULTS):
        sys.exit(f"no settings {', '.join(sorted(unknown))}: there are {', '.join(DEFAULTS)}")
    if given.get("hands", "rubber") not in HANDS or given.get("control", "motion") not in MODES:
        sys.exit(f"hands are one of {', '.join(HANDS)}, control one of {', '.join(MODES)}")
    settings = {**DEFAULTS, **given}
    if settings["domain"] < 0:
        settings["domain"] = robot_domain()
    firmware = Firmware(settings["control"], settings["silence_s"])
    ideal = len(sys.argv) <= 2
    take = firmware.take
    joints: Any = Bent(settings["seed"]) if settings["bent"] else IdealJoints(firmware)
    if not ideal:
        joints = Elsewhere(int(sys.argv[2]))
        take = joints.take
    robot = StandIn(settings, joints, take)
    period, said_s = 1.0 / settings["rate_hz"], 0.0
    due = last = time.monotonic()
    while True:
        now = time.monotonic()
        robot.hear(now)
        joints.step(now, min(now - last, 0.05))
        robot.tell(now, now - last)
        last = now
        if ideal and now - said_s > 0.1:
            said_s = now
            line = {**robot.counts, "now": round(now, 3), "weight": firmware.weight,
                    "damped": firmware.damped, "speed": float(np.abs(joints.dq).max()),
                    "gaps": list(robot.gaps),
                    "q": joints.q.round(5).tolist()}  # fmt: skip
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        due = max(due + period, now - 5 * period)
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
